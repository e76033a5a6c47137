//! Gives disk space back that deleted and replaced records take, while there is little else to do.
//!
//! The database drops them when it merges tables, and it merges tables as new ones come. After
//! many deletes and nothing more it would keep all of it. So once the store is quiet and a good
//! part of its bytes may be garbage, everything is merged into the last level, on a thread of its
//! own: whether a new record replaces an older one is not known without reading.
//!
//! Up to a size that is one merge. Meanwhile the database merges nothing else, and new tables pile
//! up; the new tables lie beside the old ones until all are there. So a larger store is merged in
//! pieces: those of the database's own strategy, told that no level but the last may hold anything.
//! Before each piece it is seen whether the store is still quiet and the disk has room; if not, the
//! rest is for later. What a piece moves without merging keeps its deletes: they delete nothing
//! that is there. A table that lies over more than a piece may have waits until half of the store
//! is garbage: then all that it lies over is one piece.
//!
//! Whoever applies batches decides, and waits for nothing: what waits for the disk, or for a lock
//! that somebody holds while it writes to it, is done by a thread that merges tables.

use crate::tables::backlog::Backlog;
use crate::tables::lists::NEWEST_LIST;
use crate::tables::lsm::{Tables, fatal, is_no_room};
use crate::wal::write::Ground;
use fjall::AbstractTree;
use fjall::compaction::Leveled;
use quorate_kernel::error::Fatal;
use quorate_kernel::mutant;
use quorate_kernel::storage::Batch;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No more than this was written since the last look: the store is quiet.
const QUIET_BYTES: u64 = 256 << 10;
/// Of so many bytes one must be garbage, as far as is known.
const GARBAGE_PART: u64 = 8;
/// Less garbage is not worth it.
const GARBAGE_BYTES_LEAST: u64 = 1 << 20;
/// Larger stores are merged in pieces.
const WHOLE_BYTES_MOST: u64 = 1 << 30;
/// The most that a piece has, but for tables that were just added: the database bounds it so.
const PIECE_BYTES_MOST: u64 = 4 << 30;
/// The most tables of the last level that the database merges at once, of these bytes as a rule.
const PIECE_TABLES: u64 = 50;
const TABLE_BYTES: u64 = 64 << 20;
/// How often, and how far apart, it is tried whether there is another piece.
const TRIES: u32 = 20;
const TRY_AFTER: Duration = Duration::from_millis(250);
/// What the disk must have beside room for what is merged once more: this part of it, for what is
/// written meanwhile, and a segment of the log.
const ROOM_PART: u64 = 8;
/// After a merge of some length none is begun for so many times that,
const REST_TIMES: u32 = 16;
/// or for so many where as much as half of the store may have become garbage since: a keyspace that
/// is dropped while what was loaded into it is merged is to be given back soon.
const REST_TIMES_IF_HALF: u32 = 2;
/// A shorter merge is followed by no rest.
const SHORT: Duration = Duration::from_secs(1);
/// How long nothing is tried again after nothing more could be merged.
const STUCK_REST: Duration = Duration::from_secs(600);

/// After how many snapshots the database looks which are still in use.
const SNAPSHOTS: usize = 10_000;

/// Looks after the space of one store.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// Bytes that what was written since everything was last merged may have made garbage; of
    /// earlier starts what deletes have.
    garbage: u64,
    /// How much of that there was when everything was last begun to be merged.
    begun: u64,
    /// Of the garbage what an earlier merge was begun for and has not ended: it may be none.
    pub(crate) restored: u64,
    /// What was written since the last look.
    written_bytes: u64,
    /// Whether it was worth it when a thread was last asked to look: what it found then counts.
    was_due: bool,
    /// Bytes of a segment of the log.
    segment_bytes: u64,
    /// Stores of more bytes are merged in pieces.
    pub(crate) whole_bytes_most: u64,
    /// Whether a merge in pieces is to begin no more of them.
    is_broken_off: Arc<AtomicBool>,
    /// No merge is begun before,
    pub(crate) rest_until: Option<Instant>,
    /// or before this where as much as half of the store may have become garbage since the last.
    pub(crate) rest_if_half_until: Option<Instant>,
    merging: Option<JoinHandle<Result<Ended, Fatal>>>,
}

/// How merging the tables ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// Something is left for when the store is quiet again, or the disk has room.
    BrokenOff,
    /// Something is left that cannot be merged now.
    Stuck,
}

/// A merge that has ended, and how long it took.
type Ended = (End, Duration);

