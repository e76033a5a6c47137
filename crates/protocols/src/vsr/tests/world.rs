//! A small world of replicas: seeded latencies, loss, duplication, partitions, pauses, crashes that
//! take what was not synced, and clients that repeat what they do not hear of.

use super::clients::Client;
use super::judge::Judge;
use super::mangled::{Faulty, mangled};
use super::node::{Happened, Level, Node};
use crate::testing::timeline::Timeline;
use crate::vsr::{Event as Told, Kept, Message, Replica, TICK};
use quorate_kernel::ids::{NodeId, Start};
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
    Resume { node: usize, start: Start },
    Client { client: usize },
}

/// How a world is.
#[derive(Clone, Debug)]
pub struct Setup {
    pub seed: u64,
    pub members: u64,
    pub spares: u64,
    pub level: Level,
    /// How much stays in the log.
    pub kept: Kept,
    pub clients: usize,
    /// The longest way of a message, and the longest sync, beyond a millisecond.
    pub jitter: Span,
}

pub struct World {
    pub setup: Setup,
    pub nodes: Vec<Node>,
    pub queue: Timeline<Event>,
    pub now: Time,
    pub rng: Rng,
    pub loss_percent: u64,
    /// How much longer pages of copies take at most.
    pub slow_pages: Span,
    /// Which side of a partition each node is on.
    pub side: Vec<u8>,
    /// From whom nothing reaches whom.
    pub deaf: BTreeSet<(usize, usize)>,
    /// Which messages are lost besides: sender, receiver, message.
    pub loses: Option<Loses>,
    /// Nodes whose disks do not sync.
    pub holds: BTreeSet<usize>,
    /// Nodes that stand still until then.
    pub paused: BTreeMap<usize, Time>,
    pub clients: Vec<Client>,
    pub tickets: u64,
    pub judge: Judge,
    /// The newest members that anybody has told of.
    pub epoch: u64,
    pub members: Vec<NodeId>,
    pub told: BTreeMap<&'static str, usize>,
    /// Who sends what is damaged on its way. Nothing is judged then.
    pub faulty: Option<Faulty>,
    /// How often a message was refused.
    pub refused: usize,
    /// Whether beats are shown too.
    pub shows_beats: bool,
    pub trace: Option<Vec<String>>,
}

/// Says of a message from one node to another whether it is lost.
pub type Loses = Box<dyn Fn(usize, usize, &Message) -> bool>;

