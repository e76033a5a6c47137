//! Nodes of PRIME, their rounds and the messages between them, driven by one seed.

use crate::epto::Scale;
use crate::membership::prime::{Action, Message, Prime};
use crate::membership::{Configuration, Member, Number, RollId, Shape};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::vec::Vec;

/// A round.
pub const DELTA: Span = Span::millis(250);

enum What {
    Round(NodeId, Start),
    Message(NodeId, NodeId, Message),
}

pub struct Node {
    pub prime: Prime,
    start: Start,
    pub is_stopped: bool,
    /// What it is sent of the order is lost until then.
    pub deaf_until: Time,
    pub views: Vec<RollId>,
    pub is_out: bool,
    /// For how many rounds it stood still, if it does no more.
    slept: u32,
}

pub struct World {
    pub nodes: BTreeMap<NodeId, Node>,
    pub now: Time,
    pub lost_ppm: u32,
    /// Who does not get whose probes.
    pub cut: BTreeSet<(NodeId, NodeId)>,
    scale: Scale,
    rng: Rng,
    queue: BTreeMap<(Time, u64), What>,
    queued: u64,
}

pub fn member(id: u64) -> Member {
    Member { id: NodeId(id), address: format!("host{id}:1"), metadata: Vec::new() }
}

impl World {
    pub fn new(nodes: u64, seed: u64) -> World {
        let scale = Scale { nodes, exponent: 2, surviving_ppm: 900_000 };
        let mut world = World {
            nodes: BTreeMap::new(),
            now: Time(0),
            lost_ppm: 0,
            cut: BTreeSet::new(),
            scale,
            rng: Rng::new(seed),
            queue: BTreeMap::new(),
            queued: 0,
        };
        let members: Vec<Member> = (1..=nodes).map(member).collect();
        let founding = Configuration::founding(Shape::DEFAULT, &members).expect("it is sound");
        for id in 1..=nodes {
            let me = Incarnation { node: NodeId(id), start: Start(1) };
            world.add(me, Prime::found(me, founding.clone(), scale));
        }
        world
    }

    fn add(&mut self, me: Incarnation, prime: Prime) {
        let (start, deaf_until) = (me.start, Time(0));
        let (views, is_out, is_stopped) = (Vec::new(), false, false);
        let node = Node { prime, start, is_stopped, deaf_until, views, is_out, slept: 1 };
        self.nodes.insert(me.node, node);
        let first = self.now + Span(self.rng.below(DELTA.0));
        self.push(first, What::Round(me.node, start));
    }

    /// A node comes, for the first time or again.
    pub fn join(&mut self, id: u64, start: u32, contacts: &[u64]) {
        let me = Incarnation { node: NodeId(id), start: Start(start) };
        let contacts: Vec<NodeId> = contacts.iter().map(|id| NodeId(*id)).collect();
        self.add(me, Prime::join(me, member(id), &contacts, self.scale));
    }

    /// A node that stood still goes on.
    pub fn wake(&mut self, id: u64, slept: Span) {
        let rounds = u32::try_from(slept.0 / DELTA.0).expect("nobody sleeps for so long");
        let node = self.node(id);
        (node.is_stopped, node.slept) = (false, rounds);
        let start = node.start;
        self.push(self.now, What::Round(NodeId(id), start));
    }

    pub fn node(&mut self, id: u64) -> &mut Node {
        self.nodes.get_mut(&NodeId(id)).expect("it is there")
    }

    fn push(&mut self, at: Time, what: What) {
        self.queued += 1;
        self.queue.insert((at, self.queued), what);
    }

    /// Runs for so many seconds.
    pub fn run(&mut self, seconds: u64) {
        let until = self.now + Span::secs(seconds);
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= until) {
            let ((at, _), what) = entry.remove_entry();
            self.now = at;
            match what {
                What::Round(id, start) => self.round(id, start),
                What::Message(from, to, message) => self.arrive(from, to, message),
            }
        }
        self.now = until;
    }

    fn round(&mut self, id: NodeId, start: Start) {
        let node = &self.nodes[&id];
        if node.is_stopped || node.start != start {
            return;
        }
        let drift = self.rng.between(DELTA.0 * 95 / 100, DELTA.0 * 105 / 100);
        let fanout = node.prime.epto().parameters().fanout;
        self.push(self.now + Span(drift), What::Round(id, start));
        let mut others: Vec<NodeId> = self.nodes.keys().copied().filter(|it| *it != id).collect();
        let mut targets = Vec::new();
        while targets.len() < fanout && !others.is_empty() {
            let drawn = self.rng.below(others.len() as u64) as usize;
            targets.push(others.swap_remove(drawn));
        }
        let (mut actions, now) = (Vec::new(), self.now);
        let node = self.node(id.0);
        let elapsed = core::mem::replace(&mut node.slept, 1);
        node.prime.on_round(elapsed, &targets, now, &mut actions);
        node.prime.check();
        self.act(id, actions);
    }

    fn arrive(&mut self, from: NodeId, to: NodeId, message: Message) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&to).filter(|node| !node.is_stopped) else { return };
        if matches!(message, Message::Epto(_)) && node.deaf_until > now {
            return;
        }
        let mut actions = Vec::new();
        node.prime.on_message(from, message, &mut actions);
        self.act(to, actions);
    }

    fn act(&mut self, id: NodeId, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    for target in to {
                        assert_ne!(target, id, "nobody sends to itself");
                        self.send(id, target, message.clone());
                    }
                }
                Action::View(view) => {
                    let node = self.node(id.0);
                    let last = node.views.last().map_or(Number(0), |last| last.number);
                    let is_next = view.id.number > last || node.views.last() != Some(&view.id);
                    assert!(is_next, "a view is told once");
                    assert!(view.contains(id), "only members are told of views");
                    node.views.push(view.id);
                }
                Action::Out => self.node(id.0).is_out = true,
                Action::Refuse { .. } => panic!("no clock is wrong"),
            }
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let is_probe = matches!(message, Message::Probe { .. });
        let is_cut = is_probe && self.cut.contains(&(from, to));
        if is_cut || self.rng.chance_ppm(self.lost_ppm) {
            return;
        }
        let latency = Span(self.rng.between(DELTA.0 / 50, DELTA.0 * 8 / 10));
        self.push(self.now + latency, What::Message(from, to, message));
    }

    /// The view that all nodes are in that are there, with its members; panics if they are in
    /// several, or in doubt.
    pub fn one_view(&self) -> (Number, Vec<u64>) {
        let there = self.nodes.iter().filter(|(_, node)| !node.is_stopped && !node.is_out);
        let mut views = BTreeMap::new();
        for (id, node) in there {
            let view = node.prime.view().unwrap_or_else(|| panic!("{id} has no view"));
            assert!(!node.prime.is_in_doubt(), "{id} is in doubt");
            views.entry(view.id).or_insert((view, Vec::new())).1.push(*id);
        }
        assert_eq!(views.len(), 1, "all are in one view: {views:?}");
        let (view, _) = views.values().next().expect("there is one");
        (view.id.number, view.ids().map(|id| id.0).collect())
    }

    /// Whoever was told of a view of some number was told of the same one.
    pub fn histories_agree(&self) {
        let mut known = BTreeMap::new();
        for view in self.nodes.values().flat_map(|node| &node.views) {
            let first = known.entry(view.number).or_insert(view.digest);
            assert_eq!(*first, view.digest, "one number, two views");
        }
    }
}
