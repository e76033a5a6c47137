//! Runs of two keyspaces in turn, A, B, B, A and so on, so that what drifts on the machine hits
//! both alike (Fig. 6 and 7).

use super::cats::Size;
use super::cluster::Cluster;
use super::load::MIXES;
use crate::cli::exit::Failure;
use quorate_bench::{Extent, Report};

/// The sizes of values, in bytes.
pub const VALUE_BYTES: [usize; 3] = [256, 1024, 4096];
/// Connections of every run.
pub const CONNECTIONS: usize = 32;
/// The two keyspaces: what is measured, and what it is measured against.
const KEYSPACES: [(&str, &str); 2] = [
    ("atomic", "atomic=linearizable,mode=atomic"),
    ("eventual", "eventual=linearizable,mode=eventual"),
];

/// All runs of one mix and one size of values.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The mix, by the word of the figures.
    pub mix: &'static str,
    /// The size of values.
    pub value_bytes: usize,
    /// Runs of the atomic and the eventual keyspace, neighbours in time.
    pub pairs: Vec<(Report, Report)>,
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
    let specs = KEYSPACES.map(|(_, spec)| spec);
    let cluster = Cluster::start(port_base, 3, &specs)?;
    let mut runs = Vec::new();
    for value_bytes in VALUE_BYTES {
        let mut is_loaded = [false; 2];
        for (workload, mix) in MIXES {
            eprintln!("figures 6 and 7: {mix}, values of {value_bytes} bytes");
            let mut run = |side: usize| -> Result<Report, Failure> {
                let mut config = cluster.load(workload);
                config.keyspace = Some(KEYSPACES[side].0.to_owned());
                config.key_count = size.keys;
                config.value_bytes = value_bytes;
                config.connection_count = CONNECTIONS;
                config.extent = Extent::Time(size.run);
                config.warm_up = size.warm_up;
                config.load = !std::mem::replace(&mut is_loaded[side], true);
                Ok(quorate_bench::run(&config)?)
            };
            let mut pairs = Vec::new();
            for _ in 0..size.rounds {
                let (one, two) = (run(0)?, run(1)?);
                let (three, four) = (run(1)?, run(0)?);
                pairs.extend([(one, two), (four, three)]);
            }
            runs.push(Runs { mix, value_bytes, pairs });
        }
    }
    Ok(Measured { runs, keys: size.keys, seconds: size.run.as_secs_f64() })
}
