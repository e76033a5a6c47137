//! What a joiner has heard of how far others have come.

use super::join::{Joining, Standing};
use super::snapshot::{clock_of, time};
use crate::epidemic::message::SnapshotB;
use crate::epidemic::{Context, Epidemic};
use crate::epto::{EventKey, Horizon, LogicalTime};
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use quorate_kernel::{mutant, probe};

/// What is counted of a disk that is further than all others would believe.
const AHEAD: &str = "how far it is: this disk is so far ahead that nobody would believe it";

impl Joining {
    /// A page of a donor that is ready has come, which has come so far. If nobody believes it,
    /// others who are not ready wait for it too, but not for ever. It is not heard by that: what it
    /// has this node may lack.
    pub(super) fn hear_ready(
        &mut self,
        (last, is_believed): (Option<EventKey>, bool),
        (round, patience): (u64, u64),
    ) {
        let is_early = self.since.is_none_or(|since| round < since + 4 * patience);
        if is_believed || is_early && !mutant!("epidemic_unbelieved_is_unheard") {
            self.heard_ready = Some(round);
        }
        // Who was further counts as long as it is heard: it may be gone, and all that are left
        // begin anew.
        let is_gone = round >= self.furthest_heard + 2 * patience;
        if is_believed && (last >= self.furthest_ready || is_gone) {
            (self.furthest_ready, self.furthest_heard) = (last, round);
        }
    }

    /// Whether a page counts. Who is not ready may have less than all, and never come so far. Who
    /// is, and is below what has had its turn here, comes as far with the next event: it is waited
    /// for. But there may be none for long. Who says the same for long has missed what came last,
    /// or nothing comes: it is no copy, but all that there is.
    pub(super) fn counts(
        &mut self,
        donor: NodeId,
        page: &SnapshotB,
        (round, patience): (u64, u64),
    ) -> bool {
        if !page.is_ready || page.horizon.last >= self.floor {
            self.below.remove(&donor);
            return true;
        }
        let is_asked = self.donors.get(&donor).is_some_and(|asked| asked.number == page.number);
        if !is_asked {
            return false;
        }
        let since = *self.below.entry(donor).or_insert(round);
        let is_long = round >= since + 2 * patience;
        if !is_long || mutant!("epidemic_waits_for_who_is_below") {
            self.hope = Some(round);
            return false;
        }
        true
    }

    /// A donor has come so far, and this node so far; returns how far the furthest has come of
    /// those that have the range. Of a range that it never had a neighbour has purged nothing.
    pub(super) fn hear_of(
        &mut self,
        donor: Option<EventKey>,
        has_range: bool,
        own: Option<EventKey>,
    ) -> Option<EventKey> {
        self.heard = self.heard.max(donor);
        if has_range || mutant!("epidemic_neighbours_purge") {
            self.furthest = self.furthest.max(donor);
        }
        match mutant!("epidemic_lags_behind_this_node_alone") {
            true => own,
            false => self.furthest.max(own),
        }
    }

    /// A clock has come since that does not believe what was heard before: it is forgotten.
    pub(super) fn forget_unless(&mut self, is_believed: impl Fn(LogicalTime) -> bool) {
        for told in [&mut self.heard, &mut self.furthest, &mut self.furthest_ready] {
            *told = told.filter(|event| is_believed(event.time));
        }
    }

    /// Whether somebody who is ready was heard lately.
    pub(super) fn hears_ready(&self, round: u64, patience: u64) -> bool {
        self.heard_ready.is_some_and(|heard| round < heard + 2 * patience)
    }

    /// A donor that is ready lags behind what this node has itself. Whether it stood still and does
    /// not know that yet: who says the same for long has seen its timers since. Then it has another
    /// past, as after a division.
    pub(super) fn may_be_asleep(
        &mut self,
        donor: NodeId,
        lags: bool,
        (round, patience): (u64, u64),
    ) -> bool {
        if !lags {
            self.lagging.remove(&donor);
            return false;
        }
        let since = *self.lagging.entry(donor).or_insert(round);
        round < since + 2 * patience || mutant!("epidemic_waits_for_who_has_another_past")
    }
}

impl Epidemic {
    /// Nobody believes how far one is alone. Several that have a place in the order and say about
    /// the same show how far others have come; who has none tells no clock.
    pub(super) fn hear_witness(&mut self, from: NodeId, horizon: &Horizon) {
        let is_witness = horizon.clock > LogicalTime(0) && !self.state.epto.has_place();
        if is_witness && !mutant!("epidemic_pages_are_no_witnesses") {
            self.state.epto.on_told(from, clock_of(horizon));
        }
    }

    /// What no ball may say no page may either: one damaged disk would make others drop theirs.
    pub(super) fn believes(&self, horizon: &Horizon) -> bool {
        self.state.epto.believes(clock_of(horizon))
            || mutant!("epidemic_hears_what_no_ball_may_say")
    }

    /// Whether a donor that is ready is so far behind what this node has that nobody would believe
    /// this node, if it went on from there: that is what others do who are ready. Its disk may be
    /// damaged, or they have begun anew without what it has. Which of them is right its operator
    /// must say, so nothing is dropped, and nobody's clock is moved.
    pub(super) fn is_ahead_of(&mut self, page: &SnapshotB, cx: &mut Context<'_>) -> bool {
        let Standing::Joining(joining) = &self.state.standing else { return false };
        if !joining.takes_place || !page.is_ready {
            return false;
        }
        let ahead = time(self.state.last).saturating_sub(clock_of(&page.horizon).0);
        self.say_ahead(ahead, cx);
        self.state.ahead > 0
    }

    /// What is here is further than others by so many places: that is shown, and told, if it is too
    /// far for them.
    pub(super) fn say_ahead(&mut self, ahead: u64, cx: &mut Context<'_>) {
        let is_far = ahead > EPTO_CLOCK_JUMP_MAX && !mutant!("epidemic_far_disk_is_followed");
        self.state.ahead = if is_far { ahead } else { 0 };
        if is_far {
            probe!("epidemic/far_ahead");
            cx.fx.refuse(AHEAD);
        }
    }
}

/// How far this node has come with what it takes over: as far as the furthest. Of equals another
/// one knows more than this node, which has forgotten its sources.
pub(super) fn furthest(own: Horizon, told: impl Iterator<Item = Horizon>) -> Horizon {
    let all = core::iter::once(own).chain(told);
    all.max_by_key(|horizon| horizon.last).expect("there is the own one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epto::Sequence;
    use quorate_kernel::ids::Incarnation;
    use std::vec::Vec;

    /// Its own would say that it knows of no source: each event to come would be a first one.
    #[test]
    fn of_equal_horizons_that_of_another_counts() {
        let source = Incarnation::default();
        let event = |time| Some(EventKey { time: LogicalTime(time), source });
        let of = |time| Horizon { last: event(time), ..Horizon::default() };
        let told = Horizon { sources: Vec::from([(source, Sequence(3))]), ..of(5) };
        let taken = furthest(of(5), [of(4), told.clone()].into_iter());
        assert_eq!(taken, told);
        assert_eq!(furthest(of(6), [told].into_iter()), of(6));
    }
}
