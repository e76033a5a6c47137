//! Mistakes that the protocol invites, where a script would be too long.

use super::super::Causal;
use super::super::message::TellClock;
use super::super::token::Tokens;
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::Actor;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::limits::CONTEXT_BYTES_MAX;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::values::Values;
use quorate_kernel::write::{ContextError, WriteId, WriteName};
use std::format;
use std::string::ToString;
use std::vec::Vec;

pub(super) type CausalWorld = World<Causal>;

pub(super) fn world(members: u64, options: &[&str]) -> CausalWorld {
    let options = options.iter().map(|option| option.to_string()).collect();
    World::new(&Setup { members, options, ..Setup::default() })
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(super) fn ask(world: &mut CausalWorld, node: u64, operation: Operation) -> Outcome {
    let number = world.request(node, operation, Span::secs(1));
    if world.answers[number].1.is_none() {
        // The node is no replica of the key.
        deliver_all(world);
    }
    world.answers[number].1.clone().expect("one replica is enough")
}

pub(super) fn delete(world: &mut CausalWorld, node: u64, key: &str) {
    let (_, context) = get(world, node, key);
    ask(world, node, Operation::delete_over(bytes(key), context));
}

pub(super) fn get(world: &mut CausalWorld, node: u64, key: &str) -> (Vec<Bytes>, Bytes) {
    match ask(world, node, Operation::get_all(bytes(key), None)) {
        Outcome::Values { values, context } => (values.into_vec(), context),
        other => panic!("{other:?}"),
    }
}

pub(super) fn put(
    world: &mut CausalWorld,
    node: u64,
    key: &str,
    value: &str,
    context: Bytes,
) -> Outcome {
    let (key, value) = (bytes(key), bytes(value));
    ask(world, node, Operation::put_over(key, value, context, None))
}

/// What a get that was asked for under this number has shown.
pub(super) fn shown(world: &CausalWorld, number: usize) -> Values {
    match &world.answers[number].1 {
        Some(Outcome::Values { values, .. }) => values.clone(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn deliver_all(world: &mut CausalWorld) {
    while !world.flights.is_empty() {
        world.deliver(0);
    }
}

/// Time passes and everything arrives.
pub(super) fn calm(world: &mut CausalWorld, span: Span) {
    let end = world.now + span;
    while world.now < end {
        deliver_all(world);
        world.tick(Span::millis(20));
    }
    deliver_all(world);
    world.log.clear();
}

#[test]
fn an_answer_that_had_to_leave_something_out_takes_over_no_more_than_it_told() {
    let mut world = world(3, &["lazy"]);
    let long = "x".repeat(1000);
    for number in 0..600 {
        put(
            &mut world,
            1,
            &format!("k{number}"),
            &format!("{number} {}", &long[5..]),
            Bytes::new(),
        );
    }
    // The first answer holds less than half of it, and is followed by questions. All but that are
    // lost.
    while !world.log.iter().any(|line| line.contains("2: timer Sync")) {
        world.tick(Span::millis(20));
    }
    world.flights.retain(|flight| flight.name == "SyncA" && flight.from.node.0 == 2);
    deliver_first(&mut world, "SyncA");
    assert!(world.flights.iter().all(|flight| flight.name == "SyncB"));
    deliver_first(&mut world, "SyncB");
    let first = (0..600).filter(|number| !get(&mut world, 2, &format!("k{number}")).0.is_empty());
    let first = first.count();
    assert!((1..600).contains(&first), "{first}");
    world.flights.clear();
    // Later exchanges must bring the rest: had the first one taken over the clock, none would.
    calm(&mut world, Span::secs(3));
    for number in 0..600 {
        assert_eq!(get(&mut world, 2, &format!("k{number}")).0.len(), 1, "k{number}");
    }
}

fn deliver_first(world: &mut CausalWorld, name: &str) {
    let place = world.flights.iter().position(|flight| flight.name == name);
    world.deliver(place.expect("it is in flight"));
}

#[test]
fn contexts_of_others_and_made_up_ones_are_refused() {
    let mut world = world(3, &[]);
    put(&mut world, 1, "k", "a", Bytes::new());
    let (_, context) = get(&mut world, 1, "k");
    let refused = |error| Outcome::Refused(Refusal::Context(error));
    assert_eq!(put(&mut world, 1, "l", "b", context.clone()), refused(ContextError::Foreign));
    for place in 0..context.len() {
        let mut forged = context.to_vec();
        forged[place] ^= 0x40;
        let outcome = put(&mut world, 1, "k", "b", forged.into());
        let expected = if place == 0 { ContextError::Damaged } else { ContextError::Forged };
        assert_eq!(outcome, refused(expected), "byte {place}");
    }
    assert_eq!(get(&mut world, 1, "k").0, [bytes("a")], "nothing was changed");
    assert_eq!(world.field(1, "contexts_refused"), (context.len() + 1).to_string());
    // At a node that is no replica of the key it is the same, and a good one is taken.
    assert!(matches!(put(&mut world, 2, "k", "b", context), Outcome::Written { .. }));
}

#[test]
fn a_stale_context_replaces_what_it_covers_and_nothing_else() {
    let mut world = world(3, &[]);
    put(&mut world, 1, "k", "a", Bytes::new());
    let (_, old) = get(&mut world, 1, "k");
    put(&mut world, 1, "k", "b", old.clone());
    put(&mut world, 1, "k", "c", old.clone());
    assert_eq!(get(&mut world, 1, "k").0, [bytes("b"), bytes("c")]);
    let delete = Operation::delete_over(bytes("k"), old);
    ask(&mut world, 1, delete);
    assert_eq!(get(&mut world, 1, "k").0, [bytes("b"), bytes("c")], "it has seen neither");
    deliver_all(&mut world);
    assert_eq!(get(&mut world, 3, "k").0, [bytes("b"), bytes("c")]);
}

#[test]
fn what_a_write_is_told_covers_no_sibling_that_its_client_has_not_seen() {
    let mut world = world(3, &[]);
    put(&mut world, 1, "k", "a", Bytes::new());
    let Outcome::Written { context: told } = put(&mut world, 1, "k", "b", Bytes::new()) else {
        panic!("it was stored");
    };
    put(&mut world, 1, "k", "c", told);
    assert!(get(&mut world, 1, "k").0.contains(&bytes("a")), "nobody has replaced it");
    let Outcome::Written { context: told } = put(&mut world, 1, "l", "a", Bytes::new()) else {
        panic!("it was stored");
    };
    put(&mut world, 1, "l", "b", told);
    assert_eq!(get(&mut world, 1, "l").0, [bytes("b")], "a client may go on from its own write");
}

#[test]
fn many_siblings_are_counted_and_never_dropped() {
    let mut world = world(3, &[]);
    for number in 0..100 {
        put(&mut world, 1 + number % 3, "k", &format!("{number}"), Bytes::new());
    }
    calm(&mut world, Span::secs(2));
    for node in 1..=3 {
        assert_eq!(get(&mut world, node, "k").0.len(), 100);
    }
    let over: u64 = world.field(1, "siblings_over").parse().expect("a number");
    assert!(over > 0);
}

#[test]
fn a_repeated_write_with_a_name_is_one_sibling() {
    let mut world = world(3, &[]);
    for node in [1, 1, 2] {
        let (key, value) = (bytes("k"), bytes("a"));
        let id = Some(WriteName { id: WriteId(7), age: Span(0) });
        ask(&mut world, node, Operation::put_over(key, value, Bytes::new(), id));
    }
    calm(&mut world, Span::secs(2));
    for node in 1..=3 {
        assert_eq!(get(&mut world, node, "k").0, [bytes("a")], "node {node}");
    }
}

#[test]
fn a_clock_with_many_gaps_is_told_short_and_never_too_high() {
    let actor = Actor::default();
    let mut entry = Entry::upto(4);
    for counter in 0..100_000 {
        entry.insert(10 + 2 * counter);
    }
    let clock: Clock = [(actor, entry)].into_iter().collect();
    let told = TellClock::of(&clock);
    assert!(postcard::to_allocvec(&told).expect("plain data").len() < 8192);
    let told = told.clock();
    for counter in 1..200_020 {
        let dot = crate::dots::dot::Dot { actor, counter };
        assert!(clock.contains(dot) || !told.contains(dot));
    }
    assert_eq!(told.base(actor), 4);
}

/// A reply that comes when its question is closed may be of a start that has ended since. A write
/// is given to nobody on its account: it would wait for a process that is no more.
#[test]
fn a_late_reply_of_an_ended_start_gets_no_write() {
    let mut world = world(4, &["replicas=1", "partitions=1"]);
    let late = world.request(4, Operation::get(bytes("k")), Span::millis(100));
    let question = world.flights.iter().position(|flight| flight.to.0 == 1).expect("it asks");
    world.deliver(question);
    world.tick(Span::millis(200));
    assert!(world.answers[late].1.is_some(), "its deadline has passed");
    world.crash(1);
    world.restart(1, false);
    let reply = world.flights.iter().position(|flight| flight.to.0 == 4).expect("on its way");
    world.deliver(reply);
    assert!(matches!(put(&mut world, 4, "k", "v", Bytes::new()), Outcome::Written { .. }));
}

/// Who takes no part in a key gives writes on in the head of a message.
#[test]
fn a_context_that_fits_no_message_is_refused_where_it_must_be_forwarded() {
    let mut world = world(4, &["replicas=1", "partitions=1"]);
    let tokens = Tokens::new(b"secret", ClusterId(1));
    let actor = |birth| Actor { since: 1, birth, node: NodeId(u64::MAX), ..Actor::default() };
    let context = |count| {
        let context = (1..=count).map(|birth| (actor(birth), 1)).collect();
        tokens.seal(LaneId(1), b"k", &context)
    };
    assert!(context(5000).len() <= CONTEXT_BYTES_MAX, "no door refuses it");
    let outcome = put(&mut world, 4, "k", "v", context(5000));
    let Outcome::Refused(Refusal::TooLarge { what: "context", length, limit }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(length > limit);
    assert_eq!(get(&mut world, 1, "k").0, [] as [Bytes; 0], "nothing was changed");
    assert!(matches!(put(&mut world, 4, "k", "v", context(4000)), Outcome::Written { .. }));
    assert_eq!(get(&mut world, 1, "k").0, [bytes("v")]);
}
