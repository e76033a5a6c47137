//! The updates that are told beside an object, and the names that go with them.

use super::losses::closing::run;
use super::retries::{is_stored, send};
use super::traps::{CausalWorld, bytes, calm, deliver_all, get, put, world};
use crate::causal::message::Message;
use crate::causal::page;
use crate::dots::dot::Dot;
use crate::dots::object::Object;
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::{Bytes, BytesMut};
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use quorate_kernel::wire::Body;
use quorate_kernel::write::WriteId;

fn message(flight: &Flight) -> Message {
    flight.body.decode().expect("a message")
}

fn say(flight: &mut Flight, message: &Message) {
    flight.body = Body::encode(message, &mut BytesMut::new()).expect("it fits");
}

/// A page that begins behind a named dot of a key, which the asker has not heard of: what is told
/// for a later one has it in the past.
#[test]
fn a_page_names_what_was_replaced_before_it_begins() {
    let mut world = world(3, &["lazy"]);
    calm(&mut world, Span::secs(2));
    assert!(is_stored(&send(&mut world, 1, Span(0))));
    let (_, context) = get(&mut world, 1, "k");
    assert!(is_stored(&put(&mut world, 1, "k", "y", context)));
    let asked = ask_for_page(&mut world);
    let Message::SyncA { pair, clock, mut window, all } = message(&world.flights[asked]) else {
        panic!("a question")
    };
    let Message::SyncB { page, .. } = answer(&mut world, asked) else { panic!("an answer") };
    let dots = page::read(page).expect("a page")[0].dots.clone();
    let [replaced, written]: [Dot; 2] = dots.try_into().expect("both writes");
    assert!(replaced < written);
    // The same question, but for where it begins.
    let asked = ask_for_page(&mut world);
    window.after = Some(replaced);
    say(&mut world.flights[asked], &Message::SyncA { pair, clock, window, all });
    let Message::SyncB { page, .. } = answer(&mut world, asked) else { panic!("an answer") };
    let entries = page::read(page).expect("a page");
    assert!(entries[0].dots.contains(&written) && entries[0].dots.contains(&replaced));
    assert_eq!(entries[0].object.replaced.get(&replaced), Some(&WriteId(7)));
}

/// Until the second asks the first; returns where its question is in flight.
fn ask_for_page(world: &mut CausalWorld) -> usize {
    let is_it = |one: &Flight| (one.name, one.from.node.0, one.to.0) == ("SyncA", 2, 1);
    let end = world.now + Span::secs(9);
    loop {
        assert!(world.now < end, "the second asks the first");
        world.tick(Span::millis(20));
        world.flights.retain(is_it);
        if !world.flights.is_empty() {
            return 0;
        }
    }
}

/// What the first answers, which does not arrive.
fn answer(world: &mut CausalWorld, asked: usize) -> Message {
    world.deliver(asked);
    let answer = world.flights.iter().find(|one| one.name == "SyncB").map(message);
    world.flights.clear();
    answer.expect("it answers")
}

/// A newcomer is told only by the dots of what was replaced that a value is in the past. Somebody
/// may have copied it from there, so it goes by a dot of the newcomer.
#[test]
fn what_was_replaced_is_no_news_beside_which_a_value_goes_silently() {
    let mut world: CausalWorld = World::new(&Setup { members: 3, spares: 1, ..Setup::default() });
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    world.crash(3);
    for node in [1, 2, 4] {
        world.place(node, &[Move { out: 3, into: 4, gone: true }]);
    }
    run(&mut world, Span::secs(1), |_, from, to| matches!((from, to), (2, 4) | (4, 2)));
    assert_eq!(world.field(4, "joining"), "1", "it has copied from the first alone");
    let before: u64 = world.field(4, "dot_keys").parse().expect("a number");
    let (_, context) = get(&mut world, 1, "k");
    let write = Operation::put_over(bytes("k"), bytes("w"), context, None);
    world.request(1, write, Span::secs(1));
    world.flights.retain(|one| one.name == "Replicate" && one.to.0 == 4);
    let flight = &mut world.flights[0];
    let Message::Replicate { op, from, dots, key, object } = message(flight) else { panic!() };
    let mut object = Object::from_bytes(&object).expect("an object");
    object.versions.clear();
    object.replaced = dots.iter().map(|dot| (*dot, WriteId(7))).collect();
    say(flight, &Message::Replicate { op, from, dots, key, object: object.to_bytes() });
    deliver_all(&mut world);
    let after: u64 = world.field(4, "dot_keys").parse().expect("a number");
    assert_eq!(after - before, 2, "that of what was replaced, and its own");
}
