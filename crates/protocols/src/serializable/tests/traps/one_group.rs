//! One group: versions, duplicates, queues, and the tail of the log.

use super::*;
use crate::serializable::{
    Act, ActError, Cause, Commit, Done, Input, Outcome, Rank, Request, TxId, Version,
    number::Client,
};
use std::vec::Vec;

#[test]
fn versions_go_on_over_a_removal() {
    let mut world = World::new(1);
    for (counter, act) in [put("a"), Act::Delete, put("b")].into_iter().enumerate() {
        world.commit_tx(tx(counter as u64 + 1, 1), &[], &[("1x", act)]);
        world.settle();
    }
    assert_eq!(world.value("1x"), (3, Some("b".into())));
    // Who has read the first life does not change the second.
    let stale = world.commit_tx(tx(9, 1), &[("1x", 1)], &[("1x", put("c"))]);
    world.settle();
    let Some(Outcome::Aborted(Cause::Version { key: of, expected, found, by })) = world.told(stale)
    else {
        panic!("it is aborted, and not {:?}", world.told(stale));
    };
    assert_eq!((of, *by), (&key("1x"), tx(3, 1)), "it is told who was faster");
    assert_eq!((*expected, *found), (Version(1), Version(3)));
}

#[test]
fn a_purge_raises_the_floor() {
    let mut world = World::new(1);
    for (counter, act) in [put("a"), put("b"), Act::Delete].into_iter().enumerate() {
        world.commit_tx(tx(counter as u64 + 1, 1), &[], &[("1x", act)]);
        world.settle();
    }
    let purge = |upto| Input::Sweep { from: Default::default(), purge: crate::vsr::Op(upto) };
    world.handle_primary(ONE, purge(2));
    assert!(world.groups[ONE].tail.is_empty(), "the tombstone is of a later entry");
    world.handle_primary(ONE, purge(3));
    world.settle();
    assert_eq!(world.value("1x"), (3, None));
    assert_eq!(world.value("1never"), (3, None), "an absent key has the floor's version");
    let stale = world.commit_tx(tx(8, 1), &[("1x", 1)], &[("1x", put("c"))]);
    let fresh = world.commit_tx(tx(9, 1), &[("1x", 3)], &[("1x", put("d"))]);
    world.settle();
    assert!(!world.is_committed(stale) && world.is_committed(fresh));
    assert_eq!(world.value("1x"), (4, Some("d".into())));
    world.check_equal();
}

#[test]
fn a_repeated_request_changes_nothing() {
    let mut world = World::new(1);
    let acts = [("1x", Act::Add(5))];
    let first = world.commit_tx(tx(1, 1), &[], &acts);
    let second = world.commit_tx(tx(1, 1), &[], &acts);
    assert_eq!(world.groups[ONE].tail.len(), 1, "it is in the log once");
    world.settle();
    let third = world.commit_tx(tx(1, 1), &[], &acts);
    world.fail_over(ONE, 1, 0, true);
    let fourth = world.commit_tx(tx(1, 1), &[], &acts);
    world.settle();
    let five = Vec::from([(GroupId(1), Vec::from([Ok(Done::Integer(5))]))]);
    for ticket in [first, second, third, fourth] {
        assert_eq!(world.told(ticket), Some(&Outcome::Committed(five.clone())), "the same answer");
    }
    assert_eq!(world.value("1x"), (1, Some("5".into())));
}

