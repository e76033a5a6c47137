//! A keyspace of real hosts that is loaded with keys and asked for transactions.

use super::size::{LENGTH, Size, VALUE_BYTES};
use crate::background::load;
use crate::cluster::Cluster;
use crate::page::fixed;
use quorate_bench::{
    Asking, Distribution, Stop, TransactionsConfig, TransactionsReport, Workload, transactions,
};
use quorate_cli::exit::Failure;
use std::time::Duration;

/// How a row is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// YCSB's mix.
    pub workload: Workload,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// How clients ask.
    pub asking: Asking,
}

impl Mix {
    /// As the paper's clients ask, with YCSB's own choice of keys.
    #[must_use]
    pub fn paper(workload: Workload) -> Mix {
        Mix { workload, distribution: Distribution::Zipfian, asking: Asking::Versions }
    }
}

/// Writes all keys of a keyspace.
///
/// # Errors
/// Some could not be written.
pub fn fill(cluster: &Cluster, keyspace: &str, size: &Size) -> Result<(), Failure> {
    let mut config = cluster.load(Workload::Set);
    config.keyspace = Some(keyspace.to_owned());
    config.key_count = size.keys;
    config.value_bytes = VALUE_BYTES;
    config.connection_count = 8;
    load(&config)
}

/// One run.
///
/// # Errors
/// Nothing was committed.
pub fn measure(
    cluster: &Cluster,
    keyspace: &str,
    size: &Size,
    mix: Mix,
    clients: u32,
) -> Result<TransactionsReport, Failure> {
    let config = TransactionsConfig {
        endpoints: cluster.grpc(),
        keyspace: keyspace.to_owned(),
        workload: mix.workload,
        distribution: mix.distribution,
        key_count: size.keys,
        value_bytes: VALUE_BYTES,
        length: LENGTH,
        asking: mix.asking,
        clients,
        window: size.window,
        warm_up: size.warm_up,
        interval: Duration::from_millis(100),
        server_pids: cluster.processes(),
        seed: u64::from(clients),
        stop: Stop::default(),
    };
    Ok(transactions(&config)?)
}

/// Where nothing is written nothing that was read can have changed: neither for clients, nor for
/// hosts, which would have tried again so many transactions.
///
/// # Errors
/// Something was aborted, or tried again, though nothing was written.
pub fn none_aborted(
    workload: Workload,
    report: &TransactionsReport,
    conflicts: u64,
) -> Result<(), Failure> {
    let aborted = report.aborted;
    if workload != Workload::C || aborted + conflicts == 0 {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "of transactions that only read {aborted} were aborted, and {conflicts} tried again by \
         hosts"
    )))
}

/// The head of a table of runs, behind what the rows are of.
pub const HEAD: [&str; 9] = [
    "throughput (op/s)",
    "goodput (op/s)",
    "aborted (%)",
    "committed",
    "aborted",
    "failed",
    "p99 reading only (ms)",
    "p99 writing (ms)",
    "host CPU per transaction (µs)",
];

/// The cells of a run.
#[must_use]
pub fn cells(report: &TransactionsReport) -> Vec<String> {
    let p99 = |class: &quorate_bench::ClassReport| match class.operations {
        0 => "-".to_owned(),
        _ => fixed(class.p99_us / 1e3, 1),
    };
    let ended = (report.committed + report.aborted).max(1);
    let cpu = report.server_cpu_seconds.unwrap_or(0.0) * 1e6 / ended as f64;
    vec![
        fixed(report.throughput, 0),
        fixed(report.goodput, 0),
        fixed(report.abort_share() * 100.0, 1),
        report.committed.to_string(),
        report.aborted.to_string(),
        report.failed().to_string(),
        p99(&report.reads),
        p99(&report.writes),
        fixed(cpu, 0),
    ]
}

/// How others use the machine: the less, the better the row.
#[must_use]
pub fn others(report: &TransactionsReport) -> String {
    fixed(report.other_cpu_cores.unwrap_or(0.0), 2)
}
