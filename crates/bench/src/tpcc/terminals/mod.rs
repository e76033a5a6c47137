//! The terminals: each asks for one transaction after the other, without keying or thinking.

pub mod counts;
mod fence;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::Extent;
use crate::error::BenchError;
use crate::tpcc::inputs::{Input, Inputs};
use crate::tpcc::tables::{Failure, Tables, word};
use crate::tpcc::transactions::Attempt;

use counts::Counts;
use fence::Fence;

/// A terminal's transactions are numbered from its number times this.
pub(super) const NUMBERS_PER_TERMINAL: u64 = 1 << 40;

/// What all terminals of a run share. They take turns on one thread.
#[derive(Debug)]
pub struct Floor {
    /// What they have done.
    pub counts: RefCell<Counts>,
    /// No more transactions begin.
    pub is_over: Cell<bool>,
    extent: Extent,
    /// Names the history that this run writes.
    writer: u64,
}

impl Floor {
    /// One on which nothing has been done.
    #[must_use]
    pub fn new(extent: Extent, writer: u64) -> Floor {
        Floor { counts: RefCell::default(), is_over: Cell::new(false), extent, writer }
    }

    fn may_begin(&self) -> bool {
        let counts = self.counts.borrow();
        let is_left = match self.extent {
            Extent::Time(_) => true,
            Extent::Operations(count) => !counts.is_open() || counts.begun < count,
        };
        is_left && !self.is_over.get()
    }
}

/// A terminal.
#[derive(Debug)]
pub struct Terminal {
    floor: Rc<Floor>,
    tables: Tables,
    inputs: Inputs,
    fence: Fence,
    /// Of its last attempt.
    number: u64,
}

impl Terminal {
    /// The terminal of a number, whose fence is put.
    ///
    /// # Errors
    /// The fence could not be put.
    pub async fn open(
        floor: Rc<Floor>,
        tables: Tables,
        inputs: Inputs,
        terminal: u32,
    ) -> Result<Terminal, BenchError> {
        let fence = Fence::put(&tables, floor.writer, terminal).await?;
        let number = u64::from(terminal) * NUMBERS_PER_TERMINAL;
        Ok(Terminal { floor, tables, inputs, fence, number })
    }

    /// Asks for transactions until the run is over. None is open then.
    ///
    /// # Errors
    /// The tables are damaged, or it stays open what became of a transaction.
    pub async fn work(mut self) -> Result<(), BenchError> {
        while self.floor.may_begin() {
            let input = self.inputs.draw();
            self.ask(&input).await?;
        }
        Ok(())
    }

    /// Attempts a transaction until it is done, fails, or nobody can say.
    async fn ask(&mut self, input: &Input) -> Result<(), BenchError> {
        let kind = input.kind();
        let begun = self.floor.counts.borrow_mut().begin();
        loop {
            let outcome = self.attempt(input).await;
            let counts = &self.floor.counts;
            match outcome {
                Ok(done) => counts.borrow_mut().done(kind, begun, done),
                Err(Failure::Conflict { .. }) if self.floor.is_over.get() => {
                    counts.borrow_mut().unfinished(kind);
                }
                Err(Failure::Conflict { .. }) => {
                    counts.borrow_mut().retried(kind);
                    continue;
                }
                Err(Failure::Unknown(_)) => {
                    counts.borrow_mut().unknown(kind);
                    self.fence.advance(&self.tables).await?;
                }
                Err(Failure::Refused(error)) => counts.borrow_mut().failed(kind, word(&error)),
                Err(Failure::Damaged(why)) => return Err(BenchError::Tables(why)),
            }
            return Ok(());
        }
    }

    async fn attempt(&mut self, input: &Input) -> Result<crate::tpcc::transactions::Done, Failure> {
        self.number += 1;
        let attempt = Attempt {
            tables: &self.tables,
            fence: self.fence.now(),
            writer: self.floor.writer,
            number: self.number,
            date: date(),
        };
        attempt.run(input).await
    }
}

/// Milliseconds since 1970.
#[must_use]
pub fn date() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
