//! What is ahead of time, and what comes to be remembered by what other groups say.

use super::*;
use crate::serializable::{Act, Cause, Input, Outcome, TxId, VoteSeq, rules};
use quorate_kernel::ids::Ticket;
use quorate_kernel::time::Span;
use std::vec;
use std::vec::Vec;

const MIB: usize = 1024 * 1024;

/// So many answers of three hundred digits.
pub fn many(count: usize) -> Vec<(&'static str, Act)> {
    vec![("1n", Act::AddFloat(key("1e300"))); count]
}

pub fn now(world: &World) -> u64 {
    rules::counter_of(world.now.0 / 1_000_000)
}

pub fn remembered(world: &World) -> usize {
    world.state(ONE).head.sizes.remembered
}

fn is_refused(world: &World, ticket: Ticket) -> bool {
    matches!(world.answer(ticket), Some(Reply::Refused(_)))
}

/// Clients that count ahead of time, each with a transaction of so many answers, until they are
/// refused; how many were not.
fn fill_ahead(world: &mut World, answers: usize) -> u64 {
    let first = now(world) + rules::counter_of(60_000);
    for client in 1..=1000 {
        let ticket = world.commit_tx(tx(first + client, client), &[], &many(answers));
        world.commit(ONE, usize::MAX);
        if is_refused(world, ticket) {
            return client - 1;
        }
    }
    panic!("they are refused when too much is remembered of them");
}

/// Room that they fill is their own: others are taken as if they were not there.
#[test]
fn who_counts_ahead_of_time_takes_no_room_of_others() {
    let mut world = World::new(1);
    let now = now(&world);
    fill_ahead(&mut world, 4000);
    for client in 1..=18 {
        let ticket = world.commit_tx(tx(now - client, 5000 + client), &[], &many(4000));
        world.commit(ONE, usize::MAX);
        assert!(world.is_committed(ticket), "client {client}: {:?}", world.answer(ticket));
    }
    world.check_quiet();
}

/// Whatever a clock says, somebody can still count on from the horizon.
#[test]
fn a_clock_at_the_end_of_all_numbers_leaves_a_counter() {
    let mut world = World::new(1);
    world.groups[ONE].replicas[0].skew_ms = i64::MAX;
    for client in 1..=20 {
        world.commit_tx(tx(u64::MAX - 1, client), &[], &many(4000));
        world.commit(ONE, usize::MAX);
    }
    assert!(remembered(&world) > rules::REMEMBERED_BYTES_MAX);
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, usize::MAX);
    assert!(world.state(ONE).head.horizon < u64::MAX);
}

/// As many of them are forgotten at a time as there have to be.
#[test]
fn who_counts_ahead_of_time_is_forgotten_at_once() {
    let mut world = World::new(1);
    let taken = fill_ahead(&mut world, 300);
    assert!(taken > 50, "{taken} clients");
    let before = remembered(&world);
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, usize::MAX);
    let after = remembered(&world);
    assert!(after <= before * 4 / 5, "{after} of {before} bytes are left");
    assert!(after >= before / 2, "and no more than has to be");
    assert_eq!(world.state(ONE).head.horizon, 0, "nobody else is");
    world.handle_primary(ONE, Input::Tick);
    assert!(world.groups[ONE].tail.is_empty(), "those are enough");
    let first = now(&world) + rules::counter_of(60_000);
    let again = world.commit_tx(tx(first + 1000, 2000), &[], &many(300));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(again), "there is room again");
    let nearest = world.ask_outcome(ONE, tx(first + 1, 1));
    assert!(world.is_committed(nearest), "who counts furthest goes first");
    world.check_quiet();
}

/// Clients that have ended much in a short time do not end what is under way: it may be as old as a
/// transaction can be.
#[test]
fn a_horizon_passes_nothing_that_is_under_way() {
    let mut world = World::new(2);
    let now = now(&world);
    let (id, acts) = (tx(now - rules::counter_of(3000), 1), [("1x", put("a")), ("2x", put("b"))]);
    let ticket = world.commit_at(ONE, id, &[], &acts);
    world.commit(ONE, 1);
    for client in 10..28 {
        world.commit_tx(tx(now - client, client), &[], &many(4000));
        world.commit(ONE, usize::MAX);
    }
    assert!(remembered(&world) > rules::REMEMBERED_BYTES_MAX);
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, usize::MAX);
    world.commit_at(TWO, id, &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
    world.run_ms(9000);
    assert!(remembered(&world) <= rules::REMEMBERED_BYTES_MAX, "later they are dropped");
    assert!(world.state(ONE).head.horizon > now - rules::counter_of(3000));
    world.check_quiet();
}

