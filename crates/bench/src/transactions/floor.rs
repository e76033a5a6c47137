//! What the clients of a run share. They take turns on one thread.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use quorate_kernel::time::Time;

use crate::report::record::{Class, Recorder};

/// The word under which aborts are counted among errors.
pub const ABORT: &str = "ABORT";

/// Counts, and whether it is over.
#[derive(Debug)]
pub struct Floor {
    origin: Instant,
    /// What has ended.
    pub recorder: RefCell<Recorder>,
    /// No more transactions begin.
    pub is_over: Cell<bool>,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it was done.
    Committed(Class),
    /// Others have changed what it had read. Nothing was changed.
    Aborted,
    /// It was refused, or nobody can say; the word of the error.
    Failed(&'static str),
}

impl Default for Floor {
    fn default() -> Floor {
        Floor { origin: Instant::now(), recorder: RefCell::default(), is_over: Cell::new(false) }
    }
}

impl Floor {
    /// The time since the run began.
    #[must_use]
    pub fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Counts a transaction that has ended now.
    pub fn count(&self, begun: Time, ended: Ended) {
        let mut recorder = self.recorder.borrow_mut();
        match ended {
            Ended::Committed(class) => recorder.success(class, begun, self.now()),
            // What ends behind the window is not of its rate.
            _ if self.is_over.get() => {}
            Ended::Aborted => recorder.error(ABORT),
            Ended::Failed(word) => recorder.error(word),
        }
    }
}
