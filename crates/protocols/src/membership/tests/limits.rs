//! Bounds: what is more than a node keeps is dropped, and told again by those who care.

use super::node::member;
use super::solo::{Solo, removal};
use crate::membership::{Body, Denied, Number, Refusal, RollId};
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{
    ROLL_ANSWERS_MAX, ROLL_EARLY_MAX, ROLL_JOINERS_MAX, ROLL_KICKS_MAX, ROLL_MEMBERS_MAX,
    ROLL_SEEDS_MAX,
};
use std::sync::Arc;
use std::vec::Vec;

#[test]
fn a_full_roll_lets_nobody_in() {
    let mut solo = Solo::new(ROLL_MEMBERS_MAX as u64);
    let joiner = ROLL_MEMBERS_MAX as u64 + 1;
    solo.hear(joiner, Body::PreJoin);
    assert_eq!(solo.said_to(joiner), [Body::Refused(Refusal::Full)]);
    let rings = 1;
    solo.hear(joiner, Body::Join { member: Arc::new(member(joiner)), rings });
    assert_eq!(solo.said_to(joiner), [Body::Refused(Refusal::Full)]);
    solo.restart();
    assert_eq!(solo.roll().configuration().members.len(), ROLL_MEMBERS_MAX);
}

#[test]
fn few_joiners_wait_at_one_observer() {
    let mut solo = Solo::new(1);
    let roll = solo.configuration.id;
    for joiner in 10..10 + ROLL_JOINERS_MAX as u64 + 50 {
        let body = Body::Join { member: Arc::new(member(joiner)), rings: 0x3ff };
        solo.hear_unsynced(joiner, roll, body);
    }
    assert_eq!(solo.roll().guests.len(), ROLL_JOINERS_MAX);
    assert_eq!(solo.refused, [""; 0]);
}

#[test]
fn few_messages_of_the_next_configuration_wait() {
    let mut solo = Solo::new(4);
    let next = RollId { number: Number(2), digest: solo.configuration.id.digest };
    for _ in 0..ROLL_EARLY_MAX + 50 {
        solo.hear_unsynced(2, next, Body::FastVote { digest: removal(&[4]).digest() });
    }
    assert_eq!(solo.roll().early_count, ROLL_EARLY_MAX);
    assert_eq!(solo.roll().roll().number, Number(1), "none of them counts");
}

#[test]
fn few_questions_are_answered_between_two_ticks() {
    let mut solo = Solo::new(4);
    for _ in 0..ROLL_ANSWERS_MAX + 50 {
        solo.hear_unsynced(9, RollId::default(), Body::PreJoin);
    }
    assert_eq!(solo.said_to(9).len(), ROLL_ANSWERS_MAX);
    solo.tick_ms(100);
    solo.hear(9, Body::PreJoin);
    assert_eq!(solo.said_to(9).len(), 1);
}

#[test]
fn few_members_are_sent_away_by_one() {
    let mut solo = Solo::new(ROLL_KICKS_MAX as u64 + 2);
    let mut denied = Vec::new();
    for node in 2..=ROLL_KICKS_MAX as u64 + 2 {
        solo.turn(|roll, cx| denied.extend(roll.kick(NodeId(node), cx).err()));
    }
    assert_eq!(denied, [Denied::Busy]);
    let many: Vec<NodeId> = (10..=10 + ROLL_SEEDS_MAX as u64).map(NodeId).collect();
    let mut joiner = super::node::Node::new(9, None, Vec::new());
    joiner.start(solo.now);
    let mut denied = Vec::new();
    joiner.turn(solo.now, |roll, cx| {
        for seeds in [&many[..], &[], &[NodeId(9)]] {
            denied.push(roll.join(seeds, cx));
        }
    });
    assert_eq!(denied, [Err(Denied::Contacts); 3]);
}
