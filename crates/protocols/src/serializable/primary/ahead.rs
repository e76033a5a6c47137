//! How much is remembered that is ahead of time, and when that is counted anew.
//!
//! To count it is to look at all that is remembered, so it is done when it may change what is done:
//! when much was noted since, and now and then while there is much.

use crate::serializable::rules::AHEAD_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// How long a count is good enough while there is much, though little was noted since.
const COUNTED: Span = Span::secs(1);

/// About how many bytes are remembered, or will be when the tail is executed, that are ahead of
/// time.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// No less than there are.
    bytes: usize,
    /// How many there were when they were counted last.
    counted: usize,
    counted_at: Time,
}

impl Ahead {
    /// What was counted.
    pub fn counted(bytes: usize, now: Time) -> Ahead {
        Ahead { bytes, counted: bytes, counted_at: now }
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many more.
    pub fn note(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Some were dropped, so there are fewer.
    pub fn note_dropped(&mut self) {
        self.counted = 0;
    }

    /// Whether they are to be counted anew, where what is remembered at all `is_much` or not. What
    /// was noted only grows, and who goes on may be refused for it: so they are counted long before
    /// that.
    pub fn is_due(&self, is_much: bool, now: Time) -> bool {
        let part = if mutant!("txn_counts_ahead_late") { 1 } else { 4 };
        let is_grown = self.bytes >= self.counted + AHEAD_BYTES_MAX / part;
        let is_full = self.bytes >= AHEAD_BYTES_MAX;
        let is_old = now - self.counted_at >= COUNTED || mutant!("txn_counts_at_each_tick");
        self.bytes > 0 && (is_grown || ((is_much || is_full) && is_old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_is_counted_when_that_may_change_something() {
        let (now, later) = (Time(5), Time(5) + COUNTED);
        let noted = |counted: usize, more: usize| {
            let mut ahead = Ahead::counted(counted, now);
            ahead.note(more);
            ahead
        };
        let quarter = AHEAD_BYTES_MAX / 4;
        assert!(!noted(0, quarter - 1).is_due(false, later));
        assert!(noted(0, quarter).is_due(false, now), "much was noted");
        assert!(
            !noted(3 * quarter, quarter - 1).is_due(false, later),
            "there is as much as before"
        );
        assert!(!noted(4 * quarter, 0).is_due(false, now), "it was just counted");
        assert!(!noted(4 * quarter, 0).is_due(true, now));
        assert!(noted(4 * quarter, 0).is_due(false, later), "time catches up");
        assert!(noted(quarter, 0).is_due(true, later));
        assert!(!noted(0, 0).is_due(true, later), "there is nothing to count");
        let mut dropped = noted(4 * quarter, 0);
        dropped.note_dropped();
        assert!(dropped.is_due(false, now), "others wait for that");
    }
}
