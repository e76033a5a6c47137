//! What must still hold of an actor once it is closed.

use crate::causal::tests::traps::{CausalWorld, ask, bytes, calm, deliver_all, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::Bytes;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::{WriteId, WriteName};

/// Time passes; everything arrives but what `is_lost` names by its name, sender and receiver.
pub(crate) fn run(world: &mut CausalWorld, span: Span, is_lost: impl Fn(&str, u64, u64) -> bool) {
    let end = world.now + span;
    while world.now < end {
        world.tick(Span::millis(20));
        loop {
            world.flights.retain(|one| !is_lost(one.name, one.from.node.0, one.to.0));
            if world.flights.is_empty() {
                break;
            }
            world.deliver(0);
        }
    }
}

pub(crate) fn closed(world: &mut CausalWorld, node: u64) -> u64 {
    let [all, open] = ["clock_entries", "open_entries"]
        .map(|name| world.field(node, name).parse::<u64>().expect("a number"));
    all - open
}

/// A newcomer knows by its context alone that a value of a former actor was replaced. When it has
/// closed that actor it must still be able to tell so a peer that has the value.
#[test]
fn a_deleted_value_of_a_closed_actor_stays_away() {
    let setup = Setup { members: 3, spares: 1, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    put(&mut world, 3, "k", "old", Bytes::new());
    calm(&mut world, Span::secs(2));
    // The second does not hear of the delete.
    world.cut.insert(2);
    let (_, context) = get(&mut world, 1, "k");
    ask(&mut world, 1, Operation::delete_over(bytes("k"), context));
    deliver_all(&mut world);
    world.crash(3);
    world.cut.remove(&2);
    for node in [1, 2, 4] {
        world.place(node, &[Move { out: 3, into: 4, gone: true }]);
    }
    // The newcomer hears of the delete before it hears of the value.
    run(&mut world, Span::millis(500), |_, from, to| from == 2 || to == 2);
    assert!(get(&mut world, 4, "k").0.is_empty());
    // Nobody tells the second, until the newcomer has closed the former actor and stripped it off.
    let end = world.now + Span::secs(20);
    while closed(&mut world, 4) == 0 || world.field(4, "unstripped") != "0" {
        run(&mut world, Span::millis(100), |name, from, to| {
            matches!((from, to), (1, 2) | (2, 1)) || (name == "SyncB" && (from, to) == (4, 2))
        });
        assert!(world.now < end, "it closes what is gone");
    }
    assert_eq!(get(&mut world, 2, "k").0, [bytes("old")], "it has heard nothing");
    calm(&mut world, Span::secs(5));
    for node in [1, 2, 4] {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "node {node}");
    }
}

/// An answer of anti-entropy that was on its way while an actor was closed tells a value of it that
/// was deleted since.
#[test]
fn a_late_answer_brings_nothing_of_a_closed_actor_back() {
    let setup = Setup { members: 3, spares: 1, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    put(&mut world, 3, "k", "old", Bytes::new());
    world.flights.retain(|one| one.to.0 == 1);
    deliver_all(&mut world);
    // The second asks the first, and the answer is under way for long.
    let is_answer = |name: &str, from, to| name == "SyncB" && (from, to) == (1, 2);
    let late = loop {
        world.tick(Span::millis(20));
        world.flights.retain(|one| one.from.node.0 != 3 && one.to.0 != 3);
        while let Some(place) = world.flights.iter().position(|one| one.name == "SyncA") {
            world.deliver(place);
        }
        let answers = |one: &Flight| is_answer(one.name, one.from.node.0, one.to.0);
        let answer = world.flights.iter().position(answers);
        // While the update is in flight it is left out.
        if let Some(answer) = answer.map(|place| world.flights.remove(place))
            && world.now > Time(0) + Span::millis(400)
        {
            break answer;
        }
        world.flights.clear();
    };
    world.flights.clear();
    let (_, context) = get(&mut world, 1, "k");
    ask(&mut world, 1, Operation::delete_over(bytes("k"), context));
    deliver_all(&mut world);
    world.crash(3);
    for node in [1, 2, 4] {
        world.place(node, &[Move { out: 3, into: 4, gone: true }]);
    }
    calm(&mut world, Span::secs(5));
    assert_eq!(closed(&mut world, 2), 1);
    world.flights.push(late);
    deliver_all(&mut world);
    calm(&mut world, Span::secs(2));
    for node in [1, 2, 4] {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "node {node}");
    }
}

/// All have lost what they had, and with it that a former holder of a partition has handed over. A
/// client still has a context that names it. That the catalog has no tenure of it any more says
/// that nothing is to come.
#[test]
fn a_former_actor_that_only_a_context_names_is_closed() {
    let setup = Setup { members: 3, spares: 1, is_memory: true, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    let mut record = world.record(&[Move { out: 3, into: 4, gone: false }]);
    let place = |world: &mut CausalWorld, record: &Keyspace| {
        (1..=4).for_each(|node| world.tell(node, record));
    };
    put(&mut world, 3, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    place(&mut world, &record);
    calm(&mut world, Span::secs(10));
    assert_eq!(world.field(3, "leaving"), "0");
    let (values, context) = get(&mut world, 1, "k");
    assert_eq!(values, [bytes("v")]);
    (1..=4).for_each(|node| world.crash(node));
    world.flights.clear();
    (1..=4).for_each(|node| world.restart(node, true));
    record.former.clear();
    place(&mut world, &record);
    for number in 0..3 {
        let name = Some(WriteName { id: WriteId(number), age: Span(0) });
        let key = bytes("k");
        ask(&mut world, 1, Operation::put_over(key, bytes("new"), context.clone(), name));
        calm(&mut world, Span::secs(10));
    }
    for node in [1, 2, 4] {
        for field in ["dot_keys", "unstripped", "spare_entries"] {
            assert_eq!(world.field(node, field), "0", "{field} at node {node}");
        }
    }
}
