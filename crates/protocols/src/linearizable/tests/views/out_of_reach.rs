//! Groups whose majority is away, and the others beside them.

use crate::linearizable::Linearizable;
use crate::linearizable::tests::random::rings::up;
use crate::testing::shown::Row;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::{Closing, RingHost};
use quorate_kernel::time::Span;
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// Whose tokens follow each other on the ring: the first hosts behind a token hold its group. Most
/// groups are those of 1, 2 and 3.
const OWNERS: [u64; 27] =
    [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 4, 1, 3, 5, 1, 4, 2, 1, 5, 3];
/// Hosts that crash, and do not come back.
const LOST: [u64; 2] = [2, 3];
const REPLICAS: usize = 3;

/// The hosts, each with its tokens.
fn hosts() -> Vec<RingHost> {
    let mut hosts = up(&[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
    hosts.iter_mut().for_each(|host| host.tokens.clear());
    for (place, owner) in (1..).zip(OWNERS) {
        let host = hosts.iter_mut().find(|host| host.who.node.0 == owner);
        host.expect("five hosts").tokens.push(place * (u64::MAX / 64));
    }
    hosts
}

fn calm(world: &mut World<Linearizable>, span: Span) {
    let end = world.now + span;
    while world.now < end {
        while !world.flights.is_empty() {
            world.deliver(0);
        }
        world.tick(Span::millis(20));
    }
    world.log.clear();
}

/// How many members of a group are there.
fn living(row: &Row, lost: &[u64]) -> usize {
    let is_lost = |member: &str| lost.iter().any(|node| NodeId(*node).to_string() == member);
    row["members"].split(',').filter(|member| !is_lost(member)).count()
}

/// What the groups lack that have a majority; and how many groups there are in all.
fn lacking(world: &mut World<Linearizable>, lost: &[u64]) -> (Vec<String>, usize) {
    let (mut lacking, mut all) = (Vec::new(), BTreeSet::new());
    for node in (1..=5).filter(|node| !lost.contains(node)) {
        for row in world.rows(node, "groups") {
            if row["status"] == "split" || row["status"] == "learned" || row["role"] == "learner" {
                continue;
            }
            all.insert(row["high"].clone());
            let living = living(&row, lost);
            let is_whole = living == REPLICAS && row["status"] == "ready";
            if living * 2 > REPLICAS && !is_whole {
                lacking.push(format!("node {node}: {row:?}"));
            }
        }
    }
    (lacking, all.len())
}

fn rest(world: &mut World<Linearizable>, lost: &[u64]) {
    let end = world.now + Span::secs(30);
    loop {
        let (lacking, count) = lacking(world, lost);
        // One lies behind the last token.
        if lacking.is_empty() && count == OWNERS.len() + 1 {
            return;
        }
        assert!(world.now < end, "{count} groups, of which lack: {lacking:#?}");
        calm(world, Span::millis(200));
    }
}

/// Of many groups the first host is the only one left. What it proposes there never ends, and it
/// goes on with those that have a majority.
#[test]
fn groups_without_a_majority_hold_up_no_others() {
    let options = Vec::from(["brisk".to_string()]);
    let mut world: World<Linearizable> =
        World::new(&Setup { members: 3, spares: 2, options, ..Setup::default() });
    let mut hosts = hosts();
    for node in 1..=5 {
        world.announce(node, &hosts, Closing::No);
    }
    rest(&mut world, &[]);
    LOST.iter().for_each(|node| world.crash(*node));
    for host in hosts.iter_mut().filter(|host| LOST.contains(&host.who.node.0)) {
        host.is_suspected = true;
    }
    for node in [1, 4, 5] {
        world.announce(node, &hosts, Closing::No);
    }
    let (lacks, _) = lacking(&mut world, &LOST);
    assert!(lacks.len() > 4, "groups of two living members: {lacks:?}");
    let alone = world.rows(1, "groups");
    let alone = alone.iter().filter(|row| living(row, &LOST) == 1).count();
    assert!(alone > 8, "more than are moved at once: {alone}");
    rest(&mut world, &LOST);
}
