//! When a replica asks its peers less often than every interval: when it has nothing to tell and
//! nothing to learn, and they have recently said the same.
//!
//! Whoever has something to tell asks, and one exchange goes both ways. So it is enough that each
//! looks at itself: a replica is **quiet** while every update that it knows of is known to all
//! replicas of its key, all its contexts are stripped, and no former actor is left to be closed.
//! From a new dot, or a new actor, on it asks every interval again. A quiet replica that was
//! answered for [`ROUNDS`], each time with no object, backs off: two intervals at first, twice as
//! long after each such answer, up to [`Limits::backoff_intervals`](crate::causal::Limits). A peer
//! that does not answer is not waited for longer than before, and a new map of the partitions ends
//! every backoff.

use crate::causal::map::{Map, Shape};
use crate::causal::replicate::replica::Replica;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// So many answers must have come from each peer, as it were, before a replica backs off.
const ROUNDS: u64 = 4;
/// The longest backoff, in intervals.
pub(crate) const INTERVALS_MAX: u64 = 128;

/// How long one replica does not ask.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// How many answers without an object have come in a row.
    even: u64,
    /// It does not ask before.
    until: Time,
    /// The version of the map by which it was quiet.
    map: u64,
}

impl Backoff {
    /// Whether a replica that is quiet, or not, by this version of the map does not ask now.
    pub fn goes_on(&mut self, is_quiet: bool, map: u64, now: Time) -> bool {
        if !is_quiet || self.map != map {
            *self = Backoff { map, ..Backoff::default() };
        }
        now < self.until
    }

    /// A peer has answered; `is_even` if it told of no object.
    pub fn note(&mut self, is_even: bool, peers: usize, (interval, most): (Span, u64), now: Time) {
        if !is_even {
            return self.end();
        }
        self.even += 1;
        let beyond = self.even.saturating_sub(ROUNDS * peers as u64);
        let beyond = beyond.min(u64::from(most.ilog2()));
        if beyond > 0 {
            probe!("causal/backs_off");
            self.until = now + Span(interval.0 << beyond);
        }
        // Also if the interval was shortened meanwhile: who has backed off counts on, and is set
        // anew.
        assert!(self.until <= now + Span(interval.0 * most), "a backoff is bounded");
    }

    /// There is something to tell or to learn.
    pub fn end(&mut self) {
        *self = Backoff { map: self.map, ..Backoff::default() };
    }
}

impl Replica {
    /// Whether it has nothing to tell and nothing to learn, as far as it can know.
    pub(super) fn is_quiet(&self, map: &Map, shape: Shape) -> bool {
        self.is_refilled(map, shape)
            && self.record.is_joined
            && self.dot_keys.is_empty()
            && self.unstripped.is_empty()
            && self.record.witnesses.is_empty()
            && !self.has_open_former(map)
    }
}

#[test]
fn backoffs_grow_after_some_rounds_and_end_at_once() {
    let (interval, mut backoff) = (Span::millis(100), Backoff::default());
    let at = |intervals: u64| Time(0) + Span(interval.0 * intervals);
    assert!(!backoff.goes_on(true, 7, at(1)));
    (0..4 * ROUNDS).for_each(|_| backoff.note(true, 4, (interval, 32), at(1)));
    assert!(!backoff.goes_on(true, 7, at(1)), "not every peer may have answered often");
    let mut now = 1;
    for length in [2, 4, 8, 16, 32, 32] {
        backoff.note(true, 4, (interval, 32), at(now));
        assert!(backoff.goes_on(true, 7, at(now + length - 1)));
        now += length;
        assert!(!backoff.goes_on(true, 7, at(now)));
    }
    backoff.note(true, 4, (interval, 32), at(now));
    assert!(!backoff.goes_on(true, 8, at(now)), "the map has changed");
    (0..=4 * ROUNDS).for_each(|_| backoff.note(true, 4, (interval, 32), at(now)));
    assert!(backoff.goes_on(true, 8, at(now)));
    assert!(!backoff.goes_on(false, 8, at(now)), "there is something to tell");
    assert!(!backoff.goes_on(true, 8, at(now)), "and it begins anew");
    (0..=5 * ROUNDS).for_each(|_| backoff.note(true, 4, (interval, 1), at(now)));
    assert!(!backoff.goes_on(true, 8, at(now)), "it is set never to back off");
}
