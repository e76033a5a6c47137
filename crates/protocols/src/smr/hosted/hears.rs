//! What a host hears of others: the one match on messages.

use super::action::{Action, Context};
use super::decided;
use super::host::Hosted;
use super::message::Message;
use super::partition::FOLLOWS;
use super::ring::{Ring, group};
use crate::groups::Leads;
use crate::multicast::{Decision, RingId, Slot};
use crate::smr::partitioned::{Addressed, Answered, Machine, PartitionId};
use crate::vsr::{self, Op};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::invariant;

/// What is decided in a ring, as a member tells it.
struct DecidedPage {
    ring: RingId,
    partition: PartitionId,
    first: Op,
    entries: Vec<Option<Bytes>>,
    has_more: bool,
}

impl<M: Machine> Hosted<M> {
    /// A message of a host, or of this one.
    pub fn on_message(&mut self, from: Incarnation, message: Message<M>, cx: &mut Context<'_, M>) {
        let node = from.node;
        match message {
            Message::Log(parts) => self.on_log(from, parts, cx),
            Message::Leads(leads) => self.learn(Some(node), &leads, cx),
            Message::Order { ring, commands } => self.on_order(from, ring, commands, cx),
            Message::Answered(answers) => self.on_answered(answers, cx),
            Message::Lacks { ring, until } => self.on_lacks(ring, until, cx),
            Message::Peers { to, messages } => {
                if let Some(partition) = self.partitions.get_mut(&to) {
                    messages.into_iter().for_each(|it| partition.replica.on_message(it));
                }
            }
            Message::Follow { ring, partition, after } => {
                if let Some(ring) = self.rings.get_mut(&ring) {
                    ring.follow((node, partition), after, cx.now);
                }
            }
            Message::Decided { ring, partition, first, entries, has_more } => {
                self.on_decided(DecidedPage { ring, partition, first, entries, has_more }, cx);
            }
            Message::Trimmed { ring, partition, base } => {
                if let Some(partition) = self.partitions.get_mut(&partition) {
                    partition.falls_behind(None, Some((ring, base)));
                    partition.catches_up();
                }
            }
            Message::Holds { partition, upto } => self.on_holds(node, partition, upto),
            Message::GetCopy { partition, nonce, page, wants } => {
                if let Some(partition) = self.partitions.get_mut(&partition) {
                    partition.on_get_copy(from, (nonce, page), &wants, cx);
                }
            }
            Message::Copy { partition, nonce, page, is_last, body } => {
                if let Some(partition) = self.partitions.get_mut(&partition) {
                    match partition.on_copy((nonce, page, is_last), body, cx) {
                        Ok(true) => self.free_logs(),
                        Ok(false) => {}
                        Err(what) => cx.out.push(Action::Refuse(what)),
                    }
                }
            }
        }
    }

    fn on_log(
        &mut self,
        from: Incarnation,
        parts: Vec<(GroupId, vsr::Message)>,
        cx: &mut Context<'_, M>,
    ) {
        let most = usize::from(self.layout.count());
        invariant!(self.rings.len() <= most + 1, "a ring of each partition, and one of all");
        for (of, message) in parts {
            let count = self.rings.values().filter(|ring| group(ring.id) == of).count();
            invariant!(count <= 1, "a log is of one ring");
            match self.rings.values_mut().find(|ring| group(ring.id) == of) {
                Some(ring) => ring.on_message(from, message, cx, &mut self.outbox),
                None => cx.out.push(Action::Refuse("a ring's log is told to its members")),
            }
        }
    }

    pub(super) fn on_order(
        &mut self,
        from: Incarnation,
        id: RingId,
        commands: Vec<Addressed<M>>,
        cx: &mut Context<'_, M>,
    ) {
        let Some(ring) = self.rings.get_mut(&id) else {
            return self.say_who_leads(from.node, id, cx);
        };
        invariant!(ring.id == id, "rings are known by their ids");
        let most = usize::from(self.layout.count());
        invariant!(self.partitions.len() <= most, "a replica of each partition at most");
        match ring.order(commands, cx, &mut self.outbox) {
            Ok(true) => {}
            Ok(false) => self.say_who_leads(from.node, id, cx),
            Err(what) => cx.out.push(Action::Refuse(what)),
        }
    }

    /// Tells somebody who seems to lead a ring: a hint.
    fn say_who_leads(&self, to: NodeId, ring: RingId, cx: &mut Context<'_, M>) {
        let leads: Option<Leads> = self.rings.get(&ring).and_then(Ring::hint);
        let leads = leads.or_else(|| self.routes.leads(group(ring)));
        if let Some(leads) = leads.filter(|_| to != cx.me.node) {
            // It promises nothing.
            cx.send_early(to, Message::Leads(leads));
        }
    }

