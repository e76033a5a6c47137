//! Requests that are sent again under their names, long after.

use super::joining::{asker, event, number, page};
use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Message, SnapshotB};
use crate::epidemic::pending::What;
use crate::epidemic::replica::version::RequestId;
use crate::epto::LogicalTime;
use bytes::Bytes;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Span;
use std::format;

const ID: RequestId = RequestId(77);

/// A world that forgets soon, and the time at which x = 1 was written under a name; x = 2 has come
/// since.
fn forgetful(seed: u64) -> (World, quorate_kernel::time::Time) {
    let mut world = World::new(12, Level::Strong, seed);
    (world.settings.grace, world.settings.window) = (400, 40);
    let nodes = world.up();
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    let began = world.now;
    let first = world.ask_as(nodes[0], ID, "x", put("1"));
    assert!(matches!(world.wait(first), Outcome::Written { .. }));
    assert!(matches!(world.done("x", put("2")), Outcome::Written { .. }));
    (world, began)
}

fn pass(world: &mut World, events: u64) {
    for number in 0..events {
        let node = world.any();
        world.ask(node, &format!("y{number}"), put("1"));
        world.run(2);
    }
    world.run(40);
}

#[test]
fn a_write_that_may_have_been_forgotten_is_refused_and_not_done_again() {
    let (mut world, began) = forgetful(71);
    pass(&mut world, 60);
    let node = world.any();
    assert!(world.up().iter().all(|node| world.state(*node).seen.get(ID).is_none()));
    let age = world.now - began;
    let again = world.ask_again(node, (ID, age), "x", put("1"));
    assert_eq!(world.wait(again), Outcome::Refused(Refusal::NameForgotten));
    assert!(Refusal::NameForgotten.may_have_applied());
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"2")));
    // A name that was never sent before is not too old, whatever was forgotten.
    let fresh = world.ask_as(node, RequestId(78), "x", put("3"));
    assert!(matches!(world.wait(fresh), Outcome::Written { .. }));
}

#[test]
fn a_write_that_is_remembered_is_told_again_and_one_that_nobody_heard_of_is_done() {
    let (mut world, began) = forgetful(72);
    pass(&mut world, 10);
    let node = world.any();
    let age = world.now - began;
    let again = world.ask_again(node, (ID, age), "x", put("1"));
    assert!(matches!(world.wait(again), Outcome::Written { .. }));
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"2")));
    pass(&mut world, 60);
    // It was first sent a while after those that are forgotten.
    let late = world.ask_again(node, (RequestId(78), Span::millis(500)), "x", put("3"));
    assert!(matches!(world.wait(late), Outcome::Written { .. }));
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"3")));
}

/// Who has joined since does not know what became of it either.
#[test]
fn what_a_donor_has_forgotten_is_forgotten_by_who_joins() {
    let (mut world, node, donors) = asker(73);
    for _ in 0..400 {
        if let crate::epidemic::repair::join::Standing::Joining(joining) =
            &world.state(node).standing
            && joining.asked(donors[0]).is_some()
        {
            break;
        }
        world.run(1);
    }
    assert!(!world.state(node).seen.may_have_forgotten(LogicalTime(0)));
    let number = number(&world, node, donors[0]);
    let forgotten = Some(event(3));
    let page = SnapshotB { forgotten, ..page(&world, node, number, 5, true) };
    world.say(donors[0], node, Message::SnapshotB(page));
    assert!(world.state(node).seen.may_have_forgotten(LogicalTime(2)));
    assert!(!world.state(node).seen.may_have_forgotten(LogicalTime(3)));
    assert!(world.holders(&wire_key(b"x")).len() < 12, "there are slices");
}

/// Only what comes with a token waits for a place, and only until there is a clock.
#[test]
fn what_has_seen_nothing_waits_for_no_place() {
    let mut world = World::new(5, Level::Strong, 74);
    world.settle();
    let node = world.any();
    let plain = world.ask(node, "x", put("1"));
    assert!(world.state(node).unplaced.is_empty());
    let seen = world.state(node).last.unwrap_or(event(1));
    let placed = world.ask_after(node, "x", put("2"), seen);
    assert_eq!(world.state(node).unplaced.len(), 1);
    world.run(2);
    assert!(world.state(node).unplaced.is_empty(), "it is placed once");
    assert!(!world.answers.contains_key(&placed), "and waits on");
    for ticket in [plain, placed] {
        assert!(matches!(world.wait(ticket), Outcome::Written { .. }));
    }
}

/// Who cannot send it now does not know what became of it the first time.
#[test]
fn a_write_that_is_sent_again_is_never_told_to_have_changed_nothing() {
    let (mut world, began) = forgetful(73);
    let node = world.any();
    world.stop(node);
    world.start(node);
    world.cut = Some(std::boxed::Box::new(|_, _, _| true));
    let age = world.now - began;
    let again = world.ask_again(node, (ID, age), "x", put("1"));
    assert_eq!(world.wait(again), Outcome::Refused(Refusal::OutcomeUnknown));
}

/// Those who have passed the first try on, or have answered it in vain, are no end of the second.
#[test]
fn a_write_without_order_that_is_tried_again_is_spread_again() {
    let is_lost: [fn(&Message) -> bool; 2] = [
        |message| matches!(message, Message::Flask(_)),
        |message| matches!(message, Message::Flasked { .. }),
    ];
    let mut world = World::new(24, Level::None, 76);
    world.settle();
    let (entry, other) = (world.up()[0], world.up()[1]);
    for (number, is_lost) in is_lost.into_iter().enumerate() {
        let (id, key) = (RequestId(80 + number as u128), format!("x{number}"));
        let write = || What::PutVersion(1, Bytes::from_static(b"1"));
        world.cut = Some(std::boxed::Box::new(move |_, _, message| is_lost(message)));
        let first = world.ask_as(entry, id, &key, write());
        assert_eq!(world.wait(first), Outcome::Refused(Refusal::OutcomeUnknown));
        world.cut = None;
        for node in [entry, other] {
            let again = world.ask_as(node, id, &key, write());
            assert!(matches!(world.wait(again), Outcome::Written { .. }), "{number}");
        }
        world.run(10);
        assert_eq!(value(&world.done(&key, What::Get)), Some(Bytes::from_static(b"1")));
        for node in world.holders(&wire_key(key.as_bytes())) {
            let state = world.state(node);
            let mut held = state.store.iter().filter(|(it, _)| **it == wire_key(key.as_bytes()));
            let count = held.next().map_or(0, |(_, versions)| versions.len());
            assert!(count == 1 && state.counters.conflicts == 0, "it is written once");
        }
    }
}
