//! The engine's state: what is stored, and what a restart may forget.

use super::Causal;
use super::coordinate::operations::Operations;
use super::coordinate::remembered::Remembered;
use super::handover::leave::Leaving;
use super::map::Map;
use super::replicate::dot_log::DotLog;
use super::replicate::replica::Replica;
use crate::dots::dot::Partition;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::keyspace::{Keyspace, Settlement, Tenure};
use quorate_kernel::time::Time;

/// What is stored.
#[derive(Debug, Default)]
pub(super) struct Durable {
    /// The newest map heard of.
    pub map: Option<Map>,
    /// The highest birth used.
    pub birth: u32,
    /// The replicas of partitions that this host holds.
    pub replicas: BTreeMap<Partition, Replica>,
    /// Replicas of partitions that another host holds now.
    pub leaving: Vec<Leaving>,
    /// The births of replicas that were given up and are not yet swept away.
    pub garbage: BTreeSet<u32>,
    /// The log of dots.
    pub dots: DotLog,
}

impl Durable {
    /// All replicas, also those that leave.
    pub fn with_leaving(&mut self) -> impl Iterator<Item = &mut Replica> {
        let leaving = self.leaving.iter_mut().map(|one| &mut one.replica);
        self.replicas.values_mut().chain(leaving)
    }
}

/// What a restart may forget.
#[derive(Debug, Default)]
pub(super) struct Volatile {
    /// What clients wait for.
    pub operations: Operations,
    /// When each node last answered an open question, and in which start.
    pub heard: BTreeMap<NodeId, (Time, Start)>,
    /// How forwarded writes ended here, to know a repeated one.
    pub remembered: Remembered,
    /// Whether what the start wrote is durable: until then a crash would bring back what was given
    /// up, so the host must not forget that the lane forgot.
    pub is_settled: bool,
    /// Whether every replica of this host has had, at some moment of this start, all that it had to
    /// hold then. Partitions that come later do not take it back: what they bring others have.
    pub has_refilled: bool,
    /// The catalog's record that was told last.
    pub record: Option<Arc<Keyspace>>,
    /// By a version of the catalog's record: who held a partition, and has not handed it over.
    pub former: Option<(u64, Vec<Tenure>)>,
    /// Behind which replica the round of exchanges goes on; none at its begin.
    pub sync_from: Option<Partition>,
    /// The birth of the replica being swept away, and the stored key up to which nothing is left.
    pub swept: Option<(u32, Bytes)>,
    /// What the catalog is to be told once it is so, of a partition that this host has or had since
    /// that decree; and when it was told last.
    pub owed: BTreeMap<(Partition, u64, Settlement), Option<Time>>,
    /// What is counted.
    pub counters: Counters,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Writes that left a key with more siblings than the threshold.
    pub siblings_over: u64,
    /// The most siblings any key had after a write.
    pub siblings_most: u64,
    /// Contexts of clients that were refused.
    pub contexts_refused: u64,
    /// Objects that anti-entropy brought.
    pub told: u64,
    /// Those of them that told something new.
    pub repaired: u64,
    /// Messages of actors that are gone for good, or of former ones, that were dropped.
    pub late: u64,
    /// Entries of dot-key maps that were looked at, to see whether they can be dropped.
    pub collect_looks: u64,
}

impl Causal {
    /// What must hold between two inputs.
    pub(super) fn check_state(&self) {
        for replica in self.durable.replicas.values() {
            replica.check();
            assert!(replica.actor().birth <= self.durable.birth, "births are counted");
        }
        for leaving in &self.durable.leaving {
            leaving.replica.check();
        }
        let Volatile { operations, remembered, .. } = &self.volatile;
        operations.check();
        assert!(remembered.under_way() <= operations.len(), "what is under way is an operation");
    }
}
