//! Reads at the primary without an entry: by read index.
//!
//! A read sees all that was committed before it was asked. The primary knows what that is if it
//! still is the primary: no later view had started when the read came if, after it, a majority says
//! that it is in this view. One round of beats confirms all reads of a turn.

use crate::vsr::action::{Context, Event, Refused};
use crate::vsr::number::Op;
use crate::vsr::state::{Replica, Status};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::OPERATIONS_MAX;
use quorate_kernel::mutant;

/// A read that waits.
#[derive(Debug)]
struct Read {
    ticket: Ticket,
    /// The round that must be confirmed: the first that was sent after it.
    round: u64,
    /// What must be executed: all that may have been committed when it came.
    index: Op,
}

/// The reads of a primary. Volatile: they end with its view.
#[derive(Debug, Default)]
pub struct Reads {
    waiting: VecDeque<Read>,
    /// The newest round that was sent.
    round: u64,
    /// The newest round that each member has confirmed.
    confirmed: BTreeMap<NodeId, u64>,
}

impl Reads {
    /// A view begins: what members have confirmed in an earlier one counts no more.
    pub fn begin(&mut self) {
        invariant!(self.waiting.is_empty(), "reads end with their view");
        self.confirmed.clear();
    }

    /// Drops what waits.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.confirmed.clear();
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The newest round that was sent.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// A member has confirmed a round.
    pub fn confirm(&mut self, member: NodeId, round: u64) {
        let newest = self.confirmed.entry(member).or_default();
        *newest = round.max(*newest);
    }

    /// The newest round that so many others have confirmed.
    fn confirmed_by(&self, others: usize) -> u64 {
        let mut rounds: Vec<u64> = self.confirmed.values().copied().collect();
        rounds.sort_unstable_by(|one, other| other.cmp(one));
        match others {
            0 => self.round,
            _ => rounds.get(others - 1).copied().unwrap_or_default(),
        }
    }
}

impl Replica {
    /// Asks to be told ([`Event::Readable`]) when the state shows all that was committed before
    /// now; the state may be read in the very call that tells it.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn read(&mut self, ticket: Ticket) -> Result<(), Refused> {
        let primary = self.primary.as_ref().ok_or(Refused::NotPrimary)?;
        if !primary.is_serving || !self.may_show() {
            return Err(Refused::NotReady);
        }
        if self.reads.waiting.len() >= OPERATIONS_MAX {
            return Err(Refused::Full);
        }
        // What earlier views have committed was in the log when this one began.
        let index = self.commit.max(primary.began.op);
        self.reads.waiting.push_back(Read { ticket, round: self.reads.round + 1, index });
        Ok(())
    }

    /// Sends a round if reads came since the last one.
    pub(crate) fn send_round(&mut self, cx: &mut Context<'_>) {
        let newest = self.reads.waiting.back().map_or(0, |read| read.round);
        if newest <= self.reads.round {
            return;
        }
        invariant!(self.status == Status::Normal, "only a normal replica leads");
        self.reads.round = newest;
        let others = self.others();
        if others.is_empty() {
            return self.answer_reads(cx);
        }
        if let Some(primary) = &mut self.primary {
            primary.told = self.commit;
        }
        // A beat promises nothing.
        cx.send(&others, self.beat(), Release::Early);
        if mutant!("read_unconfirmed") {
            self.answer_reads(cx);
        }
    }

    /// Whether the state is one that some entry has left. A deposed primary may copy that of a
    /// later epoch while confirmations of its last rounds still come: what it holds then is none.
    fn may_show(&self) -> bool {
        (self.status == Status::Normal && self.is_settled()) || mutant!("reads_while_copying")
    }

    /// Tells of the reads that can be answered, in order.
    pub(crate) fn answer_reads(&mut self, cx: &mut Context<'_>) {
        if self.reads.is_empty() || !self.may_show() {
            return;
        }
        invariant!(self.primary.is_some(), "only a primary has reads in hand");
        let others = self.head.configuration.majority() - 1;
        let confirmed =
            self.reads.confirmed_by(if mutant!("read_unconfirmed") { 0 } else { others });
        while let Some(read) = self.reads.waiting.front()
            && read.round <= confirmed
            && read.index <= self.applied
        {
            cx.tell(Event::Readable(read.ticket));
            self.reads.waiting.pop_front();
        }
    }
}
