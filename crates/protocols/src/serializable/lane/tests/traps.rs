//! What planted bugs of the lane break: each test is the smallest schedule in which one does harm.

use super::promises::{SOON, bytes, led, put_of, three, transact};
use super::world::{World, settings};
use crate::serializable::lane::clients::in_hand::ASKING_MAX;
use crate::serializable::lane::groups::gone::GONE;
use crate::serializable::lane::places::place;
use crate::serializable::lane::{Message, Serializable};
use crate::serializable::{self, Cause, Client, Raw, Reply, Request, TxId, VoteSeq};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::process::Process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::ItemOutcome;
use std::format;
use std::vec::Vec;

fn get(key: &'static str) -> Operation {
    Operation::get(bytes(key))
}

fn put(key: &'static str, value: &'static str) -> Operation {
    Operation::put(bytes(key), bytes(value))
}

fn value(text: &'static str) -> Outcome {
    Outcome::value(Some(bytes(text)))
}

impl World {
    /// The answer to a question, if it has come.
    pub fn answer(&self, ticket: Ticket) -> Option<&Outcome> {
        self.answers.iter().find(|(_, of, _)| *of == ticket).map(|(_, _, outcome)| outcome)
    }

    /// The answer to a question, which must come.
    pub fn await_answer(&mut self, ticket: Ticket) -> Outcome {
        assert!(self.run_until(SOON, |world| world.answer(ticket).is_some()), "it is answered");
        self.answer(ticket).expect("it is there").clone()
    }

    /// A host hears nobody, and nobody hears it.
    pub fn isolate(&mut self, host: usize) {
        (0..self.hosts.len()).filter(|other| *other != host).for_each(|it| self.part(host, it));
    }
}

/// A host that leads a group, and another one.
pub fn leader_and_other(world: &World, group: u64) -> (usize, usize) {
    let leader = world.leader(GroupId(group)).expect("somebody leads");
    (leader, (leader + 1) % 3)
}

#[test]
fn what_was_acknowledged_survives_the_loss_of_power_of_all_hosts() {
    let mut world = three(1);
    world.sync_max = Span::millis(100);
    for number in 0..8 {
        let key: Bytes = format!("k{number}").into();
        let host = number % 3;
        let ticket = world.request(host, Operation::put(key.clone(), bytes("v")), SOON);
        assert!(world.run_to(SOON, |world| world.answer(ticket).is_some()), "it is done");
        (0..3).for_each(|host| world.crash(host));
        (0..3).for_each(|host| world.restart(host));
        assert_eq!(world.answer(ticket), Some(&Outcome::written()));
        assert_eq!(world.ask(host, Operation::get(key), SOON), value("v"));
    }
}

#[test]
fn an_answer_to_an_earlier_start_is_none_to_the_next() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    assert_eq!(world.ask(leader, put("a", "1"), SOON), Outcome::written());
    assert_eq!(world.ask(leader, put("b", "2"), SOON), Outcome::written());
    // The first question of a start is answered, and the answer takes long.
    world.slow = Some("Told");
    world.request(host, get("a"), SOON);
    world.run(Span::millis(50));
    world.slow = None;
    world.crash(host);
    world.restart(host);
    // The first question of the next start is not heard yet when that answer comes.
    world.cut.extend((0..3).map(|other| (host, other)));
    let ticket = world.request(host, get("b"), SOON);
    world.run(Span::secs(1));
    world.cut.clear();
    assert_eq!(world.await_answer(ticket), value("2"));
}

#[test]
fn what_is_repeated_is_done_once() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    assert_eq!(world.ask(host, put("k", "v"), SOON), Outcome::written());
    // It is done, and no answer arrives.
    world.cut.insert((leader, host));
    let ticket = world.request(host, Operation::delete(bytes("k")), SOON);
    world.run(Span::millis(900));
    world.cut.clear();
    assert_eq!(world.await_answer(ticket), Outcome::deleted(true));
}

#[test]
fn who_goes_on_to_other_transactions_keeps_those_that_are_open() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    assert_eq!(world.ask(host, put("k", "v"), SOON), Outcome::written());
    world.cut.insert((leader, host));
    let ticket = world.request(host, Operation::delete(bytes("k")), SOON);
    world.run(Span::millis(50));
    // What says that its end is known would have it forgotten.
    world.request(host, put("other", "v"), SOON);
    world.run(Span::millis(50));
    world.cut.clear();
    assert_eq!(world.await_answer(ticket), Outcome::deleted(true));
}

#[test]
fn who_was_replaced_shows_nothing_old() {
    let mut world = three(1);
    let (old, host) = leader_and_other(&world, 1);
    assert_eq!(world.ask(host, put("k", "old"), SOON), Outcome::written());
    world.isolate(old);
    let (within, from) = (Span::millis(800), Cursor::at(0));
    assert_eq!(world.ask(host, Operation::delete(bytes("k")), SOON), Outcome::deleted(true));
    let no_quorum = Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 });
    assert_eq!(world.ask(old, get("k"), within), no_quorum);
    assert_eq!(world.ask(old, Operation::Scan { from, limit: 9 }, within), no_quorum);
}

