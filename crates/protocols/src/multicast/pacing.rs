//! When the coordinator of a ring decides skips (Multi-Ring Paxos, §IV).

use super::decision::{Decision, RingId, SKIP_MAX, Slot};
use super::merge::{Lacking, Merge, Reached};
use quorate_kernel::{invariant, mutant};

/// How far the ring of all partitions is kept ahead of the others when skips are by demand, in
/// slots. Half of it is what they decide while a question for more is on its way.
pub const AHEAD: u64 = 1 << 16;

/// How skips are paced. All coordinators of all rings are set the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// By time: each ring has as many slots as a rate fills.
    Time {
        /// When the slots begin, in milliseconds since 1970.
        origin_ms: u64,
        /// The paper's λ: more than what any ring ever decides a second.
        slots_per_s: u64,
    },
    /// By demand: what replicas say that they wait for.
    Demand,
}

/// What the coordinator of a ring knows of its slots. Each number that it answers is a skip to be
/// proposed at once, before anything else; one above [`SKIP_MAX`] never comes. It counts only what
/// the log has taken: a proposal that is refused leaves its slots open, and they are asked for
/// again.
#[derive(Clone, Debug)]
pub struct Pacer {
    ring: RingId,
    pace: Pace,
    /// The first slot that is neither decided nor proposed.
    next: Slot,
}

impl Pacer {
    /// The ring's coordinator begins. `next` is the first slot behind all that its log has, with
    /// what is not decided yet and will be.
    #[must_use]
    pub fn new(ring: RingId, pace: Pace, next: Slot) -> Pacer {
        Pacer { ring, pace, next }
    }

    /// It is coordinator again. What it proposed before may be lost, and others have proposed
    /// meanwhile: all that counts is what the log has.
    pub fn takes_over(&mut self, next: Slot) {
        if mutant!("multicast_skip_not_recomputed") {
            return;
        }
        self.next = next;
    }

    /// The log has taken a proposal of this coordinator, skips and entries of the log itself
    /// included. Behind commands a skip is answered that the others should not have to ask for.
    #[must_use]
    pub fn on_taken<T>(&mut self, decision: &Decision<T>) -> Option<u64> {
        invariant!(decision.is_sound(), "a log takes what takes slots");
        let was = self.next;
        self.next.0 = was.0.checked_add(decision.slots()).expect("slots do not come to an end");
        invariant!(self.next > was, "slots that were proposed are not proposed again");
        let is_busy = matches!(decision, Decision::Commands(_));
        let keeps_ahead = self.ring == RingId::ALL && self.pace == Pace::Demand;
        (is_busy && keeps_ahead).then_some(AHEAD)
    }

    /// A replica asks for slots. It may ask late, often, and of an earlier coordinator. By time a
    /// ring answers if it is more than a second behind, as one that is new or was down for long:
    /// period by period it would come too late. And it answers for slots that are not due yet: the
    /// clock of another coordinator is or was ahead, and its ring with it, so that what waits there
    /// would wait for as long.
    #[must_use]
    pub fn on_lacking(&self, until: Slot, now_ms: u64) -> Option<u64> {
        let lacks = until.0.saturating_sub(self.next.0);
        let is_answered = match self.pace {
            Pace::Demand => true,
            Pace::Time { slots_per_s, .. } => {
                let is_far = lacks > slots_per_s && !mutant!("multicast_far_behind_by_time");
                let is_early = until > self.due(now_ms);
                is_far || is_early
            }
        };
        skip(lacks).filter(|_| is_answered)
    }

    /// A period Δ has passed. A clock that is wrong costs time, never the order; a coordinator that
    /// comes late catches up by a second's slots a period.
    #[must_use]
    pub fn on_period(&self, now_ms: u64) -> Option<u64> {
        let Pace::Time { slots_per_s, .. } = self.pace else { return None };
        skip(self.due(now_ms).0.saturating_sub(self.next.0).min(slots_per_s))
    }

    /// The first slot that is not due yet by a clock.
    fn due(&self, now_ms: u64) -> Slot {
        let Pace::Time { origin_ms, slots_per_s } = self.pace else { return Slot(0) };
        let passed_ms = u128::from(now_ms.saturating_sub(origin_ms));
        let due = passed_ms * u128::from(slots_per_s) / 1000;
        Slot(u64::try_from(due).unwrap_or(u64::MAX))
    }
}

/// A skip of so many slots, if it is one.
fn skip(count: u64) -> Option<u64> {
    (count > 0).then_some(count.min(SKIP_MAX))
}

impl<T> Merge<T> {
    /// What a replica asks the coordinators of rings when skips are by demand: now, and again from
    /// time to time while it is true. By time it asks for what it lacks alone ([`Merge::lacking`]).
    pub fn questions(&self) -> impl Iterator<Item = Lacking> {
        let ahead = self.reached(RingId::ALL).and_then(|all| self.lacks_room(all));
        let is_all = |lacking: &Lacking| lacking.ring == RingId::ALL;
        let others = self.lacking().filter(move |it| ahead.is_none() || !is_all(it));
        others.chain(ahead)
    }

    /// What the ring of all partitions lacks to be far ahead of the replica's own.
    fn lacks_room(&self, all: Reached) -> Option<Lacking> {
        let own = self.all_reached().filter(|it| it.ring != RingId::ALL);
        let furthest = own.map(|it| it.next).max()?;
        let is_near = all.next.0 < furthest.0.saturating_add(AHEAD / 2);
        let until = Slot(furthest.0.saturating_add(AHEAD));
        is_near.then_some(Lacking { ring: RingId::ALL, until })
    }
}
