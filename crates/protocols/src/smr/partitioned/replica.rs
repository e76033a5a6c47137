//! One replica of one partition: what it is told, and what it asks for.

use super::command::{Addressed, Answered, Batch, CommandId, Place};
use super::exchange::{Inbox, Message, Signal};
use super::execution::Variables;
use super::head::Head;
use super::machine::Machine;
use super::outbox::Released;
use super::partitions::{Holder, Layout, PartitionId, Partitions};
use super::state::{Queued, Snapshot, State};
use crate::multicast::{Decision, Lacking, Merge, RingId, Slot};
use crate::vsr::Op;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant};

/// What a replica asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect<M: Machine> {
    /// A message to all replicas of another partition.
    Send(PartitionId, Message<M>),
    /// A message to one replica of another partition.
    Tell(NodeId, Message<M>),
    /// A client's command is answered. Each replica of each partition of the command says so; the
    /// client needs to hear it once.
    Answer(CommandId, Answered<M>),
    /// Signals that a command was executed with. They are stored, and handed to
    /// [`Replica::resume`], until a snapshot of later is: the partitions they are of forget them.
    /// No [`Message::Released`] leaves before all that was to be kept before it is durable.
    Keep(Vec<Signal<M>>),
}

/// A replica of a partition.
#[derive(Clone, Debug)]
pub struct Replica<M: Machine> {
    pub(super) here: PartitionId,
    node: NodeId,
    pub(super) layout: Layout,
    merge: Merge<Batch<M>>,
    /// What is left of the last decision that was delivered; the first is at the head.
    rest: VecDeque<Queued<M>>,
    /// How far the first one is, if it is begun and is of several partitions.
    pub(super) head: Option<Head<M>>,
    pub(super) state: State<M>,
    pub(super) inbox: Inbox<M>,
    released: Released,
    /// Whether it sends what the partition has to signal.
    is_designated: bool,
    effects: Vec<Effect<M>>,
}

impl<M: Machine> Replica<M> {
    /// Goes on behind a snapshot, with the signals that were kept since. Nothing is begun before
    /// something is learned.
    #[must_use]
    pub fn resume(
        (here, node): (PartitionId, NodeId),
        layout: Layout,
        snapshot: Snapshot<M>,
        kept: impl IntoIterator<Item = Signal<M>>,
    ) -> Replica<M> {
        invariant!(here.0 < layout.count(), "its partition is there");
        let mut replica = Replica {
            here,
            node,
            layout,
            merge: Merge::resume(snapshot.cursor),
            rest: snapshot.rest,
            head: None,
            state: snapshot.state,
            inbox: Inbox::new(),
            released: Released::new(),
            is_designated: false,
            effects: Vec::new(),
        };
        for signal in kept {
            if Some(signal.place) > replica.state.passed {
                replica.inbox.insert(signal, true);
            }
        }
        replica
    }

    /// A position of a ring's log is decided. Whether it is the next one of it; others are not
    /// taken.
    pub fn learn(&mut self, ring: RingId, op: Op, decision: Decision<Batch<M>>) -> bool {
        if mutant!("smr_signal_when_queued") {
            self.signal_queued(ring, &decision);
        }
        let is_taken = self.merge.learn(ring, op, decision);
        self.advance();
        is_taken
    }

    /// What coordinators of rings are to be asked when skips are by demand: now, and from time to
    /// time.
    pub fn questions(&self) -> impl Iterator<Item = Lacking> {
        self.merge.questions()
    }

    /// Whether this replica sends what its partition signals. Any number of them may: what comes
    /// twice is the same. One that begins sends what the command at the head has to send.
    pub fn designate(&mut self, is_designated: bool) {
        let begins = is_designated && !self.is_designated;
        self.is_designated = is_designated;
        let head =
            self.head.as_ref().filter(|_| begins).map(|head| (head.place, head.destinations));
        if let Some((place, destinations)) = head
            && let Some(signal) = self.state.outbox.get(place).cloned()
        {
            self.send(destinations, signal);
        }
    }

    /// The replicas of partitions are others now: who has left holds nothing up any more. Who comes
    /// goes on from a snapshot of another replica that was made after all heard of it.
    pub fn set_layout(&mut self, layout: Layout) {
        invariant!(layout.count() == self.layout.count(), "partitions do not come or go");
        self.layout = layout;
        let is_member = |of, node| self.layout.members(of).any(|member| member == node);
        self.released.retain(|(of, node), _| is_member(*of, *node));
        self.state.outbox.release(self.here, &self.layout, &self.released);
        self.advance();
    }

    /// A replica of another partition says something.
    pub fn on_message(&mut self, message: Message<M>) {
        match message {
            Message::Signal(signal) => self.on_signal(signal),
            Message::Needs { place, node } => self.on_needs(place, node),
            Message::Released { partition, node, place } => {
                self.on_released((partition, node), place);
            }
        }
    }

