//! Several groups: votes, decisions, and who asks whom.

use super::*;
use crate::serializable::{Cause, Input, Outcome, Refused, Request, Token, VoteSeq};

#[test]
fn a_decision_leaves_when_it_is_committed() {
    let mut world = two();
    let ticket =
        world.commit_tx(tx(2, 1), &[("1x", 1), ("2x", 1)], &[("1x", put("a")), ("2x", put("b"))]);
    commit_all(&mut world);
    assert!(world.deliver(|it| is_vote(&it.message)), "the vote is told");
    assert_eq!(world.groups[ONE].tail.len(), 1, "the decision is proposed");
    assert_eq!(world.told(ticket), None, "and nobody knows it yet");
    assert!(!world.net.iter().any(|it| is_decision(&it.message)), "nor another group");
    // It is lost with its primary, and the next one decides otherwise: the vote comes too late.
    world.fail_over(ONE, 1, 0, true);
    world.net.clear();
    for at in 0..2 {
        world.now = world.now + crate::serializable::timer::VOTE;
        world.handle_primary(at, Input::Tick);
        world.commit(at, usize::MAX);
    }
    world.run_ms(6000);
    assert_eq!(world.value("1x"), (1, Some("0".into())));
    assert_eq!(world.value("2x"), (1, Some("0".into())));
    world.check_quiet();
}

#[test]
fn votes_are_counted_by_group() {
    let mut world = World::new(3);
    let acts = [("1x", put("a")), ("2x", put("b")), ("3x", put("c"))];
    world.commit_at(ONE, tx(1, 1), &[], &acts);
    world.commit_at(TWO, tx(1, 1), &[], &acts);
    commit_all(&mut world);
    // The second group votes again after its primary has changed.
    world.fail_over(TWO, 1, 0, true);
    let votes = world.net.iter().filter(|it| is_vote(&it.message)).count();
    assert_eq!(votes, 2, "it has voted twice");
    world.settle();
    assert_eq!(world.state(ONE).outcome(tx(1, 1)), None, "the third group has not voted");
    let ticket = world.commit_tx(tx(1, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket));
    assert_eq!(world.value("3x").0, 1);
}

