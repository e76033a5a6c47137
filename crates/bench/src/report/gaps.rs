//! Times without a success, counted as they end.

use quorate_kernel::time::{Span, Time};

/// How many of the longest gaps are kept.
pub const GAPS_KEPT: usize = 10;

/// The longest time without a success, from the first moment on when one could have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    since: Time,
    longest: Span,
}

impl Gap {
    /// Begins to count at `now`, with nothing counted yet.
    #[must_use]
    pub fn new(now: Time) -> Gap {
        Gap { since: now, longest: Span(0) }
    }

    /// Work begins again after none was asked for: the idle time is no gap.
    pub fn resume(&mut self, now: Time) {
        self.since = self.since.max(now);
    }

    /// Something succeeded, or the counting ends.
    pub fn close(&mut self, now: Time) {
        self.longest = self.longest.max(now - self.since);
        self.since = self.since.max(now);
    }

    /// The longest gap so far.
    #[must_use]
    pub fn longest(&self) -> Span {
        self.longest
    }
}

/// A gap that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// When it began: the last success before it.
    pub since: Time,
    /// How long it was.
    pub length: Span,
}

/// The longest gaps, with when they began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    since: Time,
    /// The longest first, and of equal ones the earliest.
    longest: Vec<Ended>,
    /// What is not longer is not kept.
    least: Span,
}

impl Gaps {
    /// Begins to count at `now`, with nothing counted yet.
    #[must_use]
    pub fn new(now: Time) -> Gaps {
        Gaps { since: now, longest: Vec::with_capacity(GAPS_KEPT + 1), least: Span(0) }
    }

    /// Something succeeded, or the counting ends. Costs a comparison, but for the few that are
    /// longer than most before.
    #[inline]
    pub fn close(&mut self, now: Time) {
        let length = now - self.since;
        if length > self.least {
            self.keep(length);
        }
        self.since = self.since.max(now);
    }

    #[cold]
    fn keep(&mut self, length: Span) {
        let at = self.longest.partition_point(|kept| kept.length >= length);
        self.longest.insert(at, Ended { since: self.since, length });
        self.longest.truncate(GAPS_KEPT);
        if let Some(last) = self.longest.get(GAPS_KEPT - 1) {
            self.least = last.length;
        }
    }

    /// The longest gap so far.
    #[must_use]
    pub fn longest(&self) -> Span {
        self.longest.first().map_or(Span(0), |gap| gap.length)
    }

    /// The longest gaps so far, the longest first.
    #[must_use]
    pub fn list(&self) -> &[Ended] {
        &self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time(Span::millis(millis).0)
    }

    #[test]
    fn a_gap_counts_waiting_but_not_idling() {
        let mut gap = Gap::new(at(10));
        gap.close(at(15));
        assert_eq!(gap.longest(), Span::millis(5));
        gap.resume(at(100));
        gap.close(at(103));
        assert_eq!(gap.longest(), Span::millis(5), "85 ms of idling are no gap");
        gap.close(at(150));
        gap.close(at(151));
        assert_eq!(gap.longest(), Span::millis(47));
        gap.resume(at(0));
        gap.close(at(152));
        assert_eq!(gap.longest(), Span::millis(47), "to resume never moves the clock back");
    }

    #[test]
    fn the_longest_gaps_are_kept_with_when_they_began() {
        let (mut gaps, mut now) = (Gaps::new(at(100)), 100);
        assert_eq!((gaps.longest(), gaps.list()), (Span(0), &[][..]));
        for length in [5, 0, 3, 9, 1, 1, 1, 1, 1, 1, 1, 1, 8] {
            now += length;
            gaps.close(at(now));
        }
        let list: Vec<(u64, u64)> =
            gaps.list().iter().map(|gap| (gap.since.0, gap.length.0)).collect();
        let expected = [(108, 9), (125, 8), (100, 5), (105, 3)];
        let expected: Vec<(u64, u64)> =
            expected.map(|(since, length)| (at(since).0, Span::millis(length).0)).into();
        assert_eq!(list[..4], expected[..]);
        assert_eq!(list.len(), GAPS_KEPT, "and no more");
        assert!(list[4..].iter().all(|(_, length)| *length == Span::millis(1).0));
        assert_eq!(list[4].0, at(117).0, "of equal ones the earliest stay");
        assert_eq!(gaps.longest(), Span::millis(9));
        gaps.close(at(50));
        gaps.close(at(now + 2));
        assert_eq!(gaps.list()[4].since, at(now), "the clock is never moved back");
    }
}
