//! The pause of background work between two of its pieces, so that clients hardly notice.
//!
//! What operations take now is compared with what they took before the work began. While it is
//! about the same, or nobody asks for anything, the work gets all it wants; when it has risen,
//! pauses between two pieces of work grow until it falls again. So the pace follows what hosts and
//! network have to spare, and nothing needs to be configured.

use quorate_kernel::time::{Span, Time};

/// Operations are compared with those of times without such work for so long.
const QUIET: Span = Span::secs(1);
/// Without any operation for so long, nobody is in the way.
const IDLE: Span = Span::millis(100);
/// A rise of the mean by so little is no sign of anything.
const SLACK: Span = Span::micros(100);
/// The shortest pause; below it there is none.
const PAUSE_MIN: Span = Span::millis(1);
/// The longest pause: the work goes on whatever happens.
const PAUSE_MAX: Span = Span::millis(32);

/// What operations take, and the pause that follows from it.
#[derive(Debug, Default)]
pub struct Throttle {
    /// A running mean of what operations take, in nanoseconds.
    mean: u64,
    /// The same without the work.
    usual: u64,
    obworked_at: Time,
    worked_at: Option<Time>,
    pause: Span,
}

impl Throttle {
    /// An operation that this node coordinated has ended.
    pub fn observe(&mut self, sample: Span, now: Time) {
        self.obworked_at = now;
        if self.mean == 0 {
            (self.mean, self.usual) = (sample.0, sample.0);
        }
        let follow = |old: u64, new: u64, part: u64| old - old / part + new / part;
        self.mean = follow(self.mean, sample.0, 8);
        let is_quiet = self.worked_at.is_none_or(|at| now >= at + QUIET);
        // Beside long work the load may come to be another one.
        let part = if is_quiet || self.mean < self.usual { 32 } else { 2048 };
        self.usual = follow(self.usual, self.mean, part);
    }

    /// A piece of the work was done; returns the pause until the next one.
    pub fn pause(&mut self, now: Time) -> Span {
        self.worked_at = Some(now);
        let is_idle = now >= self.obworked_at + IDLE;
        let has_risen = self.mean > self.usual + self.usual / 2 + SLACK.0;
        self.pause = match has_risen && !is_idle {
            true => Span((self.pause.0 * 2).clamp(PAUSE_MIN.0, PAUSE_MAX.0)),
            false => Span(self.pause.0 - self.pause.0 / 4),
        };
        if self.pause < PAUSE_MIN {
            self.pause = Span(0);
        }
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations of this length, one each millisecond, with a piece of work after each; returns
    /// the last pause.
    fn work(throttle: &mut Throttle, now: &mut Time, took: Span) -> Span {
        let mut pause = Span(0);
        for _ in 0..100 {
            *now = *now + Span::millis(1);
            throttle.observe(took, *now);
            pause = throttle.pause(*now);
        }
        pause
    }

    #[test]
    fn work_gives_way_to_operations_and_to_nothing_else() {
        let (mut throttle, mut now) = (Throttle::default(), Time(0));
        assert_eq!(throttle.pause(now), Span(0), "nobody is there");
        now = now + QUIET;
        for _ in 0..500 {
            now = now + Span::millis(1);
            throttle.observe(Span::micros(500), now);
        }
        assert_eq!(work(&mut throttle, &mut now, Span::micros(600)), Span(0), "as ever");
        assert_eq!(work(&mut throttle, &mut now, Span::millis(2)), PAUSE_MAX, "much slower");
        assert_eq!(work(&mut throttle, &mut now, Span::micros(500)), Span(0), "as before");
        assert_eq!(work(&mut throttle, &mut now, Span::millis(2)), PAUSE_MAX, "slower again");
        now = now + IDLE;
        let pauses = (0..20).map(|_| throttle.pause(now)).last();
        assert_eq!(pauses, Some(Span(0)), "the clients have gone");
    }

    #[test]
    fn a_load_that_stays_becomes_the_usual_one() {
        let (mut throttle, mut now) = (Throttle::default(), Time(0));
        now = now + QUIET;
        for _ in 0..500 {
            throttle.observe(Span::micros(500), now);
        }
        let rounds = (0..100).find(|_| work(&mut throttle, &mut now, Span::millis(3)) == Span(0));
        assert!(rounds.is_some_and(|rounds| rounds > 2), "{rounds:?}");
    }
}
