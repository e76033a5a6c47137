//! Hosts that run the lane of a replicated engine as a node does: turns, a disk that syncs later,
//! links that lose, delay, double and are cut.
//!
//! Nothing decides here but one seed; a test says what else happens, and judges. An engine takes
//! part by implementing [`Simulated`].

mod host;
mod ring;
mod runs;
mod taken;

use crate::testing::timeline::Timeline;
use crate::vsr::{Op, Replica};
use bytes::{Bytes, BytesMut};
use host::Held;
pub use host::Host;
use quorate_kernel::effects::{Effect, Effects, Note, Recipients, Release};
use quorate_kernel::ids::{GroupId, Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Request, Timer as _};
use quorate_kernel::ring::RingHost;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::Body;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;
pub use taken::{Taken, Tap};

/// What the world must know of an engine.
pub trait Simulated: Process<Message: Clone> {
    /// What a keyspace of the engine is set to.
    type Settings: Clone;

    /// The engine before its start.
    fn born(settings: &Self::Settings) -> Self;

    /// How durable its data is.
    fn durability(settings: &Self::Settings) -> Durability;

    /// The name of the message's variant.
    fn name(message: &Self::Message) -> &'static str;

    /// The logs that this node has: all nodes must execute the same.
    fn logs(&self) -> Vec<(GroupId, &Replica)>;
}

/// What will happen.
enum Event {
    Frame { to: usize, from: Incarnation, start: Start, body: Body },
    Timer { at: usize, start: Start, code: u32 },
    Sync { at: usize, start: Start },
}

/// The world.
pub struct World<P: Simulated> {
    /// The hosts; the place of one is its number less one.
    pub hosts: Vec<Host<P>>,
    /// The time, of all clocks but the wall clocks.
    pub now: Time,
    events: Timeline<Event>,
    /// Decides all that nothing else decides.
    pub rng: Rng,
    /// How many of a hundred frames are lost.
    pub loss_percent: u64,
    /// How many of a hundred frames come twice.
    pub double_percent: u64,
    /// The longest time that a frame takes.
    pub delay_max: Span,
    /// A kind of frames that take half a second.
    pub slow: Option<&'static str>,
    /// The longest time that a sync takes.
    pub sync_max: Span,
    /// Pairs of hosts, the sender first, between which all is lost.
    pub cut: BTreeSet<(usize, usize)>,
    /// Answers that were not looked at yet.
    pub answers: Vec<(usize, Ticket, Outcome)>,
    /// What the keyspace is set to.
    pub settings: P::Settings,
    /// What is committed in each group; none for a change of members.
    pub logs: BTreeMap<GroupId, BTreeMap<Op, Option<Bytes>>>,
    /// How many tickets clients were given.
    pub tickets: u64,
    /// How many frames of each kind were sent.
    pub sent: BTreeMap<&'static str, usize>,
    /// What peers were refused for; none if a correct one never is.
    pub refusals: Option<Vec<&'static str>>,
    /// The hosts that are told of; nobody is told of a ring while there are none.
    pub ring: Vec<RingHost>,
    rings: u64,
    /// Frames that a test has taken from the links.
    pub tap: Tap<P::Message>,
}

impl<P: Simulated> World<P> {
    /// So many hosts, which have just started.
    pub fn new(seed: u64, hosts: u64, settings: P::Settings) -> World<P> {
        let durability = P::durability(&settings);
        let host = |id: u64| Host::new(NodeId(id), durability, Rng::new(seed ^ (id << 32)));
        let mut world = World {
            hosts: (1..=hosts).map(host).collect(),
            now: Time(1_000_000_000),
            events: Timeline::default(),
            rng: Rng::new(seed),
            loss_percent: 0,
            double_percent: 0,
            delay_max: Span::millis(2),
            slow: None,
            sync_max: Span::millis(4),
            cut: BTreeSet::new(),
            answers: Vec::new(),
            settings,
            logs: BTreeMap::new(),
            tickets: 0,
            sent: BTreeMap::new(),
            refusals: None,
            ring: Vec::new(),
            rings: 0,
            tap: Tap::default(),
        };
        (0..hosts as usize).for_each(|at| world.start(at, Recovery::Intact));
        world
    }

