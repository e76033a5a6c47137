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
use super::donor::Donor;
use super::horizons::furthest;
use super::join::{DONORS, Joining};
use crate::epidemic::message::SnapshotB;
use crate::epidemic::replica::range::Range;
use crate::epto::{EventKey, Horizon, LogicalTime};
use crate::gossip::cyclon::Peer;
use crate::slices::position::Position;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::mutant;

/// After how many times its patience a node goes on without anybody that had all of a part.
const HOPE: u64 = 16;

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

/// Whether who has noted this had all of a part.
pub(super) fn had_all(noted: &[(Range, Heard)], part: &Range) -> bool {
    let is_whole = |heard: &Heard| match heard {
        Heard::Own(_) => true,
        Heard::Taken(_) => mutant!("epidemic_some_is_all"),
        Heard::Nothing => mutant!("epidemic_nothing_is_a_copy"),
    };
    noted.iter().all(|(range, heard)| !range.meets(part) || is_whole(heard))
}

impl Joining {
    pub(super) fn done(&self, is_ready: bool) -> impl Iterator<Item = &Donor> {
        self.donors.values().filter(move |donor| donor.whole(is_ready).is_some())
    }

    /// Whether a page counts. Who is not ready may have less than all, and never come so far.
    pub(super) fn takes(&self, page: &SnapshotB) -> bool {
        !page.is_ready || page.horizon.last >= self.floor
    }

    /// Of how many of these members no snapshot has come whole.
    fn unheard(&self, members: &[NodeId]) -> usize {
        members.iter().filter(|member| !self.is_heard(**member)).count()
    }

