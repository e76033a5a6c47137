//! Writes that reach a node which is no replica of the key.
//!
//! Such a node does not issue dots (T12). It gives the write to a replica that has answered within
//! the last second, or asks all of them for the object and takes the first that answers: so it is
//! one that can be reached, in the start it is in. It stays with that one, as a second replica, or
//! a later start of the same, could do the write a second time. Only one that says it did nothing
//! is followed by another. Where all have, they know another map, or do not know yet that they are
//! meant: they are asked again in a while.

use super::get::refuse;
use super::operations::{Forwarded, Origin, Work, Writer};
use super::put::{Update, siblings_too_large};
use super::seen::Seen;
use crate::causal::message::{Ending, Message, TOLD_BYTES_MAX, tell_fitting};
use crate::causal::replicate::twins::ON_ITS_WAY;
use crate::causal::{Causal, Context};
use crate::dots::context::CausalContext;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::OPERATIONS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::{WriteId, WriteName};

/// How long a replica that has answered counts as one that can be reached.
const FRESH: Span = Span::secs(1);

/// A span in whole milliseconds, however long.
fn millis(span: Span) -> u32 {
    u32::try_from(span.0 / 1_000_000).unwrap_or(u32::MAX)
}

impl Causal {
    /// Gives a write to a replica of its key.
    pub(crate) fn forward(
        &mut self,
        asker: Writer,
        update: Update,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let op = self.volatile.operations.number();
        let Update { key, value, seen, name } = update;
        let own = u128::from(cx.me.node.0) << 64
            | u128::from(cx.me.start.0) << 32
            | u128::from(op & u64::from(u32::MAX));
        let context = match tell_fitting(&seen.context) {
            Ok(context) => context,
            Err(length) => {
                probe!("causal/context_too_large");
                let limit = TOLD_BYTES_MAX;
                let refusal = Refusal::TooLarge { what: "context", length, limit };
                return refuse(asker.ticket, refusal, cx);
            }
        };
        let (is_named, names) = (name.is_some(), seen.tell_names());
        let name = name.unwrap_or(WriteName { id: WriteId(own), age: Span(0) });
        let write = Forwarded { name, is_named, begun: cx.now, context, names, value };
        let write = Box::new(write);
        let refused = BTreeSet::new();
        let target = self.nearest(&key, &refused, cx.now);
        let work = Work::Forward { asker, target, refused, write };
        self.volatile.operations.insert(op, key, deadline, work, cx);
        self.forward_on(op, cx);
    }

    /// Sends a write to the replica that was chosen, again if it was sent before; or asks who can
    /// be chosen. Requests promise nothing.
    fn forward_on(&mut self, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let key = operation.key.clone();
        let Work::Forward { target, refused, write, .. } = &operation.work else { return };
        match target {
            Some(target) => {
                let message = write.message(op, key, operation.deadline, cx.now);
                cx.fx.send_early(*target, message);
            }
            None => {
                let refused = refused.clone();
                for (_, host) in self.replicas_of(&key) {
                    if !refused.contains(&host) {
                        cx.fx.send_early(host, Message::ReadA { op, key: key.clone() });
                    }
                }
            }
        }
    }

    /// A write has waited for a while. If nobody has it, whoever refused it is asked as well: it
    /// may be meant by now.
    pub(super) fn forward_again(&mut self, op: u64, cx: &mut Context<'_>) {
        if let Some(operation) = self.volatile.operations.get_mut(op)
            && let Work::Forward { target: None, refused, .. } = &mut operation.work
            && !refused.is_empty()
            && !mutant!("causal_forwards_no_more")
        {
            probe!("causal/forward_anew");
            refused.clear();
        }
        self.forward_on(op, cx);
    }

    /// A replica has answered and can be chosen.
    pub(super) fn on_reachable(&mut self, from: Incarnation, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Work::Forward { target, refused, .. } = &mut operation.work else { return };
        let is_meant = |target: &Incarnation| !refused.contains(&target.node);
        invariant!(target.as_ref().is_none_or(is_meant), "who cannot do it is not asked again");
        if target.is_none() && !refused.contains(&from.node) {
            probe!("causal/forward_after_asking");
            self.forward_to(op, from, cx);
        }
        invariant!(self.volatile.operations.has_timer(), "who waits is woken");
    }

    /// Who answers a question that is open can be reached, in that start. Anything else may have
    /// been on its way for long, from a start that has ended: it would get a write in vain.
    pub(crate) fn note_answer(&mut self, from: Incarnation, message: &Message, now: Time) {
        let (Message::ReadB { op, .. } | Message::WriteB { op, .. } | Message::ListB { op, .. }) =
            message
        else {
            return;
        };
        if self.volatile.operations.get_mut(*op).is_some() {
            self.volatile.heard.insert(from.node, (now, from.start));
        }
    }

    /// The replica's host that has answered last, in the start in which it did, if that was not
    /// long ago.
    fn nearest(&self, key: &[u8], without: &BTreeSet<NodeId>, now: Time) -> Option<Incarnation> {
        let heard = |host: NodeId| {
            let (at, start) = self.volatile.heard.get(&host).copied()?;
            (now < at + FRESH).then_some((at, Incarnation { node: host, start }))
        };
        let hosts = self.replicas_of(key).into_iter().map(|(_, host)| host);
        let usable = hosts.filter(|host| !without.contains(host));
        usable.filter_map(heard).max().map(|(_, who)| who)
    }

