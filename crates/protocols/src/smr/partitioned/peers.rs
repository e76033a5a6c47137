//! What replicas of other partitions say, and what they are told from time to time.

use super::command::Place;
use super::digest::{COMPARED_EVERY, StateHash};
use super::exchange::{ANSWER_BYTES_MAX, Message, NEEDS_MAX, Signal, bytes_of_signal};
use super::machine::Machine;
use super::partitions::{Holder, PartitionId, Partitions, ReplicaId};
use super::replica::{Effect, Replica};
use super::state::Kept;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::{invariant, mutant};

/// The most periods that pass between two questions.
const PAUSE_MAX: u32 = 15;

/// When a replica asks for what it waits for: less and less often while nothing comes of it, as
/// what is asked for may be long on its way, and each question brings it once more.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    /// What it has waited for.
    waited: Waited,
    /// How many periods are left until the next question, and will be behind that.
    left: u32,
    pause: u32,
}

/// What a replica waits for: if any of it is another something has come.
#[derive(Clone, Debug, Default, PartialEq)]
struct Waited {
    /// What it waits for is behind this place.
    passed: Option<Place>,
    /// The command at the head, the object that it lacks, and the partitions that have something
    /// for it yet.
    head: Option<(Place, Option<Bytes>, Partitions)>,
}

impl Asks {
    /// Whether it asks in this period.
    fn are_due(&mut self, mut waited: Waited) -> bool {
        if mutant!("smr_asks_late_for_what_is_lacked_next") {
            waited.head = None;
        }
        if waited != self.waited {
            *self = Asks { waited, ..Asks::default() };
        }
        if self.left > 0 && !mutant!("smr_asks_each_period") {
            self.left -= 1;
            return false;
        }
        self.left = self.pause;
        self.pause = (2 * self.pause + 1).min(PAUSE_MAX);
        true
    }
}

impl<M: Machine> Replica<M> {
    /// A replica of another partition says something.
    pub fn on_message(&mut self, message: Message<M>) {
        if self.is_halted() {
            return;
        }
        match message {
            Message::Signal(signal) => self.on_signal(signal),
            Message::Needs { replica, places } => self.on_needs(replica, places),
            Message::Gone { from, place } => self.on_gone(from, place),
            Message::Hash { replica, hash } => self.on_hash(replica, hash),
            Message::Released { replica, place } => self.on_released(replica, place),
        }
    }

    /// Some time has passed: what is waited for is asked for again, of all replicas that have it,
    /// and the others hear what is not needed any more. The paper's senders are suspected; here
    /// whoever waits asks, which needs nobody's suspicion.
    pub fn on_period(&mut self) {
        if self.is_halted() {
            return;
        }
        // After a restart, or when there was no room, nothing else may begin what is the next.
        self.advance();
        let needs = self.needs();
        if needs.is_empty() {
            self.asks = Asks::default();
        } else if self.asks.are_due(self.waited()) {
            for (of, places) in needs {
                let needs = Message::Needs { replica: self.own, places };
                self.ask_for(Effect::Send(of, needs));
            }
        }
        if let Some(hash) = self.digest.last() {
            self.ask_for(Effect::Send(self.here, Message::Hash { replica: self.own, hash }));
        }
        let (here, replica) = (self.here, self.own);
        for other in (0..self.layout.count()).map(PartitionId).filter(|it| *it != here) {
            let message = match self.state.passed {
                Some(place) => Message::Released { replica, place },
                None if mutant!("smr_begins_in_silence") => continue,
                // It has nothing: what an earlier start released does not count for this one.
                None => Message::Needs { replica, places: Vec::new() },
            };
            self.ask_for(Effect::Send(other, message));
        }
    }

    fn waited(&self) -> Waited {
        let head = self.head.as_ref();
        let head = head.map(|it| (it.place, it.lacks.clone(), self.lacks(it).collect()));
        Waited { passed: self.state.passed, head }
    }

    /// What is waited for at the head, and will be behind it, by partition.
    fn needs(&self) -> BTreeMap<PartitionId, Vec<Place>> {
        let mut needs: BTreeMap<PartitionId, Vec<Place>> = BTreeMap::new();
        if let Some(head) = &self.head {
            needs.extend(self.lacks(head).map(|of| (of, Vec::from([head.place]))));
        }
        let at = self.head.as_ref().map(|head| head.place);
        let behind = self.queued().filter(|(place, _)| Some(*place) > at);
        for (place, destinations) in behind.take(NEEDS_MAX) {
            if mutant!("smr_asks_for_the_head_alone") {
                break;
            }
            for of in destinations.without(self.here).filter(|of| !self.inbox.has(place, *of)) {
                let of = needs.entry(of).or_default();
                of.extend((of.len() < NEEDS_MAX).then_some(place));
            }
        }
        needs
    }

