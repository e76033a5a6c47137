//! The lane in a small world: hosts that come, fail, come again and leave.

mod coming;
mod prime_roll;
mod stuck;
mod wire;

use super::names::hosts;
use super::{Message, RollLane, Says, Settings};
use crate::membership::{Body, prime};
use crate::testing::hosts::{Host, Simulated, World};
use crate::vsr::Replica;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::roll::Kind;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use std::format;
use std::string::String;
use std::vec::Vec;

impl Simulated for RollLane {
    type Settings = Settings;

    fn born(settings: &Settings) -> RollLane {
        RollLane::new(settings.clone())
    }

    fn durability(_: &Settings) -> Durability {
        Durability::Sync
    }

    fn name(message: &Message) -> &'static str {
        match &message.says {
            Says::Rapid(message) => match message.body {
                Body::Probe { .. } | Body::ProbeAck { .. } => "probe",
                Body::PreJoin => "pre-join",
                Body::Kicked => "kicked",
                _ => "other",
            },
            Says::Prime(prime::Message::Epto(_)) => "order",
            Says::Prime(_) => "prime",
        }
    }

    fn logs(&self) -> Vec<(GroupId, &Replica)> {
        Vec::new()
    }
}

type Hosts = World<RollLane>;

/// So many founders, who are told of each other, and know their roll.
fn founded(seed: u64, founders: u64) -> Hosts {
    founded_by(Kind::Rapid, seed, founders)
}

fn founded_by(kind: Kind, seed: u64, founders: u64) -> Hosts {
    let settings = Settings { founders: (1..=founders).map(NodeId).collect(), kind };
    let mut world = World::new(seed, founders, settings);
    world.settings = Settings { kind, ..Settings::default() };
    world.gather(1..founders + 1);
    world
}

/// One host more, which joins.
fn joins(world: &mut Hosts) {
    world.add();
    let node = world.hosts.len() as u64;
    world.gather(node..node + 1);
}

/// Whether all hosts that are up say that these are on the roll, and that it goes on.
fn agree(world: &Hosts, nodes: &[u64]) -> bool {
    let mut lanes = world.hosts.iter().filter_map(|host| host.process.as_ref());
    lanes.all(|lane| {
        let on: Vec<u64> = hosts(lane.configuration()).iter().map(|node| node.0).collect();
        lane.goes_on() && on == nodes
    })
}

fn wait(world: &mut Hosts, nodes: &[u64]) {
    wait_within(world, nodes, 60);
}

fn wait_within(world: &mut Hosts, nodes: &[u64], seconds: u64) {
    let is_agreed = world.run_until(Span::secs(seconds), |world| agree(world, nodes));
    assert!(is_agreed, "they agree on {nodes:?}: {}", shown(world));
}

fn lane(world: &Hosts, at: usize) -> &RollLane {
    world.hosts[at].process.as_ref().expect("it is up")
}

/// How the hosts that are up stand.
fn shown(world: &Hosts) -> String {
    let one = |host: &Host<RollLane>| {
        let lane = host.process.as_ref()?;
        let on = hosts(lane.configuration());
        let status = lane.keeper.stands(world.now);
        Some(format!(
            "{} came {}: {:?}, {on:?}; {status:?}\n",
            host.me.node.0,
            lane.coming,
            lane.keeper.roll()
        ))
    };
    world.hosts.iter().filter_map(one).collect()
}
