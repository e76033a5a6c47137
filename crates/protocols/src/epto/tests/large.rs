//! A thousand nodes.

use super::shape::Shape;
use super::world::World;
use std::vec::Vec;

#[test]
fn a_thousand_nodes_deliver_in_one_order() {
    let mut world = World::new(Shape::of(1000, 1));
    for place in [3, 500, 998] {
        world.broadcast(place).expect("a founder may");
    }
    world.run(2);
    world.broadcast(77).expect("a founder may");
    world.run(40);
    let all: Vec<_> = world.judge.broadcast.keys().copied().collect();
    assert!(world.judge.nodes.iter().all(|told| told.delivered == all));
    let balls: u64 = world.nodes.iter().map(|node| node.epto.counters().balls).sum();
    assert!(balls < 1000 * 20 * 36, "{balls} balls: each node sends K a round, while it has news");
}
