//! The store of a data directory: opening it, its write path and its reads.

use crate::data_directory::files::settle;
use crate::data_directory::mark::Mark;
use crate::directory::Directory;
use crate::error::DirectoryError;
use crate::log::{Clock, DiskLog};
use crate::slow::SlowSteps;
use crate::tables::backlog::{Backlog, SEGMENTS_LEAST};
use crate::tables::lsm::{Tables, TablesOptions};
use crate::tables::memtable::Memtables;
use crate::tables::reclaim::Reclaim;
use crate::wal::chain::{self, Chain};
use crate::wal::group::Salt;
use crate::wal::recovery::{Cut, Places, Prepared, confirm, open_segments, prepare};
use crate::wal::segments::{
    List, SEGMENT_BYTES_LEAST, SEGMENT_BYTES_MOST, remove_unfinished, settle_all,
};
use crate::wal::trimmed::Trimmed;
use crate::wal::write::{FIRST_KEY, Full, Ground, LAST_KEY, Wal};
use bytes::Bytes;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::storage::{Batch, Log, Reader};
use std::io;
use std::iter::Peekable;
use std::path::Path;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The most segments of a log, unless one group needs more: all of them are open files.
const SEGMENTS_MOST: u64 = 64;

/// How much memory and disk the store may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the cache of table blocks.
    pub cache_bytes: u64,
    /// Bytes of a memtable; up to three of them are in memory.
    pub memtable_bytes: u64,
    /// Bytes of a segment of the log. Fixed when the directory is first opened.
    pub segment_bytes: u64,
    /// Bytes of all segments together, for 2 to 64 of them; made as they are needed.
    pub log_bytes_max: u64,
    /// Threads that merge tables: one of the database, and at least one beside it.
    pub worker_threads: usize,
    /// Added to each sync, to measure with slower disks.
    pub sync_delay: Duration,
    /// The most tables kept open; merging them opens some more.
    pub files_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache_bytes: 64 << 20,
            memtable_bytes: 32 << 20,
            segment_bytes: 64 << 20,
            log_bytes_max: 256 << 20,
            worker_threads: 2,
            sync_delay: Duration::ZERO,
            files_max: 256,
        }
    }
}

/// An open store.
#[derive(Debug)]
pub struct Opened {
    /// The write path, for one thread.
    pub log: StoreLog,
    /// The reads.
    pub reader: StoreReader,
    /// The last batch that was recovered; the next one is numbered one higher.
    pub recovered: Lsn,
    /// A torn tail that was cut off: batches that were never synced.
    pub cut: Option<Cut>,
    /// What peers were seen to have synced, about a second before the last start ended.
    pub seen: Vec<Sighting>,
}

/// Opens the store of a data directory; creates it at the first start. Everything recovered is
/// synced when this returns.
///
/// # Errors
/// [`DirectoryError::WritesMissing`] or [`DirectoryError::Damaged`] when the store cannot hold all
/// that was synced; the directory is as it was unless the tables were damaged.
/// [`DirectoryError::Io`] when the operating system refuses.
pub fn open(
    directory: &Directory,
    options: &Options,
    clock: Clock,
) -> Result<Opened, DirectoryError> {
    open_found(find(directory)?, options, clock)
}

/// The log of a data directory, read and without a torn tail, before anything is opened.
pub(crate) struct FoundLog {
    places: Places,
    mark: Mark,
    chain: Chain,
    prepared: Prepared,
}

/// Reads the log of a data directory, and refuses what cannot hold all that was synced.
pub(crate) fn find(directory: &Directory) -> Result<FoundLog, DirectoryError> {
    let places = Places {
        database: directory.database(),
        log: directory.log(),
        cut: directory.cut(),
        start: directory.start(),
    };
    let path = directory.mark();
    if directory.memory_may_differ {
        settle(&path).map_err(DirectoryError::io("comparing with the disk", &path))?;
        let comparing = DirectoryError::io("comparing with the disk", &places.log);
        settle_all(&places.log).map_err(comparing)?;
    }
    let mark = Mark::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => DirectoryError::damaged(&path, error.to_string()),
        _ => DirectoryError::io("reading", &path)(error),
    })?;
    let chain = chain::read(&places.log).map_err(DirectoryError::io("reading", &places.log))?;
    let prepared = prepare(&places, mark.lsn(), &chain)?;
    Ok(FoundLog { places, mark, chain, prepared })
}

