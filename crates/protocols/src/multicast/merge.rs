//! The order of what several rings decide, as one replica makes it (Multi-Ring Paxos, §IV: the
//! deterministic merge, with one decision of a ring at a time).

use super::decision::{Decision, RingId, Slot};
use crate::vsr::Op;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// How far a replica is in one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Which ring.
    pub ring: RingId,
    /// The last position of its log; 0 is before the first.
    pub op: Op,
    /// The first slot that no position up to there takes or skips.
    pub next: Slot,
}

/// How far a replica has delivered: what is to be stored with the state that comes of it. From
/// there it is fed again after a restart.
pub type Cursor = Vec<Reached>;

/// Commands whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered<T> {
    /// Of which ring they are.
    pub ring: RingId,
    /// Their place in it, the same at all replicas.
    pub slot: Slot,
    /// What was decided.
    pub commands: T,
}

/// What holds back others: a ring that has to decide more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Which ring.
    pub ring: RingId,
    /// The first slot that it may leave open: it has to fill or to skip all below.
    pub until: Slot,
}

/// The rings that a replica learns, and what of them waits for its turn.
#[derive(Clone, Debug)]
pub struct Merge<T> {
    /// Ascending, so that the first of those with equal slots is the one whose turn it is.
    rings: Vec<Learned<T>>,
}

#[derive(Clone, Debug)]
struct Learned<T> {
    reached: Reached,
    waiting: VecDeque<Waiting<T>>,
}

#[derive(Clone, Debug)]
struct Waiting<T> {
    /// Where the ring was before it.
    before: Reached,
    commands: T,
}

impl<T> Merge<T> {
    /// Nothing is learned yet of these rings.
    #[must_use]
    pub fn new(rings: impl IntoIterator<Item = RingId>) -> Merge<T> {
        let start = |ring| Reached { ring, op: Op(0), next: Slot(0) };
        Merge::resume(rings.into_iter().map(start).collect())
    }

    /// Goes on behind a cursor.
    #[must_use]
    pub fn resume(mut cursor: Cursor) -> Merge<T> {
        cursor.sort_by_key(|reached| reached.ring);
        let differ = cursor.windows(2).all(|two| two[0].ring != two[1].ring);
        invariant!(!cursor.is_empty() && differ, "a replica learns one ring at least, each once");
        let learned = |reached| Learned { reached, waiting: VecDeque::new() };
        Merge { rings: cursor.into_iter().map(learned).collect() }
    }

    /// A position of a ring's log is decided. Takes the one behind the last that it has, and none
    /// that it has already, that comes too early, or that is of a ring which it does not learn.
    pub fn learn(&mut self, ring: RingId, op: Op, decision: Decision<T>) -> bool {
        let learned = self.rings.iter_mut().find(|it| it.reached.ring == ring);
        let Some(learned) = learned.filter(|it| it.reached.op.next() == op) else { return false };
        let before = learned.reached;
        let slots = decision.slots();
        let next = before.next.0.checked_add(slots).expect("slots do not come to an end");
        invariant!(slots > 0, "each decision takes a slot");
        learned.reached = Reached { ring, op, next: Slot(next) };
        if let Decision::Commands(commands) = decision {
            learned.waiting.push_back(Waiting { before, commands });
        }
        true
    }

    /// The next commands in the order, once it is certain that none come before them.
    pub fn deliver(&mut self) -> Option<Delivered<T>> {
        let first = self.first();
        if mutant!("multicast_goes_around_an_idle_ring") && self.rings[first].waiting.is_empty() {
            let other = self.rings.iter_mut().find(|it| !it.waiting.is_empty())?;
            return other.take();
        }
        let slot = self.rings[first].slot();
        invariant!(self.rings.iter().all(|it| it.slot() >= slot), "nothing comes before the first");
        self.rings[first].take()
    }

    /// How far it has delivered.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let delivered = |it: &Learned<T>| {
            let reached = it.waiting.front().map_or(it.reached, |waiting| waiting.before);
            if mutant!("multicast_forgets_skips") {
                return Reached { next: Slot(reached.op.0), ..reached };
            }
            reached
        };
        self.rings.iter().map(delivered).collect()
    }

    /// What waits of a ring, in its order, with the slots of it.
    pub fn waiting(&self, ring: RingId) -> impl Iterator<Item = (Slot, &T)> {
        let of = self.rings.iter().filter(move |it| it.reached.ring == ring);
        of.flat_map(|it| &it.waiting).map(|it| (it.before.next, &it.commands))
    }

    /// How far it has learned each ring, ascending.
    pub(super) fn all_reached(&self) -> impl Iterator<Item = Reached> {
        self.rings.iter().map(|it| it.reached)
    }

    /// Whether all that the rings decide before a slot is delivered.
    #[must_use]
    pub fn has_delivered(&self, until: Slot) -> bool {
        self.rings.iter().all(|it| it.slot() >= until)
    }

    /// The slot and the ring of what is delivered next; all before that is.
    #[cfg(test)]
    pub(crate) fn position(&self) -> (Slot, RingId) {
        let first = &self.rings[self.first()];
        (first.slot(), first.reached.ring)
    }

    /// How far it has learned a ring.
    #[must_use]
    pub fn reached(&self, ring: RingId) -> Option<Reached> {
        self.all_reached().find(|reached| reached.ring == ring)
    }

    /// What the rings lack so that all commands that wait here are delivered.
    pub fn lacking(&self) -> impl Iterator<Item = Lacking> {
        self.rings.iter().filter_map(|of| {
            let others = self.rings.iter().filter(|it| it.reached.ring != of.reached.ring);
            let until = others.filter_map(|it| {
                let last = it.waiting.back()?.before.next;
                // At the same slot the lower ring comes first.
                let is_before = of.reached.ring < it.reached.ring;
                Some(Slot(last.0 + u64::from(is_before)))
            });
            let until = until.max()?;
            (until > of.reached.next).then_some(Lacking { ring: of.reached.ring, until })
        })
    }

    /// The ring whose turn it is: that of the lowest slot, and of the lowest number there.
    fn first(&self) -> usize {
        let places = self.rings.iter().enumerate();
        places.min_by_key(|(_, it)| it.slot()).map_or(0, |(at, _)| at)
    }
}

impl<T> Learned<T> {
    /// The slot of its first commands that wait; or the one of which nothing is known.
    fn slot(&self) -> Slot {
        self.waiting.front().map_or(self.reached.next, |waiting| waiting.before.next)
    }

    fn take(&mut self) -> Option<Delivered<T>> {
        let Waiting { before, commands } = self.waiting.pop_front()?;
        Some(Delivered { ring: before.ring, slot: before.next, commands })
    }
}
