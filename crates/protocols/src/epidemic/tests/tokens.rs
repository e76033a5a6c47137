//! What clients hand back of what they have seen.

use super::world::{World, put, value};
use crate::epidemic::engine::seen_in;
use crate::epidemic::message::Message;
use crate::epidemic::pending::What;
use crate::epidemic::replica::version::Version;
use crate::epidemic::{Epidemic, Level};
use crate::epto::EventKey;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::EPTO_TIME_MAX;
use quorate_kernel::operation::Outcome;
use quorate_kernel::receipt::Receipt;
use quorate_kernel::write::ContextError;
use std::boxed::Box;
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
fn what_is_no_token_is_refused() {
    let event =
        |time| EventKey { time: crate::epto::LogicalTime(time), source: Incarnation::default() };
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
