//! A bound on repeated log lines: whatever goes wrong again and again is told, and tells no more
//! each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long lines are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// The most equal lines in a window.
const EQUAL_MAX: u64 = 3;
/// The most lines of one place in the code in a window.
const PLACE_MAX: u64 = 200;
/// The most different lines that are counted; beyond it counting begins anew.
const COUNTED_MAX: usize = 1024;

/// What was logged recently.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// By what bounds them and the hash of what is counted: a line and a place never share one.
    counts: BTreeMap<(u64, u64), Count>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    lines: u64,
}

impl Count {
    /// Counts one more; how many were left out in the window before, or nothing if this one is to
    /// be left out too.
    fn add(&mut self, most: u64, now: Instant) -> Option<u64> {
        if now - self.since >= WINDOW {
            let left_out = self.lines.saturating_sub(most);
            (self.since, self.lines) = (now, 1);
            return Some(left_out);
        }
        self.lines += 1;
        (self.lines <= most).then_some(0)
    }
}

impl Repeats {
    /// Whether a line may be written, and how many like it were left out since the last one.
    /// `place` and `line` are hashes.
    pub fn admit(&mut self, place: u64, line: u64, now: Instant) -> Option<u64> {
        if self.counts.len() >= COUNTED_MAX {
            self.counts.clear();
        }
        let mut count = |of: u64, most| {
            let new = Count { since: now, lines: 0 };
            self.counts.entry((most, of)).or_insert(new).add(most, now)
        };
        let equal = count(line, EQUAL_MAX)?;
        Some(equal.max(count(place, PLACE_MAX)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_repeats_is_written_a_few_times_and_then_counted() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let mut at = |second| repeats.admit(1, 2, now + Duration::from_secs(second));
        let told: Vec<Option<u64>> = (0..10).map(&mut at).collect();
        assert_eq!(told[..3], [Some(0); 3]);
        assert_eq!(told[3..], [None; 7]);
        assert_eq!(at(60), Some(7));
        assert_eq!((at(61), at(62), at(63)), (Some(0), Some(0), None));
        assert_eq!(at(180), Some(1));
        assert_eq!(at(300), Some(0), "nothing was left out");
    }

    #[test]
    fn lines_that_differ_are_bounded_by_where_they_come_from() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let written = (0..500).filter(|line| repeats.admit(1, 1000 + line, now).is_some());
        assert_eq!(written.count() as u64, PLACE_MAX);
        assert_eq!(repeats.admit(2, 7, now), Some(0), "others are not held back by it");
        for line in 0..10 * COUNTED_MAX as u64 {
            assert_eq!(repeats.admit(line << 20, line << 21 | 1, now), Some(0));
        }
        assert!(repeats.counts.len() <= COUNTED_MAX + 1);
    }
}
