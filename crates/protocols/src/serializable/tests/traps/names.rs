//! Names of transactions: used twice, far too high, forgotten by their clients, or by the group.

use super::*;
use crate::serializable::{
    Act, Cause, Client, Commit, Done, Input, Outcome, Refused, Request, TxId, Version, VoteSeq,
    rules, timer,
};
use quorate_kernel::ids::Ticket;
use std::vec::Vec;

/// Asks a group for a share of a transaction as if it were of the group alone.
fn commit_alone(world: &mut World, at: usize, id: TxId, acts: &[(&str, Act)]) -> Ticket {
    let (_, share) = World::shares(id, &[], acts).into_iter().next().expect("it has one");
    world.ask(at, Request::Commit(share))
}

#[test]
fn a_name_that_is_under_way_is_refused_for_other_keys() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let refused = Some(Reply::Refused(Refused::Reused));
    // It waits: the vote is not logged.
    world.commit_at(TWO, tx(2, 1), &[], &acts);
    let other = commit_alone(&mut world, TWO, tx(2, 1), &[("2y", put("c"))]);
    assert_eq!(world.answer(other).cloned(), refused, "other keys");
    let other = world.commit_at(TWO, tx(2, 1), &[], &[("1x", put("a")), ("2x", put("c"))]);
    assert_eq!(world.answer(other).cloned(), refused, "another value");
    // It has voted, and a primary knows it by its log alone.
    commit_all(&mut world);
    world.fail_over(TWO, 1, 0, true);
    let other = world.commit_at(TWO, tx(2, 1), &[], &[("1x", put("a")), ("2y", put("b"))]);
    assert_eq!(world.answer(other).cloned(), refused, "other keys than those that it holds");
    let other = world.commit_at(TWO, tx(2, 1), &[], &[("1x", put("a")), ("2x", put("c"))]);
    assert_eq!(world.answer(other).cloned(), refused, "another value than it has voted on");
    let other = commit_alone(&mut world, TWO, tx(2, 1), &[("2x", put("b"))]);
    assert_eq!(world.answer(other).cloned(), refused, "other groups");
    // Where it is decided, the vote has told its groups.
    while world.deliver(|it| is_vote(&it.message)) {}
    let other = commit_alone(&mut world, ONE, tx(2, 1), &[("1y", put("c"))]);
    assert_eq!(world.answer(other).cloned(), refused, "other groups than those that vote");
    let ticket = world.commit_tx(tx(2, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.told(ticket));
    assert_eq!((world.value("1y").0, world.value("2y").0), (0, 0));
    // What has ended is answered as it has ended.
    let late = commit_alone(&mut world, ONE, tx(2, 1), &[("1y", put("c"))]);
    assert!(world.is_committed(late));
    assert_eq!(world.value("1y").0, 0, "and nothing is done again");
    world.run_ms(8000);
    world.check_quiet();
}

/// A vote was taken back, and its name is used for something else meanwhile.
#[test]
fn a_name_whose_vote_was_taken_back_is_still_under_way() {
    let mut world = two_with_a_vote_taken_back();
    world.fail_over(TWO, 1, 0, true);
    let other = commit_alone(&mut world, TWO, tx(7, 1), &[("2q", put("c"))]);
    assert_eq!(world.answer(other), Some(&Reply::Refused(Refused::Reused)));
    let other = world.commit_at(TWO, tx(7, 1), &[], &[("1y", put("y")), ("2x", put("z"))]);
    assert_eq!(world.answer(other), Some(&Reply::Refused(Refused::Reused)), "another value");
    let other = commit_alone(&mut world, ONE, tx(7, 1), &[("1q", put("c"))]);
    assert_eq!(world.answer(other), Some(&Reply::Refused(Refused::Reused)));
    world.run_ms(8000);
    world.check_quiet();
    world.check_equal();
}

