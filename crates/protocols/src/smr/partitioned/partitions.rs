//! Partitions, sets of them, and who replicates each.

use crate::multicast::RingId;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use serde::{Deserialize, Serialize};

/// The most partitions of a machine.
pub const PARTITIONS_MAX: u8 = 16;

/// A partition of a machine, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId(pub u8);

impl PartitionId {
    /// The ring that orders the commands of this partition alone.
    #[must_use]
    pub fn ring(self) -> RingId {
        RingId(u32::from(self.0))
    }
}

/// A replica in one of its starts. What it says of itself holds for that start: a later one may
/// have lost what this one stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReplicaId {
    /// Whose replica it is.
    pub partition: PartitionId,
    /// Which node, and which of its starts.
    pub incarnation: Incarnation,
}

/// A set of partitions: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Partitions(u16);

impl Partitions {
    /// All of a machine that has so many.
    #[must_use]
    pub fn all(count: u8) -> Partitions {
        (0..count).map(PartitionId).collect()
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn contains(self, partition: PartitionId) -> bool {
        partition.0 < PARTITIONS_MAX && self.0 >> partition.0 & 1 == 1
    }

    /// All of them, ascending.
    pub fn iter(self) -> impl Iterator<Item = PartitionId> {
        (0..PARTITIONS_MAX).map(PartitionId).filter(move |it| self.contains(*it))
    }

    /// The others.
    pub fn without(self, partition: PartitionId) -> impl Iterator<Item = PartitionId> {
        self.iter().filter(move |it| *it != partition)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many they are.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Which ring orders a command of these: that of the one, or the common one of several. A
    /// command of none goes nowhere.
    #[must_use]
    pub fn ring(self) -> Option<RingId> {
        match self.count() {
            0 => None,
            1 => self.iter().next().map(PartitionId::ring),
            _ => Some(RingId::ALL),
        }
    }
}

impl FromIterator<PartitionId> for Partitions {
    fn from_iter<I: IntoIterator<Item = PartitionId>>(partitions: I) -> Partitions {
        Partitions(partitions.into_iter().fold(0, |bits, it| {
            invariant!(it.0 < PARTITIONS_MAX, "a machine has so many partitions at most");
            bits | 1 << it.0
        }))
    }
}

/// Which partitions hold an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// One alone: the others get it for each command that reads it.
    One(PartitionId),
    /// All of them: it is read without being sent, and only commands of all partitions write it.
    All,
}

impl Holder {
    /// Whether this partition is one of them.
    #[must_use]
    pub fn has(self, partition: PartitionId) -> bool {
        self == Holder::All || self == Holder::One(partition)
    }
}

/// Which nodes replicate each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout(Vec<BTreeSet<NodeId>>);

impl Layout {
    /// These members, in the order of partitions: each has one at least.
    #[must_use]
    pub fn new(members: Vec<BTreeSet<NodeId>>) -> Layout {
        invariant!(
            (1..=usize::from(PARTITIONS_MAX)).contains(&members.len()),
            "1 to 16 partitions"
        );
        invariant!(members.iter().all(|it| !it.is_empty()), "somebody replicates each");
        Layout(members)
    }

    /// How many partitions there are.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.0.len() as u8
    }

    /// Who replicates a partition; nobody one that is not there.
    pub fn members(&self, partition: PartitionId) -> impl Iterator<Item = NodeId> {
        self.0.get(usize::from(partition.0)).into_iter().flatten().copied()
    }
}
