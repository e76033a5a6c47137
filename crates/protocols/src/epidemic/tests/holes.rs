//! Traps of holes: events that a node has missed.

use super::world::{World, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Found, Message, PAGE_BYTES};
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::{EventKey, LogicalTime, Sequence};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::Outcome;
use std::boxed::Box;
use std::format;
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
    Found { source, sequence, range, records, left, ids }
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
    world.say(other, node, Message::Records { page, records, ids, wanted });
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
