//! Doubt: where a node may lack what others have.
//!
//! **Open** is what may be missing since a hole was given up. What the missing event wrote is not
//! known, so everything is in doubt at first. It ends leaf by leaf, with the first comparison in
//! which a member had no more there: its sum was the same, or it has told all that is newer.
//! Members that are written to are hardly ever equal as a whole; their leaves are, but for those of
//! the last writes.
//!
//! **Lost** is what was taken over without a copy. Siblings that lack the same are equal, so only
//! comparisons with one that had a copy end it, or with all that there are. It is stored, as in
//! [`lost`](super::lost).

use crate::epidemic::replica::leaf_set::LeafSet;
use crate::epidemic::replica::range::{Leaf, Range};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::mutant;

/// How many comparisons may be under way.
const COMPARISONS_MAX: usize = 8;

/// The leaves that are in doubt, and the comparison that may end it.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    open: LeafSet,
    pub(super) lost: LeafSet,
    /// What is stored of `lost`: the same, or more in fewer runs.
    pub(super) stored: Vec<(Leaf, Leaf)>,
    /// The last ones, the newest at the end: an answer may take longer than a period of repair.
    asked: VecDeque<Comparison>,
    /// Who was asked last of what it has a copy, and the number of that question.
    pub(super) copy_asked: Option<(NodeId, u64)>,
    /// Who has said since anything was lost that it has no copy of that either, and the leaves in
    /// which it may have some of it still, as it was not compared with there since it said so.
    lacks_too: BTreeMap<Incarnation, LeafSet>,
}

/// A comparison that was begun after the doubt.
#[derive(Clone, Debug)]
struct Comparison {
    with: NodeId,
    range: Range,
    /// Names the question: what answers an earlier one was true before the doubt.
    number: u64,
    /// Of what it has said just before that it has a copy.
    copies: Vec<Range>,
    /// The leaves of which all was listed, and the answer has not come, with the number of the
    /// question.
    listed: BTreeMap<Leaf, u64>,
}

impl Doubt {
    /// All of a range is in doubt. What members say to earlier questions ends nothing.
    pub fn begin(&mut self, range: &Range) {
        self.open.insert(range.leaves());
        self.asked.clear();
    }

    /// A range was taken over without a copy.
    pub(super) fn begin_lost(&mut self, range: &Range) {
        self.lost.insert(range.leaves());
        self.asked.clear();
        self.lacks_too.clear();
    }

    /// A member has said that it has no copy of what is lost either.
    pub(super) fn note_lacks(&mut self, member: Incarnation) {
        if !self.lacks_too.contains_key(&member) {
            self.note_copy(member.node);
            self.lacks_too.insert(member, self.lost.clone());
        }
    }

    /// A member has a copy of something that is lost, whatever it has said before.
    pub(super) fn note_copy(&mut self, member: NodeId) {
        if !mutant!("epidemic_compared_for_good") {
            self.lacks_too.retain(|known, _| known.node != member);
        }
    }

    /// Ends, within a range, what is lost of which none of these members has a copy, nor more than
    /// this node has. Each comes with its newest start that is known: an earlier one says nothing.
    pub(super) fn end_what_none_has(&mut self, range: &Range, there: &BTreeMap<NodeId, Start>) {
        self.lacks_too.retain(|known, _| {
            let start = there.get(&known.node);
            let is_old = |start: &Start| known.start < *start;
            start.is_some_and(|start| !is_old(start) || mutant!("epidemic_compared_for_good"))
        });
        let nothing = LeafSet::default();
        let mut left: Vec<&LeafSet> = Vec::new();
        for member in there.keys() {
            match self.part_of(*member) {
                Some(_) if mutant!("epidemic_some_of_it_is_nothing") => left.push(&nothing),
                Some(part) => left.push(part),
                None if mutant!("epidemic_who_is_down_has_nothing") => {}
                None => return,
            }
        }
        let is_over = |leaf: &u16| !left.iter().any(|part| part.has(Leaf(*leaf)));
        let (first, last) = range.leaves();
        let over: Vec<u16> = (first.0..=last.0).filter(is_over).collect();
        self.lost.remove(over.into_iter());
        self.forget_if_none();
    }

    /// Where a member that has no copy may have some of what is lost all the same.
    fn part_of(&self, member: NodeId) -> Option<&LeafSet> {
        let mut known = self.lacks_too.iter();
        known.find_map(|(known, part)| (known.node == member).then_some(part))
    }

