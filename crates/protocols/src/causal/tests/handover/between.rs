//! What comes from others while a newcomer is between two pages of one scan: of the keys that are
//! behind it, it knows already what the scanned replica knows.

use crate::causal::keys::data_key;
use crate::causal::tests::losses::closing::run;
use crate::causal::tests::traps::{CausalWorld, bytes, calm, delete, deliver_all, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::time::Span;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// Names of keys in the order in which scans list them.
fn keys(count: usize) -> Vec<String> {
    let mut keys: Vec<String> = (0..count).map(|number| format!("k{number}")).collect();
    keys.sort_by_key(|key| data_key(key.as_bytes()));
    keys
}

/// Whether a message is one of the scan of a node by the fourth.
fn is_scan_of(peer: u64) -> impl Fn(&str, u64, u64) -> bool {
    move |name, from, to| {
        let is_pair = (from, to) == (peer, 4) || (from, to) == (4, peer);
        is_pair && (name == "ScanA" || name == "ScanB")
    }
}

/// Until a message of this name has come from one node to another, only those pass that are named.
fn until(world: &mut CausalWorld, last: (&str, u64, u64), passes: impl Fn(&str, u64, u64) -> bool) {
    let end = world.now + Span::secs(20);
    loop {
        assert!(world.now < end, "{last:?} comes");
        world.tick(Span::millis(20));
        loop {
            let what = |at: usize, world: &CausalWorld| {
                let one = &world.flights[at];
                (one.name, one.from.node.0, one.to.0)
            };
            if world.flights.is_empty() {
                break;
            }
            let (name, from, to) = what(0, world);
            if (name, from, to) == last {
                world.deliver(0);
                world.flights.clear();
                return;
            }
            match passes(name, from, to) {
                true => world.deliver(0),
                false => drop(world.flights.remove(0)),
            }
        }
    }
}

/// The one that leaves has deleted a value, and has handed that over. A third one has not heard of
/// it when it is copied.
#[test]
fn a_value_that_was_deleted_where_the_first_page_came_from_stays_away() {
    let options = ["page=2"].map(|option| option.to_string()).into();
    let mut world: CausalWorld =
        World::new(&Setup { members: 3, spares: 1, options, ..Setup::default() });
    let keys = keys(9);
    for key in &keys[1..] {
        put(&mut world, 1, key, "v", Bytes::new());
    }
    calm(&mut world, Span::secs(5));
    let key = &keys[0][..];
    // Of the value the second does not hear, of the delete nobody does.
    put(&mut world, 3, key, "old", Bytes::new());
    world.flights.retain(|one| one.to.0 == 1);
    deliver_all(&mut world);
    delete(&mut world, 1, key);
    world.flights.clear();
    let moves = [Move { out: 1, into: 4, gone: false }];
    (1..=4).for_each(|node| world.place(node, &moves));
    world.flights.clear();
    // The second is copied.
    run(&mut world, Span::secs(4), |name, from, to| !is_scan_of(2)(name, from, to));
    // The second is told what the first has.
    let is_handing = |name: &str, from, to| {
        (name, from, to) == ("HandOver", 1, 2) || (name, from, to) == ("Replicated", 2, 1)
    };
    run(&mut world, Span::secs(9), |name, from, to| !is_handing(name, from, to));
    assert_eq!(world.field(1, "to_hand_over"), "0");
    // One page of the first, all of the third, the rest of the first.
    until(&mut world, ("ScanB", 1, 4), is_scan_of(1));
    run(&mut world, Span::secs(4), |name, from, to| !is_scan_of(3)(name, from, to));
    assert_eq!(world.field(4, "joining"), "1");
    calm(&mut world, Span::secs(20));
    for node in [2, 3, 4] {
        assert_eq!(world.field(node, "joining"), "0");
        assert_eq!(get(&mut world, node, key).0, [] as [Bytes; 0], "node {node}");
        assert_eq!(get(&mut world, node, &keys[8]).0, [bytes("v")], "node {node}");
    }
}

/// The third loses with its power that a value was deleted, which all others have long forgotten.
/// It is copied when one page of each of them has come.
#[test]
fn what_a_peer_has_fallen_back_to_does_not_come_between_two_pages() {
    let options = ["page=2"].map(|option| option.to_string()).into();
    let setup = Setup { members: 3, spares: 1, is_periodic: true, options, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    let keys = keys(9);
    for key in &keys {
        put(&mut world, 1, key, "old", Bytes::new());
    }
    calm(&mut world, Span::secs(5));
    world.hold_sync(3);
    delete(&mut world, 1, &keys[0]);
    calm(&mut world, Span::secs(5));
    for node in 1..=3 {
        let left = (get(&mut world, node, &keys[0]).0.len(), world.field(node, "dot_keys"));
        assert_eq!(left, (0, "0".to_string()), "node {node}");
    }
    world.crash(3);
    world.restart(3, true);
    world.flights.clear();
    let moves = [Move { out: 1, into: 4, gone: false }];
    (1..=4).for_each(|node| world.place(node, &moves));
    world.flights.clear();
    for peer in [1, 2] {
        until(&mut world, ("ScanB", peer, 4), is_scan_of(peer));
    }
    run(&mut world, Span::secs(4), |name, from, to| !is_scan_of(3)(name, from, to));
    assert_eq!(world.field(4, "joining"), "1");
    calm(&mut world, Span::secs(20));
    for node in [2, 3, 4] {
        assert_eq!(get(&mut world, node, &keys[0]).0, [] as [Bytes; 0], "node {node}");
        assert_eq!(get(&mut world, node, &keys[8]).0, [bytes("old")], "node {node}");
    }
}