pub fn ids(nodes: &[u64]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

impl World {
    /// Starts all nodes; the first ones are the members.
    pub fn new(setup: Setup) -> World {
        let founders: Vec<NodeId> = (1..=setup.members).map(NodeId).collect();
        let mut world = World {
            nodes: Vec::new(),
            queue: Timeline::default(),
            now: Time(0),
            rng: Rng::new(setup.seed),
            loss_percent: 0,
            slow_pages: Span(0),
            side: Vec::new(),
            deaf: BTreeSet::new(),
            loses: None,
            holds: BTreeSet::new(),
            paused: BTreeMap::new(),
            clients: (0..setup.clients).map(|_| Client::default()).collect(),
            tickets: 0,
            judge: Judge::default(),
            epoch: 1,
            members: founders.clone(),
            told: BTreeMap::new(),
            faulty: None,
            refused: 0,
            shows_beats: false,
            trace: None,
            setup,
        };
        for id in 1..=world.setup.members + world.setup.spares {
            let founders = (id <= world.setup.members).then(|| founders.clone());
            world.add(founders);
        }
        (0..world.clients.len()).for_each(|client| {
            world.queue.push(Time(1), Event::Client { client });
        });
        world
    }

    /// Adds a node and starts it.
    pub fn add(&mut self, founders: Option<Vec<NodeId>>) -> usize {
        let id = self.nodes.len() as u64 + 1;
        self.nodes.push(Node::new(id, founders, self.setup.level, self.setup.kept));
        self.side.push(0);
        self.start(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].replica.is_some()
    }

    pub fn start(&mut self, node: usize) {
        let happened = self.nodes[node].start(self.now);
        self.note(|| format!("{} starts", node + 1));
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

    /// Lets a handler run at a node, as one turn.
    pub fn turn(
        &mut self,
        node: usize,
        handler: impl FnOnce(&mut Replica, &mut crate::vsr::Context<'_>),
    ) {
        let happened = self.nodes[node].turn(self.now, handler);
        self.after(node, happened);
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some((at, event)) = self.queue.pop(end) {
            self.now = at;
            if let Some(why) = self.judge.verdict().filter(|_| self.faulty.is_none()) {
                panic!("seed {}: judge: {why}", self.setup.seed);
            }
            self.take(event);
        }
        self.now = end;
    }

    fn take(&mut self, event: Event) {
        let node = match &event {
            Event::Message { to, .. } => to.0 as usize - 1,
            Event::Tick { node, .. } | Event::Sync { node, .. } | Event::Resume { node, .. } => {
                *node
            }
            Event::Client { client } => return self.client(*client),
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
                self.turn(node, Replica::tick);
                self.queue.push(self.now + TICK, Event::Tick { node, start });
                if self.setup.level == Level::Periodic {
                    self.will_sync(node);
                }
            }
            Event::Sync { node, start } if self.is_of(node, start) => {
                self.nodes[node].is_syncing = false;
                let happened = self.nodes[node].sync();
                self.after(node, happened);
            }
            Event::Resume { node, start } if self.is_of(node, start) => {
                self.turn(node, Replica::resume);
            }
            _ => {}
        }
    }

    fn is_of(&self, node: usize, start: Start) -> bool {
        self.is_up(node) && self.nodes[node].me.start == start
    }

    fn deliver(&mut self, from: usize, start: Start, to: NodeId, message: Message) {
        let node = to.0 as usize - 1;
        if from != node && self.deaf.contains(&(from, node)) && self.side[from] == self.side[node] {
            self.count("a one-way cut");
        }
        let is_cut = self.side[from] != self.side[node] || self.deaf.contains(&(from, node));
        if (is_cut && from != node) || !self.is_up(node) {
            return;
        }
        // Frames of an earlier start are refused once a later one was seen.
        let sender = quorate_kernel::ids::Incarnation { node: NodeId(from as u64 + 1), start };
        if from == node && start != self.nodes[node].me.start {
            return;
        }
        if start != self.nodes[from].me.start {
            self.count("a frame of an earlier start");
        }
        if self.shows_beats || !message.is_beat() {
            self.note(|| format!("{} -> {}  {}", from + 1, to.0, super::show(&message)));
        }
        self.turn(node, |replica, cx| replica.on_message(sender, message, cx));
    }

    /// Something happened that runs must have met.
    pub fn count(&mut self, what: &'static str) {
        *self.told.entry(what).or_default() += 1;
    }

    /// What a step at a node has caused.
    pub fn after(&mut self, node: usize, happened: Vec<Happened>) {
        let id = node as u64 + 1;
        let epoch = self.nodes[node].replica.as_ref().map(|it| it.configuration().epoch.0);
        let is_of_past = self.judge.has_lost && epoch.is_some_and(|epoch| epoch < self.epoch);
        let is_of_past = is_of_past && !self.members.contains(&NodeId(id));
        if is_of_past {
            self.nodes[node].machine.executed.clear();
        }
        let begun = |one: &Happened| match one {
            Happened::Told(Told::Members(configuration)) => Some(configuration.since),
            _ => None,
        };
        let judged = happened.iter().filter(|_| !is_of_past);
        let mut changes = judged.filter_map(begun).peekable();
        for executed in std::mem::take(&mut self.nodes[node].machine.executed) {
            while let Some(since) = changes.next_if(|since| *since < executed.op) {
                self.judge.changed(id, since);
            }
            self.judge.executed(id, executed);
            let mine = self.nodes[node].pending.remove(&executed.op);
            let request = executed.command.request;
            // A repeated request is answered like the first.
            if mine == Some(request) {
                self.acknowledge(request);
            }
        }
        changes.for_each(|since| self.judge.changed(id, since));
        if let Some(replica) = self.nodes[node].replica.as_ref().filter(|it| it.is_settled()) {
            self.judge.settled(id, replica.applied(), &self.nodes[node].machine);
        }
        for one in happened {
            match one {
                Happened::Sent { to, message } => self.transmit(node, to, message),
                Happened::Told(event) => self.hear(node, event),
                Happened::Refused(_) if self.faulty.is_some() => self.refused += 1,
                Happened::Refused(what) => panic!("{id} refuses what a correct peer said: {what}"),
                Happened::Resume => {
                    let start = self.nodes[node].me.start;
                    self.queue.push(self.now, Event::Resume { node, start });
                }
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
        let start = self.nodes[from].me.start;
        let is_nobody = to.0 == 0 || to.0 > self.nodes.len() as u64;
        if is_nobody && self.faulty.is_some() {
            // Damaged, a change of members may name anybody.
            return;
        }
        if to.0 as usize - 1 == from {
            let message = Box::new(message);
            return self.queue.push(self.now, Event::Message { from, start, to, message });
        }
        let is_lost = self.rng.below(100) < self.loss_percent
            || self.loses.as_ref().is_some_and(|loses| loses(from, to.0 as usize - 1, &message));
        let times = if self.rng.below(100) < self.loss_percent / 2 { 2 } else { 1 };
        let tail = message.tail();
        let message = message.with_tail(tail).expect("what a correct peer sends is read");
        let message = match self.faulty {
            Some(Faulty { node, percent }) if node == from && self.rng.below(100) < percent => {
                // What cannot be read is dropped before a replica hears it.
                let Some(message) = mangled(&message, &mut self.rng) else { return };
                message
            }
            _ => message,
        };
        if times > 1 && !is_lost {
            self.count("a frame twice");
        }
        for _ in 0..if is_lost { 0 } else { times } {
            // Some are late by so much that all has changed meanwhile.
            let is_late = self.loss_percent > 0 && self.rng.below(100) < 3;
            let is_very_late = is_late && self.rng.below(8) == 0;
            let longest = Span::millis(if is_very_late { 5000 } else { 800 });
            let late = if is_late { Span(self.rng.below(longest.0)) } else { Span(0) };
            let is_slow = matches!(message, Message::Checkpoint { .. }) && self.slow_pages.0 > 0;
            let slow = Span(if is_slow { self.rng.below(self.slow_pages.0) } else { 0 });
            let at = self.now + self.delay() + late + slow;
            let message = Box::new(message.clone());
            self.queue.push(at, Event::Message { from, start, to, message });
        }
    }

    pub fn delay(&mut self) -> Span {
        let jitter = self.setup.jitter.0;
        Span(Span::millis(1).0 + if jitter == 0 { 0 } else { self.rng.below(jitter) })
    }

    fn hear(&mut self, node: usize, event: Told) {
        self.note(|| format!("{} tells {}", node + 1, super::show_event(&event)));
        let name = match &event {
            Told::Serving => "serving",
            Told::Deposed => "deposed",
            Told::Readable(_) => "readable",
            Told::Members(_) => "members",
            Told::Released => "released",
            Told::Lost => "lost",
        };
        self.count(name);
        match event {
            Told::Serving => {
                if let Some(replica) = &self.nodes[node].replica
                    && let Some(primary) = &replica.primary
                {
                    self.judge.serves(node as u64 + 1, replica.applied(), primary.began.op);
                }
            }
            Told::Deposed => {
                self.nodes[node].pending.clear();
                self.nodes[node].reads.clear();
            }
            Told::Readable(ticket) => self.show(node, ticket),
            Told::Members(configuration) if configuration.epoch.0 > self.epoch => {
                self.epoch = configuration.epoch.0;
                self.members = configuration.members.to_vec();
            }
            _ => {}
        }
    }
}
