//! What newcomers copy of those that leave, and when hosts that forgot say that they are ready.

use crate::causal::tests::losses::closing::run;
use crate::causal::tests::traps::{CausalWorld, bytes, calm, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::values::Values;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

const MOVED: Move = Move { out: 2, into: 3, gone: false };

/// Two replicas at two hosts, and two more hosts.
fn two(setup: Setup) -> CausalWorld {
    let options = ["replicas=2", "partitions=2"].map(|option| option.to_string()).into();
    World::new(&Setup { members: 2, spares: 2, options, ..setup })
}

fn memory() -> CausalWorld {
    two(Setup { is_memory: true, ..Setup::default() })
}

fn lacking(world: &mut CausalWorld, node: u64, count: usize) -> Vec<String> {
    let is_lacking = |number: &usize| get(world, node, &format!("k{number}")).0 != [bytes("v")];
    (0..count).filter(is_lacking).map(|number| format!("k{number}")).collect()
}

fn place(world: &mut CausalWorld, nodes: &[u64], moves: &[Move]) {
    nodes.iter().for_each(|node| world.place(*node, moves));
}

/// The former holder forgets between two pages of its scan: nobody else has lost anything.
#[test]
fn a_former_holder_that_forgets_between_two_pages_takes_nothing_from_others() {
    let mut world = memory();
    let count = 700;
    for number in 0..count {
        put(&mut world, 1, &format!("k{number}"), "v", Bytes::new());
        calm(&mut world, Span::millis(20));
    }
    calm(&mut world, Span::secs(5));
    assert_eq!((world.field(1, "dot_keys"), world.field(2, "dot_keys")), ("0".into(), "0".into()));
    place(&mut world, &[1, 2, 3, 4], &[MOVED]);
    let is_between =
        |one: &Flight, pair: [u64; 2]| pair.contains(&one.from.node.0) && pair.contains(&one.to.0);
    // The third hears the first later. One page of the second arrives.
    let (mut has_come, end) = (false, world.now + Span::secs(20));
    while !has_come {
        assert!(world.now < end, "nobody copies from the second");
        world.tick(Span::millis(20));
        while !has_come {
            world.flights.retain(|one| !is_between(one, [1, 3]));
            if world.flights.is_empty() {
                break;
            }
            let first = &world.flights[0];
            has_come = first.name == "ScanB" && first.from.node.0 == 2 && first.to.0 == 3;
            world.deliver(0);
        }
    }
    world.crash(2);
    world.restart(2, true);
    run(&mut world, Span::secs(3), |_, from, to| matches!((from, to), (1, 3) | (3, 1)));
    calm(&mut world, Span::secs(20));
    assert_eq!(lacking(&mut world, 1, count).len(), 0, "the first never forgot");
    let lacks = lacking(&mut world, 3, count).len();
    // The first is drained too: what it had is at the other two.
    let moves = [MOVED, Move { out: 1, into: 4, gone: false }];
    place(&mut world, &[1, 2, 3, 4], &moves);
    calm(&mut world, Span::secs(20));
    let after = [3, 4].map(|node| lacking(&mut world, node, count).len());
    assert_eq!((lacks, after), (0, [0, 0]), "nothing is lost");
}

/// What the second hands over to the third arrives late: that the second is done is known there
/// by then, but the third has copied nothing.
#[test]
fn what_is_handed_over_late_does_not_say_that_all_was_copied() {
    let mut world = memory();
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    world.crash(1);
    put(&mut world, 2, "n", "v", Bytes::new());
    world.flights.clear();
    world.restart(1, true);
    world.flights.clear();
    place(&mut world, &[1, 2, 3], &[MOVED]);
    let mut late: Option<Flight> = None;
    let is_scan = |one: &Flight| (one.name, one.from.node.0, one.to.0) == ("ScanA", 3, 2);
    let end = world.now + Span::secs(30);
    // The third's questions to the second are lost. Its first message to the third is late.
    while world.field(1, "finished_entries") == "0" || world.field(3, "finished_entries") == "0" {
        assert!(world.now < end, "the first and the third hear that the second is done");
        world.tick(Span::millis(20));
        loop {
            world.flights.retain(|one| !is_scan(one));
            let is_late = |one: &Flight| one.name == "HandOver" && one.to.0 == 3;
            if let Some(at) = world.flights.iter().position(is_late) {
                let flight = world.flights.remove(at);
                late.get_or_insert(flight);
                continue;
            }
            let is_early = late.is_none();
            world.flights.retain(|one| one.name != "HandOver" || !is_early);
            if world.flights.is_empty() {
                break;
            }
            world.deliver(0);
        }
    }
    assert_eq!((world.field(2, "leaving"), world.field(3, "joining")), ("1".into(), "1".into()));
    world.flights.extend(late);
    run(&mut world, Span::secs(2), |name, from, to| (name, from, to) == ("ScanA", 3, 2));
    let (leaving, joining) = (world.field(2, "leaving"), world.field(3, "joining"));
    calm(&mut world, Span::secs(20));
    let values = [1, 3].map(|node| get(&mut world, node, "k").0);
    assert_eq!((leaving, joining), ("1".into(), "1".into()), "it keeps all until that is copied");
    assert!(values.iter().all(|values| *values == [bytes("v")]), "{values:?}");
}

/// The first has forgotten, and the second's partition goes to the third. The first has copied from
/// the third alone, which has nothing: it is not ready.
fn first_copies_from_nobody(world: &mut CausalWorld) -> bool {
    put(world, 1, "k", "v", Bytes::new());
    calm(world, Span::secs(5));
    assert_eq!(world.field(2, "dot_keys"), "0", "both have it");
    world.crash(1);
    world.restart(1, true);
    world.flights.clear();
    place(world, &[1, 2, 3], &[MOVED]);
    run(world, Span::secs(2), |_, from, to| from == 2 || to == 2);
    world.is_ready(1)
}

/// A rolling restart goes on with the second, as the first is ready.
#[test]
fn who_copied_from_a_newcomer_that_has_copied_nothing_is_not_ready() {
    let mut world = memory();
    if first_copies_from_nobody(&mut world) {
        world.crash(2);
        world.restart(2, true);
        place(&mut world, &[2], &[MOVED]);
    }
    calm(&mut world, Span::secs(20));
    for node in [1, 3] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "at {node}");
    }
}

