//! Gives disk space back that deleted and replaced records take, while there is little else to do.
//!
//! The database drops them when it merges tables, and it merges tables as new ones come. After
//! many deletes and nothing more it would keep all of it. So once the store is quiet and a good
//! part of its records is new since that was last done, everything is merged into new tables, on a
//! thread of its own: whether a new record replaces an older one is not known without reading.
//! Meanwhile the database merges nothing else, and new tables pile up: a store for which that would
//! take long is left to the database. The new tables lie beside the old ones until all are there,
//! so that is done only where the disk has room for all of them and more.
//!
//! Whoever applies batches decides, and waits for nothing: what waits for the disk, or for a lock
//! that somebody holds while it writes to it, is done by a thread that merges tables.

use crate::tables::backlog::Backlog;
use crate::tables::lists::NEWEST_LIST;
use crate::tables::lsm::{Tables, fatal, is_no_room};
use crate::wal::write::Ground;
use fjall::AbstractTree;
use quorate_kernel::error::Fatal;
use quorate_kernel::mutant;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

/// No more than this was written since the last look: the store is quiet.
const QUIET_BYTES: u64 = 256 << 10;
/// Of so many records one must be new.
const NEW_PART: u64 = 8;
/// Smaller stores are not worth it, larger ones take too long.
const BYTES_LEAST: u64 = 8 << 20;
const BYTES_MOST: u64 = 1 << 30;
/// What the disk must have beside room for all tables once more: this part of them, for what is
/// written meanwhile, and a segment of the log.
const ROOM_PART: u64 = 8;

/// After how many snapshots the database looks which are still in use.
const SNAPSHOTS: usize = 10_000;

/// Looks after the space of one store.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// Records that were written, deletes included, since everything was last merged; of earlier
    /// starts the deletes.
    written: u64,
    /// How much of that was new when everything was last begun to be merged.
    begun: u64,
    /// What was written since the last look.
    written_bytes: u64,
    /// Whether it was worth it when a thread was last asked to look: what it found then counts.
    was_due: bool,
    /// Bytes of a segment of the log.
    segment_bytes: u64,
    merging: Option<JoinHandle<Result<(), Fatal>>>,
}

