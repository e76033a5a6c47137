//! Which partition has what, and how that changes.
//!
//! Keys fall into [`BUCKETS`], and a bucket is of one partition. All partitions have the table of
//! them ([`Placement`]), and change it at the same place of the log of all, by a [`Switch`]: so for
//! each command all of its partitions agree on which placement it finds. A command that its client
//! addressed by another one does nothing, at any of its partitions, and is answered
//! [`super::Answered::Retry`].
//!
//! A switch is executed as a command of the partitions that have something before or after it. The
//! objects that it moves are in the signals of those that had them. A partition that has no bucket
//! is *idle*: it takes part in nothing, and passes over all. So partitions come, by a switch that
//! gives an idle one its first bucket, and go, by one that takes their last.

use super::command::Place;
use super::exchange::{Message, Signal};
use super::execution::Variables;
use super::head::Head;
use super::machine::Machine;
use super::partitions::{Holder, PARTITIONS_MAX, PartitionId, Partitions};
use super::replica::{Effect, Replica};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// How many buckets keys fall into.
pub const BUCKETS: u16 = 1024;

/// Keys that are always of one partition together: a number below [`BUCKETS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bucket(pub u16);

/// Which partition has each bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    version: u64,
    of: Vec<PartitionId>,
    /// Those that are in it.
    partitions: Partitions,
}

/// The next placement: these buckets are of these partitions then, the others where they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Its version: one more than that which it changes. If another one was first it does nothing.
    pub version: u64,
    /// What moves.
    pub buckets: BTreeMap<Bucket, PartitionId>,
}

impl Switch {
    /// Whether it may be put into the log of all, of a machine that has so many partitions.
    #[must_use]
    pub fn is_sound(&self, count: u8) -> bool {
        let is_sound = |(bucket, to): (&Bucket, &PartitionId)| bucket.0 < BUCKETS && to.0 < count;
        !self.buckets.is_empty() && self.buckets.iter().all(is_sound)
    }
}

impl Placement {
    /// The first one: partitions have the buckets in turn.
    #[must_use]
    pub fn even(count: u8) -> Placement {
        invariant!((1..=PARTITIONS_MAX).contains(&count), "1 to 16 partitions have something");
        let of = (0..BUCKETS).map(|at| PartitionId((at % u16::from(count)) as u8)).collect();
        Placement { version: 0, of, partitions: Partitions::all(count) }
    }

    /// How many switches there were.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The partition that has a bucket.
    #[must_use]
    pub fn of(&self, bucket: Bucket) -> PartitionId {
        self.of[usize::from(bucket.0 % BUCKETS)]
    }

    /// The partitions that have any.
    #[must_use]
    pub fn partitions(&self) -> Partitions {
        self.partitions
    }

    /// Which partitions hold an object.
    #[must_use]
    pub fn holder<M: Machine>(&self, key: &[u8]) -> Holder {
        M::bucket(key).map_or(Holder::All, |bucket| Holder::One(self.of(bucket)))
    }

    /// Whether this partition holds an object.
    pub(super) fn has<M: Machine>(&self, key: &[u8], partition: PartitionId) -> bool {
        match self.holder::<M>(key) {
            Holder::One(of) => of == partition,
            Holder::All => self.partitions().contains(partition),
        }
    }

    /// What it is after a switch; none if that is not the next one.
    #[must_use]
    pub fn switched(&self, switch: &Switch) -> Option<Placement> {
        if switch.version != self.version + 1 || !switch.is_sound(PARTITIONS_MAX) {
            return None;
        }
        let mut next = Placement { version: switch.version, ..self.clone() };
        for (bucket, to) in &switch.buckets {
            next.of[usize::from(bucket.0)] = *to;
        }
        next.partitions = next.of.iter().copied().collect();
        Some(next)
    }
}

/// A switch at the head: what was, and what will be.
struct Moves<'a> {
    old: &'a Placement,
    new: &'a Placement,
}