/// Counters are compared over all clients, and whoever sees one goes on above it.
#[test]
fn nobody_counts_further_than_time_allows() {
    let mut world = World::new(1);
    let now = world.now.0 / 1_000_000;
    let counter_max = (now + rules::COUNTER_AHEAD_MS) * rules::COUNTERS_PER_MS;
    for counter in [counter_max + 1, u64::MAX - 1, u64::MAX] {
        let refused = Some(Reply::Refused(Refused::Counter { counter, counter_max }));
        let ticket = world.commit_tx(tx(counter, 1), &[], &[("1x", put("a"))]);
        assert_eq!(world.answer(ticket).cloned(), refused);
        let ticket = world.ask_outcome(ONE, tx(counter, 1));
        assert_eq!(world.answer(ticket).cloned(), refused);
    }
    assert!(world.groups[ONE].tail.is_empty(), "nothing was done");
    let ticket = world.commit_tx(tx(counter_max, 1), &[], &[("1x", put("a"))]);
    world.settle();
    assert!(world.is_committed(ticket), "a day ahead is a clock that differs");
    // Others go on above it, when time has gone on.
    world.run_ms(100);
    let ticket = world.commit_tx(tx(counter_max + 1, 2), &[], &[("1x", put("b"))]);
    world.settle();
    assert!(world.is_committed(ticket));
    assert!(TxId::first(Client(3), now).counter <= counter_max);
    let ticket = world.ask_outcome(ONE, tx(0, 1));
    assert_eq!(world.answer(ticket), Some(&Reply::Refused(Refused::Empty)), "it counts from 1");
}

