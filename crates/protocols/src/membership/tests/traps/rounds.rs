//! Votes and rounds.

use super::super::solo::{Solo, removal};
use super::super::world::World;
use crate::membership::{Body, Digest, Round};
use quorate_kernel::ids::NodeId;
use std::boxed::Box;
use std::vec::Vec;

fn classic(number: u64, node: u64) -> Round {
    Round { number, coordinator: NodeId(node) }
}

fn fast_vote(body: &Body) -> Option<Digest> {
    if let Body::FastVote { digest } = body { Some(*digest) } else { None }
}

fn value(body: &Body) -> Option<(Round, Digest)> {
    if let Body::Phase2a { round, value } = body { Some((*round, value.digest())) } else { None }
}

/// What a member with a fast vote promises.
fn promise(round: Round, vote: Option<&[u64]>) -> Body {
    let voted = if vote.is_some() { Round::FAST } else { Round::NONE };
    Body::Phase1b { round, voted, value: vote.map(removal) }
}

/// R1: who has promised to a classic round does not vote in the fast one any more: its coordinator
/// counts on that.
#[test]
fn r1_no_fast_vote_leaves_after_a_promise() {
    let mut solo = Solo::new(5);
    solo.hear(2, Body::Phase1a { round: classic(2, 2) });
    assert!(matches!(solo.said_to(2)[..], [Body::Phase1b { voted: Round::NONE, .. }]));
    solo.report(5);
    assert_eq!(solo.said(fast_vote), []);
    // Without the promise it votes.
    let mut other = Solo::new(5);
    other.report(5);
    assert_eq!(other.said(fast_vote), [removal(&[5]).digest()]);
}

/// R2: a coordinator that is gone does not block the others, whoever it is, and rounds rise.
#[test]
fn r2_rounds_rise_until_one_decides() {
    for coordinator in 0..4 {
        let mut world = World::calm(4);
        world.run_ms(1000);
        // Whatever this one begins, nobody hears the end of it.
        world.loses = Some(Box::new(move |from, _, message| {
            from == coordinator && matches!(message.body, Body::Phase2a { .. })
        }));
        world.crash(3);
        world.run_until("three go on", |world| world.number() == 2);
    }
    let mut solo = Solo::new(5);
    solo.report(5);
    let rounds: Vec<Round> = (0..4).map(|_| solo.begin_round()).collect();
    assert!(rounds.windows(2).all(|pair| pair[0] < pair[1]), "{rounds:?}");
    solo.hear(2, Body::Outbid { round: classic(40, 3) });
    assert_eq!(solo.begin_round(), classic(41, 1));
}

/// R2: nor does one that restarts begin a round twice, which would have two values.
#[test]
fn r2_a_coordinator_begins_no_round_twice() {
    let mut solo = Solo::new(5);
    solo.report(5);
    let first = solo.begin_round();
    solo.restart();
    assert!(solo.begin_round() > first);
}

/// R3: one promise that comes three times is one.
#[test]
fn r3_promises_are_counted_by_sender() {
    let mut solo = Solo::new(5);
    solo.report(5);
    let earlier = solo.begin_round();
    let round = solo.begin_round();
    for _ in 0..5 {
        solo.hear(2, promise(round, None));
    }
    assert_eq!(solo.said(value), [], "two of five are no majority");
    solo.hear(3, promise(earlier, None));
    assert_eq!(solo.said(value), [], "a promise to an earlier round is none to this");
    solo.hear(3, promise(round, None));
    assert_eq!(solo.said(value), [(round, removal(&[5]).digest())]);
    solo.hear(4, promise(round, Some(&[4])));
    assert_eq!(solo.said(value), [], "its value is chosen once");
}

/// R3: what may have been decided in the fast round is chosen, not what the coordinator wishes.
#[test]
fn r3_a_value_that_may_be_decided_is_chosen_again() {
    let mut solo = Solo::new(5);
    solo.report(5);
    let round = solo.begin_round();
    solo.hear(2, promise(round, Some(&[4])));
    solo.hear(3, promise(round, Some(&[4])));
    // Two of three: with both that were not heard they could be four of five.
    assert_eq!(solo.said(value), [(round, removal(&[4]).digest())]);
}

/// R3: and what a classic round may have decided is chosen before what the fast one has votes for.
#[test]
fn r3_a_later_rounds_value_is_chosen_before_many_fast_votes() {
    let mut solo = Solo::new(5);
    solo.report(5);
    let round = solo.begin_round();
    let next = classic(round.number + 1, 3);
    solo.hear(3, Body::Phase1a { round: next });
    let mine = solo.begin_round();
    assert!(mine > next);
    let voted = Body::Phase1b { round: mine, voted: next, value: Some(removal(&[4])) };
    solo.hear(2, voted);
    solo.hear(3, promise(mine, Some(&[5])));
    assert_eq!(solo.said(value), [(mine, removal(&[4]).digest())]);
}

/// A vote is durable before anybody counts it.
#[test]
fn a_vote_waits_for_the_sync() {
    let mut solo = Solo::new(5);
    let roll = solo.configuration.id;
    solo.hear_unsynced(2, roll, Body::Phase2a { round: classic(2, 2), value: removal(&[5]) });
    let accepted = |body: &Body| matches!(body, Body::Phase2b { .. }).then_some(());
    assert_eq!(solo.said(accepted), []);
    solo.sync();
    assert_eq!(solo.said(accepted), [()]);
    let mut solo = Solo::new(5);
    solo.hear_unsynced(2, roll, Body::Phase1a { round: classic(2, 2) });
    assert_eq!(solo.said_to(2), []);
    solo.sync();
    assert_eq!(solo.said_to(2), [promise(classic(2, 2), None)]);
    let mut solo = Solo::new(2);
    for (observer, alert) in solo.edges(2) {
        solo.hear_unsynced(observer, roll_of(&solo), Body::Alerts { alerts: Vec::from([alert]) });
    }
    assert_eq!(solo.said(fast_vote), []);
    solo.sync();
    assert_eq!(solo.said(fast_vote), [removal(&[2]).digest()]);
}

fn roll_of(solo: &Solo) -> crate::membership::RollId {
    solo.configuration.id
}

/// Four of five decide in the fast round, three do not.
#[test]
fn a_fast_quorum_is_more_than_a_majority() {
    let mut solo = Solo::new(5);
    let digest = removal(&[5]).digest();
    solo.report(5);
    for voter in 2..=4 {
        solo.hear(voter, Body::FastVote { digest });
        solo.hear(voter, Body::FastVote { digest });
    }
    assert_eq!(solo.roll().roll().number.0, 1, "three of five, its own vote was not heard yet");
    solo.hear(1, Body::FastVote { digest });
    assert_eq!(solo.roll().roll().number.0, 2);
}
