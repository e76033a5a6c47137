//! A small world of nodes: seeded latencies, loss, duplication, partitions, pauses, and crashes
//! that take what was not synced.

use super::judge::Judge;
use super::node::{Happened, Node, member};
use crate::membership::{
    Configuration, Context, Event as Told, Message, Number, Roll, Shape, Status, TICK,
};
use crate::testing::timeline::Timeline;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

pub enum Event {
    Message { from: usize, start: Start, to: NodeId, message: Box<Message> },
    Tick { node: usize, start: Start },
    Sync { node: usize, start: Start },
}

/// How a world is.
#[derive(Clone, Debug)]
pub struct Setup {
    pub seed: u64,
    pub founders: u64,
    /// The longest way of a message, and the longest sync, beyond a millisecond.
    pub jitter: Span,
    /// Whether messages are written and read on their way.
    pub is_encoded: bool,
}

/// Says of a message from one node to another whether it is lost.
pub type Loses = Box<dyn FnMut(usize, usize, &Message) -> bool>;

pub struct World {
    pub setup: Setup,
    pub nodes: Vec<Node>,
    pub queue: Timeline<Event>,
    pub now: Time,
    pub rng: Rng,
    pub loss_percent: u64,
    /// Which side of a partition each node is on.
    pub side: Vec<u8>,
    /// From whom nothing reaches whom.
    pub deaf: BTreeSet<(usize, usize)>,
    /// How many percent of what is sent to a node are lost.
    pub ingress_loss: BTreeMap<usize, u64>,
    pub loses: Option<Loses>,
    /// Nodes whose disks do not sync.
    pub holds: BTreeSet<usize>,
    /// Nodes that stand still until then.
    pub paused: BTreeMap<usize, Time>,
    pub judge: Judge,
    known: Vec<Number>,
    pub told: BTreeMap<&'static str, usize>,
    pub messages: u64,
    pub shows_probes: bool,
    pub trace: Option<Vec<String>>,
}

impl World {
    /// Starts the founders, nodes 1 and so on.
    pub fn new(setup: Setup) -> World {
        let mut world = World {
            nodes: Vec::new(),
            queue: Timeline::default(),
            now: Time(0),
            rng: Rng::new(setup.seed),
            loss_percent: 0,
            side: Vec::new(),
            deaf: BTreeSet::new(),
            ingress_loss: BTreeMap::new(),
            loses: None,
            holds: BTreeSet::new(),
            paused: BTreeMap::new(),
            judge: Judge::default(),
            known: Vec::new(),
            told: BTreeMap::new(),
            messages: 0,
            shows_probes: false,
            trace: None,
            setup,
        };
        let founders: Vec<_> = (1..=world.setup.founders).map(member).collect();
        let founding = Configuration::founding(Shape::DEFAULT, &founders);
        for id in 1..=world.setup.founders {
            let founding = founding.clone();
            world.add(Node::new(id, founding, Vec::new()));
        }
        world
    }

    /// A world without jitter.
    pub fn calm(founders: u64) -> World {
        World::new(Setup { seed: 1, founders, jitter: Span(0), is_encoded: true })
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.side.push(0);
        self.known.push(Number(0));
        self.start(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// A new node, that asks these to be let in.
    pub fn join(&mut self, seeds: &[usize]) -> usize {
        let seeds = seeds.iter().map(|seed| NodeId(*seed as u64 + 1)).collect();
        self.add(Node::new(self.nodes.len() as u64 + 1, None, seeds))
    }

    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].roll.is_some()
    }

    pub fn start(&mut self, node: usize) {
        self.note(|| format!("{} starts", node + 1));
        self.known[node] = Number(0);
        let happened = self.nodes[node].start(self.now);
        self.after(node, happened);
        let start = self.nodes[node].me.start;
        // Ticks of different nodes do not fall together.
        let first = Span(self.rng.below(TICK.0));
        let first = if self.setup.jitter.0 == 0 { TICK } else { first };
        self.queue.push(self.now + first, Event::Tick { node, start });
    }