/// Opens what was found.
fn open_found(found: FoundLog, options: &Options, clock: Clock) -> Result<Opened, DirectoryError> {
    let FoundLog { places, mark, chain, prepared } = found;
    let tables = TablesOptions { cache_bytes: options.cache_bytes, files_max: options.files_max };
    let trimmed = Trimmed::default();
    let tables = Tables::open(&places.database, tables, &trimmed)?;
    trimmed.begin(tables.firsts().map_err(|fatal| broken(&places.database, fatal))?);
    let covered = tables.covered().map_err(|fatal| broken(&places.database, fatal))?;
    confirm(&places, &prepared, &chain, covered)?;
    let recovered = covered.max(chain.last);
    let list = match chain.list {
        Some(list) => list,
        None => new_list(options).map_err(DirectoryError::io("beginning", &places.log))?,
    };
    let most = (options.log_bytes_max / list.bytes).clamp(SEGMENTS_LEAST.into(), SEGMENTS_MOST);
    let most = u32::try_from(most).expect("it was clamped");
    remove_unfinished(&places.log).map_err(DirectoryError::io("removing", &places.log))?;
    let retired = open_segments(&places.log, &chain, covered)
        .map_err(DirectoryError::io("reading", &places.log))?;
    let generation = chain.generation;
    let backlog = Backlog::new(places.log.clone(), list, generation, covered, retired, most);
    let ground = Ground { memtables: Memtables::new(), backlog, tables, trimmed };
    let full = full(options, list, most);
    let mergers = options.worker_threads.saturating_sub(1).max(1);
    let wal = Wal::begin(ground.clone(), &places.log, &chain, recovered, full, list, mergers)
        .map_err(|fatal| broken(&places.log, fatal))?;
    let seen = mark.seen().to_vec();
    let log = StoreLog {
        reclaim: Reclaim::new(&ground, list.bytes),
        ground: ground.clone(),
        disk: DiskLog::new(wal, recovered, mark, clock, options.sync_delay),
    };
    Ok(Opened { log, reader: StoreReader { ground }, recovered, cut: prepared.cut, seen })
}

fn new_list(options: &Options) -> io::Result<List> {
    let bytes = options.segment_bytes.clamp(SEGMENT_BYTES_LEAST, SEGMENT_BYTES_MOST);
    let bytes = bytes / SEGMENT_BYTES_LEAST * SEGMENT_BYTES_LEAST;
    Ok(List { count: 0, bytes, salt: Salt::draw()? })
}

/// A memtable is full before the log is: while one is written to a table, there is room for more.
fn full(options: &Options, list: List, segments_max: u32) -> Full {
    let bytes = usize::try_from(options.memtable_bytes).unwrap_or(usize::MAX);
    Full { bytes, span: list.bytes * u64::from(segments_max - 1) / 2 }
}

fn broken(path: &Path, fatal: Fatal) -> DirectoryError {
    match fatal {
        Fatal::Disk(text) => DirectoryError::io("opening", path)(io::Error::other(text)),
        fatal => DirectoryError::damaged(path, fatal.to_string()),
    }
}

/// The write path of a store.
#[derive(Debug)]
pub struct StoreLog {
    disk: DiskLog<Wal>,
    ground: Ground,
    /// It ends last: it may wait for what ends before.
    reclaim: Reclaim,
}

impl StoreLog {
    /// Takes what peers were seen to have synced, to be kept with the mark.
    pub fn note(&mut self, seen: Vec<Sighting>) {
        self.disk.note(seen);
    }

    /// Keeps its slow steps there from now on.
    pub fn keep_slow_steps(&mut self, slow: &SlowSteps) {
        self.disk.slow = slow.clone();
        self.disk.engine.slow = slow.clone();
    }

    /// How long the mark may still lag what is synced, before [`StoreLog::maintain`] must be
    /// called; nothing when it does not lag.
    pub fn mark_due(&mut self) -> Option<Duration> {
        self.disk.mark_due()
    }

    /// Brings the mark up to date if it has lagged for its interval.
    ///
    /// # Errors
    /// [`Fatal`] when the mark cannot be written, or an earlier step failed.
    pub fn maintain(&mut self) -> Result<(), Fatal> {
        self.disk.maintain()
    }

    /// Looks after the space that deleted keys take; to be called every few seconds. It is given
    /// back in the background, while little is written.
    ///
    /// # Errors
    /// Space was not given back, and nothing was lost. Unless the disk was full, nothing goes on.
    pub fn reclaim(&mut self) -> Result<(), Fatal> {
        if self.reclaim.look(&self.ground)? {
            self.disk.with_engine(Wal::seal)?;
            self.reclaim.begin(&self.ground)?;
        }
        Ok(())
    }

