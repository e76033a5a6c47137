//! What hosts say that is not theirs to say: it is not believed, and stops nobody.

use super::promises::{SOON, bytes, key_of, transact};
use super::seats::{LONG, fill, founded, has_all};
use super::world::{World, settings};
use crate::groups::Leads;
use crate::serializable::lane::Message;
use crate::serializable::lane::places::place;
use crate::serializable::{
    self, Cause, Done, Item as ReadItem, Raw, Reply, Request, TxId, Version, VoteSeq,
};
use crate::vsr::ViewNumber;
use bytes::Bytes;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::limits::VSR_BEHIND_MAX;
use quorate_kernel::operation::{Cursor, Operation, Outcome};
use quorate_kernel::process::Process;
use quorate_kernel::ring::Standing;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::borrow::ToOwned;
use std::sync::Arc;
use std::vec::Vec;

const ONE: GroupId = GroupId(1);
const TWO: GroupId = GroupId(2);
/// A host that is a member of no group.
const OUTSIDER: usize = 6;

/// Two groups of three hosts each, and one host that is in neither.
fn apart() -> World {
    let mut world = World::new(7, 7, settings(6, 3, 2, Durability::Sync));
    let are_led = |world: &mut World| [ONE, TWO].iter().all(|it| world.leader(*it).is_some());
    assert!(world.run_until(SOON, are_led), "every group has a primary");
    // All have heard who leads.
    world.run(Span::millis(100));
    world
}

fn leaders(world: &World) -> (usize, usize) {
    let leader = |group| world.leader(group).expect("somebody leads");
    (leader(ONE), leader(TWO))
}

/// The outsider says something to whoever leads a group.
fn say(world: &mut World, to: GroupId, message: serializable::Message) {
    let (from, leader) = (world.hosts[OUTSIDER].me, world.leader(to).expect("somebody leads"));
    let message = Message::Between { to, message };
    world.turn(leader, |process, cx| process.on_message(from, message, cx));
}

/// A transaction over both groups whose votes do not come to the first, which decides.
fn undecided(world: &mut World) -> (Ticket, TxId) {
    let (one, two) = leaders(world);
    world.part(one, two);
    let put = |group| Item::Put { key: key_of(group, 2), value: bytes("v"), expiry: Expiry::Never };
    let ticket = world.request(OUTSIDER, transact([put(1), put(2)].into()), SOON);
    let process = world.hosts[OUTSIDER].process.as_ref().expect("it is up");
    let (_, tx) = process.clients.committing().expect("it commits");
    world.run(Span::millis(100));
    assert!(is_pending(world, ONE, tx) && is_pending(world, TWO, tx), "both have voted");
    (ticket, tx)
}

fn is_pending(world: &World, group: GroupId, tx: TxId) -> bool {
    let leader = world.leader(group).expect("somebody leads");
    let process = world.hosts[leader].process.as_ref().expect("it is up");
    process.groups[&group].state.head.pending.contains_key(&tx)
}

/// The links are whole again: the transaction is done in both groups.
fn is_done_in_both(world: &mut World, ticket: Ticket) {
    world.cut.clear();
    let is_told = |world: &mut World| world.answers.iter().any(|(_, of, _)| *of == ticket);
    assert!(world.run_until(SOON, is_told), "it is answered");
    let written = Outcome::Transacted([ItemOutcome::Written, ItemOutcome::Written].into());
    assert!(world.answers.iter().any(|(_, of, told)| *of == ticket && *told == written));
    for group in [1, 2] {
        let told = world.ask(OUTSIDER, Operation::get(key_of(group, 2)), SOON);
        assert_eq!(told, Outcome::value(Some(bytes("v"))), "group {group} has done its half");
    }
}