    /// Some time has passed: what is waited for is asked for again, of all replicas that have it,
    /// and the others hear what is not needed any more. The paper's senders are suspected; here
    /// whoever waits asks, which needs nobody's suspicion.
    pub fn on_period(&mut self) {
        // After a restart, or when there was no room, nothing else may begin what is the next.
        self.advance();
        if let Some(head) = &self.head {
            let needs = Message::Needs { place: head.place, node: self.node };
            let asked: Vec<PartitionId> = self.lacks(head).collect();
            self.effects.extend(asked.into_iter().map(|of| Effect::Send(of, needs.clone())));
        }
        let Some(place) = self.state.passed else { return };
        let (partition, node) = (self.here, self.node);
        for other in (0..self.layout.count()).map(PartitionId).filter(|it| *it != partition) {
            let released = Message::Released { partition, node, place };
            self.effects.push(Effect::Send(other, released));
        }
    }

    /// What it has asked for since this was last called, in this order.
    pub fn take_effects(&mut self) -> Vec<Effect<M>> {
        mem::take(&mut self.effects)
    }

    /// What is to be stored, or another replica of the partition may go on from.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<M> {
        let (cursor, rest) = (self.merge.cursor(), self.rest.clone());
        Snapshot { cursor, rest, state: self.state.clone() }
    }

    /// The objects of its partition as of the last command that was executed.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<Bytes, M::Object> {
        &self.state.objects
    }

    /// Of how many commands it keeps what others may ask for.
    #[must_use]
    pub fn outbox_count(&self) -> usize {
        self.state.outbox.count()
    }

    fn on_signal(&mut self, signal: Signal<M>) {
        let head = self.head.as_ref().map(|head| head.place);
        invariant!(head.is_none() || head > self.state.passed, "the head is not executed yet");
        let count = self.layout.count();
        let is_holder = |key: &Bytes| M::holder(key, count) == Holder::One(signal.from);
        let is_sound = signal.from.0 < count && signal.variables.keys().all(is_holder);
        if !is_sound || signal.from == self.here || Some(signal.place) <= self.state.passed {
            return;
        }
        let is_next = head == Some(signal.place);
        self.inbox.insert(signal, is_next);
        if is_next {
            self.advance();
        }
        invariant!(self.head.is_none() || !self.rest.is_empty(), "the head is the first in line");
    }

    fn on_needs(&mut self, place: Place, node: NodeId) {
        let known = self.state.outbox.get(place);
        invariant!(known.is_none_or(|it| it.from == self.here), "it signals for its partition");
        invariant!(known.is_none_or(|it| it.place == place), "signals are under their places");
        // One that is not there comes when this replica comes to the command.
        if let Some(mut signal) = known.cloned() {
            if mutant!("smr_sends_what_is_now") {
                let now = |key: &Bytes| self.state.objects.get(key).cloned();
                signal.variables.iter_mut().for_each(|(key, object)| *object = now(key));
            }
            self.effects.push(Effect::Tell(node, Message::Signal(signal)));
        }
    }

    fn on_released(&mut self, (partition, node): (PartitionId, NodeId), place: Place) {
        let count = self.state.outbox.count();
        let up_to = self.released.entry((partition, node)).or_insert(place);
        *up_to = place.max(*up_to);
        invariant!(*up_to >= place, "what is released once stays released");
        if !self.layout.members(partition).any(|member| member == node) {
            self.released.remove(&(partition, node));
            return;
        }
        self.state.outbox.release(self.here, &self.layout, &self.released);
        invariant!(self.state.outbox.count() <= count, "to release adds nothing");
        self.advance();
    }

    /// Executes commands as long as none has to wait.
    fn advance(&mut self) {
        loop {
            while let Some((place, command)) = self.rest.pop_front() {
                if !self.execute(place, &command) {
                    self.rest.push_front((place, command));
                    return;
                }
            }
            let Some(delivered) = self.merge.deliver() else { return };
            let is_all = delivered.ring == RingId::ALL;
            let places = places(delivered.slot, delivered.commands);
            self.rest = places.map(|(place, it)| (is_all.then_some(place), it)).collect();
        }
    }

    /// Sends a signal to the other partitions of a command, if it is for this replica to do.
    pub(super) fn send(&mut self, destinations: Partitions, signal: Signal<M>) {
        if self.is_designated {
            let others = destinations.without(self.here);
            let sends = others.map(|to| Effect::Send(to, Message::Signal(signal.clone())));
            self.effects.extend(sends);
        }
    }

    pub(super) fn ask_for(&mut self, effect: Effect<M>) {
        self.effects.push(effect);
    }

    /// Only a planted bug signals commands that are not at the head.
    fn signal_queued(&mut self, ring: RingId, decision: &Decision<Batch<M>>) {
        let Some(reached) = self.merge.reached(ring) else { return };
        let Decision::Commands(batch) = decision else { return };
        for (place, command) in places(reached.next, batch.clone()) {
            let (from, takes_part, variables) = (self.here, true, Variables::<M>::new());
            if command.destinations.contains(from) {
                let signal = Signal { place, from, takes_part, variables };
                self.send(command.destinations, signal);
            }
        }
    }
}

/// The commands of a decision, with their places.
fn places<M: Machine>(slot: Slot, batch: Batch<M>) -> impl Iterator<Item = (Place, Addressed<M>)> {
    let place = move |index| Place { slot, index };
    (0..).zip(batch).map(move |(index, it)| (place(index), it))
}
