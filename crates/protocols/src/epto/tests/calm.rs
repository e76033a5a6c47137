//! Without faults all nodes deliver all events in one order, and soon.

use super::shape::Shape;
use super::world::World;
use crate::epto::STABLE_AFTER;

#[test]
fn all_deliver_all_in_one_order() {
    for seed in 0..3 {
        let mut world = World::new(Shape::of(100, seed));
        world.load(10, 5);
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "seed {seed}");
        assert_eq!(agreement.pairs, world.judge.broadcast.len() * 100, "seed {seed}");
        assert_eq!(world.refused, 0);
    }
}

/// The latency is TTL + 2 rounds, and a little for drift.
#[test]
fn an_event_is_delivered_after_its_time() {
    let mut world = World::new(Shape::of(100, 7));
    let ttl = u64::from(world.shape.parameters.ttl);
    world.broadcast(3).expect("a founder may");
    world.run((ttl + u64::from(STABLE_AFTER)) * 8 / 10);
    assert!(world.judge.nodes.iter().all(|told| told.delivered.is_empty()), "not so soon");
    world.run((ttl + u64::from(STABLE_AFTER)) * 4 / 10 + 2);
    assert!(world.judge.nodes.iter().all(|told| told.delivered.len() == 1));
}
