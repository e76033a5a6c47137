//! What the clock of this node showed at which time: so the age of a request that is sent again
//! tells since when in the order it may have been done.

use crate::epto::LogicalTime;
use alloc::vec::Vec;
use quorate_kernel::time::Time;

/// The most samples that are kept.
const SAMPLES_MAX: usize = 1024;

/// Samples of the clock, ever further apart the longer the node runs.
#[derive(Clone, Debug)]
pub struct Past {
    samples: Vec<(Time, LogicalTime)>,
    /// Of so many rounds one is kept.
    every: u64,
}

impl Default for Past {
    fn default() -> Past {
        Past { samples: Vec::new(), every: 1 }
    }
}

impl Past {
    /// A round has passed, in which the clock shows this.
    pub fn note(&mut self, round: u64, now: Time, clock: LogicalTime) {
        if !round.is_multiple_of(self.every) {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
        }
        self.samples.push((now, clock));
    }

    /// What the clock had come to by then at least; 0 if that was before this node had one.
    #[must_use]
    pub fn at(&self, when: Option<Time>) -> LogicalTime {
        let Some(when) = when else { return LogicalTime(0) };
        let known = self.samples.partition_point(|(time, _)| *time <= when);
        known.checked_sub(1).map_or(LogicalTime(0), |place| self.samples[place].1)
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.samples.len() <= SAMPLES_MAX, "few samples are kept");
        assert!(self.samples.is_sorted(), "clocks do not go back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_no_more_than_what_had_passed_however_long_ago() {
        let mut past = Past::default();
        assert_eq!(past.at(Some(Time(5))), LogicalTime(0));
        for round in 1..100_000 {
            past.note(round, Time(10 * round), LogicalTime(round));
        }
        past.check();
        assert!(past.every < 256, "{} rounds are between two samples", past.every);
        for when in [1, 9, 10, 5_000, 123_456, 999_989] {
            let LogicalTime(told) = past.at(Some(Time(when)));
            assert!(told <= when / 10 && told + past.every >= when / 10, "{told} at {when}");
        }
        assert_eq!(past.at(None), LogicalTime(0), "before there were clocks");
    }
}
