//! Questions of one partition, answered by its primary without an entry of a log: by read index.
//!
//! A question sees all that was answered before it was asked. The partition's ring says what that
//! is ([`crate::vsr`]: a majority confirms that this node still leads, one round for all questions
//! of a turn), and that is enough for what the ring of all orders too. A command C of several
//! partitions that has ended anywhere had been come to by some replica of this partition. It stands
//! at a slot of the ring of all, where the partition's own ring comes first; so that replica had
//! learned its own ring to behind that slot, and all of that was committed by then. So the position
//! that the ring confirms is behind that slot as well. What is left is to execute all that *both*
//! rings decide before the first slot behind that position: C is among it. The same holds for what
//! another question has seen, here or at another partition of C.

use crate::multicast::Slot;
use crate::smr::partitioned::{Addressed, Machine};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;

/// How many questions a primary has in hand.
const READS_MAX: usize = 4096;

/// Questions in hand.
#[derive(Debug)]
pub(super) struct Reads<M: Machine> {
    last: u64,
    /// Whether this node leads is not confirmed since they came.
    asked: BTreeMap<Ticket, Addressed<M>>,
    /// They wait for what is before these slots to be executed.
    confirmed: Vec<(Slot, Addressed<M>)>,
}

impl<M: Machine> Reads<M> {
    pub fn new() -> Reads<M> {
        Reads { last: 0, asked: BTreeMap::new(), confirmed: Vec::new() }
    }

    /// A question has come; its name, if there is room.
    pub fn ask(&mut self, question: Addressed<M>) -> Option<Ticket> {
        if self.asked.len() + self.confirmed.len() >= READS_MAX {
            return None;
        }
        self.last += 1;
        let ticket = Ticket(self.last);
        self.asked.insert(ticket, question);
        Some(ticket)
    }

    /// The log does not take it.
    pub fn refuse(&mut self, ticket: Ticket) {
        self.asked.remove(&ticket);
    }

    /// This node has led since a question came, and what was committed then is before a slot.
    pub fn confirm(&mut self, ticket: Ticket, until: Slot) {
        let question = self.asked.remove(&ticket);
        self.confirmed.extend(question.map(|it| (until, it)));
    }

    /// Those that may be answered, as all before their slots is executed.
    pub fn take_ready(&mut self, is_executed: impl Fn(Slot) -> bool) -> Vec<Addressed<M>> {
        let confirmed = core::mem::take(&mut self.confirmed);
        let (ready, wait): (Vec<_>, Vec<_>) =
            confirmed.into_iter().partition(|(until, _)| is_executed(*until));
        self.confirmed = wait;
        ready.into_iter().map(|(_, question)| question).collect()
    }
}
