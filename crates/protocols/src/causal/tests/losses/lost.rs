//! A client has read a write whose dot is lost before anybody else hears of it. The write was sent
//! again to another host: what the client writes next replaces it all the same, by its name.

use super::closing::closed;
use crate::causal::tests::retries::{expect, get_here, is_stored, send};
use crate::causal::tests::traps::{CausalWorld, ask, bytes, calm, deliver_all, get, put, world};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::write::{WriteId, WriteName};
use std::string::ToString;
use std::vec::Vec;

/// The first has the write, a client reads it there, and its data is lost.
fn read_and_lost(world: &mut CausalWorld, holder: u64) -> Bytes {
    calm(world, Span::secs(2));
    assert!(is_stored(&send(world, holder, Span(0))));
    let (values, context) = get(world, holder, "k");
    assert_eq!(values, [bytes("x")]);
    world.flights.clear();
    world.crash(holder);
    context
}

#[test]
fn who_has_seen_a_dot_that_was_lost_replaces_the_retry() {
    let mut world = world(3, &[]);
    let context = read_and_lost(&mut world, 1);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    deliver_all(&mut world);
    assert!(is_stored(&put(&mut world, 2, "k", "y", context)));
    expect(&mut world, &[2], &["y"]);
    deliver_all(&mut world);
    expect(&mut world, &[2, 3], &["y"]);
    world.restart(1, true);
    calm(&mut world, Span::secs(5));
    expect(&mut world, &[1, 2, 3], &["y"]);
}

/// The retry is done at one and the client writes at another: wherever they meet, and although
/// the message that brings them together is lost.
#[test]
fn the_retry_is_replaced_where_it_meets_the_name() {
    let mut world = world(3, &[]);
    let context = read_and_lost(&mut world, 1);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    world.flights.clear();
    assert!(is_stored(&put(&mut world, 3, "k", "y", context)));
    deliver_all(&mut world);
    expect(&mut world, &[2, 3], &["y"]);
    world.restart(1, true);
    calm(&mut world, Span::secs(5));
    expect(&mut world, &[1, 2, 3], &["y"]);
    for node in 1..=3 {
        assert_eq!(world.field(node, "dot_keys"), "0", "nothing is kept at node {node}");
    }
}

/// All that were there have restarted since, so they know the name by what they have stored.
#[test]
fn the_name_outlives_restarts_and_lost_messages() {
    let mut world = world(3, &[]);
    let context = read_and_lost(&mut world, 1);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    world.flights.clear();
    assert!(is_stored(&put(&mut world, 3, "k", "y", context)));
    world.flights.clear();
    for node in [2, 3] {
        world.crash(node);
        world.restart(node, false);
    }
    calm(&mut world, Span::secs(3));
    expect(&mut world, &[2, 3], &["y"]);
}

#[test]
fn a_retry_of_what_was_replaced_by_its_lost_dot_is_not_done() {
    for is_value in [true, false] {
        let mut world = world(3, &[]);
        let context = read_and_lost(&mut world, 1);
        let done = match is_value {
            true => put(&mut world, 2, "k", "y", context),
            false => ask(&mut world, 2, Operation::delete_over(bytes("k"), context)),
        };
        assert!(is_stored(&done));
        deliver_all(&mut world);
        world.restart(1, true);
        let left: &[&str] = if is_value { &["y"] } else { &[] };
        for (node, age) in [(2, 500), (3, 900), (2, 6500), (3, 7000)] {
            assert!(is_stored(&send(&mut world, node, Span::millis(age))), "it was done");
            deliver_all(&mut world);
            expect(&mut world, &[2, 3], left);
            // In the end the lost actor is closed.
            calm(&mut world, Span::secs(3));
            expect(&mut world, &[1, 2, 3], left);
        }
    }
}

/// A client that has seen a write which replaced the lost one has seen that, too.
#[test]
fn who_has_seen_what_replaced_it_at_the_lost_host_has_seen_it() {
    let mut world = world(3, &[]);
    calm(&mut world, Span::secs(2));
    assert!(is_stored(&send(&mut world, 1, Span(0))));
    let (_, context) = get(&mut world, 1, "k");
    put(&mut world, 1, "k", "y", context);
    let (values, context) = get(&mut world, 1, "k");
    assert_eq!(values, [bytes("y")]);
    world.flights.clear();
    world.crash(1);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    assert!(is_stored(&put(&mut world, 2, "k", "z", context)));
    deliver_all(&mut world);
    expect(&mut world, &[2, 3], &["z"]);
}

/// The client asks a host that is no replica to write, or to delete.
#[test]
fn names_are_told_to_who_coordinates() {
    for is_delete in [false, true] {
        let options = ["partitions=4"].map(Into::into).into();
        let setup = Setup { members: 4, options, ..Setup::default() };
        let mut world: CausalWorld = World::new(&setup);
        calm(&mut world, Span::secs(2));
        let other = (1..=4).find(|node| get_here(&mut world, *node)).expect("one holds no copy");
        let holders = [1, 2, 3].map(|step| 1 + (other + step - 1) % 4);
        let context = read_and_lost(&mut world, holders[0]);
        assert!(is_stored(&send(&mut world, holders[1], Span::millis(300))));
        deliver_all(&mut world);
        let left: &[&str] = if is_delete { &[] } else { &["y"] };
        let outcome = match is_delete {
            true => ask(&mut world, other, Operation::delete_over(bytes("k"), context)),
            false => put(&mut world, other, "k", "y", context),
        };
        assert!(
            matches!(outcome, Outcome::Written { .. } | Outcome::Deleted { .. }),
            "{outcome:?}"
        );
        deliver_all(&mut world);
        expect(&mut world, &holders[1..], left);
    }
}

