//! When enough is here that a node may answer for what it takes over.
//!
//! Only who had all of a part is a copy of it: who is ready there, or was until it stopped or gave
//! the part up. Who takes it over has some of it, however far it has come, and who never had it has
//! nothing: a key that they lack may be there. So copies are counted part by part.
//!
//! Where nobody is known that had all of a part, and something was ever written, a node waits for
//! long, unless it has heard all that can have had it: they may not be up yet, or not be known.
//! Then it goes on with what there is, as that may be all, and its reads of the part say for a
//! while that something may be missing.

use super::behind::Heard;
use super::donor::{Donor, had_part, has_all, has_reached, reached};
use super::horizons::furthest;
use super::join::{DONORS, Joining};
use crate::epidemic::replica::range::Range;
use crate::epto::{EventKey, Horizon, LogicalTime};
use crate::gossip::cyclon::Peer;
use crate::slices::position::Position;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;

/// After how many times its patience a node goes on without anybody that had all of a part, or
/// without one that has said so and is not heard any more.
pub(super) const HOPE: u64 = 16;

/// What a joiner knows of those around it, and of itself.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub round: u64,
    pub patience: u64,
    pub members: Vec<NodeId>,
    /// Whether there is nobody else at all.
    pub is_alone: bool,
    /// Whether all were heard to the end that stand in its slice, as it was told from elsewhere.
    pub is_told_all: bool,
    /// Whether members that it knows would drop what they have when it has its place.
    pub is_far: bool,
    /// How many have an acknowledged write at least.
    pub copies: usize,
    /// Whether the node has started with what it had.
    pub has_own: bool,
    pub had: Had,
}

/// What the node had itself when it began to join.
#[derive(Clone, Debug)]
pub(super) struct Had {
    /// What it takes over.
    pub range: Range,
    /// What was noted of parts of that: it had all of the others.
    pub noted: Vec<(Range, Heard)>,
    /// Whether anything was ever written, as far as it knows.
    pub lives: bool,
    /// Its last event; none if it had none, or has a place in the order.
    pub last: Option<EventKey>,
    /// Whether nothing is written in an order.
    pub is_unordered: bool,
}

/// Of a part of what is taken over, who had all of it.
#[derive(Clone, Copy, Debug)]
struct Copies {
    part: Range,
    /// How many of those that were heard to the end.
    heard: usize,
    /// Whether the node had it itself.
    own: bool,
}

impl Joining {
    pub(super) fn done(&self, is_ready: bool) -> impl Iterator<Item = &Donor> {
        self.donors.values().filter(move |donor| donor.whole(is_ready).is_some())
    }

    /// Of how many of these members no snapshot has come whole.
    fn unheard(&self, members: &[NodeId]) -> usize {
        members.iter().filter(|member| !self.is_heard(**member)).count()
    }

    /// Whether who has noted this had all of a part, as far as it must have come. What was given up
    /// is all there was then. Who takes a place must have what came since.
    pub(super) fn is_copy(
        &self,
        noted: &[(Range, Heard)],
        (part, last): (&Range, Option<EventKey>),
        had: &Had,
    ) -> bool {
        let far = if self.takes_place { self.heard } else { None };
        let floor = self.floor.max(far.filter(|_| !has_all(noted, part)));
        let is_far = has_reached(noted, (part, last), floor);
        had_part(noted, part, had.is_unordered) && (is_far || mutant!("epidemic_old_copies_count"))
    }

    /// Whether the node had all of a part itself.
    pub(super) fn has_own(&self, part: &Range, had: &Had) -> bool {
        self.is_copy(&had.noted, (part, had.last), had)
    }

