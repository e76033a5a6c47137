//! A client that hears nothing sends its write again, to another host. It is one write all the
//! same, whenever its dots meet.

use super::losses::closing::run;
use super::traps::{CausalWorld, ask, bytes, calm, deliver_all, get, put, shown, world};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::values::Values;
use quorate_kernel::write::{WriteId, WriteName};
use std::vec::Vec;

/// Writes `x` under the one name of these tests, which was first sent so long ago.
pub(super) fn send(world: &mut CausalWorld, node: u64, age: Span) -> Outcome {
    let id = Some(WriteName { id: WriteId(7), age });
    let (key, value, context) = (bytes("k"), bytes("x"), Bytes::new());
    ask(world, node, Operation::put_over(key, value, context, id))
}

pub(super) fn is_stored(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Written { .. } | Outcome::Deleted { .. })
}

/// The first has the write and dies before anybody hears of it; the second is sent it again.
fn sent_twice(members: u64) -> CausalWorld {
    let mut world = world(members, &[]);
    calm(&mut world, Span::secs(2));
    assert!(is_stored(&send(&mut world, 1, Span(0))));
    world.flights.clear();
    world.crash(1);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    world
}

pub(super) fn expect(world: &mut CausalWorld, nodes: &[u64], values: &[&str]) {
    let values: Vec<Bytes> = values.iter().map(|value| bytes(value)).collect();
    for node in nodes {
        assert_eq!(get(world, *node, "k").0, values, "node {node}");
    }
}

#[test]
fn what_was_deleted_does_not_come_back_with_the_dot_of_a_retry() {
    let mut world = sent_twice(3);
    let (_, context) = get(&mut world, 2, "k");
    assert!(is_stored(&ask(&mut world, 2, Operation::delete_over(bytes("k"), context))));
    calm(&mut world, Span::secs(3));
    world.restart(1, false);
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[1, 2, 3], &[]);
    for node in 1..=3 {
        assert_eq!(world.field(node, "dot_keys"), "0", "nothing is kept at node {node}");
    }
}

#[test]
fn what_was_replaced_does_not_come_back_although_all_have_restarted() {
    let mut world = sent_twice(3);
    deliver_all(&mut world);
    let (_, context) = get(&mut world, 3, "k");
    assert!(is_stored(&put(&mut world, 3, "k", "y", context)));
    calm(&mut world, Span::secs(3));
    for node in [2, 3] {
        world.crash(node);
        world.restart(node, false);
    }
    world.restart(1, false);
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[1, 2, 3], &["y"]);
}

/// Both dots are there as siblings; a client that has seen one of them alone replaces it.
#[test]
fn who_has_seen_one_dot_replaces_both() {
    let mut world = sent_twice(3);
    let (values, context) = get(&mut world, 2, "k");
    assert_eq!(values, [bytes("x")]);
    world.restart(1, false);
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[1, 2, 3], &["x"]);
    assert!(is_stored(&put(&mut world, 3, "k", "y", context)));
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[1, 2, 3], &["y"]);
}

/// No get shows a value beside what replaced it, though the one with the first dot has heard
/// nothing but the write that replaced the second.
#[test]
fn a_twin_is_never_shown_beside_what_replaced_it() {
    let mut world = sent_twice(3);
    let (_, context) = get(&mut world, 2, "k");
    deliver_all(&mut world);
    world.restart(1, false);
    world.flights.clear();
    assert!(is_stored(&put(&mut world, 2, "k", "y", context)));
    for node in [1, 3] {
        let both = Operation::get_all(bytes("k"), Some(3));
        match ask(&mut world, node, both) {
            Outcome::Values { values, .. } => assert_eq!(values, Values::One(bytes("y"))),
            other => panic!("{other:?}"),
        }
        expect(&mut world, &[1, 2, 3], &["y"]);
    }
}

/// The first has `y` in place of its dot of `x`, and the second has another dot of that; nobody has
/// heard of anything but what is on its way. Also the context of who wrote `y`.
fn replaced_at_one(options: &[&str]) -> (CausalWorld, Bytes) {
    let mut world = world(3, options);
    calm(&mut world, Span::secs(2));
    for (node, age) in [(1, Span(0)), (2, Span::millis(300))] {
        assert!(is_stored(&send(&mut world, node, age)));
        world.flights.clear();
    }
    let (values, context) = get(&mut world, 1, "k");
    assert_eq!(values, [bytes("x")]);
    world.flights.clear();
    match put(&mut world, 1, "k", "y", context) {
        Outcome::Written { context } => (world, context),
        other => panic!("{other:?}"),
    }
}

/// What a get of this node and one other shows.
fn read_both(world: &mut CausalWorld, node: u64, without: u64) -> Values {
    let number = world.request(node, Operation::get_all(bytes("k"), Some(2)), Span::secs(1));
    world.flights.retain(|one| one.to.0 != without);
    deliver_all(world);
    shown(world, number)
}

/// The third has heard of `y`, and not of the dot that it replaced.
#[test]
fn a_twin_is_not_shown_beside_what_replaced_a_dot_that_was_not_told_by_itself() {
    let (mut world, _) = replaced_at_one(&[]);
    world.flights.retain(|one| one.to.0 == 3);
    deliver_all(&mut world);
    assert_eq!(read_both(&mut world, 3, 1), Values::One(bytes("y")));
}

/// The third has heard of it from who has read there.
#[test]
fn a_repair_tells_the_names_of_what_was_replaced() {
    let (mut world, _) = replaced_at_one(&["repair"]);
    world.flights.clear();
    assert_eq!(read_both(&mut world, 1, 2), Values::One(bytes("y")));
    assert_eq!(read_both(&mut world, 3, 1), Values::One(bytes("y")));
}

