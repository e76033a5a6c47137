//! Ranges that a node has no more: it keeps them for a while, and until they are in good hands.

use crate::epidemic::message::{LISTED_MAX, Message, Page};
use crate::epidemic::replica::range::{Leaf, Range};
use crate::epidemic::state::{Former, Open};
use crate::epidemic::{Context, Epidemic};
use crate::epto::LogicalTime;
use crate::slices::position::{LOG2_MAX, Position};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

/// How many leaves of a range are told in a period.
const LEAVES_MAX: usize = 16;
/// How many keys are dropped in a round.
const DROPPED_MAX: usize = 256;
/// The most ranges that are kept: one for each halving, as they are parts of each other.
pub(super) const FORMER_MAX: usize = 2 * LOG2_MAX as usize;

impl Epidemic {
    /// The slice has become smaller: what is left of the range is handed over.
    fn give_up(&mut self, range: Range, members: Vec<NodeId>, since: LogicalTime) {
        let until = self.state.round + self.settings.keep_rounds;
        let (first, last) = range.leaves();
        let open =
            self.state.store.sums(first, last).map(|(leaf, _)| (leaf, Open::default())).collect();
        let state = &mut self.state;
        state.behind.give_up(&range, since, &mut state.writes);
        state.former.push(Former { range, until, since, members, open });
        probe!("epidemic/range_given_up");
    }

    /// Gives up all that is here of other ranges: what was this node's, what it was taking over,
    /// and what it finds on its disk when it starts. It has heard of what was deleted there up to
    /// `since`, or up to when it gave a part up.
    pub(in crate::epidemic) fn give_up_found(&mut self, members: Vec<NodeId>, since: LogicalTime) {
        let Some(range) = self.state.range() else { return };
        let mut others = Range::ALL.without(&range);
        for former in &self.state.former {
            others = others.iter().flat_map(|other| other.without(&former.range)).collect();
        }
        let parts = |other: &Range| match mutant!("epidemic_found_is_as_young_as_the_disk") {
            true => Vec::from([(*other, since)]),
            false => self.state.behind.parts(other, since),
        };
        let parts: Vec<(Range, LogicalTime)> = others.iter().flat_map(parts).collect();
        for (part, since) in parts {
            let (first, last) = part.leaves();
            if self.state.store.sums(first, last).next().is_some() {
                probe!("epidemic/range_found");
                self.give_up(part, members.clone(), since);
            }
        }
    }

    /// A range is this node's again, or a part of it. What it has of it may be deleted elsewhere,
    /// and the tombstones purged: then it is dropped.
    pub(super) fn take_back(&mut self, range: &Range) {
        for former in core::mem::take(&mut self.state.former) {
            if self.is_old(&former) && former.range.meets(range) {
                probe!("epidemic/former_too_old");
                let first = former.range.first.max(range.first);
                let part = Range { first, last: former.range.last.min(range.last) };
                self.state.drop_part(&part);
            }
            for left in former.range.without(range) {
                let mut former = Former { range: left, ..former.clone() };
                former.open.retain(|leaf, _| left.meets(&Range::of_leaf(*leaf)));
                self.state.former.push(former);
            }
        }
    }

    /// Whether a range was given up for so long that tombstones are purged which it lacks: what is
    /// in it may be deleted elsewhere.
    fn is_old(&self, former: &Former) -> bool {
        let now = self.state.last.map_or(0, |last| last.time.0);
        let is_old = now.saturating_sub(former.since.0) > self.settings.grace;
        is_old && !mutant!("epidemic_former_never_old")
    }

    /// A period of repair has passed: who has the ranges now is told what is in some of their
    /// leaves.
    pub(in crate::epidemic) fn on_former_round(&mut self, cx: &mut Context<'_>) {
        // Who has lost its place does not know how long it was away, nor how old these are.
        if self.state.ready.is_none() {
            return;
        }
        let cyclon = &self.state.cyclon;
        let mut questions = Vec::new();
        for (place, former) in self.state.former.iter().enumerate() {
            if self.is_old(former) {
                continue;
            }
            let range = former.range;
            let is_there = |node: &NodeId| range.has(Position::of(*node));
            let neighbours = cyclon.view().iter().map(|peer| peer.who.node);
            let known = former.members.iter().copied().chain(neighbours);
            let known: Vec<NodeId> = known.filter(is_there).collect();
            for leaf in former.open.keys().take(LEAVES_MAX) {
                let Some(groups) = self.state.slices.groups() else { continue };
                let slice = groups.slice(Range::of_leaf(*leaf).first);
                let has_leaf = |node: &&NodeId| groups.slice(Position::of(**node)) == slice;
                let members: Vec<&NodeId> = known.iter().filter(has_leaf).collect();
                let Some(member) = cx.rng.pick(&members).map(|node| **node) else { continue };
                questions.push((place, *leaf, member));
            }
        }
        for (place, leaf, member) in questions {
            self.list_former(place, leaf, member, cx);
        }
    }

    /// Tells a node the next page of a leaf of a range that was given up.
    fn list_former(&mut self, place: usize, leaf: Leaf, member: NodeId, cx: &mut Context<'_>) {
        self.state.questions += 1;
        let number = self.state.questions;
        let open = self.state.former[place].open.get_mut(&leaf).expect("it is handed over");
        open.asked.get_or_insert(number);
        let after = open.after.clone();
        let of_leaf = Range::of_leaf(leaf);
        let (held, until) = self.state.store.list(&of_leaf, after.as_ref(), LISTED_MAX);
        let page = Page { number, leaf, until };
        cx.fx.send(member, Message::Listed { page, after, held });
    }

    /// A node that is ready there answers what was listed. If it would like nothing of it, it has
    /// all of it, or newer, durably. An answer to what was asked before says nothing of this page.
    pub(in crate::epidemic) fn on_former_records(&mut self, page: Option<Page>, has_all: bool) {
        let Some(Page { number, leaf, until }) = page.filter(|_| has_all) else { return };
        let of_leaf = Range::of_leaf(leaf);
        invariant!(of_leaf.is_sound(), "a leaf is a range");
        for former in self.state.former.iter_mut().filter(|one| one.range.covers(&of_leaf)) {
            let Some(open) = former.open.get_mut(&leaf) else { continue };
            let is_of_it = open.asked.is_some_and(|asked| asked <= number);
            if !is_of_it && !mutant!("epidemic_late_answer_ends_a_leaf") {
                continue;
            }
            match &until {
                Some(_) => *open = Open { after: until.clone(), asked: None },
                None => _ = former.open.remove(&leaf),
            }
        }
        invariant!(self.state.writes.is_empty(), "what is in good hands stays for a while");
    }

    /// A round has passed: what is in good hands for long enough is dropped.
    pub(in crate::epidemic) fn on_drop_round(&mut self, cx: &mut Context<'_>) {
        let round = self.state.round;
        let is_due = |former: &Former| {
            former.until <= round
                && (former.open.is_empty()
                    || self.is_old(former)
                    || mutant!("epidemic_range_dropped"))
        };
        let Some(place) = self.state.former.iter().position(is_due) else { return };
        let state = &mut self.state;
        let range = state.former[place].range;
        state.behind.begin_to_drop(&range, &mut state.writes);
        state.seen.forget_range(&range, &mut state.writes);
        if state.store.drop_range(&range, DROPPED_MAX, &mut state.writes) {
            probe!("epidemic/range_dropped");
            state.former.remove(place);
            state.behind.drop(&range, &mut state.writes);
            state.forget_lost(&range);
        }
        self.flush(cx);
    }
}
