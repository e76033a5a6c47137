//! When a replica asks its peers less often than every interval: when it has nothing to tell and
//! nothing to learn, and they have lately said the same.
//!
//! Whoever has something to tell asks, and one exchange goes both ways. So it is enough that each
//! looks at itself: a replica is **quiet** while every update that it knows of is known to all
//! replicas of its key, all its contexts are stripped, and no former actor is left to be closed.
//! From a new dot, or a new actor, on it asks every interval again. A quiet replica that was
//! answered for [`ROUNDS`], each time with no object, rests: two intervals at first, twice as long
//! after each such answer, up to [`Limits::rest_intervals`](super::Limits). A peer that does not
//! answer is not waited for longer than before, and a new map of the positions ends every rest.

use super::map::Map;
use super::replica::Replica;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// So many answers must have come from each peer, as it were, before a replica rests.
const ROUNDS: u64 = 4;
/// The longest rest, in intervals.
pub(super) const INTERVALS_MAX: u64 = 32;

/// The rest of one replica.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// How many answers without an object have come in a row.
    even: u64,
    /// It does not ask before.
    until: Time,
    /// The version of the map by which it was quiet.
    map: u64,
}

impl Rest {
    /// Whether a replica that is quiet, or not, by this version of the map does not ask now.
    pub fn goes_on(&mut self, is_quiet: bool, map: u64, now: Time) -> bool {
        if !is_quiet || self.map != map {
            *self = Rest { map, ..Rest::default() };
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
            probe!("causal/rests");
            self.until = now + Span(interval.0 << beyond);
        }
        // Also if the interval was shortened meanwhile: who has rested counts on, and is set anew.
        assert!(self.until <= now + Span(interval.0 * most), "a rest is bounded");
    }

    /// There is something to tell or to learn.
    pub fn end(&mut self) {
        *self = Rest { map: self.map, ..Rest::default() };
    }
}

impl Replica {
    /// Whether it has nothing to tell and nothing to learn, as far as it can know.
    pub(super) fn is_quiet(&self, map: &Map) -> bool {
        self.record.is_joined
            && self.dot_keys.is_empty()
            && self.unstripped.is_empty()
            && self.record.witnesses.is_empty()
            && !self.has_open_former(map)
    }
}

#[test]
fn rests_grow_after_some_rounds_and_end_at_once() {
    let (interval, mut rest) = (Span::millis(100), Rest::default());
    let at = |intervals: u64| Time(0) + Span(interval.0 * intervals);
    assert!(!rest.goes_on(true, 7, at(1)));
    (0..4 * ROUNDS).for_each(|_| rest.note(true, 4, (interval, 32), at(1)));
    assert!(!rest.goes_on(true, 7, at(1)), "not every peer may have answered often");
    let mut now = 1;
    for length in [2, 4, 8, 16, 32, 32] {
        rest.note(true, 4, (interval, 32), at(now));
        assert!(rest.goes_on(true, 7, at(now + length - 1)));
        now += length;
        assert!(!rest.goes_on(true, 7, at(now)));
    }
    rest.note(true, 4, (interval, 32), at(now));
    assert!(!rest.goes_on(true, 8, at(now)), "the map has changed");
    (0..=4 * ROUNDS).for_each(|_| rest.note(true, 4, (interval, 32), at(now)));
    assert!(rest.goes_on(true, 8, at(now)));
    assert!(!rest.goes_on(false, 8, at(now)), "there is something to tell");
    assert!(!rest.goes_on(true, 8, at(now)), "and rests begin anew");
    (0..=5 * ROUNDS).for_each(|_| rest.note(true, 4, (interval, 1), at(now)));
    assert!(!rest.goes_on(true, 8, at(now)), "it is set never to rest");
}