/// A counter was taken by a clock that was ahead, and the next one is right. Whoever asks is told
/// how its transaction ended, or nothing while it is under way: not that nothing was done.
#[test]
fn what_has_ended_or_is_under_way_is_refused_by_no_clock() {
    let mut world = World::new(2);
    let ahead_ms = 365 * 24 * 3600 * 1000;
    let counter = TxId::first(Client(1), world.now.0 / 1_000_000 + ahead_ms as u64).counter;
    world.groups.iter_mut().for_each(|group| group.replicas[0].skew_ms = ahead_ms);
    let (done, acts) = ([("1x", put("a"))], [("1y", put("b")), ("2y", put("b"))]);
    let ticket = world.commit_tx(tx(counter, 1), &[], &done);
    world.settle();
    assert!(world.is_committed(ticket));
    world.commit_at(TWO, tx(counter + 1, 1), &[], &acts);
    world.commit(TWO, 1);
    world.fail_over(ONE, 1, 0, true);
    world.fail_over(TWO, 1, 0, true);
    let again = world.commit_tx(tx(counter, 1), &[], &done);
    let asked = world.ask_outcome(ONE, tx(counter, 1));
    assert!(world.is_committed(again) && world.is_committed(asked), "{:?}", world.replies);
    let voted = world.commit_at(TWO, tx(counter + 1, 1), &[], &acts);
    assert_eq!(world.answer(voted), None, "it has voted");
    assert!(world.deliver(|it| is_vote(&it.message)));
    let ticket = world.commit_at(ONE, tx(counter + 1, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
    let new = world.commit_tx(tx(counter + 2, 1), &[], &done);
    assert!(matches!(world.answer(new), Some(Reply::Refused(Refused::Counter { .. }))));
    world.run_ms(1000);
    world.check_quiet();
}

/// A peer's message may name any counter; that a client is gone then counts no further.
#[test]
fn a_client_with_the_highest_counter_can_be_gone() {
    let mut world = World::new(2);
    let groups = Vec::from([GroupId(1), GroupId(2)]);
    let id = tx(u64::MAX - 1, 4);
    let (group, seq, vote) = (GroupId(2), VoteSeq(0), Err(Cause::Timeout));
    let message = Message::Vote { tx: id, group, groups, seq, vote };
    world.handle_primary(ONE, Input::Message(message));
    world.settle();
    assert!(world.state(ONE).recorded(id).is_some());
    world.handle_primary(ONE, Input::ClientGone(Client(4)));
    world.settle();
    assert_eq!(world.state(ONE).head.marks.get(&Client(4)), Some(&u64::MAX));
}

/// A client is taken for gone while a transaction of its is under way, whose votes have begun to
/// come. Whoever votes later is told that it does not commit any more: so it must not.
#[test]
fn what_is_forgotten_does_not_commit() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let later = world.commit_tx(tx(6, 1), &[], &[("1later", put("l"))]);
    world.settle();
    assert!(world.is_committed(later));
    world.commit_at(TWO, tx(5, 1), &[], &acts);
    commit_all(&mut world);
    let vote = world.net.iter().find(|it| is_vote(&it.message)).expect("it has voted").clone();
    assert!(world.deliver(|it| is_vote(&it.message)), "the vote has come");
    let ticket = world.commit_at(ONE, tx(5, 1), &[], &acts);
    world.handle_primary(ONE, Input::ClientGone(Client(1)));
    assert_eq!(world.groups[ONE].tail.len(), 2, "its own vote, and that its client is gone");
    world.commit(ONE, 2);
    // The other group asks again before anything is decided.
    world.handle_primary(ONE, Input::Message(vote.message));
    world.settle();
    world.run_ms(8000);
    let forgotten = Outcome::Aborted(Cause::Forgotten);
    assert_eq!(world.told(ticket), Some(&forgotten));
    assert_eq!((world.value("1x").0, world.value("2x").0), (1, 1), "neither has done it");
    world.check_quiet();
    world.check_equal();
}

/// What is about to be decided is not answered as forgotten, though a mark has passed it.
#[test]
fn what_is_about_to_be_decided_is_not_forgotten() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_tx(tx(5, 1), &[], &acts);
    commit_all(&mut world);
    let vote = world.net.iter().find(|it| is_vote(&it.message)).expect("it has voted").clone();
    // A client that says it knows what it cannot know; its mark goes before the decision.
    go_on_to_the_sixth(&mut world);
    assert!(world.deliver(|it| is_vote(&it.message)));
    assert_eq!(world.groups[ONE].tail.len(), 2, "the mark, and the decision");
    world.commit(ONE, 1);
    assert!(world.state(ONE).is_forgotten(tx(5, 1)));
    world.handle_primary(ONE, Input::Message(vote.message));
    assert!(!world.net.iter().any(|it| is_decision(&it.message)), "nothing is told yet");
    // Nor is its client told that nobody knows, and then how it has ended.
    let asked = world.ask_outcome(ONE, tx(5, 1));
    let again = world.commit_at(ONE, tx(5, 1), &[], &acts);
    let running = Some(&Outcome::Running);
    assert_eq!((world.told(asked), world.told(again)), (running, running));
    world.settle();
    assert_eq!((world.value("1x").0, world.value("2x").0), (2, 2), "both have done it");
    world.run_ms(8000);
    world.check_quiet();
    world.check_equal();
}

