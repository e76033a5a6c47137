//! More is missing than one page holds and one clock tells.

use super::super::keys::{data_key, hash_of};
use super::super::map::Shape;
use super::super::page::DOTS_MAX;
use super::super::replicate::strip::LOOKS_MAX;
use super::traps::{CausalWorld, ask, bytes, calm, delete, deliver_all, get, put, world};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::write::{WriteId, WriteName};
use std::format;
use std::string::{String, ToString};
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

/// Of the keys that the fourth of five hosts holds every dot is kept while it is away, and those of
/// others among them are dropped.
#[test]
fn a_pass_over_dots_that_are_kept_has_short_turns_and_comes_to_its_end() {
    let mut world = world(5, &[]);
    let (kept, (ours, others)) = (2 * LOOKS_MAX + 100, keys(2 * LOOKS_MAX + 100));
    world.cut.insert(4);
    let dropped = ours.iter().step_by(2);
    others.iter().chain(dropped).for_each(|key| drop(put(&mut world, 2, key, "v", Bytes::new())));
    deliver_all(&mut world);
    assert_eq!(world.field(2, "dot_keys"), (kept + kept / 2).to_string());
    let (mut looks, end) = (0, world.now + Span::secs(9));
    while world.field(2, "dot_keys") != kept.to_string() {
        assert!(world.now < end, "{} are kept", world.field(2, "dot_keys"));
        // Less than the time between two turns of a pass; a new one may begin besides.
        world.tick(Span::millis(1));
        deliver_all(&mut world);
        let now: usize = world.field(2, "collect_looks").parse().expect("a number");
        assert!(now - looks <= 2 * LOOKS_MAX, "{} in one turn", now - looks);
        looks = now;
    }
    world.cut.clear();
    calm(&mut world, Span::secs(4));
    assert_eq!(world.field(2, "dot_keys"), "0", "the fourth is back");
}

/// The first goes on with what it has on disk, and the second has nothing any more: what the first
/// has is absent at the second, page by page.
#[test]
fn what_an_empty_peer_tells_of_many_keys_is_taken_in_bit_by_bit() {
    let (page, count) = (20, 200);
    let mut world = world(2, &["partitions=2", "replicas=2", "page=20"]);
    for number in 0..count {
        put(&mut world, 1, &format!("k{number}"), "v", Bytes::new());
    }
    calm(&mut world, Span::secs(3));
    let kept = world.kept(1);
    [1, 2].into_iter().for_each(|node| world.crash(node));
    world.flights.clear();
    world.restart(2, true);
    world.restart_from(1, &kept);
    let end = world.now + Span::secs(20);
    while world.field(1, "joining") != "0" {
        assert!(world.now < end, "the first copies what the second has");
        world.tick(Span::millis(20));
        loop {
            world.flights.retain(|one| one.name != "ScanB" || one.to.0 != 2);
            if world.flights.is_empty() {
                break;
            }
            world.log.clear();
            world.deliver(0);
            let writes = world.log.iter().filter(|line| line.starts_with("1: writes")).count();
            assert!(writes <= 2 * page, "{writes} in one turn");
        }
    }
    calm(&mut world, Span::secs(9));
    for node in [1, 2] {
        let has = |number: &u64| get(&mut world, node, &format!("k{number}")).0 == [bytes("v")];
        assert_eq!((0..count).filter(has).count() as u64, count, "at {node}");
    }
}
