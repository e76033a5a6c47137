//! Cuts: what is reported, and what all make of it.

use super::super::node::member;
use super::super::solo::{Solo, removal};
use super::super::world::World;
use crate::membership::{Alert, Body, Change, Status, TICK};
use quorate_kernel::ids::NodeId;
use std::boxed::Box;
use std::sync::Arc;
use std::vec::Vec;

/// R11: joins and leaves that are found together are one change, equal at all who have found them,
/// in whatever order. So the fast round decides.
#[test]
fn r11_a_mixed_cut_is_one_change_and_needs_no_classic_round() {
    let mut world = World::calm(9);
    world.run_ms(1000);
    // Four that would be nobody's to decide without: they leave, and take part until they have.
    world.turn(3, |roll, cx| roll.leave(cx).expect("a member"));
    world.turn(7, |roll, cx| roll.leave(cx).expect("a member"));
    world.join(&[0]);
    world.join(&[1]);
    world.run_until("all is done", |world| world.has_members(&[0, 1, 2, 4, 5, 6, 8, 9, 10]));
    assert_eq!((world.number(), world.judge.classic), (2, 0), "one change, by the fast round");
}

/// R11: what two members propose is the same bytes, whatever they heard first.
#[test]
fn r11_equal_sets_are_equal() {
    let votes = [[5, 3], [3, 5]].map(|order| {
        let mut solo = Solo::new(8);
        let roll = solo.configuration.id;
        let hear = |solo: &mut Solo, observer: u64, alert: Alert| {
            solo.hear_unsynced(observer, roll, Body::Alerts { alerts: Vec::from([alert]) });
        };
        // Both are in flux before either is stable.
        let mut rest = Vec::new();
        for subject in order {
            let mut count = 0;
            for (observer, alert) in solo.edges(subject) {
                count += alert.rings.count_ones();
                if count <= 8 {
                    hear(&mut solo, observer, alert);
                } else {
                    rest.push((observer, alert));
                }
            }
            solo.now = solo.now + TICK;
        }
        rest.into_iter().for_each(|(observer, alert)| hear(&mut solo, observer, alert));
        solo.sync();
        let vote = |body: &Body| match body {
            Body::FastVote { digest } => Some(*digest),
            _ => None,
        };
        solo.said(vote)
    });
    assert_eq!(votes[0], votes[1]);
    assert_eq!(votes[0].len(), 1);
}

/// R12: a member that has proposed goes on counting, and in the next configuration what it still
/// finds is told again, without ten probes more.
#[test]
fn r12_what_still_holds_is_told_to_the_next_configuration() {
    let mut world = World::calm(8);
    world.run_ms(1000);
    world.crash(6);
    world.run_ms(2500);
    world.crash(7);
    world.run_until("the first is removed", |world| world.number() == 2);
    let first = world.now;
    world.run_until("the second is removed", |world| world.has_members(&[0, 1, 2, 3, 4, 5]));
    let millis = (world.now - first).as_millis();
    assert!(millis < 3500, "{millis} ms: what was found before counts");
}

/// R12: an alert that is lost is told again within the configuration.
#[test]
fn r12_lost_alerts_are_told_again() {
    let mut world = World::calm(6);
    let mut lost = 0;
    world.loses = Some(Box::new(move |_, _, message| {
        let is_lost = matches!(message.body, Body::Alerts { .. }) && lost < 30;
        lost += usize::from(is_lost);
        is_lost
    }));
    let joiner = world.join(&[0]);
    world.run_until("it is let in", |world| world.has_members(&[0, 1, 2, 3, 4, 5, 6]));
    assert_eq!(world.status(joiner), Status::Member);
}

/// R13: a member that has heard no alert installs what the others have decided, with the address
/// and the metadata of who joins.
#[test]
fn r13_a_member_that_heard_no_alert_installs_the_same() {
    let mut world = World::calm(5);
    world.loses =
        Some(Box::new(|_, to, message| to == 4 && matches!(message.body, Body::Alerts { .. })));
    world.join(&[0]);
    world.run_until("all have it", |world| world.has_members(&[0, 1, 2, 3, 4, 5]));
    let known = world.roll(4).configuration().member(NodeId(6)).expect("it is in").clone();
    assert_eq!(*known, member(6));
}

