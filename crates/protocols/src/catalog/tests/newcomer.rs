//! Who may come into the system group.

use super::apart::members;
use super::world::{World, node};
use quorate_kernel::time::Span;
use std::sync::Arc;

#[test]
fn who_does_not_answer_takes_no_place_in_the_system_group() {
    let mut world = World::founded(9, 3);
    world.run(Span::secs(3));
    world.add(None);
    world.run(Span::secs(5));
    world.crash(1);
    let believed = world.ring_of(0);
    assert!(believed.is_suspected(node(1)) && !believed.is_suspected(node(3)));
    // The newcomer dies too, and nobody has noticed.
    world.crash(3);
    for host in [0, 2] {
        world.hosts[host].stale = Some(Arc::clone(&believed));
    }
    world.run(Span::secs(10));
    assert_eq!(members(&world, 0), [0, 1, 2].map(node));
    world.start(3);
    world.run(Span::secs(10));
    assert_eq!(members(&world, 0), [0, 2, 3].map(node), "it answers");
}
