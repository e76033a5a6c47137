//! One replica of one partition: what it is told, and what it asks for.

use super::caches::{Cached, Caches, Caching};
use super::command::{Answered, Batch, CommandId, Ordered, Place};
use super::digest::{Differs, Digest};
use super::exchange::{Inbox, Message, Signal};
use super::execution::Variables;
use super::head::Head;
use super::machine::Machine;
use super::partitions::{Layout, PartitionId, Partitions, ReplicaId};
use super::peers::Asks;
use super::state::{Kept, Queued, Snapshot, State};
use crate::multicast::{Decision, Lacking, Merge, Reached, RingId, Slot};
use crate::smr::sized::length;
use crate::vsr::Op;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;
use quorate_kernel::{invariant, mutant};

/// What a replica asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect<M: Machine> {
    /// A message to all replicas of a partition; the one that sends it may leave itself out.
    Send(PartitionId, Message<M>),
    /// A message to one replica of another partition, in the start in which it has asked.
    Tell(ReplicaId, Message<M>),
    /// A client's command is answered. Each replica of each partition of the command says so; the
    /// client needs to hear it once.
    Answer(CommandId, Answered<M>),
    /// It is stored, and handed to [`Replica::resume`], until a snapshot of later is. No
    /// [`Message::Released`] leaves before all that was to be kept before it is durable.
    Keep(Vec<Kept<M>>),
    /// What the command of this place needs nobody keeps any more. The replica goes on from a
    /// [`Replica::copy`] of another one of its partition that has passed the place; there is one.
    /// Said again until then.
    Lost(Place),
    /// Replicas of this partition differ: the machine is not deterministic, or what one of them has
    /// is damaged. The host stops this replica and says so loudly; it does nothing any more, and no
    /// answer leaves it. Somebody has to find out which one is right.
    Halt(Differs),
}

/// How many bytes of commands of a ring may wait for their turn, or behind a command that waits, if
/// they are not one decision that has more.
pub const WAITING_BYTES_MAX: usize = 32 << 20;

/// Commands of a decision, and how many bytes of its ring they are.
#[derive(Clone, Debug)]
pub(super) struct Waits<M: Machine> {
    bytes: usize,
    batch: Batch<M>,
}

/// A replica of a partition.
#[derive(Clone, Debug)]
pub struct Replica<M: Machine> {
    pub(super) here: PartitionId,
    pub(super) own: ReplicaId,
    pub(super) layout: Layout,
    pub(super) merge: Merge<Waits<M>>,
    /// How many bytes of each ring wait in it.
    waiting: BTreeMap<RingId, usize>,
    /// What is left of the last decision that was delivered; the first is at the head.
    rest: VecDeque<Queued<M>>,
    /// How far the first one is, if it is begun and is of several partitions.
    pub(super) head: Option<Head<M>>,
    pub(super) state: State<M>,
    pub(super) inbox: Inbox<M>,
    pub(super) asks: Asks,
    /// The last command that an earlier start may have released: up to there it goes on with what
    /// was kept for it alone.
    kept: Option<Place>,
    pub(super) digest: Digest,
    pub(super) caches: Caches<M>,
    /// Objects that are others than when this was last asked for.
    pub(super) changed: BTreeSet<Bytes>,
    /// It differs from another replica, and does nothing any more.
    is_halted: bool,
    /// Whether it sends what the partition has to signal.
    pub(super) is_designated: bool,
    effects: Vec<Effect<M>>,
}

impl<M: Machine> Replica<M> {
    /// Goes on behind a snapshot, with what was kept since. Nothing is begun before
    /// something is learned.
    #[must_use]
    pub fn resume(
        own: ReplicaId,
        layout: Layout,
        snapshot: Snapshot<M>,
        kept: impl IntoIterator<Item = Kept<M>>,
    ) -> Replica<M> {
        let here = own.partition;
        invariant!(here.0 < layout.count(), "its partition is there");
        let digest = Digest::of::<M>(&snapshot.state.objects);
        let mut replica = Replica {
            here,
            own,
            layout,
            merge: Merge::resume(snapshot.cursor),
            waiting: BTreeMap::new(),
            rest: snapshot.rest,
            head: None,
            state: snapshot.state,
            inbox: Inbox::new(),
            asks: Asks::default(),
            kept: None,
            digest,
            caches: Caches::new(Caching::default()),
            changed: BTreeSet::new(),
            is_halted: false,
            is_designated: false,
            effects: Vec::new(),
        };
        for kept in kept {
            match kept {
                Kept::Signal(signal) if Some(signal.place) > replica.state.passed => {
                    replica.kept = replica.kept.max(Some(signal.place));
                    replica.inbox.insert(signal, true);
                }
                Kept::Signal(_) => {}
                Kept::Start(of) => _ = replica.state.released.note(of, None),
            }
        }
        replica
    }

