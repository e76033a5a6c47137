//! Which tombstones are dropped.
//!
//! A purge is an entry of the log: every member drops the same ones at the same place, and the
//! version of absent keys rises above theirs. So it is right at any time, also while a copy is
//! made: a page without the key is what the entries up to the purge make of it, and whoever copies
//! executes those. But whoever has just read that a key is absent reads again when that version
//! rises. So tombstones stay for a while, and are dropped in one sweep, not one by one.

use crate::vsr::Op;
use quorate_kernel::time::{Span, Time};

/// How old a tombstone is at least when it is dropped, and about half of how old at most.
pub const PURGED: Span = Span::secs(60);

/// Up to which entry tombstones are old; none at first.
#[derive(Debug, Default)]
pub struct Purge {
    upto: Op,
    /// Up to which they will be, once the age has passed again.
    next: Op,
    marked_at: Option<Time>,
}

impl Purge {
    /// Tombstones of entries up to this one are old enough; so much was executed by now.
    pub fn upto(&mut self, applied: Op, age: Span, now: Time) -> Op {
        if self.marked_at.is_none_or(|marked| now - marked >= age) {
            (self.upto, self.next, self.marked_at) = (self.next, applied, Some(now));
        }
        self.upto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_is_dropped_between_one_and_two_times_the_age() {
        let mut purge = Purge::default();
        let mut upto =
            |op, secs: u64| purge.upto(Op(op), Span::secs(10), Time(secs * 1_000_000_000)).0;
        assert_eq!(upto(5, 100), 0, "when they were made is not known");
        assert_eq!(upto(9, 109), 0);
        assert_eq!(upto(12, 110), 5, "what was there ten seconds ago");
        assert_eq!(upto(90, 119), 5);
        assert_eq!(upto(91, 120), 12);
        assert_eq!(upto(99, 500), 91);
    }
}
