//! The timetable of an open loop: when each operation ought to be sent, however late it is.

use quorate_kernel::time::{Span, Time};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Evenly spaced intended send times at a fixed rate.
///
/// Latency is counted from the intended time. A server that stops answering therefore delays all
/// operations that were due meanwhile, as it would delay independent users, instead of slowing the
/// client down to its own pace ("coordinated omission").
#[derive(Clone, Debug)]
pub struct Schedule {
    first: Time,
    rate_per_second: u64,
    taken: u64,
}

impl Schedule {
    /// A timetable that begins at `first`; the rate is at least one per second.
    #[must_use]
    pub fn new(first: Time, rate_per_second: u64) -> Schedule {
        assert!(rate_per_second > 0, "a rate of zero never sends");
        Schedule { first, rate_per_second, taken: 0 }
    }

    /// When the next operation ought to be sent.
    #[must_use]
    pub fn next_time(&self) -> Time {
        let offset = u128::from(self.taken) * NANOS_PER_SECOND / u128::from(self.rate_per_second);
        self.first + Span(offset as u64)
    }

    /// How many operations ought to have been sent by now and were not.
    #[must_use]
    pub fn due_count(&self, now: Time) -> u64 {
        if now < self.first {
            return 0;
        }
        let elapsed = u128::from((now - self.first).0);
        // The last operation whose intended time, rounded down, is not after `now`.
        let last = ((elapsed + 1) * u128::from(self.rate_per_second) - 1) / NANOS_PER_SECOND;
        (last as u64 + 1).saturating_sub(self.taken)
    }

    /// Takes the next operation and says when it ought to be sent.
    pub fn take(&mut self) -> Time {
        let time = self.next_time();
        self.taken += 1;
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_evenly_spaced() {
        let mut schedule = Schedule::new(Time(1000), 1_000_000);
        let times: Vec<u64> = (0..4).map(|_| schedule.take().0).collect();
        assert_eq!(times, [1000, 2000, 3000, 4000]);
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        let mut schedule = Schedule::new(Time(0), 3);
        for _ in 0..3_000_000 {
            schedule.take();
        }
        assert_eq!(schedule.next_time(), Time(1_000_000 * 1_000_000_000));
    }

    #[test]
    fn due_counts_agree_with_the_times() {
        for rate in [1, 3, 7, 999, 1_000_000, 3_000_000_000] {
            let mut schedule = Schedule::new(Time(50), rate);
            assert_eq!(schedule.due_count(Time(49)), 0);
            for _ in 0..100 {
                let next = schedule.next_time();
                assert!(schedule.due_count(next) >= 1, "rate {rate}: due at its own time");
                assert_eq!(schedule.due_count(Time(next.0 - 1)), 0, "rate {rate}: not before");
                schedule.take();
            }
        }
    }

    #[test]
    fn a_stall_leaves_everything_due() {
        let mut schedule = Schedule::new(Time(0), 1000);
        schedule.take();
        let now = Time(Span::secs(2).0);
        assert_eq!(schedule.due_count(now), 2000);
        // The first of them has already waited for almost two seconds before it is sent.
        assert_eq!(now - schedule.take(), Span(1_999_000_000));
        assert_eq!(schedule.due_count(now), 1999);
    }
}
