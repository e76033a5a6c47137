//! What clients of the baseline wait for, and gets (as DottedDB Alg. 1).

use super::engine::Timer;
use super::message::Message;
use super::{Context, Merkle};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::limits::{KEY_BYTES_MAX, OPERATIONS_MAX};
use quorate_kernel::operation::{Operation, Outcome, Refusal, Which};
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::Replaces;
use quorate_protocols::causal::keys::{client_key, data_key, hash_of};
use quorate_protocols::dots::dot::Partition;
use quorate_protocols::dots::object::Object;

/// How long an answer is waited for before a message is sent again.
const RETRY: Span = Span::millis(250);

/// What is under way.
#[derive(Debug)]
pub(super) enum Work {
    /// A get, until enough replicas have answered.
    Read { needed: usize, replies: BTreeMap<Partition, Object> },
    /// A write that a replica elsewhere coordinates.
    Forward { is_delete: bool },
}

/// One operation.
#[derive(Debug)]
pub(super) struct Waiting {
    pub ticket: Ticket,
    pub key: Bytes,
    pub deadline: Time,
    pub work: Work,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(super) by_id: BTreeMap<u64, Waiting>,
    last: u64,
    is_armed: bool,
}

impl Operations {
    /// Begins to wait; returns the operation's number.
    pub(super) fn insert(&mut self, waiting: Waiting, cx: &mut Context<'_>) -> u64 {
        self.last += 1;
        self.by_id.insert(self.last, waiting);
        self.arm(cx);
        self.last
    }

    fn arm(&mut self, cx: &mut Context<'_>) {
        if !self.is_armed && !self.by_id.is_empty() {
            self.is_armed = true;
            cx.fx.arm(Timer::Operations, cx.now + RETRY);
        }
    }
}

impl Merkle {
    /// A client asks.
    pub(super) fn begin(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        let Request { operation, deadline } = request;
        if let Some(refusal) = self.refusal(&operation) {
            return refuse(ticket, refusal, cx);
        }
        match operation {
            Operation::Get { key, which: Which::All, replies } => {
                let needed = usize::from(replies.unwrap_or(self.settings.r));
                self.begin_get(ticket, data_key(&key), needed, deadline, cx);
            }
            Operation::Put { key, value, replaces: Replaces::Seen(context), name } => {
                let (key, id) = (data_key(&key), name.map(|name| name.id));
                self.begin_write(ticket, key, Some(value), (&context, id), deadline, cx);
            }
            Operation::Delete { key, replaces: Replaces::Seen(context) } => {
                self.begin_write(ticket, data_key(&key), None, (&context, None), deadline, cx);
            }
            _ => refuse(ticket, Refusal::Unsupported, cx),
        }
    }

    fn refusal(&self, operation: &Operation) -> Option<Refusal> {
        let too_large = |what, length, limit| {
            (length > limit).then_some(Refusal::TooLarge { what, length, limit })
        };
        let value = match operation {
            Operation::Put { value, .. } => value.len(),
            _ => 0,
        };
        let key = operation.key().map_or(0, Bytes::len);
        let is_full = self.operations.by_id.len() >= OPERATIONS_MAX;
        is_full
            .then_some(Refusal::Overloaded)
            .or_else(|| too_large("key", key, KEY_BYTES_MAX))
            .or_else(|| too_large("value", value, self.settings.value_bytes_max))
            .or_else(|| self.map.is_none().then_some(Refusal::NoRoute))
    }

    /// The replicas of a key: their partitions and hosts.
    pub(super) fn replicas_of(&self, key: &[u8]) -> Vec<(Partition, NodeId)> {
        let shape = self.settings.shape;
        let Some(map) = &self.map else { return Vec::new() };
        let partitions = shape.replicas_of(shape.home(hash_of(key))).map(Partition);
        partitions.filter_map(|at| map.place(at).map(|place| (at, place.host))).collect()
    }

    /// This node's replica of a key, if it holds one.
    pub(super) fn local(&self, key: &[u8]) -> Option<Partition> {
        let shape = self.settings.shape;
        let partitions = shape.replicas_of(shape.home(hash_of(key)));
        partitions.map(Partition).find(|at| self.replicas.contains_key(at))
    }

