//! Many overlays and nothing else: what membership costs, and how fast it converges.
//!
//! It drives the protocol of the overlay's lane directly, without a node around it, so a thousand
//! of them run many times faster than in real time. Messages stay values by default; `--encode`
//! puts each through its bytes, as hosts do, to account for that too.

use crate::delay::{Delay, Distribution};
use bytes::{Bytes, BytesMut};
use clap::Args;
use quorate_kernel::effects::{Effect, Effects, Note, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start};
use quorate_kernel::process::{Context, Process, Recovery, Table, Timer as _};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::Body;
use quorate_protocols::overlay::message::Message;
use quorate_protocols::overlay::timer::Timer;
use quorate_protocols::overlay::{Overlay, Settings};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Runs the overlays of many hosts, crashes one, and tells what it cost.
#[derive(Args, Clone, Debug)]
pub struct OverlayArgs {
    /// How many hosts.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(2..=4096))]
    pub nodes: u64,
    /// How many simulated seconds, after the hosts have settled.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// How many positions each host has on the ring.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub tokens: u64,
    /// The mean of the exponential one-way delay in microseconds.
    #[arg(long, default_value_t = 1000, value_name = "US")]
    pub delay_us: u64,
    /// Decides everything.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Encodes and decodes every message.
    #[arg(long)]
    pub encode: bool,
}

/// Nothing is ever stored here: nobody restarts.
struct NoTable;

impl Table for NoTable {
    fn get(&self, _class: Class, _key: &Bytes) -> Option<Bytes> {
        None
    }

    fn scan(&self, _class: Class, _from: &[u8], _each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {}
}

struct Host {
    me: Incarnation,
    overlay: Overlay,
    rng: Rng,
    /// The deadline of each timer, by its code.
    timers: [Option<Time>; 3],
    ring: Arc<Ring>,
    is_up: bool,
}

enum Event {
    Message { from: u32, to: u32, message: Message },
    Timer { host: u32, code: u32 },
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    messages: u64,
    bytes: u64,
    events: u64,
    writes: u64,
}

struct World {
    hosts: Vec<Host>,
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    slab: Vec<Option<Event>>,
    free: Vec<u32>,
    sequence: u64,
    now: Time,
    delay: Delay,
    rng: Rng,
    fx: Option<Effects<Overlay>>,
    arena: BytesMut,
    must_encode: bool,
    counts: Counts,
}

/// Node ids ascend with the index, so that finding a host is a shift.
const ID_SHIFT: u32 = 32;

fn node(host: usize) -> NodeId {
    NodeId((host as u64 + 1) << ID_SHIFT)
}

fn index(node: NodeId) -> u32 {
    (node.0 >> ID_SHIFT) as u32 - 1
}

impl World {
    fn new(args: &OverlayArgs) -> World {
        let count = args.nodes as usize;
        let mut rng = Rng::new(args.seed);
        // Drawn by chance, so that a host with several has several neighbours: the worst case.
        let mut positions = || {
            let mut tokens: Vec<u64> = (0..args.tokens).map(|_| rng.next()).collect();
            tokens.sort_unstable();
            tokens
        };
        let tokens: Vec<Vec<u64>> = (0..count).map(|_| positions()).collect();
        let who = |host: usize| Incarnation { node: node(host), start: Start(1) };
        let known: Vec<RingHost> = (0..count)
            .map(|host| RingHost {
                // Nobody was heard yet in its present start, which is the first.
                who: Incarnation { start: Start(0), ..who(host) },
                address: format!("10.0.{}.{}:7400", host / 256, host % 256),
                zone: String::new(),
                tokens: tokens[host].clone(),
                standing: Standing::Up,
                is_suspected: false,
            })
            .collect();
        let host = |index: usize| Host {
            me: who(index),
            overlay: Overlay::new(Settings {
                address: known[index].address.clone(),
                zone: String::new(),
                tokens: tokens[index].clone(),
                hosts: known.clone(),
                replicas_max: 3,
                balance: None,
            }),
            rng: rng.fork(index as u64),
            timers: [None; 3],
            ring: Arc::default(),
            is_up: true,
        };
        let hosts = (0..count).map(host).collect();
        let mut world = World {
            hosts,
            heap: BinaryHeap::new(),
            slab: Vec::new(),
            free: Vec::new(),
            sequence: 0,
            now: Time(0),
            delay: Delay::new(&Distribution::Exponential { mean_us: args.delay_us }),
            rng,
            fx: Some(Effects::default()),
            arena: BytesMut::new(),
            must_encode: args.encode,
            counts: Counts::default(),
        };
        for host in 0..count {
            world.step(host as u32, |overlay, cx| overlay.start(Recovery::Intact, cx));
        }
        world
    }