/// The move is over, all have joined and are ready, and the former holder has let go. Then the
/// newcomer forgets, at once: what it had copied is young, and nowhere else.
#[test]
fn who_is_ready_and_has_joined_has_what_the_newcomer_copied() {
    let mut world = memory();
    let was_ready = first_copies_from_nobody(&mut world);
    let end = world.now + Span::secs(20);
    while world.field(2, "leaving") != "0" || (1..=3).any(|node| !world.is_ready(node)) {
        assert!(world.now < end, "it comes to an end");
        run(&mut world, Span::millis(20), |_, _, _| false);
    }
    assert_eq!((world.field(1, "joining"), world.field(3, "joining")), ("0".into(), "0".into()));
    world.crash(3);
    world.restart(3, true);
    place(&mut world, &[3], &[MOVED]);
    calm(&mut world, Span::secs(20));
    assert_eq!(get(&mut world, 1, "k").0, [bytes("v")], "the first was ready: {was_ready}");
}

/// Of hosts that restart one by one, each when the last is ready, none takes the last copy: the
/// second has handed over nothing when it restarts.
#[test]
fn who_forgot_while_it_leaves_is_not_ready_before_others_need_it_no_more() {
    let mut world = memory();
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    place(&mut world, &[1, 2, 3], &[MOVED]);
    world.flights.clear();
    for node in [2, 1] {
        assert!((1..=3).all(|node| world.is_ready(node)), "before {node} restarts");
        world.crash(node);
        world.restart(node, true);
        place(&mut world, &[node], &[MOVED]);
        if node == 2 && !world.is_ready(2) {
            calm(&mut world, Span::secs(20));
        }
    }
    calm(&mut world, Span::secs(20));
    for node in [1, 3] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "at {node}");
    }
}

/// The same of one that forgets before it hears that its partition was given away: it has copied
/// nothing by then, and never will.
#[test]
fn who_forgot_before_it_leaves_is_not_ready_before_others_need_it_no_more() {
    let mut world = memory();
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    for node in [2, 1] {
        assert!((1..=3).all(|node| world.is_ready(node)), "before {node} restarts");
        world.crash(node);
        world.restart(node, true);
        world.flights.clear();
        place(&mut world, &[1, 2, 3], &[MOVED]);
        if node == 2 && !world.is_ready(2) {
            calm(&mut world, Span::secs(20));
        }
    }
    calm(&mut world, Span::secs(20));
    for node in [1, 3] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "at {node}");
    }
}

