//! What a scenario says of clients.

use crate::delay::Distribution;
use serde::{Deserialize, Serialize};

/// The workloads by their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`super::registers`].
    #[default]
    Registers,
    /// [`super::siblings`].
    Siblings,
    /// [`super::orders`].
    Orders,
    /// [`super::transactions`].
    Transactions,
    /// [`super::tree`].
    Tree,
    /// [`super::places`].
    Places,
}

/// The clients of a keyspace, or of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSection {
    /// What they do.
    #[serde(default)]
    pub name: Kind,
    /// How many clients.
    pub clients: usize,
    /// How many operations they begin together before the faults end.
    pub operations: u32,
    /// How many keys there are at most; the number is drawn for each seed. The keys of orders are
    /// names of keyspaces.
    pub keys: u64,
    /// How many there are at least.
    #[serde(default = "one")]
    pub keys_min: u64,
    /// How many operations of a million meet on the first key.
    #[serde(default = "half")]
    pub hot_ppm: u32,
    /// The weight of gets; of orders: of questions which keyspaces there are.
    pub get: u32,
    /// The weight of puts; of orders: of creations.
    pub put: u32,
    /// The weight of deletes; of orders: of drops.
    #[serde(default)]
    pub delete: u32,
    /// The weight of scans over all pages.
    #[serde(default)]
    pub scan: u32,
    /// The weight of alterations of keyspaces.
    #[serde(default)]
    pub alter: u32,
    /// The weight of transactions that check what their client saw last.
    #[serde(default)]
    pub check: u32,
    /// How many keys a transaction has at most.
    #[serde(default = "one")]
    pub items: u64,
    /// Whether each host has keys of its own, for which it alone is asked: of engines that promise
    /// no order between what hosts are asked.
    #[serde(default)]
    pub own_keys: bool,
    /// Whether a put adds to what is there, so that one that shall set a value follows a delete.
    #[serde(default)]
    pub adds: bool,
    /// Whether every write adds one to a number where it stands, which is judged as a counter.
    #[serde(default)]
    pub counts: bool,
    /// Whether what only reads may show what was committed before, of each key by itself.
    #[serde(default)]
    pub old_reads: bool,
    /// How many of a million puts have names, and are sent again to another host.
    #[serde(default)]
    pub named_ppm: u32,
    /// How many of a million puts of transactions expire.
    #[serde(default)]
    pub expire_ppm: u32,
    /// By how many milliseconds a host's wall clock may be off, where puts expire.
    #[serde(default)]
    pub clocks_off_ms: u64,
    /// How many of a million answers to clients that have sessions are followed by a silence that
    /// may be longer than a session's.
    #[serde(default)]
    pub silent_ppm: u32,
    /// By how many milliseconds the wall clocks of two hosts may differ: of keyspaces where clocks
    /// decide which of two writes is the newer. Without it registers are judged as atomic.
    #[serde(default)]
    pub apart_ms: Option<u64>,
    /// Whether keys that were deleted leave something behind for good.
    #[serde(default)]
    pub has_tombstones: bool,
    /// Whether reads have places of their own in the order of writes.
    #[serde(default)]
    pub ordered_reads: bool,
    /// How many of a hundred of these may miss the last write before them.
    #[serde(default)]
    pub stale_percent: u64,
    /// How long a client waits between two operations.
    pub think: Distribution,
    /// How many of a million operations follow the one before at once.
    #[serde(default)]
    pub burst_ppm: u32,
    /// How many operations a client keeps in flight at most, drawn for each client.
    #[serde(default = "one")]
    pub pipeline: u64,
    /// The deadline of an operation in milliseconds.
    pub deadline_ms: u64,
    /// After how many milliseconds a client gives up and connects to another host.
    pub patience_ms: u64,
    /// How many clients of a million speak RESP; the others call the node directly.
    #[serde(default = "half")]
    pub resp_ppm: u32,
}

impl WorkloadSection {
    /// What contradicts itself, if anything does.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let checks = [
            (self.clients > 0, "clients must be above 0"),
            (self.keys > 0, "keys must be above 0"),
            (self.keys_min <= self.keys, "keys_min is above keys"),
            (self.get + self.put > 0, "clients must get or put"),
            (self.pipeline > 0, "pipeline must be above 0"),
            (self.items > 0, "items must be above 0"),
            (self.patience_ms >= self.deadline_ms, "patience must reach the deadline"),
        ];
        checks.iter().find(|(holds, _)| !holds).map(|(_, message)| *message)
    }
}

fn one() -> u64 {
    1
}

fn half() -> u32 {
    500_000
}
