//! What a partition has signalled, until no replica of the others can ask for it again.
//!
//! An object is sent as a command finds it. Later commands change it, and nothing brings the value
//! back: so it is kept here, by every replica of the partition, as any of them may be asked.

use super::command::Place;
use super::exchange::{Signal, bytes_of};
use super::machine::Machine;
use super::partitions::{Layout, PartitionId, Partitions};
use alloc::collections::BTreeMap;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// How many bytes are kept. A replica that has more begins no further command of several
/// partitions before others release some.
pub const OUTBOX_BYTES_MAX: usize = 64 << 20;

/// Signals of a partition, with those that they are for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Outbox<M: Machine> {
    sent: BTreeMap<Place, (Partitions, Signal<M>)>,
    bytes: usize,
}

/// Up to where each replica has released.
pub(super) type Released = BTreeMap<(PartitionId, NodeId), Place>;

impl<M: Machine> Default for Outbox<M> {
    fn default() -> Outbox<M> {
        Outbox { sent: BTreeMap::new(), bytes: 0 }
    }
}

impl<M: Machine> Outbox<M> {
    /// The partition has come to a command. What was sent of it before a restart stays.
    pub(super) fn begin(&mut self, destinations: Partitions, signal: Signal<M>) {
        if let Some((of, known)) = self.sent.get(&signal.place) {
            invariant!(*of == destinations, "a command has one set of partitions");
            invariant!(known.takes_part == signal.takes_part, "its fate follows from the order");
            return self.add(&signal);
        }
        self.bytes += bytes_of::<M>(&signal.variables);
        self.sent.insert(signal.place, (destinations, signal));
    }

    /// What was signalled of a command.
    pub(super) fn get(&self, place: Place) -> Option<&Signal<M>> {
        self.sent.get(&place).map(|(_, signal)| signal)
    }

    /// More objects of a command are sent.
    pub(super) fn add(&mut self, signal: &Signal<M>) {
        let Some((_, known)) = self.sent.get_mut(&signal.place) else { return };
        self.bytes -= bytes_of::<M>(&known.variables);
        known.variables.extend(signal.variables.clone());
        self.bytes += bytes_of::<M>(&known.variables);
    }

    /// A command was executed here, which is no reason to forget what others may ask for.
    pub(super) fn executed(&mut self, place: Place) {
        if mutant!("smr_outbox_dropped") {
            self.sent.remove(&place);
        }
    }

    /// Drops what all replicas of all other partitions of a command have released.
    pub(super) fn release(&mut self, here: PartitionId, layout: &Layout, released: &Released) {
        let mut gone = 0;
        self.sent.retain(|place, (destinations, signal)| {
            let mut others = destinations.without(here);
            let has = |of, node| released.get(&(of, node)).is_some_and(|up_to| up_to >= place);
            let stays = !others.all(|of| layout.members(of).all(|node| has(of, node)));
            gone += if stays { 0 } else { bytes_of::<M>(&signal.variables) };
            stays
        });
        self.bytes -= gone;
    }

    /// Whether there is room for another command.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < OUTBOX_BYTES_MAX
    }

    /// How many commands it keeps something of.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sent.len()
    }
}
