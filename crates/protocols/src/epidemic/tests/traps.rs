//! Single traps, with messages that are put in.

use super::joining::given_up;
use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Came, Flask, FlaskAct, Message};
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::{leaf, position};
use crate::epidemic::replica::seen::Done;
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::{EventKey, LogicalTime};
use crate::slices::position::Position;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::{Outcome, Refusal};
use std::boxed::Box;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::vec::Vec;

fn event(time: u64) -> EventKey {
    let source = Incarnation { node: NodeId(7), start: Start(1) };
    EventKey { time: LogicalTime(time), source }
}

/// Repair may bring a write before its turn. A read whose turn comes first must not see it.
#[test]
fn a_read_does_not_see_what_comes_after_it() {
    let mut world = World::new(12, Level::Strong, 31);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    let (key, id) = (wire_key(b"x"), RequestId(5));
    let version = Version::Ordered(event(1000));
    let value = Some(Bytes::from_static(b"later"));
    for node in world.holders(&key) {
        let record = Record { key: key.clone(), version, id, value: value.clone() };
        let (records, ids, wanted) = (Vec::from([record]), Vec::new(), Vec::new());
        let (from, heard) = (world.any(), version.time());
        world.say(from, node, Message::Records { page: None, heard, records, ids, wanted });
    }
    // One of those that have taken it in would read later than it.
    let holders = world.holders(&key);
    let entry = world.up().into_iter().find(|node| !holders.contains(node));
    let ticket = world.ask(entry.expect("there are others"), "x", What::Get);
    let outcome = world.wait(ticket);
    assert!(matches!(outcome, Outcome::Refused(Refusal::NoQuorum { .. })), "{outcome:?}");
    let ahead: u64 = world.up().iter().map(|node| world.state(*node).counters.ahead).sum();
    assert!(ahead > 0);
}

/// Two words of one replica are one copy.
#[test]
fn a_replica_counts_once_however_often_it_speaks() {
    let mut world = World::new(12, Level::Strong, 32);
    world.settle();
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::Did { .. })));
    let nodes = world.up();
    let holders = world.holders(&wire_key(b"x"));
    let entry = *nodes.iter().find(|node| !holders.contains(node)).expect("there are others");
    let id = RequestId(9);
    let ticket = world.ask_as(entry, id, "x", put("1"));
    world.run(4);
    let version = Version::Ordered(event(50));
    let did = || {
        let results = Vec::from([(id, Came::Wrote { version, existed: false })]);
        Message::Did { event: event(50), members: 5, results }
    };
    (0..3).for_each(|_| world.say(holders[0], entry, did()));
    assert!(!world.answers.contains_key(&ticket), "one replica has it");
    world.say(holders[1], entry, did());
    let Some(Outcome::Written { context }) = world.answers.get(&ticket) else {
        panic!("two have it")
    };
    assert_eq!(Version::from_token(&context[..21]), Some(version));
    assert_eq!(context[32..], [2, 0], "two have said so, and none knew of a hole");
}

/// What no node of a keyspace says changes nothing.
#[test]
fn versions_of_another_level_are_refused() {
    let mut world = World::new(12, Level::Strong, 35);
    world.settle();
    let key = wire_key(b"x");
    let (holder, from) = (world.holders(&key)[0], world.any());
    let value = Some(Bytes::from_static(b"v"));
    let record =
        Record { key: key.clone(), version: Version::Explicit(3), id: RequestId(1), value };
    let (ids, wanted) = (Vec::new(), Vec::new());
    let records = Vec::from([record]);
    let heard = LogicalTime(9);
    world.say(from, holder, Message::Records { page: None, heard, records, ids, wanted });
    let act = FlaskAct::Put(3, Bytes::from_static(b"v"));
    let entry = world.me(from);
    let flask =
        Flask { id: RequestId(2), attempt: 0, entry, number: 1, hops: 0, key: key.clone(), act };
    world.say(from, holder, Message::Flask(flask));
    assert!(world.state(holder).store.held(&key, None).is_none());
    assert_eq!(world.state(holder).counters.malformed, 1);
    assert!(!world.answered.contains_key(&holder));
}

/// A slice with fewer members than acks are wanted answers with all that it has.
#[test]
fn where_there_are_few_members_all_of_them_are_enough() {
    let mut world = World::new(1, Level::Strong, 33);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"1")));
}

