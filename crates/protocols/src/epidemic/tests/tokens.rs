//! What clients hand back of what they have seen.

use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::message::{FlaskAct, Message};
use crate::epidemic::pending::What;
use crate::epidemic::replica::version::{TOKEN_BYTES, Version};
use crate::epto::{EventKey, LogicalTime};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::receipt::{Receipt, TokenError};
use std::boxed::Box;
use std::string::ToString;
use std::vec::Vec;

/// The event that a token names.
fn event_of(token: &Bytes) -> EventKey {
    match Version::from_token(&token[..TOKEN_BYTES]) {
        Some(Version::Ordered(event)) => event,
        other => panic!("{other:?} is no event"),
    }
}

/// A world in which one node hears of no event any more, and that node.
fn with_one_behind(level: Level) -> (World, NodeId, NodeId) {
    let mut world = World::new(5, level, 11);
    world.settle();
    let nodes: Vec<NodeId> = world.up();
    let (asked, behind) = (nodes[0], nodes[1]);
    let first = world.ask(asked, "k", put("old"));
    world.wait(first);
    world.run(20);
    world.cut = Some(Box::new(move |_, to, message| {
        to == behind && !matches!(message, Message::Flask(_) | Message::Flasked { .. })
    }));
    (world, asked, behind)
}

#[test]
fn a_read_is_not_answered_by_who_is_behind_its_client() {
    let (mut world, asked, behind) = with_one_behind(Level::Eventual);
    let ticket = world.ask(asked, "k", put("new"));
    let Outcome::Written { context } = world.wait(ticket) else { panic!("it is written") };
    let token = Receipt::of_context(&context).expect("answers carry receipts").token;
    let without = world.ask(behind, "k", What::Get);
    assert_eq!(value(&world.wait(without)), Some(Bytes::from_static(b"old")), "it may be behind");
    let seen = event_of(&token);
    let with = world.ask_after(behind, "k", What::Get, seen);
    assert_eq!(value(&world.wait(with)), Some(Bytes::from_static(b"new")));
}

/// A count would be another one at a replica with a hole.
#[test]
fn a_version_is_the_name_of_the_event_that_wrote_it() {
    let mut world = World::new(4, Level::Strong, 14);
    world.settle();
    let node = world.up()[0];
    let events = ["1", "2"].map(|value| {
        let ticket = world.ask(node, "k", put(value));
        let Outcome::Written { context } = world.wait(ticket) else { panic!("it is written") };
        event_of(&Receipt::of_context(&context).expect("answers carry receipts").token)
    });
    assert!(events.iter().all(|event| event.source == world.me(node)), "{events:?}");
    assert!(events[0] < events[1]);
}

#[test]
fn an_event_of_the_same_time_is_not_the_one_that_was_seen() {
    let (mut world, asked, behind) = with_one_behind(Level::Eventual);
    world.cut = None;
    world.run(30);
    let last = world.state(behind).last.expect("it has delivered some");
    let flask = |after| FlaskAct::Get { version: None, after };
    let engine = &world.hosts[&behind].engine;
    assert!(engine.is_as_far(&flask(Some(last))) && engine.is_as_far(&flask(None)));
    let mut other = last;
    other.source.node.0 += 1;
    assert!(!engine.is_as_far(&flask(Some(other))), "{asked:?} may have been told of it");
}

#[test]
fn a_write_at_who_has_just_started_comes_behind_what_its_client_has_seen() {
    let mut world = World::new(5, Level::Strong, 12);
    world.settle();
    let nodes: Vec<NodeId> = world.up();
    for number in 0..20 {
        let ticket = world.ask(nodes[0], "k", put(&number.to_string()));
        world.wait(ticket);
    }
    let ticket = world.ask(nodes[0], "k", put("last"));
    let Outcome::Written { context } = world.wait(ticket) else { panic!("it is written") };
    let seen = Receipt::of_context(&context).expect("answers carry receipts").token;
    world.stop(nodes[1]);
    world.start(nodes[1]);
    let time = event_of(&seen);
    let ticket = world.ask_after(nodes[1], "x", put("1"), time);
    let Outcome::Written { context } = world.wait(ticket) else { panic!("it is written") };
    let place = Receipt::of_context(&context).expect("answers carry receipts").token;
    assert!(place > seen, "{place:?} is not after {seen:?}");
    // Nobody was ever given such a place: an event that peers would not believe.
    let far = EventKey { time: LogicalTime(EPTO_CLOCK_JUMP_MAX), ..time };
    let refused = Outcome::Refused(Refusal::Token(TokenError::Ahead));
    let ticket = world.ask_after(nodes[2], "x", put("2"), far);
    assert_eq!(world.wait(ticket), refused);
    let mut world = World::new(5, Level::Eventual, 13);
    world.settle();
    let node = world.any();
    let ticket = world.ask_after(node, "x", What::Get, far);
    assert_eq!(world.answers.get(&ticket), Some(&refused), "no replica would ever be as far");
}
