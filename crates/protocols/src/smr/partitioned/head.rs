//! The command at the head of the order: it is executed before any other is begun (Algorithm 1 of
//! the paper).
//!
//! The signal of a command is sent when it is at the head, that is, when all before it is executed.
//! The proof of the paper (§IV-D) rests on that. If it were sent when the command is learned, while
//! one before it waits yet, a later command could be answered before that one's other partitions
//! have begun, and there would be no order of them all.

use super::caches::{Caching, Version};
use super::command::{Addressed, Answered, Ordered, Place};
use super::exchange::{Message, Signal};
use super::execution::{Execution, Here, Lacks, Variables};
use super::machine::Machine;
use super::partitions::{Holder, PartitionId, Partitions};
use super::replica::{Effect, Replica};
use super::state::Kept;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
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
    pub lacks: Option<Bytes>,
    /// Copies that its last run went on with, as far as nobody has said yet that they are up to
    /// date.
    assumed: Variables<M>,
    /// The partitions that were asked for an object that they took to be here.
    asked: Partitions,
}

#[derive(Clone, Debug)]
pub(super) struct Outcome<M: Machine> {
    pub answer: Answered<M>,
    /// Objects of this partition.
    pub written: Variables<M>,
    /// Objects of others, which they write themselves.
    elsewhere: Variables<M>,
}

/// What a run of a command comes to.
pub(super) struct Run<M: Machine> {
    /// Or the object that it lacks.
    pub outcome: Result<Outcome<M>, Bytes>,
    /// What it has read of this partition.
    read: BTreeSet<Bytes>,
    /// Copies that it went on with.
    assumed: Variables<M>,
}

impl<M: Machine> Head<M> {
    pub fn new(place: Place, destinations: Partitions) -> Head<M> {
        let (assumed, asked) = (Variables::<M>::new(), Partitions::default());
        Head { place, destinations, outcome: None, lacks: None, assumed, asked }
    }
}

impl<M: Machine> Replica<M> {
    /// Executes the first in line; whether it is done with.
    pub(super) fn execute(&mut self, place: Option<Place>, ordered: &Ordered<M>) -> bool {
        match (place, ordered) {
            (None, Ordered::Command(command)) => {
                self.execute_alone(command);
                true
            }
            (Some(place), Ordered::Command(command)) => self.execute_shared(place, command),
            (Some(place), Ordered::Switch(switch)) => self.switch(place, switch),
            (None, Ordered::Switch(_)) => {
                unreachable!("the ring of one partition does not order what all have to do")
            }
        }
    }

