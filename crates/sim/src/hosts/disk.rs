//! The disk thread of a host in simulated time: it collects all waiting batches, applies them,
//! reports them written, syncs if it must, and reports them synced.

use crate::delay::Delay;
use crate::queue::{Event, HostIndex, Queue};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Batch, Durable, Log};
use quorate_store::memory::{Crash, MemoryStore};

/// The longest time a write or sync takes on the slowest disk, so that one begun before the faults
/// end is over before operations must succeed.
const SLOWEST_NS: u64 = 2_000_000_000;

/// What the disk thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    Writing,
    Syncing,
}

/// The disk of one host, and the thread that writes to it.
#[derive(Debug)]
pub struct Disk {
    host: HostIndex,
    /// In which life of the host the thread runs.
    life: u32,
    store: MemoryStore,
    waiting: Vec<Batch>,
    taken: Vec<Batch>,
    step: Step,
    durable: Durable,
    write: Delay,
    sync: Delay,
    /// How many times as long everything takes in this world.
    usual: u64,
    /// How many times as long as usual it takes now.
    slowness: u64,
    /// The longest time between two syncs, if the keyspace has such a bound.
    interval: Option<u64>,
    last_sync: u64,
    /// Since when something is written that is not synced.
    unsynced_since: Option<u64>,
    is_interval_pending: bool,
    rng: Rng,
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new(
        host: HostIndex,
        write: Delay,
        sync: Delay,
        usual: u64,
        interval: Option<u64>,
        rng: Rng,
    ) -> Disk {
        Disk {
            host,
            life: 0,
            store: MemoryStore::new(),
            waiting: Vec::new(),
            taken: Vec::new(),
            step: Step::Idle,
            durable: Durable::default(),
            write,
            sync,
            usual,
            slowness: 1,
            interval,
            last_sync: 0,
            unsynced_since: None,
            is_interval_pending: false,
            rng,
        }
    }

    /// The store below, for reads and for faults.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// Opens the store for a new life of the host and tells how far its log had come.
    pub fn open(&mut self, life: u32, now: u64) -> Durable {
        let recovered = self.store.reopen();
        self.life = life;
        self.durable = Durable { written: recovered, synced: recovered };
        self.last_sync = now;
        self.unsynced_since = None;
        self.durable
    }

    /// Ends the life of the host: batches that only waited are gone, the rest is up to the store.
    pub fn crash(&mut self, crash: Crash) {
        self.store.crash(crash, &mut self.rng);
        self.waiting.clear();
        self.taken.clear();
        self.step = Step::Idle;
        self.is_interval_pending = false;
    }

    /// Replaces the disk by an empty one.
    pub fn wipe(&mut self) {
        self.store.wipe();
    }

    /// Puts a store in the place of the one there is.
    pub fn put_back(&mut self, store: MemoryStore) {
        self.store = store;
    }

    /// Makes everything take this many times as long.
    pub fn slow_down(&mut self, factor: u64) {
        self.slowness = factor.max(1);
    }

    /// The number of the last batch that it was given.
    #[must_use]
    pub fn given(&self) -> Lsn {
        let unwritten = self.taken.len() + self.waiting.len();
        Lsn(self.durable.written.0 + unwritten as u64)
    }

    /// The number of the last batch that survives a loss of power.
    #[must_use]
    pub fn synced(&self) -> Lsn {
        self.durable.synced
    }

    /// From when on a loss of power now may take what was written; nothing if all is synced.
    #[must_use]
    pub fn unsynced_since(&self) -> Option<u64> {
        self.unsynced_since
    }

    /// Takes a batch of the node.
    pub fn commit(&mut self, batch: Batch, now: u64, queue: &mut Queue) {
        self.waiting.push(batch);
        if self.step == Step::Idle {
            self.begin_write(now, queue);
        }
    }

    fn begin_write(&mut self, now: u64, queue: &mut Queue) {
        std::mem::swap(&mut self.waiting, &mut self.taken);
        self.step = Step::Writing;
        let delay = self.write.sample(&mut self.rng);
        queue.push(self.end(now, delay), Event::Written { host: self.host, life: self.life });
    }

    fn begin_sync(&mut self, now: u64, queue: &mut Queue) {
        self.step = Step::Syncing;
        let delay = self.sync.sample(&mut self.rng);
        queue.push(self.end(now, delay), Event::Synced { host: self.host, life: self.life });
    }

    /// When something that usually takes this long is over.
    fn end(&self, now: u64, delay: u64) -> u64 {
        now + (delay * self.usual * self.slowness).min(SLOWEST_NS)
    }

    /// The time to write has passed: the batches are with the operating system.
    ///
    /// # Errors
    /// The store failed; the host must stop.
    pub fn on_written(&mut self, now: u64, queue: &mut Queue) -> Result<Durable, Fatal> {
        assert_eq!(self.step, Step::Writing, "a write was begun");
        self.store.apply(&self.taken)?;
        self.unsynced_since.get_or_insert(now);
        self.durable.written = self.store.durable().written;
        let must_sync = self.taken.iter().any(|batch| batch.must_sync);
        self.taken.clear();
        if must_sync || self.interval.is_some_and(|every| now >= self.last_sync + every) {
            self.begin_sync(now, queue);
        } else {
            self.go_on(now, queue);
        }
        Ok(self.durable)
    }