/// `older` waits for `2x`, which `younger` holds in the second group; the first decides both.
fn contend(world: &mut World) {
    world.commit_at(TWO, tx(7, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(world);
    world.commit_at(TWO, tx(6, 2), &[], &[("1z", put("o")), ("2x", put("o"))]);
}

#[test]
fn a_vote_that_was_taken_back_does_not_count() {
    let mut world = two();
    contend(&mut world);
    let vote = world.net.iter().find(|it| is_vote(&it.message)).expect("it has voted").clone();
    world.net.retain(|it| !is_vote(&it.message));
    world.settle();
    assert!(world.state(TWO).share(tx(6, 2)).is_some(), "the older one holds the key");
    // The coordinator has all other votes of the younger one; its old vote comes late, twice.
    let younger = [("1y", put("y")), ("2x", put("y"))];
    world.commit_at(ONE, tx(7, 1), &[], &younger);
    commit_all(&mut world);
    for _ in 0..2 {
        world.handle_primary(ONE, Input::Message(vote.message.clone()));
        commit_all(&mut world);
    }
    assert_eq!(world.state(ONE).outcome(tx(7, 1)), None, "it does not count");
    let older = world.commit_tx(tx(6, 2), &[], &[("1z", put("o")), ("2x", put("o"))]);
    world.settle();
    let again = world.commit_tx(tx(7, 1), &[], &younger);
    world.settle();
    assert!(world.is_committed(older) && world.is_committed(again), "{:#?}", world.trace);
    assert_eq!(world.value("2x"), (3, Some("y".into())), "the older one was first");
}

#[test]
fn a_revocation_that_is_logged_outlives_its_primary() {
    let mut world = two();
    contend(&mut world);
    let vote = world.net.iter().find(|it| is_vote(&it.message)).expect("it has voted").clone();
    world.net.retain(|it| !is_vote(&it.message));
    assert!(world.deliver(|_| true), "the coordinator is asked");
    world.commit(ONE, 1);
    // The grant is on its way; the next primary must not count the old vote.
    world.fail_over(ONE, 1, 0, true);
    world.commit_at(ONE, tx(7, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    world.commit(ONE, usize::MAX);
    world.handle_primary(ONE, Input::Message(vote.message));
    world.commit(ONE, usize::MAX);
    assert_eq!(world.state(ONE).outcome(tx(7, 1)), None, "it does not count");
    world.settle();
    world.run_ms(8000);
    world.check_quiet();
}

#[test]
fn a_grant_of_an_earlier_vote_takes_no_later_one_back() {
    let mut world = two();
    contend(&mut world);
    world.settle();
    world.run_ms(3000);
    // Whoever is granted what it did not ask for keeps its vote.
    let acts = [("1y", put("y")), ("2x", put("y"))];
    world.commit_at(TWO, tx(8, 1), &[], &acts);
    commit_all(&mut world);
    let granted = |seq| {
        let (tx, group, seq) = (tx(8, 1), GroupId(1), VoteSeq(seq));
        Input::Message(Message::RevokeGranted { tx, group, seq })
    };
    world.handle_primary(TWO, granted(1));
    assert!(world.groups[TWO].tail.is_empty(), "it is of another vote");
    world.handle_primary(TWO, granted(0));
    assert_eq!(world.groups[TWO].tail.len(), 1, "this one is its own");
    world.handle_primary(TWO, granted(0));
    assert_eq!(world.groups[TWO].tail.len(), 1, "once");
    world.commit(TWO, 1);
    world.settle();
    assert_eq!(world.state(TWO).head.pending[&tx(8, 1)].seq, VoteSeq(1), "it votes again");
    world.handle_primary(TWO, granted(0));
    assert!(world.groups[TWO].tail.is_empty(), "the grant was of the vote before");
}

#[test]
fn locks_are_free_when_taking_back_is_logged() {
    let mut world = two();
    contend(&mut world);
    let ticket = world.commit_tx(tx(5, 3), &[], &[("2x", put("third"))]);
    assert!(world.groups[TWO].tail.is_empty(), "the younger one still holds the key");
    grant_back(&mut world);
    assert_eq!(world.groups[TWO].tail.len(), 1, "taking back is proposed, and nothing else");
    world.settle();
    world.run_ms(8000);
    assert!(world.is_committed(ticket));
    world.check_quiet();
    world.check_equal();
}

#[test]
fn what_waits_is_lost_with_its_primary_and_asked_again() {
    let mut world = two();
    world.commit_at(TWO, tx(3, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    world.net.clear();
    // The second waits in the second group, whose primary changes; in the first it has voted.
    let waits = [("1q", put("w")), ("2x", put("w"))];
    let ticket = world.commit_tx(tx(4, 2), &[], &waits);
    commit_all(&mut world);
    assert!(world.state(ONE).share(tx(4, 2)).is_some(), "it holds its key in the first group");
    world.fail_over(TWO, 1, 0, true);
    world.run_ms(4000);
    let timeout = Outcome::Aborted(Cause::Timeout);
    assert_eq!(world.told(ticket), Some(&timeout), "nobody knows it in the second group");
    assert!(world.state(ONE).locks.keys().is_empty(), "its locks are free");
    let again = world.commit_tx(tx(4, 2), &[], &waits);
    assert_eq!(world.told(again), Some(&timeout), "asked again, it is told the same");
    world.check_quiet();
}

#[test]
fn what_waits_and_is_aborted_leaves_its_queues_and_is_remembered() {
    let mut world = two();
    world.commit_at(TWO, tx(3, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    let waits = [("1x", put("w")), ("2x", put("w"))];
    world.commit_at(TWO, tx(4, 2), &[], &waits);
    let outcome = Err(Cause::Timeout);
    let decision = Message::Decision { tx: tx(4, 2), group: GroupId(1), outcome };
    world.handle_primary(TWO, Input::Message(decision));
    world.commit(TWO, usize::MAX);
    assert!(world.net.contains(&super::super::world::Envelope {
        to: GroupId(1),
        message: Message::Applied { tx: tx(4, 2), group: GroupId(2) },
    }));
    world.net.clear();
    assert!(world.state(TWO).outcome(tx(4, 2)).is_some(), "it is remembered");
    world.commit_at(TWO, tx(4, 2), &[], &waits);
    assert!(world.groups[TWO].tail.is_empty(), "a late request does not revive it");
    world.run_ms(8000);
    assert_eq!(world.value("2x").1, Some("0".into()), "neither was committed");
    world.check_quiet();
}

#[test]
fn a_client_that_dies_between_two_groups_holds_nothing() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_at(TWO, tx(2, 1), &[("1x", 1)], &acts);
    world.settle();
    assert!(world.state(TWO).locks.is_exclusive(&key("2x")));
    world.run_ms(3000);
    assert!(world.state(TWO).locks.keys().is_empty(), "the coordinator has decided");
    let late = world.commit_at(ONE, tx(2, 1), &[("1x", 1)], &acts);
    assert_eq!(world.told(late), Some(&Outcome::Aborted(Cause::Timeout)));
    world.check_quiet();
}

#[test]
fn who_is_in_doubt_asks_until_it_is_answered() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let ticket = world.commit_tx(tx(2, 1), &[("1x", 1)], &acts);
    commit_all(&mut world);
    world.deliver(|it| is_vote(&it.message));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket), "the client knows");
    // The decision never arrives; the coordinator's primary changes twice.
    world.net.clear();
    world.fail_over(ONE, 1, 0, true);
    world.net.clear();
    world.fail_over(ONE, 2, 0, true);
    world.net.clear();
    assert!(world.state(TWO).locks.is_exclusive(&key("2x")), "it holds its locks");
    world.run_ms(1000);
    assert_eq!(world.value("2x"), (2, Some("b".into())));
    world.check_quiet();
}

#[test]
fn an_answer_that_says_abort_is_logged() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    // The client asks before its requests arrive.
    let asked = world.ask_outcome(ONE, tx(2, 1));
    assert_eq!(world.told(asked), None, "not before it is committed");
    world.settle();
    assert_eq!(world.told(asked), Some(&Outcome::Aborted(Cause::Asked)));
    let late = world.commit_tx(tx(2, 1), &[("1x", 1)], &acts);
    world.run_ms(8000);
    assert_eq!(world.told(late), Some(&Outcome::Aborted(Cause::Asked)));
    assert_eq!(world.value("1x").0, 1);
    assert_eq!(world.value("2x").0, 1);
    world.check_quiet();
    assert_eq!(world.state(TWO).outcome(tx(2, 1)), Some(Outcome::Aborted(Cause::Asked)));
    // Whoever does not decide it does not say, nor make it so.
    let token = Token { tx: tx(3, 1), coordinator: GroupId(1) };
    let other = world.ask(TWO, Request::Outcome { token });
    assert_eq!(world.answer(other), Some(&Reply::Refused(Refused::Groups)));
    assert!(world.groups[TWO].tail.is_empty());
}

#[test]
fn locks_follow_from_the_log_alone() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_at(TWO, tx(2, 1), &[], &acts);
    // The vote is lost with the primary, and its locks with it.
    world.fail_over(TWO, 1, 0, true);
    assert!(world.state(TWO).locks.keys().is_empty());
    let ticket = world.commit_tx(tx(3, 2), &[], &[("2x", put("c"))]);
    world.settle();
    assert!(world.is_committed(ticket));
    // Another vote stays, and its locks with it.
    world.commit_at(TWO, tx(4, 1), &[], &acts);
    world.fail_over(TWO, 2, 1, true);
    assert!(world.state(TWO).locks.is_exclusive(&key("2x")));
    let votes = world.net.iter().filter(|it| is_vote(&it.message)).count();
    assert_eq!(votes, 1, "and it is told");
}

#[test]
fn read_locks_are_rebuilt() {
    let mut world = two();
    // It rests on 2x, and changes 1x.
    let reads = [("2x", 1)];
    let ticket = world.commit_tx(tx(2, 1), &reads, &[("1x", put("a"))]);
    commit_all(&mut world);
    world.net.clear();
    // The vote is in what the next primary has stored.
    let its = &mut world.groups[TWO].replicas[1];
    assert_eq!(its.applied, 0);
    world.follow(TWO, 1, usize::MAX);
    let its = &mut world.groups[TWO].replicas[1];
    let (state, applied) = (&mut its.state, crate::vsr::Op(its.applied as u64));
    its.disk.call(|store| crate::vsr::Machine::store(state, applied, usize::MAX, store));
    world.restart(TWO, 1);
    world.fail_over(TWO, 1, 0, true);
    let other = world.commit_tx(tx(3, 2), &[], &[("2x", put("c"))]);
    world.commit(TWO, usize::MAX);
    assert_eq!(world.told(other), None, "it waits: the first has not ended");
    world.settle();
    assert!(world.is_committed(ticket) && world.is_committed(other));
    assert_eq!(world.value("2x"), (2, Some("c".into())));
    world.check_equal();
}

#[test]
fn opposite_orders_end() {
    let mut world = World::new(5);
    let names: [(&str, &str); 5] =
        [("1x", "2x"), ("2x", "3x"), ("3x", "4x"), ("4x", "5x"), ("1x", "5x")];
    let mut tickets = std::vec::Vec::new();
    for (number, (one, other)) in names.iter().enumerate() {
        let (id, acts) =
            (tx(9 - number as u64, 1 + number as u64), [(*one, put("v")), (*other, put("v"))]);
        let shares = World::shares(id, &[], &acts);
        // Each begins at the other end.
        for (group, share) in shares.into_iter().rev() {
            let ticket = world.ask(world.at(group), Request::Commit(share));
            commit_all(&mut world);
            tickets.push(ticket);
        }
    }
    world.settle();
    world.run_ms(1500);
    let committed = tickets.iter().filter(|ticket| {
        matches!(
            world.answer(**ticket),
            Some(Reply::Outcome { outcome: Outcome::Committed(_), .. })
        )
    });
    assert_eq!(committed.count(), names.len(), "all of them, and none by running out of time");
    world.check_quiet();
}

#[test]
fn a_primary_serves_when_it_has_executed_the_log() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_at(TWO, tx(2, 1), &[], &acts);
    // The vote is in the log that the next primary takes over, and not executed yet.
    world.elect(TWO, 1, 1, true);
    let early = world.commit_tx(tx(3, 2), &[("2x", 1)], &[("2x", put("c"))]);
    assert_eq!(world.answer(early), Some(&Reply::Refused(Refused::NotPrimary)));
    world.serve(TWO);
    let later = world.commit_tx(tx(3, 2), &[("2x", 1)], &[("2x", put("c"))]);
    world.commit(TWO, usize::MAX);
    assert_eq!(world.told(later), None, "it waits for the lock");
    world.run_ms(4000);
    assert!(world.is_committed(later), "what it waited for was aborted");
    world.check_quiet();
}

/// The coordinator's group stands still for long. Who holds locks goes on asking so often that it
/// is answered, when that is back, before those who wait for the locks have failed.
#[test]
fn who_is_in_doubt_asks_in_time() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_at(TWO, tx(2, 1), &[], &acts);
    world.commit(TWO, usize::MAX);
    let mut asked = world.now;
    for _ in 0..300 {
        world.now = world.now + quorate_kernel::time::Span::millis(100);
        world.handle_primary(TWO, Input::Tick);
        if world.net.iter().any(|it| is_vote(&it.message)) {
            asked = world.now;
        }
        world.net.clear();
        let waits = world.now - asked;
        assert!(waits < crate::serializable::timer::VOTE, "it asks again, and not after {waits:?}");
    }
    assert!(world.state(TWO).locks.is_exclusive(&key("2x")), "it is in doubt");
    world.run_ms(4000);
    assert!(world.state(TWO).locks.keys().is_empty(), "it was answered");
    world.check_quiet();
}

/// A client dies before the group that decides has heard of its transaction, and what that waits
/// for at another group is held for long: it is not in hand for as long.
#[test]
fn what_nobody_decides_does_not_wait_for_ever() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_at(TWO, tx(5, 1), &[], &acts);
    world.commit(TWO, 1);
    world.net.clear();
    world.commit_at(TWO, tx(6, 2), &[], &acts);
    let in_hand = |world: &World| world.groups[TWO].replicas[0].member.in_hand();
    assert_eq!(in_hand(&world), 2, "the second waits for the first");
    for _ in 0..40 {
        world.now = world.now + quorate_kernel::time::Span::millis(100);
        world.handle_primary(TWO, crate::serializable::Input::Tick);
        world.net.clear();
    }
    assert_eq!(in_hand(&world), 1, "the first has voted, the second may be asked again");
    world.run_ms(5000);
    assert_eq!(world.value("2x").0, 1, "nobody has asked for either again");
    world.check_quiet();
}
