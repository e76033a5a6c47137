//! What lies between the thread that writes the log and the one that writes tables: full memtables
//! on one side, segments that may be used again on the other.
//!
//! Both are bounded. Whoever writes the log waits for tables when there are two full memtables, or
//! no segment is left: memory and the log never grow because tables fall behind.

use crate::group::Header;
use crate::memtable::Memtable;
use crate::segments::{List, Segment};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use std::collections::VecDeque;
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
    /// The highest generation that was given out.
    generation: u64,
    /// Every batch up to here is in the tables, synced.
    covered: Lsn,
    /// How many segments there should be.
    wanted: u32,
    /// Whether the thread that writes the log cannot go on without another one.
    is_awaited: bool,
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

    /// Whether there is nothing to do for the thread that writes tables.
    fn is_idle(&self) -> bool {
        let has_work = !self.sealed.is_empty() || self.has_free();
        !self.is_busy && !has_work && self.list.count >= self.wanted
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
    /// Makes another segment.
    Create,
    /// Ends.
    End,
}

impl Backlog {
    /// Of a log with these segments, which shall have as many as are `wanted`. Of those that an
    /// earlier start wrote to, the ones of which nothing is needed come first.
    pub(crate) fn new(
        log: PathBuf,
        list: List,
        generation: u64,
        covered: Lsn,
        retired: VecDeque<Retired>,
        wanted: u32,
    ) -> Backlog {
        let state = State {
            sealed: VecDeque::new(),
            retired,
            ready: VecDeque::new(),
            list,
            generation,
            covered,
            wanted,
            is_awaited: false,
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
        let list = self.lock().list;
        u64::from(list.count) * list.bytes
    }

    /// What went wrong on the other thread, if anything.
    pub(crate) fn check(&self) -> Result<(), Fatal> {
        self.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Hands a full memtable over. Waits while too many do already.
    pub(crate) fn seal(&self, sealed: Sealed) -> Result<(), Fatal> {
        let mut state = self.lock();
        while state.failure.is_none() && state.sealed.len() >= SEALED_MAX {
            state = self.wait(state);
        }
        state.failure.clone().map_or(Ok(()), Err)?;
        assert!(sealed.upto >= state.covered, "tables are behind the log");
        state.sealed.push_back(sealed);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits until every memtable that was handed over is in the tables, and every segment that may
    /// be used again is ready.
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

    /// The next segment to write to. Waits while tables may give one back; nothing if all of them
    /// hold what is in no memtable that was handed over.
    pub(crate) fn next(&self) -> Result<Option<Ready>, Fatal> {
        let mut state = self.lock();
        loop {
            state.failure.clone().map_or(Ok(()), Err)?;
            if let Some(ready) = state.ready.pop_front() {
                return Ok(Some(ready));
            }
            if state.is_idle() {
                return Ok(None);
            }
            state = self.wait(state);
        }
    }

    /// Asks for one more segment than there are: all of them hold parts of one group.
    pub(crate) fn want_more(&self) {
        let mut state = self.lock();
        state.wanted = state.list.count + 1;
        state.is_awaited = true;
        self.0.changed.notify_all();
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
                return Task::Create;
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

    /// Makes another segment, unless a memtable waits meanwhile.
    pub(crate) fn create(&self) -> Result<(), Fatal> {
        let header = self.header();
        let mut list = self.lock().list;
        let may_go_on = || {
            let state = self.lock();
            !state.is_closing && state.sealed.is_empty()
        };
        match Segment::create(&self.0.log, &mut list, header, may_go_on) {
            Ok(None) => {}
            Ok(Some(segment)) => {
                let mut state = self.lock();
                state.list = list;
                state.is_awaited = false;
                drop(state);
                self.offer(Ready { segment, generation: header.generation });
            }
            Err(error) => {
                let mut state = self.lock();
                if state.is_awaited || list.count < SEGMENTS_LEAST {
                    return Err(failed("making a segment", &error));
                }
                // It goes on with those that it has.
                state.wanted = list.count;
            }
        }
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

    /// Tells the other thread to end.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.0.changed.notify_all();
    }
}

/// A failure of the log's files.
pub(crate) fn failed(doing: &str, error: &std::io::Error) -> Fatal {
    Fatal::Disk(format!("{doing} of the log: {error}"))
}
