//! What a run of transactions found.

use std::collections::BTreeMap;

use super::config::TransactionsConfig;
use super::floor::ABORT;
use crate::report::findings::{ClassReport, ratio};
use crate::report::record::{Class, Interval, Recorder, seconds};
use crate::report::usage::Watch;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionsReport {
    /// How long the measured window was open.
    pub seconds: f64,
    /// Transactions that were committed within it.
    pub committed: u64,
    /// Transactions that aborted within it: others had changed what they had read.
    pub aborted: u64,
    /// Those that were refused, or of which nobody can say how they ended, by the kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Operations of all transactions that have ended, aborted ones too, per second.
    pub throughput: f64,
    /// Operations of transactions that were committed, per second.
    pub goodput: f64,
    /// Commits of transactions that only read.
    pub reads: ClassReport,
    /// Commits of those that write.
    pub writes: ClassReport,
    /// The longest time without a commit, in milliseconds.
    pub gap_ms: f64,
    /// Processor seconds of the servers; none if they were not watched.
    pub server_cpu_seconds: Option<f64>,
    /// Processor seconds of the clients.
    pub client_cpu_seconds: f64,
    /// Processors that everything else on this machine kept busy; none if no server was watched.
    pub other_cpu_cores: Option<f64>,
    /// The time line; aborts are among its errors.
    pub intervals: Vec<Interval>,
}

impl TransactionsReport {
    /// Puts together what was counted.
    pub(super) fn new(
        config: &TransactionsConfig,
        recorder: &Recorder,
        watch: &Watch,
    ) -> TransactionsReport {
        let [reads, writes] = [Class::Read, Class::Write].map(|class| recorder.class(class));
        let mut errors = recorder.errors().clone();
        let aborted = errors.remove(ABORT).unwrap_or(0);
        let committed = reads.success_count + writes.success_count;
        let length = recorder.window_seconds();
        let per_second =
            |transactions: u64| ratio(transactions as f64 * config.length as f64, length);
        let used = watch.servers();
        let cpu = used.iter().map(|server| server.cpu_seconds).sum::<f64>();
        TransactionsReport {
            seconds: length,
            committed,
            aborted,
            throughput: per_second(committed + aborted),
            goodput: per_second(committed),
            reads: ClassReport::new(reads),
            writes: ClassReport::new(writes),
            gap_ms: seconds(recorder.longest_gap()) * 1e3,
            server_cpu_seconds: (!used.is_empty()).then_some(cpu),
            client_cpu_seconds: watch.client_seconds(),
            other_cpu_cores: watch.other_seconds().map(|other| ratio(other, length)),
            errors,
            intervals: recorder.intervals().to_vec(),
        }
    }

    /// The share of the transactions that have ended which aborted.
    #[must_use]
    pub fn abort_share(&self) -> f64 {
        ratio(self.aborted as f64, (self.aborted + self.committed) as f64)
    }

    /// How many failed in another way.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}
