//! Each command once: what is remembered of the clients of a machine (the paper's §IV calls for
//! it; Viewstamped Replication Revisited, §4.1, has the table).
//!
//! A client is a host in one of its starts. It numbers its commands from 1 on, sends them in order,
//! and says up to where it has the answers. Of each node one record is kept for good: that of its
//! latest start, as commands of an earlier one may still be on their way.

use super::machine::Machine;
use alloc::collections::VecDeque;
use quorate_kernel::ids::Start;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// What is remembered of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Client<M: Machine> {
    /// Its latest start of which a command was executed.
    pub start: Start,
    /// The number of the last command that was executed.
    pub done: u64,
    /// The answers of the last commands, those of which the client has not said that it has them,
    /// as the state keeps them; each with the number of the last change before it ended.
    pub replies: VecDeque<(u64, M::Output)>,
}

impl<M: Machine> Client<M> {
    /// A node of which nothing was executed.
    pub(super) fn new(start: Start) -> Client<M> {
        Client { start, done: 0, replies: VecDeque::new() }
    }

    /// Whether a command of this start and number is the next one to be executed. One that comes
    /// again is not, nor one of an earlier start.
    pub(super) fn is_next(&mut self, start: Start, number: u64) -> bool {
        if start > self.start {
            // What its earlier starts wait for nobody waits for any more.
            *self = Client::new(start);
        }
        (start == self.start && number == self.done + 1) || mutant!("smr_executes_twice")
    }

    /// The next command was executed.
    pub(super) fn note(&mut self, changes: u64, reply: M::Output) {
        self.done += 1;
        self.replies.push_back((changes, reply));
        invariant!(self.replies.len() as u64 <= self.done, "answers are of what was executed");
    }

    /// The client has the answers up to here.
    pub(super) fn acknowledge(&mut self, start: Start, acked: u64) {
        let first = self.done + 1 - self.replies.len() as u64;
        let count = (acked.min(self.done) + 1).saturating_sub(first);
        if start == self.start {
            self.replies.drain(..count as usize);
        }
    }

    /// The answer of a command that was executed, if it is remembered.
    #[must_use]
    pub fn reply(&self, number: u64) -> Option<&(u64, M::Output)> {
        let first = self.done + 1 - self.replies.len() as u64;
        self.replies.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }
}