    /// A position of a ring's log is decided. Whether it is taken: it is the next one of that ring,
    /// and there is room for it.
    pub fn learn(&mut self, ring: RingId, op: Op, decision: Decision<Batch<M>>) -> bool {
        if self.is_halted || !self.has_room(ring) {
            return false;
        }
        if mutant!("smr_signal_when_queued") {
            self.signal_queued(ring, &decision);
        }
        let mut bytes = 0;
        let decision = decision.map(|batch| {
            bytes = length(&batch);
            Waits { bytes, batch }
        });
        let is_taken = self.merge.learn(ring, op, decision);
        if is_taken {
            *self.waiting.entry(ring).or_default() += bytes;
        }
        self.advance();
        is_taken
    }

    /// Whether a position of a ring's log may be learned now. One that has no room is not the one
    /// for which others wait, so nothing is stuck for that; it is fed again later.
    #[must_use]
    pub fn has_room(&self, ring: RingId) -> bool {
        self.waiting.get(&ring).is_none_or(|bytes| *bytes < WAITING_BYTES_MAX)
    }

    /// What coordinators of rings are to be asked when skips are by demand: now, and from time to
    /// time.
    pub fn questions(&self) -> impl Iterator<Item = Lacking> {
        self.merge.questions()
    }

    /// Whether this replica sends what its partition signals. Any number of them may: what comes
    /// twice is the same. One that begins sends what the command at the head has to send.
    pub fn designate(&mut self, is_designated: bool) {
        let begins = is_designated && !self.is_designated;
        self.is_designated = is_designated;
        let head =
            self.head.as_ref().filter(|_| begins).map(|head| (head.place, head.destinations));
        if let Some((place, destinations)) = head
            && let Some(signal) = self.state.outbox.get(place).cloned()
        {
            self.send(destinations, signal);
        }
    }

    /// How it uses copies of objects of other partitions; what it has of them is dropped.
    pub fn set_caching(&mut self, caching: Caching) {
        self.caches = Caches::new(caching);
    }

    /// What it has had of its copies.
    #[must_use]
    pub fn cached(&self) -> Cached {
        self.caches.cached
    }

    /// The replicas of partitions are others now, and there may be more partitions, which are idle
    /// at first. Who has left holds nothing up any more. Who comes
    /// goes on from a snapshot of another replica that was made after all heard of it.
    pub fn set_layout(&mut self, layout: Layout) {
        invariant!(
            layout.count() >= self.layout.count(),
            "who is idle stays, until nobody is left"
        );
        self.layout = layout;
        // Who comes may have what those who were asked had not.
        self.asks = Asks::default();
        self.state.released.retain_members(&self.layout);
        for of in (0..self.layout.count()).map(PartitionId) {
            self.release(of);
        }
        self.advance();
    }

    /// Another replica of the partition has another state: nothing that this one asks for is worth
    /// anything.
    pub(super) fn halt(&mut self, differs: Differs) {
        invariant!(differs.own.executed == differs.other.executed, "they are of one moment");
        invariant!(differs.own.hash != differs.other.hash, "who differs is not alike");
        self.is_halted = true;
        self.effects.clear();
        self.effects.push(Effect::Halt(differs));
    }

    /// Whether it does nothing any more.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// What it has asked for since this was last called, in this order.
    pub fn take_effects(&mut self) -> Vec<Effect<M>> {
        if self.is_halted {
            self.effects.retain(|effect| matches!(effect, Effect::Halt(_)));
        }
        mem::take(&mut self.effects)
    }

    /// What another replica of the partition may go on from: that what it lacks is kept for it
    /// somewhere. None after a restart, before this replica has come to what it had before.
    #[must_use]
    pub fn copy(&self) -> Option<Snapshot<M>> {
        let is_behind = self.is_halted
            || self.state.passed < self.kept && !mutant!("smr_copies_what_is_released");
        (!is_behind).then(|| self.snapshot())
    }

