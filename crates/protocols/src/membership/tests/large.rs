//! Many nodes: the paper's own claims (§7), as far as a simulation can repeat them.

use super::world::{Setup, World};
use quorate_kernel::time::Span;
use std::vec::Vec;

fn world(founders: u64) -> World {
    World::new(Setup { seed: 7, founders, jitter: Span::millis(10), is_encoded: false })
}

/// `nodes` come to one that is alone, all within a second; then some go at one moment; then some
/// lose much of what they are sent. Each is few configurations, and takes nobody else away.
fn run(nodes: usize, crashes: usize, lossy: usize) {
    let mut world = world(1);
    let mut begin = world.now;
    let all: Vec<usize> = (0..nodes).collect();
    for _ in 1..nodes {
        world.join(&[0]);
        world.run_ms(1000 / nodes as u64);
    }
    world.run_until("all are let in", |world| world.has_members(&all));
    let report = |world: &World, what: &str, begin, since| {
        std::println!(
            "{nodes} nodes, {what}: {} configurations, {} ms, {} messages so far",
            world.number() - since,
            (world.now - begin).as_millis(),
            world.messages
        );
    };
    report(&world, "mass join", begin, 1);
    assert!(world.number() <= 25, "{} configurations for a mass join", world.number() - 1);
    world.run_ms(20_000);

    let (joined, gone) = (world.number(), 10..10 + crashes);
    begin = world.now;
    gone.clone().for_each(|node| world.crash(node));
    let mut left = all;
    left.retain(|node| !gone.contains(node));
    world.run_until("those are removed", |world| world.has_members(&left));
    report(&world, "correlated crash", begin, joined);
    assert!(world.number() - joined <= 2, "who goes together is removed together");
    world.run_ms(20_000);

    let (removed, bad) = (world.number(), nodes - lossy..nodes);
    begin = world.now;
    bad.clone().for_each(|node| _ = world.ingress_loss.insert(node, 80));
    left.retain(|node| !bad.contains(node));
    let holds = |world: &World| {
        let last = world.judge.last().expect("there is one");
        let ids: Vec<usize> = last.ids().map(|id| id.0 as usize - 1).collect();
        ids == left
    };
    world.run_until("who loses much is removed", holds);
    report(&world, "80 % loss of what some are sent", begin, removed);
    let number = world.number();
    world.run_ms(30_000);
    assert_eq!(world.number(), number, "nobody else is removed");
    assert!(number - removed <= lossy as u64, "few configurations");
    assert!(world.has_members(&left));
}

#[test]
fn a_hundred_nodes_join_crash_and_lose_frames() {
    run(100, 10, 1);
}

/// Takes minutes: `cargo test -p quorate-protocols --lib membership -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_nodes_join_crash_and_lose_frames() {
    run(1000, 10, 10);
}