/// Votes on what was never heard of make a group remember it: no more than it has room for.
#[test]
fn votes_on_what_is_new_have_a_bound() {
    let mut world = World::new(2);
    let groups = Vec::from([GroupId(1), GroupId(2)]);
    let long = "k".repeat(60_000);
    let vote = |counter: u64| {
        let (tx, group, groups, seq) =
            (tx(counter, counter), GroupId(2), groups.clone(), VoteSeq(0));
        let error = crate::serializable::ActError::Condition;
        let vote = Err(Cause::Act { key: key(&long), error, by: tx });
        Input::Message(Message::Vote { tx, group, groups, seq, vote })
    };
    let count = rules::UNENDED_ROOM_BYTES as u64 / 60_000 + 200;
    for counter in 1..=count {
        world.handle_primary(ONE, vote(counter));
        if counter % 50 == 0 {
            world.commit(ONE, usize::MAX);
        }
    }
    let unended = world.state(ONE).head.sizes.unended;
    assert!(unended <= rules::UNENDED_ROOM_BYTES + 4 * MIB, "{unended} bytes");
    assert!(world.state(ONE).recorded(tx(count, count)).is_none(), "it is not decided");
    // The other group has applied what it was told, and votes again on the rest.
    for counter in 1..=count {
        let applied = Message::Applied { tx: tx(counter, counter), group: GroupId(2) };
        world.handle_primary(ONE, Input::Message(applied));
    }
    for _ in 0..10 {
        world.handle_primary(ONE, Input::Tick);
        world.commit(ONE, usize::MAX);
    }
    world.handle_primary(ONE, vote(count + 1));
    world.commit(ONE, usize::MAX);
    assert!(world.state(ONE).recorded(tx(count + 1, count + 1)).is_some(), "there is room again");
    // Nor are there more in hand than may be.
    let most = (rules::IN_HAND_MAX + rules::IN_HAND_TOLD_MAX) as u64;
    for counter in count + 2..=count + most + 100 {
        let (tx, group, groups, seq) =
            (tx(counter, counter), GroupId(2), groups.clone(), VoteSeq(0));
        let message = Message::Vote { tx, group, groups, seq, vote: Ok(Vec::new()) };
        world.handle_primary(ONE, Input::Message(message));
    }
    assert_eq!(world.groups[ONE].replicas[0].member.in_hand() as u64, most);
}

/// So do decisions on what was never heard of, which are told again.
#[test]
fn decisions_on_what_is_new_have_a_bound() {
    let mut world = World::new(2);
    let abort = |counter: u64| {
        let outcome = Err(Cause::Timeout);
        Input::Message(Message::Decision { tx: tx(counter, 2), group: GroupId(1), outcome })
    };
    let fill: Vec<(&str, Act)> = vec![("2n", Act::AddFloat(key("1e300"))); 4000];
    for client in 1..=40 {
        world.commit_tx(tx(client, 100 + client), &[], &fill);
        world.commit(TWO, usize::MAX);
    }
    let full = world.state(TWO).head.sizes.remembered;
    let room = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES;
    assert!(full >= room, "clients are refused by now");
    world.handle_primary(TWO, abort(90));
    assert_eq!(world.groups[TWO].tail.len(), 1, "they do not keep out what others tell of");
    // No more of that waits for the log than there may be in hand.
    let batch = (rules::IN_HAND_MAX + rules::IN_HAND_TOLD_MAX) as u64 + 100;
    for first in (0..8).map(|number| 1000 + number * batch) {
        (first..first + batch).for_each(|counter| world.handle_primary(TWO, abort(counter)));
        world.commit(TWO, usize::MAX);
        while !world.groups[TWO].tail.is_empty() {
            world.commit(TWO, usize::MAX);
        }
        assert_eq!(world.state(TWO).recorded(tx(first + batch - 1, 2)), None);
    }
    // Nor is more remembered than there is room for.
    let last = 1000 + 7 * batch + 8000;
    assert_eq!(world.state(TWO).recorded(tx(last, 2)), None, "there is no room for more");
    let remembered = world.state(TWO).head.sizes.remembered;
    assert!(remembered <= full + rules::TOLD_ROOM_BYTES + MIB, "{remembered} bytes");
    for _ in 0..20 {
        world.handle_primary(TWO, Input::Tick);
        world.commit(TWO, usize::MAX);
    }
    world.net.clear();
    let outcome = Err(Cause::Timeout);
    let again = Message::Decision { tx: tx(last, 2), group: GroupId(1), outcome };
    world.handle_primary(TWO, Input::Message(again));
    world.commit(TWO, usize::MAX);
    assert_eq!(world.state(TWO).outcome(tx(last, 2)), Some(Outcome::Aborted(Cause::Timeout)));
    assert_eq!(world.net.len(), 1, "and acknowledged");
    // What has voted is ended in any case.
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let (id, later) = (tx(last + 10, 2), last + 1000);
    world.commit_at(TWO, id, &[], &acts);
    world.commit(TWO, usize::MAX);
    for client in 1..=40 {
        world.commit_tx(tx(later + client, 200 + client), &[], &fill);
        world.commit(TWO, usize::MAX);
    }
    world.handle_primary(TWO, abort(last + 10));
    world.commit(TWO, usize::MAX);
    assert!(world.state(TWO).recorded(id).is_some());
}