    /// What is to be stored.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<M> {
        let (cursor, rest) = (self.merge.cursor(), self.rest.clone());
        Snapshot { cursor, rest, state: self.state.clone() }
    }

    /// What is to be stored beside the objects: a snapshot without them.
    #[must_use]
    pub fn snapshot_without_objects(&self) -> Snapshot<M> {
        let (cursor, rest) = (self.merge.cursor(), self.rest.clone());
        Snapshot { cursor, rest, state: self.state.without_objects() }
    }

    /// The keys of objects that were put, replaced or removed since this was last called, or since
    /// it began: with those and [`Replica::snapshot_without_objects`] what is stored is up to date.
    pub fn take_changed(&mut self) -> BTreeSet<Bytes> {
        mem::take(&mut self.changed)
    }

    /// How far it has learned a ring: the next position that it takes is behind that. None of a
    /// ring that it does not learn.
    #[must_use]
    pub fn reached(&self, ring: RingId) -> Option<Reached> {
        self.merge.reached(ring)
    }

    /// Whether nothing of the last decision that was delivered is left.
    pub(super) fn rest_is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether all that its rings decide before a slot is delivered.
    pub(super) fn has_delivered(&self, until: Slot) -> bool {
        self.merge.has_delivered(until)
    }

    /// The slot and the ring of what it executes next.
    #[cfg(test)]
    pub(crate) fn position(&self) -> (Slot, RingId) {
        self.merge.position()
    }

    /// The last command of several partitions that it has executed, or that was for others.
    #[must_use]
    pub fn passed(&self) -> Option<Place> {
        self.state.passed
    }

    /// The objects of its partition as of the last command that was executed.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<Bytes, M::Object> {
        &self.state.objects
    }

    /// Whether it has executed all that it has learned.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.rest.is_empty() && self.waiting.values().all(|bytes| *bytes == 0)
    }

    /// Of how many commands it keeps what others may ask for.
    #[must_use]
    pub fn outbox_count(&self) -> usize {
        self.state.outbox.count()
    }

    /// Executes commands as long as none has to wait.
    pub(super) fn advance(&mut self) {
        while !self.is_halted {
            while let Some((place, command)) = self.rest.pop_front() {
                if self.is_halted || !self.execute(place, &command) {
                    self.rest.push_front((place, command));
                    return;
                }
            }
            let Some(delivered) = self.merge.deliver() else { return };
            let Waits { bytes, batch } = delivered.commands;
            let waiting = self.waiting.entry(delivered.ring).or_default();
            invariant!(*waiting >= bytes, "what is delivered was learned");
            *waiting -= bytes;
            let is_all = delivered.ring == RingId::ALL;
            let places = places(delivered.slot, batch);
            self.rest = places.map(|(place, it)| (is_all.then_some(place), it)).collect();
        }
    }

    /// The place of the first in line, if it is of several partitions.
    pub(super) fn first(&self) -> Option<Place> {
        self.rest.front().and_then(|(place, _)| *place)
    }

    /// Commands of several partitions that are learned and not executed, in their order; those
    /// behind the last that is delivered are not for this partition alone.
    pub(super) fn queued(&self) -> impl Iterator<Item = (Place, Partitions)> {
        let of = |(place, it): &Queued<M>| Some(((*place)?, it.destinations()?));
        let rest = self.rest.iter().filter_map(of);
        let waiting = self.merge.waiting(RingId::ALL).flat_map(|(slot, waits)| {
            let place = move |index| Place { slot, index };
            let batch = (0..).zip(&waits.batch);
            batch.filter_map(move |(index, it)| Some((place(index), it.destinations()?)))
        });
        rest.chain(waiting).filter(|(_, destinations)| destinations.contains(self.here))
    }

    /// Sends a signal to the other partitions of a command, if it is for this replica to do; to
    /// each without the objects of which it has a copy that is up to date.
    pub(super) fn send_unknown(&mut self, destinations: Partitions, signal: Signal<M>) {
        if self.is_designated {
            for to in destinations.without(self.here) {
                let mut signal = signal.clone();
                let versions = &signal.versions;
                signal.variables.retain(|key, _| {
                    let version = versions.get(key);
                    !version.is_some_and(|it| self.caches.who_has(key, *it).contains(to))
                });
                self.effects.push(Effect::Send(to, Message::Signal(signal)));
            }
        }
        for (key, version) in signal.versions {
            self.caches.share(&key, version, destinations);
        }
    }

    /// Sends a signal to the other partitions of a command, if it is for this replica to do.
    pub(super) fn send(&mut self, destinations: Partitions, signal: Signal<M>) {
        if self.is_designated {
            let others = destinations.without(self.here);
            let sends = others.map(|to| Effect::Send(to, Message::Signal(signal.clone())));
            self.effects.extend(sends);
        }
    }

    pub(super) fn ask_for(&mut self, effect: Effect<M>) {
        self.effects.push(effect);
    }

    /// Only a planted bug signals commands that are not at the head.
    fn signal_queued(&mut self, ring: RingId, decision: &Decision<Batch<M>>) {
        let Some(reached) = self.merge.reached(ring) else { return };
        let Decision::Commands(batch) = decision else { return };
        for (place, ordered) in places(reached.next, batch.clone()) {
            let Ordered::Command(command) = ordered else { continue };
            let (from, takes_part, variables) = (self.here, true, Variables::<M>::new());
            if command.destinations.contains(from) {
                let versions = BTreeMap::new();
                let signal = Signal { place, from, takes_part, variables, versions };
                self.send(command.destinations, signal);
            }
        }
    }
}

/// The commands of a decision, with their places.
fn places<M: Machine>(slot: Slot, batch: Batch<M>) -> impl Iterator<Item = (Place, Ordered<M>)> {
    let place = move |index| Place { slot, index };
    (0..).zip(batch).map(move |(index, it)| (place(index), it))
}
