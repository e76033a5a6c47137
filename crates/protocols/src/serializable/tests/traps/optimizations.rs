//! What each optimization is for, seen by leaving it out.

use super::*;
use crate::serializable::{Cause, Outcome};
use quorate_kernel::ids::Ticket;

/// A transaction of both groups rests on a key of the second, which has voted; another one of the
/// second rests on it too.
fn two_that_rest_on_a_key(optimizations: Optimizations) -> (World, Ticket) {
    let mut world = two_with(optimizations);
    world.commit_at(TWO, tx(2, 1), &[("2x", 1)], &[("1y", put("y")), ("2y", put("y"))]);
    world.commit(TWO, usize::MAX);
    let other = world.commit_tx(tx(3, 2), &[("2x", 1)], &[("2z", put("z"))]);
    world.commit(TWO, usize::MAX);
    (world, other)
}

#[test]
fn a_key_that_is_only_rested_on_is_held_together() {
    let (world, other) = two_that_rest_on_a_key(Optimizations::default());
    assert!(world.is_committed(other), "nobody changes it");
    let alone = Optimizations { shared_locks: false, ..Optimizations::default() };
    let (mut world, other) = two_that_rest_on_a_key(alone);
    assert_eq!(world.told(other), None, "it waits for the first");
    world.commit_at(ONE, tx(2, 1), &[("2x", 1)], &[("1y", put("y")), ("2y", put("y"))]);
    world.settle();
    assert!(world.is_committed(other), "what it rests on is as it was");
    world.check_quiet();
}

#[test]
fn who_rests_on_what_has_gone_waits_for_nobody() {
    let asked = |optimizations| {
        let mut world = two_with(optimizations);
        world.commit_at(TWO, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
        world.commit(TWO, usize::MAX);
        let wrong = world.commit_tx(tx(3, 2), &[("2x", 0)], &[("2z", put("w"))]);
        world.commit(TWO, usize::MAX);
        (world, wrong)
    };
    let has_failed = |world: &World, wrong| {
        matches!(world.told(wrong), Some(Outcome::Aborted(Cause::Version { .. })))
    };
    let (world, wrong) = asked(Optimizations::default());
    assert!(has_failed(&world, wrong), "whatever comes, it fails");
    let slow = Optimizations { fast_aborts: false, ..Optimizations::default() };
    let (mut world, wrong) = asked(slow);
    assert_eq!(world.told(wrong), None, "it waits for its keys");
    world.commit_at(ONE, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.settle();
    assert!(has_failed(&world, wrong));
    world.check_quiet();
}