    /// One host more, which has just started.
    pub fn add(&mut self) {
        let durability = P::durability(&self.settings);
        let id = self.hosts.len() as u64 + 1;
        let rng = Rng::new(self.rng.next());
        self.hosts.push(Host::new(NodeId(id), durability, rng));
        self.start(id as usize - 1, Recovery::Intact);
    }

    /// Whether a host is up.
    pub fn is_up(&self, at: usize) -> bool {
        self.hosts[at].process.is_some()
    }

    /// Starts a host that is down.
    pub fn start(&mut self, at: usize, recovery: Recovery) {
        let process = P::born(&self.settings);
        let host = &mut self.hosts[at];
        assert!(host.process.is_none(), "it is down");
        host.me.start = host.me.start.next();
        host.process = Some(process);
        host.disk.is_holding = true;
        host.noted.clear();
        self.turn(at, |process, cx| process.start(recovery, cx));
        self.tell_ring();
    }

    /// Starts a host again with what its disk has kept.
    pub fn restart(&mut self, at: usize) {
        let is_sync = P::durability(&self.settings) == Durability::Sync;
        self.start(at, if is_sync { Recovery::Intact } else { Recovery::Forgot });
    }

    /// A host stops, and loses what it has not synced.
    pub fn crash(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        assert!(host.process.take().is_some(), "it is up");
        host.disk.crash();
        host.held.clear();
        host.locals.clear();
        host.timers.clear();
        host.peers.clear();
        host.syncs = false;
    }

    /// The others are told that a host's connections have ended.
    pub fn unlink(&mut self, gone: usize) {
        let node = self.hosts[gone].me.node;
        for at in (0..self.hosts.len()).filter(|at| *at != gone) {
            if self.is_up(at) {
                self.turn(at, |process, cx| process.on_news(News::Unlinked(node), cx));
            }
        }
    }