/// Of what is below the horizon nobody is told that it has failed, nor is it done again; what a
/// group may ask for stays.
#[test]
fn what_is_below_the_horizon_may_be_either() {
    let mut world = two();
    let add = [("1n", Act::Add(1))];
    for client in 1..=8 {
        world.commit_tx(tx(10 * client, client), &[], &add);
        world.settle();
    }
    world.commit_tx(tx(7, 20), &[], &[("1x", put("a")), ("2x", put("b"))]);
    commit_all(&mut world);
    assert!(world.deliver(|it| is_vote(&it.message)));
    world.commit(ONE, usize::MAX);
    assert!(world.net.iter().any(|it| is_decision(&it.message)), "it is told to the second");
    world.net.clear();
    let horizon = crate::serializable::Entry::Horizon { counter: 50 };
    world.groups[ONE].log.push(horizon.bytes());
    world.fail_over(ONE, 1, 0, true);
    let head = &world.state(ONE).head;
    let left: Vec<u64> = head.outcomes.keys().map(|(_, counter)| *counter).collect();
    assert_eq!(left, [50, 60, 70, 80, 7], "by client: the last is still told");
    for client in [1, 4] {
        let asked = world.ask_outcome(ONE, tx(10 * client, client));
        let again = world.commit_tx(tx(10 * client, client), &[], &add);
        world.settle();
        let forgotten = Some(&Outcome::Forgotten { lowest: 50 });
        assert_eq!((world.told(asked), world.told(again)), (forgotten, forgotten));
    }
    let known = world.commit_tx(tx(60, 6), &[], &add);
    assert!(world.is_committed(known), "it is remembered");
    assert_eq!(world.value("1n").1, Some("8".into()), "nothing was done again");
    world.run_ms(2000);
    assert_eq!(world.value("2x"), (2, Some("b".into())), "the second group was told");
    let head = &world.state(ONE).head;
    assert!(!head.outcomes.contains_key(&(Client(20), 7)), "now it is forgotten too");
    // A client that counts on is one like others.
    let next = world.commit_tx(tx(90, 1), &[("1n", 8)], &add);
    world.settle();
    assert!(world.is_committed(next));
    assert_eq!(world.value("1n").0, Version(9).0);
    world.check_quiet();
    world.check_equal();
}

/// A group that does not decide has forgotten so far: its clients are told, and how to count on.
#[test]
fn who_is_behind_the_horizon_of_a_group_is_told() {
    let mut world = two();
    let horizon = crate::serializable::Entry::Horizon { counter: 50 };
    world.groups[TWO].log.push(horizon.bytes());
    world.fail_over(TWO, 1, 0, true);
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let ticket = world.commit_at(TWO, tx(20, 1), &[], &acts);
    let forgotten = Outcome::Forgotten { lowest: 50 };
    assert_eq!(world.told(ticket), Some(&forgotten));
    let decides = world.commit_at(ONE, tx(20, 1), &[], &acts);
    world.run_ms(4000);
    assert_eq!(world.told(decides), Some(&Outcome::Aborted(Cause::Timeout)));
    let next = world.commit_tx(tx(50, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(next), "that is the lowest that is taken");
    // That its share is done each group says: the one that decides may have lost it.
    let again = world.commit_at(TWO, tx(50, 1), &[], &acts);
    world.settle();
    assert_eq!(world.told(again), Some(&Outcome::Committed(Vec::new())));
    world.run_ms(2000);
    world.check_quiet();
}

/// A name that has committed in one group is used again for several. The one that decides answers
/// how it has ended; the others, which have voted on something else, do none of it.
#[test]
fn a_name_that_has_committed_commits_nothing_else() {
    let mut world = two();
    let first = commit_alone(&mut world, ONE, tx(5, 1), &[("1x", put("a"))]);
    world.settle();
    assert!(world.is_committed(first));
    let again = world.commit_tx(tx(5, 1), &[], &[("1x", put("b")), ("2x", put("b"))]);
    world.settle();
    assert!(world.is_committed(again), "it is told how the first has ended");
    assert_eq!((world.value("1x").1, world.value("2x").0), (Some("a".into()), 1));
    world.run_ms(1000);
    world.check_quiet();
}

/// The client says that it knows how all its transactions before `6.1` have ended.
fn go_on_to_the_sixth(world: &mut World) {
    let shares = World::shares(tx(6, 1), &[], &[("1later", put("l"))]);
    let (_, share) = shares.into_iter().next().expect("it has one");
    world.ask(ONE, Request::Commit(Commit { mark: 6, ..share }));
}

/// A client has gone on to others while this one waits for votes. It is told one thing: that it is
/// under way, and then how it has ended.
#[test]
fn what_lacks_votes_is_not_forgotten() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let ticket = world.commit_at(ONE, tx(5, 1), &[], &acts);
    world.commit(ONE, 1);
    go_on_to_the_sixth(&mut world);
    world.settle();
    assert!(world.state(ONE).is_forgotten(tx(5, 1)));
    let asked = world.ask_outcome(ONE, tx(5, 1));
    assert_eq!(world.told(asked), Some(&Outcome::Running));
    world.run_ms(2500);
    assert_eq!(world.told(ticket), Some(&Outcome::Aborted(Cause::Timeout)));
    world.run_ms(4000);
    world.check_quiet();
}

