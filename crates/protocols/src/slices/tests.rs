//! Slices in a small pure world: nodes that shuffle and tell, and some that die and come.

use super::estimate::{Bounds, Estimate};
use super::position::{Groups, Position};
use super::{Changed, Profile, Slices};
use crate::gossip::cyclon::{Cyclon, Peer, Shape};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

const SHAPE: Shape = Shape { ages_when_told: true, ..Shape::USUAL };

struct Node {
    cyclon: Cyclon,
    slices: Slices,
    /// How often it changed its number after it had one.
    changes: usize,
}

struct World {
    nodes: BTreeMap<NodeId, Node>,
    rng: Rng,
    loss_ppm: u32,
    born: u64,
    bounds: Bounds,
}

fn own(node: NodeId) -> Peer {
    Peer { who: Incarnation { node, start: Start(1) }, age: 0, address: "a".into() }
}

impl World {
    fn new(count: usize, seed: u64) -> World {
        World::with(count, Bounds::USUAL, seed)
    }

    fn with(count: usize, bounds: Bounds, seed: u64) -> World {
        let (nodes, rng) = (BTreeMap::new(), Rng::new(seed));
        let mut world = World { nodes, rng, loss_ppm: 0, born: 0, bounds };
        world.join(count);
        world
    }

    fn random(&mut self) -> NodeId {
        let place = self.rng.below(self.nodes.len() as u64) as usize;
        *self.nodes.keys().nth(place).expect("there are nodes")
    }

    /// New nodes, each with a view of nodes that are there.
    fn join(&mut self, count: usize) {
        let fresh: Vec<NodeId> = (0..count).map(|_| NodeId(self.rng.next())).collect();
        self.born += count as u64;
        for &node in &fresh {
            let slices = Slices::new(node, self.bounds);
            let cyclon = Cyclon::new(node, SHAPE);
            self.nodes.insert(node, Node { cyclon, slices, changes: 0 });
        }
        for node in fresh {
            for _ in 0..Shape::USUAL.view {
                let peer = own(self.random());
                self.nodes.get_mut(&node).expect("it is new").cyclon.seed(peer);
            }
        }
    }

    fn kill(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    fn is_lost(&mut self) -> bool {
        self.rng.chance_ppm(self.loss_ppm)
    }

    fn exchange(&mut self, node: NodeId) {
        let one = self.nodes.get_mut(&node).expect("it lives");
        let Some((to, entries)) = one.cyclon.begin(own(node), &mut self.rng) else { return };
        let told = one.slices.told();
        if self.is_lost() {
            return;
        }
        let Some(partner) = self.nodes.get_mut(&to) else { return };
        count(&mut partner.changes, partner.slices.on_exchange(node, &entries, told));
        let answer = partner.cyclon.on_shuffle(node, entries, &mut self.rng);
        let told = partner.slices.told();
        if self.is_lost() {
            return;
        }
        let one = self.nodes.get_mut(&node).expect("it lives");
        count(&mut one.changes, one.slices.on_exchange(to, &answer, told));
        one.cyclon.on_reply(to, answer);
    }

    fn period(&mut self) {
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.exchange(node);
            let one = self.nodes.get_mut(&node).expect("it lives");
            count(&mut one.changes, one.slices.on_period());
            let (to, members) = one.slices.tell(own(node), &mut self.rng);
            for peer in to {
                if !self.is_lost()
                    && let Some(peer) = self.nodes.get_mut(&peer)
                {
                    peer.slices.on_members(&members);
                }
            }
        }
    }

    fn run(&mut self, periods: usize) {
        (0..periods).for_each(|_| self.period());
        self.nodes.values().for_each(|node| node.slices.check());
    }

    /// How many nodes go by each number of slices.
    fn numbers(&self) -> BTreeMap<u32, usize> {
        let mut numbers = BTreeMap::new();
        for node in self.nodes.values() {
            let number = node.slices.groups().map_or(0, Groups::number);
            *numbers.entry(number).or_insert(0) += 1;
        }
        numbers
    }

    fn assert_agree(&self, number: u32) {
        assert_eq!(self.numbers(), BTreeMap::from([(number, self.nodes.len())]));
    }

    /// Each node knows exactly who is in its slice; a few may miss one for the moment.
    fn assert_known(&self) {
        let mut slices: BTreeMap<_, usize> = BTreeMap::new();
        self.nodes.values().for_each(|node| *slices.entry(node.slices.own()).or_insert(0) += 1);
        for node in self.nodes.values() {
            let others = slices[&node.slices.own()] - 1;
            let living = node.slices.members().iter();
            let living = living.filter(|peer| self.nodes.contains_key(&peer.who.node)).count();
            assert_eq!((living, node.slices.members().len()), (others, others));
        }
    }

    fn changes(&self) -> usize {
        self.nodes.values().map(|node| node.changes).sum()
    }

    /// Nobody changes its number for a long time.
    fn assert_still(&mut self, periods: usize) {
        let before = self.changes();
        self.run(periods);
        assert_eq!(self.changes(), before, "a number that fits is kept");
    }
}

