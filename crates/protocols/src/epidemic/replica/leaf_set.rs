//! Sets of leaves.

use crate::epidemic::replica::range::{Leaf, Range};
use alloc::vec::Vec;

/// How many words of 64 leaves there are.
const WORDS: usize = 1 << 10;
/// The most runs in which a set is told; more are told as whole blocks.
const RUNS_MAX: usize = 32;
/// How many leaves a block has, so that no more runs of blocks than that can be.
const BLOCK: u16 = 1 << 10;

/// A set of leaves: a bit for each; no words of an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::epidemic) struct LeafSet {
    words: Vec<u64>,
}

impl LeafSet {
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn insert(&mut self, (first, last): (Leaf, Leaf)) {
        self.words.resize(WORDS, 0);
        for leaf in first.0..=last.0 {
            self.words[usize::from(leaf / 64)] |= 1 << (leaf % 64);
        }
    }

    pub fn remove(&mut self, leaves: impl Iterator<Item = u16>) {
        if self.is_empty() {
            return;
        }
        for leaf in leaves {
            self.words[usize::from(leaf / 64)] &= !(1 << (leaf % 64));
        }
        if self.words.iter().all(|word| *word == 0) {
            self.words.clear();
        }
    }

    pub fn has(&self, leaf: Leaf) -> bool {
        let word = self.words.get(usize::from(leaf.0 / 64));
        word.is_some_and(|word| word & (1 << (leaf.0 % 64)) != 0)
    }

    pub fn has_any(&self, (first, last): (Leaf, Leaf)) -> bool {
        !self.is_empty() && (first.0..=last.0).any(|leaf| self.has(Leaf(leaf)))
    }

    fn all_runs(&self) -> Vec<(Leaf, Leaf)> {
        let mut runs: Vec<(Leaf, Leaf)> = Vec::new();
        if self.is_empty() {
            return runs;
        }
        for leaf in (0..=u16::MAX).map(Leaf).filter(|leaf| self.has(*leaf)) {
            match runs.last_mut() {
                Some(run) if run.1.0 + 1 == leaf.0 => run.1 = leaf,
                _ => runs.push((leaf, leaf)),
            }
        }
        runs
    }

    /// Its runs of leaves, ascending; where there are many, more than it has, in fewer runs.
    pub fn runs(&self) -> Vec<(Leaf, Leaf)> {
        let runs = self.all_runs();
        if runs.len() <= RUNS_MAX {
            return runs;
        }
        let mut blocks = LeafSet::default();
        for (first, last) in runs {
            let end = last.0 / BLOCK * BLOCK + (BLOCK - 1);
            blocks.insert((Leaf(first.0 / BLOCK * BLOCK), Leaf(end)));
        }
        blocks.all_runs()
    }

    /// The same within a range, as ranges.
    pub fn within(&self, range: &Range) -> Vec<Range> {
        let whole = |(first, last): &(Leaf, Leaf)| {
            let (first, last) = (Range::of_leaf(*first).first, Range::of_leaf(*last).last);
            Range { first: first.max(range.first), last: last.min(range.last) }
        };
        let runs = self.runs();
        runs.iter().map(whole).filter(Range::is_sound).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_many_runs_is_told_as_more_in_few() {
        let mut set = LeafSet::default();
        assert!(set.is_empty() && set.runs().is_empty() && set.within(&Range::ALL).is_empty());
        set.insert((Leaf(3), Leaf(5)));
        set.insert((Leaf(u16::MAX), Leaf(u16::MAX)));
        assert_eq!(set.runs(), [(Leaf(3), Leaf(5)), (Leaf(u16::MAX), Leaf(u16::MAX))]);
        let half = Range { last: Range::of_leaf(Leaf(4)).last, ..Range::ALL };
        let told = Range { first: Range::of_leaf(Leaf(3)).first, ..half };
        assert_eq!(set.within(&half), [told], "of it what is there");
        (0..100).for_each(|place| set.insert((Leaf(100 + 2 * place), Leaf(100 + 2 * place))));
        let runs = set.runs();
        assert!(runs.len() <= RUNS_MAX, "{runs:?}");
        let covers =
            |leaf: u16| runs.iter().any(|(first, last)| (first.0..=last.0).contains(&leaf));
        assert!((0..=u16::MAX).all(|leaf| !set.has(Leaf(leaf)) || covers(leaf)));
        set.remove(0..=u16::MAX);
        assert_eq!(set, LeafSet::default());
    }
}
