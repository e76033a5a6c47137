//! A partition is given to another host while a peer has lost its data: who had the partition may
//! be the only one that has it.

use crate::causal::tests::losses::closing::run;
use crate::causal::tests::traps::{CausalWorld, bytes, calm, delete, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::time::Span;
use std::string::ToString;

const MOVED: Move = Move { out: 2, into: 3, gone: false };

/// Two replicas at two hosts, and one more host.
fn two(setup: Setup) -> CausalWorld {
    let options = ["replicas=2", "partitions=2"].map(|option| option.to_string()).into();
    World::new(&Setup { members: 2, spares: 1, options, ..setup })
}

/// The first has lost what it had; the second gives its partition away at once. Both that are left
/// have the value in the end.
fn lose_and_move(world: &mut CausalWorld) {
    world.crash(1);
    world.restart(1, true);
    world.flights.clear();
    assert!(!world.is_ready(1));
    for node in [1, 2, 3] {
        world.place(node, &[MOVED]);
    }
    calm(world, Span::secs(20));
    for node in [1, 3] {
        assert!(world.is_ready(node));
        assert_eq!(get(world, node, "k").0, [bytes("v")], "at {node}");
        assert_eq!(world.field(node, "dot_keys"), "0", "at {node}");
    }
    assert_eq!(world.field(2, "leaving"), "0");
}

#[test]
fn what_a_peer_forgot_is_copied_from_who_gives_its_partition_away() {
    let mut world = two(Setup { is_memory: true, ..Setup::default() });
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    assert_eq!(world.field(2, "dot_keys"), "0", "both have it");
    lose_and_move(&mut world);
}

/// Both have what the other one was asked to write; one of them has not synced it.
fn unsynced_at(node: u64) -> CausalWorld {
    let mut world = two(Setup { is_periodic: true, ..Setup::default() });
    calm(&mut world, Span::secs(1));
    world.hold_sync(node);
    put(&mut world, 3 - node, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(1));
    world
}

/// The same of a host that lost its last interval to a loss of power.
#[test]
fn what_a_peer_lost_with_its_power_is_copied_from_who_gives_its_partition_away() {
    lose_and_move(&mut unsynced_at(1));
}

/// A host that has lost something with its power gives its partition away before it has it again.
/// It is not ready before the new holder has copied from all, also if it loses power once more.
#[test]
fn who_lacks_something_and_leaves_is_not_ready_after_another_start_either() {
    let mut world = unsynced_at(2);
    world.crash(2);
    world.restart(2, true);
    world.flights.clear();
    for node in [1, 2, 3] {
        world.place(node, &[MOVED]);
    }
    let is_of_newcomer = |_: &str, from, to| from == 3 || to == 3;
    run(&mut world, Span::secs(1), is_of_newcomer);
    assert!(!world.is_ready(2));
    world.crash(2);
    world.restart(2, true);
    run(&mut world, Span::secs(1), is_of_newcomer);
    assert!(!world.is_ready(2), "nobody has copied yet");
    calm(&mut world, Span::secs(20));
    assert!((1..=3).all(|node| world.is_ready(node)));
    assert_eq!(get(&mut world, 3, "k").0, [bytes("v")]);
}

/// A host that has lost a delete with its power copies from a newcomer before that has copied from
/// who gives the partition away, in this order or with that one first. No entry of the dot-key map
/// names the delete any more, and it comes to all the same.
#[test]
fn a_delete_that_a_peer_lost_with_its_power_comes_back_from_the_newcomer() {
    // Or the peer tells of a write that is new to the newcomer in the same message.
    for (is_peer_first, is_written) in [(true, false), (false, false), (false, true)] {
        let mut world = two(Setup { is_periodic: true, ..Setup::default() });
        put(&mut world, 2, "k", "v", Bytes::new());
        calm(&mut world, Span::secs(5));
        world.hold_sync(1);
        delete(&mut world, 2, "k");
        calm(&mut world, Span::secs(5));
        for node in [1, 2] {
            assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "at {node}");
            assert_eq!(world.field(node, "dot_keys"), "0", "at {node}");
        }
        world.crash(1);
        world.restart(1, true);
        world.flights.clear();
        for node in [1, 2, 3] {
            world.place(node, &[MOVED]);
        }
        // The first copies from the newcomer, which has nothing yet.
        run(&mut world, Span::secs(2), move |name, from, to| {
            let is_copied = !is_peer_first && (name, from, to) == ("ScanB", 1, 3);
            is_copied || matches!((from, to), (2, 3) | (3, 2))
        });
        if !is_peer_first {
            run(&mut world, Span::secs(2), |_, from, to| matches!((from, to), (1, 3) | (3, 1)));
        }
        let left: &[Bytes] = if is_written { &[bytes("x")] } else { &[] };
        if is_written {
            put(&mut world, 1, "k", "x", Bytes::new());
            world.flights.clear();
        }
        calm(&mut world, Span::secs(20));
        for node in [1, 3] {
            assert_eq!(get(&mut world, node, "k").0, left, "at {node}");
            assert_eq!(world.field(node, "dot_keys"), "0", "at {node}");
        }
    }
}

