//! What a partition has signalled, until no replica of the others can ask for it again.
//!
//! An object is sent as a command finds it. Later commands change it, and nothing brings the value
//! back: so it is kept here, by every replica of the partition, as any of them may be asked.

use super::command::Place;
use super::exchange::{Signal, bytes_of_signal};
use super::machine::Machine;
use super::partitions::{Layout, PartitionId, Partitions, ReplicaId};
use alloc::collections::{BTreeMap, BTreeSet};
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// How many bytes are kept. A replica that has more begins no further command of several
/// partitions before others release some.
pub const OUTBOX_BYTES_MAX: usize = 64 << 20;

/// Signals of a partition, with those that they are for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Outbox<M: Machine> {
    sent: BTreeMap<Place, Sent<M>>,
    /// What each partition has not released yet: the same as in `sent`, by partition.
    owed: BTreeSet<(PartitionId, Place)>,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
struct Sent<M: Machine> {
    destinations: Partitions,
    /// Which of them may ask for it yet.
    owed: Partitions,
    signal: Signal<M>,
}

/// Up to where each replica of other partitions has released, each in the latest of its starts that
/// was heard of: what an earlier start had, a later one may have lost. It is stored with the
/// outbox, and the starts before that ([`super::Kept`]): what is still on its way of an earlier
/// start is not to count after a restart either.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Released(BTreeMap<(PartitionId, NodeId), (Start, Option<Place>)>);

impl Released {
    /// A replica is there, and has released this. Whether it is not of an earlier start.
    pub fn note(&mut self, replica: ReplicaId, place: Option<Place>) -> bool {
        let start = replica.incarnation.start;
        let key = (replica.partition, replica.incarnation.node);
        let known = self.0.entry(key).or_insert((start, None));
        if start > known.0 && !mutant!("smr_release_outlives_start") {
            *known = (start, None);
        }
        let is_current = start >= known.0;
        if is_current {
            known.1 = known.1.max(place);
        }
        is_current
    }

    /// In which start a replica was heard of last.
    pub fn start(&self, replica: ReplicaId) -> Option<Start> {
        let key = (replica.partition, replica.incarnation.node);
        self.0.get(&key).map(|(start, _)| *start)
    }

    /// What a replica has released.
    pub fn of(&self, replica: ReplicaId) -> Option<Place> {
        let key = (replica.partition, replica.incarnation.node);
        self.0.get(&key).and_then(|(_, place)| *place)
    }

    /// What all replicas of a partition have released; nothing if one of them has not.
    pub fn floor(&self, of: PartitionId, layout: &Layout) -> Option<Place> {
        let up_to = |node| self.0.get(&(of, node)).and_then(|(_, place)| *place);
        layout.members(of).map(up_to).min().unwrap_or(Some(Place::LAST))
    }

    /// Nothing is remembered of who has left.
    pub fn retain_members(&mut self, layout: &Layout) {
        self.0.retain(|(of, node), _| layout.members(*of).any(|member| member == *node));
    }
}

impl<M: Machine> Default for Outbox<M> {
    fn default() -> Outbox<M> {
        Outbox { sent: BTreeMap::new(), owed: BTreeSet::new(), bytes: 0 }
    }
}

impl<M: Machine> Outbox<M> {
    /// The partition has come to a command. What was sent of it before a restart stays.
    pub(super) fn begin(&mut self, here: PartitionId, destinations: Partitions, signal: Signal<M>) {
        if let Some(known) = self.sent.get(&signal.place) {
            invariant!(known.destinations == destinations, "a command has one set of partitions");
            let same = known.signal.takes_part == signal.takes_part;
            invariant!(same, "its fate follows from the order");
            return self.add(&signal);
        }
        let place = signal.place;
        self.bytes += bytes_of_signal(&signal);
        let owed: Partitions = destinations.without(here).collect();
        invariant!(!owed.is_empty(), "what is signalled is for others");
        self.owed.extend(owed.iter().map(|of| (of, place)));
        self.sent.insert(place, Sent { destinations, owed, signal });
    }

    /// What was signalled of a command.
    pub(super) fn get(&self, place: Place) -> Option<&Signal<M>> {
        self.sent.get(&place).map(|sent| &sent.signal)
    }

    /// More objects of a command are sent.
    pub(super) fn add(&mut self, signal: &Signal<M>) {
        let Some(Sent { signal: known, .. }) = self.sent.get_mut(&signal.place) else { return };
        self.bytes -= bytes_of_signal(known);
        known.variables.extend(signal.variables.clone());
        known.versions.extend(signal.versions.clone());
        self.bytes += bytes_of_signal(known);
    }

    /// A command was executed here, which is no reason to forget what others may ask for.
    pub(super) fn executed(&mut self, place: Place) {
        if mutant!("smr_outbox_dropped") {
            self.sent.remove(&place);
            self.owed.retain(|(_, it)| *it != place);
        }
    }

    /// All replicas of a partition have released this: what no other partition may ask for either
    /// is dropped. Looks at nothing else.
    pub(super) fn release(&mut self, of: PartitionId, floor: Place) {
        while let Some(&(_, place)) = self.owed.range((of, Place::FIRST)..=(of, floor)).next() {
            self.owed.remove(&(of, place));
            let sent = self.sent.get_mut(&place).expect("what is owed was sent");
            sent.owed = sent.owed.without(of).collect();
            if sent.owed.is_empty() {
                self.bytes -= bytes_of_signal(&sent.signal);
                self.sent.remove(&place);
            }
        }
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
