//! Edges, stalls and minorities.

use super::super::solo::Solo;
use super::super::world::World;
use crate::membership::{Body, STALL, Status, TICK};
use std::boxed::Box;
use std::vec::Vec;

/// R4: a network that loses a frame now and then, for long, costs nobody its place.
#[test]
fn r4_failures_of_long_ago_do_not_add_up() {
    let mut world = World::calm(5);
    let mut count = 0;
    // Each node misses every seventh answer.
    world.loses = Some(Box::new(move |_, _, message| {
        count += u64::from(matches!(message.body, Body::ProbeAck { .. }));
        matches!(message.body, Body::ProbeAck { .. }) && count % 7 == 0
    }));
    world.run_ms(200_000);
    assert_eq!(world.number(), 1, "nobody was removed");
}

/// R4: 80 percent of what is sent to a node lost is reported, and it alone is removed.
#[test]
fn r4_a_share_of_failures_is_reported() {
    let mut world = World::calm(8);
    world.run_ms(1000);
    world.ingress_loss.insert(3, 80);
    world.run_until("it is removed", |world| world.number() == 2);
    world.run_ms(30_000);
    let left: Vec<usize> = [0, 1, 2, 4, 5, 6, 7].into();
    assert!(world.has_members(&left), "{:?}", world.judge.last());
}

/// A node that stood still, again and again, blames nobody: answers may have come and gone.
#[test]
fn who_stood_still_blames_nobody() {
    let mut solo = Solo::new(5);
    let alerts = |body: &Body| matches!(body, Body::Alerts { .. }).then_some(());
    for _ in 0..8 {
        // Its probes leave, and what is answered is lost while it does not run.
        solo.tick_ms(100);
        solo.now = solo.now + STALL + TICK;
    }
    solo.tick_ms(300);
    assert_eq!(solo.said(alerts), []);
    // While it runs as it should, silence is reported.
    solo.tick_ms(6000);
    assert_eq!(solo.said(alerts), [()]);
}

/// R8: without a majority nothing changes, for as long as it takes, and the status says what is
/// needed. It goes on when enough are back.
#[test]
fn r8_a_minority_changes_nothing_and_says_why() {
    let mut world = World::calm(7);
    world.run_ms(1000);
    (3..7).for_each(|node| world.side[node] = 1);
    world.run_ms(60_000);
    assert_eq!(world.status(0), Status::Waiting { heard: 3, needed: 4, members: 7 });
    let other = world.join(&[0]);
    world.run_ms(20_000);
    assert!(matches!(world.status(other), Status::Joining { .. }), "nor is anybody let in");
    assert!(world.roll(0).roll().number.0 == 1);
    assert!(world.number() <= 2, "the majority has removed three");
    world.side.fill(0);
    world.run_ms(20_000);
    let out = (0..3).filter(|node| world.status(*node) == Status::Kicked).count();
    assert!(out == 3 && world.number() >= 2, "the majority has removed them");
}

/// R8: with more than F missing the fast round decides nothing; a classic one does.
#[test]
fn r8_a_majority_is_enough() {
    let mut world = World::calm(5);
    world.run_ms(1000);
    world.crash(3);
    world.crash(4);
    world.run_until("they are removed", |world| world.has_members(&[0, 1, 2]));
    assert!(world.judge.classic > 0);
}