/// The second has had a partition twice, and the first does not hear that it has handed over: it
/// still has both when the fourth gets what it left last.
#[test]
fn who_left_a_partition_twice_is_copied_from_as_both() {
    let mut world = memory();
    let is_lost = |name: &str, from: u64, to: u64| name == "LeftA" && (from, to) == (2, 1);
    put(&mut world, 1, "k0", "v", Bytes::new());
    calm(&mut world, Span::secs(2));
    let step = |out, into| Move { out, into, gone: false };
    let moves = [step(2, 3), step(3, 2), step(2, 4)];
    for (count, holder) in [(1, 3), (2, 2), (3, 4)] {
        let mut record = world.record(&moves[..count]);
        // By then the third has handed over.
        record.former.retain(|tenure| count < 3 || tenure.node.0 != 3);
        (1..=4).for_each(|node| world.tell(node, &record));
        put(&mut world, holder, &format!("k{count}"), "v", Bytes::new());
        let end = world.now + Span::secs(20);
        while world.field(holder, "joining") != "0" || world.field(3, "leaving") != "0" {
            assert!(world.now < end, "{holder} never joins: {count} moves");
            run(&mut world, Span::millis(100), is_lost);
        }
    }
    assert_eq!(world.field(2, "leaving"), "2", "the first has noted nothing");
    calm(&mut world, Span::secs(9));
    assert_eq!(world.field(2, "leaving"), "0");
    for node in [1, 4] {
        assert_eq!(lacking(&mut world, node, 4), Vec::<String>::new(), "at {node}");
    }
}

/// The newcomer knows the map, and not the record that says who had the partition: it has not asked
/// that one, and its peer is down.
#[test]
fn who_does_not_know_whom_to_ask_does_not_say_that_nothing_is_there() {
    let mut world = two(Setup::default());
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    place(&mut world, &[1, 2], &[MOVED]);
    run(&mut world, Span::secs(1), |name, from, to| (name, from, to) == ("ScanB", 1, 3));
    assert_eq!(world.field(3, "joining"), "1", "it knows the map");
    let is_cut = |_: &str, from, to| matches!((from, to), (1, 3) | (3, 1));
    run(&mut world, Span::secs(6), is_cut);
    let read = Operation::get_all(bytes("k"), None);
    let number = world.request(3, read, Span::secs(1));
    run(&mut world, Span::secs(2), is_cut);
    let refused = Refusal::NoQuorum { reached: 0, needed: 1 };
    assert_eq!(world.answers[number].1, Some(Outcome::Refused(refused)));
    place(&mut world, &[3], &[MOVED]);
    run(&mut world, Span::secs(5), is_cut);
    assert_eq!(get(&mut world, 3, "k").0, [bytes("v")], "it has copied from who had it");
}

/// The first of two former holders is down, and the second, which took a write of its own, is not
/// asked before.
#[test]
fn who_has_not_asked_all_former_holders_does_not_say_that_nothing_is_there() {
    let options = ["replicas=1", "partitions=1"].map(|option| option.to_string()).into();
    let setup = Setup { members: 1, spares: 2, options, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(1));
    world.crash(1);
    let [first, second] = [(1, 2), (2, 3)].map(|(out, into)| Move { out, into, gone: false });
    place(&mut world, &[2], &[first]);
    calm(&mut world, Span::secs(5));
    put(&mut world, 2, "j", "w", Bytes::new());
    place(&mut world, &[2, 3], &[first, second]);
    calm(&mut world, Span::secs(6));
    let read = Operation::get_all(bytes("j"), None);
    let number = world.request(3, read, Span::secs(1));
    calm(&mut world, Span::secs(2));
    let refused = Refusal::NoQuorum { reached: 0, needed: 1 };
    assert_eq!(world.answers[number].1, Some(Outcome::Refused(refused)), "the second has it");
    // The first was asked a moment ago.
    calm(&mut world, Span::millis(300));
    let removed = Move { out: 1, into: 1, gone: true };
    place(&mut world, &[2, 3], &[first, second, removed]);
    for _ in 0..100 {
        let read = Operation::get_all(bytes("j"), None);
        let number = world.request(3, read, Span::millis(50));
        calm(&mut world, Span::millis(50));
        if let Some(Outcome::Values { values, .. }) = &world.answers[number].1 {
            assert_eq!(values, &Values::One(bytes("w")), "the second was silent for none");
        }
    }
    assert_eq!(get(&mut world, 3, "j").0, [bytes("w")], "nobody waits for who is gone");
}
