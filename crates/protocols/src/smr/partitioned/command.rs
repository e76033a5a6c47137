//! What a ring's log carries: commands, each with its client and its partitions.

use super::clients::OUTSTANDING_MAX;
use super::machine::Machine;
use super::partitions::{PartitionId, Partitions};
use super::placement::Switch;
use crate::multicast::{RingId, Slot};
use crate::smr::COMMANDS_MAX;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use serde::{Deserialize, Serialize};

/// What is in one decision, in the order in which it is executed.
pub type Batch<M> = Vec<Ordered<M>>;

/// What a ring orders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Ordered<M: Machine> {
    /// A client's command.
    Command(Addressed<M>),
    /// Objects move: only in the ring of all. Whether it was the one that did is seen by the
    /// placement that replicas have then.
    Switch(Switch),
}

impl<M: Machine> From<Addressed<M>> for Ordered<M> {
    fn from(command: Addressed<M>) -> Ordered<M> {
        Ordered::Command(command)
    }
}

impl<M: Machine> Ordered<M> {
    /// The partitions of a command; those of a switch depend on the placement that it finds.
    pub(super) fn destinations(&self) -> Option<Partitions> {
        match self {
            Ordered::Command(command) => Some(command.destinations),
            Ordered::Switch(_) => None,
        }
    }
}

/// Which command: of which client, and which of its own. A client counts its commands from 1, all
/// partitions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId {
    /// The client: a host in one of its starts. Later starts take the place of earlier ones.
    pub client: Incarnation,
    /// Its number.
    pub number: u64,
}

/// A command and its partitions. Sent again it is sent to the same ones; what the client says to
/// have may be more by then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Addressed<M: Machine> {
    /// Which one.
    pub id: CommandId,
    /// The client has the answers of all its commands up to here. Its number is at most
    /// [`OUTSTANDING_MAX`] above.
    pub acked: u64,
    /// The version of the placement by which it is addressed.
    pub version: u64,
    /// The partitions that execute it; one alone is in its partition's ring, and several are in the
    /// common one.
    pub destinations: Partitions,
    /// What is asked.
    pub command: M::Command,
}

/// The place of a command of several partitions in the ring of all: the same at all replicas, so it
/// names what they say to each other about that command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The slot of its decision.
    pub slot: Slot,
    /// Which command of the decision.
    pub index: u32,
}

impl Place {
    /// No command has a lower one.
    pub(super) const FIRST: Place = Place { slot: Slot(0), index: 0 };
    /// No command has a higher one.
    pub(super) const LAST: Place = Place { slot: Slot(u64::MAX), index: u32::MAX };
}

/// What a client is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Answered<M: Machine> {
    /// It was executed.
    Done(M::Output),
    /// It did nothing: an object of a partition was touched that it was not sent to. All of its
    /// partitions say so. A new command may go to more of them.
    Outside(PartitionId),
    /// It did nothing: objects that it may touch are elsewhere than it was sent to, as they have
    /// moved since, or have not yet. All of its partitions say so, each with the version of the
    /// placement that it has found. A new command may be addressed by that, or by a later one.
    Retry(u64),
}

/// Whether these commands may be put into the log of a ring.
#[must_use]
pub fn may_order<M: Machine>(ring: RingId, batch: &Batch<M>, count: u8) -> bool {
    let all = Partitions::all(count);
    let is_sound = |it: &Addressed<M>| {
        it.destinations.iter().all(|partition| all.contains(partition))
            && it.destinations.ring() == Some(ring)
            && it.acked < it.id.number
            && it.id.number - it.acked <= OUTSTANDING_MAX
            && M::is_sound(&it.command)
    };
    batch.len() <= COMMANDS_MAX
        && batch.iter().all(|it| match it {
            Ordered::Command(command) => is_sound(command),
            Ordered::Switch(switch) => ring == RingId::ALL && switch.is_sound(count),
        })
}