    /// A client asks a host.
    pub fn request(&mut self, at: usize, operation: Operation, within: Span) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let request = Request { operation, deadline: self.now + within };
        self.turn(at, |process, cx| process.on_request(ticket, request, cx));
        ticket
    }

    /// One turn: an input, what the host sends to itself, and the end that it is told.
    pub fn turn(&mut self, at: usize, input: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        self.step(at, input);
        self.end_turn(at);
    }

    fn end_turn(&mut self, at: usize) {
        loop {
            while let Some(message) = self.hosts[at].locals.pop_front() {
                let me = self.hosts[at].me;
                self.step(at, |process, cx| process.on_message(me, message, cx));
            }
            if P::HEARS.contains(&Topic::TurnEnd) {
                self.step(at, |process, cx| process.on_news(News::TurnEnd, cx));
            }
            if self.hosts[at].locals.is_empty() {
                break;
            }
        }
        self.note(at);
        let host = &mut self.hosts[at];
        if !host.syncs && host.disk.needs(&Release::Lane) > host.disk.done() {
            host.syncs = true;
            let (start, wait) = (host.me.start, self.rng.between(50, self.sync_max.0 / 1000));
            self.events.push(self.now + Span::micros(wait), Event::Sync { at, start });
        }
    }

    fn step(&mut self, at: usize, input: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let now = self.now;
        let Host { me, process, disk, rng, skew_ms, .. } = &mut self.hosts[at];
        let process = process.as_mut().expect("it is up");
        let mut fx = Effects::default();
        let wall = now.0 / 1_000_000 + *skew_ms;
        let wall = WallTime(i64::try_from(wall).unwrap_or(i64::MAX));
        let (me, lane) = (*me, LaneId(17));
        input(process, &mut Context { me, lane, now, wall, rng, table: disk, fx: &mut fx });
        process.check();
        let effects: Vec<_> = fx.drain().collect();
        for effect in effects {
            self.take_effect(at, effect);
        }
    }

    fn take_effect(&mut self, at: usize, effect: Effect<P::Message, P::Timer>) {
        let host = &mut self.hosts[at];
        match effect {
            Effect::Write { class, key, value } => host.disk.write(class, &key, value.as_ref()),
            Effect::Send { to, message, release } => {
                self.admit(at, &release, Held::Send(to, message));
            }
            Effect::Answer { ticket, outcome, release } => {
                self.admit(at, &release, Held::Answer(ticket, outcome));
            }
            Effect::Arm { timer, at: due } => {
                let (start, code) = (host.me.start, timer.code());
                host.timers.insert(code, due);
                self.events.push(due.max(self.now), Event::Timer { at, start, code });
            }
            Effect::Disarm { timer } => _ = host.timers.remove(&timer.code()),
            Effect::Announce(Note::Refused(what)) => match &mut self.refusals {
                Some(refusals) => refusals.push(what),
                None => panic!("a correct peer was refused: {what}"),
            },
            Effect::Announce(_) => {}
        }
    }

    fn admit(&mut self, at: usize, release: &Release, held: Held<P::Message>) {
        let host = &mut self.hosts[at];
        let needs = host.disk.needs(release);
        if needs <= host.disk.done() {
            self.let_out(at, held);
        } else {
            host.held.push((needs, held));
        }
    }

    fn let_out(&mut self, at: usize, held: Held<P::Message>) {
        let (to, message) = match held {
            Held::Answer(ticket, outcome) => return self.answers.push((at, ticket, outcome)),
            Held::Send(to, message) => (to, message),
        };
        let me = self.hosts[at].me;
        let nodes: Vec<(NodeId, Start)> = match &to {
            Recipients::One(one) => Vec::from([(one.node, one.start)]),
            Recipients::Group(nodes) => nodes.iter().map(|node| (*node, Start(0))).collect(),
        };
        let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits a frame");
        for (node, start) in nodes {
            if node == me.node {
                self.hosts[at].locals.push_back(message.clone());
                continue;
            }
            *self.sent.entry(P::name(&message)).or_default() += 1;
            let to = node.0 as usize - 1;
            if self.tap.takes(at, to, &message) {
                self.tap.taken.push(Taken { from: me, to, start, message: message.clone() });
                continue;
            }
            let is_lost = self.cut.contains(&(at, to)) || self.rng.below(100) < self.loss_percent;
            if !is_lost {
                let is_slow = self.slow == Some(P::name(&message));
                let is_double =
                    self.double_percent > 0 && self.rng.below(100) < self.double_percent;
                for _ in 0..1 + usize::from(is_double) {
                    let wait = match is_slow {
                        true => Span::millis(500).0,
                        false => self.rng.between(50_000, self.delay_max.0),
                    };
                    let event = Event::Frame { to, from: me, start, body: body.clone() };
                    self.events.push(self.now + Span(wait), event);
                }
            }
        }
    }

    /// Notes what a host has executed.
    fn note(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let Some(process) = &host.process else { return };
        for (group, replica) in process.logs() {
            let applied = replica.applied();
            let noted = host.noted.entry(group).or_default();
            let from = noted.0.max(replica.log().base().op.0) + 1;
            for op in from..=applied.0 {
                let entry = replica.log().get(Op(op), &host.disk);
                let is_command = entry.new_members().is_none();
                let command = is_command.then(|| entry.bytes().clone());
                let log = self.logs.entry(group).or_default();
                let has = log.entry(Op(op)).or_insert_with(|| command.clone());
                assert_eq!(*has, command, "all execute the same");
            }
            *noted = applied.max(*noted);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Frame { to, from, start, body } => {
                let host = &mut self.hosts[to];
                let is_for = start == Start(0) || start == host.me.start;
                let newest = host.peers.entry(from.node).or_default();
                let is_stale = from.start < *newest;
                *newest = from.start.max(*newest);
                if host.process.is_some() && is_for && !is_stale {
                    let message: P::Message = body.decode().expect("what was encoded is decoded");
                    self.turn(to, |process, cx| process.on_message(from, message, cx));
                }
            }
            Event::Timer { at, start, code } => {
                let host = &mut self.hosts[at];
                let is_due = host.timers.get(&code).is_some_and(|due| *due <= self.now);
                if host.process.is_some() && host.me.start == start && is_due {
                    host.timers.remove(&code);
                    let timer = P::Timer::from_code(code).expect("it was armed");
                    self.turn(at, |process, cx| process.on_timer(timer, cx));
                }
            }
            Event::Sync { at, start } => {
                let host = &mut self.hosts[at];
                if host.process.is_none() || host.me.start != start {
                    return;
                }
                host.syncs = false;
                host.disk.sync();
                let done = host.disk.done();
                for (needs, held) in std::mem::take(&mut host.held) {
                    if needs <= done {
                        self.let_out(at, held);
                    } else {
                        self.hosts[at].held.push((needs, held));
                    }
                }
                if !self.hosts[at].locals.is_empty() {
                    self.end_turn(at);
                }
            }
        }
    }
}
