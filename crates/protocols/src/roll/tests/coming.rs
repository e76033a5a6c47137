//! Hosts come, fail, come again, and leave.

use super::{Hosts, agree, founded, joins, lane, wait};
use crate::membership::{self, Body};
use crate::roll::names::name;
use crate::roll::{Message, Says};
use quorate_kernel::ids::NodeId;
use quorate_kernel::process::Process;
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use std::vec::Vec;

#[test]
fn founders_agree_from_the_beginning_and_others_come() {
    let mut world = founded(1, 3);
    wait(&mut world, &[1, 2, 3]);
    joins(&mut world);
    wait(&mut world, &[1, 2, 3, 4]);
    let lanes = world.hosts.iter().filter_map(|host| host.process.as_ref());
    assert!(lanes.map(|lane| lane.coming).eq([0; 4]), "nobody has come twice");
}

/// Rapid, §3: a process that comes again has another id. Here that is the host's doing.
#[test]
fn who_is_removed_and_is_there_comes_again_under_another_name() {
    let mut world = founded(2, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    world.crash(3);
    wait(&mut world, &[1, 2, 3]);
    world.restart(3);
    wait(&mut world, &[1, 2, 3, 4]);
    assert_eq!(lane(&world, 3).coming, 1);
    assert_eq!(lane(&world, 3).name(NodeId(4)), name(NodeId(4), 1));
    // Once more, now under a name that is not its node id: it is found by that all the same.
    world.crash(3);
    wait(&mut world, &[1, 2, 3]);
    world.restart(3);
    wait(&mut world, &[1, 2, 3, 4]);
    assert_eq!(lane(&world, 3).coming, 2);
}

/// A restart is neither a leave nor a join.
#[test]
fn who_is_back_soon_was_never_away() {
    let mut world = founded(3, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    let before = lane(&world, 0).configuration().id;
    world.crash(3);
    world.run(Span::secs(2));
    world.restart(3);
    world.run(Span::secs(20));
    assert!(agree(&world, &[1, 2, 3, 4]));
    assert_eq!(lane(&world, 0).configuration().id, before);
    assert_eq!(lane(&world, 3).coming, 0);
}

/// All are found under other names than their nodes' by then.
#[test]
fn a_host_joins_by_hosts_that_have_come_again() {
    let mut world = founded(4, 3);
    for at in 0..3 {
        world.crash(at);
        let others: Vec<u64> = (1..=3).filter(|node| *node != at as u64 + 1).collect();
        wait(&mut world, &others);
        world.restart(at);
        wait(&mut world, &[1, 2, 3]);
        assert_eq!(lane(&world, at).coming, 1);
    }
    joins(&mut world);
    wait(&mut world, &[1, 2, 3, 4]);
}

fn stand(world: &mut Hosts, at: usize, standing: Standing) {
    world.stand(at, standing);
}

#[test]
fn who_leaves_the_cluster_leaves_the_roll_and_does_not_come_back() {
    let mut world = founded(5, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    stand(&mut world, 3, Standing::Left);
    let is_gone = world.run_until(Span::secs(10), |world| {
        let on = |at: usize| super::hosts(lane(world, at).configuration());
        (0..3).all(|at| !on(at).contains(&NodeId(4)))
    });
    assert!(is_gone, "it is off the roll");
    world.run(Span::secs(20));
    assert!(!lane(&world, 3).keeper.is_member(), "it stays away");
    // An operator takes it back.
    stand(&mut world, 3, Standing::Up);
    wait(&mut world, &[1, 2, 3, 4]);
}

/// It is down, and its observers would find that out anyway: who removes it need not wait.
#[test]
fn who_is_removed_by_an_operator_is_sent_away() {
    let mut world = founded(6, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    world.crash(3);
    stand(&mut world, 3, Standing::Left);
    let is_soon = world.run_until(Span::secs(3), |world| agree(world, &[1, 2, 3]));
    assert!(is_soon, "sooner than probes find it");
}

/// It was sent to the host before it came again: it says nothing of what it is now.
#[test]
fn what_was_meant_for_an_earlier_coming_is_not_taken_by_a_later_one() {
    let mut world = founded(7, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    world.crash(3);
    wait(&mut world, &[1, 2, 3]);
    world.restart(3);
    wait(&mut world, &[1, 2, 3, 4]);
    let from = world.hosts[0].me;
    let mut roll = lane(&world, 0).configuration().id;
    roll.number = roll.number.next();
    let mut say = |whom| {
        let says = Says::Rapid(membership::Message { roll, body: Body::Kicked });
        let message = Message { coming: 0, whom: Some(whom), says };
        world.turn(3, |lane, cx| lane.on_message(from, message, cx));
        lane(&world, 3).coming
    };
    assert_eq!(say(name(NodeId(4), 0)), 1, "it is not meant");
    assert_eq!(say(name(NodeId(4), 1)), 2, "it is meant, and comes again");
}

/// Everything that is sent may be lost or come twice, and hosts start again as they like.
#[test]
fn under_loss_and_restarts_all_agree_in_the_end_and_never_differ() {
    for seed in 0..40 {
        let mut world = founded(100 + seed, 4);
        world.double_percent = 5;
        world.loss_percent = 10;
        joins(&mut world);
        for _ in 0..12 {
            let at = world.rng.below(5) as usize;
            match world.is_up(at) {
                true if world.rng.below(3) > 0 => world.crash(at),
                true => {}
                false => world.restart(at),
            }
            let span = Span::millis(world.rng.between(100, 9_000));
            world.run(span);
            never_differ(&world, seed);
        }
        world.loss_percent = 0;
        for at in 0..5 {
            if !world.is_up(at) {
                world.restart(at);
            }
        }
        wait(&mut world, &[1, 2, 3, 4, 5]);
        never_differ(&world, seed);
    }
}

fn never_differ(world: &Hosts, seed: u64) {
    let known = world.hosts.iter().filter_map(|host| host.process.as_ref());
    let known: Vec<_> = known.map(|lane| lane.configuration()).collect();
    for (one, other) in known.iter().zip(known.iter().skip(1)) {
        let is_one = one.id.number != other.id.number || one == other;
        assert!(is_one, "seed {seed}: one configuration for each number");
    }
}