/// A client whose clock is a little ahead: of what it had done, time catches up with each tick, and
/// no horizon may pass it yet. All of it together has a bound.
#[test]
fn who_counts_a_little_ahead_fills_no_more_while_time_goes_on() {
    let mut world = World::new(1);
    let most = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES;
    let most = most + rules::AHEAD_BYTES_MAX + rules::AHEAD_ROOM_BYTES;
    let mut refused = 0;
    for _ in 0..8 {
        world.now = world.now + Span::millis(150);
        world.handle_primary(ONE, Input::Tick);
        world.commit(ONE, usize::MAX);
        let counter = now(&world) + rules::counter_of(100);
        for client in 1..=7 {
            let ticket = world.commit_tx(tx(counter + client, client), &[], &many(4000));
            world.commit(ONE, usize::MAX);
            refused += usize::from(is_refused(&world, ticket));
        }
        assert!(remembered(&world) <= most, "{} bytes", remembered(&world));
    }
    assert!(refused > 0, "it waits");
    world.run_ms(9000);
    assert!(remembered(&world) <= rules::REMEMBERED_BYTES_MAX, "the oldest are dropped");
    let ticket = world.commit_tx(tx(now(&world), 50), &[], &many(4000));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket), "there is room again");
    world.check_quiet();
}

/// A client that counts ahead of time, and tells with each commit that it knows the ones before.
fn with_mark(world: &mut World, id: TxId, acts: &[(&str, Act)]) -> Ticket {
    let (_, share) = World::shares(id, &[], acts).remove(0);
    let share = crate::serializable::Commit { mark: id.counter, ..share };
    world.ask(ONE, crate::serializable::Request::Commit(share))
}

/// What clients know is remembered no more: it takes no room of what is ahead of time either.
#[test]
fn what_clients_ahead_of_time_know_takes_no_room() {
    let mut world = World::new(1);
    let first = now(&world) + rules::counter_of(60_000);
    for count in 1..=20 {
        let ticket = with_mark(&mut world, tx(first + count, 1), &many(4000));
        world.commit(ONE, usize::MAX);
        assert!(world.is_committed(ticket), "{count}: {:?}", world.answer(ticket));
        if count % 3 == 0 {
            world.handle_primary(ONE, Input::Tick);
            world.commit(ONE, usize::MAX);
        }
    }
    assert!(remembered(&world) <= 2 * MIB);
    world.check_quiet();
}

/// What is ahead of time cannot be counted while decisions are about to be let go of: nobody is
/// dropped by a count of before.
#[test]
fn nobody_is_dropped_by_an_old_count() {
    let mut world = two();
    let first = now(&world) + rules::counter_of(60_000);
    let known = world.commit_tx(tx(first, 9), &[], &[("1x", put("a"))]);
    let decided = world.commit_tx(tx(first, 8), &[], &[("1x", put("b")), ("2x", put("b"))]);
    world.settle();
    assert!(world.is_committed(known) && world.is_committed(decided));
    world.handle_primary(ONE, Input::Tick);
    assert_eq!(world.groups[ONE].tail.len(), 1, "the decision was applied everywhere");
    for count in 1..=7 {
        with_mark(&mut world, tx(first + count, 1), &many(4000));
    }
    world.handle_primary(ONE, Input::Tick);
    assert_eq!(world.groups[ONE].tail.len(), 8, "nobody is dropped");
    world.commit(ONE, usize::MAX);
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, usize::MAX);
    let again = world.ask_outcome(ONE, tx(first, 9));
    assert!(world.is_committed(again), "{:?}", world.answer(again));
    world.check_quiet();
}
