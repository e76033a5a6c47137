//! What lies between the thread that writes the log and the one that writes tables: full memtables
//! on one side, segments that may be used again on the other.
//!
//! Both are bounded. Whoever writes the log waits for tables when there are two full memtables, or
//! no segment is left: memory and the log never grow because tables fall behind.
//!
//! A segment more is made only while the present one goes from a quarter to three, and none is
//! free. Its zeros are written in step with the groups, and not while nothing is logged, so no
//! group waits for many of them. Where a segment is waited for, the rest of it has blocks alone.

use crate::tables::memtable::Memtable;
use crate::wal::group::Header;
use crate::wal::segments::{List, Making, PIECE_BYTES, Segment, remove_unfinished};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The most full memtables that wait to become tables.
pub(crate) const SEALED_MAX: usize = 2;
/// The least segments that a log can do with: one is written to while the other is emptied.
pub(crate) const SEGMENTS_LEAST: u32 = 2;

/// A memtable that takes no more writes.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    /// What was written.
    pub(crate) memtable: Arc<Memtable>,
    /// The last batch in it.
    pub(crate) upto: Lsn,
}

/// A segment that was written full, or that an earlier start wrote to.
#[derive(Debug)]
pub(crate) struct Retired {
    /// The file.
    pub(crate) segment: Segment,
    /// The last batch in it.
    pub(crate) last: Lsn,
}

/// A segment with the header of its next use.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The file.
    pub(crate) segment: Segment,
    /// The number of that use.
    pub(crate) generation: u64,
}

/// What both threads change.
#[derive(Debug)]
struct State {
    /// Oldest first; the first one may be being written to a table.
    sealed: VecDeque<Sealed>,
    /// In the order of their use.
    retired: VecDeque<Retired>,
    /// In the order of their use.
    ready: VecDeque<Ready>,
    list: List,
    /// The next segment, between two pieces of it.
    making: Option<Making>,
    /// How many bytes of it are done.
    filled: u64,
    /// How many bytes of the present segment are in use.
    at: u64,
    /// The highest generation that was given out.
    generation: u64,
    /// Every batch up to here is in the tables, synced.
    covered: Lsn,
    /// The most segments that there may be.
    segments_max: u32,
    /// Whether the thread that writes the log waits for another one.
    is_awaited: bool,
    /// Whether it cannot go on without one more than there are.
    is_needed: bool,
    /// Whether the disk had no room for another one since the present one was begun.
    has_no_room: bool,
    failure: Option<Fatal>,
    /// Whether the thread that writes tables is at work.
    is_busy: bool,
    is_closing: bool,
}

impl State {
    /// Whether a segment that was written to may be used again: its batches are all in the tables.
    fn has_free(&self) -> bool {
        let oldest = self.retired.front();
        oldest.is_some_and(|one| one.last <= self.covered || mutant!("log_segment_reused_early"))
    }

    /// Whether there may be another segment.
    fn may_grow(&self) -> bool {
        self.list.count < self.segments_max && !self.has_no_room
    }

    /// Whether more of another segment should be done by now.
    fn is_behind(&self) -> bool {
        if !self.may_grow() || !self.ready.is_empty() {
            return false;
        }
        let more = self.at.saturating_sub(self.list.bytes / 4);
        let due = if more > 0 { 2 * more + PIECE_BYTES } else { 0 };
        self.is_awaited || self.filled < due.min(self.list.bytes)
    }

    /// Whether there is nothing to do for the thread that writes tables.
    fn is_idle(&self) -> bool {
        let has_work = !self.sealed.is_empty() || self.has_free() || self.is_behind();
        !self.is_busy && !has_work
    }
}

/// The backlog of a store. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Backlog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    log: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

/// What the thread that writes tables does next.
#[derive(Debug)]
pub(crate) enum Task {
    /// Writes a memtable into a table.
    Ingest(Sealed),
    /// Gives a segment its next use.
    Renew(Segment),
    /// Makes a piece of another segment.
    Make(Option<Making>),
    /// No more work comes: the thread returns.
    End,
}

