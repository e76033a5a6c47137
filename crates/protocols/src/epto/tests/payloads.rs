//! Payloads apart from keys: each comes once, memory is bounded, and order does not depend on them.

use super::shape::Shape;
use super::world::World;
use crate::epto::BroadcastError;

/// The model behind it: keys go from node to node without waiting for payloads, and the payloads
/// follow long before they are due.
#[test]
fn each_payload_comes_to_each_node_about_once() {
    let mut shape = Shape::of(100, 3);
    shape.payload_bytes = 100;
    let mut world = World::new(shape);
    world.load(8, 6);
    let agreement = world.settle();
    assert_eq!(agreement.holes, 0);
    let all: usize = world.judge.broadcast.values().map(|payload| payload.len()).sum();
    let came: u64 = world.nodes.iter().map(|node| node.epto.counters().payload_bytes).sum();
    let once = 99 * all as u64;
    assert!(came >= once && came <= once + once / 50, "{came} bytes came, {once} were needed");
    for node in &world.nodes {
        assert!(node.epto.counters().pulls <= agreement.pairs as u64 / 100 * 3 / 2);
    }
    world.run(40);
    assert!(world.nodes.iter().all(|node| node.epto.held_bytes() == 0), "nothing is kept for ever");
}

/// Most rounds find memory full. What finds no room comes later or is a hole that is known.
#[test]
fn memory_is_bounded_and_the_order_is_one() {
    for seed in 0..2 {
        let mut shape = Shape::of(50, seed);
        shape.payload_bytes = 1000;
        shape.parameters.held_bytes_max = 20_000;
        let mut world = World::new(shape);
        let mut most = 0;
        for _ in 0..60 {
            world.load(1, 4);
            let held = world.nodes.iter().map(|node| node.epto.held_bytes());
            most = held.max().expect("there are nodes").max(most);
        }
        assert!((15_000..20_000 + 1008).contains(&most), "{most} bytes at most");
        let refused = world.load_refused();
        assert!(refused > 0, "who has no room does not broadcast");
        let agreement = world.settle();
        assert!(agreement.holes * 20 < agreement.pairs, "seed {seed}: {agreement:?}");
    }
}

#[test]
fn events_are_bounded_and_overload_is_refused() {
    let mut shape = Shape::of(30, 1);
    shape.parameters.events_max = 60;
    let mut world = World::new(shape);
    let mut taken = 0;
    let refused = loop {
        match world.broadcast(4) {
            Ok(_) => taken += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((taken, refused), (30, BroadcastError::Overload));
    let agreement = world.settle();
    assert_eq!((agreement.pairs, agreement.holes), (31 * 30, 0), "and then there is room again");
}
