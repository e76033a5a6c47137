//! The command at the head of the order: it is executed before any other is begun (Algorithm 1 of
//! the paper).
//!
//! The signal of a command is sent when it is at the head, that is, when all before it is executed.
//! The proof of the paper (§IV-D) rests on that. If it were sent when the command is learned, while
//! one before it waits yet, a later command could be answered before that one's other partitions
//! have begun, and there would be no order of them all.

use super::command::{Addressed, Answered, Place};
use super::exchange::Signal;
use super::execution::{Execution, Here, Lacks, Variables};
use super::machine::Machine;
use super::partitions::{Holder, PartitionId, Partitions};
use super::replica::{Effect, Replica};
use alloc::collections::BTreeSet;
use bytes::Bytes;
use quorate_kernel::{invariant, mutant};

/// How far the command at the head is, if it is of several partitions.
#[derive(Clone, Debug)]
pub(super) struct Head<M: Machine> {
    pub place: Place,
    pub destinations: Partitions,
    /// What it comes to; none before all that it reads is here.
    outcome: Option<Outcome<M>>,
    /// The object that it waits for.
    lacks: Option<Bytes>,
}

#[derive(Clone, Debug)]
struct Outcome<M: Machine> {
    answer: Answered<M>,
    /// Objects of this partition.
    written: Variables<M>,
}

impl<M: Machine> Replica<M> {
    /// Executes the first command; whether it is done with.
    pub(super) fn execute(&mut self, place: Option<Place>, command: &Addressed<M>) -> bool {
        let Some(place) = place else {
            self.execute_alone(command);
            return true;
        };
        if !command.destinations.contains(self.here) {
            self.pass(place);
            return true;
        }
        if self.head.is_none() && !self.begin(place, command) {
            return false;
        }
        let Some(mut head) = self.head.take() else { return false };
        invariant!(head.place == place, "the head is the first in line");
        let is_done = self.goes_on(&mut head, command);
        if !is_done {
            self.head = Some(head);
        }
        is_done
    }

    /// A command of this partition alone waits for nothing.
    fn execute_alone(&mut self, command: &Addressed<M>) {
        invariant!(command.destinations.contains(self.here), "its ring has no others' commands");
        if self.state.clients.is_new(command.id) {
            let (outcome, _) = self.run(command, Variables::<M>::new());
            let outcome = outcome.unwrap_or_else(|lacks| unreachable!("{lacks:?} is elsewhere"));
            self.apply(command, outcome);
        } else {
            self.answer_again(command);
        }
    }

    /// A command comes to the head: its partitions hear of it. Not if nothing more may be kept for
    /// them now.
    fn begin(&mut self, place: Place, command: &Addressed<M>) -> bool {
        if !self.state.outbox.has_room() {
            return false;
        }
        let (destinations, own) = (command.destinations, self.here);
        let takes_part = self.state.clients.is_new(command.id);
        let early = if takes_part { M::early(&command.command) } else { Default::default() };
        let count = self.layout.count();
        let early = early.into_iter().filter(|key| M::holder(key, count) == Holder::One(own));
        let signal = Signal { place, from: own, takes_part, variables: self.found(early) };
        self.state.outbox.begin(own, destinations, signal.clone());
        self.send(destinations, signal);
        self.head = Some(Head { place, destinations, outcome: None, lacks: None });
        true
    }

    /// Whether the command at the head is done with.
    fn goes_on(&mut self, head: &mut Head<M>, command: &Addressed<M>) -> bool {
        let own = self.state.outbox.get(head.place);
        let takes_part = own.is_none_or(|signal| signal.takes_part);
        let is_refused = self.inbox.of(head.place).any(|signal| !signal.takes_part);
        if !takes_part || (is_refused && !mutant!("smr_refusal_ignored")) {
            // It is executed by none, and nobody is told more than was told before.
            self.answer_again(command);
            self.end(head.place);
            return true;
        }
        if head.outcome.is_none() {
            let received = self.inbox.of(head.place).flat_map(|it| it.variables.clone());
            let received: Variables<M> = received.collect();
            let may_run = head.lacks.as_ref().is_none_or(|key| received.contains_key(key));
            if may_run {
                let (outcome, read) = self.run(command, received);
                self.send_more(head, read);
                match outcome {
                    Ok(outcome) => (head.outcome, head.lacks) = (Some(outcome), None),
                    Err(key) => head.lacks = Some(key),
                }
            }
        }
        let waits = !mutant!("smr_signals_left_out") && self.lacks(head).next().is_some();
        if waits {
            return false;
        }
        let Some(outcome) = head.outcome.take() else { return false };
        self.apply(command, outcome);
        self.end(head.place);
        true
    }

