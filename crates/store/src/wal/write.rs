//! The write path: a log of recycled segments before memtables, and tables behind them.
//!
//! A group of batches is one write to the present segment and, when asked for, one sync of it. Then
//! it is in the memtable. A full memtable becomes a table on a thread of its own, and a segment is
//! used again when the tables hold all that it does.

use crate::log::Engine;
use crate::slow::{SlowSteps, Step};
use crate::tables::backlog::{Backlog, Ready, Retired, Sealed, Task, failed};
use crate::tables::lsm::Tables;
use crate::tables::memtable::{Memtable, Memtables};
use crate::tables::merges::Mergers;
use crate::wal::chain::{self, Chain};
use crate::wal::group::{self, HEAD_BYTES, Head, PAGE_BYTES, Records, Salt, record_bytes};
use crate::wal::segments::List;
use crate::wal::trimmed::Trimmed;
use bytes::Bytes;
use quorate_kernel::entries;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use quorate_kernel::storage::{Batch, Write};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The longest whole key that the tables take, lane and class included.
pub const STORE_KEY_BYTES_MAX: usize = u16::MAX as usize;
/// The first key that can be a lane's.
pub(crate) const FIRST_KEY: &[u8] = b"\0\0\0";
/// Behind all keys that can be a lane's: no lane has the highest number.
pub(crate) const LAST_KEY: &[u8] = b"\xff\xff\xff\xff";
/// The most bytes of a group, unless one batch alone has more.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// When a memtable is full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    /// Bytes of memory.
    pub(crate) bytes: usize,
    /// Bytes of the log that it covers.
    pub(crate) span: u64,
}

/// What the write path stands on.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) memtables: Memtables,
    pub(crate) backlog: Backlog,
    pub(crate) tables: Tables,
    pub(crate) trimmed: Trimmed,
}

/// The write path, for one thread.
#[derive(Debug)]
pub(crate) struct Wal {
    ground: Ground,
    newest: Arc<Memtable>,
    full: Full,
    /// Bytes of the log since the memtable was begun; 0 if it holds no batch.
    span: u64,
    segment: Option<Ready>,
    segment_bytes: usize,
    salt: Salt,
    /// Where the next group begins.
    at: usize,
    /// The last batch that the present segment holds, wholly or in part.
    held: Lsn,
    written: Lsn,
    is_synced: bool,
    /// Where the present segment was synced up to.
    synced_at: usize,
    /// Where slow steps are kept.
    pub(crate) slow: SlowSteps,
    /// A whole group, and a part of one.
    group: Vec<u8>,
    part: Vec<u8>,
    thread: Option<JoinHandle<()>>,
    /// They end after the thread that waits for them.
    _mergers: Mergers,
}

impl Wal {
    /// Starts the threads that write tables and merge them, fills a memtable with what the log
    /// holds behind the tables, and begins a segment.
    pub(crate) fn begin(
        ground: Ground,
        log: &Path,
        chain: &Chain,
        recovered: Lsn,
        full: Full,
        list: List,
        mergers: usize,
    ) -> Result<Wal, Fatal> {
        let newest = ground.memtables.newest();
        let mergers = Mergers::begin(&ground.tables, &ground.backlog, mergers);
        let mut wal = Wal {
            _mergers: mergers.map_err(|error| failed("beginning to merge tables", &error))?,
            ground,
            newest,
            full,
            span: 0,
            segment: None,
            segment_bytes: usize::try_from(list.bytes).expect("segments are limited"),
            salt: list.salt,
            at: PAGE_BYTES,
            held: Lsn(0),
            written: Lsn(0),
            is_synced: true,
            synced_at: PAGE_BYTES,
            slow: SlowSteps::default(),
            group: Vec::new(),
            part: Vec::new(),
            thread: None,
        };
        let ground = wal.ground.clone();
        let builder = std::thread::Builder::new().name("tables".to_owned());
        let thread = builder.spawn(move || write_tables(&ground));
        wal.thread = Some(thread.map_err(|error| failed("beginning to write tables", &error))?);
        let covered = wal.ground.backlog.covered();
        chain::replay(log, chain, covered, |last, body| wal.replay(last, body))
            .map_err(|Replay(fatal)| fatal)?;
        wal.written = recovered;
        wal.advance()?;
        Ok(wal)
    }