#[test]
fn who_is_no_member_of_a_group_does_not_vote_for_it() {
    let mut world = apart();
    let (ticket, tx) = undecided(&mut world);
    let (groups, seq) = (Vec::from([ONE, TWO]), VoteSeq(0));
    let vote = serializable::Message::Vote { tx, group: TWO, groups, seq, vote: Ok(Vec::new()) };
    say(&mut world, ONE, vote);
    world.run(Span::millis(100));
    assert!(is_pending(&world, ONE, tx), "nothing is decided without the vote");
    is_done_in_both(&mut world, ticket);
}

#[test]
fn who_is_no_member_of_a_group_does_not_decide_for_it() {
    let mut world = apart();
    let (ticket, tx) = undecided(&mut world);
    let (group, outcome) = (ONE, Err(Cause::Timeout));
    say(&mut world, TWO, serializable::Message::Decision { tx, group, outcome });
    world.run(Span::millis(100));
    assert!(is_pending(&world, TWO, tx), "it waits for who decides");
    is_done_in_both(&mut world, ticket);
}

#[test]
fn who_is_no_member_of_a_group_has_applied_nothing_for_it() {
    let mut world = apart();
    let (one, two) = leaders(&world);
    // The votes come, and the decision does not go back.
    let (ticket, tx) = undecided(&mut world);
    world.cut.remove(&(two, one));
    let is_decided = |world: &World| !is_pending(world, ONE, tx);
    assert!(world.run_to(SOON, is_decided), "it is decided");
    say(&mut world, ONE, serializable::Message::Applied { tx, group: TWO });
    world.run(Span::millis(200));
    // Its client knows how it ended, and says so with the next one.
    let next = Operation::put(key_of(1, 2), bytes("v"));
    assert_eq!(world.ask(OUTSIDER, next, SOON), Outcome::written());
    world.run(Span::secs(3));
    assert!(is_pending(&world, TWO, tx), "it was told nothing else");
    is_done_in_both(&mut world, ticket);
}

/// The outsider says that it alone is a group, in some view.
fn claim(world: &mut World, at: usize, group: GroupId, view: ViewNumber) {
    let from = world.hosts[OUTSIDER].me;
    let members = Arc::from([from.node]);
    let leads = Leads { group, members, view, serves: true };
    world.turn(at, |process, cx| process.on_message(from, Message::Leads(leads), cx));
}

#[test]
fn who_is_no_member_of_a_group_does_not_say_where_it_is() {
    let mut world = apart();
    let (one, two) = leaders(&world);
    let known = |world: &World| {
        let process = world.hosts[two].process.as_ref().expect("it is up");
        process.routes.leads(ONE).expect("it is known")
    };
    let before = known(&world);
    let later = ViewNumber { view: VSR_BEHIND_MAX, ..before.view };
    let next = ViewNumber::first(before.view.epoch.next());
    for view in [before.view, later, next] {
        claim(&mut world, two, ONE, view);
        assert_eq!(known(&world), before, "the members are asked first");
    }
    // It goes on to say so, and they are there.
    for _ in 0..20 {
        world.run(Span::millis(250));
        claim(&mut world, two, ONE, next);
        assert_eq!(known(&world), before);
    }
    let put = |group| Item::Put { key: key_of(group, 2), value: bytes("v"), expiry: Expiry::Never };
    let began = world.now;
    let ticket = world.request(two, transact([put(1), put(2)].into()), SOON);
    is_done_in_both(&mut world, ticket);
    assert!(world.now - began < Span::millis(200), "no vote went elsewhere");
    assert_eq!(world.leader(ONE), Some(one));
}

