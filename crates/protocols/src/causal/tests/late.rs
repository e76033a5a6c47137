//! What was on its way for long, or is said again by one that forgot having said it.

use super::losses::closing::{closed, run};
use super::traps::{CausalWorld, bytes, calm, deliver_all, get, put, shown};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use quorate_kernel::values::Values;
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
    let late = late_repair_of(&mut world);
    (world, late)
}

/// The same of what the third, which is lost then, has now.
fn late_repair_of(world: &mut CausalWorld) -> Flight {
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
    late
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

/// The same where nothing of what was deleted is at the second: it has it in its past by the word
/// of a get, and would not let it in from the third.
#[test]
fn a_delete_that_a_get_has_brought_beside_a_value_spreads() {
    let mut world = super::traps::world(3, &["repair"]);
    let only = |world: &mut CausalWorld, to: u64| {
        world.flights.retain(|one| one.to.0 == to);
        deliver_all(world);
        world.flights.clear();
    };
    put(&mut world, 1, "k", "v", Bytes::new());
    let (_, context) = get(&mut world, 1, "k");
    only(&mut world, 3);
    put(&mut world, 3, "k", "w", Bytes::new());
    only(&mut world, 1);
    super::traps::ask(&mut world, 3, Operation::delete_over(bytes("k"), context));
    world.flights.clear();
    world.request(3, Operation::get_all(bytes("k"), Some(2)), Span::secs(1));
    world.flights.retain(|one| one.to.0 == 2);
    deliver_all(&mut world);
    world.crash(3);
    world.flights.clear();
    calm(&mut world, Span::secs(5));
    let values = [1, 2].map(|node| get(&mut world, node, "k").0);
    assert_eq!(values, [[bytes("w")], [bytes("w")]], "they are equal");
}

/// A repair names a write of a host that is gone for good: its dot is marked nowhere any more.
#[test]
fn a_late_repair_marks_no_dot_of_an_actor_that_is_gone() {
    let setup =
        Setup { members: 3, spares: 1, options: ["repair".to_string()].into(), ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    let (_, context) = get(&mut world, 3, "k");
    let name = Some(WriteName { id: WriteId(7), age: Span(0) });
    super::traps::ask(&mut world, 3, Operation::put_over(bytes("k"), bytes("w"), context, name));
    super::traps::delete(&mut world, 3, "k");
    world.flights.clear();
    let late = late_repair_of(&mut world);
    let before: u64 = world.field(1, "dot_keys").parse().expect("a number");
    world.flights.push(late);
    world.deliver(0);
    let after: u64 = world.field(1, "dot_keys").parse().expect("a number");
    assert_eq!(after - before, 1, "its own dot, by which the value goes");
}

/// A get has heard of one dot of a write at a host that is lost then, or comes back with nothing;
/// the client has sent it again elsewhere. Who has closed the former actor has the dot in its past:
/// not because it was replaced.
#[test]
fn what_a_lost_host_has_said_to_a_get_takes_no_write_away_that_was_repeated() {
    for comes_back in [false, true] {
        let options = Vec::from(["repair".to_string()]);
        let setup = Setup { is_memory: comes_back, options, ..Setup::default() };
        let mut world: CausalWorld = World::new(&Setup { members: 3, spares: 1, ..setup });
        calm(&mut world, Span::secs(1));
        let name = |age| Some(WriteName { id: WriteId(7), age });
        super::traps::ask(&mut world, 3, write(name(Span(0))));
        world.flights.clear();
        let read = Operation::get_all(bytes("k"), Some(2));
        let number = world.request(4, read, Span::secs(30));
        for said in ["ReadA", "ReadB"] {
            world.flights.retain(|one| one.name == said && (one.from.node.0, one.to.0) != (4, 1));
            world.flights.retain(|one| (one.from.node.0, one.to.0) != (4, 2));
            assert_eq!(world.flights.len(), 1, "the third answers");
            world.deliver(0);
        }
        world.crash(3);
        if comes_back {
            world.restart(3, true);
        } else {
            for node in [1, 2, 4] {
                world.place(node, &[Move { out: 3, into: 4, gone: true }]);
            }
        }
        super::traps::ask(&mut world, 1, write(name(Span::millis(300))));
        let end = world.now + Span::secs(20);
        while [1, 2].iter().any(|node| closed(&mut world, *node) == 0) {
            run(&mut world, Span::millis(100), |name, _, _| name.starts_with("Read"));
            assert!(world.now < end, "all close what is gone");
        }
        assert_eq!(world.answers[number].1, None, "one has answered");
        calm(&mut world, Span::secs(5));
        assert_eq!(shown(&world, number), Values::One(bytes("v")));
        for node in [1, 2, 4] {
            assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
        }
    }
}

/// The third is gone for good by the map that it and the fifth have not heard of, and the others
/// have closed what it was; it has one dot of a write, and the first another one.
fn expelled() -> CausalWorld {
    let options = Vec::from(["repair".to_string()]);
    let setup = Setup { members: 3, spares: 2, options, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    let name = |age| Some(WriteName { id: WriteId(7), age });
    super::traps::ask(&mut world, 3, write(name(Span(0))));
    world.flights.clear();
    super::traps::ask(&mut world, 1, write(name(Span::millis(300))));
    [1, 2, 4].into_iter().for_each(|node| world.place(node, &EXPELLED));
    let end = world.now + Span::secs(20);
    while [1, 2].iter().any(|node| closed(&mut world, *node) == 0) {
        run(&mut world, Span::millis(100), |_, from, to| is_cut(from, to) || from == 5 || to == 5);
        assert!(world.now < end, "they close what is gone");
    }
    world
}

const EXPELLED: [Move; 1] = [Move { out: 3, into: 4, gone: true }];

/// The third hears the fifth alone.
fn is_cut(from: u64, to: u64) -> bool {
    matches!((from, to), (3, 1 | 2 | 4) | (1 | 2 | 4, 3))
}

/// The host that is gone for good is there all the same, and who asks has the map from before.
#[test]
fn a_get_by_an_older_map_takes_no_write_away_that_was_repeated() {
    let mut world = expelled();
    let number = world.request(5, Operation::get_all(bytes("k"), Some(2)), Span::secs(9));
    // The third hears the fifth alone, and that the first beside it; later the second, too.
    for hears_second in [false, true] {
        run(&mut world, Span::secs(2), |_, from, to| {
            is_cut(from, to) || (!hears_second && (from, to) == (2, 5))
        });
        assert_eq!(world.answers[number].1.is_some(), hears_second);
    }
    assert_eq!(shown(&world, number), Values::One(bytes("v")));
    for node in [1, 2] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}

/// The map comes when the host that is gone has answered, and nobody else has who is needed.
#[test]
fn a_map_that_comes_in_between_makes_no_word_of_who_is_gone_count() {
    let mut world = expelled();
    let number = world.request(5, Operation::get_all(bytes("k"), Some(3)), Span::secs(20));
    // All answer once; then the second is silent.
    let mut told = 0;
    let is_of_second = |one: &Flight| one.name == "ReadB" && (one.from.node.0, one.to.0) == (2, 5);
    let is_lost =
        |one: &Flight, told| is_cut(one.from.node.0, one.to.0) || (is_of_second(one) && told > 0);
    while let Some(place) = world.flights.iter().position(|one| !is_lost(one, told)) {
        told += u32::from(is_of_second(&world.flights[place]));
        world.deliver(place);
    }
    world.flights.clear();
    assert_eq!(world.answers[number].1, None, "the second's word is lacking");
    world.place(5, &EXPELLED);
    calm(&mut world, Span::secs(5));
    assert_eq!(shown(&world, number), Values::One(bytes("v")));
    for node in [1, 2, 4] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}

/// One lags behind another that has replaced a value of an actor which all have closed: it is asked
/// once more, and says the same.
#[test]
fn a_get_from_one_that_lags_behind_comes_to_an_end() {
    let mut world: CausalWorld = World::new(&Setup { members: 3, spares: 1, ..Setup::default() });
    let name = Some(WriteName { id: WriteId(7), age: Span(0) });
    super::traps::ask(&mut world, 3, write(name));
    calm(&mut world, Span::secs(2));
    world.crash(3);
    for node in [1, 2, 4] {
        world.place(node, &[Move { out: 3, into: 4, gone: true }]);
    }
    let end = world.now + Span::secs(20);
    while [1, 2, 4].iter().any(|node| closed(&mut world, *node) == 0) {
        calm(&mut world, Span::millis(100));
        assert!(world.now < end, "they close what is gone");
    }
    let (_, context) = get(&mut world, 1, "k");
    put(&mut world, 1, "k", "w", context);
    world.flights.clear();
    let number = world.request(1, Operation::get_all(bytes("k"), Some(2)), Span::secs(1));
    for _ in 0..20 {
        world.flights.retain(|one| [1, 2].contains(&one.from.node.0) && [1, 2].contains(&one.to.0));
        if !world.flights.is_empty() {
            world.deliver(0);
        }
    }
    assert_eq!(shown(&world, number), Values::One(bytes("w")));
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
