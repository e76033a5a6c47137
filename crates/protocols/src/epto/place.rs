//! Whether a node has a place in the order: how it is lost, and how it is found again.

use super::action::{Action, Horizon, ResumeError};
use super::key::LogicalTime;
use super::node::Epto;
use super::sources::Sources;
use alloc::vec::Vec;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
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
    /// The state may not be taken over: nothing was changed, but that a node which has not listened
    /// to all that counts may have got the clock of the state.
    pub fn resume_at(&mut self, horizon: &Horizon) -> Result<(), ResumeError> {
        if !self.may_resume() {
            return Err(ResumeError::Early);
        }
        let reached = horizon.clock.max(horizon.last.map_or(LogicalTime(0), |key| key.time));
        if !self.clock.believes(reached) {
            return Err(ResumeError::Far);
        }
        if self.has_missed(reached) {
            // Balls came that it could not judge. Now it can, and listens anew.
            self.clock.reach(reached);
            self.begin_to_hear();
            return Err(ResumeError::Early);
        }
        if self.order.forgotten() > horizon.last.max(self.order.last()) {
            return Err(ResumeError::Old);
        }
        probe!("epto/resumed");
        let dropped = self.order.resume(horizon.last);
        self.forget(dropped);
        self.clock.reach(reached);
        self.sources = Sources::resume(&horizon.sources, horizon.is_complete);
        (self.place, self.refused) = (Place::Held, None);
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
        if self.has_missed(self.clock.now()) {
            (self.is_deaf, self.refused) = (false, None);
            self.place = Place::Lost(self.round);
        }
        self.heard_at.get_or_insert(self.round);
    }

    /// A ball is refused while this node looks for its place. What it says may count: that shows
    /// when the clock has come so far. One sender whose clock is mad keeps nobody from joining.
    pub(super) fn leave_aside(&mut self, time: LogicalTime) {
        self.is_deaf |= mutant!("epto_who_is_refused_deafens");
        let lowest = self.refused.map_or(time, |refused| refused.min(time));
        self.refused = Some(lowest).filter(|_| !mutant!("epto_refused_never_counts"));
    }

    /// Whether balls came that were not listened to, and count where clocks show this time.
    fn has_missed(&self, time: LogicalTime) -> bool {
        let believed = self.clock.now().max(time).0.saturating_add(EPTO_CLOCK_JUMP_MAX);
        self.is_deaf || self.refused.is_some_and(|refused| refused.0 <= believed)
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
        (self.heard_at, self.refused) = (None, None);
        // What has reached nobody was never broadcast: others would look for it as for a hole.
        if !mutant!("epto_counts_unsent") {
            self.sequence = self.sent;
        }
        self.next_ball.clear();
        self.order.clear();
        self.payloads.clear(self.kept_until());
    }
}
