//! A small world of overlays: seeded latencies, loss, partitions, crashes and restarts.

use crate::overlay::message::Message;
use crate::overlay::timer::Timer;
use crate::overlay::{Overlay, Settings};
use crate::testing::disk::Disk;
use crate::testing::timeline::Timeline;
use quorate_kernel::effects::{Effect, Effects, Note, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Timer as _};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::time::{Span, Time, WallTime};
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

struct Host {
    me: Incarnation,
    overlay: Option<Overlay>,
    settings: Settings,
    disk: Disk,
    rng: Rng,
    timers: BTreeMap<u32, Time>,
    peers: BTreeMap<NodeId, Start>,
    /// Nothing happens here until then: the host is paused.
    frozen_until: Time,
    ring: Arc<Ring>,
    side: u8,
    sent: u64,
}

enum Event {
    Message { from: Incarnation, to: Incarnation, message: Message },
    Timer { host: usize, life: Start, code: u32 },
}

/// The world.
pub(super) struct World {
    hosts: Vec<Host>,
    queue: Timeline<Event>,
    pub now: Time,
    rng: Rng,
    /// How many messages in a million are lost.
    pub loss_ppm: u32,
    /// Links that carry nothing, from and to.
    pub cut: BTreeSet<(usize, usize)>,
    pub answers: Vec<Outcome>,
}

/// The node id of a host.
pub(super) fn node(host: usize) -> NodeId {
    NodeId(mix(host as u64 + 77))
}

fn who(host: usize, start: u32) -> Incarnation {
    Incarnation { node: node(host), start: Start(start) }
}