    /// The donors that were heard to the end, and had all of a part. Of those that lag nothing was
    /// taken. Where nothing was ever written nobody lacks anything.
    pub(super) fn copies_of<'a>(
        &'a self,
        part: &'a Range,
        had: &'a Had,
    ) -> impl Iterator<Item = &'a Donor> {
        let is_copy = move |donor: &&Donor| {
            let has_had = self.is_copy(donor.noted(), (part, donor.last()), had);
            !donor.lags() && (!had.lives || has_had)
        };
        self.done(false).filter(is_copy)
    }

    /// The parts in which some had all, and others had not.
    fn copies(&self, had: &Had, is_counted: impl Fn(&Donor) -> bool) -> Vec<Copies> {
        let copies = |part: Range| {
            let heard = self.copies_of(&part, had).filter(|donor| is_counted(donor)).count();
            Copies { part, heard, own: self.has_own(&part, had) }
        };
        self.parts(had).into_iter().map(copies).collect()
    }

    /// The parts of which nobody is known that had all.
    pub(super) fn lost(&self, had: &Had) -> Vec<Range> {
        let copies = self.copies(had, |_| true).into_iter();
        let is_lost = |one: &Copies| had.lives && one.heard == 0 && !one.own;
        copies.filter(is_lost).map(|one| one.part).collect()
    }

    /// The same, where nobody is ready. What is skipped of events that are gone may be of any part.
    pub(super) fn in_doubt(&self, had: &Had) -> Vec<Range> {
        if self.is_left_behind { Vec::from([had.range]) } else { self.lost(had) }
    }

    /// Whether a donor was heard to the end.
    fn is_heard(&self, node: NodeId) -> bool {
        self.donors.get(&node).is_some_and(|donor| donor.whole(false).is_some())
    }

    /// Whether all of these were heard to the end that stand in a range, if any are told at all.
    pub(super) fn has_heard(&self, told: &[Peer], range: &Range) -> bool {
        let told = told.iter().map(|peer| peer.who.node);
        let mut there = told.clone().filter(|node| range.has(Position::of(*node)));
        let is_heard = |node| self.is_heard(node) || mutant!("epidemic_knows_who_is_in_the_ring");
        told.count() > 0 && there.all(is_heard)
    }

    /// Whether it has waited so long that who had all must be gone: nobody is heard any more who
    /// was ready, or had what nobody has who was heard to the end, and no member is left that was
    /// not asked.
    fn is_hopeless(&self, around: &Around) -> bool {
        let (round, long) = (around.round, HOPE * around.patience);
        let since = self.since.max(self.heard_ready).max(self.hope).unwrap_or(round);
        let is_asked = |member: &NodeId| self.donors.contains_key(member);
        let are_asked = around.members.iter().all(is_asked) || mutant!("epidemic_asks_not_all");
        let is_awaited = self.awaits(&around.had, (round, long));
        let is_over = round >= since + long && !mutant!("epidemic_hopes_for_ever");
        is_over && are_asked && !is_awaited
    }

    /// Whether enough is here.
    pub(super) fn is_enough(&self, around: &Around) -> bool {
        if mutant!("epidemic_join_at_once") {
            return true;
        }
        let Around { round, patience, members, .. } = around;
        let (round, patience) = (*round, *patience);
        let waited = round - self.since.unwrap_or(round);
        let is_counted = |donor: &Donor| donor.is_member || members.is_empty();
        let copies = self.copies(&around.had, is_counted);
        let fewest = copies.iter().map(|one| one.heard).min().unwrap_or(0);
        let is_hopeless = self.is_hopeless(around);
        let is_awaited = self.awaits(&around.had, (round, HOPE * patience));
        let may_go_on = copies.iter().all(|one| one.heard > 0 || one.own)
            || is_hopeless
            || around.is_told_all
            || mutant!("epidemic_goes_on_without_a_copy");
        let heard = self.done(false).filter(|donor| is_counted(donor)).count();
        if members.is_empty() {
            // Who may be there that nobody knows yet may have what others would make it drop. They
            // show up when slices are joined, at the latest.
            let is_coming = self.donors.values().any(|donor| donor.is_coming(round));
            let is_heard = fewest >= 1 || (heard >= 1 && !is_coming && may_go_on);
            let is_heard = is_heard && !is_awaited && !around.is_far;
            return waited >= patience && (around.is_alone || is_heard);
        }
        let ready = self.done(true).count();
        // Who has all is still sending it: what others have is less.
        let is_coming = self.donors.values().any(|one| one.is_ready() && !one.is_silent(round))
            && !mutant!("epidemic_join_without_who_is_ready");
        let (unheard, needed) = (self.unheard(members), members.len().min(DONORS));
        let are_all = unheard == 0 || mutant!("epidemic_who_lags_is_counted");
        // Where all hope is gone a member that is never heard to the end keeps nobody.
        let is_rest = may_go_on
            && (heard >= needed && are_all || heard >= needed.min(1) && is_hopeless)
            && !(heard < needed && mutant!("epidemic_waits_for_each_of_two"));
        ready >= DONORS
            || (waited >= patience && ready >= 1 && members.len() < DONORS)
            || (waited >= 2 * patience && ready >= 1)
            || (waited >= 2 * patience
                && !is_coming
                && !is_awaited
                && (fewest >= needed || is_rest)
                && !(around.is_far && unheard >= around.copies))
            || (waited >= 4 * patience
                && around.has_own
                && may_go_on
                && !is_awaited
                && self.suffices((round, patience), around.copies, members))
    }

    /// Whether what has come and what the node had suffices without those that are cut off: they
    /// are too few to have something acknowledged alone, and nobody ready was heard for long.
    fn suffices(&self, (round, patience): (u64, u64), copies: usize, members: &[NodeId]) -> bool {
        let is_heard = self.hears_ready(round, patience);
        let unheard = self.unheard(members);
        let are_few = unheard < copies;
        // A neighbour that is no member knows nothing of what they have.
        unheard < members.len()
            && are_few
            && !is_heard
            && !mutant!("epidemic_waits_for_who_is_cut_off")
    }

    /// From where on events have their turn: as far as the furthest had come that was ready. Where
    /// nobody is, one that had all of a part may lack what another part had later: as far as each
    /// part goes. Nothing is skipped then, and what is done twice is done once.
    pub(super) fn horizon(&self, own: Horizon, had: &Had) -> Horizon {
        let has_ready = self.done(true).next().is_some();
        let told = self.donors.values().filter_map(|donor| donor.whole(has_ready)).cloned();
        let all = furthest(own.clone(), told);
        let is_left_behind = self.is_left_behind && !mutant!("epidemic_resumes_in_vain");
        if has_ready || is_left_behind || mutant!("epidemic_resumes_where_some_are") {
            return all;
        }
        let of_part = |one: Copies| {
            // What it gave up itself goes as far as then.
            let last = reached(&had.noted, &one.part, own.last);
            let own_part = || match last == own.last {
                true => own.clone(),
                false => Horizon { last, ..Horizon::default() },
            };
            let own = one.own.then(own_part);
            let donors = self.copies_of(&one.part, had).filter_map(|one_of| {
                let told = one_of.whole(false)?;
                let last = one_of.reached(&one.part);
                let is_all = last == told.last;
                Some(if is_all { told.clone() } else { Horizon { last, ..Horizon::default() } })
            });
            own.into_iter().chain(donors).max_by_key(|horizon| horizon.last)
        };
        let parts = self.copies(had, |_| true).into_iter().filter_map(of_part);
        let Some(least) = parts.min_by_key(|horizon| horizon.last) else { return all };
        // What it broadcasts itself comes behind all.
        let last = all.last.map_or(LogicalTime(0), |last| last.time);
        let clock = least.clock.max(all.clock).max(last);
        furthest(own, core::iter::once(Horizon { clock, ..least }))
    }
}

#[cfg(test)]
impl Around {
    /// A node that had nothing and knows nobody, after a patience of 24 rounds.
    pub fn in_round(round: u64) -> Around {
        let noted = Vec::from([(Range::ALL, Heard::Nothing)]);
        let (last, is_unordered) = (None, false);
        let had = Had { range: Range::ALL, noted, lives: true, last, is_unordered };
        let (members, patience, copies) = (Vec::new(), 24, 2);
        let (is_alone, is_told_all, is_far, has_own) = (false, false, false, false);
        Around { round, patience, members, is_alone, is_told_all, is_far, copies, has_own, had }
    }
}

#[cfg(test)]
mod tests;
