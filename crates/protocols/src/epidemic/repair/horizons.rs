//! What a joiner has heard of how far others have come.

use super::join::Joining;
use crate::epto::{EventKey, LogicalTime};
use quorate_kernel::mutant;

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
}
