//! The tables of a store over fjall 3. No other module knows a type of it but `reclaim` and `view`.
//!
//! One database, one keyspace of it for all lanes. Nothing is ever inserted: whole memtables are
//! ingested as tables, so the database's own journal and memtables stay empty. Key-value separation
//! and FIFO compaction stay off and `clear` is never called: each had a bug that lost or mangled
//! data.

use crate::data_directory::files::sync_directory;
use crate::error::DirectoryError;
use crate::tables::lists::{self, KEYSPACES};
use crate::tables::memtable::Memtable;
use crate::tables::merges::Merges;
use crate::tables::view::Views;
use crate::wal::trimmed::{Firsts, Trimmed};
use crate::wal::write::LAST_KEY;
use bytes::Bytes;
use fjall::compaction::filter::Factory;
use fjall::{
    AbstractTree, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode, Slice,
};
use lsm_tree::compaction::CompactionStrategy;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
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
pub(crate) const FIRST_LEVEL_TABLES_MAX: usize = 24;
/// After how many bytes of a table whoever waits for it is called.
const OFTEN_BYTES: usize = 64 << 10;
/// How long to wait for some of them to be merged before looking again.
const MERGE_PATIENCE: Duration = Duration::from_millis(5);
/// Threads of the database. Of several it keeps one for what is never asked of it here, which then
/// spins while the others merge.
const DATABASE_THREADS: usize = 1;
const FILES_LEAST: usize = 10;

/// How the database is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablesOptions {
    pub(crate) cache_bytes: u64,
    pub(crate) files_max: usize,
}

/// The tables. Clones are handles to the same ones.
#[derive(Clone)]
pub(crate) struct Tables {
    /// Dropped first: a file may be removed only while nobody else may open the database.
    views: Views,
    pub(crate) database: Database,
    pub(crate) keyspace: Keyspace,
    pub(crate) merges: Merges,
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
        let reading = || DirectoryError::io("reading", path);
        // Who was killed before it synced the name of the newest list of tables left one that a
        // loss of power takes back, after what they cover was given up in the log. So that is
        // synced before the database removes what is in no list.
        sync_names(path).map_err(DirectoryError::io("syncing", path))?;
        lists::check(path)?;
        let known = lists::finished(path).map_err(reading())?;
        let filter: Arc<dyn Factory> = Arc::new(trimmed.clone());
        let open = || {
            let filter = Arc::clone(&filter);
            let database = Database::builder(path)
                .with_compaction_filter_factories(Arc::new(move |name: &str| {
                    (name == KEYSPACE).then(|| Arc::clone(&filter))
                }))
                .cache_size(options.cache_bytes)
                .worker_threads(DATABASE_THREADS)
                .max_cached_files(Some(options.files_max.max(FILES_LEAST)))
                .open()?;
            let keyspace = database.keyspace(KEYSPACE, KeyspaceCreateOptions::default)?;
            sync_names(path)?;
            let views = Views::of(&keyspace);
            Ok(Tables { views, database, keyspace, merges: Merges::default() })
        };
        // Damaged files make fjall panic in places where it could answer an error.
        match catch_unwind(AssertUnwindSafe(open)) {
            // It removes a keyspace whose name it does not find, and makes another.
            Ok(Ok(opened)) if !opened.is_of_one(&known) => {
                let what = "the database did not know its keyspace any more, and made it anew";
                Err(DirectoryError::damaged(path, what))
            }
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(fjall::Error::Locked)) => Err(DirectoryError::Locked {
                path: path.parent().unwrap_or(path).to_path_buf(),
                holder: "a host that is about to end".to_owned(),
            }),
            Ok(Err(fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error))))
                if is_refusal(&error) =>
            {
                Err(DirectoryError::io("opening", path)(error))
            }
            Ok(Err(error)) => {
                Err(DirectoryError::damaged(path, fatal("opening", error).to_string()))
            }
            Err(_) => Err(DirectoryError::damaged(path, "the database gave up while it opened")),
        }
    }

    /// Whether the keyspace is one of those that were there before, if any was.
    fn is_of_one(&self, known: &[PathBuf]) -> bool {
        let number = self.keyspace.path().file_name();
        known.is_empty() || known.iter().any(|path| path.file_name() == number)
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

    /// The value of a key. Waits for no other thread.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        let value = self.views.newest().get(key).map_err(|error| fatal("reading", error.into()))?;
        Ok(value.map(shared))
    }

    /// The pairs with keys in `from..to`, ascending, as of this call. Waits for no other thread.
    pub(crate) fn range(
        &self,
        from: &[u8],
        to: &[u8],
    ) -> impl Iterator<Item = Result<(Bytes, Bytes), Fatal>> + use<> {
        self.views.newest().range(from, to).map(|pair| {
            let (key, value) = pair.map_err(|error| fatal("scanning", error))?;
            Ok((shared(key), shared(value)))
        })
    }

    /// Adds a memtable as a table, synced, of which `upto` is the last batch. It replaces what
    /// older tables have of its keys. All of it is there after a crash, or nothing. Entries of logs
    /// before the `firsts` are left out: these are of that batch or a later one, and synced. Calls
    /// back often meanwhile. Reads that begin later see it. To be called after
    /// [`Tables::wait_for_merges`].
    pub(crate) fn ingest(
        &self,
        memtable: &Memtable,
        upto: Lsn,
        firsts: &Firsts,
        mut meanwhile: impl FnMut() -> Result<(), Fatal>,
    ) -> Result<(), Fatal> {
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
        // All tables reach from the first key to the last, but for those that were merged: so what
        // lies above others in the last level is never beyond their end, where it could not be
        // merged into them.
        if !mutant!("tables_have_no_end") {
            ingestion.write(LAST_KEY, &[][..]).map_err(failed)?;
        }
        ingestion.finish().map_err(failed)?;
        if !mutant!("tables_seen_late") {
            self.renew();
        }
        self.merges.ask();
        let upto = self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let kept = self.keyspace.tree.get_version_history_lock();
        { kept }.maintenance(self.keyspace.path(), upto).map_err(|error| failed(error.into()))
    }

    /// Waits while so many tables are to be merged that none may be added. Calls back often, and
    /// gives up where that says so: returns whether one may be added.
    pub(crate) fn wait_for_merges(
        &self,
        mut go_on: impl FnMut() -> Result<bool, Fatal>,
    ) -> Result<bool, Fatal> {
        loop {
            // Persisting nothing is how to learn that a worker failed.
            let persisted = self.database.persist(PersistMode::Buffer);
            persisted.map_err(|error| fatal("merging tables", error))?;
            if self.keyspace.l0_table_count() <= FIRST_LEVEL_TABLES_MAX {
                return Ok(true);
            }
            if !go_on()? {
                return Ok(false);
            }
            self.merges.ask();
            std::thread::sleep(MERGE_PATIENCE);
        }
    }

    /// Merges what is due most, if anything is that nobody else merges; says whether it was.
    pub(crate) fn merge_once(&self) -> Result<bool, Fatal> {
        let merged = self.merge_by(KeyspaceCreateOptions::default().compaction_strategy);
        merged.map_err(|error| fatal("merging tables", error))
    }

    /// The same, of what a strategy takes for due.
    pub(crate) fn merge_by(&self, strategy: Arc<dyn CompactionStrategy>) -> fjall::Result<bool> {
        let tree = &self.keyspace.tree;
        let before = tree.current_version().id();
        let upto = self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        tree.compact(strategy, upto)?;
        self.renew();
        Ok(tree.current_version().id() != before)
    }

    /// Lets reads see the tables that there are now, and lets go of those that are no more. Waits
    /// for the disk.
    pub(crate) fn renew(&self) {
        self.views.renew(&self.keyspace);
    }

    /// Bytes of tables on disk. Waits for no other thread.
    pub(crate) fn bytes(&self) -> u64 {
        self.views.newest().bytes
    }

    /// Records in the tables, deletes and what they delete included. Waits for no other thread.
    pub(crate) fn records(&self) -> u64 {
        self.views.newest().records
    }

    /// Bytes of cached blocks.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.database.cache_size()
    }
}