    fn begin_get(
        &mut self,
        ticket: Ticket,
        key: Bytes,
        needed: usize,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let replicas = usize::from(self.settings.shape.replicas);
        if needed == 0 || needed > replicas {
            let (reached, needed) = (replicas as u8, needed as u8);
            return refuse(ticket, Refusal::NoQuorum { reached, needed }, cx);
        }
        let mut replies = BTreeMap::new();
        if let Some(at) = self.local(&key)
            && self.replicas[&at].lacking.is_empty()
        {
            replies.insert(at, self.replicas[&at].read(&key, cx));
        }
        if replies.len() >= needed {
            return self.tell(ticket, &key, &replies, cx);
        }
        let work = Work::Read { needed, replies };
        let id = self.operations.insert(Waiting { ticket, key, deadline, work }, cx);
        self.ask_replicas(id, cx);
    }

    /// Asks every replica that has not answered. A question promises nothing.
    fn ask_replicas(&mut self, id: u64, cx: &mut Context<'_>) {
        let Some(waiting) = self.operations.by_id.get(&id) else { return };
        let Work::Read { replies, .. } = &waiting.work else { return };
        for (at, host) in self.replicas_of(&waiting.key) {
            if !replies.contains_key(&at) && host != cx.me.node {
                cx.fx.send_early(host, Message::ReadA { op: id, key: waiting.key.clone() });
            }
        }
    }

    /// A coordinator asks for the object of a key.
    pub(super) fn on_read(
        &mut self,
        from: Incarnation,
        op: u64,
        key: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(partition) = self.local(key) else { return };
        let replica = &self.replicas[&partition];
        let (object, stored) = (replica.read(key, cx).to_bytes(), replica.stored_key(key));
        let is_serving = replica.lacking.is_empty();
        cx.fx.send_after_key(from, Message::ReadB { op, partition, is_serving, object }, stored);
    }

    /// A replica has answered.
    pub(super) fn on_read_reply(
        &mut self,
        (op, partition): (u64, Partition),
        is_serving: bool,
        object: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(waiting) = self.operations.by_id.get_mut(&op) else { return };
        let Work::Read { needed, replies } = &mut waiting.work else { return };
        let Ok(object) = Object::from_bytes(object) else { return };
        if !is_serving {
            return;
        }
        replies.insert(partition, object);
        if replies.len() >= *needed {
            let waiting = self.operations.by_id.remove(&op).expect("it was just there");
            let Work::Read { replies, .. } = waiting.work else { return };
            self.tell(waiting.ticket, &waiting.key, &replies, cx);
        }
    }

    /// Tells a client what the replies say together.
    fn tell(
        &mut self,
        ticket: Ticket,
        key: &Bytes,
        replies: &BTreeMap<Partition, Object>,
        cx: &mut Context<'_>,
    ) {
        let mut merged = Object::default();
        replies.values().for_each(|object| merged.merge(object.clone()));
        let context = self.settings.tokens.seal(cx.lane, client_key(key), &merged.context);
        let outcome = Outcome::Values { values: merged.values().into(), context };
        match self.local(key).filter(|at| replies.contains_key(at)) {
            Some(at) => {
                cx.fx.answer_after_key(ticket, outcome, self.replicas[&at].stored_key(key));
            }
            // It rests on what others hold, and that was durable before they sent it.
            None => cx.fx.answer_early(ticket, outcome),
        }
    }

    /// Asks again for what may be lost, and gives up what is late. A write is sent once: a second
    /// replica could do it a second time.
    pub(super) fn on_alarm(&mut self, cx: &mut Context<'_>) {
        self.operations.is_armed = false;
        let ids: Vec<u64> = self.operations.by_id.keys().copied().collect();
        for id in ids {
            if self.operations.by_id[&id].deadline > cx.now {
                self.ask_replicas(id, cx);
                continue;
            }
            let waiting = self.operations.by_id.remove(&id).expect("it was just there");
            let refusal = match waiting.work {
                Work::Read { needed, replies } => {
                    Refusal::NoQuorum { reached: replies.len() as u8, needed: needed as u8 }
                }
                Work::Forward { .. } => Refusal::OutcomeUnknown,
            };
            refuse(waiting.ticket, refusal, cx);
        }
        self.operations.arm(cx);
    }
}

/// Refuses a request. A refusal promises nothing, so it leaves at once.
pub(super) fn refuse(ticket: Ticket, refusal: Refusal, cx: &mut Context<'_>) {
    cx.fx.answer_early(ticket, Outcome::Refused(refusal));
}
