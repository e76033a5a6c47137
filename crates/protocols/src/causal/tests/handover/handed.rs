//! What is handed over is not given up before it is safe where it went.

use crate::causal::handover::leave::DOTS_MAX;
use crate::causal::tests::losses::closing::run;
use crate::causal::tests::traps::{CausalWorld, bytes, calm, delete, deliver_all, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use std::format;
use std::vec::Vec;

/// Under `periodic` a loss of power takes what was written last. The former holder has had this
/// for long, and is up: it may not let go of it before somebody has it on disk.
#[test]
fn what_was_handed_over_survives_a_loss_of_power_where_it_went() {
    let setup = Setup { members: 3, spares: 1, is_periodic: true, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    world.cut.insert(1);
    put(&mut world, 1, "k", "v", Bytes::new());
    world.flights.clear();
    let moves = [Move { out: 1, into: 4, gone: false }];
    (1..=4).for_each(|node| world.place(node, &moves));
    // The fourth waits for the first as well.
    calm(&mut world, Span::secs(4));
    assert_eq!(
        (world.field(4, "joining"), world.field(1, "to_hand_over")),
        ("1".into(), "1".into())
    );
    (2..=4).for_each(|node| world.hold_sync(node));
    world.cut.clear();
    calm(&mut world, Span::millis(500));
    world.flights.clear();
    (2..=4).for_each(|node| world.crash(node));
    for node in 2..=4 {
        world.restart(node, true);
        world.place(node, &moves);
    }
    deliver_all(&mut world);
    calm(&mut world, Span::secs(8));
    assert_eq!(world.field(1, "leaving"), "0");
    for node in 2..=4 {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}

/// Of one key more updates are handed over than one message names, and the last of them is a
/// delete. Who has taken the first message in knows of the delete, and must be able to tell it,
/// also when the one that leaves is lost before it has said the rest.
#[test]
fn a_delete_behind_very_many_updates_is_handed_over_with_the_first_of_them() {
    let setup = Setup { members: 3, spares: 1, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    let mut context = Bytes::new();
    for number in 0..DOTS_MAX + 300 {
        let put = put(&mut world, 1, "k", &format!("{number}"), context);
        let Outcome::Written { context: told } = put else { panic!("it is stored") };
        context = told;
        // The second hears of all but the last ones, and the third of none.
        world.flights.retain(|one| one.to.0 == 2 && number < DOTS_MAX + 200);
        deliver_all(&mut world);
    }
    let last = [format!("{}", DOTS_MAX + 199)];
    delete(&mut world, 1, "k");
    world.flights.clear();
    let mut moves = Vec::from([Move { out: 1, into: 4, gone: false }]);
    (1..=4).for_each(|node| world.place(node, &moves));
    // The third alone hears of the first message, and that is not known where it came from.
    let is_first = |name: &str, from, to| (name, from, to) == ("HandOver", 1, 3);
    run(&mut world, Span::secs(4), |name, from, to| !is_first(name, from, to));
    assert_eq!(get(&mut world, 2, "k").0, last);
    assert!(get(&mut world, 3, "k").0.is_empty(), "it has taken in what it was told");
    world.crash(1);
    moves.push(Move { out: 1, into: 1, gone: true });
    (2..=4).for_each(|node| world.place(node, &moves));
    calm(&mut world, Span::secs(8));
    for node in 2..=4 {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "node {node}");
    }
}

/// The first, which leaves, alone knows of a delete, and hands it over to the second. That loses it
/// before it has told anybody. The first has it as long as the newcomer has not copied it.
fn the_second_loses_a_delete_that_was_handed_over(
    setup: Setup,
    lose: impl FnOnce(&mut CausalWorld, &mut Vec<Move>),
) -> CausalWorld {
    let mut world: CausalWorld = World::new(&Setup { members: 3, spares: 2, ..setup });
    put(&mut world, 3, "k", "old", Bytes::new());
    calm(&mut world, Span::secs(5));
    delete(&mut world, 1, "k");
    world.flights.clear();
    let mut moves = Vec::from([Move { out: 1, into: 4, gone: false }]);
    (1..=5).for_each(|node| world.place(node, &moves));
    let is_handing = |name: &str, from, to| {
        (name, from, to) == ("HandOver", 1, 2) || (name, from, to) == ("Replicated", 2, 1)
    };
    run(&mut world, Span::secs(9), |name, from, to| !is_handing(name, from, to));
    assert_eq!(world.field(1, "to_hand_over"), "0");
    world.crash(2);
    lose(&mut world, &mut moves);
    for node in 1..=5 {
        if world.is_up(node) {
            world.place(node, &moves);
        }
    }
    calm(&mut world, Span::secs(30));
    assert_eq!(world.field(1, "leaving"), "0");
    world
}

#[test]
fn a_delete_that_was_handed_over_outlives_the_memory_of_who_took_it() {
    let setup = Setup { is_memory: true, ..Setup::default() };
    let lose = |world: &mut CausalWorld, _: &mut Vec<Move>| world.restart(2, true);
    let mut world = the_second_loses_a_delete_that_was_handed_over(setup, lose);
    for node in 2..=4 {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "node {node}");
    }
}

#[test]
fn a_delete_that_was_handed_over_outlives_who_took_it() {
    let lose = |_: &mut CausalWorld, moves: &mut Vec<Move>| {
        moves.push(Move { out: 2, into: 5, gone: true });
    };
    let mut world = the_second_loses_a_delete_that_was_handed_over(Setup::default(), lose);
    for node in 3..=5 {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "node {node}");
    }
}

/// It was the nearest replica when it was chosen, and has done nothing when it says so.
#[test]
fn a_write_that_reaches_who_has_just_given_its_key_away_is_done_by_another() {
    let setup = Setup { members: 3, spares: 2, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    let write = Operation::put_over(bytes("k"), bytes("v"), Bytes::new(), None);
    let number = world.request(5, write, Span::secs(1));
    let next = |world: &mut CausalWorld, name: &str, from: u64, to: u64| {
        let is_meant =
            |flight: &Flight| (flight.name, flight.from.node.0, flight.to.0) == (name, from, to);
        let place = world.flights.iter().position(is_meant).expect("it is in flight");
        world.deliver(place);
    };
    next(&mut world, "ReadA", 5, 1);
    next(&mut world, "ReadB", 1, 5);
    (1..=4).for_each(|node| world.place(node, &[Move { out: 1, into: 4, gone: false }]));
    next(&mut world, "WriteA", 5, 1);
    // It says so before it is known where its partitions went.
    next(&mut world, "WriteB", 1, 5);
    assert_eq!(world.answers[number].1, None, "another one is asked");
    deliver_all(&mut world);
    let outcome = world.answers[number].1.clone();
    assert!(matches!(outcome, Some(Outcome::Written { .. })), "{outcome:?}");
    assert_eq!(get(&mut world, 2, "k").0, [bytes("v")]);
}