/// Syncs the names in the directories of the database, as far as these are there.
fn sync_names(path: &Path) -> io::Result<()> {
    let above = [path.to_path_buf(), path.join(KEYSPACES)].into_iter().filter(|one| one.is_dir());
    above.chain(lists::keyspaces(path)?).try_for_each(|one| sync_directory(&one))
}

/// Whether the operating system refused, whatever the files hold: it has no more room, memory or
/// open files, may not, or cannot read. That a file is gone, ends early or holds what makes no
/// sense is damage.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, NotADirectory, NotFound};
    use io::ErrorKind::{Other, UnexpectedEof};
    let of_names = [InvalidInput, IsADirectory, NotADirectory, NotFound];
    let of_contents = [InvalidData, Other, UnexpectedEof];
    !of_names.contains(&error.kind()) && !of_contents.contains(&error.kind())
}

/// Whether the disk was full.
pub(crate) fn is_no_room(error: &fjall::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => {
            matches!(error.kind(), QuotaExceeded | StorageFull)
        }
        _ => false,
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
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error))
            if !is_refusal(&error) =>
        {
            Fatal::Corrupt(text)
        }
        fjall::Error::Io(_)
        | fjall::Error::Storage(LsmError::Io(_))
        | fjall::Error::Poisoned
        | fjall::Error::Locked => Fatal::Disk(text),
        _ => Fatal::Corrupt(text),
    }
}

#[test]
fn only_what_the_files_hold_or_lack_is_damage() {
    use io::ErrorKind::{InvalidData, NotFound, StorageFull, UnexpectedEof};
    use rustix::io::Errno;
    for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO, Errno::NOSPC, Errno::ACCESS]
    {
        assert!(is_refusal(&io::Error::from(errno)), "{errno}");
        let wrapped = fjall::Error::Storage(LsmError::Io(io::Error::from(errno)));
        assert!(matches!(fatal("reading", wrapped), Fatal::Disk(_)), "{errno}");
    }
    assert!(is_refusal(&io::Error::new(StorageFull, "with a path")));
    for kind in [InvalidData, NotFound, UnexpectedEof] {
        assert!(!is_refusal(&io::Error::from(kind)), "{kind}");
        let wrapped = fjall::Error::Storage(LsmError::Io(io::Error::from(kind)));
        assert!(matches!(fatal("reading", wrapped), Fatal::Corrupt(_)), "{kind}");
    }
    assert!(!is_refusal(&io::Error::from(Errno::NOENT)));
}
