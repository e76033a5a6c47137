//! Doubt: where a node may lack what others have, since a hole was given up.
//!
//! What the missing event wrote is not known, so everything is in doubt at first. It ends leaf by
//! leaf, with the first comparison in which a member had no more there: its sum was the same, or it
//! has told all that is newer. Members that are written to are hardly ever equal as a whole; their
//! leaves are, but for those of the last writes.

use crate::epidemic::replica::range::{Leaf, Range};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;

/// How many words of 64 leaves there are.
const WORDS: usize = 1 << 10;
/// How many comparisons may be under way.
const COMPARISONS_MAX: usize = 8;

/// The leaves that are in doubt, and the comparison that may end it.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    /// A bit for each leaf; no words where none is in doubt.
    words: Vec<u64>,
    /// The last ones, the newest at the end: an answer may take longer than a period of repair.
    asked: VecDeque<Comparison>,
}

/// A comparison that was begun after the doubt.
#[derive(Clone, Debug)]
struct Comparison {
    with: NodeId,
    range: Range,
    /// Names the question: what answers an earlier one was true before the doubt.
    number: u64,
    /// The leaves of which all was listed, and the answer has not come, with the number of the
    /// question.
    listed: BTreeMap<Leaf, u64>,
}

impl Doubt {
    /// All of a range is in doubt. What members say to earlier questions ends nothing.
    pub fn begin(&mut self, range: &Range) {
        self.words.resize(WORDS, 0);
        self.asked.clear();
        let (first, last) = range.leaves();
        for leaf in first.0..=last.0 {
            self.words[usize::from(leaf / 64)] |= 1 << (leaf % 64);
        }
    }

    /// Whether a leaf is in doubt.
    #[must_use]
    pub fn has(&self, leaf: Leaf) -> bool {
        let word = self.words.get(usize::from(leaf.0 / 64));
        word.is_some_and(|word| word & (1 << (leaf.0 % 64)) != 0)
    }

    /// Whether any of the leaves from the first to the last is.
    #[must_use]
    pub fn has_any(&self, first: Leaf, last: Leaf) -> bool {
        !self.words.is_empty() && (first.0..=last.0).any(|leaf| self.has(Leaf(leaf)))
    }

    /// How many leaves are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    fn end(&mut self, leaves: impl Iterator<Item = u16>) {
        for leaf in leaves {
            self.words[usize::from(leaf / 64)] &= !(1 << (leaf % 64));
        }
        if self.words.iter().all(|word| *word == 0) {
            self.words.clear();
            self.asked.clear();
        }
    }

    /// A member is asked whether it has the same.
    pub fn ask(&mut self, with: NodeId, range: Range, number: u64) {
        if !self.words.is_empty() {
            if self.asked.len() == COMPARISONS_MAX {
                self.asked.pop_front();
            }
            self.asked.push_back(Comparison { with, range, number, listed: BTreeMap::new() });
        }
    }

    /// The range of the question that this node answers.
    fn asked(&self, from: NodeId, number: u64) -> Option<Range> {
        let is_it = |asked: &&Comparison| {
            let is_late = asked.number != number && !mutant!("epidemic_late_comparison_ends_doubt");
            asked.with == from && !is_late
        };
        self.asked.iter().rev().find(is_it).map(|asked| asked.range)
    }

    /// It has.
    pub fn end_equal(&mut self, from: NodeId, number: u64) {
        if let Some(range) = self.asked(from, number) {
            let (first, last) = range.leaves();
            self.end(first.0..=last.0);
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
        let Some(range) = asked.filter(|_| !mutant!("epidemic_doubts_until_all_is_equal")) else {
            return;
        };
        let differing: BTreeSet<Leaf> = differing.iter().copied().collect();
        debug_assert!(
            differing.iter().all(|leaf| parts.iter().any(|it| (it.0..=it.1).contains(leaf)))
        );
        let all = [range.leaves()];
        let known = if is_whole { &all[..] } else { parts };
        let known = known.iter().flat_map(|(first, last)| first.0..=last.0);
        self.end(known.filter(|leaf| !differing.contains(&Leaf(*leaf))));
    }

    /// Nothing else is this node's to answer for any more.
    pub fn keep_within(&mut self, range: &Range) {
        if !self.words.is_empty() {
            let (first, last) = range.leaves();
            self.end((0..=u16::MAX).filter(|leaf| !(first.0..=last.0).contains(leaf)));
            self.asked.clear();
        }
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
            self.end(core::iter::once(leaf.0));
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
        assert!(doubt.count() == 0 && doubt.words.is_empty());
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
        assert!(doubt.words.is_empty());
    }
}
