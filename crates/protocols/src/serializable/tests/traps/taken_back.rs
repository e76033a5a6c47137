//! Votes that were taken back, and that nobody asks for any more.

use super::*;
use crate::serializable::{Entry, Prepared, Rank, Refused, Request, Share, VoteSeq, rules};
use quorate_kernel::time::Span;
use std::vec::Vec;

/// A vote of the second group is taken back, whose key an older transaction takes. The group that
/// decides both has lost all its data, so it knows of neither.
fn taken_back() -> World {
    let mut world = two_with_a_vote_taken_back();
    assert!(world.state(TWO).head.taken_back.contains_key(&tx(7, 1)));
    world.commit(TWO, usize::MAX);
    assert!(world.state(TWO).share(tx(6, 2)).is_some(), "the older one holds the key");
    lose_all(&mut world, ONE);
    world.net.clear();
    world
}

/// Time passes in the second group alone.
fn wait(world: &mut World, ms: u64) {
    for _ in 0..ms / 100 {
        world.now = world.now + Span::millis(100);
        world.handle_primary(TWO, Input::Tick);
        world.commit(TWO, usize::MAX);
        world.net.clear();
    }
}

#[test]
fn what_waits_for_too_long_after_its_vote_was_taken_back_votes_no() {
    let mut world = taken_back();
    wait(&mut world, 4100);
    let head = &world.state(TWO).head;
    assert!(head.taken_back.is_empty(), "nobody decides what it waits for");
    assert!(head.pending[&tx(7, 1)].vote.is_err(), "it is logged that it is not ready");
    world.run_ms(5000);
    world.check_quiet();
    assert_eq!(world.value("2x").0, 1, "nobody has asked for either again");
    world.check_equal();
}

#[test]
fn a_later_primary_votes_no_too() {
    let mut world = taken_back();
    world.fail_over(TWO, 1, 0, true);
    wait(&mut world, 3000);
    assert!(world.state(TWO).head.taken_back.contains_key(&tx(7, 1)), "its client may ask again");
    wait(&mut world, 1200);
    assert!(world.state(TWO).head.taken_back.is_empty(), "nobody asks");
    world.run_ms(5000);
    world.check_quiet();
    world.check_equal();
}

/// Its client asks again in time: it votes as any other, when the key is free.
#[test]
fn who_asks_again_at_a_later_primary_votes_again() {
    let mut world = taken_back();
    world.fail_over(TWO, 1, 0, true);
    wait(&mut world, 1000);
    world.run_ms(2600);
    assert!(world.state(TWO).locks.keys().is_empty(), "the older one was aborted");
    let acts = [("1y", put("y")), ("2x", put("y"))];
    let ticket = world.commit_tx(tx(7, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
    assert_eq!(world.value("2x"), (2, Some("y".into())));
    world.run_ms(2000);
    world.check_quiet();
    world.check_equal();
}

/// The group that decides was gone for longer than one may wait. It is back, and a vote is taken
/// back: from then on its transaction waits, and not from when it was asked for.
#[test]
fn who_waits_after_its_vote_was_taken_back_waits_from_then() {
    let mut world = two();
    world.commit_at(TWO, tx(7, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.commit(TWO, usize::MAX);
    wait(&mut world, 5000);
    world.commit_at(TWO, tx(6, 2), &[], &[("1z", put("o")), ("2x", put("o"))]);
    grant_back(&mut world);
    world.commit(TWO, 1);
    wait(&mut world, 200);
    let head = &world.state(TWO).head;
    assert!(head.pending.contains_key(&tx(6, 2)), "the older one has the key");
    assert!(head.taken_back.contains_key(&tx(7, 1)), "the other waits for it");
    world.run_ms(10_000);
    world.check_quiet();
    world.check_equal();
}

/// So many votes of the second group were taken back before its primary changed, and nobody has
/// asked since for as long as one may wait.
fn many_taken_back(count: usize) -> World {
    let mut world = World::new(2);
    for counter in 1..=count as u64 {
        let (tx, seq, groups) = (tx(counter, 1), VoteSeq(0), Vec::from([GroupId(1), GroupId(2)]));
        let exclusive = Vec::from([key(&std::format!("2k{counter}"))]);
        let (shared, changes, results) = (Vec::new(), Vec::new(), Vec::new());
        let vote = Ok(Share { shared, exclusive, changes, results });
        let rank = Rank { priority: counter, tx };
        let prepared = Prepared { rank, groups, seq, vote, digest: 7, mark: 0, clock: 5 };
        world.groups[TWO].log.push(Entry::Prepared(prepared).bytes());
        world.groups[TWO].log.push(Entry::Reverted { tx, seq }.bytes());
    }
    world.fail_over(TWO, 1, 0, true);
    world.handle_primary(TWO, Input::Tick);
    world.now = world.now + Span::secs(5);
    world
}

/// The log takes nothing: no more of them wait for it than may be in hand.
#[test]
fn while_the_log_stands_no_more_are_given_up_than_may_wait() {
    let mut world = many_taken_back(rules::IN_HAND_MAX + rules::FORGET_MAX + 50);
    world.groups[TWO].is_full = true;
    for _ in 0..rules::IN_HAND_MAX / rules::FORGET_MAX + 3 {
        world.handle_primary(TWO, Input::Tick);
    }
    assert_eq!(world.groups[TWO].replicas[1].member.in_hand(), rules::IN_HAND_MAX);
    world.groups[TWO].is_full = false;
    while !world.state(TWO).head.taken_back.is_empty() {
        world.handle_primary(TWO, Input::Tick);
        assert!(!world.groups[TWO].tail.is_empty(), "the rest follows");
        world.commit(TWO, usize::MAX);
        world.net.clear();
    }
}

/// A later primary finds more of them than it may have in hand at a time.
#[test]
fn a_later_primary_gives_up_some_at_a_time() {
    let count = rules::FORGET_MAX + 50;
    let mut world = many_taken_back(count);
    world.handle_primary(TWO, Input::Tick);
    assert_eq!(world.groups[TWO].tail.len(), rules::FORGET_MAX);
    world.commit(TWO, usize::MAX);
    world.handle_primary(TWO, Input::Tick);
    assert_eq!(world.groups[TWO].tail.len(), count - rules::FORGET_MAX, "and then the others");
    world.run_ms(10_000);
    world.check_quiet();
    world.check_equal();
}

/// Who asks a group that does not decide is told so, also of what is under way there.
#[test]
fn who_asks_a_group_that_does_not_decide_is_told_so() {
    let mut world = two();
    world.commit_at(TWO, tx(7, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.commit(TWO, usize::MAX);
    let later = tx(8, 1);
    let (_, share) = World::shares(later, &[], &[("2z", put("a"))]).remove(0);
    let share = crate::serializable::Commit { mark: later.counter, ..share };
    let ticket = world.ask(TWO, Request::Commit(share));
    world.commit(TWO, usize::MAX);
    assert!(world.is_committed(ticket) && world.state(TWO).is_forgotten(tx(7, 1)));
    let asked = world.ask_outcome(TWO, tx(7, 1));
    assert_eq!(world.answer(asked), Some(&Reply::Refused(Refused::Groups)));
}
