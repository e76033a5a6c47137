//! Nodes that come to a cluster that has gone far, or find out that they are far behind.

use super::shape::{Fault, Kept, Shape};
use super::traps::{Solo, copy, event};
use super::world::World;
use crate::epto::{Horizon, LogicalTime, ResumeError};
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use std::vec::Vec;

/// All clocks are where a long life has brought them.
fn old_world(nodes: usize, seed: u64) -> World {
    let mut world = World::new(Shape::of(nodes, seed));
    for node in &mut world.nodes {
        node.epto.clock.reach(LogicalTime(3 * EPTO_CLOCK_JUMP_MAX));
    }
    world
}

#[test]
fn a_newcomer_gets_its_clock_from_the_others() {
    for (nodes, seed) in [(60, 0), (60, 1), (2, 0), (3, 0)] {
        let mut world = old_world(nodes, seed);
        let ttl = u64::from(world.shape.parameters.ttl);
        world.load(4, 1);
        world.fault(Fault::Restart(1));
        world.load(3 * ttl + 10, 2);
        assert_eq!(world.refused, 0, "nobody took it for a liar");
        assert!(world.nodes[1].epto.may_broadcast(), "{nodes} nodes");
        let key = world.broadcast(1).expect("it may");
        assert!(key.time.0 > 3 * EPTO_CLOCK_JUMP_MAX);
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "{nodes} nodes, seed {seed}: {agreement:?}");
    }
}

/// Somebody whose clock is far off sends it to a newcomer, before anybody else does.
#[test]
fn a_newcomer_does_not_believe_one_liar() {
    for seed in 0..3 {
        let mut world = old_world(12, seed);
        world.fault(Fault::Restart(1));
        for _ in 0..4 {
            world.fault(Fault::Bomb(9));
            world.run(1);
        }
        world.load(3 * u64::from(world.shape.parameters.ttl), 2);
        let key = world.broadcast(1).expect("it may");
        assert!(key.time.0 < 4 * EPTO_CLOCK_JUMP_MAX);
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
    }
}

/// Nobody speaks, so its clock is that of the state.
#[test]
fn a_newcomer_to_a_silent_cluster_gets_its_clock_from_the_state() {
    let mut world = old_world(10, 1);
    world.fault(Fault::Restart(1));
    let horizon = world.nodes[0].epto.horizon().expect("it has a place");
    assert_eq!(world.nodes[1].epto.resume_at(&horizon), Err(ResumeError::Early));
    world.load(40, 0);
    let key = world.broadcast(1).expect("it may");
    assert!(key.time.0 > 3 * EPTO_CLOCK_JUMP_MAX);
    assert_eq!(world.settle().holes, 0);
}

/// Who was away while the others' clocks went far finds three that say so. Then it has missed a
/// lot, and takes over a state.
#[test]
fn who_is_far_behind_loses_its_place_and_finds_it_again() {
    let mut world = World::new(Shape::of(40, 1));
    let ttl = u64::from(world.shape.parameters.ttl);
    world.load(2, 1);
    world.fault(Fault::Pause(5, ttl / 4, Kept::Nothing));
    world.run(1);
    for node in world.nodes.iter_mut().filter(|node| !node.is_paused(world.now)) {
        node.epto.clock.reach(LogicalTime(2 * EPTO_CLOCK_JUMP_MAX));
    }
    world.load(3 * ttl, 2);
    assert_eq!(world.judge.nodes[5].places_lost, 1);
    let agreement = world.settle();
    assert!(world.judge.nodes[5].is_there);
    assert_eq!(agreement.holes, 0, "{agreement:?}");
}

/// What was on its way before it was reachable would be in neither: not in the state, as it was not
/// stable, nor among what it heard.
#[test]
fn a_newcomer_takes_over_nothing_before_it_has_listened() {
    let mut world = World::new(Shape::of(40, 1));
    let ttl = u64::from(world.shape.parameters.ttl);
    for _ in 0..4 {
        world.load(2, 3);
        world.run(ttl - 3);
        world.fault(Fault::Restart(1));
        world.run(1);
        assert!(!world.nodes[1].epto.has_place());
        let horizon = world.nodes[0].epto.horizon().expect("it has a place");
        assert_eq!(world.nodes[1].epto.resume_at(&horizon), Err(ResumeError::Early));
        world.run(2 * ttl + 8);
    }
    let agreement = world.settle();
    assert_eq!(agreement.holes, 0, "{agreement:?}");
}

