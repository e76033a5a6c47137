//! A small world of catalogs: seeded latencies, loss, partitions, crashes that take what was not
//! synced, and a judge that sees all hosts.

use super::words::{ENGINES, show};
use crate::catalog::{CatalogLane, Entry, Founding, Message, Origin, Settings, Timer};
use crate::testing::disk::Disk;
use crate::testing::timeline::Timeline;
use bytes::Bytes;
use quorate_kernel::effects::{Effect, Effects, Note, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::keyspace::{KeyspaceOrder, Keyspaces, NewKeyspace};
use quorate_kernel::news::News;
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Timer as _};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time, WallTime};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

/// What waits for a sync, in order.
enum Held {
    Write(Class, Bytes, Option<Bytes>),
    Send(NodeId, Message),
    Answer(Ticket, Outcome),
    Note(Arc<Keyspaces>),
}

pub struct Host {
    pub me: Incarnation,
    pub lane: Option<CatalogLane>,
    settings: Settings,
    disk: Disk,
    held: Vec<Held>,
    is_syncing: bool,
    timers: BTreeMap<u32, Time>,
    rng: Rng,
    pub side: u8,
    pub standing: Standing,
    /// The ring that it goes on believing in, if it hears no news.
    pub stale: Option<Arc<Ring>>,
    /// What the node was told last.
    pub told: Option<Arc<Keyspaces>>,
}

enum Event {
    Message { from: Incarnation, to: NodeId, message: Box<Message> },
    Timer { host: usize, start: Start, code: u32 },
    Sync { host: usize, start: Start },
}

/// The world.
pub struct World {
    pub hosts: Vec<Host>,
    queue: Timeline<Event>,
    pub now: Time,
    pub rng: Rng,
    pub loss_percent: u64,
    /// How long a message and a sync take at most; exactly a millisecond if it is zero.
    pub jitter: Span,
    pub answers: BTreeMap<Ticket, Outcome>,
    tickets: u64,
    /// What each order is known by, if it reached a host that runs.
    pub(super) origins: BTreeMap<Ticket, Origin>,
    pub(super) seed: u64,
    /// The judge's: the link of each number, and what it made.
    pub chain: BTreeMap<u64, Entry>,
    /// The judge's: who had each lane.
    pub(super) lanes: BTreeMap<LaneId, (String, u64)>,
    pub trace: Option<Vec<String>>,
    /// What hosts refused of messages that no correct peer sends, where a test sends some.
    pub refused: Option<Vec<&'static str>>,
    rung: Time,
}

