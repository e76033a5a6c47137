//! A ring's log at one of its members, and what its primary puts into it.

use super::action::{Action, Context};
use super::decided;
use super::message::Message;
use super::reads::Reads;
use super::slots::Slots;
use crate::groups::{Leads, Outbox};
use crate::multicast::{Decision, Pace, Pacer, RingId, Slot};
use crate::smr::partitioned::{Addressed, Batch, CommandId, Machine, PartitionId, may_order};
use crate::smr::sized::length;
use crate::smr::{COMMANDS_MAX, OBJECT_KEY_BYTES_MAX};
use crate::vsr::{self, Event, Kept, Op, Replica, Status};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::{
    OPERATIONS_MAX, VSR_ENTRIES_BYTES_MAX, VSR_ENTRIES_MAX, VSR_IN_FLIGHT_BYTES_MAX,
};
use quorate_kernel::mutant;
use quorate_kernel::process::{Recovery, Table};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};

/// How many bytes of commands one decision has, if it is not a single command that has more.
const BATCH_BYTES_MAX: usize = 250_000;
/// How many bytes of commands wait for the log before no more are taken.
const QUEUED_BYTES_MAX: usize = VSR_IN_FLIGHT_BYTES_MAX;
/// For how long who follows is told, after it has asked.
const FOLLOWED: Span = Span::secs(1);

const _: () = assert!(BATCH_BYTES_MAX > OBJECT_KEY_BYTES_MAX, "most commands share a decision");

/// The group that replicates a ring's log.
pub(super) fn group(ring: RingId) -> GroupId {
    GroupId(u64::from(ring.0) + 1)
}

/// A ring's log here.
#[derive(Debug)]
pub(super) struct Ring<M: Machine> {
    pub id: RingId,
    count: u8,
    pub log: Replica,
    slots: Slots<M>,
    /// What it has in hand if this node leads.
    coordinator: Option<Coordinator<M>>,
    followers: BTreeMap<(NodeId, PartitionId), Follower>,
    /// Up to where followers that were up to date have been told.
    told: Op,
    /// Whether this turn has called the log; whether it has more to execute.
    is_touched: bool,
    is_resumed: bool,
}

/// The primary of a ring.
#[derive(Debug)]
struct Coordinator<M: Machine> {
    pacer: Pacer,
    /// Commands that wait for the log, and how many bytes each is.
    queue: VecDeque<(Addressed<M>, usize)>,
    queued: BTreeSet<CommandId>,
    bytes: usize,
    /// Questions of the partition alone, which go into no log.
    reads: Reads<M>,
}

/// A replica of a partition that is told what is decided.
#[derive(Debug)]
struct Follower {
    /// Up to where it was told.
    sent: Op,
    until: Time,
    /// Whether it waits for an answer, whatever there is to tell.
    asks: bool,
}

impl<M: Machine> Ring<M> {
    /// A ring's log before its start, of a machine with so many partitions.
    pub fn new(id: RingId, count: u8, me: NodeId, kept: Kept) -> Ring<M> {
        let in_flight_bytes = VSR_IN_FLIGHT_BYTES_MAX;
        let settings = vsr::Settings {
            durability: Durability::Sync,
            kept,
            in_flight_bytes,
            by_membership: false,
        };
        Ring {
            id,
            count,
            log: Replica::new(group(id), me, settings),
            slots: Slots::new(id, count),
            coordinator: None,
            followers: BTreeMap::new(),
            told: Op(0),
            is_touched: false,
            is_resumed: false,
        }
    }

    /// Starts from what is stored, or as a founder.
    pub fn start(&mut self, founders: &[NodeId], cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        self.call(cx, outbox, |log, on| log.start(Some(founders), Recovery::Intact, on));
    }

    /// Calls the log.
    pub fn call(
        &mut self,
        cx: &mut Context<'_, M>,
        outbox: &mut Outbox,
        call: impl FnOnce(&mut Replica, &mut vsr::Context<'_>),
    ) {
        self.is_touched = true;
        let mut out = Vec::new();
        let (me, now, table) = (cx.me, cx.now, cx.table);
        let machine = &mut self.slots;
        call(&mut self.log, &mut vsr::Context { me, now, table, machine, out: &mut out });
        for action in out {
            match action {
                vsr::Action::Write { class, key, value } => {
                    cx.out.push(Action::Write { class, key, value });
                }
                vsr::Action::Send { to, message, release } => {
                    outbox.push(group(self.id), to, message, &release);
                }
                vsr::Action::Tell(event) => self.hear(&event),
                vsr::Action::Resume => {
                    self.is_resumed = true;
                    cx.out.push(Action::Resume);
                }
                vsr::Action::Refuse(what) => cx.out.push(Action::Refuse(what)),
            }
        }
    }

    fn hear(&mut self, event: &Event) {
        match event {
            Event::Serving => {
                // What of the log is not executed takes a slot each at least.
                let next = self.slots.next_at(self.log.log().end());
                let pacer = Pacer::new(self.id, Pace::Demand, next);
                let (queue, queued, reads) = (VecDeque::new(), BTreeSet::new(), Reads::new());
                self.coordinator = Some(Coordinator { pacer, queue, queued, bytes: 0, reads });
            }
            // Whoever waits asks the next one.
            Event::Deposed => self.coordinator = None,
            Event::Readable(ticket) => self.confirm(*ticket),
            Event::Members(_) | Event::Released | Event::Lost => {}
        }
    }

    /// This node has led since a question came; what must be seen is executed in the log.
    fn confirm(&mut self, ticket: Ticket) {
        let until = self.slots.next_at(self.log.applied());
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.reads.confirm(ticket, until);
        }
    }

