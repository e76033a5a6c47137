//! Gets: as many replicas as asked for answer, and their objects are merged (DottedDB Alg. 1).

use super::merged::{ReadReplies, ReadReply, merge_all, newly_closed, outlived};
use super::operations::{Aim, Manner, Origin, Work, Writer};
use super::put::Update;
use super::seen::Seen;
use crate::causal::keys::{client_key, data_key};
use crate::causal::map::Place;
use crate::causal::message::Message;
use crate::causal::replicate::replica::{CONTRADICTS, Replica};
use crate::causal::{Causal, Context, ENGINE, Plain};
use crate::dots::context::CausalContext;
use crate::dots::dot::Partition;
use crate::dots::object::Object;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::{KEY_BYTES_MAX, OPERATIONS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Operation, Outcome, Refusal, Which};
use quorate_kernel::probe;
use quorate_kernel::process::Request;
use quorate_kernel::time::Time;
use quorate_kernel::write::Replaces;

impl Causal {
    /// A client asks.
    pub(crate) fn begin(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        let Request { operation, deadline } = request;
        let r = usize::from(self.settings.r);
        if let Operation::Scan { from, limit } = operation {
            // No two keys share a partition here, as far as one can tell.
            return self.begin_list(ticket, (from.token, limit), deadline, cx);
        }
        if let Some(refusal) = self.refusal(&operation) {
            return refuse(ticket, refusal, cx);
        }
        let key = data_key(operation.key().expect("all but scans are about a key"));
        let asker = |manner| Writer { ticket, manner };
        match operation {
            Operation::Get { which, replies, .. } => {
                let needed = replies.map_or(r, usize::from);
                self.begin_get((ticket, Aim::Values(which)), key, needed, deadline, cx);
            }
            Operation::Put { value, replaces: Replaces::Seen(context), name, .. } => {
                let (asker, value) = (asker(Manner::WrittenOver), Some(value));
                self.begin_write(asker, key, value, (&context, name), deadline, cx);
            }
            Operation::Put { value, .. } if self.settings.plain == Plain::Newest => {
                self.begin_get((ticket, Aim::Replacement(value)), key, r, deadline, cx);
            }
            Operation::Put { value, name, .. } => {
                let (asker, value) = (asker(Manner::Written), Some(value));
                self.begin_write(asker, key, value, (b"", name), deadline, cx);
            }
            Operation::Delete { replaces: Replaces::Seen(context), .. } => {
                let asker = asker(Manner::DeletedOver);
                self.begin_write(asker, key, None, (&context, None), deadline, cx);
            }
            Operation::Delete { .. } => {
                self.begin_get((ticket, Aim::Removal), key, r, deadline, cx);
            }
            Operation::Scan { .. }
            | Operation::Transact { .. }
            | Operation::Tree(_)
            | Operation::HowEnded { .. } => {}
        }
    }

    fn refusal(&self, operation: &Operation) -> Option<Refusal> {
        if ENGINE.lacks(operation).is_some() {
            return Some(Refusal::Unsupported);
        }
        if self.volatile.operations.len() >= OPERATIONS_MAX {
            return Some(Refusal::Overloaded);
        }
        let too_large = |what, length, limit| {
            (length > limit).then_some(Refusal::TooLarge { what, length, limit })
        };
        let value = match operation {
            Operation::Put { value, .. } => value.len(),
            _ => 0,
        };
        let key = operation.key().map_or(0, Bytes::len);
        too_large("key", key, KEY_BYTES_MAX)
            .or_else(|| too_large("value", value, self.settings.value_bytes_max))
            .or_else(|| self.durable.map.is_none().then_some(Refusal::NoRoute))
    }

    /// The replicas of a key: their partitions and hosts.
    pub(crate) fn replicas_of(&self, key: &[u8]) -> Vec<(Partition, NodeId)> {
        let shape = self.settings.shape;
        let Some(map) = &self.durable.map else { return Vec::new() };
        let partitions = shape.replicas_of_key(key).map(Partition);
        partitions.filter_map(|at| map.place(at).map(|place| (at, place.host))).collect()
    }

    /// This node's replica of a key, if it holds one.
    pub(super) fn local(&self, key: &[u8]) -> Option<Partition> {
        let shape = self.settings.shape;
        let partitions = shape.replicas_of_key(key);
        let mut held = self.durable.replicas.range(Partition(*partitions.start())..);
        held.next().map(|(at, _)| *at).filter(|at| partitions.contains(&at.0))
    }

