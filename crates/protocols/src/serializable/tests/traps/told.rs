//! What other groups tell while clients have filled a group: it is heard, and ends.

use super::ahead::{many, now, remembered};
use super::bounds::{commit_one, decide_large};
use super::*;
use crate::serializable::{Act, Cause, Done, VoteSeq, rules};
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use std::vec;
use std::vec::Vec;

const MIB: usize = 1024 * 1024;

fn large(bytes: usize) -> Act {
    let value = crate::serializable::Raw(Bytes::from(vec![b'x'; bytes]));
    Act::Put { value, expiry: crate::serializable::Expiry::Never }
}

/// Transactions that wait for a key, as large as a primary may have in hand; an older one holds it.
/// They begin with `10.10`.
fn fill_hands(world: &mut World, at: usize, name: &str) {
    let other = if at == ONE { "2held" } else { "1held" };
    world.commit_at(at, tx(5, 5), &[], &[(name, put("h")), (other, put("h"))]);
    world.commit(at, usize::MAX);
    let room = rules::IN_HAND_BYTES_MAX / (8 * MIB);
    for client in 10..=10 + room as u64 {
        let acts = [(name, large(8 * MIB)), (other, put("a"))];
        world.commit_at(at, tx(client, client), &[], &acts);
    }
    let late = world.commit_at(at, tx(90, 90), &[], &[(name, put("a")), (other, put("a"))]);
    let refused = Some(&Reply::Refused(crate::serializable::Refused::Busy));
    assert!(at != ONE || world.answer(late) == refused, "no client may ask for more");
    assert!(world.groups[at].tail.is_empty(), "they wait");
}

/// What waits here is aborted by the group that decides: the fuller this one is, the more it needs
/// to hear that.
#[test]
fn a_full_group_ends_what_it_has_received() {
    let mut world = World::new(2);
    fill_hands(&mut world, TWO, "2x");
    let abort = |counter: u64| {
        let (tx, group) = (tx(counter, counter), GroupId(1));
        Input::Message(Message::Decision { tx, group, outcome: Err(Cause::Timeout) })
    };
    // The log stands, and other groups have told as much as there may be in hand.
    let most = (rules::IN_HAND_MAX + rules::IN_HAND_TOLD_MAX) as u64;
    (1000..1010 + most).for_each(|counter| world.handle_primary(TWO, abort(counter)));
    let in_hand = world.groups[TWO].replicas[0].member.in_hand();
    world.handle_primary(TWO, abort(12));
    assert_eq!(world.groups[TWO].replicas[0].member.in_hand(), in_hand, "it ends");
    world.handle_primary(TWO, abort(2000 + most));
    assert_eq!(world.groups[TWO].replicas[0].member.in_hand(), in_hand, "others are told again");
    world.net.clear();
    while !world.groups[TWO].tail.is_empty() {
        world.commit(TWO, usize::MAX);
    }
    let applied = |it: &Message| matches!(it, Message::Applied { tx: id, .. } if *id == tx(12, 12));
    assert!(world.net.iter().any(|it| applied(&it.message)), "and is told no more");
    let before = world.groups[TWO].replicas[0].member.in_hand();
    world.handle_primary(TWO, abort(13));
    world.commit(TWO, usize::MAX);
    assert_eq!(world.groups[TWO].replicas[0].member.in_hand(), before - 1);
}

/// The second group votes on what the first has not heard of.
fn vote_of_two(world: &mut World, counter: u64) {
    let (tx, group, seq) = (tx(counter, counter), GroupId(2), VoteSeq(0));
    let groups = vec![GroupId(1), GroupId(2)];
    let message = Message::Vote { tx, group, groups, seq, vote: Ok(vec![]) };
    world.handle_primary(ONE, Input::Message(message));
}

/// Time passes until what lacks votes has failed.
fn wait_for_votes(world: &mut World) {
    world.now = world.now + crate::serializable::timer::VOTE;
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, usize::MAX);
}

/// Another group holds keys for a transaction whose client is gone: it ends, however many clients
/// of this one wait.
#[test]
fn a_vote_is_heard_while_clients_fill_hands() {
    let mut world = World::new(2);
    fill_hands(&mut world, ONE, "1x");
    vote_of_two(&mut world, 200);
    wait_for_votes(&mut world);
    let recorded = world.state(ONE).recorded(tx(200, 200));
    assert_eq!(recorded.map(|it| it.outcome.clone()), Some(Err(Cause::Timeout)));
}

/// Nor do large votes of this group keep it out.
#[test]
fn a_vote_is_heard_while_clients_fill_what_is_not_ended() {
    let mut world = World::new(2);
    for counter in 1..=3 {
        let name = std::format!("1k{counter}");
        let acts = [(&name[..], large(8 * MIB)), ("2x", put("a"))];
        world.commit_at(ONE, tx(counter, counter), &[], &acts);
        world.commit(ONE, usize::MAX);
    }
    let unended = world.state(ONE).head.sizes.unended;
    assert!(unended >= rules::UNENDED_BYTES_MAX, "{unended} bytes: this group votes on no more");
    vote_of_two(&mut world, 200);
    wait_for_votes(&mut world);
    let recorded = world.state(ONE).recorded(tx(200, 200));
    assert_eq!(recorded.map(|it| it.outcome.clone()), Some(Err(Cause::Timeout)));
}

