//! Random faults of every kind; the world's judge sees all hosts.

use super::world::{World, create};
use quorate_kernel::keyspace::KeyspaceOrder;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use std::format;
use std::string::ToString;

const SEEDS: u64 = 50;

/// What all runs together have done; a test that never met a rare case proves nothing.
#[derive(Debug, Default)]
struct Tally {
    noted: usize,
    done: usize,
    refused: usize,
    no_quorum: usize,
    unknown: usize,
    crashes: usize,
    decrees: u64,
    snapshots: u64,
    members: usize,
}

fn order(world: &mut World, host: usize, order: KeyspaceOrder) {
    world.order(host, order, Span::secs(2));
}

/// A host is asked something, or ends and starts at once, forgetting what it has not synced.
fn crowd(world: &mut World, host: usize, tally: &mut Tally) {
    let name = format!("k{}", world.rng.below(12));
    match world.rng.below(8) {
        0..4 => order(world, host, create(&name, "groups")),
        4 | 5 => order(world, host, KeyspaceOrder::Drop { name }),
        6 => (0..world.hosts.len()).for_each(|host| world.start(host)),
        _ => {
            tally.crashes += 1;
            world.crash(host);
            world.start(host);
        }
    }
}

/// Any fault, or anything asked.
fn harm(world: &mut World, host: usize, tally: &mut Tally) {
    let name = format!("k{}", world.rng.below(3));
    match world.rng.below(20) {
        0..5 => order(world, host, create(&name, "groups")),
        5..8 => order(world, host, create(&name, "places")),
        8..12 => order(world, host, KeyspaceOrder::Drop { name }),
        12 => {
            let settings = [("replicas".to_string(), "1".to_string())].into();
            order(world, host, KeyspaceOrder::Alter { name, settings });
        }
        13 | 14 => {
            tally.crashes += 1;
            world.crash(host);
        }
        15 | 16 => world.start(host),
        17 => world.hosts[host].side = world.rng.below(2) as u8,
        18 => (0..world.hosts.len()).for_each(|host| world.hosts[host].side = 0),
        _ if world.hosts.len() < 8 => world.add(None),
        _ => {
            let leaves = world.rng.below(2) == 0;
            let standing = if leaves { Standing::Leaving } else { Standing::Up };
            world.hosts[host].standing = standing;
        }
    }
}

fn run(seed: u64, tally: &mut Tally) {
    let founders = 1 + (seed % 6) as usize;
    let mut world = World::founded(seed, founders);
    // In every second run all happens at once: proposals meet, messages outlive the crash of whom
    // they were sent to, and of who sent them.
    let is_crowded = seed % 2 == 1;
    world.jitter = Span::millis(if is_crowded { 60 } else { 20 });
    world.loss_percent = seed % 4 * 8;
    for _ in 0..if is_crowded { 500 } else { 120 } {
        let host = world.rng.below(world.hosts.len() as u64) as usize;
        let pause = world.rng.below(if is_crowded { 30 } else { 400 });
        if is_crowded && world.rng.below(4) > 0 {
            crowd(&mut world, host, tally);
        } else {
            harm(&mut world, host, tally);
        }
        world.run(Span::millis(pause));
    }
    // All is well again: everybody learns the same, and what is asked is done.
    world.loss_percent = 0;
    for host in 0..world.hosts.len() {
        world.hosts[host].side = 0;
        world.hosts[host].standing = Standing::Up;
        world.start(host);
    }
    world.run(Span::secs(30));
    let host = world.hosts.len() - 1;
    let last = world.order(host, create("last", "groups"), Span::secs(5));
    world.run(Span::secs(10));
    assert_eq!(world.answers.get(&last), Some(&Outcome::Noted), "seed {seed}: it goes on");
    let names = world.names(0);
    assert!(names.contains(&"last".to_string()), "seed {seed}");
    for host in 0..world.hosts.len() {
        assert_eq!(world.names(host), names, "seed {seed}: host {host} knows the same");
        let lane = world.hosts[host].lane.as_ref().expect("it is up");
        tally.snapshots += lane.state.snapshots;
    }
    world.judge_answers();
    tally.done += world.done();
    for outcome in world.answers.values() {
        match outcome {
            Outcome::Noted => tally.noted += 1,
            Outcome::Refused(Refusal::NoQuorum { .. }) => tally.no_quorum += 1,
            Outcome::Refused(Refusal::CatalogUnknown) => tally.unknown += 1,
            _ => tally.refused += 1,
        }
    }
    tally.decrees += world.version(0);
    let is_members =
        |entry: &&crate::catalog::Entry| matches!(entry.decree, crate::catalog::Decree::Members(_));
    tally.members += world.chain.values().filter(is_members).count();
}

#[test]
fn there_is_one_chain_and_it_goes_on_when_all_is_well() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        run(seed, &mut tally);
    }
    let seeds = SEEDS as usize;
    let common = [tally.noted, tally.refused, tally.crashes, tally.members];
    assert!(common.iter().all(|count| *count > seeds), "{tally:?}");
    // Only alterations may change nothing.
    assert!(tally.done * 10 > tally.noted * 9, "{tally:?}");
    assert!(tally.no_quorum > seeds && tally.unknown > seeds / 2, "{tally:?}");
    assert!(tally.decrees > 5 * SEEDS && tally.snapshots > SEEDS / 4, "{tally:?}");
}