    pub fn crash(&mut self, node: usize) {
        self.note(|| format!("{} crashes", node + 1));
        self.nodes[node].crash();
        self.paused.remove(&node);
    }

    pub fn turn(&mut self, node: usize, handler: impl FnOnce(&mut Roll, &mut Context<'_>)) {
        let happened = self.nodes[node].turn(self.now, handler);
        self.after(node, happened);
    }

    pub fn run_ms(&mut self, millis: u64) {
        let end = self.now + Span::millis(millis);
        while let Some((at, event)) = self.queue.pop(end) {
            self.now = at;
            self.take(event);
            if let Some(why) = self.judge.verdict() {
                panic!("seed {}: judge: {why}", self.setup.seed);
            }
        }
        self.now = end;
    }

    /// Runs until something holds, which must be within some time.
    pub fn run_until(&mut self, what: &str, holds: impl Fn(&World) -> bool) {
        let end = self.now + Span::secs(120);
        while !holds(self) {
            assert!(self.now < end, "seed {}: {what}", self.setup.seed);
            self.run_ms(100);
        }
    }

    fn take(&mut self, event: Event) {
        let node = match &event {
            Event::Message { to, .. } => to.0 as usize - 1,
            Event::Tick { node, .. } | Event::Sync { node, .. } => *node,
        };
        if let Some(until) = self.paused.get(&node).copied() {
            if until > self.now {
                return self.queue.push(until, event);
            }
            self.paused.remove(&node);
        }
        match event {
            Event::Message { from, start, to, message } => self.deliver(from, start, to, *message),
            Event::Tick { node, start } if self.is_of(node, start) => {
                self.turn(node, Roll::tick);
                self.queue.push(self.now + TICK, Event::Tick { node, start });
            }
            Event::Sync { node, start } if self.is_of(node, start) => {
                self.nodes[node].is_syncing = false;
                let happened = self.nodes[node].sync();
                self.after(node, happened);
            }
            _ => {}
        }
    }

    fn is_of(&self, node: usize, start: Start) -> bool {
        self.is_up(node) && self.nodes[node].me.start == start
    }

    fn deliver(&mut self, from: usize, start: Start, to: NodeId, message: Message) {
        let node = to.0 as usize - 1;
        let is_cut = self.side[from] != self.side[node] || self.deaf.contains(&(from, node));
        if (is_cut && from != node) || !self.is_up(node) {
            return;
        }
        if from == node && start != self.nodes[node].me.start {
            return;
        }
        let sender = Incarnation { node: NodeId(from as u64 + 1), start };
        if self.shows_probes || !message.is_probe() {
            let (at, body) = (message.roll, &message.body);
            let line = format!("{} -> {}  {at:?} {body:?}", from + 1, to.0);
            self.note(|| line);
        }
        self.turn(node, |roll, cx| roll.on_message(sender, message, cx));
    }

    /// What a step at a node has caused.
    pub fn after(&mut self, node: usize, happened: Vec<Happened>) {
        let id = NodeId(node as u64 + 1);
        if let Some(roll) = &self.nodes[node].roll {
            let number = roll.roll().number;
            if number != self.known[node] {
                self.judge.installed(id, roll.configuration(), self.known[node]);
                self.known[node] = number;
            }
        }
        for one in happened {
            match one {
                Happened::Sent { to, message } => self.transmit(node, to, message),
                Happened::Told(event) => self.hear(node, &event),
                Happened::Refused(what) => panic!(
                    "seed {}: {id:?} refuses what a correct peer said: {what}",
                    self.setup.seed
                ),
            }
        }
        if self.nodes[node].has_unsynced() {
            self.will_sync(node);
        }
    }

    /// All disks sync again.
    pub fn release(&mut self) {
        self.holds.clear();
        (0..self.nodes.len()).for_each(|node| self.after(node, Vec::new()));
    }

    fn will_sync(&mut self, node: usize) {
        let is_held = self.holds.contains(&node);
        if !is_held && !std::mem::replace(&mut self.nodes[node].is_syncing, true) {
            let start = self.nodes[node].me.start;
            let at = self.now + self.delay();
            self.queue.push(at, Event::Sync { node, start });
        }
    }

    fn transmit(&mut self, from: usize, to: NodeId, message: Message) {
        self.judge.sent(NodeId(from as u64 + 1), &message);
        let start = self.nodes[from].me.start;
        let node = to.0 as usize - 1;
        if node == from {
            let message = Box::new(message);
            return self.queue.push(self.now, Event::Message { from, start, to, message });
        }
        self.messages += 1;
        let lossy = self.ingress_loss.get(&node).copied().unwrap_or_default();
        let is_lost = self.rng.below(100) < self.loss_percent.max(lossy)
            || self.loses.as_mut().is_some_and(|loses| loses(from, node, &message));
        let times = if self.rng.below(100) < self.loss_percent / 2 { 2 } else { 1 };
        let message = if self.setup.is_encoded {
            let tail = message.tail();
            message.with_tail(&tail).expect("what a correct peer sends is read")
        } else {
            message
        };
        for _ in 0..if is_lost { 0 } else { times } {
            // Some are late by so much that all has changed meanwhile.
            let is_late = self.loss_percent > 0 && self.rng.below(100) < 3;
            let late = if is_late { Span(self.rng.below(Span::secs(5).0)) } else { Span(0) };
            let at = self.now + self.delay() + late;
            let message = Box::new(message.clone());
            self.queue.push(at, Event::Message { from, start, to, message });
        }
    }

    fn delay(&mut self) -> Span {
        let jitter = self.setup.jitter.0;
        Span(Span::millis(1).0 + if jitter == 0 { 0 } else { self.rng.below(jitter) })
    }

    fn hear(&mut self, node: usize, event: &Told) {
        let ids = |configuration: &Configuration| -> Vec<u64> {
            configuration.ids().map(|id| id.0).collect()
        };
        let (name, shown) = match event {
            Told::Configuration(it) => ("configuration", format!("{:?} {:?}", it.id, ids(it))),
            Told::Kicked(_) => ("kicked", String::new()),
            Told::Left => ("left", String::new()),
            Told::Observers(_) => ("observers", String::new()),
            Told::Refused(why) => ("refused", format!("{why:?}")),
        };
        *self.told.entry(name).or_default() += 1;
        if name != "observers" {
            self.note(|| format!("{} is told {name} {shown}", node + 1).trim_end().into());
        }
    }

    pub fn roll(&self, node: usize) -> &Roll {
        self.nodes[node].roll.as_ref().expect("it is up")
    }

    pub fn status(&self, node: usize) -> Status {
        self.roll(node).status(self.now)
    }

    /// Whether these are the members, and all of them know it.
    pub fn has_members(&self, members: &[usize]) -> bool {
        let ids = || members.iter().map(|node| NodeId(*node as u64 + 1));
        let Some(last) = self.judge.last() else { return false };
        last.ids().eq(ids())
            && members.iter().all(|node| self.is_up(*node) && self.roll(*node).roll() == last.id)
    }

    pub fn number(&self) -> u64 {
        self.judge.last().map_or(0, |last| last.id.number.0)
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now.0 / 1_000_000;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now:>6} ms  {}", line()));
        }
    }
}

impl Drop for World {
    /// An assertion inside a node leaves no time to say which seed it was.
    fn drop(&mut self) {
        if std::thread::panicking() && self.nodes.len() < 30 {
            for line in self.trace.take().unwrap_or_default() {
                std::eprintln!("{line}");
            }
            for node in &self.nodes {
                let Some(roll) = &node.roll else { continue };
                let status = roll.status(self.now);
                let ids: Vec<u64> = roll.configuration().ids().map(|id| id.0).collect();
                std::eprintln!("{} {status:?} in {:?} {ids:?}", node.me.node.0, roll.roll());
                std::eprintln!("  {:?}\n  {:?}", roll.instance, roll.cut);
            }
            std::eprintln!("{:?} at {:?}", self.setup, self.now);
        }
    }
}
