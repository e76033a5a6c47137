//! Nodes with disks, and a network that delays, loses and divides.

use crate::epidemic::message::Message;
use crate::epidemic::pending::{KeyAsk, What};
use crate::epidemic::replica::range::position;
use crate::epidemic::replica::version::RequestId;
use crate::epidemic::state::State;
use crate::epidemic::timer::Timer;
use crate::epidemic::{Context, Epidemic, Level, Settings};
use crate::epto::EventKey;
use crate::gossip::cyclon::Peer;
use crate::slices::estimate::Bounds;
use bytes::{Bytes, BytesMut};
use quorate_kernel::effects::{Effect, Effects, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::{Process, Recovery, Table};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::Body;
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

#[derive(Default)]
pub struct Disk(pub BTreeMap<Bytes, Bytes>);

impl Table for Disk {
    fn get(&self, _: Class, key: &Bytes) -> Option<Bytes> {
        self.0.get(key).cloned()
    }

    fn scan(&self, _: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let mut all = self.0.iter().filter(|(key, _)| &key[..] >= from);
        all.all(|(key, value)| each(key, value));
    }
}

pub struct Host {
    pub engine: Epidemic,
    pub disk: Disk,
    pub start: Start,
    pub is_up: bool,
    /// Nothing happens at it before.
    pub asleep_until: Time,
    rng: Rng,
}

enum Happening {
    Message { from: Incarnation, to: Incarnation, message: Box<Message> },
    Timer { of: Incarnation },
}

/// Whether a message from one node to another is lost.
pub type Cut = Box<dyn Fn(NodeId, NodeId, &Message) -> bool>;

/// By how much later than others a message comes.
pub type Late = Box<dyn Fn(&Message) -> Span>;

pub struct World {
    pub hosts: BTreeMap<NodeId, Host>,
    pub now: Time,
    pub rng: Rng,
    pub settings: Settings,
    pub loss_ppm: u32,
    pub cut: Option<Cut>,
    pub late: Option<Late>,
    /// The longest time that a message takes; the shortest is a tenth of it.
    pub delay: Span,
    pub answers: BTreeMap<Ticket, Outcome>,
    /// Who was asked what.
    pub asked: BTreeMap<Ticket, (RequestId, Bytes, What)>,
    queue: BTreeMap<(Time, u64), Happening>,
    count: u64,
    pub messages: u64,
    /// How often each node has answered for a key.
    pub answered: BTreeMap<NodeId, u64>,
}

impl World {
    pub fn new(nodes: usize, level: Level, seed: u64) -> World {
        let bounds = Bounds { replicas_min: 3, replicas_max: 6, age_max: 20, equal: 4, floor: 0 };
        let settings = Settings { bounds, acks: 2, view: 30, ..Settings::usual(level) };
        World::with(nodes, settings, seed)
    }

    pub fn with(nodes: usize, settings: Settings, seed: u64) -> World {
        let mut world = World {
            hosts: BTreeMap::new(),
            now: Time(1_000_000_000),
            rng: Rng::new(seed),
            settings,
            loss_ppm: 0,
            cut: None,
            late: None,
            delay: Span::millis(60),
            answers: BTreeMap::new(),
            asked: BTreeMap::new(),
            queue: BTreeMap::new(),
            count: 0,
            messages: 0,
            answered: BTreeMap::new(),
        };
        let fresh: Vec<NodeId> = (0..nodes).map(|_| world.add()).collect();
        fresh.into_iter().for_each(|node| world.start(node));
        world
    }

    /// A new node, not started.
    pub fn add(&mut self) -> NodeId {
        let node = NodeId(self.rng.next());
        let host = Host {
            engine: Epidemic::new(self.settings.clone()),
            disk: Disk::default(),
            start: Start(0),
            is_up: false,
            asleep_until: Time(0),
            rng: self.rng.fork(node.0),
        };
        self.hosts.insert(node, host);
        node
    }

    pub fn up(&self) -> Vec<NodeId> {
        self.hosts.iter().filter(|(_, host)| host.is_up).map(|(node, _)| *node).collect()
    }

    pub fn any(&mut self) -> NodeId {
        let up = self.up();
        *self.rng.pick(&up).expect("some are up")
    }

    pub fn state(&self, node: NodeId) -> &State {
        &self.hosts[&node].engine.state
    }

    /// Starts a node: with its disk, and nothing of what it had in memory.
    pub fn start(&mut self, node: NodeId) {
        let mut others: Vec<NodeId> = self.hosts.keys().copied().filter(|it| *it != node).collect();
        let mut hints = Vec::new();
        while hints.len() < 20 && !others.is_empty() {
            let other = others.swap_remove(self.rng.below(others.len() as u64) as usize);
            let who = Incarnation { node: other, start: Start(0) };
            hints.push(Peer { who, age: 0, address: "".into() });
        }
        let settings = self.settings.clone();
        let host = self.hosts.get_mut(&node).expect("it was added");
        host.engine = Epidemic::new(settings);
        host.engine.hint(hints);
        (host.start, host.is_up) = (host.start.next(), true);
        self.with_host(node, |engine, cx| engine.start(Recovery::Intact, cx));
    }

    pub fn stop(&mut self, node: NodeId) {
        self.hosts.get_mut(&node).expect("it was added").is_up = false;
    }

    /// A node is gone for good.
    pub fn kill(&mut self, node: NodeId) {
        self.hosts.remove(&node);
    }

    pub fn me(&self, node: NodeId) -> Incarnation {
        Incarnation { node, start: self.hosts[&node].start }
    }

    pub fn with_host(&mut self, node: NodeId, does: impl FnOnce(&mut Epidemic, &mut Context<'_>)) {
        let me = self.me(node);
        let host = self.hosts.get_mut(&node).expect("it was added");
        let mut fx = Effects::default();
        let mut cx = Context {
            me,
            lane: LaneId(16),
            now: self.now,
            wall: WallTime(0),
            rng: &mut host.rng,
            table: &host.disk,
            fx: &mut fx,
        };
        does(&mut host.engine, &mut cx);
        let effects: Vec<_> = fx.drain().collect();
        for effect in effects {
            self.effect(me, effect);
        }
    }

    fn effect(&mut self, me: Incarnation, effect: Effect<Message, Timer>) {
        match effect {
            Effect::Write { key, value, .. } => {
                let disk = &mut self.hosts.get_mut(&me.node).expect("it is there").disk.0;
                match value {
                    Some(value) => drop(disk.insert(key, value)),
                    None => drop(disk.remove(&key)),
                }
            }
            Effect::Send { to: Recipients::One(to), message, .. } => self.send(me, to, message),
            Effect::Send { to: Recipients::Group(nodes), message, .. } => {
                for node in nodes.iter() {
                    let to = Incarnation { node: *node, start: Start(0) };
                    self.send(me, to, message.clone());
                }
            }
            Effect::Answer { ticket, outcome, .. } => {
                let before = self.answers.insert(ticket, outcome);
                assert!(before.is_none(), "an answer is given once");
            }
            Effect::Arm { at, .. } => self.push(at, Happening::Timer { of: me }),
            Effect::Disarm { .. } | Effect::Announce(_) => {}
        }
    }

    /// The messages that are sent while something happens.
    pub fn heard(&mut self, happens: impl FnOnce(&mut World)) -> Vec<Message> {
        let before = self.count;
        happens(self);
        let new = self.queue.iter().filter(|((_, count), _)| *count > before);
        let sent = new.filter_map(|(_, happening)| match happening {
            Happening::Message { message, .. } => Some((**message).clone()),
            Happening::Timer { .. } => None,
        });
        sent.collect()
    }

    fn push(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.queue.insert((at, self.count), happening);
    }

    fn send(&mut self, from: Incarnation, to: Incarnation, message: Message) {
        self.messages += 1;
        if matches!(message, Message::Did { .. } | Message::Flasked { .. }) {
            *self.answered.entry(from.node).or_insert(0) += 1;
        }
        let message = match self.messages % 64 {
            0 => {
                let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits a frame");
                let back: Message = body.decode().expect("what is sent is understood");
                assert_eq!(back, message);
                back
            }
            _ => message,
        };
        let is_local = from.node == to.node;
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut(from.node, to.node, &message));
        if !is_local && (is_cut || self.rng.chance_ppm(self.loss_ppm)) {
            return;
        }
        let late = self.late.as_ref().map_or(Span(0), |late| late(&message));
        let delay = self.rng.between(self.delay.0 / 10, self.delay.0) + late.0;
        let at = if is_local { self.now } else { self.now + Span(delay) };
        self.push(at, Happening::Message { from, to, message: Box::new(message) });
    }

    fn step(&mut self) {
        let ((at, _), happening) = self.queue.pop_first().expect("timers never end");
        self.now = at.max(self.now);
        let node = match &happening {
            Happening::Message { to, .. } => to.node,
            Happening::Timer { of } => of.node,
        };
        let Some(host) = self.hosts.get(&node).filter(|host| host.is_up) else { return };
        if host.asleep_until > self.now {
            let until = host.asleep_until;
            return self.push(until, happening);
        }
        let me = self.me(node);
        match happening {
            Happening::Message { from, to, message } => {
                if to.start == Start(0) || to.start == me.start {
                    self.with_host(node, |engine, cx| engine.on_message(from, *message, cx));
                }
            }
            Happening::Timer { of } if of == me => {
                self.with_host(node, |engine, cx| engine.on_timer(Timer::Round, cx));
                self.hosts[&node].engine.check();
            }
            Happening::Timer { .. } => {}
        }
    }

    /// A node says something to another one, at once.
    pub fn say(&mut self, from: NodeId, to: NodeId, message: Message) {
        let from = self.me(from);
        self.with_host(to, |engine, cx| engine.on_message(from, message, cx));
    }

    /// The nodes that may answer for a key.
    pub fn holders(&self, key: &Bytes) -> Vec<NodeId> {
        let at = position(key);
        self.up().into_iter().filter(|node| self.state(*node).is_ready(at)).collect()
    }

    /// Lets time pass, in rounds.
    pub fn run(&mut self, rounds: u64) {
        let until = self.now + Span(self.settings.round.0 * rounds);
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= until) {
            self.step();
        }
        self.now = until;
    }

    /// Runs until all that are up are ready for their slices, and agree on these.
    pub fn settle(&mut self) {
        for _ in 0..60 {
            self.run(25);
            let up = self.up();
            let is_whole = up.iter().all(|node| self.state(*node).is_whole());
            let groups: BTreeSet<_> =
                up.iter().map(|node| self.state(*node).slices.groups()).collect();
            if is_whole && groups.len() == 1 {
                return;
            }
        }
        let open = self.up().into_iter().filter(|node| !self.state(*node).is_whole());
        panic!("{} nodes are not ready", open.count());
    }

    /// A client asks a node; the name of the request may be one that was used before.
    pub fn ask_as(&mut self, node: NodeId, id: RequestId, key: &str, what: What) -> Ticket {
        self.ask_with(node, (id, Span(0)), (key, what), None)
    }

    /// The same request again, so long after it was first sent.
    pub fn ask_again(
        &mut self,
        node: NodeId,
        (id, age): (RequestId, Span),
        key: &str,
        what: What,
    ) -> Ticket {
        self.ask_with(node, (id, age), (key, what), None)
    }

    fn ask_with(
        &mut self,
        node: NodeId,
        (id, age): (RequestId, Span),
        (key, what): (&str, What),
        seen: Option<EventKey>,
    ) -> Ticket {
        let ticket = Ticket(self.asked.len() as u64 + 1);
        let key = Bytes::copy_from_slice(key.as_bytes());
        self.asked.insert(ticket, (id, key.clone(), what.clone()));
        let deadline = self.now + Span(self.settings.round.0 * 200);
        let ask = KeyAsk { key, what, id: Some(id), age, seen, deadline };
        self.with_host(node, |engine, cx| engine.ask(ticket, ask, cx));
        ticket
    }

    pub fn ask(&mut self, node: NodeId, key: &str, what: What) -> Ticket {
        let id = RequestId(u128::from(self.rng.next()));
        self.ask_as(node, id, key, what)
    }

    /// A client asks that has seen an event of this time.
    pub fn ask_after(&mut self, node: NodeId, key: &str, what: What, seen: EventKey) -> Ticket {
        let id = RequestId(self.asked.len() as u128 + 1);
        self.ask_with(node, (id, Span(0)), (key, what), Some(seen))
    }

    /// Asks a random node and waits for the answer.
    pub fn done(&mut self, key: &str, what: What) -> Outcome {
        let node = self.any();
        let ticket = self.ask(node, key, what);
        self.wait(ticket)
    }

    pub fn wait(&mut self, ticket: Ticket) -> Outcome {
        for _ in 0..210 {
            if let Some(outcome) = self.answers.get(&ticket) {
                return outcome.clone();
            }
            self.run(1);
        }
        panic!("{ticket:?} was never answered");
    }
}

pub fn put(value: &str) -> What {
    What::Put(Bytes::copy_from_slice(value.as_bytes()))
}

/// The value that was read; none if there is none.
pub fn value(outcome: &Outcome) -> Option<Bytes> {
    match outcome {
        Outcome::Values { values, .. } => values.iter().next().cloned(),
        other => panic!("{other:?} is no read"),
    }
}
