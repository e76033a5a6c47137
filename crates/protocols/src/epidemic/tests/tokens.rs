//! What clients hand back of what they have seen.

use super::world::{World, put, value};
use crate::epidemic::engine::seen_in;
use crate::epidemic::message::Message;
use crate::epidemic::pending::What;
use crate::epidemic::replica::version::Version;
use crate::epidemic::{Epidemic, Level};
use crate::epto::{EventKey, LogicalTime};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::EPTO_TIME_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::receipt::Receipt;
use quorate_kernel::write::ContextError;
use std::boxed::Box;
use std::string::ToString;
use std::vec::Vec;

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
    let seen = seen_in(&token).expect("it is a token");
    let with = world.ask_after(behind, "k", What::Get, seen);
    assert_eq!(value(&world.wait(with)), Some(Bytes::from_static(b"new")));
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
    let time = seen_in(&seen).expect("it is a token");
    let ticket = world.ask_after(nodes[1], "x", put("1"), time);
    let Outcome::Written { context } = world.wait(ticket) else { panic!("it is written") };
    let place = Receipt::of_context(&context).expect("answers carry receipts").token;
    assert!(place > seen, "{place:?} is not after {seen:?}");
    let forged = LogicalTime(EPTO_TIME_MAX);
    let ticket = world.ask_after(nodes[2], "x", put("2"), forged);
    let refused = Outcome::Refused(Refusal::Context(ContextError::Forged));
    assert_eq!(world.wait(ticket), refused, "nobody has ever been there");
}

#[test]
fn what_is_no_token_is_refused() {
    let event = |time| EventKey { time: LogicalTime(time), source: Incarnation::default() };
    let token = |time| Version::Ordered(event(time)).to_token();
    assert_eq!(seen_in(&token(7)).map(|time| time.0), Ok(7));
    assert_eq!(seen_in(&token(EPTO_TIME_MAX + 1)), Err(ContextError::Forged));
    for wrong in [&b"x"[..], &token(7)[1..]] {
        assert_eq!(seen_in(wrong), Err(ContextError::Damaged));
    }
    let parts = |engine: &Epidemic| quorate_kernel::process::Process::parts(engine).len();
    let world = World::new(1, Level::Strong, 1);
    assert!(world.hosts.values().all(|host| parts(&host.engine) == 1), "it is not ready yet");
}
