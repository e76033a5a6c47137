//! Threads that merge tables until the levels of the database are in shape.
//!
//! The database itself merges once for each table that is added. A table costs more than that as
//! soon as there are three levels: what is left over would pile up for ever, in the lower levels
//! first, and then in the first one, which bounds what may be added.
//!
//! They also look what the disk has and let go of what was merged, when `reclaim` asks for that:
//! whoever looks waits for the disk.

use crate::tables::backlog::Backlog;
use crate::tables::lsm::Tables;
use crate::tables::reclaim;
use quorate_kernel::error::Fatal;
use quorate_kernel::mutant;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

#[derive(Debug, Default)]
struct State {
    /// How often somebody asked for merges.
    asked: u64,
    /// Whether somebody asked for a look that none of the threads has begun.
    is_look_due: bool,
    /// Bytes that the disk had for tables at the last look, until somebody takes that.
    room: Option<Result<u64, Fatal>>,
    is_closing: bool,
}

/// What those who want merges and the threads that merge have in common. Clones are handles to the
/// same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merges(Arc<(Mutex<State>, Condvar)>);

impl Merges {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has everything merged that is due, and what is due by then.
    pub(crate) fn ask(&self) {
        self.lock().asked += 1;
        self.0.1.notify_all();
    }

    /// Has one of the threads look what the disk has, once it is through with the merge at which it
    /// is. Waits for nothing.
    pub(crate) fn ask_for_look(&self) {
        self.lock().is_look_due = true;
        self.0.1.notify_all();
    }

    /// What came of a look, if one has ended since the last call: how many bytes the disk has for
    /// tables.
    pub(crate) fn take_room(&self) -> Option<Result<u64, Fatal>> {
        self.lock().room.take()
    }

    /// Whether there is something to take.
    #[cfg(test)]
    pub(crate) fn has_looked(&self) -> bool {
        self.lock().room.is_some()
    }

    /// Looks if somebody asked for it.
    fn look(&self, tables: &Tables) {
        if std::mem::take(&mut self.lock().is_look_due) {
            let room = reclaim::look(tables);
            self.lock().room = Some(room);
        }
    }

    /// Ends the threads, each after the merge at which it is.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.0.1.notify_all();
    }

    /// Whether the threads are to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().is_closing
    }

    /// Waits until somebody has asked for a look, or more often for merges than this thread knows
    /// of; false at the end.
    fn wait(&self, known: &mut u64) -> bool {
        let mut state = self.lock();
        while !state.is_closing && state.asked == *known && !state.is_look_due {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        *known = state.asked;
        !state.is_closing
    }
}

/// The threads. They end when this is dropped, each after the merge at which it is.
#[derive(Debug)]
pub(crate) struct Mergers {
    merges: Merges,
    threads: Vec<JoinHandle<()>>,
}

impl Mergers {
    /// Starts so many threads. What goes wrong in them is told to the backlog.
    pub(crate) fn begin(tables: &Tables, backlog: &Backlog, count: usize) -> io::Result<Mergers> {
        let mut mergers = Mergers { merges: tables.merges.clone(), threads: Vec::new() };
        let count = if mutant!("tables_pile_up") { 0 } else { count };
        for _ in 0..count {
            let (tables, backlog) = (tables.clone(), backlog.clone());
            let builder = std::thread::Builder::new().name("merges".to_owned());
            mergers.threads.push(builder.spawn(move || run(&tables, &backlog))?);
        }
        // An earlier start may have left some.
        mergers.merges.ask();
        Ok(mergers)
    }
}

impl Drop for Mergers {
    fn drop(&mut self) {
        self.merges.close();
        for thread in self.threads.drain(..) {
            // What it could say was said to the backlog.
            drop(thread.join());
        }
    }
}

fn run(tables: &Tables, backlog: &Backlog) {
    // Damaged files make fjall panic in places where it could answer an error.
    let gave_up = || Fatal::Corrupt("the database gave up while it merged tables".to_owned());
    let ended = catch_unwind(AssertUnwindSafe(|| merge(tables)));
    if let Err(fatal) = ended.unwrap_or_else(|_| Err(gave_up())) {
        backlog.fail(fatal);
    }
}

/// Merges until nothing is due whenever somebody asks, and looks in between.
fn merge(tables: &Tables) -> Result<(), Fatal> {
    let mut known = 0;
    while tables.merges.wait(&mut known) {
        tables.merges.look(tables);
        while !tables.merges.is_closing() && tables.merge_once()? {
            tables.merges.look(tables);
        }
    }
    Ok(())
}
