//! Where nodes and keys stand, and how 2^64 places are cut into slices.

use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::rng::mix;
use serde::{Deserialize, Serialize};

/// The most slices, as a power of two: with six members each they have 393,216 nodes.
pub const LOG2_MAX: u8 = 16;

/// A place among the 2^64 of a node, or of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(pub u64);

impl Position {
    /// Where a node stands for its whole life. Its id is 64 random bits, drawn once.
    #[must_use]
    pub const fn of(node: NodeId) -> Position {
        Position(mix(node.0))
    }
}

/// A number of slices: a power of two.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Groups(u8);

/// One of the slices, counted from 0 in the order of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slice(pub u32);

impl Groups {
    /// One slice for everything.
    pub const ONE: Groups = Groups(0);

    /// Two to this power; none if that are more slices than there may be.
    #[must_use]
    pub const fn power(log2: u8) -> Option<Groups> {
        if log2 <= LOG2_MAX { Some(Groups(log2)) } else { None }
    }

    /// Which power of two it is.
    #[must_use]
    pub const fn log2(self) -> u8 {
        self.0
    }

    /// How many slices.
    #[must_use]
    pub const fn number(self) -> u32 {
        1 << self.0
    }

    /// Whether a peer may say it.
    #[must_use]
    pub const fn is_sound(self) -> bool {
        self.0 <= LOG2_MAX
    }

    /// The slice in which a position lies: its uppermost bits.
    #[must_use]
    pub fn slice(self, position: Position) -> Slice {
        if mutant!("slices_by_float") {
            let fraction = position.0 as f64 / 18_446_744_073_709_551_616.0;
            let place = fraction * f64::from(self.number());
            return Slice(place as u32 + u32::from(place > f64::from(place as u32)) - 1);
        }
        // A shift by all 64 bits would be undefined: with one slice there is no choice.
        let upper = position.0.checked_shr(64 - u32::from(self.0)).unwrap_or(0);
        Slice(u32::try_from(upper).expect("there are fewer than 2^32 slices"))
    }

    /// The first position of a slice, and the last.
    #[must_use]
    pub fn range(self, slice: Slice) -> (Position, Position) {
        assert!(slice.0 < self.number(), "there is such a slice");
        let width = 64 - u32::from(self.0);
        let first = u64::from(slice.0).checked_shl(width).unwrap_or(0);
        let rest = u64::MAX.checked_shr(u32::from(self.0)).unwrap_or(0);
        (Position(first), Position(first | rest))
    }
}

const _: () = assert!(LOG2_MAX < 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_exact_and_zero_is_in_the_first_slice() {
        for log2 in 0..=LOG2_MAX {
            let groups = Groups::power(log2).expect("it is small enough");
            assert_eq!(groups.slice(Position(0)), Slice(0));
            assert_eq!(groups.slice(Position(u64::MAX)), Slice(groups.number() - 1));
            let last = groups.number() - 1;
            for slice in [0, 1, last / 2, last / 2 + 1, last].map(|place| Slice(place.min(last))) {
                let (first, end) = groups.range(slice);
                assert_eq!((groups.slice(first), groups.slice(end)), (slice, slice));
                if let Some(before) = first.0.checked_sub(1) {
                    assert_eq!(groups.slice(Position(before)), Slice(slice.0 - 1));
                }
            }
        }
        assert!(Groups::power(LOG2_MAX + 1).is_none());
    }

    #[test]
    fn a_slice_is_cut_into_two_that_follow_each_other() {
        let (four, eight) = (Groups(2), Groups(3));
        for word in 0..1000 {
            let position = Position(mix(word));
            assert_eq!(eight.slice(position).0 / 2, four.slice(position).0);
        }
    }
}