impl Backlog {
    /// Of a log with these segments, which may have so many. Of those that an earlier start wrote
    /// to, the ones of which nothing is needed come first.
    pub(crate) fn new(
        log: PathBuf,
        list: List,
        generation: u64,
        covered: Lsn,
        retired: VecDeque<Retired>,
        segments_max: u32,
    ) -> Backlog {
        let state = State {
            sealed: VecDeque::new(),
            retired,
            ready: VecDeque::new(),
            list,
            making: None,
            filled: 0,
            at: 0,
            generation,
            covered,
            segments_max,
            is_awaited: false,
            is_needed: false,
            has_no_room: false,
            failure: None,
            is_busy: false,
            is_closing: false,
        };
        Backlog(Arc::new(Shared { log, state: Mutex::new(state), changed: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has ended the host.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Every batch up to here is in the tables.
    pub(crate) fn covered(&self) -> Lsn {
        self.lock().covered
    }

    /// Bytes of all segments.
    pub(crate) fn log_bytes(&self) -> u64 {
        let state = self.lock();
        u64::from(state.list.count) * state.list.bytes + state.filled
    }

    /// What went wrong on the other thread, if anything.
    pub(crate) fn check(&self) -> Result<(), Fatal> {
        self.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Hands a full memtable over. Waits while too many do already.
    pub(crate) fn seal(&self, sealed: Sealed) -> Result<(), Fatal> {
        let mut state = self.lock();
        let most = if mutant!("memtables_have_no_bound") { usize::MAX } else { SEALED_MAX };
        while state.failure.is_none() && state.sealed.len() >= most {
            state = self.wait(state);
        }
        state.failure.clone().map_or(Ok(()), Err)?;
        assert!(sealed.upto >= state.covered, "tables are behind the log");
        state.sealed.push_back(sealed);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits until every memtable that was handed over is in the tables, every segment that may be
    /// used again is ready, and as much of another one is done as should be.
    pub(crate) fn settle(&self) -> Result<(), Fatal> {
        let mut state = self.lock();
        while state.failure.is_none() && !state.is_closing && !state.is_idle() {
            state = self.wait(state);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// A segment was written full.
    pub(crate) fn retire(&self, retired: Retired) {
        self.lock().retired.push_back(retired);
        self.0.changed.notify_all();
    }

    /// So many bytes of the present segment are in use.
    pub(crate) fn reached(&self, at: usize) {
        let mut state = self.lock();
        state.at = at as u64;
        if state.is_behind() {
            self.0.changed.notify_all();
        }
    }

    /// The next segment to write to. Waits for one that is free, or one more where there may be
    /// one, or for tables that may give one back; nothing if all that there may be hold what is in
    /// no memtable that was handed over.
    pub(crate) fn next(&self) -> Result<Option<Ready>, Fatal> {
        let mut state = self.lock();
        loop {
            state.failure.clone().map_or(Ok(()), Err)?;
            if let Some(ready) = state.ready.pop_front() {
                state.at = 0;
                (state.is_awaited, state.is_needed, state.has_no_room) = (false, false, false);
                return Ok(Some(ready));
            }
            if state.may_grow() && !state.has_free() {
                state.is_awaited = true;
                self.0.changed.notify_all();
            } else if state.is_idle() {
                return Ok(None);
            }
            state = self.wait(state);
        }
    }

    /// Asks for one more segment than there are: all of them hold parts of one group.
    pub(crate) fn want_more(&self) {
        let mut state = self.lock();
        state.segments_max = state.segments_max.max(state.list.count + 1);
        state.is_needed = true;
        state.has_no_room = false;
    }

    /// Waits for something to do. Full memtables come first, then segments that may be used again.
    pub(crate) fn task(&self) -> Task {
        let mut state = self.lock();
        state.is_busy = false;
        loop {
            if state.is_closing || state.failure.is_some() {
                return Task::End;
            }
            if !state.is_idle() {
                state.is_busy = true;
                if let Some(sealed) = state.sealed.front() {
                    return Task::Ingest(sealed.clone());
                }
                if state.has_free() {
                    let retired = state.retired.pop_front().expect("it is free");
                    return Task::Renew(retired.segment);
                }
                return Task::Make(state.making.take());
            }
            self.0.changed.notify_all();
            state = self.wait(state);
        }
    }

    /// The oldest full memtable is in the tables, synced: what covers it in the log is free.
    pub(crate) fn ingested(&self, upto: Lsn) {
        let mut state = self.lock();
        let oldest = state.sealed.pop_front().expect("it was being written");
        assert_eq!(oldest.upto, upto, "memtables become tables in their order");
        state.covered = upto;
        self.0.changed.notify_all();
    }

    /// Gives a segment its next use, synced.
    pub(crate) fn renew(&self, segment: Segment) -> Result<(), Fatal> {
        let header = self.header();
        segment.renew(header).map_err(|error| failed("renewing a segment", &error))?;
        self.offer(Ready { segment, generation: header.generation });
        Ok(())
    }

    /// Makes the next piece of another segment if that is due, amid some longer work.
    pub(crate) fn make_if_due(&self) -> Result<(), Fatal> {
        let mut state = self.lock();
        if !state.is_behind() {
            return Ok(());
        }
        let making = state.making.take();
        drop(state);
        self.make(making)
    }

    /// Makes the next piece of another segment. The log goes on with those that there are if the
    /// disk has no room for it, unless it cannot.
    pub(crate) fn make(&self, making: Option<Making>) -> Result<(), Fatal> {
        let Err(error) = self.try_make(making) else { return Ok(()) };
        // What was taken for it is given back.
        drop(remove_unfinished(&self.0.log));
        let mut state = self.lock();
        state.filled = 0;
        let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        if !is_full || state.is_needed || state.list.count == 0 {
            return Err(failed("making a segment", &error));
        }
        state.has_no_room = true;
        state.is_awaited = false;
        Ok(())
    }

    fn try_make(&self, making: Option<Making>) -> io::Result<()> {
        let state = self.lock();
        let (mut list, is_awaited) = (state.list, state.is_awaited);
        drop(state);
        let mut making = match making {
            Some(making) => making,
            None => Making::begin(&self.0.log, list.bytes)?,
        };
        if !is_awaited {
            making.fill()?;
        } else if !mutant!("segments_have_holes") {
            making.reserve()?;
        }
        if !is_awaited && !making.is_full() {
            let mut state = self.lock();
            state.filled = making.filled();
            state.making = Some(making);
            return Ok(());
        }
        let header = self.header();
        let segment = making.finish(&self.0.log, &mut list, header)?;
        let mut state = self.lock();
        state.list = list;
        state.filled = 0;
        drop(state);
        self.offer(Ready { segment, generation: header.generation });
        Ok(())
    }

    /// The header of the next use of a segment. Only the thread that writes tables asks, so uses
    /// are ready in the order of their numbers.
    fn header(&self) -> Header {
        let mut state = self.lock();
        state.generation += 1;
        Header { generation: state.generation, covered: state.covered }
    }

    fn offer(&self, ready: Ready) {
        self.lock().ready.push_back(ready);
        self.0.changed.notify_all();
    }

    /// The other thread cannot go on: nothing may be acknowledged any more.
    pub(crate) fn fail(&self, fatal: Fatal) {
        self.lock().failure.get_or_insert(fatal);
        self.0.changed.notify_all();
    }

    /// Whether the other thread is to end, for whatever reason.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.is_closing || state.failure.is_some()
    }

    /// Tells the other thread to end.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.0.changed.notify_all();
    }
}

/// A failure of the log's files.
pub(crate) fn failed(doing: &str, error: &io::Error) -> Fatal {
    Fatal::Disk(format!("{doing} of the log: {error}"))
}
