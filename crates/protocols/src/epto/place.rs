//! Whether a node has a place in the order: how it is lost, and how it is found again.

use super::action::{Action, Horizon, ResumeError};
use super::key::LogicalTime;
use super::node::Epto;
use super::sources::Sources;
use alloc::vec::Vec;
use quorate_kernel::{invariant, mutant, probe};

/// For how many rounds more than a TTL a node listens before it takes over a state.
const LISTEN_ROUNDS: u64 = 2;

/// Whether this node knows what to deliver next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Held,
    /// It has listened since that round.
    Lost(u64),
}

impl Epto {
    /// Whether it delivers.
    #[must_use]
    pub fn has_place(&self) -> bool {
        self.place == Place::Held
    }

    /// Whether it has listened for long enough to take over a state.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        if mutant!("epto_joins_at_once") && !self.has_place() {
            return true;
        }
        // Whoever gives the state may wait that long with what is stable, for payloads or behind
        // events that live longer: what comes behind it was on its way by then.
        let held = if mutant!("epto_newcomer_in_haste") { 0 } else { self.parameters.hold_rounds };
        let ttl = self.parameters.ttl.max(self.ttl_heard);
        let listened = u64::from(ttl) + u64::from(held) + LISTEN_ROUNDS;
        matches!(self.place, Place::Lost(since) if self.round - since >= listened)
    }

    /// A state is taken over, as far as that goes: from now on what comes after it is delivered.
    /// `horizon` is that of whoever has sent the state; of several the one with the highest `last`.
    ///
    /// # Errors
    /// The state may not be taken over: nothing was changed, but that a node without a clock may
    /// have got that of the state.
    pub fn resume_at(&mut self, horizon: &Horizon) -> Result<(), ResumeError> {
        if !self.may_resume() {
            return Err(ResumeError::Early);
        }
        if self.is_deaf {
            // Balls came that it could not judge. Now it can, and listens anew.
            self.clock.reach(horizon.clock);
            self.begin_to_hear();
            return Err(ResumeError::Early);
        }
        if self.order.forgotten() > horizon.last.max(self.order.last()) {
            return Err(ResumeError::Old);
        }
        let reached = horizon.clock.max(horizon.last.map_or(LogicalTime(0), |key| key.time));
        if !self.clock.believes(reached) {
            return Err(ResumeError::Far);
        }
        probe!("epto/resumed");
        let dropped = self.order.resume(horizon.last);
        self.forget(dropped);
        self.clock.reach(reached);
        self.sources = Sources::resume(&horizon.sources, horizon.is_complete);
        self.place = Place::Held;
        invariant!(self.order.last() >= horizon.last, "what the state has is not delivered again");
        Ok(())
    }

    /// How far this node has delivered: what it tells with a copy of its state. None if it has no
    /// place itself.
    #[must_use]
    pub fn horizon(&self) -> Option<Horizon> {
        let (sources, is_complete) = self.sources.told();
        let (last, clock) = (self.order.last(), self.clock.now());
        self.has_place().then_some(Horizon { last, clock, sources, is_complete })
    }

    /// A ball comes, or may come, that counts. What came before was not listened to.
    pub(super) fn begin_to_hear(&mut self) {
        if core::mem::take(&mut self.is_deaf) {
            self.place = Place::Lost(self.round);
        }
        self.heard_at.get_or_insert(self.round);
    }

    /// The state that this node has taken over is not the others': it gives up its place, and takes
    /// over another one.
    pub fn leave_place(&mut self, out: &mut Vec<Action>) {
        self.lose_place(out);
    }

    /// It has missed what it cannot know.
    pub(super) fn lose_place(&mut self, out: &mut Vec<Action>) {
        if mutant!("epto_resume_delivers") {
            return;
        }
        probe!("epto/place_lost");
        if self.has_place() {
            self.counters.places_lost += 1;
            out.push(Action::LostPlace);
        }
        self.place = Place::Lost(self.round);
        self.heard_at = None;
        // What has reached nobody was never broadcast: others would look for it as for a hole.
        if !mutant!("epto_counts_unsent") {
            self.sequence = self.sent;
        }
        self.next_ball.clear();
        self.order.clear();
        self.payloads.clear(self.kept_until());
    }
}
