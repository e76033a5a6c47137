//! What was on its way for long, or is said again by one that forgot having said it.

use super::losses::closing::{closed, run};
use super::traps::{CausalWorld, bytes, calm, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use quorate_kernel::write::{WriteId, WriteName};
use std::string::ToString;
use std::vec::Vec;

/// A get of the fourth has seen a value that the third alone had, and sends it to repair the first;
/// the third is lost. That late message, and the world in which nobody else has heard of the value.
fn late_repair(write: Operation) -> (CausalWorld, Flight) {
    let options = Vec::from(["repair".to_string()]);
    let setup = Setup { members: 3, spares: 1, options, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    super::traps::ask(&mut world, 3, write);
    world.flights.clear();
    // It is no replica yet: all that it has read it sends to the others.
    let read = Operation::get_all(bytes("k"), Some(3));
    world.request(4, read, Span::secs(1));
    while let Some(place) = world.flights.iter().position(|one| one.name.starts_with("Read")) {
        world.deliver(place);
    }
    let is_it = |one: &Flight| one.name == "Replicate" && one.to.0 == 1;
    let late = world.flights.iter().position(is_it).expect("the first is behind");
    let late = world.flights.remove(late);
    world.flights.clear();
    world.crash(3);
    for node in [1, 2, 4] {
        world.place(node, &[Move { out: 3, into: 4, gone: true }]);
    }
    (world, late)
}

fn write(id: Option<WriteName>) -> Operation {
    Operation::put_over(bytes("k"), bytes("v"), Bytes::new(), id)
}

/// It arrives when the first has told that it knows nothing of the value: the replicas would differ
/// for ever.
#[test]
fn a_late_repair_brings_nothing_of_an_actor_that_is_gone() {
    let (mut world, late) = late_repair(write(None));
    let end = world.now + Span::secs(20);
    while [2, 4].iter().any(|node| closed(&mut world, *node) == 0) {
        run(&mut world, Span::millis(100), |name, _, to| name == "SyncB" && to == 1);
        assert!(world.now < end, "the others close what is gone");
    }
    assert_eq!(closed(&mut world, 1), 0, "nobody has told the first");
    world.flights.push(late);
    calm(&mut world, Span::secs(5));
    let values = [1, 2, 4].map(|node| get(&mut world, node, "k").0);
    assert!(values.iter().all(|one| *one == values[0]), "they are equal: {values:?}");
}

/// It arrives when its actor is closed, and the client has written the value again. What is closed
/// covers the lost dot; that must not mean that the write was replaced.
#[test]
fn a_late_repair_takes_no_write_away_that_was_repeated() {
    let name = |age| Some(WriteName { id: WriteId(7), age });
    let (mut world, late) = late_repair(write(name(Span(0))));
    super::traps::ask(&mut world, 1, write(name(Span(0))));
    let end = world.now + Span::secs(20);
    while [1, 2, 4].iter().any(|node| closed(&mut world, *node) == 0) {
        run(&mut world, Span::millis(100), |_, _, _| false);
        assert!(world.now < end, "all close what is gone");
    }
    world.flights.push(late);
    calm(&mut world, Span::secs(5));
    for node in [1, 2, 4] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}

/// One alone has deleted a value when a get sends that to a second, and is lost then. What has gone
/// at the second by that must go at the third, too.
#[test]
fn a_delete_that_a_get_has_brought_spreads() {
    let options = Vec::from(["repair".to_string()]);
    let mut world: CausalWorld = World::new(&Setup { members: 3, options, ..Setup::default() });
    put(&mut world, 3, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(2));
    super::traps::delete(&mut world, 1, "k");
    world.flights.clear();
    let read = Operation::get_all(bytes("k"), Some(2));
    world.request(1, read, Span::secs(1));
    while let Some(place) = world.flights.iter().position(|one| one.to.0 != 3) {
        world.deliver(place);
    }
    world.crash(1);
    world.flights.clear();
    calm(&mut world, Span::secs(5));
    let values = [2, 3].map(|node| get(&mut world, node, "k").0);
    assert_eq!(values, [Vec::<Bytes>::new(), Vec::new()], "they are equal");
}

/// A loss of power takes back that all was handed over, after all know that it was.
#[test]
fn who_forgets_that_it_has_handed_over_comes_to_an_end() {
    let setup = Setup { members: 3, spares: 1, is_periodic: true, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    world.cut.insert(1);
    put(&mut world, 1, "k", "v", Bytes::new());
    for node in 1..=4 {
        world.place(node, &[Move { out: 1, into: 4, gone: false }]);
    }
    let kept = world.kept(1);
    world.cut.clear();
    // Everything is noted, but the first does not hear that of all.
    let end = world.now + Span::secs(20);
    while [2, 3, 4].iter().any(|node| left(&mut world, *node) == 0) {
        run(&mut world, Span::millis(100), |name, from, _| name == "LeftB" && from == 2);
        assert!(world.now < end, "it says that it has handed over");
    }
    world.crash(1);
    world.flights.clear();
    world.restart_from(1, &kept);
    assert_eq!(world.field(1, "to_hand_over"), "1", "it does not know that it has");
    calm(&mut world, Span::secs(5));
    assert_eq!(world.field(1, "leaving"), "0");
    for node in 2..=4 {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}

/// How many actors a node knows to have said their last, or has closed.
fn left(world: &mut CausalWorld, node: u64) -> u64 {
    world.field(node, "finished_entries").parse().expect("a number")
}
