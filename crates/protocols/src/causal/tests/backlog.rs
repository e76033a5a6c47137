//! More is missing than one page holds and one clock tells.

use super::super::keys::{data_key, hash_of};
use super::super::map::Shape;
use super::super::page::DOTS_MAX;
use super::traps::{CausalWorld, ask, calm, delete, deliver_all, get, put, world};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::write::{WriteId, WriteName};
use std::format;
use std::string::String;
use std::vec::Vec;

fn repaired(world: &mut CausalWorld, node: u64) -> u64 {
    world.field(node, "repaired").parse().expect("a number")
}

#[test]
fn a_long_backlog_of_random_keys_arrives() {
    let mut world = world(3, &["lazy", "long"]);
    let (count, long) = (1000, "x".repeat(2000));
    for number in 0..count {
        put(&mut world, 1, &format!("k{number}"), &long, Bytes::new());
    }
    calm(&mut world, Span::secs(2));
    for node in [2, 3] {
        let is_there = |number: &u64| !get(&mut world, node, &format!("k{number}")).0.is_empty();
        assert_eq!((0..count).filter(is_there).count() as u64, count);
        // From the one that has it, and from the third if that was quicker: nothing twice by one.
        assert!(repaired(&mut world, node) <= 2 * count);
    }
    let before = [2, 3].map(|node| repaired(&mut world, node));
    calm(&mut world, Span::secs(1));
    assert_eq!([2, 3].map(|node| repaired(&mut world, node)), before, "it has come to an end");
}

/// Delivers what these two say to each other, and loses the rest.
fn deliver_between(world: &mut CausalWorld, pair: [u64; 2]) {
    loop {
        world
            .flights
            .retain(|flight| pair.contains(&flight.from.node.0) && pair.contains(&flight.to.0));
        if world.flights.is_empty() {
            return;
        }
        world.deliver(0);
    }
}

/// Keys that the first three of five hosts hold, and as many of which the first holds none.
fn keys(count: usize) -> (Vec<String>, Vec<String>) {
    let shape = Shape::new(5, 3);
    let of = |home: u16| -> Vec<String> {
        let names = (0..).map(|number| format!("k{number}"));
        let is_its = |name: &String| shape.home(hash_of(&data_key(name.as_bytes()))) == home;
        names.filter(is_its).take(count).collect()
    };
    (of(0), of(1))
}

#[test]
fn a_long_backlog_arrives_from_one_that_has_not_issued_it() {
    let mut world = world(5, &["lazy", "long"]);
    deliver_all(&mut world);
    let ((ours, others), long) = (keys(500), "x".repeat(4000));
    // The first sees every other dot only, so its clock has a gap behind each.
    for key in ours.iter().zip(&others).flat_map(|(ours, other)| [ours, other]) {
        put(&mut world, 2, key, &long, Bytes::new());
    }
    while repaired(&mut world, 3) < 1000 {
        world.tick(Span::millis(20));
        deliver_between(&mut world, [2, 3]);
        assert!(world.now < quorate_kernel::time::Time(0) + Span::secs(60));
    }
    world.crash(2);
    calm(&mut world, Span::secs(4));
    let is_there = |key: &&String| !get(&mut world, 1, key).0.is_empty();
    assert_eq!(ours.iter().filter(is_there).count(), 500);
    let before = repaired(&mut world, 1);
    assert_eq!(before, 500, "each came once");
    calm(&mut world, Span::secs(2));
    assert_eq!(repaired(&mut world, 1), before, "nothing comes again, though the gaps stay");
}

/// Of one key so many updates are missing that one entry cannot name all of them, and the last of
/// them is a delete. Who has heard of it must be able to tell it, also when nobody else can.
#[test]
fn a_delete_behind_very_many_updates_of_its_key_is_told() {
    let mut world = world(3, &["long"]);
    calm(&mut world, Span::secs(1));
    let mut context = Bytes::new();
    for number in 0..DOTS_MAX + 500 {
        let Outcome::Written { context: told } =
            put(&mut world, 1, "k", &format!("{number}"), context)
        else {
            panic!("it is stored")
        };
        context = told;
        world.flights.retain(|one| one.to.0 == 2);
        // The second has heard of all but the last ones, and the third of none.
        if number < DOTS_MAX + 200 {
            deliver_all(&mut world);
        }
        world.flights.clear();
    }
    assert_eq!(get(&mut world, 2, "k").0, [format!("{}", DOTS_MAX + 199)]);
    delete(&mut world, 1, "k");
    world.flights.clear();
    let end = world.now + Span::secs(5);
    while world.now < end {
        world.tick(Span::millis(20));
        deliver_between(&mut world, [1, 3]);
    }
    world.crash(1);
    calm(&mut world, Span::secs(5));
    for node in [2, 3] {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "node {node}");
    }
}

/// While a replica is away each write of a key leaves a name that it must hear of. What one message
/// carries of them stays small all the same, and a write that was done twice goes in the end.
#[test]
fn the_names_of_very_many_writes_do_not_all_travel_with_each() {
    let mut world = world(3, &[]);
    calm(&mut world, Span::secs(1));
    let (mut context, mut longest) = (Bytes::new(), 0);
    let named = |number: u128, age, context| {
        Operation::put_over(
            Bytes::from_static(b"k"),
            Bytes::from(format!("{number}")),
            context,
            Some(WriteName { id: WriteId(u128::MAX - number), age }),
        )
    };
    for number in 0..1000 {
        let Outcome::Written { context: told } =
            ask(&mut world, 1, named(number, Span(0), context))
        else {
            panic!("it is stored")
        };
        context = told;
        let sizes = world.flights.iter().map(|one| one.body.frame_bytes());
        longest = sizes.chain([longest]).max().unwrap_or(0);
        world.flights.retain(|one| one.to.0 == 2);
        deliver_all(&mut world);
    }
    assert!(longest < 4096, "{longest} bytes");
    // The third has heard nothing when it is sent an old one again.
    ask(&mut world, 3, named(5, Span::secs(1), Bytes::new()));
    world.flights.clear();
    assert_eq!(get(&mut world, 3, "k").0, ["5"]);
    calm(&mut world, Span::secs(5));
    for node in 1..=3 {
        assert_eq!(get(&mut world, node, "k").0, ["999"], "node {node}");
        assert_eq!(world.field(node, "dot_keys"), "0", "nothing is kept at node {node}");
    }
}
