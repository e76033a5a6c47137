//! What a host's clocks say: a monotonic clock that runs too fast or too slow, and a wall clock
//! that is off and jumps.

use quorate_kernel::time::{Time, WallTime};

const MILLION: i64 = 1_000_000;
/// What the wall clocks of the simulated world count from, in milliseconds.
const EPOCH_MS: i64 = 1_700_000_000_000;
/// No simulated process lives longer: three hours, so that no product overflows.
const LIFE_MAX: u64 = 3 * 3600 * 1_000_000_000;

/// The clocks of one host during one life.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When the process started, in the world's nanoseconds.
    started: u64,
    /// By how many millionths the monotonic clock runs faster than the world.
    drift_ppm: i64,
    /// By how many milliseconds the wall clock is ahead of the world.
    offset_ms: i64,
}

impl Clock {
    /// The clocks of a host whose process starts now.
    #[must_use]
    pub fn new(started: u64, drift_ppm: i64, offset_ms: i64) -> Clock {
        assert!(drift_ppm.abs() < MILLION, "a clock does not run backwards");
        Clock { started, drift_ppm, offset_ms }
    }

    /// The same clocks for a process that starts at another time.
    #[must_use]
    pub fn restarted(self, started: u64) -> Clock {
        Clock { started, ..self }
    }

    /// What the monotonic clock says at a time of the world.
    #[must_use]
    pub fn local(&self, now: u64) -> Time {
        let elapsed = now.saturating_sub(self.started).min(LIFE_MAX);
        Time(elapsed * self.speed() / MILLION as u64)
    }

    /// The first time of the world at which the monotonic clock says `local` or more.
    #[must_use]
    pub fn world(&self, local: Time) -> u64 {
        let elapsed = (local.0.min(LIFE_MAX) * MILLION as u64).div_ceil(self.speed());
        self.started + elapsed
    }

    fn speed(&self) -> u64 {
        (MILLION + self.drift_ppm) as u64
    }

    /// What the wall clock says at a time of the world.
    #[must_use]
    pub fn wall(&self, now: u64) -> WallTime {
        WallTime(EPOCH_MS + (now / MILLION as u64) as i64 + self.offset_ms)
    }

    /// Sets the wall clock forward or back.
    pub fn jump(&mut self, by_ms: i64) {
        self.offset_ms += by_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::rng::Rng;

    #[test]
    fn a_deadline_is_reached_when_it_is_said_to_be() {
        let mut rng = Rng::new(5);
        for drift_ppm in [-200_000, -300, 0, 1, 250, 100_000] {
            let clock = Clock::new(123_456, drift_ppm, 0);
            let mut last = Time(0);
            for now in (0..1000).map(|step| 123_456 + step * 7_777_777) {
                assert!(clock.local(now) >= last, "monotonic");
                last = clock.local(now);
            }
            for _ in 0..10_000 {
                let deadline = Time(rng.below(100_000_000_000));
                let at = clock.world(deadline);
                assert!(clock.local(at) >= deadline, "{drift_ppm}: {deadline:?} is late");
            }
        }
    }

    #[test]
    fn the_wall_clock_jumps_and_the_monotonic_clock_does_not() {
        let mut clock = Clock::new(0, 0, 50);
        let (local, wall) = (clock.local(9_000_000), clock.wall(9_000_000));
        clock.jump(-3000);
        assert_eq!(clock.local(9_000_000), local);
        assert_eq!(clock.wall(9_000_000), WallTime(wall.0 - 3000));
    }
}
