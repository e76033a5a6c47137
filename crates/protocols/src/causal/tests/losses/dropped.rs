//! Actors that are closed leave clocks and contexts, and nothing is thought of them that is wrong.

use super::closing::{closed, run};
use crate::causal::tests::traps::{CausalWorld, ask, bytes, calm, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use std::format;
use std::vec::Vec;

fn number(world: &mut CausalWorld, node: u64, field: &str) -> u64 {
    world.field(node, field).parse().expect("a number")
}

/// Gives the one partition of a host to another, again and again, until the newest is closed.
fn pass_on(world: &mut CausalWorld, hosts: &[u64], holders: &mut [u64; 3], rounds: usize) {
    let mut moves: Vec<Move> = Vec::new();
    for round in 0..rounds {
        let at = round % 3;
        let free = hosts.iter().find(|host| !holders.contains(host)).expect("a spare");
        moves.push(Move { out: holders[at], into: *free, gone: false });
        holders[at] = *free;
        for host in hosts {
            world.place(*host, &moves);
        }
        calm(world, Span::secs(3));
        put(world, holders[at], "k", &format!("v{round}"), Bytes::new());
        calm(world, Span::secs(1));
    }
    // The former holders have handed over, and all hear of it.
    let mut record = world.record(&moves);
    record.changed += 1;
    record.former.clear();
    hosts.iter().for_each(|host| world.tell(*host, &record));
    calm(world, Span::secs(5));
}

#[test]
fn however_often_partitions_move_clocks_and_contexts_stay_small() {
    let setup = Setup { members: 3, spares: 2, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    let (hosts, mut holders) = ([1, 2, 3, 4, 5], [1, 2, 3]);
    put(&mut world, 1, "k", "first", Bytes::new());
    put(&mut world, 1, "l", "kept", Bytes::new());
    calm(&mut world, Span::secs(2));
    let (_, early) = get(&mut world, 1, "k");
    let (_, other) = get(&mut world, 1, "l");
    pass_on(&mut world, &hosts, &mut holders, 12);
    for node in holders {
        assert_eq!(number(&mut world, node, "spare_entries"), 0, "at {node}");
        assert!(number(&mut world, node, "clock_entries") <= 6, "two of each partition at {node}");
        assert_eq!(number(&mut world, node, "unstripped"), 0, "at {node}");
        let (values, context) = get(&mut world, node, "k");
        assert_eq!(values.len(), 13, "nobody has replaced any");
        assert!(context.len() < 33 + 6 * 30, "{} bytes", context.len());
    }
    let here = holders[0];
    // What the first client saw, and its actor, are long gone from all clocks: it replaces what it
    // has seen and nothing else, and nobody learns the actor's name anew.
    put(&mut world, here, "k", "after", early);
    calm(&mut world, Span::secs(2));
    for node in holders {
        let (values, _) = get(&mut world, node, "k");
        assert_eq!(values.len(), 13, "one came and one went");
        assert!(!values.contains(&bytes("first")) && values.contains(&bytes("after")));
        assert_eq!(number(&mut world, node, "spare_entries"), 0, "at {node}");
    }
    // Again, of a value that was deleted since: it stays away.
    let (_, context) = get(&mut world, here, "l");
    ask(&mut world, here, Operation::delete_over(bytes("l"), context));
    calm(&mut world, Span::secs(3));
    put(&mut world, holders[1], "l", "new", other);
    let (_, context) = get(&mut world, holders[2], "k");
    ask(&mut world, holders[2], Operation::delete_over(bytes("k"), context));
    calm(&mut world, Span::secs(3));
    for node in holders {
        assert_eq!(get(&mut world, node, "l").0, [bytes("new")]);
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0]);
        assert!(number(&mut world, node, "clock_entries") <= 6, "at {node}");
        // A restart reads the same.
        world.crash(node);
        world.restart(node, false);
        assert!(number(&mut world, node, "clock_entries") <= 6, "after a restart of {node}");
        assert_eq!(get(&mut world, node, "l").0, [bytes("new")]);
    }
}

/// A host is given a partition while it cannot be reached by those who share its keys, takes what
/// the former holder hands over, and loses it again. Nobody has heard of it when it hands over at
/// last.
#[test]
fn nothing_is_closed_while_a_holder_that_nobody_heard_of_may_hand_over() {
    let setup = Setup { members: 3, spares: 2, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    world.cut.insert(1);
    put(&mut world, 1, "k", "v", Bytes::new());
    world.flights.clear();
    world.cut.clear();
    let mut moves = Vec::from([Move { out: 1, into: 4, gone: false }]);
    (1..=5).for_each(|node| world.place(node, &moves));
    // The fourth hears the first alone; the others note that the first has left.
    let apart = |_: &str, from, to| [from, to].contains(&4) && ![from, to].contains(&1);
    run(&mut world, Span::secs(4), |name, from, to| {
        apart(name, from, to) || (matches!(name, "Replicate" | "HandOver") && to != 4)
    });
    assert_eq!(get(&mut world, 4, "k").0, [bytes("v")], "it was handed over");
    assert_eq!(number(&mut world, 1, "leaving"), 0);
    moves.push(Move { out: 4, into: 5, gone: false });
    // The first has handed over, by the record.
    let mut record = world.record(&moves);
    record.former.retain(|tenure| tenure.node != NodeId(1));
    [1, 2, 3, 5].iter().for_each(|node| world.tell(*node, &record));
    run(&mut world, Span::secs(6), |_, from, to| [from, to].contains(&4));
    for node in [2, 3, 5] {
        assert_eq!(closed(&mut world, node), 0, "the fourth may have more, says {node}");
    }
    world.tell(4, &record);
    calm(&mut world, Span::secs(5));
    assert_eq!(number(&mut world, 4, "leaving"), 0);
    for node in [2, 3, 5] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}