/// Whoever gives it the state may wait for a payload with what all others have delivered.
#[test]
fn a_newcomer_listens_as_long_as_a_donor_may_hold_back() {
    let mut world = World::new(Shape::of(12, 1));
    let parameters = world.shape.parameters;
    let listens = parameters.ttl + parameters.hold_rounds;
    world.fault(Fault::Restart(1));
    let node = &mut world.nodes[1].epto;
    for _ in 0..=listens {
        assert!(!node.may_resume());
        node.on_round(1, &[], &mut Vec::new());
    }
    node.on_round(1, &[], &mut Vec::new());
    assert!(node.may_resume());
}

/// A state is no reason to follow a clock that no peer would be believed to have.
#[test]
fn a_state_that_is_far_ahead_is_not_taken_over() {
    let mut world = World::new(Shape::of(12, 1));
    world.load(2, 1);
    let mut horizon = world.nodes[0].epto.horizon().expect("it has a place");
    let node = &mut world.nodes[1].epto;
    node.lose_place(&mut Vec::new());
    for _ in 0..100 {
        node.on_round(1, &[], &mut Vec::new());
    }
    horizon.clock = LogicalTime(horizon.clock.0 + 2 * EPTO_CLOCK_JUMP_MAX);
    assert_eq!(node.resume_at(&horizon), Err(ResumeError::Far));
    assert!(!node.has_place());
}

/// Its word is never agreed to: nothing that counts was missed.
#[test]
fn one_sender_whose_clock_is_mad_keeps_nobody_from_joining() {
    let mut solo = Solo::new();
    solo.epto.lose_place(&mut solo.told);
    for time in 1..60 {
        solo.ball(2, &[copy(event(1 << 40, 2, 1), 1)]);
        solo.ball(3, &[copy(event(time, 3, time), 1)]);
        solo.rounds(1, false);
    }
    assert!(solo.epto.may_resume(), "it has listened to all that counts");
    let horizon = Horizon { clock: LogicalTime(60), ..Horizon::default() };
    assert_eq!(solo.epto.resume_at(&horizon), Ok(()));
    assert!(solo.epto.clock() < LogicalTime(EPTO_CLOCK_JUMP_MAX));
}

/// It was right, as the state shows: what it has told was not listened to.
#[test]
fn what_was_refused_and_counts_after_all_is_listened_to_anew() {
    let mut solo = Solo::new();
    solo.epto.lose_place(&mut solo.told);
    solo.rounds(60, false);
    solo.ball(2, &[copy(event(EPTO_CLOCK_JUMP_MAX + 9, 2, 1), 1)]);
    let horizon = Horizon { clock: LogicalTime(10), ..Horizon::default() };
    assert_eq!(solo.epto.resume_at(&horizon), Err(ResumeError::Early));
    assert!(!solo.epto.may_resume(), "it listens from now on");
    solo.ball(2, &[copy(event(EPTO_CLOCK_JUMP_MAX + 9, 2, 1), 1)]);
    solo.rounds(60, false);
    assert_eq!(solo.epto.resume_at(&horizon), Ok(()));
}

/// Of what it cannot believe it takes no clock, whoever was refused before.
#[test]
fn who_has_refused_a_ball_follows_no_state_that_is_far_ahead() {
    let mut solo = Solo::new();
    solo.epto.lose_place(&mut solo.told);
    solo.rounds(60, false);
    solo.ball(2, &[copy(event(1 << 40, 2, 1), 1)]);
    let horizon = Horizon { clock: LogicalTime(1 << 30), ..Horizon::default() };
    assert_eq!(solo.epto.resume_at(&horizon), Err(ResumeError::Far));
    assert_eq!(solo.epto.clock(), LogicalTime(0));
}