    /// Bytes of tables that merging them would give back, at most.
    #[must_use]
    pub fn garbage_bytes(&self) -> u64 {
        self.reclaim.garbage_bytes(&self.ground)
    }

    /// Waits until all full memtables are tables, and all segments that hold nothing else are ready
    /// for their next use.
    ///
    /// # Errors
    /// [`Fatal`] when a table could not be written.
    pub fn settle(&self) -> Result<(), Fatal> {
        self.ground.backlog.settle()
    }

    /// Syncs, and brings the mark up to date. From then on nothing is lost, though closing may take
    /// long: a merge is not broken off.
    ///
    /// # Errors
    /// [`Fatal`] when the last sync failed, or an earlier step had; the stop is not a clean one.
    pub fn finish(&mut self) -> Result<(), Fatal> {
        self.ground.backlog.close();
        self.ground.tables.merges.close();
        self.disk.finish()
    }

    /// The same, and closes the write path. The files are closed when the last reader is dropped.
    ///
    /// # Errors
    /// See [`StoreLog::finish`].
    pub fn close(mut self) -> Result<(), Fatal> {
        self.finish()?;
        // Whatever became of it, nothing is lost.
        drop(self.reclaim.wait());
        Ok(())
    }
}

impl Log for StoreLog {
    fn apply(&mut self, batches: &[Batch]) -> Result<(), Fatal> {
        self.reclaim.note(&self.ground, batches);
        self.disk.apply(batches)
    }

    fn sync(&mut self) -> Result<(), Fatal> {
        self.disk.sync()
    }
}

/// The reads of a store. Clones share everything.
#[derive(Clone, Debug)]
pub struct StoreReader {
    ground: Ground,
}

/// What the store uses at the moment, approximately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of tables on disk.
    pub table_bytes: u64,
    /// Bytes of the log's segments on disk.
    pub log_bytes: u64,
    /// How much of the data is still in memory only; the log has it.
    pub memtable_bytes: u64,
    /// Bytes of cached blocks.
    pub cache_bytes: u64,
}

impl StoreReader {
    /// What the store uses at the moment, approximately.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            table_bytes: self.ground.tables.bytes(),
            log_bytes: self.ground.backlog.log_bytes(),
            memtable_bytes: self.ground.memtables.bytes() as u64,
            cache_bytes: self.ground.tables.cache_bytes(),
        }
    }
}

impl Reader for StoreReader {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        let trimmed = &self.ground.trimmed;
        if !(FIRST_KEY..LAST_KEY).contains(&key) || trimmed.hides(key) {
            return Ok(None);
        }
        if let Some((lane, Place::Log(log))) = entries::store_place(key) {
            return Ok(trimmed.first(lane, log).map(entries::trim));
        }
        // A memtable that becomes a table meanwhile is in both for a while, never in none.
        match self.ground.memtables.get(key) {
            Some(value) => Ok(value),
            None => self.ground.tables.get(key),
        }
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        let (from, to) = (from.max(FIRST_KEY), to.min(LAST_KEY));
        if from >= to {
            return Ok(());
        }
        // The memtables first: what leaves them later is in these tables.
        let memtables = self.ground.memtables.range(from, to);
        let mut layers: Vec<_> = memtables.into_iter().map(Iterator::peekable).collect();
        let mut tables = self.ground.tables.range(from, to).peekable();
        loop {
            let table = match tables.peek() {
                Some(Err(fatal)) => return Err(fatal.clone()),
                Some(Ok((key, _))) => Some(key.clone()),
                None => None,
            };
            let upper = layers.iter_mut().filter_map(|layer| layer.peek().map(|(key, _)| key));
            let Some(least) = upper.min().into_iter().chain(table.as_ref()).min().cloned() else {
                return Ok(());
            };
            let mut value = None;
            if table.is_some_and(|key| key == least)
                && let Some(Ok((_, found))) = tables.next()
            {
                value = Some(found);
            }
            // The newest comes first, so it is asked last.
            for layer in layers.iter_mut().rev() {
                if let Some(found) = next_if(layer, &least) {
                    value = found;
                }
            }
            if let Some(value) = value
                && !self.ground.trimmed.hides(&least)
                && !each(&least, &value)
            {
                return Ok(());
            }
        }
    }
}

/// What a layer says of a key, if that is its next.
fn next_if(
    layer: &mut Peekable<crate::tables::memtable::Range>,
    key: &Bytes,
) -> Option<Option<Bytes>> {
    layer.next_if(|(next, _)| next == key).map(|(_, value)| value)
}
