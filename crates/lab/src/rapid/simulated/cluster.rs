//! The nodes, and what happens to them.

use super::machines::{Loss, Machines, Plan};
use super::node::{Birth, Node, member};
use crate::dataflagons::simulated::Network;
use quorate_kernel::ids::LaneId;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use quorate_protocols::membership::{Configuration, Shape};
use quorate_sim::light::{Happened, Light, node_id};
use std::collections::BTreeSet;

/// How many members nodes count in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// The fewest members that a node counts.
    pub fewest: usize,
    /// The most.
    pub most: usize,
}

/// Nodes with a roll each.
pub struct Cluster {
    light: Light<Node, Machines>,
    rng: Rng,
    founding: Configuration,
    /// Nodes whose word counts: those that run, and that no fault was made for.
    sound: BTreeSet<usize>,
    /// How many tenths of a second have passed.
    tenths: u64,
    /// What was counted in this second.
    counted: Option<Second>,
    /// What sound nodes count, second by second.
    pub seconds: Vec<Second>,
    /// The sizes that sound nodes counted when they were asked, once a second, as in the paper.
    pub sizes: BTreeSet<usize>,
    /// Bytes to, and from, a sound node in a second.
    pub traffic: [Vec<u32>; 2],
}

impl Cluster {
    /// All nodes are members from the beginning, and start within a second.
    #[must_use]
    pub fn founded(nodes: usize, shape: Shape, seed: u64) -> Cluster {
        let mut rng = Rng::new(seed);
        let machines = Machines::new(nodes, rng.fork(1));
        let delay = Network::ROOM.delay();
        let light = Light::within(machines, LaneId::KEYSPACES, delay, rng.fork(2));
        let founders: Vec<_> = (0..nodes).map(|index| member(node_id(index), index)).collect();
        let founding = Configuration::founding(shape, &founders).expect("they are different");
        let mut cluster = Cluster {
            light,
            rng,
            founding,
            sound: BTreeSet::new(),
            tenths: 0,
            counted: None,
            seconds: Vec::new(),
            sizes: BTreeSet::new(),
            traffic: [Vec::new(), Vec::new()],
        };
        (0..nodes).for_each(|_| cluster.plan_within(Span::secs(1), Plan::Found));
        cluster
    }

    fn add(&mut self, birth: Birth) {
        let index = self.light.len();
        if index >= self.light.around.all.len() {
            self.light.around.all.push(Default::default());
        }
        self.sound.insert(index);
        self.light.add(Node::new(member(node_id(index), index), birth));
    }

    fn plan_within(&mut self, within: Span, plan: Plan) {
        let at = self.light.now() + Span(self.rng.below(within.0.max(1)));
        self.light.plan(at, plan);
    }

    /// So many nodes come within this time, and ask the first one to be let in.
    pub fn join(&mut self, count: usize, within: Span) {
        (0..count).for_each(|_| self.plan_within(within, Plan::Join));
    }

    /// So many random nodes, which are not sound any more.
    pub fn pick(&mut self, count: usize) -> Vec<usize> {
        let mut picked = Vec::new();
        while picked.len() < count {
            let sound: Vec<usize> = self.sound.iter().copied().collect();
            let one = *self.rng.pick(&sound).expect("some are sound");
            self.sound.remove(&one);
            picked.push(one);
        }
        picked
    }

    /// These stop without a word.
    pub fn crash(&mut self, nodes: &[usize]) {
        for node in nodes {
            self.sound.remove(node);
            self.light.crash(*node);
        }
    }