    /// Questions that may be answered, if all before a slot is executed.
    pub fn take_reads(&mut self, is_executed: impl Fn(Slot) -> bool) -> Vec<Addressed<M>> {
        let coordinator = self.coordinator.as_mut();
        coordinator.map_or_else(Vec::new, |it| it.reads.take_ready(is_executed))
    }

    /// Whether this node leads the ring, and serves.
    pub fn leads(&self) -> bool {
        self.coordinator.is_some()
    }

    /// What the log here knows of who leads; nothing before it knows its members.
    pub fn hint(&self) -> Option<Leads> {
        let members = Arc::clone(&self.log.configuration().members);
        let leads =
            Leads { group: group(self.id), members, view: self.log.view(), serves: self.leads() };
        (!leads.members.is_empty()).then_some(leads)
    }

    /// Goes on executing, if the log asked for that.
    pub fn resume(&mut self, cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        if core::mem::take(&mut self.is_resumed) {
            self.call(cx, outbox, Replica::resume);
        }
    }

    /// Commands shall be put into the log. Whether this node leads, and they are sound; those for
    /// which there is no room are sent again.
    ///
    /// # Errors
    /// No correct peer asks for it; nothing was done.
    pub fn order(
        &mut self,
        commands: Vec<Addressed<M>>,
        cx: &mut Context<'_, M>,
        outbox: &mut Outbox,
    ) -> Result<bool, &'static str> {
        let (ring, count) = (self.id, self.count);
        let batch: Batch<M> = commands.iter().cloned().map(Into::into).collect();
        if !may_order(ring, &batch, count) {
            return Err("who orders a command knows its ring");
        }
        if !self.leads() {
            return Ok(false);
        }
        let is_alone = |it: &Addressed<M>| self.id != RingId::ALL && M::is_question(&it.command);
        let (questions, commands): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_alone);
        questions.into_iter().for_each(|question| self.read(question, cx, outbox));
        let Some(coordinator) = &mut self.coordinator else { return Ok(false) };
        for command in commands {
            let has_room =
                coordinator.bytes < QUEUED_BYTES_MAX && coordinator.queue.len() < OPERATIONS_MAX;
            if has_room && coordinator.queued.insert(command.id) {
                let bytes = length(&command);
                coordinator.bytes += bytes;
                coordinator.queue.push_back((command, bytes));
            }
        }
        Ok(true)
    }

    /// A question of the partition alone: whether this node leads is to be confirmed.
    fn read(&mut self, question: Addressed<M>, cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        let coordinator = self.coordinator.as_mut();
        let Some(ticket) = coordinator.and_then(|it| it.reads.ask(question)) else { return };
        let mut is_taken = false;
        self.call(cx, outbox, |log, _| is_taken = log.read(ticket).is_ok());
        if mutant!("reads_without_a_round") {
            return self.confirm(ticket);
        }
        if let Some(coordinator) = self.coordinator.as_mut().filter(|_| !is_taken) {
            coordinator.reads.refuse(ticket);
        }
    }

    /// Slots are lacked: the primary skips them.
    pub fn skip_to(&mut self, until: Slot, cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        let coordinator = self.coordinator.as_ref();
        // By demand no clock is looked at.
        let skip = coordinator.and_then(|it| it.pacer.on_lacking(until, 0));
        if let Some(slots) = skip {
            self.decide(&Decision::Skip(slots), cx, outbox);
        }
    }

    /// Proposes what waits, all commands of a turn together.
    pub fn propose(&mut self, cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        while let Some(coordinator) = &mut self.coordinator {
            if coordinator.queue.is_empty() || self.log.may_propose().is_err() {
                return;
            }
            let (mut batch, mut bytes) = (Batch::<M>::new(), 0);
            while let Some((command, more)) = coordinator.queue.front()
                && batch.len() < COMMANDS_MAX
                && (batch.is_empty() || bytes + more <= BATCH_BYTES_MAX)
            {
                bytes += more;
                batch.push(command.clone().into());
                coordinator.queued.remove(&command.id);
                coordinator.queue.pop_front();
            }
            coordinator.bytes -= bytes;
            self.decide(&Decision::Commands(batch), cx, outbox);
        }
    }

    /// Puts a decision into the log, if it takes it, and behind commands the skip that keeps the
    /// ring of all ahead of the others.
    fn decide(
        &mut self,
        decision: &Decision<Batch<M>>,
        cx: &mut Context<'_, M>,
        outbox: &mut Outbox,
    ) {
        let (bytes, mut is_taken) = (decided::encode::<M>(decision), false);
        self.call(cx, outbox, |log, on| is_taken = log.propose(bytes, on).is_ok());
        let Some(coordinator) = self.coordinator.as_mut().filter(|_| is_taken) else { return };
        let skip = coordinator.pacer.on_taken(decision);
        if let Some(slots) = skip {
            self.decide(&Decision::Skip(slots), cx, outbox);
        }
    }

    /// The turn ends: what it brought is sent.
    pub fn turn_end(&mut self, cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        self.propose(cx, outbox);
        if core::mem::take(&mut self.is_touched) {
            self.call(cx, outbox, Replica::turn_end);
            if self.id == RingId::ALL {
                // The leaders of partitions execute what they hear here, and clients wait for it.
                self.call(cx, outbox, Replica::tell_commit);
            }
            self.is_touched = false;
        }
        self.tell_followers(cx);
    }

    /// The first position that is here is behind this.
    pub fn base(&self) -> Op {
        self.log.log().base().op
    }

    /// What is decided at a position; none if it is not here, or not decided as far as is known.
    pub fn decision(&self, op: Op, table: &dyn Table) -> Option<Decision<Batch<M>>> {
        let log = self.log.log();
        let is_early = mutant!("rings_tell_what_is_not_decided");
        let decided = if is_early { log.end() } else { self.log.applied() };
        if op <= self.base() || op > decided {
            return None;
        }
        let entry = log.get(op, table);
        if entry.new_members().is_some() {
            return Some(Decision::Nothing);
        }
        let decision = decided::read(entry.bytes(), self.id, self.count);
        Some(decision.expect("what is in the log could be read once"))
    }

    /// The log may let go of entries up to here.
    pub fn set_free(&mut self, free: Op) {
        self.slots.set_free(free);
    }

    /// A replica of a partition lacks what is behind a position.
    pub fn follow(&mut self, by: (NodeId, PartitionId), after: Op, now: Time) {
        if self.log.status() == Status::Learner {
            return;
        }
        let follower = Follower { sent: after, until: now + FOLLOWED, asks: true };
        self.followers.insert(by, follower);
    }

    /// Tells those that follow what is decided: who asks in any case, and the others if they were
    /// up to date. Who is far behind asks for each part of it.
    fn tell_followers(&mut self, cx: &mut Context<'_, M>) {
        let (applied, base, now) = (self.log.applied(), self.base(), cx.now);
        self.followers.retain(|_, it| it.until > now);
        let (ring, told) = (self.id, core::mem::replace(&mut self.told, applied));
        for ((node, partition), follower) in &mut self.followers {
            let is_new = follower.sent < applied && follower.sent >= told;
            if !core::mem::take(&mut follower.asks) && !is_new {
                continue;
            }
            let (to, partition) = (*node, *partition);
            if follower.sent < base {
                // What is trimmed rests on others.
                cx.send_early(to, Message::Trimmed { ring, partition, base });
                continue;
            }
            let first = follower.sent.next();
            let most = (VSR_ENTRIES_MAX, VSR_ENTRIES_BYTES_MAX);
            let entries = self.log.log().read(first, applied, most, cx.table);
            follower.sent = Op(follower.sent.0 + entries.len() as u64).max(follower.sent);
            let has_more = follower.sent < applied;
            let entries = entries.into_iter();
            let bytes = |it: vsr::Entry| it.new_members().is_none().then(|| it.bytes().clone());
            let entries = entries.map(bytes).collect();
            // What is committed rests on a majority, not on this node's disk.
            let message = Message::Decided { ring, partition, first, entries, has_more };
            cx.send_early(to, message);
        }
    }

    /// Takes a message of the log.
    pub fn on_message(
        &mut self,
        from: Incarnation,
        message: vsr::Message,
        cx: &mut Context<'_, M>,
        outbox: &mut Outbox,
    ) {
        self.call(cx, outbox, |log, on| log.on_message(from, message, on));
    }

    /// Time has passed.
    pub fn tick(&mut self, cx: &mut Context<'_, M>, outbox: &mut Outbox) {
        self.call(cx, outbox, Replica::tick);
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        self.log.check();
        invariant!(self.leads() == self.log.is_serving(), "who leads has commands in hand");
    }
}
