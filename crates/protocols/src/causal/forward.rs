//! Writes that reach a node which is no replica of the key.
//!
//! Such a node does not issue dots (T12). It picks the replica that it heard of last and stays with
//! it: a second replica could do the write a second time. Only one that says it did nothing is
//! followed by another.

use super::coordinate::Update;
use super::get::refuse;
use super::message::{Ending, Message, TellContext, tell};
use super::operations::{Origin, Work};
use super::{Causal, Context};
use alloc::collections::BTreeSet;
use bytes::Bytes;
use quorate_kernel::causal::WriteId;
use quorate_kernel::ids::{Incarnation, NodeId, Start, Ticket};
use quorate_kernel::limits::OPERATIONS_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

impl Causal {
    /// Gives a write to a replica of its key.
    pub(super) fn forward(
        &mut self,
        ticket: Ticket,
        update: Update,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let op = self.volatile.operations.number();
        let Update { key, value, context, id } = update;
        let within_ms = u32::try_from((deadline - cx.now).0 / 1_000_000).unwrap_or(u32::MAX);
        let name = u128::from(cx.me.node.0) << 64
            | u128::from(cx.me.start.0) << 32
            | u128::from(op & u64::from(u32::MAX));
        let message = Message::WriteA {
            op,
            id: id.unwrap_or(WriteId(name)),
            context: tell(&context),
            is_delete: value.is_none(),
            within_ms,
            key: key.clone(),
            value: value.unwrap_or_default(),
        };
        let Some(target) = self.nearest(&key, &BTreeSet::new()) else {
            return refuse(ticket, Refusal::NoRoute, cx);
        };
        // A request promises nothing.
        cx.fx.send_early(target, message.clone());
        let work = Work::Forward { ticket, target, refused: BTreeSet::new(), message };
        self.volatile.operations.insert(op, key, deadline, work, cx);
    }

    /// The replica's host that was heard of last, in the start it was heard in.
    fn nearest(&self, key: &[u8], without: &BTreeSet<NodeId>) -> Option<Incarnation> {
        let hosts = self.replicas_of(key).into_iter().map(|(_, host)| host);
        let heard = |host: &NodeId| self.volatile.heard.get(host).copied();
        let best = hosts
            .filter(|host| !without.contains(host))
            .max_by_key(|host| heard(host).map(|(at, _)| at))?;
        let start = heard(&best).map_or(Start(0), |(_, start)| start);
        Some(Incarnation { node: best, start })
    }

    /// A node asks this one to coordinate a write.
    pub(super) fn on_forwarded(
        &mut self,
        from: Incarnation,
        (op, id): (u64, WriteId),
        context: TellContext,
        (key, value): (&Bytes, Option<Bytes>),
        within_ms: u32,
        cx: &mut Context<'_>,
    ) {
        let ending = match self.local(key) {
            None => Ending::NotHere,
            Some(_) if self.volatile.operations.len() >= OPERATIONS_MAX => Ending::Overloaded,
            Some(at) => match self.volatile.remembered.begin((from, op)) {
                None => {
                    let context = context.into_iter().collect();
                    let update = Update { key: key.clone(), value, context, id: Some(id) };
                    let deadline = cx.now + Span::millis(u64::from(within_ms));
                    let origin = Origin::Peer(from, op);
                    return self.coordinate(at, origin, update, deadline, cx);
                }
                // It is under way; its end will be told.
                Some(None) => return,
                Some(Some(told)) => {
                    probe!("causal/forwarded_twice");
                    Ending::Stored(told)
                }
            },
        };
        cx.fx.send(from, Message::WriteB { op, ending });
    }

    /// The coordinator has told how a write ended.
    pub(super) fn on_forward_reply(
        &mut self,
        from: Incarnation,
        op: u64,
        ending: Ending,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let key = operation.key.clone();
        let Work::Forward { ticket, target, refused, .. } = &mut operation.work else { return };
        if target.node != from.node {
            return;
        }
        let ticket = *ticket;
        let outcome = match ending {
            Ending::Stored(told) => self.stored(&key, &told.into_iter().collect(), cx),
            Ending::Overloaded => Outcome::Refused(Refusal::Overloaded),
            Ending::Unknown => Outcome::Refused(Refusal::OutcomeUnknown),
            Ending::NotHere => {
                probe!("causal/forward_elsewhere");
                refused.insert(from.node);
                let refused = refused.clone();
                if self.forward_again(op, &key, &refused, cx) {
                    return;
                }
                Outcome::Refused(Refusal::NoRoute)
            }
        };
        self.volatile.operations.remove(op);
        // The coordinator told it when it was durable there.
        cx.fx.answer_early(ticket, outcome);
    }

    fn forward_again(
        &mut self,
        op: u64,
        key: &Bytes,
        refused: &BTreeSet<NodeId>,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(next) = self.nearest(key, refused) else { return false };
        let Some(operation) = self.volatile.operations.get_mut(op) else { return false };
        let Work::Forward { target, message, .. } = &mut operation.work else { return false };
        *target = next;
        cx.fx.send_early(next, message.clone());
        true
    }
}