#[test]
fn who_has_forgotten_does_not_stand_for_what_it_had() {
    let mut world = led(settings(3, 3, 1, Durability::Memory));
    let (leader, forgets) = leader_and_other(&world, 1);
    let third = 3 - leader - forgets;
    // Two have it, and one of them alone remembers.
    world.isolate(third);
    assert_eq!(world.ask(forgets, put("k", "v"), SOON), Outcome::written());
    world.crash(forgets);
    world.cut.clear();
    world.isolate(leader);
    world.restart(forgets);
    let told = world.ask(third, get("k"), Span::secs(3));
    assert_eq!(told, Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 }));
    world.cut.clear();
    assert_eq!(world.ask(third, get("k"), SOON), value("v"));
}

#[test]
fn a_later_start_is_not_told_of_an_earlier_ones_transactions() {
    let mut world = three(1);
    let host = leader_and_other(&world, 1).1;
    assert_eq!(world.ask(host, put("k", "a"), SOON), Outcome::written());
    world.crash(host);
    world.restart(host);
    assert_eq!(world.ask(host, put("k", "b"), SOON), Outcome::written());
    assert_eq!(world.ask(host, get("k"), SOON), value("b"));
}

#[test]
fn a_group_is_asked_for_keys_behind_their_tokens_alone() {
    let mut world = three(2);
    world.refusals = Some(Vec::new());
    let (leader, host) = leader_and_other(&world, 1);
    let (from, key) = (world.hosts[host].me, Raw::from("12345678key"));
    let (question, group, request) = (1, GroupId(1), Request::Read { keys: Vec::from([key]) });
    let ask = Message::Ask { question, group, request };
    world.turn(leader, |process, cx| process.on_message(from, ask, cx));
    assert_eq!(world.refusals.as_ref().map(Vec::len), Some(1), "it is refused");
    let process = world.hosts[leader].process.as_ref().expect("it is up");
    assert!(process.groups.values().all(|hosted| hosted.questions.is_empty()));
}

/// How many questions are in hand at a host.
fn in_hand(process: &Serializable) -> usize {
    process.groups.values().map(|hosted| hosted.questions.len()).sum()
}

#[test]
fn a_repeated_question_is_in_hand_once() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let (from, keys) = (world.hosts[host].me, Vec::from([place::stored(b"k")]));
    let (question, group) = (1, GroupId(1));
    let before = world.sent.get("Told").copied().unwrap_or_default();
    world.turn(leader, |process, cx| {
        for _ in 0..3 {
            let request = Request::Read { keys: keys.clone() };
            process.on_message(from, Message::Ask { question, group, request }, cx);
            let (start, limit) = (place::stored(b"k"), 9);
            let list = Message::List { question: 2, group, from: start, limit };
            process.on_message(from, list, cx);
        }
        assert_eq!(in_hand(process), 2, "a read and a listing");
    });
    world.run(Span::millis(100));
    assert_eq!(in_hand(world.hosts[leader].process.as_ref().expect("it is up")), 0);
    assert_eq!(world.sent["Told"] - before, 1, "the read is answered once");
    assert_eq!(world.sent["Listed"], 1, "the listing too");
}

#[test]
fn shares_of_other_groups_transactions_are_not_kept_as_questions() {
    let mut world = three(4);
    for _ in 0..3 {
        let put = |group| put_of(group, 4);
        let told = world.ask(0, transact((1..=4).map(put).collect()), SOON);
        assert!(matches!(told, Outcome::Transacted(_)), "{told:?}");
    }
    world.run(Span::secs(1));
    let left: usize = world.hosts.iter().flat_map(|host| &host.process).map(in_hand).sum();
    assert_eq!(left, 0, "all are answered, or need no answer");
}

#[test]
fn who_is_silent_for_long_is_forgotten_and_told_that_nobody_knows() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    assert_eq!(world.ask(host, put("k", "v"), SOON), Outcome::written());
    world.cut.insert((leader, host));
    let ticket = world.request(host, Operation::delete(bytes("k")), Span::secs(200));
    world.run(Span::millis(50));
    world.isolate(host);
    let remembered = |world: &World| {
        let process = world.hosts[leader].process.as_ref().expect("it is up");
        process.groups[&GroupId(1)].state.head.outcomes.len()
    };
    assert_eq!(remembered(&world), 1, "it is done, and its client may ask");
    world.run(GONE);
    world.run(Span::secs(3));
    assert_eq!(remembered(&world), 0, "its client is gone");
    world.cut.clear();
    let told = world.await_answer(ticket);
    assert_eq!(told, Outcome::Refused(Refusal::OutcomeUnknown));
    assert_eq!(world.ask(host, get("k"), SOON), Outcome::value(None));
}

