//! A roll that stands still says so.

use super::{founded, joins, lane, wait};
use quorate_kernel::time::Span;
use std::vec::Vec;

#[test]
fn without_a_majority_the_roll_says_that_it_stands_still() {
    let mut world = founded(1, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    (1..4).for_each(|at| world.crash(at));
    let is_said = world.run_until(Span::secs(30), |world| !lane(world, 0).goes_on());
    assert!(is_said, "it says that it waits");
    world.run(Span::secs(30));
    assert!(!lane(&world, 0).goes_on(), "and goes on saying so");
    assert_eq!(lane(&world, 0).configuration().members.len(), 4, "nobody is removed");
    (1..4).for_each(|at| world.restart(at));
    wait(&mut world, &[1, 2, 3, 4]);
}

#[test]
fn who_is_cut_off_says_so_and_is_back_when_it_is_heard() {
    let mut world = founded(2, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    (0..3).for_each(|at| world.part(at, 3));
    let is_said = world.run_until(Span::secs(30), |world| {
        !lane(world, 3).goes_on() && super::hosts(lane(world, 0).configuration()).len() == 3
    });
    assert!(is_said, "the one side goes on without it, and it knows that it is alone");
    world.cut.clear();
    wait(&mut world, &[1, 2, 3, 4]);
}

/// It is asked for the roll by lanes of its own node before anybody has let it in.
#[test]
fn who_is_no_member_does_not_speak_for_the_roll() {
    let mut world = founded(3, 3);
    wait(&mut world, &[1, 2, 3]);
    (0..3).for_each(|at| world.part(at, 3));
    joins(&mut world);
    world.run(Span::secs(10));
    assert!(!lane(&world, 3).goes_on());
    assert_eq!(lane(&world, 3).configuration().members.len(), 0);
    assert!((0..3).all(|at| lane(&world, at).goes_on()), "the others do");
    world.cut.clear();
    wait(&mut world, &[1, 2, 3, 4]);
}

/// So many fail at once that nobody is left who observes some of them: nothing is proposed, so
/// nothing is seen to wait. What failure detectors say is enough to know that this is no roll.
#[test]
fn one_of_many_that_is_left_alone_says_so() {
    for seed in 0..20 {
        let mut world = founded(10 + seed, 8);
        wait(&mut world, &[1, 2, 3, 4, 5, 6, 7, 8]);
        for at in 1..8 {
            world.part(0, at);
        }
        world.run(Span::secs(5));
        (1..8).for_each(|at| world.suspect(at, true));
        world.run(Span::secs(1));
        assert!(!lane(&world, 0).goes_on(), "seed {seed}");
    }
}

/// It is heard now and then, and is let in each time: later each time, so that its seats are made
/// up.
#[test]
fn who_is_removed_again_and_again_stays_away_for_longer() {
    let mut world = founded(4, 4);
    wait(&mut world, &[1, 2, 3, 4]);
    let mut waits = Vec::new();
    for _ in 0..4 {
        (0..3).for_each(|at| world.part(at, 3));
        wait_for(&mut world, 3);
        world.cut.clear();
        let before = world.now;
        wait(&mut world, &[1, 2, 3, 4]);
        waits.push((world.now - before).0 / 1_000_000_000);
    }
    assert!(waits[0] <= 2, "at once at first: {waits:?}");
    assert!(waits[1..].windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
}

fn wait_for(world: &mut super::Hosts, members: usize) {
    let is_so = world.run_until(Span::secs(60), |world| {
        (0..3).all(|at| super::hosts(lane(world, at).configuration()).len() == members)
    });
    assert!(is_so, "they agree on {members}");
}