/// What cannot be found is given up, and reads say so until all is known to be equal again.
#[test]
fn a_hole_that_nobody_can_fill_is_told_to_readers() {
    let mut world = World::new(12, Level::Strong, 34);
    world.settings.repair_rounds = 40;
    let nodes = world.up();
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    let holders = world.holders(&wire_key(b"x"));
    let entry = *nodes.iter().find(|node| !holders.contains(node)).expect("there are others");
    // A source is known by an event that was delivered.
    world.ask(entry, "z", What::Get);
    world.run(20);
    // Events of which only their source knows are missed by all.
    let all: BTreeSet<NodeId> = holders.into_iter().collect();
    world.cut = Some(Box::new(move |_, to, message| {
        let is_ball = matches!(message, Message::Epto(crate::epto::Message::Ball(_)));
        is_ball && all.contains(&to)
    }));
    world.ask(entry, "y", What::Get);
    world.run(8);
    world.run(30);
    world.cut = None;
    let first = world.ask(entry, "x", What::Get);
    let outcome = world.wait(first);
    let Outcome::Values { context, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(context[33], 1, "a hole was given up");
    assert_eq!(value(&outcome), Some(Bytes::from_static(b"1")));
    world.run(120);
    let second = world.ask(entry, "x", What::Get);
    let outcome = world.wait(second);
    let Outcome::Values { context, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(context[33], 0, "members have compared what they have");
}

/// Repair tells which requests were done, and apart from that what they wrote: that may never come.
#[test]
fn who_has_heard_of_a_request_before_its_event_stores_what_it_writes() {
    let mut world = World::new(12, Level::Strong, 36);
    world.settle();
    let (key, id) = (wire_key(b"x"), RequestId(77));
    let holder = world.holders(&key)[0];
    let node = world.any();
    let ticket = world.ask_as(node, id, "x", put("1"));
    world.run(1);
    let done = Done { event: event(1), position: position(&key), existed: false };
    let (records, wanted) = (Vec::new(), Vec::new());
    let (page, heard, ids) = (None, LogicalTime(9), Vec::from([(id, done)]));
    let message = Message::Records { page, heard, records, ids, wanted };
    world.say(node, holder, message);
    // Repair would bring it later.
    let is_repair =
        |message: &Message| matches!(message, Message::Compare { .. } | Message::Records { .. });
    world.cut = Some(Box::new(move |_, _, message| is_repair(message)));
    assert!(matches!(world.wait(ticket), Outcome::Written { .. }));
    world.run(10);
    let held = world.state(holder).store.held(&key, None);
    assert_eq!(held.map(|held| held.version), Some(Version::Ordered(event(1))));
}

/// Everybody who hears of it would tell all that it knows.
#[test]
fn a_request_without_order_does_not_go_to_all_neighbours() {
    let mut world = World::new(60, Level::Eventual, 37);
    world.settle();
    let node = world.any();
    let groups = world.state(node).slices.groups().expect("it has settled for some");
    let slice = |at| groups.slice(at);
    let view = world.state(node).cyclon.view();
    let known: BTreeSet<_> = {
        let own = Position::of(node);
        view.iter().map(|peer| slice(Position::of(peer.who.node))).chain([slice(own)]).collect()
    };
    let neighbours = view.len();
    let is_there = |at| world.hosts.keys().filter(|it| slice(Position::of(**it)) == at).count() > 1;
    let is_far = |at| !known.contains(&at) && is_there(at);
    let keys = (0..1000).map(|number| std::format!("k{number}"));
    let mut far = keys.filter(|key| is_far(slice(position(&wire_key(key.as_bytes())))));
    let key = far.next().expect("there is a slice of which it knows nobody");
    let is_flask = |message: &&Message| matches!(message, Message::Flask(_));
    let sent = world.heard(|world| _ = world.ask(node, &key, What::Get));
    let sent = sent.iter().filter(is_flask).count();
    assert!((1..=4).contains(&sent) && neighbours > 20, "{sent} of {neighbours} were told");
    world.run(60);
    assert_eq!(world.answers.len(), 1, "it is found all the same");
}

/// A leaf was given up between a comparison and its answer.
#[test]
fn what_was_given_up_is_listed_to_no_peer_that_compares() {
    let (mut world, node, key) = given_up();
    let leaf = leaf(position(&key));
    let is_peer =
        |it: &NodeId| *it != node && world.state(*it).range() == world.state(node).range();
    let peer = world.up().into_iter().find(is_peer).expect("a slice has several nodes");
    let listed = Rc::new(Cell::new(0));
    let count = Rc::clone(&listed);
    world.cut = Some(Box::new(move |from, to, message| {
        let is_it = matches!(message, Message::Listed { page, .. } if page.leaf == leaf);
        count.set(count.get() + u32::from(is_it && (from, to) == (node, peer)));
        false
    }));
    let (parts, sums, ids) = (Vec::from([(leaf, leaf)]), Vec::new(), Vec::new());
    world.say(peer, node, Message::Leaves { number: 1, parts, sums, ids });
    assert_eq!(listed.get(), 0);
}