impl Moves<'_> {
    fn destinations(&self) -> Partitions {
        self.old.partitions().iter().chain(self.new.partitions().iter()).collect()
    }

    /// Whether a partition has something for the first time.
    fn is_new(&self, partition: PartitionId) -> bool {
        self.new.partitions().contains(partition) && !self.old.partitions().contains(partition)
    }

    /// Whether an object goes from one partition to another. What all have goes to those that had
    /// nothing, from the first of those that had.
    fn goes<M: Machine>(&self, key: &[u8], from: PartitionId, to: PartitionId) -> bool {
        match (self.old.holder::<M>(key), self.new.holder::<M>(key)) {
            (Holder::One(was), Holder::One(is)) => was == from && is == to && from != to,
            _ => self.old.partitions().iter().next() == Some(from) && self.is_new(to),
        }
    }
}

impl<M: Machine> Replica<M> {
    /// Which partition has what, as of the last command that was executed.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.state.placement
    }

    /// Executes a switch that is the first in line; whether it is done with.
    pub(super) fn switch(&mut self, place: Place, switch: &Switch) -> bool {
        let old = self.state.placement.clone();
        let Some(new) = old.switched(switch) else {
            // Another one was first.
            self.end(place);
            return true;
        };
        let moves = Moves { old: &old, new: &new };
        let destinations = moves.destinations();
        let others = destinations.without(self.here).count();
        if destinations.contains(self.here) && others > 0 {
            if self.head.is_none() && !self.begin_switch(place, &moves) {
                return false;
            }
            let Some(head) = self.head.take() else { return false };
            invariant!(head.place == place, "the head is the first in line");
            if self.lacks(&head).next().is_some() {
                self.head = Some(head);
                return false;
            }
            self.move_objects(place, &moves);
        }
        invariant!(self.head.is_none(), "it is executed");
        self.state.placement = new;
        self.caches.forget();
        self.end(place);
        true
    }

    /// A switch comes to the head: what leaves this partition is signalled with it.
    fn begin_switch(&mut self, place: Place, moves: &Moves<'_>) -> bool {
        if !self.state.outbox.has_room() {
            return false;
        }
        let (from, destinations) = (self.here, moves.destinations());
        let leaves = |key: &[u8]| destinations.iter().any(|to| moves.goes::<M>(key, from, to));
        let objects = self.state.objects.iter().filter(|(key, _)| leaves(key));
        let variables = objects.map(|(key, object)| (key.clone(), Some(object.clone()))).collect();
        let signal = Signal { place, from, takes_part: true, variables, versions: BTreeMap::new() };
        self.state.outbox.begin(from, destinations, signal.clone());
        if self.is_designated {
            for to in destinations.without(from) {
                let mut signal = signal.clone();
                signal.variables.retain(|key, _| moves.goes::<M>(key, from, to));
                self.ask_for(Effect::Send(to, Message::Signal(signal)));
            }
        }
        self.head = Some(Head::new(place, destinations));
        true
    }

    /// What leaves this partition is not here any more, and what comes is.
    fn move_objects(&mut self, place: Place, moves: &Moves<'_>) {
        let here = self.here;
        let signals = self.inbox.of(place);
        let comes = signals.flat_map(|signal| {
            let from = signal.from;
            signal.variables.iter().filter(move |(key, _)| moves.goes::<M>(key, from, here))
        });
        let comes = comes.map(|(key, object)| (key.clone(), object.clone()));
        let comes: Variables<M> = comes.collect();
        let leaves = self.state.objects.keys().filter(|key| !moves.new.has::<M>(key, here));
        let leaves: Vec<Bytes> = leaves.cloned().collect();
        for key in leaves {
            let object = self.state.objects.remove(&key);
            self.digest.replace::<M>(&key, object.as_ref(), None);
            self.changed.insert(key);
        }
        for (key, object) in comes {
            if mutant!("smr_moves_nothing") {
                break;
            }
            let Some(object) = object else { continue };
            self.digest.replace::<M>(&key, self.state.objects.get(&key), Some(&object));
            self.changed.insert(key.clone());
            self.state.objects.insert(key, object);
        }
    }
}