    /// A node asks this one to coordinate a write.
    pub(crate) fn on_forwarded(
        &mut self,
        from: Incarnation,
        (op, name): (u64, WriteName),
        seen: Seen,
        (key, value): (&Bytes, Option<Bytes>),
        within_ms: u32,
        cx: &mut Context<'_>,
    ) {
        let in_hand = self.volatile.operations.len();
        invariant!(in_hand <= OPERATIONS_MAX, "what is in hand is bounded");
        // Of a repeated one the first ending holds, whoever has the partition by now: who hears
        // "not here" of a write that was done has it done once more elsewhere.
        let ending = match self.volatile.remembered.begin((from, op)) {
            Some(Some(ending)) => {
                probe!("causal/forwarded_twice");
                ending
            }
            // It is under way; its end will be told.
            Some(None) => return,
            None => match self.local(key) {
                None => Ending::NotHere,
                Some(_) if self.volatile.operations.len() >= OPERATIONS_MAX => Ending::Overloaded,
                Some(at) => {
                    let update = Update { key: key.clone(), value, seen, name: Some(name) };
                    let deadline = cx.now + Span::millis(u64::from(within_ms));
                    let origin = Origin::Peer(from, op);
                    return self.coordinate(at, origin, update, deadline, cx);
                }
            },
        };
        if ending == Ending::NotHere {
            self.tell_map(from, cx);
        }
        self.conclude((from, op), ending.clone());
        let has_ended = self.volatile.remembered.has_ended((from, op));
        invariant!(has_ended, "what is told of a write is remembered");
        cx.fx.send(from, Message::WriteB { op, ending });
    }

    /// A write that another node forwarded has ended here.
    pub(super) fn conclude(&mut self, write: (Incarnation, u64), ending: Ending) {
        self.volatile.remembered.conclude(write, ending, self.settings.limits.writes);
    }

    /// The coordinator has told how a write ended.
    pub(crate) fn on_forward_reply(
        &mut self,
        from: Incarnation,
        op: u64,
        ending: Ending,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let key = operation.key.clone();
        let Work::Forward { asker, target, refused, .. } = &mut operation.work else { return };
        if *target != Some(from) {
            return;
        }
        invariant!(!refused.contains(&from.node), "who cannot do it is not asked again");
        let asker = *asker;
        let outcome = match ending {
            Ending::Stored(told) => {
                let told = Seen::from(told.into_iter().collect::<CausalContext>());
                self.stored(asker.manner, &key, &told, cx)
            }
            Ending::StoredAs(told, names) => {
                let told = Seen::new(told.into_iter().collect(), names);
                self.stored(asker.manner, &key, &told, cx)
            }
            Ending::Overloaded => Outcome::Refused(Refusal::Overloaded),
            Ending::Unknown => Outcome::Refused(Refusal::OutcomeUnknown),
            Ending::TooLarge(bytes) => Outcome::Refused(siblings_too_large(bytes as usize)),
            Ending::NotHere => {
                probe!("causal/forward_elsewhere");
                refused.insert(from.node);
                *target = None;
                let refused = refused.clone();
                return match self.nearest(&key, &refused, cx.now) {
                    Some(next) => self.forward_to(op, next, cx),
                    None => self.forward_on(op, cx),
                };
            }
        };
        self.volatile.operations.remove(op);
        invariant!(self.volatile.operations.has_timer(), "who still waits is woken");
        // The coordinator told it when it was durable there.
        cx.fx.answer_early(asker.ticket, outcome);
    }

    /// Sends a write to this one first, under a number of its own: who got it under an earlier one
    /// remembers that it did nothing.
    fn forward_to(&mut self, op: u64, next: Incarnation, cx: &mut Context<'_>) {
        let Some(op) = self.volatile.operations.renumber(op) else { return };
        if let Some(operation) = self.volatile.operations.get_mut(op)
            && let Work::Forward { target, .. } = &mut operation.work
        {
            *target = Some(next);
        }
        self.forward_on(op, cx);
    }
}

impl Forwarded {
    /// The write as it is sent now, under this number.
    fn message(&self, op: u64, key: Bytes, deadline: Time, now: Time) -> Message {
        let Forwarded { name: WriteName { id, age }, context, names, .. } = self;
        let (id, context, names) = (*id, context.clone(), names.clone());
        let within_ms = millis(deadline - now);
        let waited = now - self.begun;
        // Who named it may have sent it elsewhere meanwhile: it is no longer sent first, but for a
        // while in which most that wait come through. One that was sent before is never taken for
        // one that was not.
        let is_sent_again = self.is_named && waited >= ON_ITS_WAY && !mutant!("causal_waits_young");
        let is_first = *age == Span(0) && !is_sent_again;
        let age_ms = if is_first { 0 } else { millis(Span(age.0.saturating_add(waited.0))).max(1) };
        let (is_delete, value) = (self.value.is_none(), self.value.clone().unwrap_or_default());
        match (names.is_empty(), age_ms) {
            (true, 0) => Message::WriteA { op, id, context, is_delete, within_ms, key, value },
            (true, _) if !is_delete => {
                Message::WriteAgainA { age_ms, op, id, context, within_ms, key, value }
            }
            _ => Message::WriteSeenA {
                names,
                age_ms,
                op,
                id,
                context,
                is_delete,
                within_ms,
                key,
                value,
            },
        }
    }
}
