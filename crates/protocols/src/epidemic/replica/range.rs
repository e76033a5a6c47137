//! Ranges of positions, and the leaves in which they are compared.

use crate::slices::position::{Groups, Position, Slice};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Positions from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    /// The first.
    pub first: Position,
    /// The last.
    pub last: Position,
}

/// A part of all positions in which all have the same upper 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Leaf(pub u16);

/// The most parts in which a range is compared.
pub const PARTS_MAX: usize = 64;

/// Where a key stands: its hash, with which its wire form begins.
#[must_use]
pub fn position(wire: &[u8]) -> Position {
    Position(u64::from_be_bytes(*wire.first_chunk().expect("a wire key begins with its hash")))
}

/// The leaf of a position.
#[must_use]
pub fn leaf(position: Position) -> Leaf {
    Leaf(u16::try_from(position.0 >> 48).expect("16 bits are left"))
}

impl Range {
    /// Everything.
    pub const ALL: Range = Range { first: Position(0), last: Position(u64::MAX) };

    /// The positions of a slice.
    #[must_use]
    pub fn of(groups: Groups, slice: Slice) -> Range {
        let (first, last) = groups.range(slice);
        Range { first, last }
    }

    /// Those of a leaf.
    #[must_use]
    pub fn of_leaf(leaf: Leaf) -> Range {
        let first = u64::from(leaf.0) << 48;
        Range { first: Position(first), last: Position(first | u64::MAX >> 16) }
    }

    /// Whether a position is in it.
    #[must_use]
    pub fn has(&self, position: Position) -> bool {
        (self.first..=self.last).contains(&position)
    }

    /// Whether all of another range is in it.
    #[must_use]
    pub fn covers(&self, other: &Range) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Whether they have a position in common.
    #[must_use]
    pub fn meets(&self, other: &Range) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// What is in this one and not in the other.
    #[must_use]
    pub fn without(&self, other: &Range) -> Vec<Range> {
        if !self.meets(other) {
            return Vec::from([*self]);
        }
        let mut left = Vec::new();
        if self.first < other.first {
            left.push(Range { first: self.first, last: Position(other.first.0 - 1) });
        }
        if other.last < self.last {
            left.push(Range { first: Position(other.last.0 + 1), last: self.last });
        }
        left
    }

    /// The same in parts that are all in another range, or all beside it.
    #[must_use]
    pub fn cut(&self, by: &Range) -> Vec<Range> {
        let mut parts = self.without(by);
        if self.meets(by) {
            parts.push(Range { first: self.first.max(by.first), last: self.last.min(by.last) });
        }
        parts
    }

    /// The lower or the upper half of its leaves; all of it if that is one.
    #[must_use]
    pub fn half(&self, is_upper: bool) -> Range {
        let (first, last) = self.leaves();
        let middle = Range::of_leaf(Leaf(first.0 + (last.0 - first.0) / 2)).last;
        match (first == last, is_upper) {
            (true, _) => *self,
            (false, false) => Range { last: middle, ..*self },
            (false, true) => Range { first: Position(middle.0 + 1), ..*self },
        }
    }

    /// The first and the last of its leaves.
    #[must_use]
    pub fn leaves(&self) -> (Leaf, Leaf) {
        (leaf(self.first), leaf(self.last))
    }

    /// The same in so many equal parts of whole leaves; none if it cannot be.
    #[must_use]
    pub fn parts(&self, count: usize) -> Option<Vec<(Leaf, Leaf)>> {
        let (first, last) = self.leaves();
        let whole = Range { first: Range::of_leaf(first).first, last: Range::of_leaf(last).last };
        let leaves = usize::from(last.0 - first.0) + 1;
        if whole != *self || count == 0 || count > PARTS_MAX || leaves % count != 0 {
            return None;
        }
        let (width, first) = (leaves / count, usize::from(first.0));
        let leaf = |place: usize| Leaf(u16::try_from(place).expect("it is within the range"));
        let part = |part| {
            let from = first + part * width;
            (leaf(from), leaf(from + width - 1))
        };
        Some((0..count).map(part).collect())
    }

    /// Into how many parts a slice's range is cut to be compared.
    #[must_use]
    pub fn parts_usual(&self) -> usize {
        let (first, last) = self.leaves();
        (usize::from(last.0 - first.0) + 1).min(PARTS_MAX)
    }

    /// Whether it is what it says.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.first <= self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> Range {
        Range { first: Position(first), last: Position(last) }
    }

    #[test]
    fn what_is_left_of_a_range() {
        assert_eq!(range(0, 9).without(&range(3, 5)), [range(0, 2), range(6, 9)]);
        assert_eq!(range(0, 9).without(&range(0, 9)), []);
        assert_eq!(range(0, 9).without(&range(10, 12)), [range(0, 9)]);
        assert_eq!(Range::ALL.without(&range(0, 1)), [range(2, u64::MAX)]);
        assert_eq!(range(0, 9).cut(&range(3, 12)), [range(0, 2), range(3, 9)]);
        assert_eq!(range(0, 9).cut(&range(10, 12)), [range(0, 9)]);
        assert!(Range::ALL.covers(&range(0, 1)) && !range(0, 1).covers(&Range::ALL));
    }

    #[test]
    fn what_is_no_whole_leaves_is_not_cut() {
        assert!(range(1, u64::MAX).parts(1).is_none() && Range::ALL.parts(0).is_none());
        assert!(Range::ALL.parts(3).is_none() && Range::ALL.parts(128).is_none());
        assert_eq!(Range::ALL.parts(64).map(|parts| parts.len()), Some(64));
        assert_eq!(Range::ALL.parts(1), Some(Vec::from([(Leaf(0), Leaf(u16::MAX))])));
    }

    #[test]
    fn halves_are_whole_leaves_and_end_with_one() {
        let (lower, upper) = (Range::ALL.half(false), Range::ALL.half(true));
        assert_eq!(Range::ALL.without(&lower), [upper]);
        assert_eq!(upper.leaves(), (Leaf(1 << 15), Leaf(u16::MAX)));
        let three = Range { first: Position(0), last: Range::of_leaf(Leaf(2)).last };
        assert_eq!(three.half(true), Range::of_leaf(Leaf(2)));
        let one = Range::of_leaf(Leaf(7));
        assert_eq!((one.half(false), one.half(true)), (one, one));
    }

    #[test]
    fn a_slice_is_whole_leaves() {
        for log2 in 0..=crate::slices::position::LOG2_MAX {
            let groups = Groups::power(log2).expect("it is small enough");
            let range = Range::of(groups, Slice(groups.number() - 1));
            let (first, last) = range.leaves();
            let whole = (Range::of_leaf(first).first, Range::of_leaf(last).last);
            assert_eq!(whole, (range.first, range.last));
            let parts = range.parts(range.parts_usual()).expect("it is whole leaves");
            assert_eq!((parts[0].0, parts[parts.len() - 1].1), (first, last));
            assert!(parts.windows(2).all(|two| two[0].1.0 + 1 == two[1].0.0));
        }
    }
}
