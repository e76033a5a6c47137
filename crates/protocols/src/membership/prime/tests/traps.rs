//! The mistakes that are easy to make.

use super::world::World;
use quorate_kernel::ids::NodeId;
use quorate_kernel::time::Span;
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

/// The others let it in, and it hears no report of that.
#[test]
fn a_joiner_with_a_hole_finds_out_and_is_a_member() {
    let mut world = World::new(8, 1);
    world.run(3);
    world.join(20, 1, &[1, 2, 3]);
    let joins = world.node(20).prime.joins.take();
    for _ in 0..60 {
        world.run(1);
        if world.node(20).prime.epto().has_place() {
            break;
        }
    }
    assert!(world.node(20).prime.view().is_some(), "it has a place, and does not ask to come yet");
    let until = world.now + Span::secs(120);
    let node = world.node(20);
    (node.deaf_until, node.prime.joins) = (until, joins);
    world.run(100);
    assert_eq!(world.one_view().1, [1, 2, 3, 4, 5, 6, 7, 8, 20]);
    assert!(!world.node(20).views.is_empty(), "it is told, though it hears no report");
}

#[test]
fn who_was_removed_while_it_stood_still_hears_it() {
    let mut world = World::new(8, 2);
    world.run(3);
    let pause = Span::secs(80);
    world.node(4).is_stopped = true;
    world.run(80);
    assert_eq!(world.one_view().1, [1, 2, 3, 5, 6, 7, 8]);
    world.wake(4, pause);
    world.run(40);
    assert!(world.node(4).is_out, "it is told that it is no member any more");
    assert_eq!(world.one_view().1, [1, 2, 3, 5, 6, 7, 8]);
}
