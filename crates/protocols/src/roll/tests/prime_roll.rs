//! PRIME's roll: hosts come, fail, are divided, and are all started again.

use super::{Hosts, agree, founded_by, joins, lane, wait_within};
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::Standing;
use quorate_kernel::roll::Kind;
use quorate_kernel::time::Span;
use std::vec::Vec;

/// How long a change may take: probes, the order, and what a newcomer listens.
const CHANGE_S: u64 = 60;

fn founded(seed: u64, founders: u64) -> Hosts {
    let mut world = founded_by(Kind::Prime, seed, founders);
    let all: Vec<u64> = (1..=founders).collect();
    wait(&mut world, &all);
    world
}

fn wait(world: &mut Hosts, nodes: &[u64]) {
    wait_within(world, nodes, CHANGE_S);
}

#[test]
fn hosts_join_fail_and_come_again() {
    let mut world = founded(1, 4);
    joins(&mut world);
    wait(&mut world, &[1, 2, 3, 4, 5]);
    world.crash(3);
    wait(&mut world, &[1, 2, 3, 5]);
    world.restart(3);
    wait(&mut world, &[1, 2, 3, 4, 5]);
    assert_eq!(lane(&world, 3).coming, 1, "under another name");
}

/// A restart is another incarnation in the order, and neither a leave nor a join.
#[test]
fn who_is_back_soon_was_never_away() {
    let mut world = founded(2, 5);
    let before = lane(&world, 0).configuration().id;
    world.crash(4);
    world.run(Span::secs(1));
    world.restart(4);
    wait(&mut world, &[1, 2, 3, 4, 5]);
    world.run(Span::secs(20));
    assert!(agree(&world, &[1, 2, 3, 4, 5]));
    assert_eq!(lane(&world, 0).configuration().id, before);
    assert_eq!(lane(&world, 4).coming, 0);
}

/// Nobody has a place in the order then: they go on from what is stored.
#[test]
fn all_that_are_started_again_at_once_go_on_from_the_view_that_they_had() {
    let mut world = founded(3, 5);
    world.crash(4);
    wait(&mut world, &[1, 2, 3, 4]);
    let before = lane(&world, 0).configuration().id;
    (0..4).for_each(|at| world.crash(at));
    world.run(Span::secs(30));
    (0..4).for_each(|at| world.restart(at));
    wait(&mut world, &[1, 2, 3, 4]);
    assert_eq!(lane(&world, 0).configuration().id, before, "the same view");
    world.restart(4);
    wait(&mut world, &[1, 2, 3, 4, 5]);
}

/// Each side removes the other. When the network heals one of them gives way, as a whole.
#[test]
fn two_sides_of_a_division_become_one_again() {
    for seed in 0..8 {
        let mut world = founded(10 + seed, 6);
        for (one, other) in (0..3).flat_map(|one| (3..6).map(move |other| (one, other))) {
            world.part(one, other);
        }
        world.run(Span::secs(60));
        (0..6).for_each(|at| {
            assert!(!lane(&world, at).goes_on(), "seed {seed}: half of the hosts speak for nobody");
        });
        world.cut.clear();
        wait_within(&mut world, &[1, 2, 3, 4, 5, 6], 240);
    }
}

#[test]
fn who_leaves_the_cluster_leaves_the_roll_and_does_not_come_back() {
    let mut world = founded(5, 4);
    world.stand(3, Standing::Left);
    let is_gone = world.run_until(Span::secs(30), |world| {
        let on = |at: usize| super::hosts(lane(world, at).configuration());
        (0..3).all(|at| !on(at).contains(&NodeId(4)))
    });
    assert!(is_gone, "it is off the roll");
    world.run(Span::secs(60));
    assert!(!lane(&world, 3).keeper.is_member(), "it stays away");
    world.crash(3);
    world.restart(3);
    world.run(Span::secs(30));
    assert!(!lane(&world, 3).keeper.is_member(), "also when it is started again");
    // An operator takes it back.
    world.stand(3, Standing::Up);
    wait(&mut world, &[1, 2, 3, 4]);
}

#[test]
fn under_loss_and_restarts_all_agree_in_the_end() {
    for seed in 0..12 {
        let mut world = founded(100 + seed, 4);
        (world.double_percent, world.loss_percent) = (5, 10);
        joins(&mut world);
        for _ in 0..10 {
            let at = world.rng.below(5) as usize;
            match world.is_up(at) {
                true if world.rng.below(3) > 0 => world.crash(at),
                true => {}
                false => world.restart(at),
            }
            let span = Span::millis(world.rng.between(100, 12_000));
            world.run(span);
        }
        world.loss_percent = 0;
        for at in 0..5 {
            if !world.is_up(at) {
                world.restart(at);
            }
        }
        wait_within(&mut world, &[1, 2, 3, 4, 5], 240);
    }
}
