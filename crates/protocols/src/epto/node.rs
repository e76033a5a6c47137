//! One node: what it does with what it hears, and with each round.

use super::action::{Action, BroadcastError, Counters};
use super::clock::Clock;
use super::event::{Digest, Event};
use super::key::{EventKey, LogicalTime, Sequence};
use super::message::Message;
use super::order::{Fate, Order, Rules, Taken};
use super::parameters::Parameters;
use super::payloads::Payloads;
use super::place::Place;
use super::relay::NextBall;
use super::sources::Sources;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::EPTO_PAYLOAD_BYTES_MAX;
use quorate_kernel::{invariant, mutant, probe};

/// The state of one node in one start. Nothing of it is stored: a restart is another source, which
/// takes over a state as a new node does.
#[derive(Clone, Debug)]
pub struct Epto {
    pub(super) me: Incarnation,
    pub(super) parameters: Parameters,
    pub(super) clock: Clock,
    /// How many events this node has broadcast.
    pub(super) sequence: Sequence,
    /// How many of them have been sent, or delivered here.
    pub(super) sent: Sequence,
    /// How many rounds it has run.
    pub(super) round: u64,
    /// How many peers it chose among in the last round.
    pub(super) peers: usize,
    pub(super) place: Place,
    /// The round of the first ball since it lost its place; none if none came before it took over
    /// a state.
    pub(super) heard_at: Option<u64>,
    /// The highest TTL of an event that was heard of.
    pub(super) ttl_heard: u16,
    /// Whether balls came since then that it could not judge, as it had no clock.
    pub(super) is_deaf: bool,
    /// The lowest time of the balls that it has refused since it listens: they count if its clock
    /// comes so far that it would believe them.
    pub(super) refused: Option<LogicalTime>,
    pub(super) next_ball: NextBall,
    pub(super) order: Order,
    pub(super) sources: Sources,
    pub(super) payloads: Payloads,
    pub(super) counters: Counters,
}

impl Epto {
    /// A node of the first ones, before the first event is broadcast anywhere.
    #[must_use]
    pub fn found(me: Incarnation, parameters: Parameters) -> Epto {
        let (clock, sources) = (Clock::of_founder(), Sources::of_founder());
        Epto { clock, sources, place: Place::Held, ..Epto::join(me, parameters) }
    }

    /// Any other node, and any that was started again: it relays at once, and has a place in the
    /// order when it has taken over a state ([`Epto::resume_at`]).
    #[must_use]
    pub fn join(me: Incarnation, parameters: Parameters) -> Epto {
        Epto {
            me,
            parameters,
            clock: Clock::default(),
            sequence: Sequence(0),
            sent: Sequence(0),
            round: 0,
            peers: usize::MAX,
            place: Place::Lost(0),
            heard_at: None,
            ttl_heard: 0,
            is_deaf: false,
            refused: None,
            next_ball: NextBall::default(),
            order: Order::default(),
            sources: Sources::default(),
            payloads: Payloads::default(),
            counters: Counters::default(),
        }
    }

    /// Broadcasts from now on, and relays, by these: the cluster has grown, or loses more. Events
    /// that are on their way keep their TTL, and what is held already is more than bounds that are
    /// lower.
    pub fn set_parameters(&mut self, parameters: Parameters) {
        let waiting = self.order.len().max(self.next_ball.len());
        self.parameters = Parameters {
            events_max: parameters.events_max.max(waiting),
            held_bytes_max: parameters.held_bytes_max.max(self.payloads.bytes()),
            ..parameters
        };
        invariant!(self.is_bounded(), "what waits is bounded");
    }

    /// What it broadcasts and relays by.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Whether it may broadcast: it has a place, and its clock has followed the others' for a TTL.
    #[must_use]
    pub fn may_broadcast(&self) -> bool {
        if mutant!("epto_restart_broadcasts") {
            return true;
        }
        let ttl = u64::from(self.parameters.ttl);
        self.has_place() && self.heard_at.is_none_or(|heard| self.round - heard >= ttl)
    }

    /// What the clock shows: the time of the latest event that this node has heard of.
    #[must_use]
    pub fn clock(&self) -> LogicalTime {
        self.clock.now()
    }

    /// A client has seen an event of this time: what it asks next comes after that. A time that is
    /// far ahead of what peers have shown is not taken: none of them would believe it. Returns
    /// whether the next event comes after it.
    pub fn on_seen(&mut self, time: LogicalTime) -> bool {
        self.clock.see(time);
        time <= self.clock.now()
    }

    /// Whether this node has a clock.
    #[must_use]
    pub fn has_clock(&self) -> bool {
        self.clock.is_set()
    }

    /// Whether a state that has come so far may be taken over.
    #[must_use]
    pub fn believes(&self, time: LogicalTime) -> bool {
        self.clock.believes(time)
    }

    /// One other node says that it has come so far. Of what is too far nothing is believed.
    pub fn on_heard_of(&mut self, time: LogicalTime) {
        self.clock.hear_of(time);
    }

    /// A node that others are to follow says that its clock shows this. It counts as a ball does
    /// that would say so: if several say about the same, this clock goes on from there. For nodes
    /// without a place: those with one lose it by balls alone.
    pub fn on_told(&mut self, from: NodeId, time: LogicalTime) {
        invariant!(!self.has_place(), "who has a place is told by balls");
        let before = self.clock.now();
        self.clock.judge(from, time, self.round, self.peers);
        invariant!(self.clock.now() >= before, "a clock does not go back");
    }

