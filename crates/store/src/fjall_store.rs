//! The store over fjall 3. No other module knows a type of it.
//!
//! One database, one keyspace of it for all lanes, one journal: one sync covers everything a turn
//! wrote. Key-value separation and FIFO compaction stay off and `clear` is never called: each had a
//! bug that lost or mangled data. The commit of fjall holds its journal's lock across a sync, so
//! one thread owns the write path.
//!
//! Keys and values are copied into the database, not shared with the caller: a shared slice would
//! keep the whole network buffer it was cut from alive for as long as a memtable lives.

use crate::directory::Directory;
use crate::error::DirectoryError;
use crate::journal::{BatchNumber, NUMBER_KEY};
use crate::log::{Clock, DiskLog, Engine};
use crate::mark::Mark;
use crate::reclaim::Reclaim;
use crate::recovery::{Cut, Places, confirm, link_tables, prepare};
use bytes::Bytes;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, LsmError, OwnedWriteBatch, PersistMode, Readable,
    Slice,
};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::storage::{Batch, Log, Reader};
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

/// The longest whole key the database takes, lane and class included.
pub const STORE_KEY_BYTES_MAX: usize = u16::MAX as usize;
/// The only keyspace of the database.
const KEYSPACE: &str = "data";
/// The first key that can be a lane's.
const FIRST_KEY: &[u8] = b"\0\0";
/// Values up to this length are copied out of the database; a longer one is shared.
const COPY_BYTES_MAX: usize = 4096;
/// Memtables waiting to be written, and tables of the first level, above which a commit waits.
const WAITING_MEMTABLES_MAX: usize = 2;
const FIRST_LEVEL_TABLES_MAX: usize = 24;
const JOURNAL_BYTES_LEAST: u64 = 64 << 20;
const FILES_LEAST: usize = 10;

/// How much memory and disk the database may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the cache of table blocks.
    pub cache_bytes: u64,
    /// Bytes of a memtable; up to four of them can be in memory. Fixed when the directory is first
    /// opened.
    pub memtable_bytes: u64,
    /// Bytes of all journals together, at least 64 MiB.
    pub journal_bytes_max: u64,
    /// Threads that write and merge tables.
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
            journal_bytes_max: 192 << 20,
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
    pub log: FjallLog,
    /// The reads.
    pub reader: FjallReader,
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
/// that was synced; the directory is as it was unless the database itself was damaged outside its
/// journals. [`DirectoryError::Io`] when the operating system refuses.
pub fn open(
    directory: &Directory,
    options: &Options,
    clock: Clock,
) -> Result<Opened, DirectoryError> {
    let places =
        Places { database: directory.database(), cut: directory.cut(), start: directory.start() };
    let path = directory.mark();
    let mark = Mark::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => DirectoryError::damaged(&path, error.to_string()),
        _ => DirectoryError::io("reading", &path)(error),
    })?;
    let prepared = prepare(&places, mark.lsn(), last_in_tables)?;
    let (database, keyspace) = open_database(&places.database, options)?;
    let number = read_number(&keyspace).map_err(|fatal| broken(&places.database, &fatal))?;
    let recovered = number.last;
    confirm(&places, &prepared, recovered)?;
    let reader = FjallReader { database: database.clone(), keyspace: keyspace.clone() };
    let seen = mark.seen().to_vec();
    let engine = FjallEngine { reclaim: Reclaim::new(&keyspace), database, keyspace };
    let log = FjallLog(DiskLog::new(engine, recovered, mark, clock, options.sync_delay));
    Ok(Opened { log, reader, recovered, cut: prepared.cut, seen })
}

/// The write path over fjall.
pub struct FjallLog(DiskLog<FjallEngine>);

impl FjallLog {
    /// Takes what peers were seen to have synced, to be kept with the mark.
    pub fn note(&mut self, seen: Vec<Sighting>) {
        self.0.note(seen);
    }

    /// How long the mark may still lag what is synced, before [`FjallLog::maintain`] must be
    /// called; nothing when it does not lag.
    pub fn mark_due(&mut self) -> Option<Duration> {
        self.0.mark_due()
    }