impl Reclaim {
    /// Whether nothing is left to be merged of what was written.
    #[cfg(test)]
    pub(crate) fn is_done(&self) -> bool {
        self.written == 0 && self.merging.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Of a store that was just opened.
    pub(crate) fn new(ground: &Ground, segment_bytes: u64) -> Reclaim {
        let written = ground.tables.keyspace.tree.tombstone_count();
        Reclaim {
            written,
            begun: 0,
            written_bytes: 0,
            was_due: false,
            segment_bytes,
            merging: None,
        }
    }

    /// Something was written.
    pub(crate) fn note(&mut self, records: u64, bytes: u64) {
        self.written += records;
        self.written_bytes += bytes;
    }

    /// To be called every few seconds. Says whether it is time to merge all tables, which is once
    /// the disk was found to have room; an error is that of an earlier time, of which nothing was
    /// lost. Waits for nothing.
    pub(crate) fn look(&mut self, ground: &Ground) -> Result<bool, Fatal> {
        let is_quiet = std::mem::take(&mut self.written_bytes) <= QUIET_BYTES;
        if self.merging.as_ref().is_some_and(|merging| !merging.is_finished()) {
            return Ok(false);
        }
        self.wait().inspect_err(|_| self.written += std::mem::take(&mut self.begun))?;
        let bytes = ground.tables.bytes() + ground.memtables.bytes() as u64;
        let records = ground.tables.records();
        let is_worth_it = self.written > 0 && self.written >= records / NEW_PART;
        let is_due = is_worth_it && (BYTES_LEAST..=BYTES_MOST).contains(&bytes);
        let was_due = std::mem::replace(&mut self.was_due, is_due);
        let room = ground.tables.merges.take_room().transpose()?;
        let needed = bytes + bytes / ROOM_PART + self.segment_bytes;
        // Writers may never be quiet for so long that two looks fall between.
        if is_quiet && is_due && was_due && room.is_some_and(|room| room >= needed) {
            self.was_due = false;
            return Ok(true);
        }
        ground.tables.merges.ask_for_look();
        Ok(false)
    }

    /// Begins to merge all tables, once the memtables that were handed over are among them.
    pub(crate) fn begin(&mut self, ground: &Ground) -> Result<(), Fatal> {
        self.begun = std::mem::take(&mut self.written);
        let (backlog, tables) = (ground.backlog.clone(), ground.tables.clone());
        let builder = std::thread::Builder::new().name("reclaim".to_owned());
        let thread = builder.spawn(move || merge(&backlog, &tables));
        let thread = thread.map_err(|error| Fatal::Disk(format!("a thread: {error}")))?;
        self.merging = Some(thread);
        Ok(())
    }

    /// Bytes of tables that merging them would give back, at most: of so many records, so many may
    /// have replaced others. Waits for nothing.
    pub(crate) fn garbage_bytes(&self, ground: &Ground) -> u64 {
        let records = ground.tables.records().max(1);
        let part = u128::from(ground.tables.bytes()) * u128::from(self.written.min(records));
        u64::try_from(part / u128::from(records)).expect("a part of 64 bits")
    }

    /// Waits for what was begun.
    pub(crate) fn wait(&mut self) -> Result<(), Fatal> {
        let ended = self.merging.take().map(JoinHandle::join);
        let panicked = || Fatal::Corrupt("merging tables panicked".to_owned());
        ended.map_or(Ok(()), |ended| ended.unwrap_or_else(|_| Err(panicked())))
    }
}

impl Drop for Reclaim {
    fn drop(&mut self) {
        // The directory is in use until then.
        drop(self.wait());
    }
}

/// Lets go of tables that were merged, and says how many bytes the disk has for others. Waits for
/// the disk.
pub(crate) fn look(tables: &Tables) -> Result<u64, Fatal> {
    tables.renew();
    free(tables).map_err(|error| fatal("giving space back", error))?;
    let found = rustix::fs::statvfs(tables.keyspace.path());
    let found = found.map_err(|error| Fatal::Disk(format!("the room on the disk: {error}")))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Lets go of tables that were merged. The database does so when a table is added, and so never
/// while nothing is written: it keeps what readers of an older sequence number may need, and looks
/// who they are at every so many snapshots.
fn free(Tables { database, keyspace, .. }: &Tables) -> fjall::Result<()> {
    if keyspace.tree.version_free_list_len() == 0 {
        return Ok(());
    }
    let tracker = &database.supervisor.snapshot_tracker;
    // Nobody reads at a sequence number but at the newest. Tables are added whole, so nothing that
    // is half written becomes visible.
    tracker.publish(database.supervisor.seqno.next());
    (0..SNAPSHOTS).for_each(|_| drop(database.snapshot()));
    let upto = tracker.get_seqno_safe_to_gc();
    keyspace.tree.get_version_history_lock().maintenance(keyspace.path(), upto)?;
    Ok(())
}

/// Merges all tables into new ones, with those that become some of memtables now. Where the disk
/// is full everything stays as it was. After any other failure nothing goes on: what a sync that
/// failed has left on the disk is unknown.
fn merge(backlog: &Backlog, tables: &Tables) -> Result<(), Fatal> {
    backlog.settle()?;
    if backlog.is_over() {
        return Ok(());
    }
    // Damaged files make fjall panic in places where it could answer an error.
    let merged = catch_unwind(AssertUnwindSafe(|| tables.keyspace.major_compact()));
    let (failure, has_no_room) = match merged {
        Ok(Ok(())) => {
            tables.renew();
            return Ok(());
        }
        Ok(Err(error)) => {
            let has_no_room = is_no_room(&error);
            (fatal("giving space back", error), has_no_room)
        }
        Err(_) => (Fatal::Corrupt("the database gave up while it merged tables".to_owned()), false),
    };
    // What was written in part stays until a start: while the database's own thread may be writing
    // tables nobody else can tell its files from these.
    let is_harmless = has_no_room && is_list_known(tables);
    if !is_harmless && !mutant!("reclaim_failure_ignored") {
        backlog.fail(failure.clone());
    }
    Err(failure)
}

/// Whether the newest list on disk is the one in memory: a merge that failed put no other there.
/// Waits for who writes one.
fn is_list_known(tables: &Tables) -> bool {
    let tree = &tables.keyspace.tree;
    loop {
        let before = tree.current_version().id();
        let lists = tree.get_version_history_lock();
        let stored = fs::read(tables.keyspace.path().join(NEWEST_LIST)).ok();
        drop(lists);
        // Lists are numbered upwards, and only who has that lock writes one.
        if tree.current_version().id() == before {
            let number = stored.and_then(|bytes| bytes.first_chunk().copied());
            return number.map(u64::from_le_bytes) == Some(before);
        }
    }
}
