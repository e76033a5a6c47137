//! What goes wrong, within what the group is made to bear.

use super::node::Level;
use super::world::{World, ids};
use crate::vsr::{Replica, Status};
use quorate_kernel::ids::NodeId;
use quorate_kernel::time::Span;
use std::collections::BTreeMap;
use std::vec::Vec;

/// What all runs together have done; a test that never met a rare case proves nothing.
#[derive(Debug, Default)]
pub struct Tally {
    pub acknowledged: usize,
    pub reads: usize,
    pub crashes: usize,
    pub wiped: usize,
    pub losses: usize,
    pub holds: usize,
    pub pauses: usize,
    pub partitions: usize,
    pub epochs: u64,
    pub told: BTreeMap<&'static str, usize>,
}

/// What a run may do.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Whether members change.
    pub changes: bool,
    /// Whether disks are taken away.
    pub wipes: bool,
    /// Whether all members forget at one moment.
    pub losses: bool,
}

pub struct Nemesis {
    pub faults: Faults,
    pub tally: Tally,
    wish: Option<Vec<NodeId>>,
}

impl Nemesis {
    pub fn new(faults: Faults) -> Nemesis {
        Nemesis { faults, tally: Tally::default(), wish: None }
    }

    /// One thing goes wrong, or stops to.
    pub fn act(&mut self, world: &mut World) {
        let node = world.rng.below(world.nodes.len() as u64) as usize;
        match world.rng.below(20) {
            0..3 => self.crash(world, node),
            3..6 => revive(world, node),
            6 => {
                self.tally.partitions += 1;
                world.side[node] = world.rng.below(2) as u8;
            }
            7 => {
                let other = world.rng.below(world.nodes.len() as u64) as usize;
                // Half of them of a primary, which speaks most.
                let leads = world.serving().filter(|_| world.rng.below(2) == 0);
                world.deaf.insert((leads.unwrap_or(node), other));
            }
            8 | 9 => {
                world.side.fill(0);
                world.deaf.clear();
                world.release();
            }
            10 => {
                self.tally.pauses += 1;
                let until = world.now + Span(world.rng.below(Span::millis(1200).0));
                world.paused.insert(node, until);
            }
            11 => {
                let peer = world.rng.below(world.nodes.len() as u64) + 1;
                if world.is_up(node) {
                    world.turn(node, |replica, cx| replica.on_unlinked(NodeId(peer), cx));
                }
            }
            12..15 if self.faults.changes => self.change(world),
            15 if self.faults.wipes => self.wipe(world, node),
            17 | 18 if self.faults.losses => self.lose(world),
            17 | 18 if world.setup.level == Level::Sync && !self.faults.wipes => {
                self.tally.holds += 1;
                world.holds.insert(node);
            }
            16 => {
                let serving = world.serving();
                serving.into_iter().for_each(|node| self.crash(world, node));
            }
            19 => {
                self.tally.partitions += 1;
                world.serving().into_iter().for_each(|node| world.side[node] ^= 1);
            }
            _ => {}
        }
        self.ask(world);
    }

    /// The primary is told who shall be the members, until they are.
    fn ask(&mut self, world: &mut World) {
        let Some(wish) = self.wish.clone() else { return };
        if world.members == wish {
            self.wish = None;
            return;
        }
        for node in 0..world.nodes.len() {
            if world.is_up(node) {
                // Who cannot propose refuses.
                world.turn(node, |replica, _| _ = replica.wish(&wish));
            }
        }
    }

    fn change(&mut self, world: &mut World) {
        let live: Vec<u64> = (1..=world.nodes.len() as u64)
            .filter(|id| !world.nodes[*id as usize - 1].is_wiped)
            .collect();
        // Where disks or memories are lost, fewer than three bear nothing.
        let bears = self.faults.wipes || world.setup.level != Level::Sync;
        let least = if bears { 3 } else { 1 };
        let count = world.rng.between(least, 5.min(live.len() as u64)) as usize;
        let mut chosen = live;
        while chosen.len() > count {
            let out = world.rng.below(chosen.len() as u64) as usize;
            chosen.remove(out);
        }
        self.wish = Some(ids(&chosen));
        let mut up = world.nodes.iter().filter_map(|node| node.replica.as_ref());
        if up.any(|replica| replica.status() == Status::Recovering) {
            world.count("a wish amid a recovery");
        }
    }

    fn crash(&mut self, world: &mut World, node: usize) {
        if world.is_up(node) && (world.setup.level == Level::Sync || is_whole(world)) {
            self.tally.crashes += 1;
            world.crash(node);
            if world.setup.level != Level::Sync || world.rng.below(2) == 0 {
                world.start(node);
            }
        }
    }

    /// All members lose what their disks do not keep. Nobody may have gone on unseen: no change of
    /// members is under way.
    fn lose(&mut self, world: &mut World) {
        let up = world.nodes.iter().filter_map(|node| node.replica.as_ref());
        let changes = up.clone().any(|replica| replica.closing().is_some());
        let members = world.members.clone();
        let ready = up.filter(|replica| has_begun(world, replica)).count();
        if changes || ready < members.len() {
            return;
        }
        self.tally.losses += 1;
        world.judge.may_lose();
        let places = || members.iter().map(|node| node.0 as usize - 1);
        if world.setup.level == Level::Memory {
            // Who forgets that it is in this epoch has lost nothing of it, and would be waited for.
            places().for_each(|node| world.nodes[node].disk.sync());
        }
        places().for_each(|node| world.crash(node));
        places().for_each(|node| world.start(node));
    }

    /// A node loses its disk: it is gone, and another one comes.
    fn wipe(&mut self, world: &mut World, node: usize) {
        let is_last = world.nodes.len() >= 10;
        if is_last || !world.is_up(node) || !is_whole(world) {
            return;
        }
        self.tally.wiped += 1;
        world.crash(node);
        world.nodes[node].is_wiped = true;
        world.add(None);
        // Who is gone is replaced.
        let gone = NodeId(node as u64 + 1);
        if world.members.contains(&gone) {
            let mut members: Vec<NodeId> =
                world.members.iter().copied().filter(|id| *id != gone).collect();
            members.push(NodeId(world.nodes.len() as u64));
            self.wish = Some(members);
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
        self.wish = None;
    }

    pub fn finish(mut self, world: &World) -> Tally {
        self.tally.acknowledged = world.judge.acknowledged.len();
        self.tally.reads = world.judge.reads;
        self.tally.epochs = world.epoch;
        self.tally.told.clone_from(&world.told);
        self.tally
    }
}

fn revive(world: &mut World, node: usize) {
    if !world.is_up(node) && !world.nodes[node].is_wiped {
        world.start(node);
    }
}

/// Whether every member of the newest epoch has what it should, and nobody else must tell them:
/// then one of them may lose it.
fn is_whole(world: &World) -> bool {
    let replicas = world.nodes.iter().filter_map(|node| node.replica.as_ref());
    let owes = replicas.clone().any(Replica::owes);
    let ready = replicas.filter(|replica| has_begun(world, replica));
    // A change of members that is under way could take effect unseen.
    !owes && ready.count() == world.members.len()
}

/// Whether a node is a member of the newest epoch, and has what it should.
fn has_begun(world: &World, replica: &Replica) -> bool {
    replica.configuration().epoch.0 == world.epoch
        && matches!(replica.status(), Status::Normal | Status::ViewChange)
        && replica.head.lost.is_none()
        && replica.is_settled()
}