pub fn node(host: usize) -> NodeId {
    NodeId(host as u64 + 1)
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            hosts: Vec::new(),
            queue: Timeline::default(),
            now: Time(0),
            rng: Rng::new(seed),
            loss_percent: 0,
            jitter: Span(0),
            answers: BTreeMap::new(),
            tickets: 0,
            origins: BTreeMap::new(),
            seed,
            chain: BTreeMap::new(),
            lanes: BTreeMap::new(),
            trace: None,
            refused: None,
            rung: Time(0),
        }
    }

    /// A world of hosts that were born together with one keyspace.
    pub fn founded(seed: u64, hosts: usize) -> World {
        let mut world = World::new(seed);
        let ring = Ring::new(1, (0..hosts).map(born).collect());
        let settings = ENGINES[0].complete(&BTreeMap::new()).expect("defaults");
        let founded =
            NewKeyspace { name: "default".to_string(), engine: "groups".to_string(), settings };
        let founding = Founding { ring, keyspaces: Vec::from([founded]) };
        (0..hosts).for_each(|_| world.add(Some(founding.clone())));
        world.ring();
        world
    }

    /// Adds a host; one without a founding has joined.
    pub fn add(&mut self, founding: Option<Founding>) {
        let host = self.hosts.len();
        let settings =
            Settings { engines: ENGINES, founding, lanes: Vec::from([LaneId::KEYSPACES]) };
        self.hosts.push(Host {
            me: Incarnation { node: node(host), start: Start(0) },
            lane: None,
            settings,
            disk: Disk::default(),
            held: Vec::new(),
            is_syncing: false,
            timers: BTreeMap::new(),
            rng: Rng::new(host as u64),
            side: 0,
            standing: Standing::Up,
            stale: None,
            told: None,
        });
        self.start(host);
        self.ring();
    }

    pub fn start(&mut self, host: usize) {
        let seed = self.rng.next();
        let it = &mut self.hosts[host];
        if it.lane.is_some() {
            return;
        }
        it.me.start = it.me.start.next();
        (it.rng, it.told) = (Rng::new(seed), None);
        it.lane = Some(CatalogLane::new(it.settings.clone()));
        self.call(host, |lane, cx| lane.start(Recovery::Intact, cx));
        self.rung = Time(0);
    }

    pub fn crash(&mut self, host: usize) {
        let it = &mut self.hosts[host];
        it.lane = None;
        it.held.clear();
        it.is_syncing = false;
        it.timers.clear();
    }

    /// Orders something at a host; it has this long.
    pub fn order(&mut self, host: usize, order: KeyspaceOrder, within: Span) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let deadline = self.now + within;
        let before = self.hosts[host].lane.as_ref().map_or(0, |lane| lane.state.wishes);
        self.call(host, |lane, cx| {
            lane.on_control(ticket, Control::Keyspace(order), deadline, cx);
        });
        let it = &self.hosts[host];
        if let Some(lane) = it.lane.as_ref().filter(|lane| lane.state.wishes > before) {
            let origin = Origin { who: it.me, number: lane.state.wishes };
            self.origins.insert(ticket, origin);
        }
        ticket
    }

    /// A host hears news of its own node.
    pub fn hear(&mut self, host: usize, news: News<'_>) {
        self.call(host, |lane, cx| lane.on_news(news, cx));
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            if self.now >= self.rung + Span::millis(500) {
                self.ring();
            }
            let Some((at, event)) = self.queue.pop(end) else { break };
            self.now = at;
            self.take(event);
        }
        self.now = end;
    }

    /// Loses all that is under way.
    pub fn drop_messages(&mut self) {
        self.queue.retain(|event| !matches!(event, Event::Message { .. }));
    }

    /// Takes out what is under way from one host to another.
    pub fn hold(&mut self, from: usize, to: usize) -> Vec<(Incarnation, Box<Message>)> {
        let mut held = Vec::new();
        self.queue.retain(|event| match event {
            Event::Message { from: sender, to: target, message }
                if sender.node == node(from) && *target == node(to) =>
            {
                held.push((*sender, message.clone()));
                false
            }
            _ => true,
        });
        held
    }

    /// What was held arrives now.
    pub fn deliver(&mut self, held: Vec<(Incarnation, Box<Message>)>, to: usize) {
        for (from, message) in held {
            self.call(to, |lane, cx| lane.on_message(from, *message, cx));
        }
    }

    pub fn version(&self, host: usize) -> u64 {
        self.hosts[host].lane.as_ref().map_or(0, |lane| lane.state.version())
    }

    /// The names that a host's node was told.
    pub fn names(&self, host: usize) -> Vec<String> {
        let told = self.hosts[host].told.iter().flat_map(|told| &told.list);
        told.map(|(keyspace, _)| keyspace.name.clone()).collect()
    }

    /// Tells every host what the ring is: who is down or on another side is suspected.
    fn ring(&mut self) {
        self.rung = self.now;
        for host in 0..self.hosts.len() {
            let ring = self.hosts[host].stale.clone().unwrap_or_else(|| self.ring_of(host));
            self.call(host, |lane, cx| lane.on_news(News::Ring(&ring), cx));
        }
    }

    /// The ring as a host that hears all news believes it to be: who hears none is suspected too.
    pub fn ring_of(&self, host: usize) -> Arc<Ring> {
        let side = self.hosts[host].side;
        let hosts = self.hosts.iter().map(|it| {
            let is_suspected = it.lane.is_none() || it.side != side || it.stale.is_some();
            ring_host(it.me, it.standing, is_suspected)
        });
        Arc::new(Ring::new(self.now.0, hosts.collect()))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Message { from, to, message } => {
                let host = to.0 as usize - 1;
                let sender = from.node.0 as usize - 1;
                if self.hosts[host].side == self.hosts[sender].side {
                    self.note(|| format!("{} -> {}  {}", from.node.0, to.0, show(&message)));
                    self.call(host, |lane, cx| lane.on_message(from, *message, cx));
                }
            }
            Event::Timer { host, start, code } => {
                let it = &mut self.hosts[host];
                let is_due = it.timers.get(&code) == Some(&self.now) && it.me.start == start;
                if is_due && it.lane.is_some() {
                    it.timers.remove(&code);
                    let timer = Timer::from_code(code).expect("it was armed");
                    self.call(host, |lane, cx| lane.on_timer(timer, cx));
                }
            }
            Event::Sync { host, start } => {
                let it = &mut self.hosts[host];
                if it.me.start == start && it.lane.is_some() {
                    it.is_syncing = false;
                    let held = core::mem::take(&mut it.held);
                    held.into_iter().for_each(|held| self.release(host, held));
                }
            }
        }
    }

    fn release(&mut self, host: usize, held: Held) {
        let from = self.hosts[host].me;
        match held {
            Held::Write(class, key, value) => {
                self.hosts[host].disk.write(class, &key, value.as_ref());
            }
            Held::Send(to, message) => {
                let is_lost = to != from.node && self.rng.below(100) < self.loss_percent;
                let times = if self.rng.below(100) < self.loss_percent / 2 { 2 } else { 1 };
                for _ in 0..if is_lost { 0 } else { times } {
                    let at = self.now + self.delay();
                    let message = Box::new(message.clone());
                    self.queue.push(at, Event::Message { from, to, message });
                }
            }
            Held::Answer(ticket, outcome) => {
                self.note(|| format!("{} answers {outcome:?}", from.node.0));
                let before = self.answers.insert(ticket, outcome);
                assert!(before.is_none(), "{ticket:?} is answered once");
            }
            Held::Note(keyspaces) => self.hosts[host].told = Some(keyspaces),
        }
    }

    fn delay(&mut self) -> Span {
        let jitter = self.jitter.0;
        Span(Span::millis(1).0 + if jitter == 0 { 0 } else { self.rng.below(jitter) })
    }

    fn call(
        &mut self,
        host: usize,
        handler: impl FnOnce(&mut CatalogLane, &mut Context<'_, CatalogLane>),
    ) {
        let it = &mut self.hosts[host];
        let Some(lane) = &mut it.lane else { return };
        let mut fx = Effects::default();
        let mut cx = Context {
            me: it.me,
            lane: LaneId::CATALOG,
            now: self.now,
            wall: WallTime(0),
            rng: &mut it.rng,
            table: &it.disk,
            fx: &mut fx,
        };
        handler(lane, &mut cx);
        lane.check();
        let effects: Vec<_> = fx.drain().collect();
        for effect in effects {
            self.effect(host, effect);
        }
        self.judge(host);
        let it = &mut self.hosts[host];
        if !it.held.is_empty() && !it.is_syncing {
            it.is_syncing = true;
            let (start, at) = (it.me.start, self.now + self.delay());
            self.queue.push(at, Event::Sync { host, start });
        }
    }

    fn effect(&mut self, host: usize, effect: Effect<Message, Timer>) {
        let held = &mut self.hosts[host].held;
        match effect {
            Effect::Write { class, key, value } => held.push(Held::Write(class, key, value)),
            Effect::Send { to: Recipients::One(to), message, .. } => {
                held.push(Held::Send(to.node, message));
            }
            Effect::Send { to: Recipients::Group(nodes), message, .. } => {
                held.extend(nodes.iter().map(|node| Held::Send(*node, message.clone())));
            }
            Effect::Answer { ticket, outcome, .. } => held.push(Held::Answer(ticket, outcome)),
            Effect::Arm { timer, at } => {
                let start = self.hosts[host].me.start;
                self.hosts[host].timers.insert(timer.code(), at);
                self.queue.push(at, Event::Timer { host, start, code: timer.code() });
            }
            Effect::Disarm { timer } => drop(self.hosts[host].timers.remove(&timer.code())),
            Effect::Announce(Note::Keyspaces(keyspaces)) => held.push(Held::Note(keyspaces)),
            Effect::Announce(Note::Refused(what)) => {
                self.refused.as_mut().expect("correct peers send nothing such").push(what);
            }
            Effect::Announce(note) => panic!("the catalog does not say {note:?}"),
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now.0 / 1_000_000;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now:>5} ms  {}", line()));
        }
    }
}

fn born(host: usize) -> RingHost {
    ring_host(Incarnation { node: node(host), start: Start(0) }, Standing::Up, false)
}

fn ring_host(who: Incarnation, standing: Standing, is_suspected: bool) -> RingHost {
    RingHost {
        who,
        address: String::new(),
        zone: String::new(),
        tokens: Vec::from([u64::MAX / 64 * who.node.0]),
        standing,
        is_suspected,
        doors: Vec::new(),
    }
}

/// An order for a new keyspace.
pub fn create(name: &str, engine: &str) -> KeyspaceOrder {
    let (name, engine) = (name.to_string(), engine.to_string());
    KeyspaceOrder::Create(NewKeyspace { name, engine, settings: BTreeMap::new() })
}