    /// Which partitions the head waits for: those that have not signalled, and the holder of the
    /// object that it lacks.
    pub(super) fn lacks(&self, head: &Head<M>) -> impl Iterator<Item = PartitionId> {
        let (count, place) = (self.layout.count(), head.place);
        let holder = head.lacks.as_ref().map(|key| M::holder(key, count));
        let others = head.destinations.without(self.here);
        others.filter(move |it| Some(Holder::One(*it)) == holder || !self.inbox.has(place, *it))
    }

    /// Runs a command on what is here. What it comes to, or the object that it lacks; and what it
    /// has read of this partition.
    fn run(
        &self,
        command: &Addressed<M>,
        received: Variables<M>,
    ) -> (Result<Outcome<M>, Bytes>, BTreeSet<Bytes>) {
        let (count, destinations) = (self.layout.count(), command.destinations);
        let here = Here { partition: self.here, count, destinations };
        let mut on = Execution::new(here, &self.state.objects, received);
        let output = M::execute(&command.command, &mut on);
        let left = on.left();
        let outcome = match (left.lacks, output) {
            (Some(Lacks::Object(key)), _) => Err(key),
            (Some(Lacks::Outside(of)), _) => {
                let written = Variables::<M>::new();
                Ok(Outcome { answer: Answered::Outside(of), written })
            }
            (None, Ok(output)) => {
                let mut written = left.written;
                // What it has written of others they write themselves.
                written.retain(|key, _| M::holder(key, count).has(self.here));
                Ok(Outcome { answer: Answered::Done(output), written })
            }
            (None, Err(_)) => unreachable!("a machine cannot make what it returns here"),
        };
        (outcome, left.read)
    }

    /// The others of a command get what it has read here, each object once.
    fn send_more(&mut self, head: &Head<M>, read: BTreeSet<Bytes>) {
        let Some(sent) = self.state.outbox.get(head.place) else { return };
        let new = read.into_iter().filter(|key| !sent.variables.contains_key(key));
        let variables = self.found(new);
        if !variables.is_empty() {
            let signal = Signal { place: head.place, from: self.here, takes_part: true, variables };
            self.state.outbox.add(&signal);
            self.send(head.destinations, signal);
        }
    }

    /// Objects of this partition, as the command at the head finds them.
    fn found(&self, keys: impl Iterator<Item = Bytes>) -> Variables<M> {
        keys.map(|key| (key.clone(), self.state.objects.get(&key).cloned())).collect()
    }

    /// A command takes effect.
    fn apply(&mut self, command: &Addressed<M>, outcome: Outcome<M>) {
        for (key, object) in outcome.written {
            self.digest.replace::<M>(&key, self.state.objects.get(&key), object.as_ref());
            match object {
                Some(object) => _ = self.state.objects.insert(key, object),
                None => _ = self.state.objects.remove(&key),
            }
        }
        self.state.clients.note(command.id, command.acked, outcome.answer.clone());
        let executed = &mut self.state.executed;
        let differs = self.digest.execute::<M>(executed, command.id, &outcome.answer);
        self.ask_for(Effect::Answer(command.id, outcome.answer));
        if let Some(differs) = differs {
            self.halt(differs);
        }
    }

    /// A command that was executed comes again: the answer may not have reached its client.
    fn answer_again(&mut self, command: &Addressed<M>) {
        self.state.clients.acknowledge(command.id, command.acked);
        if let Some(answer) = self.state.clients.answer(command.id).cloned() {
            self.ask_for(Effect::Answer(command.id, answer));
        }
    }

    /// A command of several partitions is done with.
    fn end(&mut self, place: Place) {
        let used = self.inbox.take(place);
        if !used.is_empty() && !mutant!("smr_keeps_nothing") {
            self.ask_for(Effect::Keep(used));
        }
        self.state.outbox.executed(place);
        self.pass(place);
    }

    fn pass(&mut self, place: Place) {
        invariant!(Some(place) > self.state.passed, "places are passed in their order");
        self.state.passed = Some(place);
    }
}
