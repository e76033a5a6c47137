//! Load on a cluster while something happens to it, and the parts of its time line.

use quorate_bench::{Config, Extent, Interval, Report, Spread};
use quorate_cli::exit::Failure;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest that what happens may take.
const WORK_MAX: Duration = Duration::from_secs(3600);

/// Writes the keys of a configuration.
///
/// # Errors
/// Some could not be written.
pub fn load(config: &Config) -> Result<(), Failure> {
    let load = Config { extent: Extent::Operations(1), warm_up: Duration::ZERO, ..config.clone() };
    quorate_bench::run(&load)?;
    Ok(())
}

/// Runs a load on another thread until the work is done; the work is told when the time line of the
/// report begins.
///
/// # Errors
/// Those of the work, or the load failed.
pub fn under_load<T>(
    mut config: Config,
    work: impl FnOnce(Instant) -> Result<T, Failure>,
) -> Result<(T, Report), Failure> {
    config.extent = Extent::Time(WORK_MAX);
    let stop = config.stop.clone();
    let begun = Instant::now() + config.warm_up;
    let generator = std::thread::spawn(move || quorate_bench::run(&config));
    let done = work(begun);
    stop.0.store(true, Ordering::Relaxed);
    let report = generator.join().map_err(|_| Failure::failed("the load generator panicked"))?;
    Ok((done?, report?))
}

/// A part of the time line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The mean latency in milliseconds.
    pub mean_ms: f64,
    /// The highest 99th percentile of a piece.
    pub p99_ms: f64,
    /// The median of the pieces' 99th percentiles.
    pub p99_median_ms: f64,
    /// About the 99th percentile of the whole part.
    pub p99_whole_ms: f64,
    /// Operations that failed.
    pub errors: u64,
}

impl Part {
    /// The pieces that overlap a time, given in seconds since the time line began.
    #[must_use]
    pub fn of(report: &Report, from: f64, to: f64) -> Part {
        let is_within =
            |piece: &&Interval| piece.at_seconds + piece.seconds > from && piece.at_seconds < to;
        let pieces: Vec<&Interval> = report.intervals.iter().filter(is_within).collect();
        let count = |piece: &Interval| (piece.reads + piece.writes) as f64;
        let total: f64 = pieces.iter().map(|piece| piece.mean_us * count(piece)).sum();
        let operations: f64 = pieces.iter().map(|piece| count(piece)).sum();
        let mut p99s: Vec<f64> = pieces.iter().map(|piece| piece.p99_us / 1e3).collect();
        p99s.sort_by(f64::total_cmp);
        let mut spread = Spread::default();
        pieces.iter().for_each(|piece| spread.join(&piece.spread));
        Part {
            mean_ms: total / operations.max(1.0) / 1e3,
            p99_ms: p99s.last().copied().unwrap_or(0.0),
            p99_median_ms: p99s.get(p99s.len() / 2).copied().unwrap_or(0.0),
            p99_whole_ms: spread.quantile_us(0.99) / 1e3,
            errors: pieces.iter().map(|piece| piece.errors).sum(),
        }
    }
}