    fn replay(&mut self, last: Lsn, body: &[u8]) -> Result<(), Replay> {
        let records: Result<Vec<_>, _> = Records::of(body).collect();
        let records = records.map_err(|what| Fatal::Corrupt(what.to_owned()))?;
        // Values out of the log are copied: they would pin all of the group.
        let own = |value: Option<&[u8]>| value.map(Bytes::copy_from_slice);
        let records: Vec<_> = records.into_iter().map(|(key, value)| (key, own(value))).collect();
        let writes = records.iter().map(|(key, value)| (*key, value.as_ref()));
        self.newest.write(writes.clone());
        self.ground.trimmed.write(writes, &self.newest);
        self.written = last;
        self.span += group::extent(body.len()) as u64;
        Ok(self.seal_if_full()?)
    }

    /// Goes on to the next segment.
    fn advance(&mut self) -> Result<(), Fatal> {
        self.sync_to_disk()?;
        if let Some(Ready { segment, .. }) = self.segment.take() {
            self.ground.backlog.retire(Retired { segment, last: self.held });
        }
        let next = loop {
            let next = || self.ground.backlog.next();
            if let Some(ready) = self.slow.timed(Step::Segment, 0, next)? {
                break ready;
            }
            if self.span == 0 {
                self.ground.backlog.want_more();
            } else {
                self.seal()?;
            }
        };
        self.segment = Some(next);
        (self.at, self.synced_at) = (PAGE_BYTES, PAGE_BYTES);
        Ok(())
    }

    fn seal_if_full(&mut self) -> Result<(), Fatal> {
        if self.newest.bytes() >= self.full.bytes || self.span >= self.full.span {
            self.seal()?;
        }
        Ok(())
    }

    /// Hands the memtable over to become a table. What is in the tables is synced, so the log must
    /// be: it would else lack, after a loss of power, what lies before its next group.
    pub(crate) fn seal(&mut self) -> Result<(), Fatal> {
        // Batches that write nothing lie in the log too.
        if self.span == 0 {
            return Ok(());
        }
        self.sync_segment()?;
        self.ground.trimmed.sync();
        let memtable = self.ground.memtables.seal();
        self.newest = self.ground.memtables.newest();
        self.span = 0;
        let bytes = memtable.bytes() as u64;
        let sealed = Sealed { memtable, upto: self.written };
        self.slow.timed(Step::Backlog, bytes, || self.ground.backlog.seal(sealed))
    }

    fn sync_segment(&mut self) -> Result<(), Fatal> {
        if self.is_synced { Ok(()) } else { self.sync_to_disk() }
    }

    /// Syncs the present segment, if there is one.
    fn sync_to_disk(&mut self) -> Result<(), Fatal> {
        let Some(ready) = &self.segment else { return Ok(()) };
        let bytes = (self.at - self.synced_at) as u64;
        let synced = self.slow.timed(Step::Sync, bytes, || ready.segment.sync());
        synced.map_err(|error| failed("syncing a segment", &error))?;
        (self.is_synced, self.synced_at) = (true, self.at);
        Ok(())
    }

    fn write(&self, pages: &[u8]) -> Result<(), Fatal> {
        let Ready { segment, .. } = self.segment.as_ref().expect("there is a segment");
        let write = || segment.write(pages, self.at);
        let written = self.slow.timed(Step::Write, pages.len() as u64, write);
        written.map_err(|error| failed("writing to a segment", &error))
    }

    /// Puts what was written to the log into the memtable.
    fn remember(&self, batches: &[Batch]) {
        for batch in batches {
            let writes = batch.writes.iter();
            let writes = writes.map(|write| (&write.key[..], write.value.as_ref()));
            self.newest.write(writes.clone());
            self.ground.trimmed.write(writes, &self.newest);
        }
    }

    /// Writes a group to the log and to the memtable.
    fn append(&mut self, batches: &[Batch], synced: Lsn) -> Result<(), Fatal> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { return Ok(()) };
        group::begin(&mut self.group, batches);
        let room = self.segment_bytes - PAGE_BYTES;
        let body = self.group.len() - HEAD_BYTES;
        if group::extent(body) <= room {
            if self.at + group::extent(body) > self.segment_bytes {
                self.advance()?;
            }
            let head = self.head(first.lsn, last.lsn, synced);
            group::finish(&mut self.group, head, self.salt);
            self.write(&self.group)?;
            self.at += self.group.len();
            self.ground.backlog.reached(self.at);
        } else {
            self.append_parts(first.lsn, last.lsn, synced)?;
        }
        self.held = last.lsn;
        self.is_synced = false;
        self.span += group::extent(body) as u64;
        self.slow.timed(Step::Memtable, body as u64, || self.remember(batches));
        self.written = last.lsn;
        self.seal_if_full()
    }

    /// Writes a group that is longer than a segment, a part to each.
    fn append_parts(&mut self, first: Lsn, last: Lsn, synced: Lsn) -> Result<(), Fatal> {
        let room = self.segment_bytes - PAGE_BYTES - HEAD_BYTES;
        let parts = (self.group.len() - HEAD_BYTES).div_ceil(room);
        for part in 0..parts {
            if self.at > PAGE_BYTES {
                self.advance()?;
            }
            let head = self.head(first, last, synced).of_part(part, parts);
            let from = HEAD_BYTES + part * room;
            let to = self.group.len().min(from + room);
            self.part.clear();
            self.part.resize(HEAD_BYTES, 0);
            self.part.extend_from_slice(&self.group[from..to]);
            group::finish(&mut self.part, head, self.salt);
            self.write(&self.part)?;
            self.at += self.part.len();
            self.held = last;
        }
        // Such groups are rare, and their memory is wanted elsewhere.
        self.group = Vec::new();
        self.part = Vec::new();
        Ok(())
    }

    /// The head of a group in the present segment. All that lies before the first group of a
    /// segment is synced.
    fn head(&self, first: Lsn, last: Lsn, synced: Lsn) -> Head {
        let generation = self.segment.as_ref().expect("there is a segment").generation;
        let synced = if self.at == PAGE_BYTES { Lsn(first.0 - 1) } else { synced };
        Head::of(generation, first, last, synced)
    }
}

