//! Nodes, their rounds and the messages between them, driven by one seed.

use super::judge::{Agreement, Judge, Told};
use super::shape::{DELTA, Fault, Kept, Shape};
use crate::epto::{
    Action, BroadcastError, Copied, Digest, Epto, Event, EventKey, LogicalTime, Message, Sequence,
};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::vec::Vec;

#[derive(Clone, Debug)]
enum What {
    Round(usize, Start),
    Message(usize, usize, Message),
}

struct Entry(u64, u64, What);

pub struct Node {
    pub epto: Epto,
    start: Start,
    /// Ticks between its rounds.
    period: u64,
    ran_at: u64,
    paused_until: u64,
    kept: Kept,
    slow_until: u64,
    slow_by: u64,
    is_stopped: bool,
}

pub struct World {
    pub shape: Shape,
    pub nodes: Vec<Node>,
    pub judge: Judge,
    pub refused: usize,
    overloads: usize,
    pub now: u64,
    rng: Rng,
    queue: BinaryHeap<Entry>,
    queued: u64,
    divided: (usize, u64),
}

impl Node {
    pub fn is_paused(&self, now: u64) -> bool {
        self.paused_until > now
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

/// The node of a place in the world.
pub fn name(place: usize) -> NodeId {
    NodeId(place as u64 + 1)
}

impl World {
    pub fn new(shape: Shape) -> World {
        let mut world = World {
            nodes: Vec::new(),
            judge: Judge::default(),
            refused: 0,
            overloads: 0,
            now: 0,
            rng: Rng::new(shape.seed),
            queue: BinaryHeap::new(),
            queued: 0,
            divided: (0, 0),
            shape,
        };
        for place in 0..world.shape.nodes {
            let me = Incarnation { node: name(place), start: Start(1) };
            let epto = Epto::found(me, world.shape.parameters);
            let period = world.rng.between(DELTA * 9 / 10, DELTA * 11 / 10);
            world.nodes.push(Node {
                epto,
                start: me.start,
                period,
                ran_at: 0,
                paused_until: 0,
                kept: Kept::All,
                slow_until: 0,
                slow_by: 0,
                is_stopped: false,
            });
            world.judge.nodes.push(Told { is_there: true, ..Told::default() });
            let first = world.rng.below(period);
            world.push(first, What::Round(place, me.start));
        }
        world
    }

    fn push(&mut self, at: u64, what: What) {
        self.queued += 1;
        self.queue.push(Entry(at, self.queued, what));
    }

    /// Runs for so many rounds.
    pub fn run(&mut self, rounds: u64) {
        let until = self.now + rounds * DELTA;
        while self.queue.peek().is_some_and(|entry| entry.0 <= until) {
            let Entry(at, _, what) = self.queue.pop().expect("there is one");
            self.now = at;
            match what {
                What::Round(place, start) => self.round(place, start),
                What::Message(from, to, message) => self.arrive(from, to, message),
            }
        }
        self.now = until;
    }

    fn round(&mut self, place: usize, start: Start) {
        let node = &mut self.nodes[place];
        if node.is_stopped || node.start != start {
            return;
        }
        if node.is_paused(self.now) {
            let until = node.paused_until;
            self.push(until, What::Round(place, start));
            return;
        }
        let elapsed = ((self.now - node.ran_at + node.period / 2) / node.period).max(1);
        node.ran_at = self.now;
        let (next, fanout) = (self.now + node.period, node.epto.parameters().fanout);
        self.push(next, What::Round(place, start));
        let targets = self.targets(place, fanout);
        let mut actions = Vec::new();
        let node = &mut self.nodes[place];
        let elapsed = u32::try_from(elapsed).expect("a world is short");
        node.epto.on_round(elapsed, &targets, &mut actions);
        if self.queued.is_multiple_of(8) {
            node.epto.check();
        }
        self.act(place, actions);
        self.may_resume(place);
    }

    fn targets(&mut self, place: usize, count: usize) -> Vec<NodeId> {
        let mut targets = Vec::with_capacity(count);
        while targets.len() < count.min(self.shape.nodes - 1) {
            let target = self.rng.below(self.shape.nodes as u64) as usize;
            if target != place && !targets.contains(&name(target)) {
                targets.push(name(target));
            }
        }
        targets
    }

    /// Takes over what two others have, if it is time.
    fn may_resume(&mut self, place: usize) {
        if !self.nodes[place].epto.may_resume() {
            return;
        }
        let donors = self.targets(place, 2);
        let donors = donors.iter().map(|donor| donor.0 as usize - 1);
        let is_there = |donor: &usize| !self.nodes[*donor].is_stopped;
        let mut told = Vec::new();
        for donor in donors.filter(is_there) {
            if let Some(horizon) = self.nodes[donor].epto.horizon() {
                told.push((horizon.last, donor, horizon));
            }
        }
        let Some((last, _, horizon)) = told.iter().max_by_key(|(last, ..)| *last) else { return };
        if self.nodes[place].epto.resume_at(horizon).is_ok() {
            let known = |donor: usize| {
                let told = &self.judge.nodes[donor];
                told.delivered
                    .iter()
                    .chain(&told.taken_over)
                    .copied()
                    .filter(|key| Some(*key) <= *last)
            };
            let all: Vec<EventKey> = told.iter().flat_map(|(_, donor, _)| known(*donor)).collect();
            self.judge.nodes[place].taken_over.extend(all);
            self.judge.nodes[place].is_there = true;
        }
    }

    fn arrive(&mut self, from: usize, to: usize, message: Message) {
        let node = &mut self.nodes[to];
        if node.is_stopped {
            return;
        }
        if node.is_paused(self.now) {
            let until = node.paused_until;
            if node.kept == Kept::All {
                self.push(until, What::Message(from, to, message));
            }
            return;
        }
        let mut actions = Vec::new();
        node.epto.on_message(name(from), &message, &mut actions);
        self.act(to, actions);
    }

    fn act(&mut self, place: usize, actions: Vec<Action>) {
        for action in actions {
            let told = &mut self.judge.nodes[place];
            match action {
                Action::Send { to, message } => {
                    for target in to {
                        self.send(place, target.0 as usize - 1, message.clone());
                    }
                }
                Action::Deliver { event, payload } => {
                    self.judge.on_delivered(place, &event, &payload);
                }
                Action::Hole { event } | Action::Late { event } => {
                    told.named.insert(event.key);
                }
                Action::Gap { source, first, last } => told.gaps.push((source, first, last)),
                Action::LostPlace => {
                    told.places_lost += 1;
                    told.is_there = false;
                }
                Action::Refuse { .. } => self.refused += 1,
            }
        }
    }

    pub fn send(&mut self, from: usize, to: usize, message: Message) {
        let (low, high) = self.shape.latency;
        let mut latency = self.rng.between(low, high);
        let is_lost = self.rng.chance_ppm(self.shape.lost_ppm);
        let (border, until) = self.divided;
        let is_cut = until > self.now && (from < border) != (to < border);
        for node in [&self.nodes[from], &self.nodes[to]] {
            latency += if node.slow_until > self.now { node.slow_by } else { 0 };
        }
        if !is_lost && !is_cut {
            self.push(self.now + latency, What::Message(from, to, message));
        }
    }

    /// A node broadcasts something that nobody else does.
    pub fn broadcast(&mut self, place: usize) -> Result<EventKey, BroadcastError> {
        let length = self.rng.between(8, 8 + self.shape.payload_bytes) as usize;
        let mut payload = std::vec![0; length];
        payload[..8].copy_from_slice(&self.rng.next().to_le_bytes());
        let payload = Bytes::from(payload);
        let key = self.nodes[place].epto.broadcast(payload.clone())?;
        let before = self.judge.broadcast.insert(key, payload);
        assert_eq!(before, None, "a name is given twice");
        let of = self.judge.sequences.keys().filter(|it| it.source == key.source).count();
        self.judge.sequences.insert(key, Sequence(of as u64 + 1));
        Ok(key)
    }

    /// How often a broadcast was refused for want of room.
    pub fn load_refused(&self) -> usize {
        self.overloads
    }

    /// So many broadcasts a round by random nodes, for so many rounds.
    pub fn load(&mut self, rounds: u64, a_round: u64) {
        for _ in 0..rounds {
            for _ in 0..a_round {
                let place = self.rng.below(self.shape.nodes as u64) as usize;
                let node = &self.nodes[place];
                if !node.is_stopped && !node.is_paused(self.now) {
                    // Who has just started may not.
                    let refused = self.broadcast(place) == Err(BroadcastError::Overload);
                    self.overloads += usize::from(refused);
                }
            }
            self.run(1);
        }
    }

    /// One more event of each source, so that all gaps show, and time for all to be delivered.
    pub fn settle(&mut self) -> Agreement {
        let rounds = u64::from(self.shape.parameters.ttl) + 4;
        let hold = u64::from(self.shape.parameters.hold_rounds);
        self.run((rounds * 2 + hold) * 12 / 10);
        for place in 0..self.nodes.len() {
            let has_spoken = self.judge.broadcast.keys().any(|key| key.source.node == name(place));
            if !self.nodes[place].is_stopped && has_spoken {
                let key = self.broadcast(place).expect("it may by now");
                assert_eq!(key.source.node, name(place));
            }
        }
        self.run((rounds + hold) * 12 / 10);
        for (node, told) in self.nodes.iter().zip(&mut self.judge.nodes) {
            told.is_there &= !node.is_stopped && node.epto.has_place();
        }
        self.judge.at_the_end()
    }

    pub fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Spike(place, rounds) => {
                let node = &mut self.nodes[place];
                (node.slow_by, node.slow_until) = (rounds * DELTA, self.now + rounds * DELTA);
            }
            Fault::Pause(place, rounds, kept) => {
                let node = &mut self.nodes[place];
                (node.paused_until, node.kept) = (self.now + rounds * DELTA, kept);
            }
            Fault::Stop(place) => self.nodes[place].is_stopped = true,
            Fault::StopAfterOneBall(place) => self.one_ball(place),
            Fault::Bomb(place) => self.bomb(place),
            Fault::Divide(border, rounds) => self.divided = (border, self.now + rounds * DELTA),
            Fault::Restart(place) => self.restart(place),
        }
    }

