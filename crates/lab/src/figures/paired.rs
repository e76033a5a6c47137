//! Short runs of keyspaces that differ in one setting, in turn and in every order, on one cluster,
//! so that what drifts on the machine hits all alike (Fig. 6 and 7).

use super::cats::Size;
use super::load::{MIXES, cpu_us};
use crate::cluster::Cluster;
use crate::quorums::{self, STAMPS};
use crate::statistics::{Estimate, trimmed_ratio};
use quorate_bench::{BenchError, Config, Extent, Report};
use quorate_cli::exit::Failure;
use quorate_kernel::keyspace::{NewKeyspace, Settings};

/// The sizes of values, in bytes.
pub const VALUE_BYTES: [usize; 3] = [256, 1024, 4096];
/// Connections of every run.
pub const CONNECTIONS: usize = 32;
/// Below this half width of both intervals, in percent, a row is done.
pub const ENOUGH: f64 = 1.0;
/// How often a run is tried in which nothing was answered.
const TRIES: usize = 10;
/// The keyspaces, in the order of [`Round`].
pub const KEYSPACES: [&str; 3] = ["atomic", "eventual", "static"];
/// All orders of them.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]];

/// One run of each keyspace, neighbours in time.
pub type Round = [Report; 3];

/// All runs of one mix and one size of values.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The mix, by the word of the figures.
    pub mix: &'static str,
    /// The size of values.
    pub value_bytes: usize,
    /// What was run.
    pub rounds: Vec<Round>,
}

impl Runs {
    /// The ratio of something at the atomic keyspace to the same at another one of [`KEYSPACES`].
    #[must_use]
    pub fn ratio(&self, other: usize, of: impl Fn(&Report) -> f64) -> Estimate {
        let pairs: Vec<_> =
            self.rounds.iter().map(|round| (of(&round[0]), of(&round[other]))).collect();
        trimmed_ratio(&pairs)
    }

    /// How many percent of processor time per operation the atomic keyspace takes beyond another.
    #[must_use]
    pub fn added(&self, other: usize) -> Estimate {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let Estimate { mean, low, high } = self.ratio(other, cpu_us);
        Estimate { mean: percent(mean), low: percent(low), high: percent(high) }
    }

    /// How many percent of another keyspace's throughput the atomic one loses.
    #[must_use]
    pub fn lost(&self, other: usize) -> Estimate {
        let percent = |ratio: f64| (1.0 - ratio) * 100.0;
        let Estimate { mean, low, high } = self.ratio(other, |report| report.throughput);
        Estimate { mean: percent(mean), low: percent(high), high: percent(low) }
    }

    fn is_enough(&self, size: &Size) -> bool {
        let is_narrow = || (1..3).all(|other| self.added(other).half() < ENOUGH);
        self.rounds.len() >= size.rounds_max
            || (self.rounds.len() >= size.rounds_min && is_narrow())
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// By mix and size.
    pub runs: Vec<Runs>,
    /// How many keys each keyspace has.
    pub keys: u64,
    /// How long each run was, in seconds.
    pub seconds: f64,
}

/// Measures all mixes and sizes on one cluster.
///
/// # Errors
/// The cluster did not start, or a run failed.
pub fn measure(port_base: u16, size: &Size) -> Result<Measured, Failure> {
    let named = |name: &str| {
        let (name, engine) = (name.to_owned(), quorums::ENGINE.name.to_owned());
        NewKeyspace { name, engine, settings: Settings::new() }
    };
    let mut keyspaces = KEYSPACES.map(named);
    let mut set = |index: usize, name: &str, value: &str| {
        keyspaces[index].settings.insert(name.to_owned(), value.to_owned());
    };
    set(1, "mode", "eventual");
    set(2, STAMPS, "no");
    let cluster = Cluster::with(port_base, 3, keyspaces.to_vec(), &[])?;
    let mut runs = Vec::new();
    for value_bytes in VALUE_BYTES {
        let mut is_loaded = [false; 3];
        for (workload, mix) in MIXES {
            let mut seed = 0;
            let mut run = |side: usize| -> Result<Report, Failure> {
                seed += 1;
                let mut config = cluster.load(workload);
                config.keyspace = Some(KEYSPACES[side].to_owned());
                config.key_count = size.keys;
                config.value_bytes = value_bytes;
                config.connection_count = CONNECTIONS;
                config.extent = Extent::Time(size.run);
                config.warm_up = size.run_warm_up;
                config.load = !std::mem::replace(&mut is_loaded[side], true);
                config.seed = seed;
                run_once(&config)
            };
            let mut row = Runs { mix, value_bytes, rounds: Vec::new() };
            // The first runs write all keys, and count no more than a warm-up does.
            for side in 0..3 {
                run(side)?;
            }
            while !row.is_enough(size) {
                let mut round = [None, None, None];
                for side in ORDERS[row.rounds.len() % ORDERS.len()] {
                    round[side] = Some(run(side)?);
                }
                row.rounds.push(round.map(|report| report.expect("every order has all")));
            }
            let [atomicity, quorums] = [row.added(1), row.added(2)];
            eprintln!(
                "figures 6 and 7: {mix}, {value_bytes} bytes, {} rounds: atomicity {:.1} ± {:.1}, \
                 consistent quorums {:.1} ± {:.1} %",
                row.rounds.len(),
                atomicity.mean,
                atomicity.half(),
                quorums.mean,
                quorums.half()
            );
            runs.push(row);
        }
    }
    Ok(Measured { runs, keys: size.keys, seconds: size.run.as_secs_f64() })
}

/// One run; again if it was so short that something else had the machine all the time.
fn run_once(config: &Config) -> Result<Report, Failure> {
    for _ in 1..TRIES {
        match quorate_bench::run(config) {
            Err(BenchError::NothingSucceeded { .. }) => {}
            done => return Ok(done?),
        }
    }
    Ok(quorate_bench::run(config)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyspace_comes_first_second_and_last_equally_often() {
        for place in 0..3 {
            for side in 0..3 {
                let count = ORDERS.iter().filter(|order| order[place] == side).count();
                assert_eq!(count, 2, "{side} at {place}");
            }
        }
    }
}
