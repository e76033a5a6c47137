//! Group commit, the mark and the rule that a failed log stays failed, over any engine.
//!
//! [`DiskLog`] keeps all the promises of [`Log`]; an [`Engine`] only commits and persists.

use crate::data_directory::mark::Mark;
use crate::slow::{SlowSteps, Step};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::storage::{Batch, Log};
use quorate_kernel::time::{Span, Time};
use std::time::Duration;

/// How long the mark may lag what is synced.
const MARK_INTERVAL: Span = Span::secs(1);

/// Monotonic time, injected so that a test can move it.
pub type Clock = Box<dyn FnMut() -> Time + Send>;

/// The clock of the machine, from zero at this call.
#[must_use]
pub fn machine_clock() -> Clock {
    let start = std::time::Instant::now();
    Box::new(move || Time(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)))
}

/// What commits and persists.
pub(crate) trait Engine {
    /// Commits all batches atomically, handed to the operating system and visible to reads, with
    /// their numbers and what is `synced` so far.
    fn commit(&mut self, batches: &[Batch], synced: Lsn) -> Result<(), Fatal>;

    /// Makes everything committed survive a loss of power.
    fn persist(&mut self) -> Result<(), Fatal>;

    /// What went wrong beside the log since, if anything: who writes nothing is to hear of it too.
    fn check(&self) -> Result<(), Fatal>;
}

impl<E> std::fmt::Debug for DiskLog<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DiskLog({} written, {} synced)", self.written.0, self.synced.0)
    }
}

/// A [`Log`] over an engine.
pub(crate) struct DiskLog<E> {
    pub(crate) engine: E,
    written: Lsn,
    synced: Lsn,
    mark: Mark,
    marked_at: Option<Time>,
    /// What peers were seen to have synced.
    seen: Vec<Sighting>,
    has_seen_more: bool,
    clock: Clock,
    sync_delay: Duration,
    failure: Option<Fatal>,
    /// Where slow steps are kept.
    pub(crate) slow: SlowSteps,
}

impl<E: Engine> DiskLog<E> {
    /// A log that goes on after what was `recovered`, all of which is synced.
    pub(crate) fn new(
        engine: E,
        recovered: Lsn,
        mark: Mark,
        clock: Clock,
        sync_delay: Duration,
    ) -> DiskLog<E> {
        DiskLog {
            engine,
            written: recovered,
            synced: recovered,
            seen: mark.seen().to_vec(),
            has_seen_more: false,
            mark,
            marked_at: None,
            clock,
            sync_delay,
            failure: None,
            slow: SlowSteps::default(),
        }
    }

    /// Lets the engine do something else, which counts as a step: it may sync too.
    pub(crate) fn with_engine(
        &mut self,
        step: impl FnOnce(&mut E) -> Result<(), Fatal>,
    ) -> Result<(), Fatal> {
        self.step(|log| step(&mut log.engine))
    }

    /// Takes what peers were seen to have synced, to be kept with the mark.
    pub(crate) fn note(&mut self, seen: Vec<Sighting>) {
        self.has_seen_more |= seen != self.seen;
        self.seen = seen;
    }

    /// Syncs, and brings the mark up to date: nothing of it is lost then, however it ends.
    pub(crate) fn finish(&mut self) -> Result<(), Fatal> {
        self.sync()?;
        self.step(|log| log.engine.check())?;
        self.advance_mark()
    }

    /// Runs a step, and remembers its failure for ever: what the disk holds after a failed write
    /// or sync is unknown, and a second try would report success over lost pages.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Fatal>) -> Result<(), Fatal> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let result = step(self);
        self.failure = result.clone().err();
        result
    }

    fn try_apply(&mut self, batches: &[Batch]) -> Result<(), Fatal> {
        let Some(last) = batches.last() else { return Ok(()) };
        let mut expected = self.written.0;
        for batch in batches {
            expected += 1;
            if batch.lsn.0 != expected {
                let text = format!("batch {} came where {expected} belongs", batch.lsn.0);
                return Err(Fatal::Corrupt(text));
            }
        }
        self.engine.commit(batches, self.synced)?;
        self.written = last.lsn;
        Ok(())
    }

    fn try_sync(&mut self) -> Result<(), Fatal> {
        if self.synced == self.written {
            return Ok(());
        }
        if !self.sync_delay.is_zero() {
            self.slow.timed(Step::Sync, 0, || std::thread::sleep(self.sync_delay));
        }
        self.engine.persist()?;
        self.synced = self.written;
        self.try_maintain()
    }

    fn try_maintain(&mut self) -> Result<(), Fatal> {
        if self.mark_due().is_some_and(|due| due.is_zero()) {
            self.marked_at = Some((self.clock)());
            self.advance_mark()?;
        }
        Ok(())
    }

    /// How long the mark may still lag what is synced and seen; nothing when it does not.
    pub(crate) fn mark_due(&mut self) -> Option<Duration> {
        if !self.is_mark_behind() {
            return None;
        }
        let Some(at) = self.marked_at else { return Some(Duration::ZERO) };
        let lag = (self.clock)() - at;
        Some(Duration::from_nanos(MARK_INTERVAL.0.saturating_sub(lag.0)))
    }

    /// Brings the mark up to date if it has lagged long enough, though nothing follows.
    pub(crate) fn maintain(&mut self) -> Result<(), Fatal> {
        if mutant!("mark_behind") {
            return Ok(());
        }
        self.step(|log| {
            if !mutant!("idle_hosts_hear_of_nothing") {
                log.engine.check()?;
            }
            log.try_maintain()
        })
    }

    fn is_mark_behind(&self) -> bool {
        self.mark.lsn() != self.synced || self.has_seen_more
    }

    fn advance_mark(&mut self) -> Result<(), Fatal> {
        if self.is_mark_behind() {
            let advance = || self.mark.advance(self.synced, &self.seen);
            let advanced = self.slow.timed(Step::Mark, 0, advance);
            advanced.map_err(|error| Fatal::Disk(format!("the mark: {error}")))?;
            self.has_seen_more = false;
        }
        Ok(())
    }
}

impl<E: Engine> Log for DiskLog<E> {
    fn apply(&mut self, batches: &[Batch]) -> Result<(), Fatal> {
        self.step(|log| log.try_apply(batches))
    }

    fn sync(&mut self) -> Result<(), Fatal> {
        self.step(Self::try_sync)
    }
}

#[cfg(test)]
mod tests;