    fn on_answered(&mut self, answers: Vec<(u64, Answered<M>)>, cx: &mut Context<'_, M>) {
        invariant!(self.layout.count() > 0, "there are partitions");
        for (number, answer) in answers {
            let Some((ring, asked)) = self.orders.answered(number) else { continue };
            if let Some(node) = asked {
                self.routes.answers(group(ring), node, cx.now);
            }
            invariant!(self.orders.answered(number).is_none(), "an order is answered once");
            cx.out.push(Action::Answer { number, answer });
        }
    }

    /// A replica here waits for slots of a ring.
    pub(super) fn ask_for_slots(&mut self, id: RingId, until: Slot, cx: &mut Context<'_, M>) {
        if self.rings.get(&id).is_some_and(Ring::leads) {
            return self.on_lacks(id, until, cx);
        }
        let primary = self.routes.primary(group(id)).filter(|node| *node != cx.me.node);
        if let Some(primary) = primary {
            // A question promises nothing.
            cx.send_early(primary, Message::Lacks { ring: id, until });
        }
    }

    fn on_lacks(&mut self, ring: RingId, until: Slot, cx: &mut Context<'_, M>) {
        let most = usize::from(self.layout.count()) + 1;
        invariant!(self.rings.len() <= most, "a ring of each partition, and one of all");
        if let Some(known) = self.rings.get_mut(&ring) {
            invariant!(known.id == ring, "rings are known by their ids");
            // A skip is proposed before what else is.
            known.skip_to(until, cx, &mut self.outbox);
        }
    }

    fn on_holds(&mut self, node: NodeId, partition: PartitionId, upto: Op) {
        if self.layout.members(partition).any(|member| member == node) {
            let known = self.holds.entry((partition, node)).or_default();
            *known = upto.max(*known);
            invariant!(*known >= upto, "what is held only grows");
        }
        let is_member = |(partition, node): &(PartitionId, NodeId)| {
            self.layout.members(*partition).any(|member| member == *node)
        };
        invariant!(self.holds.keys().all(is_member), "members hold what they have stored");
    }

    /// Of rings that are not at hand a replica here asks members, one after the other if nobody
    /// answers.
    pub(super) fn follow(&mut self, id: PartitionId, cx: &mut Context<'_, M>) {
        let Some(partition) = self.partitions.get_mut(&id) else { return };
        for ring in partition.rings() {
            let Some(reached) = partition.replica.reached(ring) else { continue };
            let is_here = self.rings.get(&ring).is_some_and(|it| reached.op >= it.base());
            if is_here {
                continue;
            }
            let feed = partition.feeds.entry(ring).or_default();
            if feed.asked.is_some_and(|at| cx.now - at < FOLLOWS) {
                continue;
            }
            if feed.asked.is_some() && !feed.is_heard {
                feed.silent += 1;
            }
            (feed.asked, feed.is_heard) = (Some(cx.now), false);
            let members = self.routes.known(group(ring));
            let others: Vec<NodeId> =
                members.iter().copied().filter(|node| *node != cx.me.node).collect();
            let first = self.routes.primary(group(ring));
            let first = others.iter().position(|node| Some(*node) == first).unwrap_or_default();
            if others.is_empty() {
                continue;
            }
            let to = others[(first + feed.silent) % others.len()];
            // A question promises nothing.
            cx.send_early(to, Message::Follow { ring, partition: id, after: reached.op });
        }
    }

    fn on_decided(&mut self, told: DecidedPage, cx: &mut Context<'_, M>) {
        let DecidedPage { ring, partition, first, entries, has_more } = told;
        let count = self.layout.count();
        invariant!(count > 0, "there are partitions");
        let Some(partition) = self.partitions.get_mut(&partition) else { return };
        let Some(before) = partition.replica.reached(ring) else { return };
        for (op, entry) in (first.0..).map(Op).zip(entries) {
            let Some(reached) = partition.replica.reached(ring) else { break };
            if op != reached.op.next() {
                continue;
            }
            let decision = match &entry {
                None => Some(Decision::Nothing),
                Some(bytes) => decided::read(bytes, ring, count),
            };
            let Some(decision) = decision else {
                return cx.out.push(Action::Refuse("what is decided can be read"));
            };
            if !partition.replica.learn(ring, op, decision) {
                // There is no room: it is asked for again.
                break;
            }
            let reached = partition.replica.reached(ring);
            invariant!(reached.is_some_and(|it| it.op == op), "decisions are learned in order");
        }
        let after = partition.replica.reached(ring);
        invariant!(after.is_some_and(|it| it.op >= before.op), "nothing is unlearned");
        let feed = partition.feeds.entry(ring).or_default();
        // A member that brings nothing may be cut off, and the next one not.
        feed.is_heard = after.is_some_and(|it| it.op > before.op);
        if has_more && feed.is_heard {
            feed.asked = None;
        }
    }
}