/// Nor do decisions of this one, of which others have not heard.
#[test]
fn a_vote_is_heard_while_decisions_fill_what_is_not_ended() {
    let mut world = World::new(2);
    let all = decide_large(&mut world, 80);
    commit_one(&mut world);
    let unended = world.state(ONE).head.sizes.unended;
    assert!(unended >= rules::UNENDED_ROOM_BYTES, "{unended} bytes: no more is decided");
    assert!(all.iter().any(|one| world.told(one.1).is_none()), "some wait for that");
    let late = world.commit_at(ONE, tx(90, 90), &[], &[("1x", put("a")), ("2x", put("a"))]);
    let refused = Some(&Reply::Refused(crate::serializable::Refused::Busy));
    assert_eq!(world.answer(late), refused, "nor may a client begin more");
    vote_of_two(&mut world, 200);
    wait_for_votes(&mut world);
    let recorded = world.state(ONE).recorded(tx(200, 200));
    assert_eq!(recorded.map(|it| it.outcome.clone()), Some(Err(Cause::Timeout)));
}

/// What other groups tell of ends whether there is room or not, when its time is over: so it takes
/// room from the beginning.
#[test]
fn what_is_heard_of_takes_room_before_it_ends() {
    let mut world = World::new(2);
    decide_large(&mut world, 80);
    commit_one(&mut world);
    let in_hand = |world: &World| world.groups[ONE].replicas[0].member.in_hand();
    let before = in_hand(&world);
    let groups: Vec<GroupId> = (1..=1024).map(GroupId).collect();
    for counter in 1000..2000 {
        let (tx, group, groups, seq) = (tx(counter, 9), GroupId(2), groups.clone(), VoteSeq(0));
        let message = Message::Vote { tx, group, groups, seq, vote: Ok(vec![]) };
        world.handle_primary(ONE, Input::Message(message));
    }
    let heard = in_hand(&world) - before;
    assert!(heard > 100 && heard * 8 * 1024 <= rules::TOLD_ROOM_BYTES, "{heard} are heard of");
}

/// Many wait for a key with a large value, and each leaves a larger one: they are put into the log
/// as far as there is room, and the rest as that is free, without waiting for time to pass.
#[test]
fn what_waits_for_a_large_value_is_proposed_within_bounds() {
    let mut world = World::new(2);
    world.commit_tx(tx(1, 1), &[], &[("1x", large(8 * MIB))]);
    world.settle();
    let held = [("1x", Act::Append(key("h"))), ("1y", put("h")), ("2x", put("h"))];
    world.commit_at(ONE, tx(2, 2), &[], &held);
    world.commit(ONE, usize::MAX);
    let append = [("1x", Act::Append(key("w")))];
    let mut waiting: Vec<Ticket> =
        (10..30).map(|client| world.commit_tx(tx(client, client), &[], &append)).collect();
    // It waits for another key, that is free at the same time.
    waiting.push(world.commit_tx(tx(40, 40), &[], &[("1y", put("w"))]));
    let in_hand = |world: &World| world.groups[ONE].replicas[0].member.in_hand();
    let (tx, group, groups, seq) = (tx(2, 2), GroupId(2), vec![GroupId(1), GroupId(2)], VoteSeq(0));
    let vote = Message::Vote { tx, group, groups, seq, vote: Ok(vec![Ok(Done::Put)]) };
    world.handle_primary(ONE, Input::Message(vote));
    world.commit(ONE, 1);
    // Each of them is in hand, and so is what is proposed for some.
    let proposed = in_hand(&world) - waiting.len();
    let room = rules::IN_HAND_BYTES_MAX / (8 * MIB);
    assert!(proposed >= room && proposed <= room + 1, "{proposed} are proposed");
    vote_of_two(&mut world, 200);
    assert_eq!(in_hand(&world), waiting.len() + proposed + 1, "other groups are heard");
    while !world.groups[ONE].tail.is_empty() {
        world.commit(ONE, 1);
    }
    assert!(waiting.iter().all(|ticket| world.is_committed(*ticket)), "all are done");
    assert_eq!(world.value("1x").0, 22);
}

/// What clients know takes no room when it is let go of: it does not wait for what does.
#[test]
fn what_clients_know_is_let_go_of_without_room() {
    let mut world = World::new(2);
    let now = now(&world);
    let mut acts = many(4000);
    acts.push(("2x", put("a")));
    for client in 1..=9 {
        let ticket = world.commit_tx(tx(now - 100 + client, client), &[], &acts);
        world.settle();
        assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
    }
    let (known, later) = (tx(now - 91, 9), tx(now - 90, 9));
    let (_, share) = World::shares(later, &[], &[("1x", put("a"))]).remove(0);
    let share = crate::serializable::Commit { mark: later.counter, ..share };
    let ticket = world.ask(ONE, crate::serializable::Request::Commit(share));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket));
    for client in 10..=40 {
        world.commit_tx(tx(now - client, client), &[], &many(4000));
        world.commit(ONE, usize::MAX);
    }
    let room = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES;
    assert!(remembered(&world) >= room, "clients have filled it");
    assert!(world.state(ONE).recorded(known).is_some(), "groups may ask for it");
    world.handle_primary(ONE, Input::Tick);
    world.commit(ONE, usize::MAX);
    let first = world.state(ONE).recorded(tx(now - 93, 7)).expect("its client may ask");
    assert!(!first.groups.is_empty(), "there is no room for it");
    assert!(world.state(ONE).recorded(known).is_none(), "it needs none");
}
