//! What no correct peer says: one dot with two values.

use super::super::message::Message;
use super::super::page;
use super::losses::closing::run;
use super::traps::{CausalWorld, bytes, calm, deliver_all, get, put, shown, world};
use crate::dots::object::Object;
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::{Bytes, BytesMut};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::values::Values;
use quorate_kernel::wire::Body;

/// Another value under each dot that carries `v`.
fn change(object: &mut Object) {
    for version in object.versions.values_mut().filter(|version| version.value == "v") {
        version.value = bytes("forged");
    }
}

/// The same message with such objects.
fn forge(flight: &mut Flight) {
    let mut message: Message = flight.body.decode().expect("a message");
    match &mut message {
        Message::Replicate { object: told, .. } | Message::ReadB { object: told, .. } => {
            let mut object = Object::from_bytes(told).expect("an object");
            change(&mut object);
            *told = object.to_bytes();
        }
        Message::ScanB { page: told, .. } => {
            let mut forged = BytesMut::new();
            for mut entry in page::read(told.clone()).expect("a page") {
                change(&mut entry.object);
                page::push(&mut forged, &entry.key, &entry.object.to_bytes(), &entry.dots);
            }
            *told = forged.freeze();
        }
        _ => panic!("it carries no object"),
    }
    flight.body = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
}

fn place(world: &CausalWorld, name: &str, from: u64) -> usize {
    let is_it = |one: &Flight| one.name == name && one.from.node.0 == from;
    world.flights.iter().position(is_it).expect("it is in flight")
}

/// All replicas are asked, and one tells another value of a dot: its answer does not count.
#[test]
fn an_answer_that_contradicts_another_is_not_merged() {
    let mut world = world(3, &["repair"]);
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(1));
    world.deceived.insert(1);
    let read = Operation::get_all(bytes("k"), Some(2));
    let number = world.request(1, read, Span::secs(1));
    for node in [2, 3] {
        let asked = world.flights.iter().position(|one| one.to.0 == node).expect("it is asked");
        world.deliver(asked);
    }
    let told = place(&world, "ReadB", 2);
    forge(&mut world.flights[told]);
    world.deliver(told);
    assert_eq!(world.answers[number].1, None, "one answer is missing");
    deliver_all(&mut world);
    assert_eq!(shown(&world, number), Values::One(bytes("v")));
}

/// Of what is known without reading, too: a replica neither takes another value of a dot nor says
/// that it holds what it was sent.
#[test]
fn what_contradicts_a_stored_value_is_neither_taken_nor_acknowledged() {
    let mut world = world(3, &["w=2"]);
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(1));
    world.deceived.insert(2);
    let key = bytes("k");
    let write = Operation::put_over(key, bytes("w"), Bytes::new(), None);
    let number = world.request(1, write, Span::secs(1));
    world.flights.retain(|one| one.to.0 == 2);
    let told = place(&world, "Replicate", 1);
    forge(&mut world.flights[told]);
    world.deliver(told);
    deliver_all(&mut world);
    assert_eq!(world.answers[number].1, None, "the second does not hold it");
    assert_eq!(get(&mut world, 2, "k").0, [bytes("v")]);
    // What the first really has is taken when it is sent again.
    calm(&mut world, Span::secs(1));
    assert!(matches!(world.answers[number].1, Some(Outcome::Written { .. })));
    assert_eq!(get(&mut world, 2, "k").0, [bytes("v"), bytes("w")]);
}

/// A page of a scan that contradicts what is here is not passed: the rest of it, and all that its
/// peer has issued, would be taken for seen.
#[test]
fn a_page_that_contradicts_is_asked_for_again() {
    let mut world: CausalWorld = World::new(&Setup { members: 3, spares: 1, ..Setup::default() });
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    // The first alone has this.
    put(&mut world, 1, "k", "w", Bytes::new());
    put(&mut world, 1, "j", "w", Bytes::new());
    world.flights.clear();
    world.crash(3);
    for node in [1, 2, 4] {
        world.place(node, &[Move { out: 3, into: 4, gone: true }]);
    }
    world.flights.clear();
    run(&mut world, Span::secs(1), |_, from, to| !matches!((from, to), (2, 4) | (4, 2)));
    assert_eq!(world.field(4, "joining"), "1", "the first told nothing");
    world.deceived.insert(4);
    let end = world.now + Span::secs(5);
    while !world.flights.iter().any(|one| one.name == "ScanB") {
        assert!(world.now < end, "it asks the first");
        world.tick(Span::millis(100));
        world.flights.retain(|one| one.name == "ScanA" && one.to.0 == 1);
        (0..world.flights.len()).for_each(|_| world.deliver(0));
        world.flights.retain(|one| one.name == "ScanB");
    }
    let stored = world.stored(4);
    let told = place(&world, "ScanB", 1);
    forge(&mut world.flights[told]);
    world.deliver(told);
    world.flights.clear();
    assert_eq!(world.field(4, "joining"), "1", "it has not copied all of it");
    assert_eq!(world.stored(4), stored, "it has taken nothing of that page");
    calm(&mut world, Span::secs(10));
    for node in [1, 2, 4] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v"), bytes("w")], "at {node}");
        assert_eq!(get(&mut world, node, "j").0, [bytes("w")], "at {node}");
    }
    assert_eq!(world.field(4, "joining"), "0");
}