/// R13: what was decided and is not here is asked for, from one who has voted for it.
#[test]
fn r13_a_decision_that_is_not_here_is_fetched() {
    let mut solo = Solo::new(5);
    let joins = Vec::from([Arc::new(member(9))]);
    let change = Arc::new(Change::new(joins, Vec::new()));
    let digest = change.digest();
    (2..=5).for_each(|voter| solo.hear(voter, Body::FastVote { digest }));
    assert_eq!(solo.roll().roll().number.0, 1, "it cannot install what it does not have");
    solo.tick_ms(1000);
    let asked = |body: &Body| match body {
        Body::Ask { digest } => *digest,
        _ => None,
    };
    assert_eq!(solo.said(asked), [digest]);
    solo.hear(3, Body::Value { value: removal(&[5]) });
    assert_eq!(solo.roll().roll().number.0, 1, "it was something else");
    solo.hear(3, Body::Value { value: Arc::clone(&change) });
    assert_eq!(solo.roll().roll().number.0, 2);
    assert!(solo.roll().configuration().contains(NodeId(9)));
}

/// R14: one that joins and its observers compute the same edges, or the join is refused.
#[test]
fn r14_a_join_goes_to_the_observers_that_both_compute() {
    let mut solo = Solo::new(5);
    solo.hear(9, Body::PreJoin);
    let answer = solo.said_to(9);
    let [Body::Observers { observers }] = &answer[..] else { panic!("{answer:?}") };
    assert_eq!(observers.len(), 10, "one for each ring");
    let bits = |node: u64| {
        let rings = observers.iter().enumerate().filter(|(_, it)| it.id == NodeId(node));
        rings.fold(0_u16, |bits, (ring, _)| bits | 1 << ring)
    };
    let join = |rings| Body::Join { member: Arc::new(member(9)), rings };
    assert!(bits(1) > 0 && bits(2) > 0, "each of five has some");
    solo.hear(9, join(bits(2)));
    assert_eq!(solo.refused.len(), 1, "those are another's rings");
    solo.hear(9, join(bits(1)));
    assert_eq!(solo.refused.len(), 1);
    solo.tick_ms(300);
    let alerts = |body: &Body| match body {
        Body::Alerts { alerts } => Some(alerts.clone()),
        _ => None,
    };
    let said = solo.said(alerts);
    assert_eq!(said.len(), 1);
    assert_eq!((said[0][0].subject, said[0][0].rings), (NodeId(9), bits(1)));
}

/// A cut waits for who is in flux: two that go together are one change.
#[test]
fn who_fails_together_is_removed_together() {
    let mut solo = Solo::new(12);
    let mut told = 0;
    for (observer, alert) in solo.edges(7) {
        if told < 5 {
            told += alert.rings.count_ones();
            solo.hear(observer, Body::Alerts { alerts: Vec::from([alert]) });
        }
    }
    let vote = |body: &Body| match body {
        Body::FastVote { digest } => Some(*digest),
        _ => None,
    };
    solo.report(3);
    assert_eq!(solo.said(vote), [], "another is in flux");
    solo.report(7);
    assert_eq!(solo.said(vote), [removal(&[3, 7]).digest()]);
}

/// Some observers cannot reach a member and others can: it is in flux, and holds up the removal of
/// one that has crashed, until those others join in.
#[test]
fn who_lingers_in_flux_holds_nothing_up_for_long() {
    let mut world = World::calm(12);
    world.run_ms(1000);
    let rings = crate::membership::observe::Rings::of(world.roll(0).configuration());
    let mut cut = 0;
    for observer in rings.observers_of(NodeId(12)) {
        if cut < 5 {
            cut += rings.between(observer, NodeId(12)).count_ones();
            world.deaf.insert((11, observer.0 as usize - 1));
        }
    }
    world.crash(5);
    world.run_until("both are removed", |world| {
        let last = world.judge.last().expect("there is one");
        !last.contains(NodeId(12)) && !last.contains(NodeId(6))
    });
    assert_eq!(world.number(), 2, "in one change");
    world.deaf.clear();
    world.run_until("it is told", |world| world.status(11) == Status::Kicked);
}
