//! The mistakes that are easy to make.

use super::world::World;
use quorate_kernel::ids::NodeId;
use std::vec::Vec;

/// One observer that hears nothing of its subjects removes nobody.
#[test]
fn one_observer_alone_removes_nobody() {
    let mut world = World::new(12, 1);
    for id in 2..=12 {
        world.cut.insert((NodeId(1), NodeId(id)));
    }
    world.run(60);
    let (number, members) = world.one_view();
    assert_eq!((number.0, members), (1, (1..=12).collect::<Vec<_>>()));
}

/// Reports that were taken back do not add up: one observer after the other finds a node silent for
/// a while, and never more than a few of them at a time.
#[test]
fn what_is_well_again_does_not_add_up() {
    let mut world = World::new(12, 1);
    for id in 2..=12 {
        world.cut.insert((NodeId(id), NodeId(1)));
        world.run(8);
        world.cut.clear();
        world.run(25);
    }
    let (number, members) = world.one_view();
    assert_eq!((number.0, members), (1, (1..=12).collect::<Vec<_>>()));
}
