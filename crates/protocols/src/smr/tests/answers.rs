//! Answers of which the state keeps less than they are.

use super::member::{Member, client, entry, from};
use super::numbers::{Command, Numbers, add};
use crate::smr::answers::KEPT_MS;
use crate::smr::{ANSWERS_BYTES_MAX, Origin};
use quorate_kernel::ids::Incarnation;
use std::vec::Vec;

const MIB: u64 = 1024 * 1024;

fn told(member: &Member<Numbers>, client: Incarnation, numbers: &[u64]) -> Vec<Option<u64>> {
    let one = |number: &u64| member.machine.reply(client, *number).map(|(_, answer)| *answer);
    numbers.iter().map(one).collect()
}

#[test]
fn each_replica_that_executes_has_the_whole_and_the_state_keeps_less() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    let large = entry::<Numbers>(1, from(one, 1), &[Command::Large(5), add("a", 1)]);
    member.execute(&large);
    assert_eq!(told(&member, one, &[1, 2, 3]), [Some(5), Some(1), None]);
    assert_eq!(member.client(one).replies, [(0, 0), (1, 1)]);
    member.store();
    member.restart();
    assert_eq!(told(&member, one, &[1, 2]), [Some(0), Some(1)], "what is stored is the state");
    let mut twin = Member::<Numbers>::new();
    for _ in 0..2 {
        // What comes again is not found again: it was found in front of what is there by now.
        twin.execute(&large);
        assert_eq!(told(&twin, one, &[1, 2]), [Some(5), Some(1)]);
    }
}

#[test]
fn the_whole_is_here_until_the_client_has_it() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    member.ask(1, from(one, 1), &[Command::Large(5), Command::Large(6), Command::Large(7)]);
    assert_eq!(told(&member, one, &[1, 2, 3]), [5, 6, 7].map(Some));
    // Another start says nothing of this one, nor another client.
    member.ask(1, Origin { client: client(2, 1), first: 1, acked: 9 }, &[Command::Large(8)]);
    member.execute(&entry::<Numbers>(1, Origin { client: client(1, 0), first: 1, acked: 9 }, &[]));
    assert_eq!(told(&member, one, &[1, 2, 3]), [5, 6, 7].map(Some));
    let acked = Origin { client: one, first: 4, acked: 2 };
    member.ask(1, acked, &[Command::Large(9)]);
    assert_eq!(told(&member, one, &[1, 2, 3, 4]), [None, None, Some(7), Some(9)]);
    assert_eq!(told(&member, client(2, 1), &[1]), [Some(8)]);
    assert_eq!(member.machine.whole_answers(), 3);
    let next = client(1, 2);
    member.ask(1, from(next, 1), &[add("a", 1)]);
    assert_eq!(member.machine.whole_answers(), 1, "nobody waits for those of an earlier start");
    member.ask(1, from(next, 2), &[Command::Large(4)]);
    assert_eq!(told(&member, one, &[3, 4]), [None; 2]);
    assert_eq!(told(&member, next, &[2]), [Some(4)]);
}

#[test]
fn the_oldest_are_lost_where_a_client_asks_for_too_much() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    let third = ANSWERS_BYTES_MAX as u64 / 3;
    member.ask(1, from(one, 1), &[(); 4].map(|()| Command::Large(third)));
    let (lost, whole) = (Some(0), Some(third));
    assert_eq!(told(&member, one, &[1, 2, 3, 4]), [lost, whole, whole, whole]);
    member.ask(1, from(one, 5), &[Command::Large(99 * MIB)]);
    assert_eq!(told(&member, one, &[2, 3, 4, 5]), [lost, lost, lost, Some(99 * MIB)]);
    member.ask(1, from(one, 6), &[Command::Large(1)]);
    assert_eq!(told(&member, one, &[5, 6]), [lost, Some(1)]);
    // Each client has its own room.
    member.ask(1, from(client(2, 1), 1), &[Command::Large(99 * MIB)]);
    assert_eq!(told(&member, one, &[6]), [Some(1)]);
}

#[test]
fn a_clock_that_jumps_says_nothing_of_clients() {
    let (mut member, one, here) = (Member::<Numbers>::new(), client(1, 1), client(2, 1));
    for client in [one, here] {
        member.ask(5_000_000, from(client, 1), &[Command::Large(5)]);
    }
    // Nothing was executed for a day, or the next primary's clock is ahead.
    let day = 24 * 3600 * 1000;
    member.ask(5_000_000 + day, from(here, 2), &[add("a", 1)]);
    assert_eq!(told(&member, one, &[1]), [Some(5)], "it may be there");
    // Who asks in the very entry by whose time it would be gone is there.
    let (begin, step) = (5_000_000 + day, KEPT_MS / 10);
    (1..9).for_each(|count| {
        member.ask(begin + count * step, from(here, 2 + count), &[add("a", 1)]);
    });
    assert_eq!(told(&member, one, &[1]), [Some(5)]);
    member.ask(begin + 9 * step, from(one, 2), &[add("a", 1)]);
    assert_eq!(told(&member, one, &[1]), [Some(5)]);
    (10..20).for_each(|count| {
        member.ask(begin + count * step, from(here, 1 + count), &[add("a", 1)]);
    });
    assert_eq!(told(&member, one, &[1]), [Some(0)]);
}

#[test]
fn the_whole_goes_where_nothing_more_comes_of_a_client() {
    let (mut member, gone, here) = (Member::<Numbers>::new(), client(1, 1), client(2, 1));
    let (begin, step) = (5_000_000, KEPT_MS / 10);
    for client in [gone, here] {
        member.ask(begin, from(client, 1), &[Command::Large(5)]);
    }
    for count in 1..=20 {
        let now_ms = begin + count * step;
        member.ask(now_ms, from(here, 1 + count), &[add("a", 1)]);
        let whole = if count < 10 { 5 } else { 0 };
        assert_eq!(told(&member, gone, &[1]), [Some(whole)], "after {count} steps");
        assert_eq!(told(&member, here, &[1]), [Some(5)]);
    }
}
