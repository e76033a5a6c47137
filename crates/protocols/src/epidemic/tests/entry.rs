//! What the node does that a client asks.

use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Came, Message};
use crate::epidemic::pending::{ORDERED_VALUE_BYTES_MAX, What};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::{EventKey, LogicalTime};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start, Ticket};
use quorate_kernel::operation::{Outcome, Refusal};
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

fn event(time: u64) -> EventKey {
    let source = Incarnation { node: NodeId(7), start: Start(1) };
    EventKey { time: LogicalTime(time), source }
}

fn version(outcome: &Outcome) -> Option<Version> {
    match outcome {
        Outcome::Written { context } | Outcome::Deleted { context, .. } => {
            Version::from_token(&context[..21])
        }
        other => panic!("{other:?} is no write"),
    }
}

/// Others would wait behind it for ever.
#[test]
fn a_value_that_no_event_can_carry_is_refused_and_stops_nothing() {
    let mut world = World::new(12, Level::Strong, 41);
    world.settle();
    let node = world.any();
    let of = |length: usize| What::Put(Bytes::from(vec![7; length]));
    let (longest, longer) = (ORDERED_VALUE_BYTES_MAX, ORDERED_VALUE_BYTES_MAX + 1);
    let refused = world.ask(node, "x", of(longer));
    let refusal = Refusal::TooLarge { what: "value", length: longer, limit: longest };
    assert_eq!(world.wait(refused), Outcome::Refused(refusal));
    for (key, what) in [("x", of(longest)), ("y", put("1"))] {
        let ticket = world.ask(node, key, what);
        assert!(matches!(world.wait(ticket), Outcome::Written { .. }), "{key}");
    }
}

#[test]
fn a_delete_is_told_whether_there_was_a_value() {
    let mut world = World::new(12, Level::Strong, 42);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    for had in [true, false] {
        let outcome = world.done("x", What::Delete);
        let Outcome::Deleted { existed, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(existed, had);
        world.run(20);
    }
}

/// An entry that has just started knows of nobody, and takes no one copy for all there are.
#[test]
fn who_knows_nobody_yet_wants_as_many_replicas_as_others() {
    let mut world = World::new(24, Level::None, 43);
    world.settle();
    let node = world.add();
    world.cut = Some(Box::new(move |_, to, _| to == node));
    world.start(node);
    world.run(3);
    let ticket = world.ask(node, "x", What::PutVersion(1, Bytes::from_static(b"1")));
    let (id, _, _) = world.asked[&ticket];
    let holders = world.holders(&wire_key(b"x"));
    let wrote = Came::Wrote { version: Version::Explicit(1), existed: false };
    let word = || Message::Flasked { id, members: 5, result: wrote.clone() };
    world.say(holders[0], node, word());
    assert!(!world.answers.contains_key(&ticket), "one copy is not two");
    world.say(holders[1], node, word());
    assert!(matches!(world.answers[&ticket], Outcome::Written { .. }));
}

/// A view that is being filled shows few members of many.
#[test]
fn a_replica_does_not_call_the_few_it_knows_all() {
    let mut world = World::new(1, Level::Strong, 44);
    world.run(25);
    let node = world.any();
    assert!(!world.state(node).slices.is_filled());
    assert_eq!(world.state(node).told_size(), u16::MAX);
    world.settle();
    world.run(25);
    assert_eq!(world.state(node).told_size(), 1);
}

/// Repair may bring a write whose event has not come here: a write that begins then is later.
#[test]
fn a_write_comes_after_all_that_its_entry_has_taken_in() {
    let mut world = World::new(12, Level::Strong, 45);
    world.settle();
    let key = wire_key(b"x");
    let (entry, from) = (world.holders(&key)[0], world.any());
    let value_of = Some(Bytes::from_static(b"early"));
    let (taken, id) = (Version::Ordered(event(1000)), RequestId(1));
    let record = Record { key: key.clone(), version: taken, id, value: value_of };
    let (ids, wanted) = (Vec::new(), Vec::new());
    let (page, heard, records) = (None, taken.time(), vec![record]);
    world.say(from, entry, Message::Records { page, heard, records, ids, wanted });
    let ticket = world.ask(entry, "x", put("late"));
    let outcome = world.wait(ticket);
    assert!(version(&outcome) > Some(taken), "{outcome:?}");
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"late")));
}

/// So does one that begins when its client was told of a later one through the same node.
#[test]
fn a_write_comes_after_what_was_read_through_the_same_node() {
    let mut world = World::new(12, Level::Eventual, 46);
    world.settle();
    let key = wire_key(b"x");
    let holders = world.holders(&key);
    let nodes = world.up();
    let entry = *nodes.iter().find(|node| !holders.contains(node)).expect("there are others");
    let (taken, id) = (Version::Ordered(event(1000)), RequestId(1));
    for holder in holders {
        let value = Some(Bytes::from_static(b"early"));
        let record = Record { key: key.clone(), version: taken, id, value };
        let (ids, wanted) = (Vec::new(), Vec::new());
        let (page, heard, records) = (None, taken.time(), vec![record]);
        let message = Message::Records { page, heard, records, ids, wanted };
        world.say(entry, holder, message);
    }
    let read: Ticket = world.ask(entry, "x", What::Get);
    assert_eq!(value(&world.wait(read)), Some(Bytes::from_static(b"early")));
    let ticket = world.ask(entry, "x", put("late"));
    let outcome = world.wait(ticket);
    assert!(version(&outcome) > Some(taken), "{outcome:?}");
}
