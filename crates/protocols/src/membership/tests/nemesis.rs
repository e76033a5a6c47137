//! What goes wrong, within what a roll is made to bear.

use super::world::World;
use crate::membership::Status;
use quorate_kernel::ids::NodeId;
use quorate_kernel::time::Span;
use std::collections::BTreeMap;
use std::vec::Vec;

/// What all runs together have done; a test that never met a rare case proves nothing.
#[derive(Debug, Default)]
pub struct Tally {
    pub configurations: u64,
    pub joins: usize,
    pub leaves: usize,
    pub kicks: usize,
    pub crashes: usize,
    pub pauses: usize,
    pub partitions: usize,
    pub holds: usize,
    pub classic: usize,
    pub told: BTreeMap<&'static str, usize>,
}

#[derive(Default)]
pub struct Nemesis {
    pub tally: Tally,
}

/// The most nodes of a run.
const NODES_MAX: usize = 14;

impl Nemesis {
    /// One thing goes wrong, or stops to.
    pub fn act(&mut self, world: &mut World) {
        let node = world.rng.below(world.nodes.len() as u64) as usize;
        match world.rng.below(20) {
            0..4 => self.crash(world, node),
            4..7 => revive(world, node),
            7 => {
                self.tally.partitions += 1;
                world.side[node] = world.rng.below(2) as u8;
            }
            8 | 9 => {
                let other = world.rng.below(world.nodes.len() as u64) as usize;
                world.deaf.insert((node, other));
            }
            10 | 11 => {
                world.side.fill(0);
                world.deaf.clear();
                world.release();
            }
            12 => {
                self.tally.pauses += 1;
                let until = world.now + Span(world.rng.below(Span::secs(12).0));
                world.paused.insert(node, until);
            }
            13 => {
                self.tally.holds += 1;
                world.holds.insert(node);
            }
            14..17 if world.nodes.len() < NODES_MAX => {
                self.tally.joins += 1;
                let seeds: Vec<usize> = (0..world.nodes.len()).collect();
                world.join(&seeds);
            }
            17 if world.is_up(node) => {
                self.tally.leaves += 1;
                world.turn(node, |roll, cx| _ = roll.leave(cx));
            }
            18 if world.is_up(node) => {
                self.tally.kicks += 1;
                let other = world.rng.below(world.nodes.len() as u64) + 1;
                world.turn(node, |roll, cx| _ = roll.kick(NodeId(other), cx));
            }
            _ => {}
        }
    }

    fn crash(&mut self, world: &mut World, node: usize) {
        if world.is_up(node) {
            self.tally.crashes += 1;
            world.crash(node);
            if world.rng.below(2) == 0 {
                world.start(node);
            }
        }
    }

    /// All is well again.
    pub fn heal(&mut self, world: &mut World) {
        world.loss_percent = 0;
        world.side.fill(0);
        world.deaf.clear();
        world.paused.clear();
        world.release();
        (0..world.nodes.len()).for_each(|node| revive(world, node));
        refresh(world);
    }

    pub fn finish(mut self, world: &World) -> Tally {
        self.tally.configurations = world.number();
        self.tally.classic = world.judge.classic;
        self.tally.told.clone_from(&world.told);
        self.tally
    }
}

/// Those that a joiner knows may all have left: it is told of others.
pub fn refresh(world: &mut World) {
    let last = world.judge.last();
    let seeds: Vec<NodeId> = last.map(|last| last.ids().collect()).unwrap_or_default();
    for node in 0..world.nodes.len() {
        // Who does not join needs none.
        world.turn(node, |roll, _| _ = roll.set_contacts(&seeds));
    }
}

fn revive(world: &mut World, node: usize) {
    if !world.is_up(node) {
        world.start(node);
    }
}

/// Everybody who takes part is in the same configuration, and who does not knows it.
pub fn is_settled(world: &World) -> bool {
    let Some(last) = world.judge.last() else { return false };
    (0..world.nodes.len()).all(|node| {
        let is_in = last.contains(NodeId(node as u64 + 1));
        match world.status(node) {
            Status::Member => is_in && world.roll(node).roll() == last.id,
            Status::Left | Status::Kicked | Status::Idle => !is_in,
            Status::Joining { .. } | Status::Waiting { .. } => false,
        }
    })
}