/// A host lost a delete with its power, and a newcomer has copied from it. That is told of the
/// delete by a page that has a later write, too, and by one that is gone for good then.
#[test]
fn what_a_newcomer_has_given_away_goes_beside_news_too() {
    let setup = Setup { members: 3, spares: 1, is_periodic: true, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    put(&mut world, 2, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    world.hold_sync(1);
    delete(&mut world, 2, "k");
    calm(&mut world, Span::secs(5));
    world.crash(3);
    world.crash(1);
    world.restart(1, true);
    world.flights.clear();
    let mut moves = [Move { out: 3, into: 4, gone: true }; 2];
    for node in [1, 2, 4] {
        world.place(node, &moves[..1]);
    }
    let is_not = |one, other| {
        move |_: &str, from, to| (from, to) != (one, other) && (from, to) != (other, one)
    };
    run(&mut world, Span::secs(2), is_not(1, 4));
    assert_eq!(get(&mut world, 4, "k").0, [] as [Bytes; 0]);
    put(&mut world, 1, "k", "x", Bytes::new());
    run(&mut world, Span::millis(1), |name, from, to| (name, from, to) != ("Replicate", 1, 2));
    run(&mut world, Span::secs(2), is_not(2, 4));
    world.crash(2);
    moves[1] = Move { out: 2, into: 2, gone: true };
    for node in [1, 4] {
        world.place(node, &moves);
    }
    calm(&mut world, Span::secs(20));
    for node in [1, 4] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("x")], "at {node}");
    }
}

/// A host that hears that another one has handed over, and does not know yet that the partition is
/// its own now, says nothing: not as what it was before either.
#[test]
fn who_does_not_know_yet_that_it_is_the_successor_keeps_nobody_from_waiting() {
    let mut world = two(Setup { is_memory: true, ..Setup::default() });
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    for node in [1, 2] {
        world.place(node, &[MOVED]);
    }
    calm(&mut world, Span::secs(5));
    assert_eq!(world.field(2, "leaving"), "1", "nobody has copied");
    world.place(3, &[MOVED]);
    calm(&mut world, Span::secs(20));
    assert_eq!(world.field(2, "leaving"), "0");
    assert_eq!(get(&mut world, 3, "k").0, [bytes("v")]);
}

/// A peer is gone for good, and no host is left that could take its partitions. The drain ends all
/// the same: nobody waits for what the peer will never say.
#[test]
fn a_host_that_is_gone_keeps_no_drain_from_its_end() {
    let mut world: CausalWorld = World::new(&Setup { members: 3, spares: 1, ..Setup::default() });
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    world.crash(2);
    let moves = [Move { out: 1, into: 4, gone: false }, Move { out: 2, into: 2, gone: true }];
    for node in [1, 3, 4] {
        world.place(node, &moves);
    }
    calm(&mut world, Span::secs(20));
    assert_eq!((world.field(4, "joining"), world.field(1, "leaving")), ("0".into(), "0".into()));
    for node in [3, 4] {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "at {node}");
    }
}