/// A client reads its own write, and sends it again with what it has read.
#[test]
fn a_retry_that_has_seen_itself_is_not_replaced_by_itself() {
    let mut world = world(3, &[]);
    let context = read_and_lost(&mut world, 1);
    let id = Some(WriteName { id: WriteId(7), age: Span::millis(300) });
    let (key, value) = (bytes("k"), bytes("x"));
    assert!(is_stored(&ask(&mut world, 2, Operation::put_over(key, value, context, id))));
    deliver_all(&mut world);
    expect(&mut world, &[2, 3], &["x"]);
    world.restart(1, true);
    calm(&mut world, Span::secs(5));
    expect(&mut world, &[1, 2, 3], &["x"]);
}

/// The retry is answered, and lost with its host: what its client writes next replaces the first.
#[test]
fn the_answer_to_a_write_names_it() {
    for is_forwarded in [false, true] {
        let options = ["partitions=4"].map(Into::into).into();
        let setup = Setup { members: 4, options, ..Setup::default() };
        let mut world: CausalWorld = World::new(&setup);
        calm(&mut world, Span::secs(2));
        let other = (1..=4).find(|node| get_here(&mut world, *node)).expect("one holds no copy");
        let [first, second, third] = [1, 2, 3].map(|step| 1 + (other + step - 1) % 4);
        assert!(is_stored(&send(&mut world, first, Span(0))));
        world.flights.clear();
        world.crash(first);
        if is_forwarded {
            world.crash(third);
            // Until it has forgotten who answered it before.
            calm(&mut world, Span::secs(2));
        }
        let sender = if is_forwarded { other } else { second };
        let Outcome::Written { context: told } = send(&mut world, sender, Span::millis(300)) else {
            panic!("it is done")
        };
        world.flights.clear();
        world.crash(second);
        if is_forwarded {
            world.restart(third, false);
        }
        assert!(is_stored(&put(&mut world, third, "k", "y", told)));
        deliver_all(&mut world);
        world.restart(first, false);
        calm(&mut world, Span::secs(3));
        expect(&mut world, &[first, third], &["y"]);
    }
}

/// The lost actor is closed where the client writes: nothing of it can be told any more. The name
/// is told all the same, though the write's own message is lost and its replica restarts.
#[test]
fn a_name_of_a_closed_actor_is_told_like_any_other() {
    for is_delete in [false, true] {
        let mut world = world(3, &[]);
        let context = read_and_lost(&mut world, 1);
        world.restart(1, true);
        calm(&mut world, Span::secs(5));
        assert_eq!((2..=3).map(|node| closed(&mut world, node)).collect::<Vec<_>>(), [1, 1]);
        assert!(is_stored(&send(&mut world, 2, Span::secs(6))));
        world.flights.clear();
        let done = match is_delete {
            false => put(&mut world, 3, "k", "y", context),
            true => ask(&mut world, 3, Operation::delete_over(bytes("k"), context)),
        };
        assert!(is_stored(&done));
        world.flights.clear();
        world.crash(3);
        world.restart(3, false);
        calm(&mut world, Span::secs(3));
        let left: &[&str] = if is_delete { &[] } else { &["y"] };
        expect(&mut world, &[1, 2, 3], left);
        for node in 1..=3 {
            assert_eq!(world.field(node, "dot_keys"), "0", "nothing is kept at node {node}");
        }
    }
}

/// The first shows what it has not synced to a get that waits for another replica too, and gives
/// its partition away meanwhile. What it has itself is still no more durable than before.
#[test]
fn what_a_get_began_with_is_on_disk_before_it_is_shown_also_where_it_was_given_away() {
    let options = ["r=2"].map(|option| option.to_string()).into();
    let mut world: CausalWorld =
        World::new(&Setup { members: 3, spares: 1, options, ..Setup::default() });
    calm(&mut world, Span::secs(2));
    world.hold_sync(1);
    let put = Operation::put_over(bytes("k"), bytes("v"), Bytes::new(), None);
    let put = world.request(1, put, Span::secs(1));
    let get = world.request(1, Operation::get_all(bytes("k"), None), Span::secs(1));
    world.place(1, &[Move { out: 1, into: 4, gone: false }]);
    deliver_all(&mut world);
    assert_eq!((&world.answers[put].1, &world.answers[get].1), (&None, &None));
    world.sync(1);
    let shown = world.answers[get].1.clone();
    let Some(Outcome::Values { values, .. }) = shown else { panic!("{shown:?}") };
    assert_eq!(values.into_vec(), [bytes("v")]);
}
