//! Traps of holes: events that a node has missed.

use super::world::{World, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Came, Found, Message, PAGE_BYTES};
use crate::epidemic::ordered::holes::HeldRead;
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::{EventKey, LogicalTime, Sequence};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::{Outcome, Refusal};
use std::boxed::Box;
use std::cell::RefCell;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec;
use std::vec::Vec;

fn event(time: u64) -> EventKey {
    let source = Incarnation { node: NodeId(7), start: Start(1) };
    EventKey { time: LogicalTime(time), source }
}

/// A world with a hole at a node, which nobody there can fill.
fn holed(seed: u64) -> (World, NodeId) {
    let mut world = World::new(12, Level::Strong, seed);
    world.settle();
    let node = world.up()[0];
    let source = event(1).source;
    world.with_host(node, |engine, _| engine.on_hole(source, Sequence(1), Sequence(1)));
    (world, node)
}

fn found(range: Option<Range>) -> Found {
    let (source, sequence) = (event(1).source, Sequence(1));
    let (records, left, ids) = (Vec::new(), Vec::new(), Vec::new());
    Found { source, sequence, range, heard: LogicalTime(9), records, left, ids }
}

/// It does not know what the event did to the rest.
#[test]
fn who_has_a_narrower_slice_does_not_fill_a_hole() {
    let (mut world, node) = holed(61);
    let other = world.up()[1];
    let range = world.state(node).range().expect("it has a slice");
    let narrower = Range { last: Range::of_leaf(range.leaves().0).last, ..range };
    for told in [None, Some(narrower)] {
        world.say(other, node, Message::MissingB(vec![found(told)]));
        assert!(world.state(node).holes.is_open(), "{told:?} is not all of it");
    }
    world.say(other, node, Message::MissingB(vec![found(Some(Range::ALL))]));
    assert!(!world.state(node).holes.is_open());
}

/// What an event wrote may be longer than a message: it is asked for in parts.
#[test]
fn a_hole_is_filled_when_all_of_it_has_come() {
    let (mut world, node) = holed(62);
    let other = world.up()[1];
    let keys = (0..1000).map(|number| wire_key(format!("o{number}").as_bytes()));
    let mut mine = keys.filter(|key| world.state(node).is_mine(position(key)));
    let (version, id) = (Version::Ordered(event(3)), RequestId(9));
    let key = mine.next().expect("it has a slice");
    let left = vec![(key.clone(), version)];
    let whole = || Found { left: left.clone(), ..found(Some(Range::ALL)) };
    let asked = world.heard(|world| world.say(other, node, Message::MissingB(vec![whole()])));
    assert!(world.state(node).holes.is_open(), "a part is missing");
    let is_asked = |message: &Message| match message {
        Message::Records { wanted, .. } => *wanted == left,
        _ => false,
    };
    assert!(asked.iter().any(is_asked), "{asked:?}");
    let record = Record { key, version, id, value: Some(Bytes::from_static(b"v")) };
    let (page, records, ids, wanted) = (None, vec![record], Vec::new(), Vec::new());
    let heard = LogicalTime(9);
    world.say(other, node, Message::Records { page, heard, records, ids, wanted });
    world.say(other, node, Message::MissingB(vec![whole()]));
    assert!(!world.state(node).holes.is_open());
}

/// Nor are answers longer than pages: a long message may have no room on a link.
#[test]
fn answers_come_in_parts() {
    let mut world = World::new(12, Level::Strong, 63);
    world.settle();
    let entry = world.up()[0];
    let longer = |number: u64| What::Put(Bytes::from(vec![number as u8; PAGE_BYTES / 2]));
    let keys: Vec<_> = (0..12).map(|number| format!("k{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        let ticket = world.ask(entry, key, longer(number as u64));
        assert!(matches!(world.wait(ticket), Outcome::Written { .. }));
    }
    world.cut = Some(Box::new(|_, _, message| {
        let length = |found: &Found| {
            let values = found.records.iter().filter_map(|record| record.value.as_ref());
            values.map(Bytes::len).sum::<usize>()
        };
        let values = match message {
            Message::Did { results, .. } => postcard::to_allocvec(results).map_or(0, |it| it.len()),
            Message::MissingB(found) => found.iter().map(length).sum(),
            _ => 0,
        };
        assert!(values < 2 * PAGE_BYTES, "{values} bytes in one message");
        false
    }));
    let reads: Vec<_> = keys.iter().map(|key| world.ask(entry, key, What::Get)).collect();
    for ticket in reads {
        assert!(value(&world.wait(ticket)).is_some());
    }
    let places = (1..=64).map(|number| (world.me(entry), Sequence(number))).collect();
    let other = *world.holders(&wire_key(b"k0")).last().expect("somebody has it");
    world.say(entry, other, Message::MissingA(places));
    world.run(2);
}

/// Members that are written to are hardly ever equal: what is at rest is enough, and what a member
/// has told.
#[test]
fn what_was_given_up_is_in_doubt_no_longer_than_it_takes_to_compare_though_writes_go_on() {
    let (mut world, node) = holed(64);
    let key = wire_key(b"x");
    let mine = (0..1000).map(|number| format!("x{number}"));
    let mut mine =
        mine.filter(|key| world.state(node).is_mine(position(&wire_key(key.as_bytes()))));
    let hot = mine.next().expect("it has a slice");
    let write = |world: &mut World, rounds: u64| {
        for round in 0..rounds {
            for number in 0..5 {
                let from = world.any();
                let key = if number == 0 { hot.clone() } else { format!("y{round}-{number}") };
                world.ask(from, &key, What::Put(Bytes::from_static(b"1")));
            }
            world.run(1);
        }
    };
    write(&mut world, 16);
    assert!(world.state(node).counters.given_up > 0, "nobody could fill it");
    write(&mut world, 60);
    let left = world.state(node).doubt.count();
    assert!(left <= 2, "{left} leaves are in doubt after so many comparisons");
    assert!(!world.state(node).is_degraded(&key));
    write(&mut world, 40);
    assert!(!world.state(node).is_degraded(&wire_key(hot.as_bytes())), "a hot key, too");
}

/// Sources of which something is missing all the time keep no read waiting for ever.
#[test]
fn a_read_waits_for_no_hole_that_is_found_later() {
    let (mut world, node) = holed(65);
    let key = of_its_slice(&world, node);
    let told = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&told);
    world.cut = Some(Box::new(move |from, _, message| {
        if let Message::Did { results, .. } = message {
            let came = results.iter().map(|(_, came)| came.clone());
            heard.borrow_mut().extend(came.filter(|_| from == node));
        }
        false
    }));
    _ = world.ask(node, &key, What::Get);
    let mut waited = 0;
    for number in 2..60 {
        let hole = Sequence(number);
        world.with_host(node, |engine, _| engine.on_hole(event(1).source, hole, hole));
        world.run(1);
        waited += u64::from(world.state(node).holes.held() > 0);
    }
    assert!((1..=14).contains(&waited), "it has waited for {waited} rounds");
    let told = told.borrow();
    let is_degraded = |came: &Came| matches!(came, Came::Read { is_degraded: true, .. });
    assert!(!told.is_empty() && told.iter().all(is_degraded), "something is missing: {told:?}");
}

