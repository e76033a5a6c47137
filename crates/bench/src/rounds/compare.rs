//! Measures two servers in turn, so that what disturbs the machine disturbs both alike.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::BenchError;
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;
use crate::report::findings::{Report, grouped, ratio};
use crate::rounds::turns::{Live, Rounds, Target};

/// What to compare.
#[derive(Clone, Debug)]
pub struct CompareConfig {
    /// The server of interest.
    pub left: Target,
    /// The server to compare with.
    pub right: Target,
    /// Connect to the first endpoint of each only.
    pub first_endpoint_only: bool,
    /// The mixes to run.
    pub workloads: Vec<Workload>,
    /// Overrides the distribution of each mix.
    pub distribution: Option<Distribution>,
    /// The pipeline depths to run each mix with.
    pub pipeline_depths: Vec<usize>,
    /// How often each of them is run on each server.
    pub round_count: usize,
    /// Everything else; its endpoints, processes, mix, depth and plot are not used.
    pub base: Config,
}

/// The outcome of a comparison. The field names are stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the server of interest.
    pub left: String,
    /// The name of the other.
    pub right: String,
    /// Connections.
    pub connections: usize,
    /// Keys.
    pub keys: u64,
    /// The size of every value.
    pub value_bytes: usize,
    /// How often each row was measured on each server.
    pub rounds: usize,
    /// One row for each mix and pipeline depth.
    pub rows: Vec<Row>,
}

/// One mix at one pipeline depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The mix.
    pub workload: Workload,
    /// The pipeline depth.
    pub pipeline: usize,
    /// The server of interest.
    pub left: Side,
    /// The other.
    pub right: Side,
    /// The median throughput of the left by that of the right.
    pub ratio: f64,
    /// The smallest ratio of two runs of the same round.
    pub ratio_min: f64,
    /// The largest ratio of two runs of the same round.
    pub ratio_max: f64,
}

/// One server in one row: medians over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Operations per second.
    pub throughput: f64,
    /// The slowest round.
    pub throughput_min: f64,
    /// The fastest round.
    pub throughput_max: f64,
    /// Every round in order.
    pub throughputs: Vec<f64>,
    /// The median latency of reads, or of writes where there are no reads, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of the same.
    pub p99_us: f64,
    /// Processor seconds of the servers per 1,000 operations; null if none is known.
    pub server_cpu_seconds_per_1000: Option<f64>,
    /// Processor seconds of the client per 1,000 operations.
    pub client_cpu_seconds_per_1000: f64,
    /// The most resident bytes of one server process; null if none is known.
    pub rss_peak_bytes: Option<u64>,
    /// Processors that everything else kept busy; null if the servers are not known.
    pub other_cpu_cores: Option<f64>,
    /// Failed operations of all rounds.
    pub errors: u64,
}

/// Starts what is to be started, runs all rounds in turn, and compares.
///
/// # Errors
/// See [`BenchError`]; servers that were started are stopped.
pub fn compare(config: &CompareConfig) -> Result<Comparison, BenchError> {
    if config.workloads.is_empty() || config.pipeline_depths.is_empty() || config.round_count == 0 {
        let text = "a comparison needs a workload, a pipeline depth and a round";
        return Err(BenchError::Settings(text.to_owned()));
    }
    let start = |target: &Target| {
        let mut live = target.start(config.base.wire, &config.base.stop)?;
        if config.first_endpoint_only {
            live.endpoints.truncate(1);
        }
        Ok::<Live, BenchError>(live)
    };
    let lives = [start(&config.left)?, start(&config.right)?];
    let depths = &config.pipeline_depths;
    let cells = config.workloads.iter().flat_map(|&mix| depths.iter().map(move |&n| (mix, n)));
    let rounds = Rounds {
        cells: cells.collect(),
        distribution: config.distribution,
        count: config.round_count,
        base: &config.base,
    };
    let mut rows = Vec::new();
    for (&(workload, pipeline), reports) in rounds.cells.iter().zip(rounds.run(&lives)?) {
        let [left, right] = &reports[..] else { unreachable!("two servers ran") };
        rows.push(Row::new(workload, pipeline, left, right));
    }
    let [left, right] = lives.map(|live| live.name);
    Ok(Comparison {
        left,
        right,
        connections: config.base.connection_count,
        keys: config.base.key_count,
        value_bytes: config.base.value_bytes,
        rounds: config.round_count,
        rows,
    })
}

