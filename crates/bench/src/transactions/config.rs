//! What to run.

use std::time::Duration;

use crate::config::Stop;
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;

/// How a client has a transaction done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// As SCONEKV's clients do: each key is read when it is first named, also if it is only
    /// written, one after the other, and the commit rests on all of them.
    Versions,
    /// The same, but keys that are only written are not read, and nothing rests on them.
    Blind,
    /// All operations are sent at once. Nothing is read by the client before, so there is nothing
    /// that others could have changed.
    Whole,
}

/// A run of transactions over keys that are there.
#[derive(Clone, Debug)]
pub struct TransactionsConfig {
    /// gRPC doors as `NAME:PORT`.
    pub endpoints: Vec<String>,
    /// Where the keys are.
    pub keyspace: String,
    /// The mix; one without inserts.
    pub workload: Workload,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// How many keys there are.
    pub key_count: u64,
    /// The size of what is written.
    pub value_bytes: usize,
    /// How many operations a transaction has.
    pub length: usize,
    /// How clients ask.
    pub asking: Asking,
    /// How many ask at the same time.
    pub clients: u32,
    /// How long to measure.
    pub window: Duration,
    /// How long to run before anything counts.
    pub warm_up: Duration,
    /// The length of one piece of the time line.
    pub interval: Duration,
    /// Server processes whose processor time is reported.
    pub server_pids: Vec<u32>,
    /// The seed of keys and values.
    pub seed: u64,
    /// Ends the run early.
    pub stop: Stop,
}
