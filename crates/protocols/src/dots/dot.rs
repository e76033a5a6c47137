//! Dots: the name of every update, an actor and a counter.
//!
//! An **actor** is what the paper calls a node: one partition's replica, from the moment it began
//! with an empty clock to the loss of its data. Its id is never used again, so no counter can be
//! issued twice.

use core::fmt;
use quorate_kernel::ids::NodeId;
use serde::{Deserialize, Serialize};

/// The counter of a dot; the first is 1.
pub type Counter = u64;

/// No honest node counts this far; a higher counter in a message is refused.
pub const COUNTER_MAX: Counter = 1 << 62;

/// Says of an actor that is closed: all its updates, and those of every earlier actor of its
/// partition. Nobody counts this far.
pub const ALL: Counter = COUNTER_MAX;

/// One of the keyspace's fixed partitions.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Partition(pub u16);

/// Who issues dots. Of two actors at one partition the greater is the later one: `since` is the
/// version of the map that gave the partition to the host, and `birth` rises with each replica
/// that a host begins empty.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Actor {
    /// Where it is a replica.
    pub partition: Partition,
    /// Since which version of the map its host has the partition.
    pub since: u64,
    /// Which of its host's replicas it is; its host counts durably.
    pub birth: u32,
    /// Its host.
    pub node: NodeId,
}

/// An update.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Dot {
    /// Who issued it.
    pub actor: Actor,
    /// Its number among the updates of that actor.
    pub counter: Counter,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:x}.{}", self.partition.0, self.node.0, self.birth)
    }
}

impl fmt::Display for Dot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.actor, self.counter)
    }
}