    /// What is of no use without doubt.
    fn forget_if_none(&mut self) {
        if self.is_none() {
            self.asked.clear();
            self.lacks_too.clear();
        }
    }

    /// A range is not lost any more: a copy was taken over, or nothing of it is here.
    pub(super) fn end_lost(&mut self, range: &Range) {
        let (first, last) = range.leaves();
        self.lost.remove(first.0..=last.0);
    }

    /// The node joins anew: what it has missed comes with what it takes over, but for what is lost.
    pub(super) fn join_anew(&mut self) {
        let (lost, stored) = match mutant!("epidemic_loss_is_forgotten") {
            true => (LeafSet::default(), Vec::new()),
            false => (core::mem::take(&mut self.lost), core::mem::take(&mut self.stored)),
        };
        *self = Doubt { lost, stored, ..Doubt::default() };
    }

    /// Whether a leaf is in doubt.
    #[must_use]
    pub fn has(&self, leaf: Leaf) -> bool {
        self.open.has(leaf) || self.lost.has(leaf)
    }

    /// Whether any of the leaves from the first to the last is.
    #[must_use]
    pub fn has_any(&self, first: Leaf, last: Leaf) -> bool {
        self.open.has_any((first, last)) || self.lost.has_any((first, last))
    }

    /// How many leaves are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count_within(&Range::ALL)
    }

    /// How many leaves of a range are.
    #[must_use]
    pub fn count_within(&self, range: &Range) -> u32 {
        if self.is_none() {
            return 0;
        }
        let (first, last) = range.leaves();
        (first.0..=last.0).map(|leaf| u32::from(self.has(Leaf(leaf)))).sum()
    }

    fn is_none(&self) -> bool {
        self.open.is_empty() && self.lost.is_empty()
    }

    /// A member has no more in these leaves, of which it has a copy of these parts.
    fn end(&mut self, with: NodeId, leaves: impl Iterator<Item = u16> + Clone, copies: &[Range]) {
        for (_, left) in self.lacks_too.iter_mut().filter(|(known, _)| known.node == with) {
            left.remove(leaves.clone());
        }
        let is_copied = |leaf: &u16| {
            let of_leaf = Range::of_leaf(Leaf(*leaf));
            copies.iter().any(|copy| copy.covers(&of_leaf))
                || mutant!("epidemic_who_lacks_the_same_ends_doubt")
        };
        self.open.remove(leaves.clone());
        self.lost.remove(leaves.filter(is_copied));
        self.forget_if_none();
    }

    /// A member is asked whether it has the same.
    pub fn ask(&mut self, with: NodeId, range: Range, number: u64) {
        self.ask_copy(with, range, number, Vec::new());
    }

    /// The same of one that has said that it has a copy of these parts.
    pub(super) fn ask_copy(&mut self, with: NodeId, range: Range, number: u64, copies: Vec<Range>) {
        if !self.is_none() {
            if self.asked.len() == COMPARISONS_MAX {
                self.asked.pop_front();
            }
            let listed = BTreeMap::new();
            self.asked.push_back(Comparison { with, range, number, copies, listed });
        }
    }

    /// The range of the question that this node answers, and of what it has a copy there.
    fn asked(&self, from: NodeId, number: u64) -> Option<(Range, Vec<Range>)> {
        let is_it = |asked: &&Comparison| {
            let is_late = asked.number != number && !mutant!("epidemic_late_comparison_ends_doubt");
            asked.with == from && !is_late
        };
        self.asked.iter().rev().find(is_it).map(|asked| (asked.range, asked.copies.clone()))
    }

    /// It has.
    pub fn end_equal(&mut self, from: NodeId, number: u64) {
        if let Some((range, copies)) = self.asked(from, number) {
            let (first, last) = range.leaves();
            self.end(from, first.0..=last.0, &copies);
        }
    }

    /// It has something else in these parts, and there in these leaves. If that is not the whole of
    /// it, nothing is known of others.
    pub fn end_leaves(
        &mut self,
        (from, number): (NodeId, u64),
        parts: &[(Leaf, Leaf)],
        differing: &[Leaf],
        is_whole: bool,
    ) {
        let asked = self.asked(from, number);
        let Some((range, copies)) =
            asked.filter(|_| !mutant!("epidemic_doubts_until_all_is_equal"))
        else {
            return;
        };
        let differing: BTreeSet<Leaf> = differing.iter().copied().collect();
        debug_assert!(
            differing.iter().all(|leaf| parts.iter().any(|it| (it.0..=it.1).contains(leaf)))
        );
        let all = [range.leaves()];
        let known = if is_whole { &all[..] } else { parts };
        let known = known.iter().flat_map(|(first, last)| first.0..=last.0);
        self.end(from, known.filter(|leaf| !differing.contains(&Leaf(*leaf))), &copies);
    }

    /// Nothing else is this node's to answer for any more; what was lost of the rest is still.
    pub fn keep_within(&mut self, range: &Range) {
        let (first, last) = range.leaves();
        self.open.remove((0..=u16::MAX).filter(|leaf| !(first.0..=last.0).contains(leaf)));
        self.asked.clear();
        self.lacks_too.clear();
    }

    /// It is told all that this node has in a leaf.
    pub fn list(&mut self, to: NodeId, leaf: Leaf, number: u64) {
        if let Some(asked) = self.asked.iter_mut().rev().find(|asked| asked.with == to) {
            asked.listed.insert(leaf, number);
        }
    }

    /// It has told all that is newer in what was listed in this question, to the end of a leaf. A
    /// part of the leaf may have been listed, in this comparison or in one before the doubt.
    pub fn end_listed(&mut self, from: NodeId, leaf: Leaf, number: u64) {
        let is_it = |one: &u64| *one == number || mutant!("epidemic_late_answer_ends_doubt");
        let is_listed = |asked: &&mut Comparison| {
            asked.with == from && asked.listed.get(&leaf).is_some_and(is_it)
        };
        if let Some(asked) = self.asked.iter_mut().find(is_listed) {
            asked.listed.remove(&leaf);
            let copies = asked.copies.clone();
            self.end(from, core::iter::once(leaf.0), &copies);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_leaf_by_leaf_with_what_was_asked_since() {
        let (mut doubt, other, stranger) = (Doubt::default(), NodeId(2), NodeId(3));
        doubt.ask(other, Range::ALL, 1);
        doubt.begin(&Range::ALL);
        doubt.end_equal(other, 1);
        assert_eq!(doubt.count(), 1 << 16, "that was asked before");
        doubt.ask(other, Range::ALL, 2);
        doubt.end_equal(stranger, 2);
        assert_eq!(doubt.count(), 1 << 16, "that one was not asked");
        doubt.end_equal(other, 1);
        assert_eq!(doubt.count(), 1 << 16, "that is the late answer to what was asked before");
        let parts = [(Leaf(0), Leaf(9))];
        doubt.end_leaves((other, 1), &parts, &[Leaf(3)], true);
        assert_eq!(doubt.count(), 1 << 16, "so is that");
        // Another one is under way by then.
        doubt.ask(other, Range::ALL, 3);
        doubt.end_leaves((other, 2), &parts, &[Leaf(3), Leaf(5)], true);
        assert!(doubt.count() == 2 && doubt.has(Leaf(3)) && doubt.has(Leaf(5)));
        doubt.end_listed(other, Leaf(3), 7);
        assert!(doubt.has(Leaf(3)), "not all of it was listed");
        doubt.list(other, Leaf(3), 7);
        doubt.end_listed(other, Leaf(3), 6);
        assert!(doubt.has(Leaf(3)), "that was the end of a leaf, or was asked before");
        doubt.end_listed(other, Leaf(3), 7);
        assert!(!doubt.has(Leaf(3)) && doubt.has(Leaf(5)));
        doubt.end_equal(other, 2);
        assert!(doubt.count() == 0 && doubt.is_none());
    }

    #[test]
    fn of_what_was_not_told_nothing_is_known() {
        let (mut doubt, other) = (Doubt::default(), NodeId(2));
        doubt.begin(&Range::ALL);
        doubt.ask(other, Range::ALL, 1);
        let parts = [(Leaf(8), Leaf(9)), (Leaf(0), Leaf(3))];
        doubt.end_leaves((other, 1), &parts, &[Leaf(3)], false);
        assert_eq!(doubt.count(), (1 << 16) - 5);
        assert!(doubt.has(Leaf(3)) && doubt.has(Leaf(4)) && !doubt.has(Leaf(9)));
        // A node that answers for a half alone has nothing else to doubt.
        let half = Range::of_leaf(Leaf(4));
        doubt.keep_within(&half);
        assert!(doubt.count() == 1 && doubt.has(Leaf(4)));
        doubt.end_equal(other, 1);
        assert_eq!(doubt.count(), 1, "that was asked before");
        doubt.ask(other, half, 2);
        doubt.end_equal(other, 2);
        doubt.keep_within(&Range::ALL);
        assert!(doubt.is_none());
    }

    /// Who lacks the same is equal, too.
    #[test]
    fn what_was_lost_ends_where_one_that_had_it_has_no_more() {
        let (mut doubt, other, half) = (Doubt::default(), NodeId(2), Range::ALL.half(false));
        doubt.begin_lost(&Range::ALL);
        doubt.begin(&Range::of_leaf(Leaf(1)));
        doubt.ask(other, Range::ALL, 1);
        doubt.end_equal(other, 1);
        assert_eq!(doubt.count(), 1 << 16, "it may lack the same");
        doubt.ask_copy(other, Range::ALL, 2, Vec::from([half]));
        doubt.end_leaves((other, 2), &[(Leaf(0), Leaf(9))], &[Leaf(3)], true);
        assert_eq!(doubt.count(), (1 << 15) + 1, "of the other half it has no copy");
        doubt.list(other, Leaf(3), 7);
        doubt.end_listed(other, Leaf(3), 7);
        assert!(!doubt.has(Leaf(3)) && doubt.has(Leaf(1 << 15)));
        doubt.join_anew();
        doubt.keep_within(&half);
        assert_eq!((doubt.count(), doubt.count_within(&half)), (1 << 15, 0), "it stays");
        doubt.end_lost(&Range::ALL);
        assert!(doubt.is_none());
    }

    /// One that has no copy of all may have some of it.
    #[test]
    fn what_nobody_has_a_copy_of_ends_where_all_were_compared_with() {
        let (mut doubt, some, other) = (Doubt::default(), NodeId(2), NodeId(3));
        let both = BTreeMap::from([(some, Start(1)), (other, Start(1))]);
        let first = |node| Incarnation { node, start: Start(1) };
        doubt.begin_lost(&Range::ALL);
        doubt.note_lacks(first(some));
        doubt.end_what_none_has(&Range::ALL, &both);
        assert_eq!(doubt.count(), 1 << 16, "one of them has said nothing");
        doubt.note_lacks(first(other));
        doubt.end_what_none_has(&Range::ALL, &both);
        assert_eq!(doubt.count(), 1 << 16, "neither was compared with");
        doubt.ask(other, Range::ALL, 1);
        doubt.end_equal(other, 1);
        doubt.ask(some, Range::ALL, 2);
        doubt.end_leaves((some, 2), &[(Leaf(0), Leaf(9))], &[Leaf(3)], true);
        doubt.note_lacks(first(other));
        doubt.end_what_none_has(&Range::ALL, &both);
        assert!(doubt.count() == 1 && doubt.has(Leaf(3)), "it has more there");
        doubt.list(some, Leaf(3), 7);
        doubt.end_listed(some, Leaf(3), 7);
        doubt.end_what_none_has(&Range::ALL, &both);
        assert!(doubt.is_none());
        doubt.begin_lost(&Range::ALL);
        doubt.end_what_none_has(&Range::ALL, &BTreeMap::from([(some, Start(1))]));
        assert_eq!(doubt.count(), 1 << 16, "that was said of what was lost before");
    }

    /// It may have taken over a copy from one that was away.
    #[test]
    fn what_a_member_was_compared_with_ends_with_its_start_and_when_it_has_a_copy() {
        let (mut doubt, other) = (Doubt::default(), NodeId(2));
        let there = |start| BTreeMap::from([(other, Start(start))]);
        let member = Incarnation { node: other, start: Start(1) };
        doubt.begin_lost(&Range::ALL);
        doubt.note_lacks(member);
        doubt.ask(other, Range::ALL, 1);
        doubt.end_equal(other, 1);
        doubt.note_copy(other);
        doubt.end_what_none_has(&Range::ALL, &there(1));
        assert_eq!(doubt.count(), 1 << 16, "it has a copy by now");
        doubt.note_lacks(member);
        doubt.ask(other, Range::ALL, 2);
        doubt.end_equal(other, 2);
        doubt.end_what_none_has(&Range::ALL, &there(2));
        assert_eq!(doubt.count(), 1 << 16, "it has begun anew");
    }
}
