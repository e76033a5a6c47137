//! What clients wait for.

use super::merged::ReadReplies;
use super::seen::Seen;
use crate::causal::Context;
use crate::causal::message::{Message, TellContext};
use crate::causal::timer::Timer;
use crate::dots::context::CausalContext;
use crate::dots::dot::{Dot, Partition};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::operation::Which;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::{WriteId, WriteName};

/// How long an answer is waited for before a message is sent again.
pub(super) const RETRY: Span = Span::millis(250);

/// How a client is told that its write is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As a plain put.
    Written,
    /// As a plain delete, of what was there.
    Deleted,
    /// As a put, with the context that covers it.
    WrittenOver,
    /// As a delete, with the context that covers it.
    DeletedOver,
}

/// A client that writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub ticket: Ticket,
    pub manner: Manner,
}

/// What a get is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The values that are asked for: all of them come with a context.
    Values(Which),
    /// A value in place of what is seen.
    Replacement(Bytes),
    /// The removal of what is seen.
    Removal,
}

/// Who waits for a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// A client of this node.
    Client(Writer),
    /// A node that forwarded it, under this number of its own.
    Peer(Incarnation, u64),
}

/// A write that is given to a replica elsewhere.
#[derive(Debug)]
pub(crate) struct Forwarded {
    /// How it is known, and how old it was when it came here.
    pub name: WriteName,
    /// Whether its client named it, and may send it again.
    pub is_named: bool,
    /// When it came here.
    pub begun: Time,
    /// What it replaces.
    pub context: TellContext,
    /// The names of what it replaces, by their dots.
    pub names: Vec<(Dot, WriteId)>,
    /// None for a delete.
    pub value: Option<Bytes>,
}

/// What is under way.
#[derive(Debug)]
pub(crate) enum Work {
    /// A get, until enough replicas have answered.
    Read {
        /// The client.
        ticket: Ticket,
        /// What it wants.
        aim: Aim,
        /// How many must answer.
        needed: usize,
        /// Who has.
        replies: ReadReplies,
        /// The actors that somebody had closed when all were asked anew, as another one may have
        /// answered before.
        closed: CausalContext,
    },
    /// A put or delete that was stored here, until enough replicas hold it.
    Write {
        /// Who waits.
        origin: Origin,
        /// How many must hold it.
        needed: usize,
        /// Who does.
        held: BTreeSet<Partition>,
        /// What the client is told to cover it.
        told: Seen,
        /// What the other replicas are sent.
        message: Box<Message>,
    },
    /// A write that a replica elsewhere coordinates.
    Forward {
        /// The client.
        asker: Writer,
        /// Whom it was sent to, if a replica that can be reached is known.
        target: Option<Incarnation>,
        /// Who said that it cannot, since all were asked.
        refused: BTreeSet<NodeId>,
        /// What it is given.
        write: Box<Forwarded>,
    },
    /// A list of keys that a replica elsewhere makes; the operation's key is the hash it begins at.
    List {
        /// The client.
        ticket: Ticket,
        /// About how many keys.
        limit: u32,
    },
}

/// One operation.
#[derive(Debug)]
pub(crate) struct Operation {
    pub key: Bytes,
    pub deadline: Time,
    alarm: Time,
    pub work: Work,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    by_id: BTreeMap<u64, Operation>,
    alarms: BTreeSet<(Time, u64)>,
    last: u64,
    armed: Option<Time>,
}

impl Operations {
    /// A number that no operation of this start had.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Begins to wait.
    pub fn insert(
        &mut self,
        id: u64,
        key: Bytes,
        deadline: Time,
        work: Work,
        cx: &mut Context<'_>,
    ) {
        let alarm = deadline.min(cx.now + RETRY);
        self.alarms.insert((alarm, id));
        self.by_id.insert(id, Operation { key, deadline, alarm, work });
        self.arm(cx);
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Operation> {
        self.by_id.get_mut(&id)
    }

    /// Gives an operation a number that none had, and returns it.
    pub fn renumber(&mut self, id: u64) -> Option<u64> {
        let operation = self.by_id.remove(&id)?;
        let next = self.number();
        self.alarms.remove(&(operation.alarm, id));
        self.alarms.insert((operation.alarm, next));
        self.by_id.insert(next, operation);
        Some(next)
    }

    /// Ends the wait.
    pub fn remove(&mut self, id: u64) -> Option<Operation> {
        let operation = self.by_id.remove(&id)?;
        self.alarms.remove(&(operation.alarm, id));
        Some(operation)
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The next operation whose alarm has come; its next one is set, unless its deadline has come
    /// too. Arms the timer again when none is left.
    pub fn next_due(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        if let Some(&(at, id)) = self.alarms.first()
            && at <= cx.now
        {
            self.alarms.pop_first();
            let operation = self.by_id.get_mut(&id).expect("an alarm is of an operation");
            operation.alarm = operation.deadline.min(cx.now + RETRY).max(cx.now + Span(1));
            self.alarms.insert((operation.alarm, id));
            return Some(id);
        }
        self.armed = None;
        self.arm(cx);
        None
    }

    fn arm(&mut self, cx: &mut Context<'_>) {
        let Some((first, _)) = self.alarms.first() else { return };
        if self.armed.is_none_or(|armed| *first < armed) {
            self.armed = Some(*first);
            cx.fx.arm(Timer::Operations, *first);
        }
    }

    /// Whether a timer is armed if anything waits.
    pub fn has_timer(&self) -> bool {
        self.armed.is_some() || self.by_id.is_empty()
    }

    pub fn check(&self) {
        assert!(self.has_timer(), "who waits is woken");
        assert_eq!(self.alarms.len(), self.by_id.len(), "each operation has one alarm");
    }
}
