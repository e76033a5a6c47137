//! Clusters of one to five: observers repeat, and the fast round bears nobody missing.

use super::world::World;
use crate::membership::{Denied, Status};
use quorate_kernel::ids::NodeId;
use std::vec::Vec;

fn first(count: usize) -> Vec<usize> {
    (0..count).collect()
}

#[test]
fn a_cluster_of_any_small_size_lets_nodes_in_one_by_one() {
    for founders in 1..=5 {
        let mut world = World::calm(founders as u64);
        for size in founders + 1..=founders + 3 {
            let seed = size % founders;
            world.join(&[seed]);
            world.run_until("it is let in", |world| world.has_members(&first(size)));
        }
        assert_eq!(world.number(), 4, "one change for each");
        assert_eq!(world.judge.classic, 0, "all find the same");
    }
}

#[test]
fn a_cluster_of_any_small_size_is_left() {
    for founders in 2..=5 {
        let mut world = World::calm(founders as u64);
        for size in (1..founders).rev() {
            world.turn(size, |roll, cx| roll.leave(cx).expect("it is a member"));
            world.run_until("it has left", |world| world.has_members(&first(size)));
            assert_eq!(world.status(size), Status::Left);
        }
        let mut denied = None;
        world.turn(0, |roll, cx| denied = Some(roll.leave(cx)));
        assert_eq!(denied, Some(Err(Denied::Last)));
        assert_eq!(world.judge.classic, 0);
    }
}

/// One of three, four or five is removed; of one or two nobody can be.
#[test]
fn a_crashed_member_is_removed_where_a_majority_is_left() {
    for founders in 2..=5 {
        let mut world = World::calm(founders as u64);
        let gone = founders - 1;
        world.crash(gone);
        if founders > 2 {
            world.run_until("it is removed", |world| world.has_members(&first(gone)));
            assert!(world.now.0 / 1_000_000_000 < 12, "{:?}", world.now);
        } else {
            world.run_ms(60_000);
            let waiting = Status::Waiting { heard: 1, needed: 2, members: 2 };
            assert_eq!((world.number(), world.status(0)), (1, waiting));
            world.start(gone);
            world.run_until("both go on", |world| world.number() == 1 || world.number() == 2);
        }
    }
}

/// Two of five, and three of seven, go at one moment; also where hardly any observer is left.
#[test]
fn a_minority_that_crashes_at_once_is_removed_at_once() {
    for (founders, gone) in [(5_usize, 2_usize), (7, 3), (9, 4), (11, 5)] {
        for first_gone in 0..founders - gone {
            let mut world = World::calm(founders as u64);
            world.run_ms(1000);
            (first_gone..first_gone + gone).for_each(|node| world.crash(node));
            let mut left = first(founders);
            left.retain(|node| !(first_gone..first_gone + gone).contains(node));
            world.run_until("they are removed", |world| world.has_members(&left));
            assert!(world.number() <= 3, "{} changes", world.number() - 1);
        }
    }
}

#[test]
fn who_is_told_that_it_is_out_knows_the_others() {
    let mut world = World::calm(4);
    world.turn(1, |roll, cx| roll.kick(NodeId(4), cx).expect("it is a member"));
    let mut denied = Vec::new();
    world.turn(1, |roll, cx| denied.push(roll.kick(NodeId(9), cx)));
    assert_eq!(denied, [Err(Denied::Unknown(NodeId(9)))]);
    world.run_until("it is out", |world| world.has_members(&first(3)));
    assert_eq!(world.status(3), Status::Kicked);
    assert!(!world.roll(3).configuration().contains(NodeId(4)), "it took part in the decision");
    assert_eq!(world.told["kicked"], 1);
    // It is told once, and knows it after a restart.
    world.crash(3);
    world.start(3);
    world.run_ms(5000);
    assert_eq!((world.status(3), world.told["kicked"]), (Status::Kicked, 1));
    let mut denied = None;
    world.turn(3, |roll, cx| denied = Some(roll.join(&[NodeId(1)], cx)));
    assert_eq!(denied, Some(Err(Denied::HasJoined)), "its id was a member's");
}
