//! What operators ask, and what is refused.

use super::world::{World, node};
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use std::string::{String, ToString};

fn drain(host: usize) -> Control {
    Control::Drain { node: node(host), undo: false, replicas: 3 }
}

fn undo(host: usize) -> Control {
    Control::Drain { node: node(host), undo: true, replicas: 3 }
}

fn remove(host: usize) -> Control {
    Control::Remove { node: node(host), force: false }
}

fn why(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused(refusal @ Refusal::Membership { .. }) => refusal.to_string(),
        other => panic!("{other:?} is no refusal of a change of hosts"),
    }
}

#[test]
fn a_stranger_is_not_known() {
    let mut world = World::founded(21, 4);
    let stranger = NodeId(5);
    assert!(
        why(world.order(0, Control::Remove { node: stranger, force: false })).contains("not known")
    );
    let drain = Control::Drain { node: stranger, undo: false, replicas: 3 };
    assert!(why(world.order(0, drain)).contains("not known"));
}

/// How many replicas there are is what keyspaces have when the order comes: they may be altered,
/// and made later.
#[test]
fn how_many_hosts_must_stay_follows_from_the_keyspaces_as_they_are() {
    let mut world = World::founded(7, 4);
    world.run(Span::secs(3));
    let drain = |replicas| Control::Drain { node: node(1), undo: false, replicas };
    assert!(why(world.order(0, drain(5))).contains("leave 3 hosts for keyspaces of 5 replicas"));
    assert_eq!(world.order(0, drain(3)), Outcome::Noted);
}

#[test]
fn the_last_replicas_are_not_drained() {
    let mut world = World::founded(22, 4);
    assert_eq!(world.order(0, drain(1)), Outcome::Noted);
    assert_eq!(world.order(0, drain(1)), Outcome::Noted, "twice is once");
    assert!(why(world.order(0, drain(2))).contains("add a host first"));
    assert_eq!(world.order(0, undo(1)), Outcome::Noted);
    assert_eq!(world.order(0, drain(2)), Outcome::Noted);
    world.run(Span::secs(5));
    for host in 0..4 {
        assert_eq!(world.sees(host, 1), Some((Standing::Up, false)));
        assert_eq!(world.sees(host, 2), Some((Standing::Leaving, false)));
    }
}

#[test]
fn a_host_that_answers_is_not_removed_unless_it_leaves() {
    let mut world = World::founded(23, 5);
    assert!(why(world.order(0, remove(1))).contains("drain it first, or stop it"));
    assert_eq!(world.order(0, drain(1)), Outcome::Noted);
    assert_eq!(world.order(0, remove(1)), Outcome::Noted);
    assert_eq!(world.order(0, remove(1)), Outcome::Noted, "twice is once");
    assert!(why(world.order(0, undo(1))).contains("has left already"));
    world.crash(2);
    world.run(Span::secs(10));
    assert_eq!(world.order(0, remove(2)), Outcome::Noted);
}

#[test]
fn more_than_a_majority_allows_are_not_removed() {
    let mut world = World::founded(24, 3);
    world.crash(1);
    world.crash(2);
    world.run(Span::secs(15));
    assert!(why(world.order(0, remove(1))).contains("1 of the 3 hosts answer"));
    let forced = Control::Remove { node: node(1), force: true };
    assert_eq!(world.order(0, forced), Outcome::Noted);
    assert!(why(world.order(0, remove(0))).contains("drain it first"), "it answers");
}

#[test]
fn orders_at_two_hosts_at_once_end_alike_everywhere() {
    let mut world = World::founded(25, 8);
    world.order(0, drain(3));
    world.order(1, drain(3));
    world.order(1, undo(3));
    world.run(Span::secs(10));
    let seen = world.sees(0, 3);
    assert!((0..8).all(|host| world.sees(host, 3) == seen));
}

#[test]
fn a_drain_of_a_host_that_is_down_is_heard_when_it_is_back() {
    let mut world = World::founded(26, 6);
    world.crash(3);
    world.run(Span::secs(10));
    assert_eq!(world.order(0, drain(3)), Outcome::Noted);
    world.run(Span::secs(5));
    world.start(3);
    world.run(Span::secs(10));
    assert!((0..6).all(|host| world.sees(host, 3) == Some((Standing::Leaving, false))));
}