fn count(changes: &mut usize, changed: Option<Changed>) {
    *changes += usize::from(changed.is_some_and(|changed| changed.from.is_some()));
}

#[test]
fn three_hundred_nodes_settle_for_32_slices_and_stay() {
    let mut world = World::new(300, 0);
    world.run(250);
    world.assert_agree(32);
    world.assert_known();
    assert!(world.changes() <= 300 * 6, "{} changes", world.changes());
    world.assert_still(200);
    for node in world.nodes.values() {
        let nodes = node.slices.count();
        assert!((250..=350).contains(&nodes), "{nodes} nodes counted");
    }
}

#[test]
fn loss_does_not_unsettle_slices() {
    let mut world = World::new(300, 11);
    world.loss_ppm = 200_000;
    world.run(300);
    world.assert_agree(32);
    world.assert_still(100);
}

#[test]
fn the_replaced_are_forgotten_and_the_new_placed() {
    let mut world = World::new(300, 10);
    world.run(250);
    for share in [10, 20, 30] {
        for _ in 0..2 {
            let gone: Vec<NodeId> = (0..300 * share / 100).map(|_| world.random()).collect();
            gone.iter().for_each(|node| world.kill(*node));
            world.join(300 - world.nodes.len());
            world.run(50);
            world.assert_agree(32);
            world.assert_known();
        }
    }
    world.assert_still(100);
}

#[test]
fn half_of_a_slice_may_die_at_once() {
    let mut world = World::new(300, 21);
    world.run(250);
    let node = world.random();
    let members: Vec<NodeId> =
        world.nodes[&node].slices.members().iter().map(|peer| peer.who.node).collect();
    members.iter().step_by(2).for_each(|member| world.kill(*member));
    world.run(60);
    world.assert_agree(32);
    world.assert_known();
    world.assert_still(100);
}

#[test]
fn four_times_as_many_nodes_have_four_times_as_many_slices_and_back() {
    let mut world = World::new(75, 31);
    world.run(200);
    world.assert_agree(8);
    for _ in 0..9 {
        world.join(25);
        world.run(2);
    }
    world.run(200);
    world.assert_agree(32);
    world.assert_known();
    world.assert_still(100);
    for _ in 0..225 {
        let gone = world.random();
        world.kill(gone);
    }
    world.run(200);
    world.assert_agree(8);
    world.assert_known();
    world.assert_still(100);
}

/// Twelve on average are the most that there shall be, and six the least: no number of nodes may be
/// right for none.
#[test]
fn numbers_of_nodes_at_the_border_do_not_oscillate() {
    for (seed, nodes) in [(41, 192), (42, 384), (44, 450)] {
        let mut world = World::new(nodes, seed);
        world.run(300);
        assert_eq!(world.numbers().len(), 1, "{nodes} nodes: {:?}", world.numbers());
        world.assert_still(150);
    }
}

#[test]
fn few_nodes_are_one_slice() {
    let mut world = World::new(3, 51);
    world.run(60);
    world.assert_agree(1);
    world.assert_known();
    world.assert_still(100);
}

#[test]
fn a_joiner_takes_what_most_have_and_not_the_largest() {
    let mut estimate = Estimate::new(Bounds::USUAL);
    let told = |log2| Profile { groups: Groups::power(log2), ..Profile::default() };
    assert!(estimate.hear(NodeId(1), Profile::default()).is_none(), "another joiner says nothing");
    assert!(estimate.hear(NodeId(2), told(5)).is_none());
    assert!(estimate.hear(NodeId(3), told(9)).is_none());
    let changed = estimate.hear(NodeId(4), told(5)).expect("three have told");
    assert_eq!((changed.from, changed.to.number()), (None, 32));
    estimate.check();
}

#[test]
fn a_number_changes_once_in_the_time_that_a_view_takes_to_be_filled() {
    let (mut estimate, bounds) = (Estimate::new(Bounds::USUAL), Bounds::USUAL);
    let mut changes = Vec::new();
    let mut nodes = 300;
    for period in 0..100_u16 {
        let told = Profile { groups: Groups::power(5), count: Some(nodes), least: None };
        let heard = estimate.hear(NodeId(u64::from(period)), told);
        let changed = heard.into_iter().chain(estimate.on_period(Some(nodes), None));
        changes.extend(changed.map(|_| period));
        // What is heard swings from one end to the other.
        nodes = if period / 8 % 2 == 0 { 300 } else { 30_000 };
    }
    assert!(changes.len() > 2, "it follows: {changes:?}");
    // The first falls before the end of its period.
    let are_apart = changes.windows(2).all(|two| two[1] - two[0] + 1 >= bounds.age_max);
    assert!(are_apart, "{changes:?}");
    estimate.check();
}