#[test]
fn a_repeated_request_leaves_the_queue_as_it_is() {
    let mut world = two();
    world.commit_at(TWO, tx(3, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    // It waits for its time; asked again, it does not begin to wait anew.
    let first = world.commit_tx(tx(4, 2), &[], &[("2x", put("w"))]);
    world.net.clear();
    let wait = crate::serializable::timer::WAIT;
    world.now = world.now + quorate_kernel::time::Span(wait.0 / 2);
    let second = world.commit_tx(tx(4, 2), &[], &[("2x", put("w"))]);
    world.now = world.now + quorate_kernel::time::Span(wait.0 / 2);
    world.handle_primary(TWO, Input::Tick);
    world.commit(TWO, usize::MAX);
    let timeout = Outcome::Aborted(Cause::Timeout);
    assert_eq!((world.told(first), world.told(second)), (Some(&timeout), Some(&timeout)));
}

#[test]
fn two_of_one_turn_do_not_both_rest_on_one_version() {
    let mut world = World::new(1);
    let first = world.commit_tx(tx(1, 1), &[("1x", 0)], &[("1x", put("a"))]);
    let second = world.commit_tx(tx(1, 2), &[("1x", 0)], &[("1x", put("b"))]);
    world.settle();
    assert!(world.is_committed(first) && !world.is_committed(second));
}

#[test]
fn a_version_that_differs_is_final_under_a_lock_and_one_that_fits_is_not() {
    let mut world = two();
    world.commit_at(TWO, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    let wrong = world.commit_tx(tx(3, 2), &[("2x", 0)], &[("2z", put("w"))]);
    let fits = world.commit_tx(tx(4, 2), &[("2x", 1)], &[("2z", put("w"))]);
    world.commit(TWO, usize::MAX);
    assert!(matches!(world.told(wrong), Some(Outcome::Aborted(Cause::Version { .. }))));
    assert_eq!(world.told(fits), None, "it waits for the lock");
    world.commit_at(ONE, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.settle();
    assert!(matches!(world.told(fits), Some(Outcome::Aborted(Cause::Version { .. }))), "now it is");
}

#[test]
fn writes_that_rest_on_a_version_conflict_and_blind_ones_do_not() {
    let mut world = World::new(1);
    let one = world.commit_tx(tx(1, 1), &[("1x", 0)], &[("1x", put("a"))]);
    let other = world.commit_tx(tx(1, 2), &[("1x", 0)], &[("1x", put("b"))]);
    let blind = world.commit_tx(tx(1, 3), &[], &[("1x", put("c"))]);
    world.settle();
    assert!(world.is_committed(one) && !world.is_committed(other) && world.is_committed(blind));
    assert_eq!(world.value("1x"), (2, Some("c".into())));
}

/// A commit of the first group alone, of a rank of its own.
fn ranked(id: TxId, priority: u64, acts: &[(&str, Act)]) -> Request {
    let shares = World::shares(id, &[], acts);
    let (_, share) = shares.into_iter().next().expect("it has one");
    Request::Commit(Commit { rank: Rank { priority, tx: id }, ..share })
}

#[test]
fn who_tries_again_keeps_its_place() {
    let mut world = two();
    world.commit_at(TWO, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    // A newcomer counts from 1; the other has tried before, with the priority of that.
    let newcomer = world.ask(TWO, ranked(tx(4, 5), 4, &[("2x", Act::Append(key("n")))]));
    let again = world.ask(TWO, ranked(tx(9, 3), 3, &[("2x", Act::Append(key("a")))]));
    world.commit_at(ONE, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.settle();
    assert!(world.is_committed(newcomer) && world.is_committed(again));
    assert_eq!(world.value("2x").1, Some("yan".into()), "it was before the newcomer");
}

#[test]
fn nobody_overtakes_an_older_one_that_waits() {
    let mut world = two();
    world.commit_at(TWO, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    let add = |text: &str| Act::Append(key(text));
    world.ask(TWO, ranked(tx(3, 2), 3, &[("2x", add("o")), ("2free", add("o"))]));
    let younger = world.ask(TWO, ranked(tx(4, 3), 4, &[("2free", add("y"))]));
    world.commit(TWO, usize::MAX);
    assert_eq!(world.told(younger), None, "it waits behind the older one");
    world.commit_at(ONE, tx(2, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.settle();
    assert_eq!(world.value("2free").1, Some("oy".into()));
}

#[test]
fn an_outcome_is_kept_until_the_client_knows_it() {
    let mut world = World::new(1);
    let marked = |counter: u64, mark: u64| {
        let shares = World::shares(tx(counter, 1), &[], &[("1x", Act::Add(1))]);
        let (_, share) = shares.into_iter().next().expect("it has one");
        Request::Commit(Commit { mark, ..share })
    };
    for counter in 1..=3 {
        world.ask(ONE, marked(counter, 1));
        world.settle();
    }
    let late = world.ask(ONE, marked(2, 1));
    assert!(world.is_committed(late), "it is remembered");
    world.ask(ONE, marked(4, 3));
    world.settle();
    assert_eq!(world.state(ONE).head.outcomes.len(), 2, "the third and the fourth");
    let late = world.ask(ONE, marked(2, 1));
    let lowest = |lowest| Outcome::Forgotten { lowest };
    assert_eq!(world.told(late), Some(&lowest(3)), "it is not done again");
    world.handle_primary(ONE, Input::ClientGone(Client(1)));
    world.settle();
    let asked = world.ask_outcome(ONE, tx(4, 1));
    assert_eq!(world.told(asked), Some(&lowest(5)), "and never said to be aborted");
    assert!(world.state(ONE).head.outcomes.is_empty());
    assert_eq!(world.value("1x"), (4, Some("4".into())));
}

#[test]
fn a_hot_key_waits_for_no_commit_and_what_is_lost_takes_what_rests_on_it_along() {
    let mut world = World::new(1);
    let add = [("1x", Act::Add(1))];
    let tickets: Vec<_> = (1..=3).map(|client| world.commit_tx(tx(1, client), &[], &add)).collect();
    assert_eq!(world.groups[ONE].tail.len(), 3, "none waits for another");
    assert!(world.replies.is_empty(), "and nobody is answered");
    // The first is kept, the others are not; another primary leads for a while.
    world.fail_over(ONE, 1, 1, true);
    world.fail_over(ONE, 0, 0, true);
    let again = world.commit_tx(tx(2, 1), &[("1x", 1)], &add);
    world.settle();
    assert!(world.is_committed(again), "{:?}", world.told(again));
    assert!(
        tickets.iter().all(|ticket| world.told(*ticket).is_none()),
        "who asked before asks again"
    );
    assert_eq!(world.value("1x"), (2, Some("2".into())));
    world.check_equal();
}

#[test]
fn an_act_that_fails_says_why_and_is_remembered() {
    let mut world = World::new(1);
    world.commit_tx(tx(1, 1), &[], &[("1x", put("text"))]);
    let add = [("1x", Act::Add(1)), ("1y", put("y"))];
    let failed = world.commit_tx(tx(2, 1), &[], &add);
    world.settle();
    world.commit_tx(tx(3, 1), &[], &[("1x", put("1"))]);
    world.settle();
    let late = world.commit_tx(tx(2, 1), &[], &add);
    let (of, error) = (key("1x"), ActError::NotAnInteger);
    let cause = Cause::Act { key: of, error, by: tx(1, 1) };
    for ticket in [failed, late] {
        assert_eq!(world.told(ticket), Some(&Outcome::Aborted(cause.clone())));
    }
    assert_eq!(world.value("1y").0, 0, "nothing of it was done");
    let shares =
        World::shares(tx(4, 1), &[], &[("1y", Act::Append(key("!"))), ("1y", Act::Add(1))]);
    let (_, share) = shares.into_iter().next().expect("it has one");
    let goes_on = world.ask(ONE, Request::Commit(Commit { goes_on: true, ..share }));
    world.settle();
    let results = Vec::from([Ok(Done::Length(1)), Err(ActError::NotAnInteger)]);
    let told = Outcome::Committed(Vec::from([(GroupId(1), results)]));
    assert_eq!(world.told(goes_on), Some(&told), "an error stays in its place");
}
