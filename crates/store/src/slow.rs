//! The slow steps of the thread that writes: what it did while nothing was acknowledged.
//!
//! Each step is timed, and one that is not slow costs two looks at the clock and hardly more. Of
//! the slow ones the longest of the last minutes are kept, so that a disk whose every sync is slow
//! does not push out the one step that was asked for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shorter steps are not kept.
pub const SLOW_STEP_LEAST: Duration = Duration::from_millis(5);
/// The most steps that are kept.
pub const SLOW_STEPS_MAX: usize = 256;
/// How long a step is kept at most.
pub const SLOW_STEPS_KEPT: Duration = Duration::from_secs(600);

/// What the thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It wrote to a segment of the log.
    Write,
    /// It put what it had written into the memtable.
    Memtable,
    /// It synced the segment, or waited for the delay that is added to each sync.
    Sync,
    /// It waited for a segment to write to.
    Segment,
    /// It waited for a full memtable before this one to become a table.
    Backlog,
    /// It wrote the mark.
    Mark,
    /// It measured the store, and looked whether space should be given back.
    Measure,
}

impl Step {
    /// Whether it waits for a sync: a segment's, or that of the mark.
    fn is_sync(self) -> bool {
        matches!(self, Step::Sync | Step::Mark)
    }

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Step::Write => "write",
            Step::Memtable => "memtable",
            Step::Sync => "sync",
            Step::Segment => "segment",
            Step::Backlog => "backlog",
            Step::Mark => "mark",
            Step::Measure => "measure",
        }
    }
}

/// A step that was slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStep {
    /// When it began, by the wall clock, since 1970.
    pub at: Duration,
    /// How long it took.
    pub length: Duration,
    /// What it was.
    pub step: Step,
    /// The bytes that it wrote, synced or handed over; 0 if it had none.
    pub bytes: u64,
}

/// The slow steps of one thread. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SlowSteps(Arc<Steps>);

#[derive(Debug, Default)]
struct Steps {
    kept: Mutex<VecDeque<SlowStep>>,
    /// Nanoseconds of the longest one that was no sync. Written by the thread alone.
    longest: AtomicU64,
}

impl SlowSteps {
    /// Does a step, and keeps it if it was slow. Takes a lock only then.
    pub fn timed<T>(&self, step: Step, bytes: u64, run: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = run();
        let length = began.elapsed();
        self.note(step, length);
        if length >= SLOW_STEP_LEAST {
            // A clock before 1970 is wrong, and says nothing.
            let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.keep(SlowStep { at: ended.saturating_sub(length), length, step, bytes });
        }
        result
    }

    /// A step has taken so long.
    pub fn note(&self, step: Step, length: Duration) {
        if !step.is_sync() && length > self.longest() {
            let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
            self.0.longest.store(nanos, Ordering::Relaxed);
        }
    }

    /// How long the longest step took that was no sync, since the start.
    #[must_use]
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.0.longest.load(Ordering::Relaxed))
    }

    /// Those that are kept, in the order in which they ended.
    #[must_use]
    pub fn list(&self) -> Vec<SlowStep> {
        self.lock().iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SlowStep>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a step. What is too old goes, then the shortest if there are too many, and of equal
    /// ones the oldest.
    pub fn keep(&self, new: SlowStep) {
        let mut steps = self.lock();
        let end = new.at + new.length;
        while steps.front().is_some_and(|step| step.at + step.length + SLOW_STEPS_KEPT < end) {
            steps.pop_front();
        }
        steps.push_back(new);
        if steps.len() > SLOW_STEPS_MAX {
            let shortest = (0..steps.len()).min_by_key(|place| steps[*place].length);
            steps.remove(shortest.expect("there are many"));
        }
        assert!(steps.len() <= SLOW_STEPS_MAX, "what is kept is bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at_s: u64, length_ms: u64) -> SlowStep {
        let (at, length) = (Duration::from_secs(at_s), Duration::from_millis(length_ms));
        SlowStep { at, length, step: Step::Sync, bytes: 0 }
    }

    #[test]
    fn only_slow_steps_are_kept_with_what_they_were() {
        let steps = SlowSteps::default();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        // It lasts until it is slow, however fast the machine is.
        let slow = || {
            let began = Instant::now();
            while began.elapsed() < SLOW_STEP_LEAST {
                std::thread::yield_now();
            }
            7
        };
        assert_eq!(steps.timed(Step::Backlog, 12, slow), 7);
        let [found] = steps.list()[..] else { panic!("it is kept") };
        assert_eq!((found.step, found.bytes), (Step::Backlog, 12));
        assert!(found.length >= SLOW_STEP_LEAST && found.at + found.length >= began);
        // A machine may stop amid any step, but hardly amid each of so many.
        let is_fast = (0..100).any(|_| {
            steps.timed(Step::Write, 1, || ());
            steps.list().len() == 1
        });
        assert!(is_fast, "what takes no time is not kept");
    }

    #[test]
    fn the_longest_step_is_told_and_a_sync_is_none() {
        let steps = SlowSteps::default();
        assert_eq!(steps.longest(), Duration::ZERO);
        for (step, nanos, longest) in [
            (Step::Write, 5, 5),
            (Step::Sync, 90, 5),
            (Step::Mark, 90, 5),
            (Step::Measure, 4, 5),
            (Step::Backlog, 6, 6),
        ] {
            steps.note(step, Duration::from_nanos(nanos));
            assert_eq!(steps.longest(), Duration::from_nanos(longest), "{step:?}");
        }
        steps.timed(Step::Segment, 0, || std::thread::sleep(Duration::from_micros(1)));
        assert!(steps.longest() >= Duration::from_micros(1), "what is timed counts");
    }

    #[test]
    fn the_longest_of_the_last_minutes_are_kept() {
        let steps = SlowSteps::default();
        steps.keep(step(0, 9000));
        for number in 0..SLOW_STEPS_MAX as u64 {
            steps.keep(step(100, 10 + number));
        }
        let list = steps.list();
        assert_eq!(list.len(), SLOW_STEPS_MAX);
        assert_eq!(list[0], step(0, 9000), "a long one stays among many that are short");
        assert_eq!(list[1], step(100, 11), "the shortest has gone");
        steps.keep(step(100, 5));
        assert_eq!(steps.list(), list, "one that is shorter than all is not kept");
        steps.keep(step(620, 5));
        assert_eq!(steps.list()[0], step(100, 11), "what is too old goes, however long it was");
        steps.keep(step(2000, 5));
        assert_eq!(steps.list(), [step(2000, 5)]);
    }
}
