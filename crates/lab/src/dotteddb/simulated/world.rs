//! Nodes, machines, network and clients around one event queue.

use super::clients::Waiting;
use super::run::{Findings, Run, Traffic, costs};
use super::subject::Subject;
use super::table::{Stored, object_key};
use super::watch::Watch;
use bytes::{Bytes, BytesMut};
use quorate_kernel::effects::{Effect, Effects, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::news::News;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::{Context, Recovery, Request, Timer as _};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::Body;
use quorate_protocols::causal::map::Map;
use quorate_protocols::dots::object::Object;
use quorate_sim::delay::{Delay, Distribution};
use quorate_sim::queue::Queue;
use std::collections::HashMap;
use std::sync::Arc;

/// How long clients wait.
const DEADLINE: Span = Span::secs(10);
/// Timers of one engine, at most.
const TIMERS_MAX: usize = 4;

pub(super) struct Node<S> {
    pub me: Incarnation,
    pub partition: u16,
    pub engine: S,
    pub stored: Stored,
    pub is_up: bool,
    machine: usize,
    rng: Rng,
    timers: [Option<Time>; TIMERS_MAX],
}

pub(super) enum Event<M> {
    Message {
        from: Incarnation,
        to: usize,
        message: M,
    },
    Timer {
        node: usize,
        code: u32,
    },
    /// A client begins an update.
    Update,
    /// What a client asks reaches a node.
    Request {
        node: usize,
        ticket: u64,
        ask: Operation,
    },
    /// A node is replaced.
    Churn,
    /// A node hears who holds what.
    Place {
        node: usize,
        record: Arc<Keyspace>,
    },
}

pub(super) struct World<S: Subject> {
    pub run: Run,
    pub nodes: Vec<Node<S>>,
    /// The node at each partition.
    pub at: Vec<usize>,
    /// The catalog's record of who holds what.
    pub record: Keyspace,
    pub now: u64,
    pub rng: Rng,
    pub watch: Watch,
    queue: Queue<Event<S::Message>>,
    /// Until when each machine is busy.
    busy: Vec<u64>,
    busy_ns: u64,
    network: Delay,
    pub gap: Delay,
    fx: Option<Effects<S>>,
    arena: BytesMut,
    pub tickets: u64,
    pub waiting: HashMap<u64, Waiting>,
    pub live: Vec<bool>,
    pub live_count: u64,
    pub latency: Vec<u64>,
    /// The context that the last answer to nobody carried.
    pub seen: Option<Bytes>,
    pub is_loaded: bool,
    pub is_measuring: bool,
    pub traffic: Traffic,
    pub findings: Findings,
}

/// The id of the nth node; 64 bits, as they are drawn in life.
fn node_id(index: usize) -> NodeId {
    let index = index as u64 + 1;
    NodeId(index << 48 | mix(index) >> 16)
}

fn index_of(node: NodeId) -> usize {
    (node.0 >> 48) as usize - 1
}

/// An object as it was stored, with the context beside it.
pub(super) fn whole<S: Subject>(node: &Node<S>, key: &[u8], bytes: &Bytes) -> Object {
    let mut object = Object::from_bytes(bytes).expect("what an engine stores is an object");
    if let Some(beside) = node.engine.beside(node.partition, key) {
        object.context.merge(beside);
    }
    object
}

impl<S: Subject> World<S> {
    pub(super) fn new(run: &Run) -> World<S> {
        let ids: Vec<NodeId> = (0..usize::from(run.nodes)).map(node_id).collect();
        let exponential = |mean_us: u64| Delay::new(&Distribution::Exponential { mean_us });
        let mut world = World {
            run: run.clone(),
            nodes: Vec::new(),
            at: Vec::new(),
            record: run.record(&ids),
            now: 0,
            rng: Rng::new(run.seed),
            watch: Watch::new(run),
            queue: Queue::default(),
            busy: vec![0; run.machines],
            busy_ns: 0,
            network: exponential(costs::NETWORK_US),
            gap: exponential(1_000_000 / run.rate.max(1)),
            fx: Some(Effects::default()),
            arena: BytesMut::new(),
            tickets: 0,
            waiting: HashMap::new(),
            live: vec![true; run.keys as usize],
            live_count: u64::from(run.keys),
            latency: Vec::new(),
            seen: None,
            is_loaded: false,
            is_measuring: false,
            traffic: Traffic::default(),
            findings: Findings::default(),
        };
        // One after the other, so that their timers do not fire together for ever.
        let gap = run.strip_us * 1000 / u64::from(run.nodes);
        for partition in 0..run.nodes {
            let node = world.add(partition);
            world.at.push(node);
            world.run_until(world.now + gap);
        }
        world
    }

    /// A new node for a partition; it holds what the present map gives it.
    pub(super) fn add(&mut self, partition: u16) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node {
            me: Incarnation { node: node_id(index), start: Start(1) },
            partition,
            engine: S::born(&self.run, &Map::of(&self.record)),
            stored: Stored::default(),
            is_up: true,
            machine: usize::from(partition) % self.run.machines,
            rng: self.rng.fork(index as u64),
            timers: [None; TIMERS_MAX],
        });
        self.step(index, |engine, cx| engine.start(Recovery::Intact, cx));
        index
    }

    pub(super) fn next_id(&self) -> NodeId {
        node_id(self.nodes.len())
    }

    pub(super) fn push(&mut self, at: u64, event: Event<S::Message>) {
        self.queue.push(at, event);
    }

    /// Runs until a time.
    pub(super) fn run_until(&mut self, end: u64) {
        while let Some((at, event)) = self.queue.pop_by(end) {
            self.now = at;
            self.findings.events += 1;
            self.happen(event);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event<S::Message>) {
        match event {
            Event::Message { from, to, message } => {
                self.step(to, |engine, cx| engine.on_message(from, message, cx));
            }
            Event::Timer { node, code } => {
                let deadline = &mut self.nodes[node].timers[code as usize];
                if deadline.is_some_and(|at| at.0 <= self.now) {
                    *deadline = None;
                    let timer = S::Timer::from_code(code).expect("it was armed");
                    self.step(node, |engine, cx| engine.on_timer(timer, cx));
                    // Contexts beside objects go without a write.
                    let (now, Node { engine, partition, .. }) = (self.now, &self.nodes[node]);
                    let is_left =
                        |key: &[u8]| S::IS_WHOLE || engine.beside(*partition, key).is_some();
                    self.watch.keep(*partition, is_left, now);
                }
            }
            Event::Update => self.begin_update(),
            Event::Request { node, ticket, ask } => {
                self.step(node, |engine, cx| {
                    let request = Request { operation: ask, deadline: cx.now + DEADLINE };
                    engine.on_request(Ticket(ticket), request, cx);
                });
            }
            Event::Churn => self.replace_one(),
            Event::Place { node, record } => {
                let news = News::Keyspace(&record);
                self.step(node, |engine, cx| engine.on_news(news, cx));
            }
        }
    }

    /// One step of a node. It begins when its machine is free, and what it asks for happens when it
    /// is done.
    pub(super) fn step(&mut self, index: usize, handler: impl FnOnce(&mut S, &mut Context<'_, S>)) {
        let Some(node) = self.nodes.get_mut(index).filter(|node| node.is_up) else { return };
        let begin = self.now.max(self.busy[node.machine]);
        let mut fx = self.fx.take().expect("no step runs inside another");
        let mut cx = Context {
            me: node.me,
            lane: LaneId(1),
            now: Time(begin),
            wall: WallTime(0),
            rng: &mut node.rng,
            table: &node.stored,
            fx: &mut fx,
        };
        handler(&mut node.engine, &mut cx);
        let (machine, reads) = (node.machine, node.stored.take_reads());
        let effects: Vec<Effect<S::Message, S::Timer>> = fx.drain().collect();
        self.fx = Some(fx);
        let is_write = |effect: &&Effect<_, _>| matches!(effect, Effect::Write { .. });
        let writes = effects.iter().filter(is_write).count() as u64;
        let mut cost = costs::STEP + reads * costs::READ + writes * costs::WRITE;
        cost += if writes > 0 { costs::BATCH } else { 0 };
        let sizes: Vec<usize> = effects.iter().map(|effect| self.size(effect)).collect();
        cost += sizes.iter().sum::<usize>() as u64 * costs::BYTE;
        if self.is_loaded {
            self.busy[machine] = begin + cost;
            self.busy_ns += cost;
        }
        for (effect, size) in effects.into_iter().zip(sizes) {
            self.take(index, begin + cost, effect, size);
        }
    }

    fn size(&mut self, effect: &Effect<S::Message, S::Timer>) -> usize {
        match effect {
            Effect::Send { message, .. } => {
                Body::encode(message, &mut self.arena).expect("it fits").frame_bytes()
            }
            _ => 0,
        }
    }

    fn take(&mut self, from: usize, at: u64, effect: Effect<S::Message, S::Timer>, size: usize) {
        match effect {
            Effect::Write { class, key, value } => self.write(from, at, class, key, value),
            Effect::Send { to: Recipients::One(to), message, .. } => {
                self.transmit(from, at, index_of(to.node), message, size);
            }
            Effect::Send { to: Recipients::Group(_), .. } => {
                panic!("engines that keep siblings speak to one node at a time")
            }
            Effect::Arm { timer, at } => {
                let code = timer.code();
                self.nodes[from].timers[code as usize] = Some(at);
                self.push(at.0, Event::Timer { node: from, code });
            }
            Effect::Disarm { timer } => {
                self.nodes[from].timers[timer.code() as usize] = None;
            }
            Effect::Answer { ticket, outcome, .. } => self.answered(ticket.0, outcome, at),
            Effect::Announce(_) => {}
        }
    }

    fn write(&mut self, node: usize, at: u64, class: Class, key: Bytes, value: Option<Bytes>) {
        let node = &mut self.nodes[node];
        if self.is_loaded
            && class == Class::Data
            && let Some(client_key) = object_key(&key)
        {
            let object = value.as_ref().map(|bytes| whole(node, client_key, bytes));
            self.watch.on_write(node.partition, client_key, object.as_ref(), at);
        }
        node.stored.write(class, key, value);
    }

    fn transmit(&mut self, from: usize, at: u64, to: usize, message: S::Message, size: usize) {
        if let Some(carried) = S::carried(&message) {
            self.traffic.messages += 1;
            self.traffic.data += carried.data as u64;
            self.traffic.clocks += carried.clocks as u64;
            self.traffic.protocol += (size - carried.data - carried.clocks) as u64;
        }
        let is_lossy = self.is_loaded && S::is_replication(&message);
        if is_lossy && self.rng.chance_ppm(self.run.loss_ppm) {
            return;
        }
        let way = if from == to { 0 } else { self.way() };
        let from = self.nodes[from].me;
        self.push(at + way, Event::Message { from, to, message });
    }

    pub(super) fn way(&mut self) -> u64 {
        self.network.sample(&mut self.rng)
    }

    /// How much of the machines' time was used since this was last asked, in nanoseconds.
    pub(super) fn take_busy(&mut self) -> u64 {
        std::mem::take(&mut self.busy_ns)
    }
}
