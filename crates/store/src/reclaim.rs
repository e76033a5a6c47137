//! Gives disk space back that deleted and replaced records take, while there is little else to do.
//!
//! The database drops them when it merges tables, and it merges tables as new ones come. After
//! many deletes and nothing more it would keep all of it. So once the store is quiet and a good
//! part of its records is new since that was last done, everything is merged into new tables, on a
//! thread of its own: whether a new record replaces an older one is not known without reading.
//! Meanwhile the database merges nothing else, and new tables pile up: a store for which that would
//! take long is left to the database.
//!
//! Journals are the database's own: it drops one when all of it is in tables and 64 MB have been
//! written to it, so up to that much stays.

use fjall::{AbstractTree, Database, Keyspace, PersistMode};
use std::thread::JoinHandle;
use std::time::Duration;

/// No more than this was written since the last look: the store is quiet.
const QUIET_BYTES: u64 = 256 << 10;
/// Of so many records one must be new.
const NEW_PART: u64 = 8;
/// Smaller stores are not worth it, larger ones take too long.
const BYTES_LEAST: u64 = 8 << 20;
const BYTES_MOST: u64 = 1 << 30;

/// After how many snapshots the database looks which are still in use.
const SNAPSHOTS: usize = 10_000;

/// Looks after the space of one store.
pub(crate) struct Reclaim {
    /// Records that were written, deletes included, since everything was last merged; of earlier
    /// starts the deletes.
    written: u64,
    /// What was written since the last look.
    written_bytes: u64,
    merging: Option<JoinHandle<fjall::Result<()>>>,
}

impl Reclaim {
    /// Of a store that was just opened.
    pub(crate) fn new(keyspace: &Keyspace) -> Reclaim {
        Reclaim { written: keyspace.tree.tombstone_count(), written_bytes: 0, merging: None }
    }

    /// Something was written.
    pub(crate) fn note(&mut self, records: u64, bytes: u64) {
        self.written += records;
        self.written_bytes += bytes;
    }

    /// To be called every few seconds. Begins to merge if it is time for that; an error is that of
    /// an earlier one, of which nothing was lost.
    pub(crate) fn look(&mut self, database: &Database, keyspace: &Keyspace) -> fjall::Result<()> {
        let is_quiet = std::mem::take(&mut self.written_bytes) <= QUIET_BYTES;
        if self.merging.as_ref().is_some_and(|merging| !merging.is_finished()) {
            return Ok(());
        }
        self.wait()?;
        if !is_quiet {
            return Ok(());
        }
        free(database, keyspace)?;
        let bytes = keyspace.disk_space() + database.write_buffer_size();
        let records = keyspace.approximate_len() as u64;
        let is_worth_it = self.written > 0 && self.written >= records / NEW_PART;
        if !is_worth_it || !(BYTES_LEAST..=BYTES_MOST).contains(&bytes) {
            return Ok(());
        }
        self.written = 0;
        let (database, keyspace) = (database.clone(), keyspace.clone());
        let merge = move || merge(&database, &keyspace);
        let thread = std::thread::Builder::new().name("reclaim".to_owned()).spawn(merge)?;
        self.merging = Some(thread);
        Ok(())
    }

    /// Waits for what was begun.
    pub(crate) fn wait(&mut self) -> fjall::Result<()> {
        let ended = self.merging.take().map(JoinHandle::join);
        // The database has said what was wrong.
        ended.map_or(Ok(()), |ended| ended.unwrap_or(Err(fjall::Error::Poisoned)))
    }
}

/// Lets go of tables that were merged. The database does so when a memtable becomes a table, and so
/// never while nothing is written: it keeps what readers of an older sequence number may need, and
/// looks who they are at every so many snapshots. To be called by the thread that writes.
fn free(database: &Database, keyspace: &Keyspace) -> fjall::Result<()> {
    if keyspace.tree.get_version_history_lock().free_list_len() == 0 {
        return Ok(());
    }
    let tracker = &database.supervisor.snapshot_tracker;
    // Readers from now on are behind the last merge. Nobody else writes, so nothing that is
    // half written becomes visible.
    tracker.publish(database.supervisor.seqno.next());
    (0..SNAPSHOTS).for_each(|_| drop(database.snapshot()));
    let upto = tracker.get_seqno_safe_to_gc();
    keyspace.tree.get_version_history_lock().maintenance(keyspace.path(), upto)?;
    Ok(())
}

/// Writes the memtable into a table, and merges all tables into new ones.
fn merge(database: &Database, keyspace: &Keyspace) -> fjall::Result<()> {
    keyspace.rotate_memtable()?;
    while keyspace.sealed_memtable_count() > 0 {
        // Persisting nothing is how to learn that a worker failed.
        database.persist(PersistMode::Buffer)?;
        std::thread::sleep(Duration::from_millis(10));
    }
    keyspace.major_compact()
}