    /// Brings the mark up to date if it has lagged for its interval.
    ///
    /// # Errors
    /// [`Fatal`] when the mark cannot be written, or an earlier step failed.
    pub fn maintain(&mut self) -> Result<(), Fatal> {
        self.0.maintain()
    }

    /// Looks after the space that deleted keys take; to be called every few seconds. It is given
    /// back in the background, while little is written.
    ///
    /// # Errors
    /// Space was not given back. Nothing was lost.
    pub fn reclaim(&mut self) -> Result<(), Fatal> {
        let FjallEngine { database, keyspace, reclaim } = self.0.engine();
        reclaim.look(database, keyspace).map_err(|error| fatal("giving space back", error))
    }

    /// Syncs, brings the mark up to date and closes the write path. The files are closed when the
    /// last reader is dropped.
    ///
    /// # Errors
    /// [`Fatal`] when the last sync failed, or an earlier step had; the stop is not a clean one.
    pub fn close(mut self) -> Result<(), Fatal> {
        // Whatever became of it, nothing is lost.
        drop(self.0.engine().reclaim.wait());
        self.0.close()
    }
}

impl std::fmt::Debug for FjallLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FjallLog")
    }
}

impl Log for FjallLog {
    fn apply(&mut self, batches: &[Batch]) -> Result<(), Fatal> {
        self.0.apply(batches)
    }

    fn sync(&mut self) -> Result<(), Fatal> {
        self.0.sync()
    }
}

/// The reads over fjall. Clones share everything.
#[derive(Clone)]
pub struct FjallReader {
    database: Database,
    keyspace: Keyspace,
}

/// What the database uses at the moment, approximately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of tables on disk.
    pub table_bytes: u64,
    /// Bytes of journals on disk.
    pub journal_bytes: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Bytes of cached blocks.
    pub cache_bytes: u64,
}

impl FjallReader {
    /// What the database uses at the moment, approximately.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            table_bytes: self.keyspace.disk_space(),
            journal_bytes: self.database.journal_disk_space().unwrap_or(0),
            memtable_bytes: self.database.write_buffer_size(),
            cache_bytes: self.database.cache_size(),
        }
    }
}

impl std::fmt::Debug for FjallReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FjallReader").field(&self.stats()).finish()
    }
}

impl Reader for FjallReader {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        if key < FIRST_KEY {
            return Ok(None);
        }
        let value = self.keyspace.get(key).map_err(|error| fatal("reading", error))?;
        Ok(value.map(shared))
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        let from = from.max(FIRST_KEY);
        if from >= to {
            return Ok(());
        }
        for pair in self.database.snapshot().range(&self.keyspace, from..to) {
            let (key, value) = pair.into_inner().map_err(|error| fatal("scanning", error))?;
            if !each(&shared(key), &shared(value)) {
                break;
            }
        }
        Ok(())
    }
}

/// Takes bytes out of the database: short ones by copy, which costs as much as sharing them and
/// lets go of the block they lie in.
fn shared(slice: Slice) -> Bytes {
    if slice.len() <= COPY_BYTES_MAX {
        Bytes::copy_from_slice(&slice)
    } else {
        Bytes::from_owner(slice)
    }
}

struct FjallEngine {
    database: Database,
    keyspace: Keyspace,
    reclaim: Reclaim,
}

