//! How many bytes the entries of a log take, as far as it must be known to say how much to keep.

use crate::vsr::number::Op;
use alloc::collections::VecDeque;

/// The bytes of a log's entries, in sums at some places: one for each so many bytes.
#[derive(Debug)]
pub struct Sizes {
    /// About how many bytes lie between two places.
    step: u64,
    /// The bytes of all entries that were ever appended here.
    sum: u64,
    /// Some entries, ascending, each with the sum up to it.
    places: VecDeque<(Op, u64)>,
}

impl Sizes {
    /// Of a log without entries, told to about so many bytes.
    pub fn new(step: usize) -> Sizes {
        Sizes { step: step.max(1) as u64, sum: 0, places: VecDeque::new() }
    }

    /// An entry is appended at `op`.
    pub fn push(&mut self, op: Op, bytes: usize) {
        self.sum += bytes as u64;
        let before = self.places.back().map_or(0, |(_, sum)| *sum);
        if self.sum - before >= self.step {
            self.places.push_back((op, self.sum));
        }
    }

    /// What is behind `last` is cut off.
    pub fn truncate(&mut self, last: Op) {
        while self.places.back().is_some_and(|(op, _)| *op > last) {
            self.places.pop_back();
            self.sum = self.places.back().map_or(0, |(_, sum)| *sum);
        }
    }

    /// The log lets go of what is up to `upto`.
    pub fn trim(&mut self, upto: Op) {
        while self.places.front().is_some_and(|(op, _)| *op <= upto) {
            self.places.pop_front();
        }
    }

    /// The last place behind which there are at least so many bytes.
    pub fn before(&self, bytes: usize) -> Option<Op> {
        let has_more = |(_, sum): &(Op, u64)| self.sum - sum >= bytes as u64;
        let count = self.places.partition_point(has_more);
        Some(self.places[count.checked_sub(1)?].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bytes_are_found_to_a_step() {
        let mut sizes = Sizes::new(100);
        assert_eq!(sizes.before(0), None);
        (1..=20).for_each(|op| sizes.push(Op(op), 30));
        // A place at each fourth entry.
        assert_eq!(
            [0, 1, 120, 121].map(|bytes| sizes.before(bytes)),
            [20, 16, 16, 12].map(|op| Some(Op(op)))
        );
        assert_eq!(sizes.before(481), None, "there is no place that far back");
        sizes.trim(Op(15));
        assert_eq!(sizes.before(200), None, "nor before what the log has let go of");
        sizes.truncate(Op(17));
        assert_eq!(sizes.before(0), Some(Op(16)));
        (18..=30).for_each(|op| sizes.push(Op(op), 30));
        assert_eq!(sizes.before(200), Some(Op(21)));
    }
}