    /// Broadcasts an event with this payload. It leaves with the next round, and is delivered here
    /// as everywhere when its turn comes.
    ///
    /// # Errors
    /// It may not broadcast, or there is no room: nothing was changed.
    pub fn broadcast(&mut self, payload: Bytes) -> Result<EventKey, BroadcastError> {
        if payload.len() > EPTO_PAYLOAD_BYTES_MAX {
            return Err(BroadcastError::TooLong);
        }
        if !self.may_broadcast() {
            return Err(BroadcastError::Early);
        }
        let events_max = self.parameters.events_max / 2;
        let bytes_max = self.parameters.held_bytes_max;
        let is_full = self.order.len().max(self.next_ball.len()) >= events_max;
        if is_full || !self.payloads.make_room(payload.len(), bytes_max) {
            probe!("epto/overload");
            return Err(BroadcastError::Overload);
        }
        let key = EventKey { time: self.clock.tick(), source: self.me };
        self.sequence.0 += 1;
        let (sequence, ttl_max) = (self.sequence, self.parameters.ttl);
        let event = Event { key, sequence, ttl_max, payload: Digest::of(&payload) };
        self.payloads.hold(key, payload);
        let taken = self.order.take(&event, 0, &self.rules());
        let is_relayed = self.next_ball.keep(event, 0, self.parameters.events_max);
        invariant!(is_relayed, "there was room");
        // Its clock is past all that it has delivered.
        invariant!(taken == Taken::New || mutant!("epto_restart_broadcasts"), "it is a new event");
        self.counters.broadcast += 1;
        Ok(key)
    }

    /// A round has passed, or several: `elapsed` tells how many periods δ there were since the
    /// last call, so that a node which stood still notices. `targets` are K peers that the caller
    /// has drawn at random.
    pub fn on_round(&mut self, elapsed: u32, targets: &[NodeId], out: &mut Vec<Action>) {
        invariant!(!targets.contains(&self.me.node), "nobody sends to itself");
        self.round += 1;
        self.peers = targets.len();
        // What was broadcast when a pause began is still relayed in its last quarter.
        if elapsed > u32::from(self.parameters.ttl - self.parameters.ttl / 4) {
            self.lose_place(out);
        }
        let (order, payloads, round) = (&self.order, &self.payloads, self.round);
        let age = |key: &EventKey| order.age(key, round);
        // Where nobody is known it waits until somebody is.
        let is_alone = targets.is_empty() && !mutant!("epto_speaks_to_nobody");
        let balls = match is_alone {
            true => self.next_ball.wait(age),
            false => {
                self.sent = self.sequence;
                self.next_ball.round(self.me, age, |key| payloads.is_held(key))
            }
        };
        for ball in balls {
            self.counters.balls += targets.len() as u64;
            out.push(Action::Send { to: targets.to_vec(), message: Message::Ball(ball) });
        }
        if self.has_place() {
            self.deliver(out);
        } else {
            let dropped = self.order.shed(&self.rules());
            self.forget(dropped);
        }
        let (first, bytes_max) = (self.order.first(), self.parameters.held_bytes_max);
        for (peer, keys) in self.payloads.round(round, first, bytes_max) {
            self.counters.pulls += keys.len() as u64;
            out.push(Action::Send { to: Vec::from([peer]), message: Message::Pull(keys) });
        }
    }

    fn deliver(&mut self, out: &mut Vec<Action>) {
        let (payloads, rules) = (&self.payloads, self.rules());
        let before = self.order.last();
        for (event, fate) in self.order.round(&rules, |key| payloads.is_held(key)) {
            let source = event.key.source;
            if let Some((first, last)) = self.sources.advance(source, event.sequence) {
                probe!("epto/gap");
                self.counters.missing += last.0 - first.0 + 1;
                out.push(Action::Gap { source, first, last });
            }
            if source == self.me {
                self.sent = self.sent.max(event.sequence);
            }
            let payload = self.payloads.get(&event.key);
            let is_lost = fate == Fate::Hole && !mutant!("epto_payload_lost_is_empty");
            if is_lost {
                probe!("epto/hole");
                self.counters.holes += 1;
                out.push(Action::Hole { event });
            } else {
                self.counters.delivered += 1;
                out.push(Action::Deliver { event, payload: payload.unwrap_or_default() });
            }
            self.payloads.settle(event.key, self.kept_until());
        }
        invariant!(self.order.last() >= before || mutant!("epto_old_copy_accepted"), "it goes on");
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The payload of an event that was delivered some rounds ago, or is about to be.
    #[must_use]
    pub fn payload(&self, key: &EventKey) -> Option<Bytes> {
        self.payloads.get(key)
    }

    /// How many events wait to be delivered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.order.len()
    }

    /// How many bytes of payloads are in memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.payloads.bytes()
    }

    pub(super) fn forget(&mut self, dropped: Vec<EventKey>) {
        let until = self.kept_until();
        dropped.into_iter().for_each(|key| self.payloads.settle(key, until));
    }

    /// Until when others may ask for a payload whose event is delivered here.
    pub(super) fn kept_until(&self) -> u64 {
        self.round + u64::from(self.parameters.hold_rounds)
    }

    pub(super) fn rules(&self) -> Rules {
        Rules {
            round: self.round,
            own_ttl: self.parameters.ttl,
            hold_rounds: self.parameters.hold_rounds,
            events_max: self.parameters.events_max,
        }
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.order.len().max(self.next_ball.len()) <= self.parameters.events_max
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        invariant!(self.is_bounded(), "what waits is bounded");
        let bytes_max = self.parameters.held_bytes_max + EPTO_PAYLOAD_BYTES_MAX;
        invariant!(self.payloads.bytes() <= bytes_max, "bytes of payloads are bounded");
        self.clock.check();
        self.order.check();
        self.sources.check();
        self.payloads.check();
    }
}