    fn begin_get(
        &mut self,
        (ticket, aim): (Ticket, Aim),
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
        let mut replies = ReadReplies::new();
        if let Some(at) = self.local(&key).filter(|at| self.is_serving(*at, cx.now)) {
            if needed == 1 && !matches!(aim, Aim::Values(_)) {
                return self.replace(at, (ticket, aim), key, deadline, cx);
            }
            let replica = &self.durable.replicas[&at];
            let object = replica.fetch_named(self.settings.shape, &key, cx);
            replies.insert(at, ReadReply { since: replica.actor().since, object });
        }
        if replies.len() >= needed {
            return self.tell((ticket, aim), key, replies, deadline, cx);
        }
        let id = self.volatile.operations.number();
        let work = Work::Read { ticket, aim, needed, replies, closed: CausalContext::default() };
        self.volatile.operations.insert(id, key, deadline, work, cx);
        self.ask_replicas(id, cx);
    }

    /// Replaces what the replica here has of a key. Which versions that is need not be read.
    fn replace(
        &mut self,
        at: Partition,
        (ticket, aim): (Ticket, Aim),
        key: Bytes,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let (shape, replica) = (self.settings.shape, &self.durable.replicas[&at]);
        let (object, is_absent) = match replica.single(&key, cx) {
            Some(single) => (replica.bare(shape, &key), single.is_none()),
            None => {
                let object = replica.fetch(shape, &key, cx);
                let is_absent = object.versions.is_empty();
                (object, is_absent)
            }
        };
        if is_absent && matches!(aim, Aim::Removal) {
            let outcome = Outcome::deleted(false);
            return cx.fx.answer_after_key(ticket, outcome, replica.stored_key(&key));
        }
        let (asker, value) = write_of(ticket, aim);
        let update = Update { key, value, seen: object.context.clone().into(), name: None };
        self.coordinate_on(at, object, Origin::Client(asker), update, deadline, cx);
    }

    /// Asks every other replica that has not answered. A question promises nothing.
    fn ask_replicas(&mut self, id: u64, cx: &mut Context<'_>) {
        self.ask_replicas_but(Some(cx.me.node), id, cx);
    }

    /// The same; without `but` also the one here, which may serve by now.
    fn ask_replicas_but(&mut self, but: Option<NodeId>, id: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        let Work::Read { replies, .. } = &operation.work else { return };
        let key = operation.key.clone();
        let silent: Vec<Partition> = replies.keys().copied().collect();
        for (at, host) in self.replicas_of(&key) {
            if !silent.contains(&at) && Some(host) != but {
                cx.fx.send_early(host, Message::ReadA { op: id, key: key.clone() });
            }
        }
    }

    /// A coordinator asks for the object of a key.
    pub(crate) fn on_read(
        &mut self,
        from: Incarnation,
        op: u64,
        key: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(partition) = self.local(key) else { return self.tell_map(from, cx) };
        let is_serving = self.is_serving(partition, cx.now);
        let replica = &self.durable.replicas[&partition];
        invariant!(!replica.record.is_leaving, "who leaves is not shown");
        invariant!(replica.is_flushed(), "what is shown was written");
        let object = replica.fetch_named(self.settings.shape, key, cx).to_bytes();
        let stored = replica.stored_key(key);
        let reply = Message::ReadB { op, partition, is_serving, object };
        cx.fx.send_after_key(from, reply, stored);
    }

    /// A replica has answered.
    pub(crate) fn on_read_reply(
        &mut self,
        from: Incarnation,
        (op, partition): (u64, Partition),
        is_serving: bool,
        object: &Bytes,
        cx: &mut Context<'_>,
    ) {
        self.on_reachable(from, op, cx);
        let place = self.durable.map.as_ref().and_then(|map| map.place(partition));
        let Some(Place { since, .. }) = place.filter(|place| place.host == from.node) else {
            // Another host has the partition by now. What this one had others may take for lost.
            return;
        };
        let replicas = usize::from(self.settings.shape.replicas);
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Work::Read { needed, replies, closed, .. } = &mut operation.work else { return };
        invariant!(*needed <= replicas, "no more must answer than there are");
        invariant!(replies.len() < *needed, "who has heard enough has answered");
        if !is_serving {
            // What it lacks would count as absent (T15).
            probe!("causal/not_serving");
            return;
        }
        let Ok(object) = Object::from_bytes(object) else { return };
        if !replies.values().all(|known| known.object.agrees(&object)) {
            return cx.fx.refuse(CONTRADICTS);
        }
        replies.insert(partition, ReadReply { since, object });
        if replies.len() < *needed {
            return;
        }
        if let Some(newly) = newly_closed(replies, closed) {
            probe!("causal/read_anew");
            closed.merge(&newly);
            replies.clear();
            let anew = self.volatile.operations.renumber(op).expect("it was just there");
            return self.ask_replicas_but(None, anew, cx);
        }
        let outlived = outlived(replies);
        if !outlived.is_empty() {
            // The others are asked until they are enough, or the map is there.
            return replies.retain(|at, _| !outlived.contains(at));
        }
        let operation = self.volatile.operations.remove(op).expect("it was just there");
        let Work::Read { ticket, aim, replies, .. } = operation.work else { return };
        self.tell((ticket, aim), operation.key, replies, operation.deadline, cx);
    }

