//! Configurations as one chain, restarts, and those who are out.

use super::super::node::member;
use super::super::solo::{Solo, removal};
use super::super::world::World;
use crate::membership::{Alert, Body, Number, Refusal, RollId, Round, Status};
use quorate_kernel::ids::NodeId;
use std::sync::Arc;
use std::vec::Vec;

/// R5: configurations are numbered, and what is said in an earlier one does not count in a later.
#[test]
fn r5_what_was_found_in_an_earlier_configuration_does_not_count() {
    let mut solo = Solo::new(6);
    let before = solo.configuration.clone();
    solo.report(6);
    let digest = removal(&[6]).digest();
    (1..=5).for_each(|voter| solo.hear(voter, Body::FastVote { digest }));
    assert_eq!(solo.roll().roll().number, Number(2));
    // Observers of 5, as they were, report it now: what they say is of the configuration before.
    solo.said(|_| None::<()>);
    solo.report(5);
    let voted = |body: &Body| matches!(body, Body::FastVote { .. }).then_some(());
    assert_eq!(solo.said(voted), []);
    solo.configuration = solo.roll().configuration().clone();
    solo.report(5);
    assert_eq!(solo.said(voted), [()], "said of this one it does");
    assert!(before.id.number < solo.configuration.id.number);
}

/// R5: two clusters that were founded apart have configurations of the same numbers. Nothing of
/// one counts in the other.
#[test]
fn r5_another_chain_is_refused() {
    let mut solo = Solo::new(4);
    let other = RollId { number: Number(1), digest: crate::membership::Digest(7) };
    solo.hear_unsynced(2, other, Body::FastVote { digest: removal(&[4]).digest() });
    assert_eq!(solo.refused.len(), 1);
    solo.hear_unsynced(9, solo.configuration.id, Body::Phase1a { round: classic(2, 9) });
    assert_eq!(solo.refused.len(), 2, "nor does what a stranger says");
}

fn classic(number: u64, node: u64) -> Round {
    Round { number, coordinator: NodeId(node) }
}

/// R6: a member that restarts has not forgotten what it voted for.
#[test]
fn r6_a_restart_keeps_configuration_promise_and_vote() {
    let mut solo = Solo::new(5);
    let digest = removal(&[5]).digest();
    solo.report(5);
    solo.restart();
    assert_eq!(solo.roll().roll(), solo.configuration.id, "neither a leave nor a join");
    solo.hear(2, Body::Phase1a { round: classic(2, 2) });
    let promised = |body: &Body| match body {
        Body::Phase1b { voted, value, .. } => {
            Some((*voted, value.as_ref().map(|value| value.digest())))
        }
        _ => None,
    };
    assert_eq!(solo.said(promised), [(Round::FAST, Some(digest))]);
    solo.restart();
    solo.hear(3, Body::Phase1a { round: classic(2, 1) });
    assert_eq!(solo.said(promised), [], "nor what it promised");
    solo.hear(1, Body::Phase2a { round: classic(2, 1), value: removal(&[4]) });
    let voted = |body: &Body| matches!(body, Body::Phase2b { .. }).then_some(());
    assert_eq!(solo.said(voted), []);
}

/// R6: a member that is away for a change or two asks for what it missed.
#[test]
fn r6_a_restart_is_neither_a_leave_nor_a_join() {
    let mut world = World::calm(4);
    world.run_ms(1000);
    for _ in 0..4 {
        world.crash(2);
        world.start(2);
        world.run_ms(2000);
    }
    assert_eq!((world.number(), world.status(2)), (1, Status::Member));
    world.crash(2);
    world.join(&[0]);
    world.run_ms(2500);
    world.start(2);
    world.run_until("it is up to date", |world| world.has_members(&[0, 1, 2, 3, 4]));
    assert_eq!(world.number(), 2);
}

/// R6: all stop at one moment, and go on where they were, votes included.
#[test]
fn r6_all_restart_together() {
    let mut world = World::calm(5);
    world.run_ms(1000);
    world.crash(4);
    world.run_ms(4300);
    (0..4).for_each(|node| world.crash(node));
    (0..4).for_each(|node| world.start(node));
    world.run_until("four go on", |world| world.has_members(&[0, 1, 2, 3]));
}

/// R7: who is removed is told so, lives on, and knows who goes on without it.
#[test]
fn r7_who_is_removed_is_told() {
    let mut world = World::calm(5);
    world.run_ms(1000);
    world.side[4] = 1;
    world.run_until("four go on", |world| world.has_members(&[0, 1, 2, 3]));
    assert!(world.roll(4).is_member(), "it has heard nothing");
    world.side.fill(0);
    world.run_until("it is told", |world| world.status(4) == Status::Kicked);
    assert_eq!(world.told["kicked"], 1);
    world.crash(4);
    world.start(4);
    world.run_ms(5000);
    assert_eq!(world.status(4), Status::Kicked, "it does not forget that");
}

/// R7: who is out tells those that it knew: a member that was away may know nobody else.
#[test]
fn r7_who_is_out_tells_those_who_are_behind() {
    let mut world = World::calm(3);
    world.run_ms(1000);
    world.side[2] = 1;
    world.run_until("two go on", |world| world.has_members(&[0, 1]));
    world.join(&[0]);
    world.run_until("another comes", |world| world.has_members(&[0, 1, 3]));
    for gone in [1, 0] {
        world.turn(gone, |roll, cx| roll.leave(cx).expect("a member"));
        world.run_until("it has left", |world| world.status(gone) == Status::Left);
    }
    world.run_until("one goes on", |world| world.has_members(&[3]));
    assert!(world.roll(2).is_member(), "it has heard nothing");
    world.side.fill(0);
    world.run_until("it is told", |world| world.status(2) == Status::Kicked);
}

/// R9: an id joins once and leaves once. One that was removed must draw another.
#[test]
fn r9_an_id_that_has_left_never_comes_back() {
    let mut solo = Solo::new(4);
    let digest = removal(&[4]).digest();
    solo.report(4);
    (1..=4).for_each(|voter| solo.hear(voter, Body::FastVote { digest }));
    solo.configuration = solo.roll().configuration().clone();
    assert_eq!(solo.configuration.left, [NodeId(4)]);
    solo.said(|_| None::<()>);
    solo.hear(4, Body::PreJoin);
    assert_eq!(solo.said_to(4), [Body::Refused(Refusal::Gone)]);
    let rings = crate::membership::observe::Rings::of(&solo.configuration);
    let bits = rings.between(NodeId(2), NodeId(4));
    let member = Some(Arc::new(member(4)));
    let alert = Alert { subject: NodeId(4), rings: bits, member };
    solo.hear(2, Body::Alerts { alerts: Vec::from([alert]) });
    assert_eq!(solo.refused.len(), 1, "nor does an observer let it in");
}