/// Who wrote it writes again elsewhere, and the first is lost.
#[test]
fn the_context_of_a_write_names_what_that_has_replaced() {
    let (mut world, context) = replaced_at_one(&[]);
    world.flights.clear();
    world.crash(1);
    assert!(is_stored(&put(&mut world, 3, "k", "z", context)));
    deliver_all(&mut world);
    expect(&mut world, &[2, 3], &["z"]);
}

/// A write that is sent again brings what has come of it since, and says by which updates.
#[test]
fn what_is_told_of_a_repeated_write_says_what_was_done_since() {
    let mut world = world(3, &[]);
    assert!(is_stored(&send(&mut world, 1, Span(0))));
    calm(&mut world, Span::secs(3));
    let (_, context) = get(&mut world, 1, "k");
    assert!(is_stored(&ask(&mut world, 1, Operation::delete_over(bytes("k"), context))));
    world.flights.clear();
    assert!(is_stored(&send(&mut world, 1, Span::secs(4))));
    world.flights.retain(|one| one.to.0 == 3);
    deliver_all(&mut world);
    expect(&mut world, &[3], &[]);
    world.crash(1);
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[2, 3], &[]);
}

/// The one with the first dot takes a write that replaces the second, which it never saw.
#[test]
fn who_has_not_seen_the_dot_that_it_replaces_hears_of_it_later() {
    let mut world = sent_twice(3);
    let (_, context) = get(&mut world, 2, "k");
    world.flights.clear();
    world.restart(1, false);
    assert!(is_stored(&put(&mut world, 1, "k", "y", context)));
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[1, 2, 3], &["y"]);
}

#[test]
fn a_retry_after_the_value_was_replaced_does_nothing_anywhere() {
    let mut world = world(3, &[]);
    assert!(is_stored(&send(&mut world, 1, Span(0))));
    calm(&mut world, Span::secs(2));
    let (_, context) = get(&mut world, 2, "k");
    put(&mut world, 2, "k", "y", context);
    calm(&mut world, Span::secs(3));
    assert_eq!(world.field(1, "dot_keys"), "0", "the version's name is not known by its dot");
    for node in 1..=3 {
        assert!(is_stored(&send(&mut world, node, Span::secs(5))), "it was done");
        calm(&mut world, Span::secs(1));
        expect(&mut world, &[1, 2, 3], &["y"]);
    }
}

#[test]
fn of_a_retry_that_may_have_been_done_and_forgotten_the_outcome_is_unknown() {
    // The fourth and fifth are no replicas.
    let mut world = world(5, &["partitions=5", "replicas=1"]);
    calm(&mut world, Span::secs(1));
    let holder = (1..=5).find(|node| !get_here(&mut world, *node)).expect("one holds the key");
    let other = 1 + holder % 5;
    assert!(is_stored(&send(&mut world, holder, Span(0))));
    let (_, context) = get(&mut world, holder, "k");
    put(&mut world, holder, "k", "y", context);
    calm(&mut world, Span::secs(3));
    world.crash(holder);
    world.restart(holder, false);
    let unknown = Outcome::Refused(Refusal::OutcomeUnknown);
    for node in [holder, other] {
        assert_eq!(send(&mut world, node, Span::secs(4)), unknown, "node {node}");
    }
    expect(&mut world, &[holder, other], &["y"]);
    // One that is younger than what is remembered, or is sent for the first time, is done.
    calm(&mut world, Span::secs(3));
    assert!(is_stored(&send(&mut world, other, Span::millis(500))));
    expect(&mut world, &[holder], &["y", "x"]);
}

/// Whether a node must ask another for the key.
pub(super) fn get_here(world: &mut CausalWorld, node: u64) -> bool {
    let operation = quorate_kernel::operation::Operation::get_all(bytes("k"), None);
    let number = world.request(node, operation, Span::secs(1));
    let must_ask = world.answers[number].1.is_none();
    deliver_all(world);
    must_ask
}

/// A host that was cut off comes back when its partitions have been given away, and hands over the
/// first dot. All others have restarted since, so they know of the write by what they have stored.
#[test]
fn a_dot_that_is_handed_over_late_is_the_same_write() {
    let setup = Setup { members: 3, spares: 1, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(2));
    assert!(is_stored(&send(&mut world, 1, Span(0))));
    world.flights.clear();
    world.crash(1);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    deliver_all(&mut world);
    let (_, context) = get(&mut world, 2, "k");
    ask(&mut world, 2, Operation::delete_over(bytes("k"), context));
    let moves = [Move { out: 1, into: 4, gone: false }];
    for node in [2, 3, 4] {
        world.place(node, &moves);
    }
    run(&mut world, Span::secs(4), |_, _, _| false);
    for node in [2, 3, 4] {
        // The fourth waits for who had its partition.
        assert_eq!(world.field(node, "joining"), if node == 4 { "1" } else { "0" });
        world.crash(node);
        world.restart(node, false);
        // A host that starts hears what the catalog has.
        world.place(node, &moves);
    }
    world.restart(1, false);
    calm(&mut world, Span::secs(5));
    assert_eq!(world.field(1, "leaving"), "0");
    expect(&mut world, &[2, 3, 4], &[]);
    for node in 2..=4 {
        assert_eq!(world.field(node, "dot_keys"), "0", "nothing is kept at node {node}");
    }
}

#[test]
fn the_answer_to_a_retry_covers_nothing() {
    let mut world = sent_twice(3);
    let Outcome::Written { context: told } = send(&mut world, 2, Span::millis(500)) else {
        panic!("done")
    };
    assert!(told.is_empty(), "it may have been replaced since");
}