#[test]
fn bounds_that_cannot_hold_are_refused() {
    let usual = Bounds::USUAL;
    assert!(!Bounds { replicas_max: 2 * usual.replicas_min - 1, ..usual }.is_sound());
    assert!(!Bounds { replicas_min: 0, ..usual }.is_sound());
    assert!(!Bounds { equal: usual.age_max, ..usual }.is_sound());
}

#[test]
fn positions_spread_evenly() {
    let groups = Groups::power(5).expect("it is small");
    let mut counts = [0; 32];
    (0..3200).for_each(|node| counts[groups.slice(Position::of(NodeId(node))).0 as usize] += 1);
    assert!(counts.iter().all(|count| (60..=145).contains(count)), "{counts:?}");
}

/// How many members each slice has; none if nodes do not agree on their number.
fn sizes(world: &World) -> Option<Vec<usize>> {
    let numbers = world.numbers();
    let (number, _) = numbers.first_key_value().filter(|_| numbers.len() == 1)?;
    let groups = Groups::power(number.trailing_zeros() as u8).expect("they go by it");
    let mut sizes = Vec::from_iter(core::iter::repeat_n(0, *number as usize));
    for node in world.nodes.keys() {
        sizes[groups.slice(Position::of(*node)).0 as usize] += 1;
    }
    Some(sizes)
}

#[test]
fn no_slice_is_smaller_than_the_floor_however_positions_lie() {
    let bounds = Bounds { replicas_min: 3, replicas_max: 6, floor: 3, ..Bounds::USUAL };
    let mut divided = 0;
    for seed in 0..30 {
        let count = 6 + (seed as usize * 7) % 60;
        let mut world = World::with(count, bounds, seed);
        world.run(400);
        let before = sizes(&world).unwrap_or_else(|| panic!("seed {seed}: {:?}", world.numbers()));
        assert!(before.iter().all(|size| *size >= 3), "seed {seed}: {before:?}");
        divided += usize::from(before.len() > 1);
        // Most members of one slice go for good.
        let groups = Groups::power(before.len().trailing_zeros() as u8).expect("few");
        let first = |node: &NodeId| groups.slice(Position::of(*node)).0 == 0;
        let members: Vec<NodeId> = world.nodes.keys().copied().filter(first).collect();
        members[2..].iter().for_each(|node| world.kill(*node));
        world.run(400);
        let after = sizes(&world).unwrap_or_else(|| panic!("seed {seed}: {:?}", world.numbers()));
        let is_one = after.len() == 1;
        assert!(is_one || after.iter().all(|size| *size >= 3), "seed {seed}: {after:?}");
    }
    assert!(divided >= 10, "{divided} clusters were large enough to be divided");
}

fn floored() -> Bounds {
    Bounds { replicas_min: 3, replicas_max: 6, floor: 3, ..Bounds::USUAL }
}

#[test]
fn a_cluster_that_grows_is_divided_though_it_was_small_once() {
    for seed in 0..5 {
        let mut world = World::with(3, floored(), 100 + seed);
        world.run(60);
        for _ in 0..19 {
            world.join(3);
            world.run(10);
        }
        world.run(500);
        let sizes = sizes(&world).unwrap_or_else(|| panic!("seed {seed}: {:?}", world.numbers()));
        assert!(sizes.len() > 1 && sizes.iter().all(|size| *size >= 3), "seed {seed}: {sizes:?}");
    }
}

#[test]
fn a_slice_whose_members_are_all_gone_is_joined_to_the_one_beside() {
    for seed in 0..5 {
        let mut world = World::with(60, floored(), 200 + seed);
        world.run(400);
        let before = sizes(&world).unwrap_or_else(|| panic!("seed {seed}: {:?}", world.numbers()));
        assert!(before.len() > 1, "seed {seed}: {before:?}");
        let groups = Groups::power(before.len().trailing_zeros() as u8).expect("few");
        let first = |node: &NodeId| groups.slice(Position::of(*node)).0 == 0;
        let members: Vec<NodeId> = world.nodes.keys().copied().filter(first).collect();
        members.into_iter().for_each(|node| world.kill(node));
        world.run(900);
        let after = sizes(&world).unwrap_or_else(|| panic!("seed {seed}: {:?}", world.numbers()));
        assert!(after.iter().all(|size| *size >= 3), "seed {seed}: {after:?}");
    }
}

#[test]
fn who_was_cut_off_does_not_take_itself_for_a_small_slice() {
    let mut world = World::with(40, floored(), 300);
    world.run(400);
    let before = sizes(&world).expect("they agree");
    assert!(before.len() > 1, "{before:?}");
    let node = *world.nodes.keys().next().expect("there are nodes");
    let one = world.nodes.get_mut(&node).expect("it is there");
    // It hears nobody for longer than it knows others.
    for _ in 0..3 * floored().age_max {
        one.slices.on_period();
    }
    assert_eq!(one.slices.told().least, None);
    assert!(one.slices.members().is_empty(), "it knows nobody any more");
    world.run(200);
    assert_eq!(sizes(&world), Some(before), "nothing has changed for the others");
}