    /// Tells a client what the replies say together.
    fn tell(
        &mut self,
        (ticket, aim): (Ticket, Aim),
        key: Bytes,
        replies: ReadReplies,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let own = self.local(&key).filter(|at| replies.contains_key(at));
        let mut leaving = self.durable.leaving.iter().map(|one| one.replica.partition());
        let is_given_away = leaving.any(|at| replies.contains_key(&at));
        let merged = if self.settings.read_repair && replies.len() > 1 {
            let merged = merge_all(replies.values().map(|reply| reply.object.clone()));
            self.send_repairs(&key, &merged, &replies, cx);
            merged
        } else {
            merge_all(replies.into_values().map(|reply| reply.object))
        };
        let outcome = match aim {
            Aim::Values(Which::All) => {
                let seen = Seen::of(&merged);
                let context = self.settings.tokens.seal_seen(cx.lane, client_key(&key), &seen);
                Outcome::Values { values: merged.values().into(), context }
            }
            Aim::Values(_) => self.value_of(&merged),
            Aim::Removal if merged.versions.is_empty() => Outcome::deleted(false),
            Aim::Removal | Aim::Replacement(_) => {
                let (asker, value) = write_of(ticket, aim);
                let update = Update { key, value, seen: Seen::of(&merged), name: None };
                return self.write(asker, update, deadline, cx);
            }
        };
        match own.and_then(|at| self.durable.replicas.get(&at)) {
            Some(replica) => cx.fx.answer_after_key(ticket, outcome, replica.stored_key(&key)),
            // What it had said itself its replica has that leaves since, maybe not yet on disk.
            None if is_given_away && !mutant!("shown_as_it_leaves") => {
                cx.fx.answer(ticket, outcome);
            }
            // It rests on what others hold, and that was durable before they sent it.
            None => cx.fx.answer_early(ticket, outcome),
        }
    }

    /// An alarm of an operation: sends again what may be lost, or gives up.
    pub(crate) fn on_alarms(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.volatile.operations.next_due(cx) {
            let operation = self.volatile.operations.get_mut(id).expect("it has an alarm");
            if operation.deadline <= cx.now {
                self.give_up(id, cx);
                continue;
            }
            match &operation.work {
                Work::Read { .. } => self.ask_replicas_but(None, id, cx),
                Work::Write { .. } => self.replicate_again(id, cx),
                // The same start of a node does a repeated write once.
                Work::Forward { .. } => self.forward_again(id, cx),
                Work::List { .. } => self.ask_lists_but(None, id, cx),
            }
        }
    }

    fn give_up(&mut self, id: u64, cx: &mut Context<'_>) {
        let operation = self.volatile.operations.remove(id).expect("it has an alarm");
        match operation.work {
            Work::Read { ticket, needed, replies, .. } => {
                let (reached, needed) = (replies.len() as u8, needed as u8);
                refuse(ticket, Refusal::NoQuorum { reached, needed }, cx);
            }
            Work::Write { origin, .. } => self.end_unknown(origin, cx),
            // It was sent to nobody, or all who got it have said that they did nothing.
            Work::Forward { asker, target: None, .. } => {
                refuse(asker.ticket, Refusal::NoQuorum { reached: 0, needed: 1 }, cx);
            }
            // A refusal promises nothing, least of all this one.
            Work::Forward { asker, .. } => refuse(asker.ticket, Refusal::OutcomeUnknown, cx),
            Work::List { ticket, .. } => {
                refuse(ticket, Refusal::NoQuorum { reached: 0, needed: 1 }, cx);
            }
        }
    }

    /// Whether a replica's silence about a key says something: it has copied from every peer that
    /// it can reach.
    pub(crate) fn is_serving(&self, partition: Partition, _now: Time) -> bool {
        self.durable.replicas.get(&partition).is_some_and(Replica::is_serving)
    }
}

/// Who waits for a write that follows a get, and what is written.
fn write_of(ticket: Ticket, aim: Aim) -> (Writer, Option<Bytes>) {
    match aim {
        Aim::Replacement(value) => (Writer { ticket, manner: Manner::Written }, Some(value)),
        _ => (Writer { ticket, manner: Manner::Deleted }, None),
    }
}

/// Refuses a request. A refusal promises nothing, so it leaves at once.
pub(crate) fn refuse(ticket: Ticket, refusal: Refusal, cx: &mut Context<'_>) {
    cx.fx.answer_early(ticket, Outcome::Refused(refusal));
}
