//! The tables of a store over fjall 3. No other module knows a type of it but `reclaim`.
//!
//! One database, one keyspace of it for all lanes. Nothing is ever inserted: whole memtables are
//! ingested as tables, so the database's own journal and memtables stay empty. Key-value separation
//! and FIFO compaction stay off and `clear` is never called: each had a bug that lost or mangled
//! data.

use crate::data_directory::files::sync_directory;
use crate::error::DirectoryError;
use crate::tables::memtable::Memtable;
use crate::wal::trimmed::{Firsts, Trimmed};
use bytes::Bytes;
use fjall::compaction::filter::Factory;
use fjall::{
    AbstractTree, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode, Readable, Slice,
};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The only keyspace of the database.
const KEYSPACE: &str = "data";
/// The key of the last batch that is in the tables. It sorts below every key of a lane.
const NUMBER_KEY: &[u8] = b"\0";
/// The key of where logs begin. It sorts behind the number and below every key of a lane.
const FIRSTS_KEY: &[u8] = b"\0\0";
/// Values up to this length are copied out of the database; a longer one is shared.
const COPY_BYTES_MAX: usize = 4096;
/// Tables of the first level above which no table is added.
const FIRST_LEVEL_TABLES_MAX: usize = 24;
/// After how many bytes of a table whoever waits for it is called.
const OFTEN_BYTES: usize = 64 << 10;
/// How long to wait for the database to merge some of them before looking again.
const MERGE_PATIENCE: Duration = Duration::from_millis(5);
const FILES_LEAST: usize = 10;
/// Directories in which the database renames files.
const RENAMED_IN: [&str; 4] = ["", "keyspaces", "keyspaces/0", "keyspaces/1"];

/// How the database is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablesOptions {
    pub(crate) cache_bytes: u64,
    pub(crate) worker_threads: usize,
    pub(crate) files_max: usize,
}