    fn on_signal(&mut self, signal: Signal<M>) {
        let head = self.head.as_ref().map(|head| head.place);
        invariant!(head.is_none() || head > self.state.passed, "the head is not executed yet");
        let count = self.layout.count();
        // One of behind a switch may be taken for unsound; it is asked for when it is the next.
        let placement = &self.state.placement;
        let is_holder = |key: &Bytes| match placement.holder::<M>(key) {
            Holder::One(partition) => partition == signal.from,
            // A partition that had nothing gets it with a switch.
            Holder::All => true,
        };
        let mut keys = signal.variables.keys().chain(signal.versions.keys());
        let is_sound = signal.from.0 < count && keys.all(is_holder);
        if !is_sound || signal.from == self.here || Some(signal.place) <= self.state.passed {
            return;
        }
        let is_next = head == Some(signal.place);
        self.inbox.insert(signal, is_next);
        if is_next {
            self.advance();
        }
        let first = self.first();
        invariant!(self.head.as_ref().is_none_or(|it| Some(it.place) == first), "it is the first");
    }

    fn on_needs(&mut self, replica: ReplicaId, places: Vec<Place>) {
        let node = replica.incarnation.node;
        let is_member = self.layout.members(replica.partition).any(|member| member == node);
        // One that is to be a member is answered as well, and one of an earlier start is not there.
        if is_member && !self.hear(replica, None) {
            return;
        }
        let mut bytes = 0;
        for place in places.into_iter().take(NEEDS_MAX) {
            let known = self.state.outbox.get(place);
            invariant!(known.is_none_or(|it| it.from == self.here), "it signals for its partition");
            invariant!(known.is_none_or(|it| it.place == place), "signals are under their places");
            let Some(mut signal) = known.cloned() else {
                // One that it has not come to comes when it does.
                if Some(place) <= self.state.passed {
                    let gone = Message::Gone { from: self.here, place };
                    self.ask_for(Effect::Tell(replica, gone));
                }
                continue;
            };
            if mutant!("smr_sends_what_is_now") {
                let now = |key: &Bytes| self.state.objects.get(key).cloned();
                signal.variables.iter_mut().for_each(|(key, object)| *object = now(key));
            }
            let more = bytes_of_signal(&signal);
            if bytes > 0 && bytes + more > ANSWER_BYTES_MAX {
                return;
            }
            bytes += more;
            self.ask_for(Effect::Tell(replica, Message::Signal(signal)));
        }
    }

    fn on_gone(&mut self, from: PartitionId, place: Place) {
        let Some(head) = self.head.as_ref().filter(|it| it.place == place) else { return };
        invariant!(Some(place) > self.state.passed, "the head is not executed yet");
        invariant!(head.destinations.contains(self.here), "it executes what is for it");
        if self.lacks(head).any(|of| of == from) {
            self.ask_for(Effect::Lost(place));
        }
    }

    fn on_hash(&mut self, replica: ReplicaId, hash: StateHash) {
        let node = replica.incarnation.node;
        let is_other = replica.partition == self.here && node != self.own.incarnation.node;
        let is_member = self.layout.members(self.here).any(|member| member == node);
        if !is_other || !is_member || !hash.executed.is_multiple_of(COMPARED_EVERY) {
            return;
        }
        let last = self.digest.last().map_or(0, |it| it.executed);
        invariant!(last <= self.state.executed.count, "a hash is of what was executed");
        if let Some(differs) = self.digest.compare(node, hash) {
            self.halt(differs);
        }
        let own = self.state.executed.count / COMPARED_EVERY;
        invariant!(last <= own * COMPARED_EVERY, "and of each thousand commands");
    }

    fn on_released(&mut self, replica: ReplicaId, place: Place) {
        let (of, node) = (replica.partition, replica.incarnation.node);
        let is_member = self.layout.members(of).any(|member| member == node);
        if of == self.here || !is_member || !self.hear(replica, Some(place)) {
            return;
        }
        let count = self.state.outbox.count();
        self.release(of);
        invariant!(self.state.outbox.count() <= count, "to release adds nothing");
        let floor = self.state.released.floor(of, &self.layout);
        invariant!(floor <= self.state.released.of(replica), "what all have released each has");
        self.advance();
    }

    /// A replica is there, and has released this. Whether it is not of an earlier start; one that
    /// was not known is kept in mind.
    fn hear(&mut self, replica: ReplicaId, place: Option<Place>) -> bool {
        let known = self.state.released.start(replica);
        let is_current = self.state.released.note(replica, place);
        let is_new = is_current && known != Some(replica.incarnation.start);
        if is_new && !mutant!("smr_starts_go_with_memory") {
            self.ask_for(Effect::Keep(Vec::from([Kept::Start(replica)])));
        }
        is_current
    }

    /// Drops what the replicas of a partition do not need any more.
    pub(super) fn release(&mut self, of: PartitionId) {
        if let Some(floor) = self.state.released.floor(of, &self.layout) {
            self.state.outbox.release(of, floor);
        }
    }
}