    /// These lose so much, after this time.
    pub fn lose(&mut self, nodes: &[usize], loss: Loss, after: Span) {
        self.light.plan(self.light.now() + after, Plan::Lose(nodes.to_vec(), loss));
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Span) {
        let end = self.light.now() + span;
        while self.light.now() < end {
            let next = Time(0) + Span::millis(100 * (self.tenths + 1));
            let until = end.min(next);
            while let Some(happened) = self.light.next(until) {
                match happened {
                    Happened::Planned(Plan::Found) => {
                        self.add(Birth::Founds(self.founding.clone()));
                    }
                    Happened::Planned(Plan::Join) => {
                        self.add(Birth::Joins(vec![node_id(0)]));
                    }
                    Happened::Planned(Plan::Lose(nodes, loss)) => {
                        nodes.iter().for_each(|it| self.light.around.all[*it].loss = loss);
                    }
                    _ => {}
                }
            }
            if until == next {
                self.ask();
            }
        }
        // Nodes announce nothing but what no correct peer says.
        assert!(self.light.said.is_empty(), "refused: {:?}", self.light.said);
    }

    /// A tenth of a second has passed: a tenth of the sound nodes are asked how many members they
    /// count, so that each is asked once a second.
    fn ask(&mut self) {
        self.tenths += 1;
        let turn = self.tenths % 10;
        for node in self.sound.iter().filter(|node| **node as u64 % 10 == turn) {
            let machine = &mut self.light.around.all[*node];
            for (sums, bytes) in self.traffic.iter_mut().zip(std::mem::take(&mut machine.bytes)) {
                sums.push(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
            let size = machine.members;
            if size > 0 {
                self.sizes.insert(size);
                let Second { fewest, most } =
                    self.counted.unwrap_or(Second { fewest: size, most: size });
                self.counted = Some(Second { fewest: fewest.min(size), most: most.max(size) });
            }
        }
        if turn == 0 {
            self.seconds.extend(self.counted.take());
        }
    }

    /// Runs until something holds, but no longer than this. Whether it holds then.
    pub fn until(&mut self, limit: Span, holds: impl Fn(&Cluster) -> bool) -> bool {
        let end = self.light.now() + limit;
        while self.light.now() < end && !holds(self) {
            self.run(Span::millis(200));
        }
        holds(self)
    }

    /// Whether the sound nodes, and no others, are members, and all of them know it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let Some((roll, members, _)) = self.light.around.chain.values().next_back() else {
            return false;
        };
        *members == self.sound.len()
            && self.sound.iter().all(|node| {
                let machine = &self.light.around.all[*node];
                machine.members > 0 && machine.roll == *roll
            })
    }

    /// When each sound node came into the configuration that it is in.
    pub fn installed(&self) -> impl Iterator<Item = Time> + '_ {
        self.sound.iter().map(|node| self.light.around.all[*node].since)
    }

    /// When the last of them did.
    #[must_use]
    pub fn settled_at(&self) -> Time {
        self.installed().max().unwrap_or_default()
    }

    /// When each configuration was first installed, and how many members it has.
    pub fn chain(&self) -> impl Iterator<Item = (Time, usize)> + '_ {
        self.light.around.chain.values().map(|(_, members, at)| (*at, *members))
    }

    /// How many sound nodes, and how many others, are members in the newest configuration.
    #[must_use]
    pub fn members(&self) -> [usize; 2] {
        let newest = |node: &&usize| self.light.around.all[**node].roll.number;
        let witness = *self.sound.iter().max_by_key(newest).expect("some are sound");
        let configuration = self.light.process(witness).roll().configuration();
        let sound = self.sound.iter().filter(|node| configuration.contains(node_id(**node)));
        let sound = sound.count();
        [sound, configuration.members.len() - sound]
    }

    /// How many nodes are sound.
    #[must_use]
    pub fn sound(&self) -> usize {
        self.sound.len()
    }

    /// Nothing that was seen so far counts, but the sizes.
    pub fn begin_measuring(&mut self) {
        self.seconds.clear();
        self.traffic = [Vec::new(), Vec::new()];
        self.light.around.all.iter_mut().for_each(|machine| machine.bytes = [0; 2]);
        self.light.around.sent = [0; 2];
    }

    /// Messages between nodes and their bytes.
    #[must_use]
    pub fn sent(&self) -> [u64; 2] {
        self.light.around.sent
    }

    /// The time of the world.
    #[must_use]
    pub fn now(&self) -> Time {
        self.light.now()
    }
}
