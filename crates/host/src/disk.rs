//! The disk thread: it alone applies batches and syncs.
//!
//! It takes every batch that waits, commits them together and syncs once: while a sync runs, the
//! next group grows. A failure is reported and nothing is tried again; the core thread then stops
//! the host.

#[cfg(test)]
mod tests;

use crate::metrics::Shared;
use mio::Waker;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::storage::{Batch, Durable, Log};
use quorate_store::{Step, StoreLog, StoreReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the size of the store is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(5);
/// The most batches of one group.
const GROUP_BATCHES_MAX: usize = 4096;

/// What both threads see.
struct Report {
    written: AtomicU64,
    synced: AtomicU64,
    failure: Mutex<Option<Fatal>>,
    waker: Arc<Waker>,
}

/// What the core thread hands over.
enum Work {
    Batch(Batch),
    /// What was seen of the other hosts.
    Seen(Vec<Sighting>),
}

/// The core thread's end of the disk thread. That has ended when this is dropped: the directory
/// must not be released before.
pub(super) struct Disk {
    work: Option<Sender<Work>>,
    report: Arc<Report>,
    thread: Option<JoinHandle<Result<(), Fatal>>>,
    /// Says once that all is synced.
    finished: Receiver<()>,
    seen: Durable,
}

/// The longest time between two syncs, which changes with the keyspaces there are.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncEvery(Arc<AtomicU64>);

impl SyncEvery {
    /// None: everything is synced at once.
    pub fn set(&self, every: Option<Duration>) {
        let nanos = every.map_or(0, |every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX));
        self.0.store(nanos, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }
}

/// How the disk thread works.
pub(super) struct Settings {
    /// The longest time that data handed to the operating system stays unsynced, if any keyspace
    /// has such data.
    pub sync_every: SyncEvery,
    /// Where it counts.
    pub shared: Arc<Shared>,
}

impl Settings {
    pub fn new(sync_every: &SyncEvery, shared: &Arc<Shared>) -> Settings {
        Settings { sync_every: sync_every.clone(), shared: Arc::clone(shared) }
    }
}

impl Disk {
    /// Starts the thread over a log that has come as far as `recovered`.
    pub fn start(
        mut log: StoreLog,
        reader: StoreReader,
        recovered: Lsn,
        settings: Settings,
        waker: Arc<Waker>,
    ) -> std::io::Result<Disk> {
        let (work, waiting) = channel();
        let report = Arc::new(Report {
            written: AtomicU64::new(recovered.0),
            synced: AtomicU64::new(recovered.0),
            failure: Mutex::new(None),
            waker,
        });
        let seen = Durable { written: recovered, synced: recovered };
        log.keep_slow_steps(&settings.shared.slow_steps);
        let mut worker = Worker {
            log,
            reader,
            waiting,
            report: Arc::clone(&report),
            settings,
            durable: seen,
            group: Vec::new(),
            unsynced_since: None,
            measured: None,
        };
        Disk::over(work, report, seen, move |finished| {
            let ran = worker.run().and_then(|()| worker.log.finish());
            // Before the log is let go of, which may take its time.
            match ran {
                Ok(()) => drop(finished.send(())),
                Err(ref fatal) => worker.report.fail(fatal),
            }
            ran.and_then(|()| worker.log.close())
        })
    }

    /// Starts the thread with what it does.
    fn over(
        work: Sender<Work>,
        report: Arc<Report>,
        seen: Durable,
        run: impl FnOnce(Sender<()>) -> Result<(), Fatal> + Send + 'static,
    ) -> std::io::Result<Disk> {
        let (said, finished) = channel();
        let run = move || run(said);
        let told = Arc::clone(&report);
        let builder = std::thread::Builder::new().name("disk".to_owned());
        let thread = builder.spawn(move || {
            // Without its disk thread a host would go on for keyspaces that need no disk.
            let ended = catch_unwind(AssertUnwindSafe(run));
            let result = ended.unwrap_or_else(|_| Err(panicked()));
            if let Err(fatal) = &result {
                told.fail(fatal);
            }
            result
        })?;
        Ok(Disk { work: Some(work), report, thread: Some(thread), finished, seen })
    }

    /// Hands over a batch. After a failure it goes nowhere: nothing is acknowledged any more.
    pub fn commit(&self, batch: Batch) {
        // The receiver is gone only after a failure, which the next `progress` returns.
        self.send(Work::Batch(batch));
    }

    /// Hands over what was seen of the other hosts, which is on disk about a second later.
    pub fn note(&self, seen: Vec<Sighting>) {
        self.send(Work::Seen(seen));
    }

    fn send(&self, work: Work) {
        if let Some(sender) = &self.work {
            drop(sender.send(work));
        }
    }

    /// How far the log has come, if that is further than the last call said.
    ///
    /// # Errors
    /// The disk failed; the host must stop.
    pub fn progress(&mut self) -> Result<Option<Durable>, Fatal> {
        let synced = Lsn(self.report.synced.load(Ordering::Acquire));
        let written = Lsn(self.report.written.load(Ordering::Acquire));
        let now = Durable { written, synced };
        if now == self.seen {
            let failure = self.report.failure.lock().unwrap_or_else(PoisonError::into_inner);
            return failure.clone().map_or(Ok(None), Err);
        }
        self.seen = now;
        Ok(Some(now))
    }

    /// Applies and syncs everything that was handed over; nothing is taken any more.
    ///
    /// # Errors
    /// The disk failed, now or before.
    pub fn finish(&mut self) -> Result<(), Fatal> {
        self.work = None;
        // Who ends without a word says why where it ended.
        self.finished.recv().or_else(|_| self.end())
    }

    /// The same, closes the log and ends the thread.
    ///
    /// # Errors
    /// The disk failed, now or before.
    pub fn close(mut self) -> Result<(), Fatal> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Fatal> {
        self.work = None;
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| ended.unwrap_or_else(|_| Err(panicked())))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever wants to know closes it.
        drop(self.end());
    }
}

