//! Which zxids there can be.
//!
//! When something that was acknowledged may be lost, what is left goes on in another life of the
//! tree: its changes count from the life's number above the lowest [`CHANGES_BITS`] bits, and
//! sessions of earlier lives are over.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// So many bits count the changes of one life.
const CHANGES_BITS: u32 = 44;

/// The zxid with which the life of a zxid begins.
pub(super) fn begin_of(zxid: u64) -> u64 {
    zxid >> CHANGES_BITS << CHANGES_BITS
}

/// The zxids of all lives of which somebody was told something.
#[derive(Clone, Debug, Default)]
pub(super) struct Lives {
    /// By the zxid with which a life begins: the newest one that somebody was told of.
    newest: BTreeMap<u64, u64>,
    /// So many changes may follow it unseen.
    unseen: u64,
}

impl Lives {
    /// Somebody was told of a zxid.
    pub fn told(&mut self, zxid: u64) {
        let newest = self.newest.entry(begin_of(zxid)).or_insert(zxid);
        *newest = (*newest).max(zxid);
    }

    /// At most so many changes follow the newest of a life that somebody was told of.
    pub fn unseen(&mut self, changes: usize) {
        self.unseen = changes as u64;
    }

    /// Where the first life begins behind a zxid, if somebody was told of one.
    pub fn next(&self, zxid: u64) -> Option<u64> {
        self.newest.range(zxid + 1..).next().map(|(begin, _)| *begin)
    }

    /// The zxids that changes may have, from one to another, ascending.
    pub fn zxids(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = u64> {
        let ranges: Vec<RangeInclusive<u64>> = self
            .newest
            .iter()
            .map(|(begin, newest)| from.max(*begin)..=to.min(newest + self.unseen))
            .collect();
        ranges.into_iter().flatten()
    }
}
