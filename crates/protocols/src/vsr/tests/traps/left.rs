//! Members that have left the cluster for good, while others forget.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::{Message, Status};
use quorate_kernel::ids::NodeId;
use std::vec::Vec;

/// Two of three forgot, the primary among them, and the third has left the cluster: nobody has what
/// it had, so nobody waits for it.
#[test]
fn nobody_waits_for_the_whole_one_once_it_has_left() {
    let mut world = World::calm(3, 1, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    world.put_many(a, 3);
    [a, b].into_iter().for_each(|node| world.crash(node));
    world.crash(c);
    world.nodes[c].is_wiped = true;
    world.mend();
    [a, b].into_iter().for_each(|node| world.start(node));
    world.run_ms(3000);
    assert_eq!(world.serving(), None, "it may come back with what they lack");
    world.judge.may_lose();
    let gone = NodeId(c as u64 + 1);
    for node in [a, b] {
        world.turn(node, |replica, _| replica.note_left(|node| node == gone));
    }
    world.run_until("they go on", |world| world.serving().is_some());
    assert_eq!(world.told["lost"], 2, "both know it");
    let members = ids(&(1..=4).filter(|id| *id != gone.0).collect::<Vec<_>>());
    let serving = world.serving().expect("somebody serves");
    world.turn(serving, |replica, _| replica.wish(&members).expect("it leads"));
    world.run_until("another takes its place", |world| world.members == members);
    world.settle();
}

/// Who has forgotten asked a primary for the log, and that has left the cluster.
#[test]
fn who_gets_the_log_of_one_that_leaves_asks_another() {
    let mut world = World::calm(5, 0, Level::Memory);
    let [a, b, c, d, e] = world.order()[..] else { panic!("five lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    world.crash(e);
    world.lose(move |_, to, message| to == e && matches!(message, Message::NewState { .. }));
    world.start(e);
    world.run_until("it has chosen", |world| world.replica(e).recovery.source.is_some());
    world.cut(&[a]);
    world.crash(a);
    world.nodes[a].is_wiped = true;
    let gone = NodeId(a as u64 + 1);
    for node in [b, c, d, e] {
        world.turn(node, |replica, _| replica.note_left(|node| node == gone));
    }
    world.mend();
    world.run_until("it has the log", |world| world.replica(e).status() == Status::Normal);
    world.settle();
}

/// Who is told of others that they have left begins no view without a majority, whether that is
/// true or not: its log may lack what they have committed.
#[test]
fn who_is_told_that_the_others_have_left_goes_on_with_nobody() {
    for level in [Level::Sync, Level::Memory] {
        let mut world = World::calm(3, 0, level);
        let [a, _, c] = world.order()[..] else { panic!("three lead in turn") };
        world.run_ms(60);
        world.cut(&[c]);
        world.put_many(a, 3);
        if level == Level::Memory {
            world.crash(c);
            world.start(c);
        }
        world.turn(c, |replica, _| replica.note_left(|_| true));
        world.run_ms(3000);
        assert!(world.replica(c).primary.is_none(), "it leads nobody");
        assert_eq!(world.told.get("lost"), None);
        world.turn(c, |replica, _| replica.note_left(|_| false));
        world.mend();
        world.settle();
        assert!(world.replica(c).log().end() >= world.replica(a).commit());
    }
}

/// A host that is told to have left is there, and has what two others have lost: they hear it late.
#[test]
fn who_has_left_and_is_there_is_heard_before_others_go_on_without_it() {
    let mut world = World::calm(3, 1, Level::Periodic);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    [a, b].into_iter().for_each(|node| world.crash(node));
    let left = NodeId(c as u64 + 1);
    world.cut(&[c]);
    for node in [a, b] {
        world.start(node);
        world.turn(node, |replica, _| replica.note_left(|node| node == left));
    }
    world.run_ms(100);
    assert_eq!(world.serving(), None, "they may hear it yet");
    world.mend();
    world.run_until("they go on with what it has", |world| world.serving().is_some());
    world.settle();
}

/// A primary whose others are told to have left: its own acknowledgement alone counts.
#[test]
fn beats_are_right_where_the_others_are_told_to_have_left() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, ..] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.turn(a, |replica, _| replica.note_left(|_| true));
    for _ in 0..20 {
        world.put_many(a, 3);
        world.run_ms(20);
    }
    assert_eq!(world.serving(), Some(a), "all that it says is taken");
    world.settle();
}