    /// The time to sync has passed: what was written survives a loss of power.
    ///
    /// # Errors
    /// The sync failed; the host must stop.
    pub fn on_synced(&mut self, now: u64, queue: &mut Queue) -> Result<Durable, Fatal> {
        assert_eq!(self.step, Step::Syncing, "a sync was begun");
        self.store.sync()?;
        self.durable.synced = self.durable.written;
        self.last_sync = now;
        self.unsynced_since = None;
        self.go_on(now, queue);
        Ok(self.durable)
    }

    /// The interval of a periodic keyspace has passed.
    pub fn on_interval(&mut self, now: u64, queue: &mut Queue) {
        self.is_interval_pending = false;
        if self.step == Step::Idle && self.durable.synced < self.durable.written {
            self.begin_sync(now, queue);
        }
    }

    fn go_on(&mut self, now: u64, queue: &mut Queue) {
        self.step = Step::Idle;
        if !self.waiting.is_empty() {
            return self.begin_write(now, queue);
        }
        let Some(every) = self.interval else { return };
        if self.durable.synced < self.durable.written && !self.is_interval_pending {
            self.is_interval_pending = true;
            let at = (self.last_sync + every).max(now);
            queue.push(at, Event::Interval { host: self.host, life: self.life });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::Distribution;
    use bytes::Bytes;
    use quorate_kernel::storage::{Reader, Write};

    fn disk(interval: Option<u64>) -> Disk {
        let delay = |us| Delay::new(&Distribution::Constant { us });
        Disk::new(0, delay(1), delay(10), 1, interval, Rng::new(1))
    }

    fn batch(lsn: u64, must_sync: bool) -> Batch {
        let key = Bytes::from(lsn.to_string());
        let writes = vec![Write { key: key.clone(), value: Some(key) }];
        Batch { lsn: Lsn(lsn), must_sync, writes }
    }

    /// Runs the disk until nothing is left to do; returns the reports with their times.
    fn run(disk: &mut Disk, queue: &mut Queue) -> Vec<(u64, u64, u64)> {
        let mut reports = Vec::new();
        while let Some((now, event)) = queue.pop() {
            let waits = disk.unsynced_since().map_or(0, |since| now - since);
            assert!(
                disk.interval.is_none_or(|every| waits <= every + 11_000),
                "one write and sync"
            );
            let durable = match event {
                Event::Written { .. } => disk.on_written(now, queue).unwrap(),
                Event::Synced { .. } => disk.on_synced(now, queue).unwrap(),
                _ => {
                    disk.on_interval(now, queue);
                    continue;
                }
            };
            reports.push((now, durable.written.0, durable.synced.0));
        }
        reports
    }

    #[test]
    fn what_waits_during_a_sync_is_one_group() {
        let (mut disk, mut queue) = (disk(None), Queue::default());
        disk.open(1, 0);
        for lsn in 1..=4 {
            disk.commit(batch(lsn, true), 0, &mut queue);
        }
        let expected = [(1000, 1, 0), (11_000, 1, 1), (12_000, 4, 1), (22_000, 4, 4)];
        assert_eq!(run(&mut disk, &mut queue), expected);
    }

    #[test]
    fn a_periodic_disk_syncs_when_its_interval_has_passed() {
        let (mut disk, mut queue) = (disk(Some(50_000)), Queue::default());
        disk.open(1, 0);
        disk.commit(batch(1, false), 0, &mut queue);
        disk.commit(batch(2, false), 0, &mut queue);
        let expected = [(1000, 1, 0), (2000, 2, 0), (60_000, 2, 2)];
        assert_eq!(run(&mut disk, &mut queue), expected);
    }

    #[test]
    fn a_kill_keeps_what_was_written_and_power_loss_what_was_synced() {
        for (crash, survives) in [(Crash::ProcessKill, true), (Crash::PowerLoss, false)] {
            // Whether an unsynced batch survives a loss of power is drawn; one of many draws loses.
            let lost = (0..20).filter(|seed| {
                let (mut disk, mut queue) = (disk(None), Queue::default());
                disk.rng = Rng::new(*seed);
                disk.open(1, 0);
                for lsn in 1..=3 {
                    disk.commit(batch(lsn, false), 0, &mut queue);
                    if lsn < 3 {
                        run(&mut disk, &mut queue);
                    }
                }
                disk.crash(crash);
                let recovered = disk.open(2, 0);
                assert!(recovered.written < Lsn(3), "the third batch only waited");
                let second = disk.store().get(b"2").unwrap();
                assert_eq!(second.is_some(), recovered.written == Lsn(2));
                second.is_none()
            });
            assert_eq!(lost.count() == 0, survives);
        }
    }

    #[test]
    fn a_failed_sync_is_an_error() {
        let (mut disk, mut queue) = (disk(None), Queue::default());
        disk.open(1, 0);
        disk.store().fail_next_sync();
        disk.commit(batch(1, true), 0, &mut queue);
        let (now, _) = queue.pop().unwrap();
        assert!(disk.on_written(now, &mut queue).is_ok());
        let (now, _) = queue.pop().unwrap();
        assert!(disk.on_synced(now, &mut queue).is_err());
    }
}