impl Engine for Wal {
    fn commit(&mut self, batches: &[Batch], synced: Lsn) -> Result<(), Fatal> {
        self.ground.backlog.check()?;
        let writes = || batches.iter().flat_map(|batch| &batch.writes);
        let is_of_lane = |key: &[u8]| (FIRST_KEY..LAST_KEY).contains(&key);
        let has_room = |key: &[u8]| is_of_lane(key) && key.len() <= STORE_KEY_BYTES_MAX;
        let is_sound = |write: &Write| has_room(&write.key) && entries::is_sound(write);
        if let Some(write) = writes().find(|write| !is_sound(write)) {
            let text = format!("a key of {} bytes cannot be stored", write.key.len());
            return Err(Fatal::Corrupt(text));
        }
        let most = GROUP_BYTES_MAX.min(self.segment_bytes - PAGE_BYTES - HEAD_BYTES);
        let mut rest = batches;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |batch: &&Batch| {
                bytes += batch.writes.iter().map(record_bytes).sum::<usize>();
                bytes <= most
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (group, others) = rest.split_at(count);
            self.append(group, synced)?;
            rest = others;
        }
        Ok(())
    }

    fn persist(&mut self) -> Result<(), Fatal> {
        self.ground.backlog.check()?;
        self.sync_segment()
    }

    fn check(&self) -> Result<(), Fatal> {
        self.ground.backlog.check()
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.ground.backlog.close();
        if let Some(thread) = self.thread.take() {
            // What it could say was said to the backlog.
            drop(thread.join());
        }
    }
}

/// An error of a replay.
struct Replay(Fatal);

impl From<Fatal> for Replay {
    fn from(fatal: Fatal) -> Replay {
        Replay(fatal)
    }
}

impl From<io::Error> for Replay {
    fn from(error: io::Error) -> Replay {
        Replay(failed("reading", &error))
    }
}

/// The thread that writes tables and makes segments ready, until it is told to end.
fn write_tables(ground: &Ground) {
    let run = AssertUnwindSafe(|| {
        loop {
            match ground.backlog.task() {
                Task::Ingest(sealed) => ingest(ground, &sealed)?,
                Task::Renew(segment) => ground.backlog.renew(segment)?,
                Task::Make(making) => ground.backlog.make(making)?,
                Task::End => return Ok(()),
            }
        }
    });
    // Damaged files make fjall panic in places where it could answer an error.
    let gave_up = || Fatal::Corrupt("the database gave up while it wrote tables".to_owned());
    if let Err(fatal) = catch_unwind(run).unwrap_or_else(|_| Err(gave_up())) {
        ground.backlog.fail(fatal);
    }
}

fn ingest(ground: &Ground, sealed: &Sealed) -> Result<(), Fatal> {
    let go_on = || {
        ground.backlog.make_if_due()?;
        Ok(!ground.backlog.is_over())
    };
    if !ground.tables.wait_for_merges(go_on)? {
        // The log has it.
        return Ok(());
    }
    if mutant!("log_memtable_gone_early") {
        ground.memtables.drop_oldest();
    }
    if !mutant!("log_ingestion_lost") {
        let meanwhile = || ground.backlog.make_if_due();
        let firsts = ground.trimmed.synced();
        ground.tables.ingest(&sealed.memtable, sealed.upto, &firsts, meanwhile)?;
    }
    if !mutant!("log_memtable_gone_early") {
        ground.memtables.drop_oldest();
    }
    ground.backlog.ingested(sealed.upto);
    Ok(())
}
