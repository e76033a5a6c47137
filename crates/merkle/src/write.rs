//! Puts and deletes of the baseline (as DottedDB Alg. 1), at a replica of the key or forwarded to
//! one.

use super::message::Message;
use super::serve::{Waiting, Work, refuse};
use super::{Context, Merkle};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::limits::WRITES_REMEMBERED_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Time;
use quorate_kernel::write::WriteId;
use quorate_protocols::causal::keys::client_key;
use quorate_protocols::causal::message::{TellContext, tell};
use quorate_protocols::dots::context::CausalContext;
use quorate_protocols::dots::dot::{Dot, Partition};
use quorate_protocols::dots::object::{Object, Version};

/// Forwarded writes that were begun here, the oldest forgotten first: a copy that the network made
/// of one is not done again.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    known: BTreeSet<(Incarnation, u64)>,
    order: VecDeque<(Incarnation, u64)>,
}

impl Remembered {
    /// Whether a write arrives for the first time.
    fn is_first(&mut self, write: (Incarnation, u64)) -> bool {
        let is_first = self.known.insert(write);
        if is_first {
            self.order.push_back(write);
            if self.order.len() > WRITES_REMEMBERED_MAX {
                let oldest = self.order.pop_front();
                oldest.map(|oldest| self.known.remove(&oldest));
            }
        }
        is_first
    }
}

impl Merkle {
    /// A client writes.
    pub(super) fn begin_write(
        &mut self,
        ticket: Ticket,
        key: Bytes,
        value: Option<Bytes>,
        (token, id): (&[u8], Option<WriteId>),
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let context = match self.settings.tokens.open(cx.lane, client_key(&key), token) {
            Ok(context) => context,
            Err(error) => return refuse(ticket, Refusal::Context(error), cx),
        };
        let is_delete = value.is_none();
        if let Some(at) = self.local(&key) {
            let (told, stored) = self.coordinate(at, &key, value, &context, id, cx);
            let outcome = self.stored(is_delete, &key, &told, cx);
            return cx.fx.answer_after_key(ticket, outcome, stored);
        }
        let hosts: Vec<_> = self.replicas_of(&key).into_iter().map(|(_, host)| host).collect();
        let host = hosts[cx.rng.below(hosts.len() as u64) as usize];
        let work = Work::Forward { is_delete };
        let op = self.operations.insert(Waiting { ticket, key: key.clone(), deadline, work }, cx);
        let value = value.unwrap_or_default();
        let context = tell(&context);
        // A request promises nothing.
        cx.fx.send_early(host, Message::WriteA { op, id, context, is_delete, key, value });
    }

    /// Does a write here; returns what may be told to cover it, and where it is stored.
    fn coordinate(
        &mut self,
        at: Partition,
        key: &Bytes,
        value: Option<Bytes>,
        context: &CausalContext,
        id: Option<WriteId>,
        cx: &mut Context<'_>,
    ) -> (CausalContext, Bytes) {
        let shape = self.settings.shape;
        let replica = self.replicas.get_mut(&at).expect("the caller found it");
        let stored = replica.stored_key(key);
        let object = replica.read(key, cx);
        if object.versions.values().any(|version| id.is_some() && version.id == id) {
            return (CausalContext::default(), stored);
        }
        let version = value.map(|value| Version { id, value });
        let (object, dot) = replica.put(shape, key, version, context, cx);
        replica.flush();
        if self.settings.replicate_on_write {
            let wire = object.to_bytes();
            for (_, host) in self.replicas_of(key) {
                if host != cx.me.node {
                    let message = Message::Replicate { key: key.clone(), object: wire.clone() };
                    cx.fx.send_after_key(host, message, stored.clone());
                }
            }
        }
        (covering(&object, dot), stored)
    }

    fn stored(
        &self,
        is_delete: bool,
        key: &[u8],
        told: &CausalContext,
        cx: &Context<'_>,
    ) -> Outcome {
        let context = match told.is_empty() {
            true => Bytes::new(),
            false => self.settings.tokens.seal(cx.lane, client_key(key), told),
        };
        match is_delete {
            true => Outcome::Deleted { existed: false, context },
            false => Outcome::Written { context },
        }
    }

    /// A node asks this one to coordinate a write.
    pub(super) fn on_forwarded(
        &mut self,
        from: Incarnation,
        (op, id): (u64, Option<WriteId>),
        context: TellContext,
        (key, value): (&Bytes, Option<Bytes>),
        cx: &mut Context<'_>,
    ) {
        if !self.remembered.is_first((from, op)) {
            return;
        }
        let Some(at) = self.local(key) else {
            return cx.fx.send(from, Message::WriteB { op, told: None });
        };
        let context = context.into_iter().collect();
        let (told, stored) = self.coordinate(at, key, value, &context, id, cx);
        cx.fx.send_after_key(from, Message::WriteB { op, told: Some(tell(&told)) }, stored);
    }

    /// The coordinator has told how a write ended.
    pub(super) fn on_forward_reply(
        &mut self,
        op: u64,
        told: Option<TellContext>,
        cx: &mut Context<'_>,
    ) {
        let Some(Waiting { work: Work::Forward { is_delete }, .. }) =
            self.operations.by_id.get(&op)
        else {
            return;
        };
        let is_delete = *is_delete;
        let waiting = self.operations.by_id.remove(&op).expect("it was just there");
        let outcome = match told {
            Some(told) => self.stored(is_delete, &waiting.key, &told.into_iter().collect(), cx),
            None => Outcome::Refused(Refusal::NoRoute),
        };
        // The coordinator told it when it was durable there.
        cx.fx.answer_early(waiting.ticket, outcome);
    }

    /// Another replica tells of a key.
    pub(super) fn on_replicate(&mut self, key: &Bytes, object: &Bytes, cx: &mut Context<'_>) {
        let Some(at) = self.local(key) else { return };
        let Ok(object) = Object::from_bytes(object) else { return };
        let replica = self.replicas.get_mut(&at).expect("it is local");
        replica.update(self.settings.shape, key, object, cx);
        replica.flush();
    }
}

/// What the writer of a dot may be told to cover it: nothing if another version is left, which it
/// would cover unseen.
fn covering(object: &Object, dot: Dot) -> CausalContext {
    match object.versions.keys().all(|version| *version == dot) {
        true => object.context.clone(),
        false => CausalContext::default(),
    }
}