impl Reclaim {
    /// Whether nothing is left to be merged of what was written.
    #[cfg(test)]
    pub(crate) fn is_done(&self) -> bool {
        self.garbage == 0 && self.merging.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether tables are being merged.
    #[cfg(test)]
    pub(crate) fn is_merging(&self) -> bool {
        self.merging.is_some()
    }

    /// Of a store that was just opened: what it deletes is garbage. Deletes that the log has are
    /// not in the tables yet.
    pub(crate) fn new(ground: &Ground, segment_bytes: u64) -> Reclaim {
        let deletes = ground.tables.keyspace.tree.tombstone_count() + ground.memtables.deletes();
        Reclaim {
            garbage: deletes.saturating_mul(record_bytes(ground)),
            begun: 0,
            restored: 0,
            written_bytes: 0,
            was_due: false,
            segment_bytes,
            whole_bytes_most: WHOLE_BYTES_MOST,
            is_broken_off: Arc::default(),
            rest_until: None,
            rest_if_half_until: None,
            merging: None,
        }
    }

    /// Something is about to be written. A value takes the place of another one at most, which had
    /// about as many bytes, and an entry of a log is given up at some time; a delete takes a record
    /// as others are.
    pub(crate) fn note(&mut self, ground: &Ground, batches: &[Batch]) {
        let (mut bytes, mut deletes) = (0, 0);
        for write in batches.iter().flat_map(|batch| &batch.writes) {
            match &write.value {
                Some(value) => bytes += value.len() as u64,
                None => deletes += 1,
            }
        }
        if deletes > 0 {
            bytes += record_bytes(ground).saturating_mul(deletes);
        }
        self.garbage = self.garbage.saturating_add(bytes);
        self.written_bytes += batches.iter().map(|batch| batch.size() as u64).sum::<u64>();
    }

    /// To be called every few seconds. Says whether it is time to merge all tables, which is once
    /// the disk was found to have room; an error is that of an earlier time, of which nothing was
    /// lost. Waits for nothing.
    pub(crate) fn look(&mut self, ground: &Ground) -> Result<bool, Fatal> {
        let is_quiet = std::mem::take(&mut self.written_bytes) <= QUIET_BYTES;
        if self.merging.as_ref().is_some_and(|merging| !merging.is_finished()) {
            if !is_quiet {
                self.is_broken_off.store(true, Relaxed);
            }
            return Ok(false);
        }
        self.wait()?;
        let bytes = bytes_of(ground);
        let garbage = self.garbage.min(bytes);
        let restored = if mutant!("reclaim_counts_what_was_left") { 0 } else { self.restored };
        let is_half = self.garbage.saturating_sub(restored) >= bytes / 2
            && !mutant!("reclaim_rests_as_long_for_half");
        let rest_until = if is_half { self.rest_if_half_until } else { self.rest_until };
        let is_rested = rest_until.is_none_or(|until| Instant::now() >= until);
        let is_due = is_rested && garbage >= (bytes / GARBAGE_PART).max(GARBAGE_BYTES_LEAST);
        let was_due = std::mem::replace(&mut self.was_due, is_due);
        let room = ground.tables.merges.take_room().transpose()?;
        let needed = self.needed(bytes);
        // Writers may never be quiet for so long that two looks fall between.
        if is_quiet && is_due && was_due && room.is_some_and(|room| room >= needed) {
            self.was_due = false;
            return Ok(true);
        }
        ground.tables.merges.ask_for_look();
        Ok(false)
    }

    /// How much room the disk must have for what is merged at once of so many bytes.
    fn needed(&self, bytes: u64) -> u64 {
        let is_whole = bytes <= self.whole_bytes_most;
        let merged = if is_whole { bytes } else { bytes.min(PIECE_BYTES_MOST) };
        merged + merged / ROOM_PART + self.segment_bytes
    }

    /// Begins to merge all tables, once the memtables that were handed over are among them.
    pub(crate) fn begin(&mut self, ground: &Ground) -> Result<(), Fatal> {
        self.begun = std::mem::take(&mut self.garbage);
        self.is_broken_off.store(false, Relaxed);
        let (backlog, tables) = (ground.backlog.clone(), ground.tables.clone());
        let bytes = bytes_of(ground);
        let pieces = (bytes > self.whole_bytes_most).then(|| Pieces {
            is_broken_off: Arc::clone(&self.is_broken_off),
            room: self.needed(bytes),
            is_mostly_garbage: self.begun >= bytes / 2,
        });
        let builder = std::thread::Builder::new().name("reclaim".to_owned());
        let thread = builder.spawn(move || {
            let begun = Instant::now();
            let end = merge(&backlog, &tables, pieces.as_ref())?;
            Ok((end, begun.elapsed()))
        });
        let thread = thread.map_err(|error| Fatal::Disk(format!("a thread: {error}")))?;
        self.merging = Some(thread);
        Ok(())
    }

    /// Bytes of tables that merging them would give back, about. Waits for nothing.
    pub(crate) fn garbage_bytes(&self, ground: &Ground) -> u64 {
        self.garbage.min(ground.tables.bytes())
    }

    /// Waits for what was begun, or in pieces for the one that is being merged. What was not done
    /// is to be done later.
    pub(crate) fn wait(&mut self) -> Result<(), Fatal> {
        let Some(merging) = self.merging.take() else {
            return Ok(());
        };
        let panicked = || Fatal::Corrupt("merging tables panicked".to_owned());
        let ended = merging.join().unwrap_or_else(|_| Err(panicked()));
        let begun = std::mem::take(&mut self.begun);
        let [rest, rest_if_half] = match ended {
            Ok((End::Done | End::BrokenOff, took)) if took < SHORT => [Duration::ZERO; 2],
            Ok((End::Done | End::BrokenOff, took)) => {
                [took * REST_TIMES, took * REST_TIMES_IF_HALF]
            }
            Ok((End::Stuck, _)) | Err(_) => [STUCK_REST; 2],
        };
        self.restored = if matches!(ended, Ok((End::Done, _))) { 0 } else { begun };
        self.garbage = self.garbage.saturating_add(self.restored);
        let now = Instant::now();
        (self.rest_until, self.rest_if_half_until) = (Some(now + rest), Some(now + rest_if_half));
        ended.map(|_| ())
    }
}

impl Drop for Reclaim {
    fn drop(&mut self) {
        self.is_broken_off.store(true, Relaxed);
        // The directory is in use until then.
        drop(self.wait());
    }
}

/// Bytes of a record of the tables, on average. Waits for nothing.
fn record_bytes(ground: &Ground) -> u64 {
    ground.tables.bytes() / ground.tables.records().max(1)
}

/// Bytes of all records, those to come into tables among them. Waits for nothing.
fn bytes_of(ground: &Ground) -> u64 {
    ground.tables.bytes() + ground.memtables.bytes() as u64
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

/// A merge in pieces.
struct Pieces {
    is_broken_off: Arc<AtomicBool>,
    /// What the disk must have for one.
    room: u64,
    /// Whether so much is to be given back that a piece may be of any size.
    is_mostly_garbage: bool,
}

/// Merges all tables into new ones, with those that become some of memtables now. Where the disk
/// is full everything stays as it was. After any other failure nothing goes on: what a sync that
/// failed has left on the disk is unknown.
fn merge(backlog: &Backlog, tables: &Tables, pieces: Option<&Pieces>) -> Result<End, Fatal> {
    backlog.settle()?;
    if backlog.is_over() {
        return Ok(End::BrokenOff);
    }
    let merge = || match pieces {
        None => tables.keyspace.major_compact().map(|()| End::Done),
        Some(pieces) => merge_pieces(tables, pieces),
    };
    // Damaged files make fjall panic in places where it could answer an error.
    let merged = catch_unwind(AssertUnwindSafe(merge));
    let (failure, has_no_room) = match merged {
        Ok(Ok(end)) => {
            tables.renew();
            return Ok(end);
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

/// Merges until only the last level holds something, piece by piece.
fn merge_pieces(tables: &Tables, pieces: &Pieces) -> fjall::Result<End> {
    let (mut tries, mut is_wide) = (0, false);
    loop {
        let version = tables.keyspace.tree.current_version();
        let levels: Vec<u64> = version.iter_levels().map(|level| level.size()).collect();
        let above: u64 = levels.iter().rev().skip(1).sum();
        if above == 0 {
            return Ok(End::Done);
        }
        let all: u64 = levels.iter().sum();
        let needed = if is_wide { all + all / ROOM_PART } else { pieces.room };
        // Until it looks, the database keeps what earlier pieces were made of.
        let has_room = look(tables).is_ok_and(|room| room >= needed);
        if !has_room || pieces.is_broken_off.load(Relaxed) || tables.merges.is_closing() {
            return Ok(End::BrokenOff);
        }
        // No bytes are enough for a level to be merged into the next one.
        let strategy = Leveled::default().with_l0_threshold(0);
        let strategy = match is_wide {
            true => strategy.with_table_target_size((all / PIECE_TABLES).max(TABLE_BYTES)),
            false => strategy,
        };
        if tables.merge_by(Arc::new(strategy))? {
            tries = 0;
        } else if tries < TRIES {
            // Others may be merging just now what would be next.
            tries += 1;
            std::thread::sleep(TRY_AFTER);
        } else if pieces.is_mostly_garbage && !is_wide {
            // A few deletes can lie over all of the last level.
            (tries, is_wide) = (0, true);
        } else {
            return Ok(End::Stuck);
        }
    }
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