/// What is known of a hole is as old as it is, however often it is heard of.
#[test]
fn a_hole_that_is_found_again_is_given_up_all_the_same() {
    let (mut world, node) = holed(66);
    for _ in 0..20 {
        let hole = Sequence(1);
        world.with_host(node, |engine, _| engine.on_hole(event(1).source, hole, hole));
        world.run(1);
    }
    assert!(world.state(node).counters.given_up > 0, "it is as young as when it was found");
}

fn of_its_slice(world: &World, node: NodeId) -> String {
    let keys = (0..1000).map(|number| format!("x{number}"));
    let mut keys =
        keys.filter(|key| world.state(node).is_mine(position(&wire_key(key.as_bytes()))));
    keys.next().expect("it has a slice")
}

/// Fills what a node keeps for reads that wait; returns how many it took.
fn crowd(world: &mut World, node: NodeId, length: usize) -> usize {
    let (mut count, value) = (0, Some(Bytes::from(vec![1; length])));
    world.with_host(node, |engine, _| {
        let round = engine.state.round;
        let (id, key) = (RequestId(9), wire_key(b"other"));
        let came = Came::Read { version: None, value, is_degraded: false };
        let read = HeldRead { event: event(1000), id, key, came, round };
        while count < 5000 && engine.state.holes.hold(read.clone()) {
            count += 1;
        }
        engine.check_state();
    });
    count
}

/// Values are long, and reads may come faster than holes are filled.
#[test]
fn reads_that_have_no_room_to_wait_are_refused() {
    let (mut world, node) = holed(67);
    let length = 256 * 1024;
    let taken = crowd(&mut world, node, length);
    assert!((32..=64).contains(&taken), "{taken} values of a quarter of a MiB wait");
    // What is found of a key may be longer than what was there.
    let (version, value) = (Version::Ordered(event(3)), Some(Bytes::from(vec![2; 2 * length])));
    let record = Record { key: wire_key(b"other"), version, id: RequestId(9), value };
    world.with_host(node, |engine, _| {
        engine.state.holes.found(&record);
        engine.check_state();
    });
    assert_eq!(world.state(node).holes.held(), taken, "each is told what has become of it");
    // Nobody else says anything.
    world.cut = Some(Box::new(move |from, _, message| {
        from != node && matches!(message, Message::Did { .. })
    }));
    let key = of_its_slice(&world, node);
    let ticket = world.ask(node, &key, What::Get);
    for number in 2..30 {
        let hole = Sequence(number);
        world.with_host(node, |engine, _| engine.on_hole(event(1).source, hole, hole));
        crowd(&mut world, node, 0);
        world.run(1);
    }
    assert_eq!(world.wait(ticket), Outcome::Refused(Refusal::Overloaded));
}

/// What a replica has no room for others may still tell.
#[test]
fn a_read_is_refused_when_too_few_are_left_that_have_room() {
    let mut world = World::new(12, Level::Strong, 68);
    world.settle();
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::Did { .. })));
    let holders = world.holders(&wire_key(b"x"));
    let entry = world.up().into_iter().find(|node| !holders.contains(node));
    let entry = entry.expect("there are others");
    let read = || Came::Read { version: None, value: None, is_degraded: false };
    for (number, members) in [(9, 4), (10, 3)] {
        let id = RequestId(number);
        let ticket = world.ask_as(entry, id, "x", What::Get);
        world.run(4);
        let did = |came| Message::Did { event: event(50), members, results: vec![(id, came)] };
        world.say(holders[0], entry, did(read()));
        world.say(holders[1], entry, did(Came::Overloaded));
        assert!(!world.answers.contains_key(&ticket), "one has read, and others may");
        world.say(holders[2], entry, did(if members > 3 { read() } else { Came::Overloaded }));
        match &world.answers[&ticket] {
            Outcome::Values { context, .. } => assert_eq!((members, context[32]), (4, 2)),
            other => {
                assert_eq!((members, other), (3, &Outcome::Refused(Refusal::Overloaded)));
            }
        }
    }
}