    /// Executes a command of several partitions; whether it is done with.
    fn execute_shared(&mut self, place: Place, command: &Addressed<M>) -> bool {
        if !command.destinations.contains(self.here) {
            self.pass(place);
            return true;
        }
        if !self.is_current(command) {
            // All of its partitions find so, at the same place: none waits for another.
            self.retry(Some(place), command);
            self.end(place);
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
        if !self.is_current(command) {
            self.retry(None, command);
        } else if self.state.clients.is_new(command.id) {
            let run = self.run(command, Variables::<M>::new());
            let outcome = run.outcome;
            let outcome = outcome.unwrap_or_else(|lacks| unreachable!("{lacks:?} is elsewhere"));
            self.apply(None, command, outcome);
        } else {
            self.answer_again(command);
        }
    }

    /// Whether a command is where it is to be by the placement that it finds. If that is another
    /// than the one it is addressed by, what it touches may be where it was: else clients would
    /// begin again for each bucket that moves.
    pub(super) fn is_current(&self, command: &Addressed<M>) -> bool {
        let (placement, of) = (&self.state.placement, command.destinations);
        let is_version = command.version == placement.version();
        let has = || {
            let mut needed = M::destinations(&command.command, placement).iter();
            needed.all(|it| of.contains(it)) && !mutant!("smr_retries_for_all_moves")
        };
        let is_there = is_version || mutant!("smr_old_placement_executed") || has();
        is_there && of.iter().all(|partition| placement.partitions().contains(partition))
    }

    /// A command is not executed, as its client addressed it by another placement. It may have been
    /// before objects moved, and is answered as it was then.
    fn retry(&mut self, place: Option<Place>, command: &Addressed<M>) {
        if self.state.clients.is_new(command.id) {
            let answer = Answered::Retry(self.state.placement.version());
            let (written, elsewhere) = (Variables::<M>::new(), Variables::<M>::new());
            self.apply(place, command, Outcome { answer, written, elsewhere });
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
        let placement = &self.state.placement;
        let is_own = |key: &Bytes| placement.holder::<M>(key) == Holder::One(own);
        let early = early.into_iter().filter(is_own);
        let (variables, versions) = self.found(place, early);
        let signal = Signal { place, from: own, takes_part, variables, versions };
        self.state.outbox.begin(own, destinations, signal.clone());
        self.send_unknown(destinations, signal);
        self.head = Some(Head::new(place, destinations));
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
        self.caches.cached.validated += self.inbox.resolve(head.place, &self.caches.copies);
        let received = self.inbox.of(head.place).flat_map(|it| it.variables.clone());
        let received: Variables<M> = received.collect();
        self.validate(head, &received);
        let is_here = head.lacks.as_ref().is_none_or(|key| received.contains_key(key));
        if head.outcome.is_none() && is_here {
            let run = self.run(command, received);
            self.caches.cached.speculated += u64::from(!run.assumed.is_empty());
            self.send_more(head, run.read);
            head.assumed = run.assumed;
            match run.outcome {
                Ok(outcome) => (head.outcome, head.lacks) = (Some(outcome), None),
                Err(key) => head.lacks = Some(key),
            }
        }
        self.ask_for_copies(head);
        let waits = !mutant!("smr_signals_left_out") && self.lacks(head).next().is_some();
        if waits {
            return false;
        }
        let Some(outcome) = head.outcome.take() else { return false };
        self.keep_copies(head.place, &outcome);
        self.apply(Some(head.place), command, outcome);
        self.end(head.place);
        true
    }

    /// Some of the copies that a run went on with are up to date now. If one was stale the run has
    /// not been: what it has come to is thrown away.
    fn validate(&mut self, head: &mut Head<M>, received: &Variables<M>) {
        if mutant!("smr_cache_unvalidated") {
            return head.assumed.clear();
        }
        let is_stale = |(key, copy): (&Bytes, &Option<M::Object>)| {
            received.get(key).is_some_and(|object| object != copy)
        };
        if head.assumed.iter().any(is_stale) {
            head.assumed.clear();
            (head.outcome, head.lacks) = (None, None);
            self.caches.cached.rolled_back += 1;
        }
        head.assumed.retain(|key, _| !received.contains_key(key));
    }

    /// A partition takes an object to be here that is not: it is asked for it at once.
    fn ask_for_copies(&mut self, head: &mut Head<M>) {
        let needs = head.lacks.iter().chain(head.assumed.keys());
        let unsent = |signal: &&Signal<M>| {
            let mut keys = needs.clone();
            keys.any(|key| signal.versions.contains_key(key) && !signal.variables.contains_key(key))
        };
        let from = self.inbox.of(head.place).filter(unsent).map(|signal| signal.from);
        let from: Partitions = from.filter(|it| !head.asked.contains(*it)).collect();
        head.asked = head.asked.iter().chain(from.iter()).collect();
        for of in from.iter() {
            let needs = Message::Needs { replica: self.own, places: Vec::from([head.place]) };
            self.ask_for(Effect::Send(of, needs));
        }
    }

    /// What a command has read or written of other partitions is what they have then.
    fn keep_copies(&mut self, place: Place, outcome: &Outcome<M>) {
        if self.caches.is_off() {
            return;
        }
        let signals = self.inbox.of(place);
        let read = signals.flat_map(|it| {
            let version = |key: &Bytes| it.versions.get(key).copied();
            it.variables.iter().filter_map(move |(key, object)| Some((key, version(key)?, object)))
        });
        for (key, version, object) in read {
            self.caches.keep(key.clone(), version, object.clone());
        }
        for (key, object) in &outcome.elsewhere {
            self.caches.keep(key.clone(), Version::left(place), object.clone());
        }
    }

    /// Which partitions the head waits for: those that have not signalled, and the holders of the
    /// object that it lacks and of copies that nobody has validated.
    pub(super) fn lacks(&self, head: &Head<M>) -> impl Iterator<Item = PartitionId> {
        let (placement, place) = (&self.state.placement, head.place);
        let keys = head.lacks.iter().chain(head.assumed.keys());
        let holders = keys.map(|key| placement.holder::<M>(key)).collect::<Vec<_>>();
        let others = head.destinations.without(self.here);
        others.filter(move |it| holders.contains(&Holder::One(*it)) || !self.inbox.has(place, *it))
    }

    /// Runs a command on what is here.
    pub(super) fn run(&self, command: &Addressed<M>, received: Variables<M>) -> Run<M> {
        let (placement, destinations) = (&self.state.placement, command.destinations);
        let here = Here { partition: self.here, placement, destinations };
        let mut on = Execution::new(here, &self.state.objects, received);
        if self.caches.caching == Caching::Speculative {
            on.speculate(&self.caches.copies);
        }
        let output = M::execute(&command.command, &mut on);
        let left = on.left();
        let outcome = match (left.lacks, output) {
            (Some(Lacks::Object(key)), _) => Err(key),
            (Some(Lacks::Outside(of)), _) => {
                let (written, elsewhere) = (Variables::<M>::new(), Variables::<M>::new());
                Ok(Outcome { answer: Answered::Outside(of), written, elsewhere })
            }
            (None, Ok(output)) => {
                // What it has written of others they write themselves.
                let is_own = |(key, _): &(Bytes, _)| placement.holder::<M>(key).has(self.here);
                let (written, elsewhere) = left.written.into_iter().partition(is_own);
                Ok(Outcome { answer: Answered::Done(output), written, elsewhere })
            }
            (None, Err(_)) => unreachable!("a machine cannot make what it returns here"),
        };
        Run { outcome, read: left.read, assumed: left.assumed }
    }

    /// The others of a command get what it has read here, each object once.
    fn send_more(&mut self, head: &Head<M>, read: BTreeSet<Bytes>) {
        let Some(sent) = self.state.outbox.get(head.place) else { return };
        let new = read.into_iter().filter(|key| !sent.variables.contains_key(key));
        let (place, from, takes_part) = (head.place, self.here, true);
        let (variables, versions) = self.found(place, new);
        if !variables.is_empty() {
            let signal = Signal { place, from, takes_part, variables, versions };
            self.state.outbox.add(&signal);
            self.send_unknown(head.destinations, signal);
        }
    }

    /// Objects of this partition, as the command at the head finds them, and their versions.
    fn found(
        &self,
        place: Place,
        keys: impl Iterator<Item = Bytes>,
    ) -> (Variables<M>, BTreeMap<Bytes, Version>) {
        let found = keys.map(|key| (key.clone(), self.state.objects.get(&key).cloned()));
        let found: Variables<M> = found.collect();
        let of = found.keys().filter(|_| !self.caches.is_off());
        let versions = of.map(|key| (key.clone(), self.caches.version(key, place))).collect();
        (found, versions)
    }

    /// A command takes effect.
    fn apply(&mut self, place: Option<Place>, command: &Addressed<M>, outcome: Outcome<M>) {
        for (key, object) in outcome.written {
            match place.filter(|_| !self.caches.is_off()) {
                // All of its partitions have executed it, and know what it left.
                Some(place) => {
                    self.caches.share(&key, Version::left(place), command.destinations);
                }
                None => self.caches.unshare(&key),
            }
            self.digest.replace::<M>(&key, self.state.objects.get(&key), object.as_ref());
            self.changed.insert(key.clone());
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
    pub(super) fn end(&mut self, place: Place) {
        let used = self.inbox.take(place);
        if !used.is_empty() && !mutant!("smr_keeps_nothing") {
            self.ask_for(Effect::Keep(used.into_iter().map(Kept::Signal).collect()));
        }
        self.state.outbox.executed(place);
        self.pass(place);
    }

    fn pass(&mut self, place: Place) {
        invariant!(Some(place) > self.state.passed, "places are passed in their order");
        self.state.passed = Some(place);
    }
}