    /// The donors that were heard to the end, and had all of a part as far as it must have come.
    /// Of those that lag nothing was taken. Where nothing was ever written nobody lacks anything.
    fn copies_of<'a>(&'a self, part: &'a Range, had: &'a Had) -> impl Iterator<Item = &'a Donor> {
        // What was given up is all there was then. Who takes a place must have what came since.
        let far = if self.takes_place { self.heard } else { None };
        let is_far_enough = move |donor: &Donor| {
            let floor = self.floor.max(far.filter(|_| !donor.has_all(part)));
            donor.reached(part) >= floor || mutant!("epidemic_old_copies_count")
        };
        let is_copy = move |donor: &&Donor| {
            !donor.lags() && (!had.lives || donor.had_all(part)) && is_far_enough(donor)
        };
        self.done(false).filter(is_copy)
    }

    /// The parts in which some had all, and others had not.
    fn copies(&self, had: &Had, is_counted: impl Fn(&Donor) -> bool) -> Vec<Copies> {
        let donors = self.done(false).flat_map(Donor::noted);
        let mut parts = Vec::from([had.range]);
        for (range, _) in had.noted.iter().chain(donors) {
            parts = parts.iter().flat_map(|part| part.cut(range)).collect();
        }
        let copies = |part: Range| {
            let heard = self.copies_of(&part, had).filter(|donor| is_counted(donor)).count();
            Copies { part, heard, own: had_all(&had.noted, &part) }
        };
        parts.into_iter().map(copies).collect()
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

    /// Whether it has waited so long that who had all must be gone. While somebody sends who is
    /// ready, or had all of what nobody else had who was heard, it has not begun to.
    fn is_hopeless(&self, had: &Had, round: u64, patience: u64) -> bool {
        let since = self.since.max(self.heard_ready).max(self.hope).unwrap_or(round);
        let is_sent = |part: &Range| self.donors.values().any(|one| one.sends(part, round));
        round >= since + HOPE * patience
            && !mutant!("epidemic_hopes_for_ever")
            && (mutant!("epidemic_gives_up_who_sends") || !self.lost(had).iter().any(is_sent))
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
        let is_hopeless = self.is_hopeless(&around.had, round, patience);
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
            return waited >= patience && (around.is_alone || is_heard && !around.is_far);
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
                && (fewest >= needed || is_rest)
                && !(around.is_far && unheard >= around.copies))
            || (waited >= 4 * patience
                && around.has_own
                && may_go_on
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
            let own = one.own.then(|| own.clone());
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

/// How far who has noted this, and has come so far itself, has come with a part.
pub(super) fn reached(
    noted: &[(Range, Heard)],
    part: &Range,
    last: Option<EventKey>,
) -> Option<EventKey> {
    let of_part = noted.iter().filter(|(range, _)| range.meets(part));
    let until = of_part.filter_map(|(_, heard)| heard.until()).min();
    let event = |time| EventKey { time, source: Incarnation::default() };
    until.map_or(last, |until| last.min(Some(event(until))))
}

#[cfg(test)]
impl Around {
    /// A node that had nothing and knows nobody, after a patience of 24 rounds.
    pub fn in_round(round: u64) -> Around {
        let noted = Vec::from([(Range::ALL, Heard::Nothing)]);
        let had = Had { range: Range::ALL, noted, lives: true };
        let (members, patience, copies) = (Vec::new(), 24, 2);
        let (is_alone, is_told_all, is_far, has_own) = (false, false, false, false);
        Around { round, patience, members, is_alone, is_told_all, is_far, copies, has_own, had }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epto::Sequence;

    fn event(time: u64) -> Option<EventKey> {
        Some(EventKey { time: LogicalTime(time), source: Incarnation::default() })
    }

    fn horizon(time: u64) -> Horizon {
        let sources = Vec::from([(Incarnation::default(), Sequence(time))]);
        Horizon { last: event(time), sources, ..Horizon::default() }
    }

    /// These have come so far, and have noted this.
    fn joining<const N: usize>(told: [(u64, Vec<(Range, Heard)>); N]) -> Joining {
        let donor = |(time, noted)| Donor::said(horizon(time), noted);
        let donors = (1..).map(NodeId).zip(told.map(donor)).collect();
        Joining { since: Some(0), donors, ..Joining::default() }
    }

    fn halves() -> [Range; 2] {
        [Range::ALL.half(false), Range::ALL.half(true)]
    }

    /// Each has all of one half, and has begun to take over the other.
    #[test]
    fn what_some_have_of_each_part_is_skipped_by_nobody() {
        let [lower, upper] = halves();
        let some = |part, time| Vec::from([(part, Heard::Taken(LogicalTime(time)))]);
        let both = joining([(30, some(upper, 29)), (20, some(lower, 19))]);
        let had = Around::in_round(0).had;
        let told = both.horizon(horizon(5), &had);
        assert_eq!(Horizon { clock: LogicalTime(30), ..horizon(20) }, told);
        // What was given up goes as far as then, and nobody tells of which sources.
        let own = |part, time| Vec::from([(part, Heard::Own(LogicalTime(time)))]);
        let both =
            joining([(30, some(upper, 29)), (20, [some(lower, 19), own(upper, 9)].concat())]);
        let told = both.horizon(horizon(5), &had);
        assert_eq!((told.last, told.sources.len()), (event(9), 0));
        // Of a half that nobody has all of nothing is to come.
        let one = joining([(30, some(upper, 29)), (20, some(Range::ALL, 19))]);
        assert_eq!(one.horizon(horizon(5), &had).last, event(30));
        assert_eq!(one.lost(&had), [upper]);
        assert!(both.lost(&had).is_empty());
    }

    /// It gave the part up before all waits that has had its turn since.
    #[test]
    fn who_gave_a_part_up_is_no_copy_of_what_came_later() {
        let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
        let around = Around { members, ..Around::in_round(99) };
        for (until, is_enough) in [(9, false), (12, true)] {
            let noted = Vec::from([(halves()[0], Heard::Own(LogicalTime(until)))]);
            let two = joining([(20, noted.clone()), (20, noted)]);
            let joining = Joining { floor: event(10), ..two };
            assert_eq!(joining.is_enough(&around), is_enough, "up to {until}");
        }
    }

    /// When a number of slices falls, those who hold a part are not ready for all that others take
    /// over, and send for long. Others who lack it are heard to the end at once.
    #[test]
    fn who_sends_what_nobody_else_has_is_waited_for() {
        let lacks = || Vec::from([(Range::ALL, Heard::Nothing)]);
        let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
        let late = 99 * 24;
        let around = Around { members, ..Around::in_round(late) };
        let mut joining = joining([(20, lacks()), (20, lacks()), (20, Vec::new())]);
        let holder = joining.donors.get_mut(&NodeId(3)).expect("it is one");
        (holder.begun, holder.asked_at) = (holder.whole.take(), late - 1);
        assert!(!joining.is_enough(&around), "it is sending");
        assert!(joining.is_enough(&Around { round: late + 9, ..around }), "it is no more");
    }

    /// What was given up is as old as then, and who takes a place knows how far others are.
    #[test]
    fn what_was_given_up_is_no_copy_for_who_takes_a_place() {
        let own = || Vec::from([(halves()[1], Heard::Own(LogicalTime(9)))]);
        let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
        let around = Around { members, ..Around::in_round(99) };
        for (takes_place, heard, is_enough) in
            [(true, 20, false), (true, 9, true), (false, 20, true)]
        {
            let two = joining([(heard, own()), (heard, own())]);
            let joining = Joining { takes_place, heard: event(heard), ..two };
            assert_eq!(joining.is_enough(&around), is_enough, "{takes_place}, {heard}");
        }
    }

    /// All events behind what those had who have the range are gone: it goes on where others are.
    #[test]
    fn who_is_left_behind_goes_on_where_others_are() {
        let mut joining = joining([(20, Vec::new()), (30, [(Range::ALL, Heard::Nothing)].into())]);
        let had = Around::in_round(0).had;
        assert_eq!(joining.horizon(horizon(5), &had).last, event(20));
        joining.is_left_behind = true;
        assert_eq!(joining.horizon(horizon(5), &had).last, event(30));
    }

    /// Its own disk may be the only copy. Without one it waits for long, for one that may come.
    #[test]
    fn who_knows_no_copy_waits_for_long_and_not_for_ever() {
        let lacks = || Vec::from([(Range::ALL, Heard::Taken(LogicalTime(0)))]);
        for members in [Vec::new(), Vec::from([1, 2].map(NodeId)), (1..=3).map(NodeId).collect()] {
            let is_all = members.len() < 3;
            let joining = joining([(20, lacks()), (20, lacks())]);
            let around = |round| Around { members: members.clone(), ..Around::in_round(round) };
            assert!(!joining.is_enough(&around(16 * 24 - 1)));
            assert!(joining.is_enough(&around(16 * 24)));
            let had = Had { noted: Vec::new(), ..around(0).had };
            assert_eq!(joining.is_enough(&Around { had, ..around(99) }), is_all, "its own");
            let all = Around { is_told_all: true, ..around(99) };
            assert_eq!(joining.is_enough(&all), is_all, "nobody else can have it");
            let had = Had { lives: false, ..around(0).had };
            assert!(joining.is_enough(&Around { had, ..around(99) }), "nothing was written");
            let ready = Joining { heard_ready: Some(16 * 24 - 9), ..joining.clone() };
            assert!(!ready.is_enough(&around(16 * 24)), "one was there just now");
            let hopes = Joining { hope: Some(16 * 24 - 9), ..joining.clone() };
            assert!(!hopes.is_enough(&around(16 * 24)), "one will come as far just now");
            let one = Joining { donors: joining.donors.into_iter().take(1).collect(), ..hopes };
            assert!(!one.is_enough(&around(99)));
            assert!(one.is_enough(&around(99 * 24)), "the others say nothing");
        }
    }
}