/// The same while it waits for a key.
#[test]
fn what_waits_for_a_key_is_not_forgotten() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_at(ONE, tx(4, 2), &[], &acts);
    world.commit(ONE, 1);
    let ticket = world.commit_at(ONE, tx(5, 1), &[], &acts);
    go_on_to_the_sixth(&mut world);
    world.settle();
    world.run_ms(1000);
    assert_eq!(world.told(ticket), Some(&Outcome::Aborted(Cause::Forgotten)), "it is logged");
    world.run_ms(4000);
    world.check_quiet();
}

/// A name is used for two transactions of other coordinators, which meet in one group. That the one
/// has failed does not end the other there, which commits elsewhere.
#[test]
fn an_abort_of_another_coordinator_ends_nothing() {
    let mut world = World::new(3);
    let one = [("1x", put("a")), ("3x", put("a"))];
    let other = [("2x", put("b")), ("3x", put("b"))];
    world.commit_at(ONE, tx(5, 1), &[], &one);
    world.commit(ONE, 1);
    world.now = world.now + timer::VOTE;
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, 1);
    assert!(world.net.iter().any(|it| is_decision(&it.message)), "it has failed");
    let ticket = world.commit_tx(tx(5, 1), &[], &other);
    commit_all(&mut world);
    assert!(world.deliver(|it| is_vote(&it.message)), "the third group has voted");
    // The abort comes before the commit.
    assert!(world.deliver(|it| is_decision(&it.message)));
    assert!(world.groups[2].tail.is_empty(), "it is of another transaction");
    world.settle();
    assert!(world.is_committed(ticket));
    let done = (1, Some("b".into()));
    assert_eq!((world.value("2x"), world.value("3x")), (done.clone(), done), "whole");
    world.run_ms(3000);
    assert!(world.net.is_empty(), "the abort is told no more");
    world.check_quiet();
    world.check_equal();
}

/// A name is used for other groups, of which one asks to take a vote back. What the others have
/// voted on goes on.
#[test]
fn a_vote_is_taken_back_for_its_own_groups() {
    let mut world = World::new(3);
    let acts = [("1x", put("a")), ("2x", put("b")), ("3x", put("c"))];
    let id = tx(5, 1);
    let ticket = world.commit_at(ONE, id, &[], &acts);
    world.commit(ONE, 1);
    let all: Vec<GroupId> = (1..=3).map(GroupId).collect();
    let vote = |group| {
        let (group, groups, seq) = (GroupId(group), all.clone(), VoteSeq(0));
        Input::Message(Message::Vote {
            tx: id,
            group,
            groups,
            seq,
            vote: Ok([Ok(Done::Put)].into()),
        })
    };
    let revoke = |groups: &[GroupId]| {
        let (group, groups, seq) = (GroupId(2), groups.to_vec(), VoteSeq(0));
        Input::Message(Message::RevokeVote { tx: id, group, groups, seq })
    };
    world.handle_primary(ONE, vote(2));
    world.handle_primary(ONE, revoke(&all[..2]));
    assert!(world.groups[ONE].tail.is_empty(), "it is of another transaction");
    world.handle_primary(ONE, vote(3));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket), "all have voted");
    // Its own groups may ask for it.
    let id = tx(6, 1);
    world.commit_at(ONE, id, &[], &acts);
    world.commit(ONE, 1);
    let (group, groups, seq) = (GroupId(2), all.clone(), VoteSeq(0));
    let message = Message::RevokeVote { tx: id, group, groups, seq };
    world.handle_primary(ONE, Input::Message(message));
    assert_eq!(world.groups[ONE].tail.len(), 1, "it is taken back");
}
