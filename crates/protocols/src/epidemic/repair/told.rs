//! What others have said of what they had, in any page: also in one of which nothing was taken.
//!
//! A joiner asks few at a time, and each may take long to send all that it has. The only one that
//! had all of a part, or that had come further than all others, may not be among them: its first
//! page came too early, or others are asked that are only slower. So a joiner remembers who has
//! said so, and when. Such a one is asked beside the others, and waited for until nothing was heard
//! of it for long.
//!
//! Who has a place in the order goes on: what comes while it sends the joiner hears itself. Of
//! those that have none, and stopped at different times, the furthest has what the others lack.

use super::behind::Heard;
use super::donor::{Donor, had_part, has_all, reached, taken};
use super::enough::Had;
use super::join::{DONORS, Joining};
use crate::epidemic::message::SnapshotB;
use crate::epidemic::replica::range::Range;
use crate::epto::{EventKey, LogicalTime};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::rng::Rng;

/// How far a part goes: whether it goes on, and its last event.
pub(super) type Reach = (bool, Option<EventKey>);

/// What one has said of itself last.
#[derive(Clone, Debug)]
pub(super) struct SenderNotes {
    /// In which round.
    round: u64,
    has_place: bool,
    last: Option<EventKey>,
    /// What it has noted of parts of the range.
    noted: Vec<(Range, Heard)>,
}

/// Whether the sender of a page has a place in the order.
pub(super) fn has_place(page: &SnapshotB) -> bool {
    page.is_ready || page.horizon.clock > LogicalTime(0)
}

/// How far who has noted this, and has come so far itself, has come with a part.
pub(super) fn reach(
    noted: &[(Range, Heard)],
    part: &Range,
    (has_place, last): (bool, Option<EventKey>),
) -> Reach {
    (has_place && has_all(noted, part), reached(noted, part, last))
}

impl Joining {
    /// One without a place has said this of itself.
    #[cfg(test)]
    pub fn say(
        &mut self,
        donor: NodeId,
        said: (Option<EventKey>, Vec<(Range, Heard)>),
        round: u64,
    ) {
        let ((last, noted), has_place) = (said, false);
        self.told.insert(donor, SenderNotes { round, has_place, last, noted });
    }

    /// A page has come that is believed, of who has taken these parts over without a copy.
    pub(super) fn hear_told(
        &mut self,
        donor: NodeId,
        (page, lost): (&SnapshotB, &[Range]),
        round: u64,
    ) {
        if mutant!("epidemic_forgets_what_was_put_aside") && !page.is_ready {
            return;
        }
        let noted = page.noted.iter().copied().chain(lost.iter().copied().map(taken)).collect();
        let (has_place, last) = (has_place(page), page.horizon.last);
        self.told.insert(donor, SenderNotes { round, has_place, last, noted });
    }

    /// The parts of which all who have said anything say the same throughout.
    pub(super) fn parts(&self, had: &Had) -> Vec<Range> {
        let donors = self.done(false).flat_map(Donor::noted);
        let told = self.told.values().flat_map(|told| &told.noted);
        let noted = had.noted.iter().chain(donors).chain(told);
        let mut ranges: Vec<Range> = noted.map(|(range, _)| *range).collect();
        ranges.sort_unstable();
        ranges.dedup();
        let mut parts = Vec::from([had.range]);
        for range in ranges {
            parts = parts.iter().flat_map(|part| part.cut(&range)).collect();
        }
        parts
    }

    /// Who has said that it had all of a part, and was not heard to the end: of a part that none of
    /// those had that were, or with which it has come further than all of them, and this node.
    fn holders(&self, part: &Range, had: &Had) -> Vec<NodeId> {
        let own = self.has_own(part, had).then(|| reach(&had.noted, part, (false, had.last)));
        let heard = self.copies_of(part, had).filter_map(|donor| donor.reach(part));
        let best = heard.chain(own).max();
        let is_more = |told: &SenderNotes| match best {
            None => true,
            Some(_) if mutant!("epidemic_old_disk_is_enough") => false,
            Some(best) => {
                self.takes_place
                    && !best.0
                    && reach(&told.noted, part, (told.has_place, told.last)) > best
            }
        };
        let is_taken = |node: &NodeId| {
            let whole = self.donors.get(node).and_then(|donor| donor.whole.as_ref());
            whole.is_some_and(|said| had_part(&said.noted, part, had.is_unordered))
        };
        let told = self.told.iter().filter(|(node, told)| {
            self.is_copy(&told.noted, (part, told.last), had) && !is_taken(node) && is_more(told)
        });
        told.map(|(node, _)| *node).collect()
    }

    /// The holders of each part that has any. Where nothing was ever written nobody lacks anything.
    fn awaited(&self, had: &Had) -> Vec<Vec<NodeId>> {
        let parts = if had.lives { self.parts(had) } else { Vec::new() };
        let holders = parts.iter().map(|part| self.holders(part, had));
        holders.filter(|holders| !holders.is_empty()).collect()
    }

    /// Whether nothing was heard of a holder for so long, though it was asked again since.
    fn is_gone(&self, node: NodeId, (round, long): (u64, u64)) -> bool {
        let Some(told) = self.told.get(&node) else { return true };
        let is_asked = self.donors.get(&node).is_some_and(|donor| donor.asked_at > told.round);
        round >= told.round + long && is_asked
    }

    /// Whether somebody has what nobody has who was heard to the end, and was heard of lately.
    pub(super) fn awaits(&self, had: &Had, (round, long): (u64, u64)) -> bool {
        let awaited = self.awaited(had);
        let is_here = |node: &NodeId| !self.is_gone(*node, (round, long));
        awaited.iter().flatten().any(is_here) && !mutant!("epidemic_gives_up_who_sends")
    }

    /// Who is to be asked beside the others: a holder of each part of which none sends.
    pub(super) fn beside(
        &self,
        had: &Had,
        (round, long): (u64, u64),
        rng: &mut Rng,
    ) -> Vec<NodeId> {
        let is_silent =
            |node: &NodeId| self.donors.get(node).is_none_or(|donor| donor.is_silent(round));
        let is_beside = |donor: &&Donor| donor.is_beside && !donor.is_silent(round);
        let open = self.donors.values().filter(is_beside).count();
        let (mut chosen, room) = (Vec::new(), DONORS.saturating_sub(open));
        for holders in self.awaited(had) {
            let is_sent = holders.iter().any(|node| !is_silent(node) || chosen.contains(node));
            let here = |node: &NodeId| !self.is_gone(*node, (round, long));
            let holders: Vec<NodeId> = holders.into_iter().filter(here).collect();
            if let Some(holder) = rng.pick(&holders).filter(|_| !is_sent && chosen.len() < room) {
                chosen.push(*holder);
            }
        }
        chosen
    }
}