    fn push(&mut self, at: Time, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slab[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slab.push(Some(event));
                self.slab.len() as u32 - 1
            }
        };
        self.sequence += 1;
        self.heap.push(Reverse((at.0, self.sequence, slot)));
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(Reverse((at, _, slot))) = self.heap.peek().copied() {
            if at > end.0 {
                break;
            }
            self.heap.pop();
            self.now = Time(at);
            let event = self.slab[slot as usize].take().expect("every entry has an event");
            self.free.push(slot);
            self.counts.events += 1;
            self.happen(event);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Message { from, to, message } => {
                let from = self.hosts[from as usize].me;
                self.step(to, |overlay, cx| overlay.on_message(from, message, cx));
            }
            Event::Timer { host, code } => {
                let deadline = &mut self.hosts[host as usize].timers[code as usize];
                if deadline.is_some_and(|at| at <= self.now) {
                    *deadline = None;
                    let timer = Timer::from_code(code).expect("it was armed");
                    self.step(host, |overlay, cx| overlay.on_timer(timer, cx));
                }
            }
        }
    }

    fn step(&mut self, index: u32, handler: impl FnOnce(&mut Overlay, &mut Context<'_, Overlay>)) {
        let host = &mut self.hosts[index as usize];
        if !host.is_up {
            return;
        }
        let mut fx = self.fx.take().expect("no step runs inside another");
        let mut cx = Context {
            me: host.me,
            lane: LaneId::OVERLAY,
            now: self.now,
            wall: WallTime(0),
            rng: &mut host.rng,
            table: &NoTable,
            fx: &mut fx,
        };
        handler(&mut host.overlay, &mut cx);
        for effect in fx.drain() {
            self.take(index, effect);
        }
        self.fx = Some(fx);
    }

    fn take(&mut self, from: u32, effect: Effect<Message, Timer>) {
        match effect {
            Effect::Send { to, message, .. } => {
                let message = if self.must_encode { self.through_bytes(&message) } else { message };
                match to {
                    Recipients::One(to) => self.transmit(from, to.node, message),
                    Recipients::Group(nodes) => {
                        nodes.iter().for_each(|to| self.transmit(from, *to, message.clone()));
                    }
                }
            }
            Effect::Arm { timer, at } => {
                let code = timer.code();
                self.hosts[from as usize].timers[code as usize] = Some(at);
                self.push(at, Event::Timer { host: from, code });
            }
            Effect::Disarm { timer } => {
                self.hosts[from as usize].timers[timer.code() as usize] = None;
            }
            Effect::Announce(Note::Ring(ring)) => self.hosts[from as usize].ring = ring,
            Effect::Write { .. } => self.counts.writes += 1,
            Effect::Answer { .. } | Effect::Announce(_) => {}
        }
    }

    fn through_bytes(&mut self, message: &Message) -> Message {
        let body = Body::encode(message, &mut self.arena).expect("it fits");
        self.counts.bytes += body.frame_bytes() as u64;
        body.decode().expect("what was encoded is decoded")
    }

    fn transmit(&mut self, from: u32, to: NodeId, message: Message) {
        self.counts.messages += 1;
        let at = self.now + Span(self.delay.sample(&mut self.rng));
        self.push(at, Event::Message { from, to: index(to), message });
    }

    /// Runs until a condition holds at every host that is up; returns how long that took.
    fn until(&mut self, limit: Span, holds: impl Fn(&Ring) -> bool) -> Option<Span> {
        let begin = self.now;
        while !self.hosts.iter().filter(|host| host.is_up).all(|host| holds(&host.ring)) {
            if self.now - begin > limit {
                return None;
            }
            self.run(Span::millis(100));
        }
        Some(self.now - begin)
    }
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct OverlayReport {
    nodes: u64,
    seconds: u64,
    /// Until every host knew every other in its present start.
    settled: Option<Span>,
    /// Until every host suspected one that crashed.
    noticed: Option<Span>,
    counts: [u64; 4],
    wall_seconds: f64,
}

impl OverlayReport {
    /// Whether everybody settled, and noticed the crash.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.settled.is_some() && self.noticed.is_some()
    }
}

impl fmt::Display for OverlayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [messages, bytes, events, writes] = self.counts;
        let host_seconds = (self.nodes * self.seconds) as f64;
        let seconds = |span: Option<Span>| match span {
            Some(span) => format!("{:.1} s", span.0 as f64 / 1e9),
            None => "never".to_owned(),
        };
        writeln!(
            f,
            "{} hosts, {} s simulated in {:.2} s",
            self.nodes, self.seconds, self.wall_seconds
        )?;
        writeln!(f, "all know all after       {}", seconds(self.settled))?;
        writeln!(f, "a crash is known after   {}", seconds(self.noticed))?;
        writeln!(f, "messages/s per host      {:.2}", messages as f64 / host_seconds)?;
        if bytes > 0 {
            // A message to several is encoded once, so these are the bytes of distinct messages.
            writeln!(f, "bytes encoded/s per host {:.0}", bytes as f64 / host_seconds)?;
        }
        writeln!(f, "events/s per host        {:.2}", events as f64 / host_seconds)?;
        writeln!(f, "writes/s per host        {:.4}", writes as f64 / host_seconds)?;
        let percent = 100.0 * self.wall_seconds / host_seconds;
        writeln!(f, "CPU per host             {percent:.4} % of a core")?;
        write!(f, "faster than real time    {:.0}x", self.seconds as f64 / self.wall_seconds)
    }
}