impl Row {
    fn new(workload: Workload, pipeline: usize, left: &[Report], right: &[Report]) -> Row {
        let ratios: Vec<f64> =
            left.iter().zip(right).map(|(l, r)| ratio(l.throughput, r.throughput)).collect();
        let (left, right) = (Side::new(left), Side::new(right));
        Row {
            workload,
            pipeline,
            ratio: ratio(left.throughput, right.throughput),
            ratio_min: ratios.iter().copied().fold(f64::MAX, f64::min),
            ratio_max: ratios.iter().copied().fold(0.0, f64::max),
            left,
            right,
        }
    }
}

impl Side {
    pub(crate) fn new(reports: &[Report]) -> Side {
        let class = |report: &Report| match report.reads.operations {
            0 => report.writes.clone(),
            _ => report.reads.clone(),
        };
        let of = |value: &dyn Fn(&Report) -> f64| median(reports.iter().map(value).collect());
        let throughputs: Vec<f64> = reports.iter().map(|report| report.throughput).collect();
        let is_watched = reports.iter().all(|report| !report.servers.is_empty());
        let cpu = |report: &Report| report.server_cpu_seconds_per_1000.unwrap_or_default();
        let servers = reports.iter().flat_map(|report| &report.servers);
        Side {
            throughput: median(throughputs.clone()),
            throughput_min: throughputs.iter().copied().fold(f64::MAX, f64::min),
            throughput_max: throughputs.iter().copied().fold(0.0, f64::max),
            throughputs,
            p50_us: of(&|report| class(report).p50_us),
            p99_us: of(&|report| class(report).p99_us),
            server_cpu_seconds_per_1000: is_watched.then(|| of(&cpu)),
            client_cpu_seconds_per_1000: of(&|report| report.client_cpu_seconds_per_1000),
            other_cpu_cores: is_watched
                .then(|| of(&|report| report.other_cpu_cores.unwrap_or_default())),
            rss_peak_bytes: servers.map(|server| server.rss_peak_bytes).max(),
            errors: reports.iter().map(Report::error_count).sum(),
        }
    }
}

/// The middle of these numbers, or the mean of the two in the middle; zero for none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} against {}: {} connections, {} keys, values of {} bytes, medians of {} rounds\n",
            self.left,
            self.right,
            self.connections,
            grouped(self.keys as f64),
            grouped(self.value_bytes as f64),
            self.rounds
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{} × {}: ratio {:.2} ({:.2} to {:.2})",
                row.workload, row.pipeline, row.ratio, row.ratio_min, row.ratio_max
            )?;
            for (name, side) in [(&self.left, &row.left), (&self.right, &row.right)] {
                side.fmt_line(name, f)?;
            }
        }
        Ok(())
    }
}

impl Side {
    fn fmt_line(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range =
            format!("({} to {})", grouped(self.throughput_min), grouped(self.throughput_max));
        let (p50, p99) = (self.p50_us / 1e3, self.p99_us / 1e3);
        write!(
            f,
            "  {name:<14}{:>10}/s {range:<24} p50 {p50:.3} ms  p99 {p99:.3} ms",
            grouped(self.throughput)
        )?;
        if let Some(cpu) = self.server_cpu_seconds_per_1000 {
            write!(f, "  server CPU {cpu:.4} s/1k")?;
        }
        write!(f, "  client CPU {:.4} s/1k", self.client_cpu_seconds_per_1000)?;
        if let Some(bytes) = self.rss_peak_bytes {
            write!(f, "  peak {} MiB", bytes >> 20)?;
        }
        if let Some(cores) = self.other_cpu_cores {
            write!(f, "  others {cores:.2} processors")?;
        }
        match self.errors {
            0 => writeln!(f),
            errors => writeln!(f, "  {} errors", grouped(errors as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        for (values, middle) in [
            (vec![], 0.0),
            (vec![3.0], 3.0),
            (vec![9.0, 1.0, 2.0], 2.0),
            (vec![4.0, 1.0, 2.0, 100.0], 3.0),
        ] {
            assert!((median(values) - middle).abs() < 1e-12);
        }
    }
}