/// The tables. Clones are handles to the same ones.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) database: Database,
    pub(crate) keyspace: Keyspace,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl Tables {
    /// Opens the database; creates it at the first start.
    pub(crate) fn open(
        path: &Path,
        options: TablesOptions,
        trimmed: &Trimmed,
    ) -> Result<Tables, DirectoryError> {
        let filter: Arc<dyn Factory> = Arc::new(trimmed.clone());
        let open = || {
            let filter = Arc::clone(&filter);
            let database = Database::builder(path)
                .with_compaction_filter_factories(Arc::new(move |name: &str| {
                    (name == KEYSPACE).then(|| Arc::clone(&filter))
                }))
                .cache_size(options.cache_bytes)
                .worker_threads(options.worker_threads.max(1))
                .max_cached_files(Some(options.files_max.max(FILES_LEAST)))
                .open()?;
            let keyspace = database.keyspace(KEYSPACE, KeyspaceCreateOptions::default)?;
            // Who was killed before it synced the name of the newest list of tables left one that a
            // loss of power takes back, after what they cover was given up in the log.
            RENAMED_IN.iter().try_for_each(|below| sync_directory(&path.join(below)))?;
            Ok(Tables { database, keyspace })
        };
        // Damaged files make fjall panic in places where it could answer an error.
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(fjall::Error::Io(error))) => Err(DirectoryError::io("opening", path)(error)),
            Ok(Err(fjall::Error::Storage(LsmError::Io(error)))) if is_refusal(&error) => {
                Err(DirectoryError::io("opening", path)(error))
            }
            Ok(Err(error)) => {
                Err(DirectoryError::damaged(path, fatal("opening", error).to_string()))
            }
            Err(_) => Err(DirectoryError::damaged(path, "the database gave up while it opened")),
        }
    }

    /// The last batch that is in the tables, 0 if there is none.
    pub(crate) fn covered(&self) -> Result<Lsn, Fatal> {
        match self.keyspace.get(NUMBER_KEY).map_err(|error| fatal("reading", error))? {
            None => Ok(Lsn(0)),
            Some(bytes) => (*bytes)
                .try_into()
                .map(|bytes| Lsn(u64::from_be_bytes(bytes)))
                .map_err(|_| Fatal::Corrupt("the newest table has no number".to_owned())),
        }
    }

    /// Where logs begin, as of that batch.
    pub(crate) fn firsts(&self) -> Result<Firsts, Fatal> {
        let stored = self.keyspace.get(FIRSTS_KEY).map_err(|error| fatal("reading", error))?;
        let damaged = || Fatal::Corrupt("the tables do not say where logs begin".to_owned());
        stored.map_or(Ok(Firsts::default()), |bytes| Firsts::of_stored(&bytes).ok_or_else(damaged))
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        let value = self.keyspace.get(key).map_err(|error| fatal("reading", error))?;
        Ok(value.map(shared))
    }

    /// The pairs with keys in `from..to`, ascending, as of this call.
    pub(crate) fn range(
        &self,
        from: &[u8],
        to: &[u8],
    ) -> impl Iterator<Item = Result<(Bytes, Bytes), Fatal>> + use<> {
        let pairs = self.database.snapshot().range(&self.keyspace, from..to);
        pairs.map(|pair| {
            let (key, value) = pair.into_inner().map_err(|error| fatal("scanning", error))?;
            Ok((shared(key), shared(value)))
        })
    }

    /// Adds a memtable as a table, synced, of which `upto` is the last batch. It replaces what
    /// older tables have of its keys. All of it is there after a crash, or nothing. Entries of logs
    /// before the `firsts` are left out: these are of that batch or a later one, and synced. Calls
    /// back often meanwhile.
    pub(crate) fn ingest(
        &self,
        memtable: &Memtable,
        upto: Lsn,
        firsts: &Firsts,
        mut meanwhile: impl FnMut() -> Result<(), Fatal>,
    ) -> Result<(), Fatal> {
        self.wait_for_merges()?;
        let failed = |error| fatal("writing a table", error);
        let mut ingestion = self.keyspace.start_ingestion().map_err(failed)?;
        ingestion.write(NUMBER_KEY, &upto.0.to_be_bytes()[..]).map_err(failed)?;
        if !mutant!("log_trim_lost") {
            ingestion.write(FIRSTS_KEY, &firsts.stored()[..]).map_err(failed)?;
        }
        let mut written = 0;
        memtable.each(|key, value| {
            if firsts.has_passed(&key) {
                return Ok(());
            }
            let taken = match value {
                Some(value) => ingestion.write(&key[..], &value[..]),
                None => ingestion.write_tombstone(&key[..]),
            };
            taken.map_err(failed)?;
            written += key.len() + value.map_or(0, Bytes::len);
            if written >= OFTEN_BYTES {
                written = 0;
                meanwhile()?;
            }
            Ok(())
        })?;
        ingestion.finish().map_err(failed)?;
        let upto = self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let kept = self.keyspace.tree.get_version_history_lock();
        { kept }.maintenance(self.keyspace.path(), upto).map_err(|error| failed(error.into()))
    }

    /// Waits while the database is behind with merging tables.
    fn wait_for_merges(&self) -> Result<(), Fatal> {
        loop {
            // Persisting nothing is how to learn that a worker failed.
            let persisted = self.database.persist(PersistMode::Buffer);
            persisted.map_err(|error| fatal("merging tables", error))?;
            if self.keyspace.l0_table_count() <= FIRST_LEVEL_TABLES_MAX {
                return Ok(());
            }
            std::thread::sleep(MERGE_PATIENCE);
        }
    }

    /// Bytes of tables on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.keyspace.disk_space()
    }

    /// Bytes of cached blocks.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.database.cache_size()
    }
}

/// Whether the operating system refused, whatever the files hold.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
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

/// What an error of the database is to the host.
pub(crate) fn fatal(doing: &str, error: fjall::Error) -> Fatal {
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