#[test]
fn who_counts_below_what_a_group_takes_counts_on_from_there() {
    let mut world = three(2);
    // A minute later than any client counts by now.
    let horizon = TxId::first(Client(1), world.now.0 / 1_000_000 + 60_000).counter;
    for process in world.hosts.iter_mut().flat_map(|host| &mut host.process) {
        let votes = process.groups.get_mut(&GroupId(2)).expect("every host is a member");
        votes.state.head.horizon = horizon;
    }
    let put = |group| put_of(group, 2);
    let told = world.ask(0, transact([put(1), put(2)].into()), SOON);
    assert_eq!(told, Outcome::Transacted([ItemOutcome::Written, ItemOutcome::Written].into()));
    let process = world.hosts[0].process.as_ref().expect("it is up");
    assert!(process.clients.names.mark() > horizon, "it goes on above what is taken");
}

/// Reads that wait for a key took the votes on it to hosts that do not lead, and waited for good.
#[test]
fn votes_go_to_the_primary_that_is_known_whoever_does_not_answer_for_it() {
    let groups = 4;
    let mut world = three(groups);
    let decides = world.leader(GroupId(1)).expect("somebody leads");
    let other = (2..=groups).find(|group| world.leader(GroupId(*group)) != Some(decides));
    let other = other.expect("the primaries are spread");
    let votes = world.leader(GroupId(other)).expect("somebody leads");
    let node = world.hosts[decides].me.node;
    // All have heard who leads: nothing of that is under way any more.
    world.run(Span::millis(100));
    world.turn(votes, |process, _| process.routes.is_silent(GroupId(1), node));
    let put = |group| put_of(group, groups);
    let ticket = world.request(3 - decides - votes, transact([put(1), put(other)].into()), SOON);
    let is_done = |world: &mut World| world.answer(ticket).is_some();
    assert!(world.run_until(Span::millis(200), is_done), "no vote has to be sent again");
}

#[test]
fn what_nobody_waits_for_any_more_fills_no_host() {
    let mut world = three(1);
    let (_, host) = leader_and_other(&world, 1);
    world.isolate(host);
    for number in 0..ASKING_MAX + 10 {
        let put = Operation::put(format!("k{number}").into(), bytes("v"));
        world.request(host, put, Span::millis(100));
    }
    world.run(Span::secs(1));
    let asked = |world: &World| world.hosts[host].process.as_ref().map(|it| it.clients.len());
    assert_eq!(world.answers.len(), ASKING_MAX + 10, "all were answered");
    assert_eq!(asked(&world), Some(ASKING_MAX), "the oldest are asked for no more");
    world.cut.clear();
    assert_eq!(world.ask(host, put("k", "v"), SOON), Outcome::written());
    assert!(world.run_until(SOON, |world| asked(world) == Some(0)), "the others are known");
}

#[test]
fn a_group_that_does_not_decide_aborts_nothing() {
    let mut world = three(2);
    world.refusals = Some(Vec::new());
    let host = (0..3).find(|at| world.leader(GroupId(1)) != Some(*at)).expect("there are others");
    let put = |group| put_of(group, 2);
    let ticket = world.request(host, transact([put(1), put(2)].into()), SOON);
    let process = world.hosts[host].process.as_ref().expect("it is up");
    let (question, tx) = process.clients.committing().expect("it commits");
    let reply = Reply::Outcome { tx, outcome: serializable::Outcome::Aborted(Cause::Timeout) };
    let asked = world.leader(GroupId(2)).expect("somebody leads");
    let (from, group) = (world.hosts[asked].me, GroupId(2));
    let told = Message::Told { question, group, reply };
    world.turn(host, |process, cx| process.on_message(from, told, cx));
    let written = Outcome::Transacted([ItemOutcome::Written, ItemOutcome::Written].into());
    assert_eq!(world.await_answer(ticket), written);
    assert_eq!(world.refusals.as_ref().map(Vec::len), Some(1));
}

#[test]
fn nobody_speaks_of_a_group_that_is_none() {
    let mut world = three(2);
    world.refusals = Some(Vec::new());
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    let tx = TxId::first(Client(77), 1000);
    let (group, groups) = (GroupId(999), Vec::from([GroupId(1), GroupId(999)]));
    let seq = VoteSeq(0);
    let vote = serializable::Message::Vote { tx, group, groups, seq, vote: Ok(Vec::new()) };
    let from = world.hosts[(leader + 1) % 3].me;
    let message = Message::Between { to: GroupId(1), message: vote };
    world.turn(leader, |process, cx| process.on_message(from, message, cx));
    world.run(Span::secs(5));
    assert_eq!(world.refusals.as_ref().map(Vec::len), Some(1));
    let process = world.hosts[leader].process.as_ref().expect("it is up");
    assert!(process.groups[&GroupId(1)].state.head.outcomes.is_empty(), "nothing is kept of it");
}