    fn one_ball(&mut self, place: usize) {
        self.broadcast(place).expect("it may");
        let peer = self.targets(place, 1);
        let mut actions = Vec::new();
        self.nodes[place].epto.on_round(1, &peer, &mut actions);
        self.act(place, actions);
        self.nodes[place].is_stopped = true;
    }

    fn bomb(&mut self, place: usize) {
        let source = Incarnation { node: name(place), start: Start(9) };
        let key = EventKey { time: LogicalTime(1 << 60), source };
        let (sequence, ttl_max) = (Sequence(1), 20);
        let event = Event { key, sequence, ttl_max, payload: Digest::of(b"") };
        let copy = Copied { event, ttl: 1, is_held: true };
        let ball = Arc::new(crate::epto::Ball(Vec::from([copy])));
        for target in self.targets(place, 20) {
            self.send(place, target.0 as usize - 1, Message::Ball(Arc::clone(&ball)));
        }
    }

    fn restart(&mut self, place: usize) {
        let start = self.nodes[place].start.next();
        let me = Incarnation { node: name(place), start };
        let node = &mut self.nodes[place];
        (node.epto, node.start) = (Epto::join(me, self.shape.parameters), start);
        (node.is_stopped, node.ran_at) = (false, self.now);
        // What it had is in no later state of it.
        self.judge.nodes[place] = Told::default();
        self.push(self.now + DELTA, What::Round(place, start));
    }
}