#[test]
fn who_knows_no_member_that_is_left_finds_the_group() {
    let mut world = founded(7, 1);
    let keys = fill(&mut world);
    // This host holds nothing, and hears nobody until all that it knows of are gone for good.
    (0..6).for_each(|other| world.part(6, other));
    world.gather(4..8);
    (0..3).chain([6]).for_each(|host| world.stand(host, Standing::Leaving));
    assert!(world.run_until(LONG, |world| (0..3).all(|host| world.holds(host) == 0)));
    for host in 0..3 {
        world.crash(host);
        world.stand(host, Standing::Left);
    }
    world.cut.clear();
    let knows = |world: &mut World| {
        let leader = world.leader(GroupId(1)).map(|at| world.hosts[at].me.node);
        let process = world.hosts[6].process.as_ref().expect("it is up");
        leader.is_some() && process.routes.leader(GroupId(1)) == leader
    };
    assert!(world.run_until(SOON, knows), "no client has to ask");
    has_all(&mut world, 6, &keys);
}

/// The last question that a host has asked for a client.
fn question(world: &World, at: usize) -> u64 {
    let process = world.hosts[at].process.as_ref().expect("it is up");
    (1..99).rev().find(|it| process.clients.get(*it).is_some()).expect("something is asked")
}

#[test]
fn who_was_not_asked_does_not_answer() {
    let mut world = apart();
    let (one, host) = leaders(&world);
    world.refusals = Some(Vec::new());
    let (from, key) = (world.hosts[OUTSIDER].me, key_of(1, 2));
    world.part(one, host);
    let answer = |world: &mut World, message| {
        world.turn(host, |process, cx| process.on_message(from, message, cx));
        assert!(world.answers.is_empty(), "it waits for who was asked");
    };
    let get = world.request(host, Operation::get(key.clone()), SOON);
    let content = Some((Raw(bytes("a lie")), None));
    let items = Reply::Items(Vec::from([ReadItem { version: Version(9), content }]));
    let told = Message::Told { question: question(&world, host), group: ONE, reply: items };
    answer(&mut world, told);
    let put = world.request(host, Operation::put(key.clone(), bytes("v")), SOON);
    let process = world.hosts[host].process.as_ref().expect("it is up");
    let (number, tx) = process.clients.committing().expect("it commits");
    let results = Vec::from([(ONE, Vec::from([Ok(Done::Put)]))]);
    let reply = Reply::Outcome { tx, outcome: serializable::Outcome::Committed(results) };
    answer(&mut world, Message::Told { question: number, group: ONE, reply });
    let scan = world.request(host, Operation::Scan { from: Cursor::at(0), limit: 9 }, SOON);
    let number = question(&world, host);
    let listed = Message::Listed { question: number, group: ONE, keys: Vec::new(), next: None };
    answer(&mut world, listed);
    assert_eq!(world.refusals.as_ref().map(Vec::len), Some(3));
    world.cut.clear();
    assert!(
        world.run_until(SOON, |world| world.answers.len() == 3),
        "those that were asked answer"
    );
    let told = |ticket| world.answers.iter().find(|it| it.1 == ticket).map(|it| it.2.clone());
    assert_eq!(told(put), Some(Outcome::written()));
    let is_value = |value: &str| Some(Outcome::value(Some(Bytes::from(value.to_owned()))));
    assert!(told(get) == Some(Outcome::value(None)) || told(get) == is_value("v"));
    assert!(matches!(told(scan), Some(Outcome::Page { .. })), "{:?}", told(scan));
}

/// A question that is in hand at a primary is asked once more, of any replica.
#[test]
fn a_question_is_not_asked_of_a_primary_and_of_any_replica() {
    let mut world = apart();
    let (leader, _) = leaders(&world);
    let (from, keys) = (world.hosts[OUTSIDER].me, Vec::from([place::stored(&key_of(1, 2))]));
    world.refusals = Some(Vec::new());
    for request in [Request::Read { keys: keys.clone() }, Request::ReadAny { keys }] {
        let message = Message::Ask { question: 1, group: ONE, request };
        world.turn(leader, |process, cx| process.on_message(from, message, cx));
    }
    let process = world.hosts[leader].process.as_ref().expect("it is up");
    process.groups[&ONE].questions.check();
    assert_eq!(world.refusals.as_ref().map(Vec::len), Some(1), "{:?}", world.refusals);
}