/// Runs it.
#[must_use]
pub fn run(args: &OverlayArgs) -> OverlayReport {
    let mut world = World::new(args);
    let all = args.nodes as usize;
    let is_settled = |ring: &Ring| {
        let mut hosts = ring.hosts().iter();
        ring.hosts().len() == all && hosts.all(|host| host.who.start.0 == 1 && !host.is_suspected)
    };
    let settled = world.until(Span::secs(120), is_settled);
    // The first news of everybody's start is over before anything is measured.
    world.run(Span::secs(10));
    world.counts = Counts::default();
    let begin = Instant::now();
    world.run(Span::secs(args.seconds));
    let wall_seconds = begin.elapsed().as_secs_f64();
    let Counts { messages, bytes, events, writes } = world.counts;
    let victim = all / 2;
    world.hosts[victim].is_up = false;
    let noticed = world.until(Span::secs(60), |ring| ring.is_suspected(node(victim)));
    OverlayReport {
        nodes: args.nodes,
        seconds: args.seconds,
        settled,
        noticed,
        counts: [messages, bytes, events, writes],
        wall_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_converges_and_repeats() {
        let args = |encode| OverlayArgs {
            nodes: 40,
            seconds: 20,
            tokens: 2,
            delay_us: 1000,
            seed: 3,
            encode,
        };
        let (first, second) = (run(&args(false)), run(&args(true)));
        assert!(first.is_converged(), "{first}");
        assert_eq!(first.counts[0], second.counts[0], "encoding changes nothing");
        assert!(first.noticed == second.noticed && second.counts[1] > 0);
    }
}