impl FjallEngine {
    /// Waits while the database is behind with its tables. Its own waiting would go on for ever
    /// once its workers have failed, and sleeps longer than needed.
    fn wait_for_tables(&self) -> Result<(), Fatal> {
        while self.keyspace.sealed_memtable_count() > WAITING_MEMTABLES_MAX
            || self.keyspace.l0_table_count() > FIRST_LEVEL_TABLES_MAX
        {
            // Persisting nothing is how to learn that a worker failed.
            self.database
                .persist(PersistMode::Buffer)
                .map_err(|error| fatal("writing tables", error))?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Engine for FjallEngine {
    fn commit(&mut self, batches: &[Batch], synced: Lsn) -> Result<(), Fatal> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { return Ok(()) };
        self.wait_for_tables()?;
        let number = BatchNumber {
            first: first.lsn,
            last: last.lsn,
            synced,
            sequence_floor: self.database.supervisor.seqno.get(),
        };
        let count = 1 + batches.iter().map(|batch| batch.writes.len()).sum::<usize>();
        let mut group = OwnedWriteBatch::with_capacity(self.database.clone(), count)
            .durability(Some(PersistMode::Buffer));
        // The journal's reader expects the number first.
        group.insert(&self.keyspace, NUMBER_KEY, number.encode());
        let mut bytes = 0;
        for write in batches.iter().flat_map(|batch| &batch.writes) {
            if write.key[..] < *FIRST_KEY || write.key.len() > STORE_KEY_BYTES_MAX {
                let text = format!("a key of {} bytes cannot be stored", write.key.len());
                return Err(Fatal::Corrupt(text));
            }
            bytes += (write.key.len() + write.value.as_ref().map_or(0, Bytes::len)) as u64;
            match &write.value {
                Some(value) => group.insert(&self.keyspace, &write.key[..], &value[..]),
                None => group.remove(&self.keyspace, &write.key[..]),
            }
        }
        self.reclaim.note(count as u64, bytes);
        group.commit().map_err(|error| fatal("writing", error))
    }

    fn persist(&mut self) -> Result<(), Fatal> {
        self.database.persist(PersistMode::SyncData).map_err(|error| fatal("syncing", error))
    }
}

fn open_database(path: &Path, options: &Options) -> Result<(Database, Keyspace), DirectoryError> {
    let open = || {
        let database = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes_max.max(JOURNAL_BYTES_LEAST))
            .worker_threads(options.worker_threads.max(1))
            .max_cached_files(Some(options.files_max.max(FILES_LEAST)))
            .open()?;
        let keyspace = database.keyspace(KEYSPACE, || {
            KeyspaceCreateOptions::default().max_memtable_size(options.memtable_bytes)
        })?;
        Ok((database, keyspace))
    };
    // Damaged files make fjall panic in places where it could answer an error.
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok(opened)) => Ok(opened),
        Ok(Err(fjall::Error::Io(error))) => Err(DirectoryError::io("opening", path)(error)),
        Ok(Err(error)) => Err(broken(path, &fatal("opening", error))),
        Err(_) => Err(DirectoryError::damaged(path, "the database gave up while it opened")),
    }
}

fn broken(path: &Path, fatal: &Fatal) -> DirectoryError {
    DirectoryError::damaged(path, fatal.to_string())
}

fn read_number(keyspace: &Keyspace) -> Result<BatchNumber, Fatal> {
    match keyspace.get(NUMBER_KEY).map_err(|error| fatal("reading", error))? {
        None => Ok(BatchNumber::default()),
        Some(bytes) => BatchNumber::decode(&bytes)
            .ok_or_else(|| Fatal::Corrupt("the newest batch has no number".to_owned())),
    }
}

/// The last batch in the tables, read from a second database of links to their files, so that
/// opening it changes nothing in the first.
fn last_in_tables(database: &Path) -> Result<Lsn, DirectoryError> {
    let links = database.with_extension("links");
    let failed = || DirectoryError::io("linking", &links);
    if links.exists() {
        fs::remove_dir_all(&links).map_err(failed())?;
    }
    link_tables(database, &links).map_err(failed())?;
    let options = Options { worker_threads: 1, ..Options::default() };
    let number = open_database(&links, &options).and_then(|(_database, keyspace)| {
        read_number(&keyspace).map_err(|fatal| broken(database, &fatal))
    });
    fs::remove_dir_all(&links).map_err(failed())?;
    Ok(number?.last)
}

fn fatal(doing: &str, error: fjall::Error) -> Fatal {
    let text = match error {
        // A worker of the database met the cause, and it tells nobody what it was.
        fjall::Error::Poisoned => {
            format!("{doing}: the database failed to write its tables; is the disk full?")
        }
        _ => format!("{doing}: {error}"),
    };
    match error {
        fjall::Error::Io(_)
        | fjall::Error::Storage(LsmError::Io(_))
        | fjall::Error::Poisoned
        | fjall::Error::Locked => Fatal::Disk(text),
        _ => Fatal::Corrupt(text),
    }
}