fn ring_host(host: usize) -> RingHost {
    RingHost {
        who: who(host, 0),
        address: format!("host-{host}:7000"),
        zone: String::new(),
        tokens: Vec::new(),
        standing: Standing::Up,
        is_suspected: false,
        doors: Vec::new(),
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            hosts: Vec::new(),
            queue: Timeline::default(),
            now: Time(0),
            rng: Rng::new(seed),
            loss_ppm: 0,
            cut: BTreeSet::new(),
            answers: Vec::new(),
        }
    }

    /// A world of hosts that were founded together and have settled.
    pub fn founded(seed: u64, hosts: usize) -> World {
        let mut world = World::new(seed);
        let known: Vec<usize> = (0..hosts).collect();
        (0..hosts).for_each(|_| world.add(&known));
        world.run(Span::secs(10));
        world
    }

    /// Adds a host that knows some others.
    pub fn add(&mut self, known: &[usize]) {
        let host = self.hosts.len();
        let settings = Settings {
            address: format!("host-{host}:7000"),
            zone: String::new(),
            doors: Vec::new(),
            tokens: Vec::from([mix(host as u64), mix(host as u64 + 1000)]),
            hosts: known.iter().map(|host| ring_host(*host)).collect(),
            balance: None,
        };
        self.hosts.push(Host {
            me: who(host, 0),
            overlay: None,
            settings,
            disk: Disk::default(),
            rng: self.rng.fork(host as u64),
            timers: BTreeMap::new(),
            peers: BTreeMap::new(),
            frozen_until: Time(0),
            ring: Arc::default(),
            side: 0,
            sent: 0,
        });
        self.start(host);
    }

    /// Starts a host, again if it has crashed.
    pub fn start(&mut self, host: usize) {
        let one = &mut self.hosts[host];
        one.me.start = one.me.start.next();
        one.overlay = Some(Overlay::new(one.settings.clone()));
        self.step(host, |overlay, cx| overlay.start(Recovery::Intact, cx));
    }

    pub fn crash(&mut self, host: usize) {
        let one = &mut self.hosts[host];
        one.overlay = None;
        one.timers.clear();
        one.peers.clear();
    }

    /// Loses everything a host has stored.
    pub fn wipe(&mut self, host: usize) {
        self.hosts[host].disk = Disk::default();
    }

    pub fn freeze(&mut self, host: usize, span: Span) {
        self.hosts[host].frozen_until = self.now + span;
    }

    /// Divides the hosts; messages pass between those of one side.
    pub fn partition(&mut self, side: impl Fn(usize) -> u8) {
        for (host, one) in self.hosts.iter_mut().enumerate() {
            one.side = side(host);
        }
    }

    /// Gives an order that may be answered later, or never.
    pub fn tell(&mut self, host: usize, control: Control) {
        let deadline = self.now + Span::secs(1);
        self.step(host, |overlay, cx| overlay.on_control(Ticket(1), control, deadline, cx));
    }

    pub fn order(&mut self, host: usize, control: Control) -> Outcome {
        let before = self.answers.len();
        self.tell(host, control);
        assert_eq!(self.answers.len(), before + 1, "an order is answered");
        self.answers[before].clone()
    }

    pub fn ring(&self, host: usize) -> &Ring {
        &self.hosts[host].ring
    }

    pub fn overlay(&self, host: usize) -> &Overlay {
        self.hosts[host].overlay.as_ref().expect("the host is up")
    }

    pub fn overlay_mut(&mut self, host: usize) -> &mut Overlay {
        self.hosts[host].overlay.as_mut().expect("the host is up")
    }

    pub fn is_up(&self, host: usize) -> bool {
        self.hosts[host].overlay.is_some()
    }

    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    pub fn sent(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.sent).collect()
    }

    /// How a host sees another: its standing, and whether it is suspected.
    pub fn sees(&self, host: usize, other: usize) -> Option<(Standing, bool)> {
        let seen = self.ring(host).host(node(other))?;
        Some((seen.standing, seen.is_suspected))
    }

    pub fn start_seen(&self, host: usize, other: usize) -> Option<u32> {
        Some(self.ring(host).host(node(other))?.who.start.0)
    }

    /// Delivers a message as if a host had sent it.
    pub fn inject(&mut self, from: Incarnation, to: usize, message: Message) {
        self.step(to, |overlay, cx| overlay.on_message(from, message, cx));
    }

    /// Runs until a condition holds; returns how long that took.
    pub fn until(&mut self, limit: Span, holds: impl Fn(&World) -> bool) -> Option<Span> {
        let begin = self.now;
        while !holds(self) {
            if self.now - begin > limit {
                return None;
            }
            self.run(Span::millis(100));
        }
        Some(self.now - begin)
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some((at, event)) = self.queue.pop(end) {
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Timer { host, life, code } => {
                let one = &mut self.hosts[host];
                if one.me.start != life || one.timers.get(&code).is_none_or(|at| *at > self.now) {
                    return;
                }
                if one.frozen_until > self.now {
                    let until = one.frozen_until;
                    return self.queue.push(until, Event::Timer { host, life, code });
                }
                one.timers.remove(&code);
                let timer = Timer::from_code(code).expect("it was armed");
                self.step(host, |overlay, cx| overlay.on_timer(timer, cx));
            }
            Event::Message { from, to, message } => {
                let is_it = |one: &Host| one.me.node == to.node;
                let Some(host) = self.hosts.iter().position(is_it) else { return };
                let one = &mut self.hosts[host];
                if one.overlay.is_none() || (to.start.0 != 0 && to.start != one.me.start) {
                    return;
                }
                if one.frozen_until > self.now {
                    let until = one.frozen_until;
                    return self.queue.push(until, Event::Message { from, to, message });
                }
                let highest = one.peers.entry(from.node).or_default();
                if *highest <= from.start {
                    *highest = from.start;
                    self.step(host, |overlay, cx| overlay.on_message(from, message, cx));
                }
            }
        }
    }

    fn step(&mut self, host: usize, handler: impl FnOnce(&mut Overlay, &mut Context<'_, Overlay>)) {
        let one = &mut self.hosts[host];
        let Some(overlay) = &mut one.overlay else { return };
        let mut fx = Effects::default();
        let mut cx = Context {
            me: one.me,
            lane: LaneId::OVERLAY,
            now: self.now,
            wall: WallTime(0),
            rng: &mut one.rng,
            table: &one.disk,
            fx: &mut fx,
        };
        handler(overlay, &mut cx);
        overlay.check();
        let effects: Vec<_> = fx.drain().collect();
        effects.into_iter().for_each(|effect| self.take(host, effect));
    }

    fn take(&mut self, host: usize, effect: Effect<Message, Timer>) {
        let one = &mut self.hosts[host];
        match effect {
            Effect::Write { class, key, value } => {
                assert!(value.is_some(), "nothing is deleted");
                one.disk.write(class, &key, value.as_ref());
            }
            Effect::Send { to, message, .. } => {
                let (from, mut targets) = (one.me, Vec::new());
                match to {
                    Recipients::One(to) => targets.push(to),
                    Recipients::Group(nodes) => targets.extend(
                        nodes.iter().map(|node| Incarnation { node: *node, start: Start(0) }),
                    ),
                }
                one.sent += targets.len() as u64;
                targets.into_iter().for_each(|to| self.transmit(host, from, to, message.clone()));
            }
            Effect::Answer { outcome, .. } => self.answers.push(outcome),
            Effect::Arm { timer, at } => {
                one.timers.insert(timer.code(), at);
                let life = one.me.start;
                self.queue.push(at, Event::Timer { host, life, code: timer.code() });
            }
            Effect::Disarm { timer } => {
                one.timers.remove(&timer.code());
            }
            Effect::Announce(Note::Ring(ring)) => one.ring = ring,
            Effect::Announce(_) => unreachable!("an overlay takes loads in"),
        }
    }

    fn transmit(&mut self, host: usize, from: Incarnation, to: Incarnation, message: Message) {
        let Some(target) = self.hosts.iter().position(|one| one.me.node == to.node) else { return };
        let is_apart = self.hosts[host].side != self.hosts[target].side;
        let is_lost = self.rng.chance_ppm(self.loss_ppm);
        let delay = Span::micros(self.rng.between(200, 20_000));
        if !is_apart && !is_lost && !self.cut.contains(&(host, target)) {
            self.queue.push(self.now + delay, Event::Message { from, to, message });
        }
    }
}