fn panicked() -> Fatal {
    Fatal::Disk(String::from("the disk thread panicked"))
}

impl Report {
    fn fail(&self, fatal: &Fatal) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(fatal.clone());
        drop(failure);
        self.wake();
    }

    fn wake(&self) {
        // The core thread also looks at least twice a second.
        drop(self.waker.wake());
    }
}

struct Worker {
    log: StoreLog,
    reader: StoreReader,
    waiting: Receiver<Work>,
    report: Arc<Report>,
    settings: Settings,
    durable: Durable,
    group: Vec<Batch>,
    unsynced_since: Option<Instant>,
    measured: Option<Instant>,
}

impl Worker {
    fn run(&mut self) -> Result<(), Fatal> {
        let slow = self.settings.shared.slow_steps.clone();
        loop {
            let is_open = self.collect();
            self.apply()?;
            if self.is_sync_due() || !is_open {
                self.sync()?;
            }
            self.log.maintain()?;
            slow.timed(Step::Measure, 0, || self.measure());
            if !is_open {
                return Ok(());
            }
        }
    }

    /// Waits for batches, or for the time of the next sync or mark, and takes all that wait.
    /// Returns false when the core thread has let go.
    fn collect(&mut self) -> bool {
        let until_sync = match (self.unsynced_since, self.settings.sync_every.get()) {
            (Some(since), Some(every)) => every.saturating_sub(since.elapsed()),
            _ => MEASURE_EVERY,
        };
        let patience = self.log.mark_due().map_or(until_sync, |due| due.min(until_sync));
        match self.waiting.recv_timeout(patience) {
            Ok(work) => self.take(work),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        while self.group.len() < GROUP_BATCHES_MAX
            && let Ok(work) = self.waiting.try_recv()
        {
            self.take(work);
        }
        true
    }

    fn take(&mut self, work: Work) {
        match work {
            Work::Batch(batch) => self.group.push(batch),
            Work::Seen(seen) => self.log.note(seen),
        }
    }

    fn apply(&mut self) -> Result<(), Fatal> {
        let Some(last) = self.group.last() else { return Ok(()) };
        let upto = last.lsn;
        self.log.apply(&self.group)?;
        self.durable.written = upto;
        self.unsynced_since.get_or_insert_with(Instant::now);
        let shared = &self.settings.shared;
        shared.batches.add(self.group.len() as u64);
        shared.written_bytes.add(self.group.iter().map(|batch| batch.size() as u64).sum());
        self.report.written.store(upto.0, Ordering::Release);
        let must_sync = self.group.iter().any(|batch| batch.must_sync);
        self.group.clear();
        if must_sync {
            self.sync()
        } else {
            self.report.wake();
            Ok(())
        }
    }

    fn is_sync_due(&self) -> bool {
        let Some(since) = self.unsynced_since else { return false };
        self.settings.sync_every.get().is_none_or(|every| since.elapsed() >= every)
    }

    fn sync(&mut self) -> Result<(), Fatal> {
        if self.unsynced_since.take().is_none() {
            return Ok(());
        }
        if mutant!("disk_answers_before_sync") {
            self.tell_synced();
        }
        let began = Instant::now();
        self.log.sync()?;
        self.settings.shared.syncs.observe(began.elapsed());
        self.tell_synced();
        Ok(())
    }

    fn tell_synced(&mut self) {
        self.durable.synced = self.durable.written;
        self.report.synced.store(self.durable.synced.0, Ordering::Release);
        self.report.wake();
    }

    /// Tells what the store takes, now and then, and has it look after that. Waits for nothing.
    fn measure(&mut self) {
        if self.measured.is_none_or(|at| at.elapsed() >= MEASURE_EVERY) {
            self.measured = Some(Instant::now());
            let stats = self.reader.stats();
            let shared = &self.settings.shared;
            shared.log_bytes.set(stats.log_bytes);
            shared.table_bytes.set(stats.table_bytes);
            shared.garbage_bytes.set(self.log.garbage_bytes());
            if let Err(error) = self.log.reclaim() {
                tracing::warn!(event = "space_not_given_back", %error);
            }
        }
    }
}
