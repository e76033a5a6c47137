//! Data that was lost, or that goes elsewhere, comes back, and nothing is said to be there before.

use crate::causal::tests::traps::{CausalWorld, bytes, calm, delete, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::Span;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn world(members: u64, spares: u64, is_memory: bool, options: &[&str]) -> CausalWorld {
    let options = options.iter().map(|option| option.to_string()).collect();
    World::new(&Setup { members, spares, is_memory, options, ..Setup::default() })
}

fn to(out: u64, into: u64) -> Move {
    Move { out, into, gone: false }
}

/// The same, and what was held before that version was handed over.
fn place_all_since(world: &mut CausalWorld, moves: &[Move], since: u64) {
    let mut record = world.record(moves);
    record.former.retain(|tenure| tenure.since >= since);
    for node in 1..=world.count() {
        if world.is_up(node) {
            world.tell(node, &record);
        }
    }
}

fn place_all(world: &mut CausalWorld, moves: &[Move]) {
    for node in 1..=world.count() {
        if world.is_up(node) {
            world.place(node, moves);
        }
    }
}

/// Writes so many keys, spread over nodes; each value names its key.
fn fill(world: &mut CausalWorld, nodes: &[u64], count: usize) {
    for number in 0..count {
        let (node, key) = (nodes[number % nodes.len()], format!("k{number}"));
        put(world, node, &key, &format!("v{number}"), Bytes::new());
    }
}

/// The keys of these that do not have their one value at a node.
fn lacking(world: &mut CausalWorld, node: u64, count: usize) -> Vec<String> {
    let is_lacking = |number: &usize| {
        get(world, node, &format!("k{number}")).0 != [bytes(&format!("v{number}"))]
    };
    (0..count).filter(is_lacking).map(|number| format!("k{number}")).collect()
}

fn number(world: &mut CausalWorld, node: u64, field: &str) -> u64 {
    world.field(node, field).parse().expect("a number")
}

/// Waits until nothing moves, and nothing is kept that is of no use.
fn rest(world: &mut CausalWorld, nodes: &[u64]) {
    let fields = ["joining", "leaving", "to_hand_over", "dot_keys", "unstripped", "witnesses"];
    let begun = world.now;
    for node in nodes.iter().copied() {
        for field in fields {
            while number(world, node, field) != 0 {
                assert!(world.now < begun + Span::secs(30), "{field} at {node}");
                calm(world, Span::millis(100));
            }
        }
        assert!(world.is_ready(node), "{node} is ready");
    }
}

#[test]
fn the_only_replica_of_a_key_moves_with_all_it_has() {
    let mut world = world(1, 1, false, &["replicas=1", "partitions=4"]);
    fill(&mut world, &[1], 200);
    let (_, old) = get(&mut world, 1, "k7");
    delete(&mut world, 1, "k9");
    // The new holder hears of it first, and is asked for keys that it does not have yet; the former
    // one goes on meanwhile.
    world.place(2, &[to(1, 2)]);
    put(&mut world, 2, "k7", "v7", old);
    put(&mut world, 1, "k200", "v200", Bytes::new());
    put(&mut world, 1, "k9", "v9", Bytes::new());
    assert_eq!(world.field(2, "joining"), "4");
    world.place(1, &[to(1, 2)]);
    calm(&mut world, Span::secs(3));
    for node in [1, 2] {
        assert_eq!(lacking(&mut world, node, 201), Vec::<String>::new(), "at {node}");
    }
    rest(&mut world, &[1, 2]);
    calm(&mut world, Span::secs(9));
    assert!(world.stored(1) < 10, "the former holder has let go: {}", world.stored(1));
    // And back, with another host that has not copied anything between.
    let moves = [to(1, 2), to(2, 1)];
    world.cut.insert(2);
    place_all_since(&mut world, &moves, 2);
    calm(&mut world, Span::secs(2));
    world.crash(1);
    world.restart(1, false);
    assert!(!world.is_ready(1), "it has nothing of what it holds");
    world.cut.clear();
    place_all_since(&mut world, &moves, 2);
    calm(&mut world, Span::secs(5));
    for node in [1, 2] {
        assert_eq!(lacking(&mut world, node, 201), Vec::<String>::new(), "at {node}");
    }
    rest(&mut world, &[1, 2]);
}

#[test]
fn the_only_replica_moves_on_before_its_new_holder_has_copied_it() {
    let mut world = world(1, 2, false, &["replicas=1", "partitions=3"]);
    fill(&mut world, &[1], 60);
    // The second host writes something, and has copied nothing when the third takes its place.
    world.cut.insert(1);
    place_all(&mut world, &[to(1, 2)]);
    put(&mut world, 2, "k60", "v60", Bytes::new());
    world.flights.clear();
    place_all(&mut world, &[to(1, 2), to(2, 3)]);
    calm(&mut world, Span::secs(2));
    assert_ne!(number(&mut world, 3, "joining"), 0, "the first cannot be reached");
    world.cut.clear();
    calm(&mut world, Span::secs(4));
    for node in [1, 2, 3] {
        assert_eq!(lacking(&mut world, node, 61), Vec::<String>::new(), "at {node}");
    }
    rest(&mut world, &[1, 2, 3]);
}

/// What the only holder has it may show soon. Who waited for one that is down would refuse plain
/// writes, too.
#[test]
fn gets_wait_for_an_only_holder_until_it_was_silent_for_long() {
    let mut world = world(1, 1, false, &["replicas=1", "partitions=3"]);
    fill(&mut world, &[1], 10);
    world.cut.insert(1);
    place_all(&mut world, &[to(1, 2)]);
    let wants = || Operation::get_all(bytes("k3"), None);
    let early = world.request(2, wants(), Span::secs(1));
    calm(&mut world, Span::secs(1));
    let refused = Refusal::NoQuorum { reached: 0, needed: 1 };
    assert_eq!(world.answers[early].1, Some(Outcome::Refused(refused)));
    calm(&mut world, Span::secs(4));
    assert_eq!(get(&mut world, 2, "k3").0, Vec::<Bytes>::new(), "it answers with what it has");
    put(&mut world, 2, "k10", "v10", Bytes::new());
    world.cut.clear();
    calm(&mut world, Span::secs(4));
    assert_eq!(lacking(&mut world, 2, 11), Vec::<String>::new());
    rest(&mut world, &[1, 2]);
}

#[test]
fn a_partition_that_comes_back_is_copied_from_what_is_still_leaving_here() {
    let mut world = world(1, 1, false, &["replicas=1", "partitions=3"]);
    fill(&mut world, &[1], 60);
    world.cut.insert(1);
    place_all(&mut world, &[to(1, 2)]);
    put(&mut world, 2, "k60", "v60", Bytes::new());
    world.flights.clear();
    place_all(&mut world, &[to(1, 2), to(2, 1)]);
    assert_eq!((number(&mut world, 1, "leaving"), number(&mut world, 1, "joining")), (3, 3));
    put(&mut world, 1, "k61", "v61", Bytes::new());
    calm(&mut world, Span::secs(2));
    world.cut.clear();
    calm(&mut world, Span::secs(4));
    for node in [1, 2] {
        assert_eq!(lacking(&mut world, node, 62), Vec::<String>::new(), "at {node}");
    }
    rest(&mut world, &[1, 2]);
}

#[test]
fn nobody_waits_for_an_only_replica_that_was_lost() {
    // A former holder that keeps nothing on disk restarts, or is gone for good.
    for gone in [false, true] {
        let mut world = world(1, 1, true, &["replicas=1", "partitions=2"]);
        fill(&mut world, &[1], 20);
        world.place(1, &[to(1, 2)]);
        world.flights.clear();
        world.crash(1);
        if gone {
            world.place(2, &[Move { gone, ..to(1, 2) }]);
        } else {
            world.restart(1, true);
            place_all(&mut world, &[to(1, 2)]);
        }
        calm(&mut world, Span::secs(3));
        rest(&mut world, &[2]);
        put(&mut world, 2, "k0", "v0", Bytes::new());
        assert_eq!(lacking(&mut world, 2, 1), Vec::<String>::new());
        if !gone {
            rest(&mut world, &[1]);
        }
    }
}

#[test]
fn hosts_that_restart_one_by_one_when_the_last_is_ready_keep_what_is_in_memory() {
    let mut world = world(3, 0, true, &["partitions=6"]);
    fill(&mut world, &[1, 2, 3], 60);
    calm(&mut world, Span::secs(1));
    for round in 0..2 {
        for node in 1..=3 {
            world.crash(node);
            world.restart(node, true);
            assert!(!world.is_ready(node), "{node} has nothing, in round {round}");
            let begun = world.now;
            while !world.is_ready(node) {
                assert!(world.now < begun + Span::secs(20), "{node} is never ready");
                calm(&mut world, Span::millis(20));
            }
            let joining = number(&mut world, node, "joining");
            assert_eq!(joining, 0, "{node} has copied everything");
        }
    }
    for node in 1..=3 {
        assert_eq!(lacking(&mut world, node, 60), Vec::<String>::new(), "at {node}");
    }
}

#[test]
fn who_cannot_reach_a_host_that_has_what_it_lost_is_not_ready() {
    let mut world = world(3, 1, true, &[]);
    fill(&mut world, &[1, 2, 3], 9);
    calm(&mut world, Span::secs(1));
    // Only the third has this, and it cannot be reached.
    world.cut.insert(3);
    put(&mut world, 3, "k9", "v9", Bytes::new());
    world.crash(1);
    world.restart(1, true);
    calm(&mut world, Span::secs(9));
    assert_eq!(lacking(&mut world, 1, 9), Vec::<String>::new(), "it serves");
    assert!(!world.is_ready(1), "the third may have more");
    world.cut.clear();
    calm(&mut world, Span::secs(3));
    assert!(world.is_ready(1));
    assert_eq!(lacking(&mut world, 1, 10), Vec::<String>::new());
    // Who is ready stays so while it copies what it never had.
    world.cut.insert(2);
    place_all(&mut world, &[to(3, 4)]);
    calm(&mut world, Span::secs(1));
    assert_ne!(number(&mut world, 4, "joining"), 0);
    assert!((1..=4).all(|node| world.is_ready(node)));
}

#[test]
fn after_a_loss_of_power_everywhere_what_is_on_disk_is_there() {
    let mut world = world(3, 0, false, &["partitions=6"]);
    fill(&mut world, &[1, 2, 3], 30);
    put(&mut world, 1, "gone", "v", Bytes::new());
    calm(&mut world, Span::secs(2));
    delete(&mut world, 2, "gone");
    calm(&mut world, Span::secs(2));
    let (_, early) = get(&mut world, 1, "k3");
    let mut kept = Vec::new();
    kept.push(world.kept(1));
    // The second and the third had more time.
    put(&mut world, 1, "k30", "v30", Bytes::new());
    put(&mut world, 1, "k3", "newer", early);
    calm(&mut world, Span::secs(2));
    kept.extend([2, 3].map(|node| world.kept(node)));
    let (values, context) = get(&mut world, 1, "k4");
    assert_eq!(values.len(), 1);
    put(&mut world, 2, "k4", "lost with its context", context);
    put(&mut world, 3, "k31", "lost", Bytes::new());
    let (_, context) = get(&mut world, 2, "k4");
    calm(&mut world, Span::secs(2));
    (1..=3).for_each(|node| world.crash(node));
    world.flights.clear();
    for (node, kept) in (1..=3).zip(&kept) {
        world.restart_from(node, kept);
        assert!(!world.is_ready(node), "others may have more");
    }
    calm(&mut world, Span::secs(4));
    rest(&mut world, &[1, 2, 3]);
    for node in 1..=3 {
        assert_eq!(lacking(&mut world, node, 31), ["k3"], "at {node}");
        assert_eq!(get(&mut world, node, "k3").0, [bytes("newer")]);
        assert_eq!(get(&mut world, node, "k31").0, Vec::<Bytes>::new());
        assert_eq!(get(&mut world, node, "gone").0, Vec::<Bytes>::new());
    }
    // New updates have new names: a context from before replaces nothing that its client has not
    // seen, and what it has seen goes.
    put(&mut world, 2, "k4", "new", Bytes::new());
    put(&mut world, 3, "k4", "after", context);
    calm(&mut world, Span::secs(2));
    for node in 1..=3 {
        assert_eq!(get(&mut world, node, "k4").0, [bytes("new"), bytes("after")], "at {node}");
    }
    rest(&mut world, &[1, 2, 3]);
}

#[test]
fn who_alone_lost_power_gets_back_what_it_had_told_others_and_takes_nothing_from_them() {
    let mut world = world(3, 0, false, &[]);
    fill(&mut world, &[1], 10);
    calm(&mut world, Span::secs(2));
    let kept = world.kept(1);
    // All know of these, so nobody would tell them again by himself.
    let (_, context) = get(&mut world, 1, "k0");
    put(&mut world, 1, "k0", "newer", context);
    delete(&mut world, 2, "k1");
    put(&mut world, 1, "k10", "v10", Bytes::new());
    put(&mut world, 3, "k11", "v11", Bytes::new());
    calm(&mut world, Span::secs(3));
    rest(&mut world, &[1, 2, 3]);
    world.crash(1);
    world.restart_from(1, &kept);
    // It writes before it has asked anybody.
    put(&mut world, 1, "k12", "v12", Bytes::new());
    calm(&mut world, Span::secs(4));
    rest(&mut world, &[1, 2, 3]);
    for node in 1..=3 {
        assert_eq!(lacking(&mut world, node, 13), ["k0", "k1"], "at {node}");
        assert_eq!(get(&mut world, node, "k0").0, [bytes("newer")]);
        assert_eq!(get(&mut world, node, "k1").0, Vec::<Bytes>::new());
        assert_eq!(number(&mut world, node, "clock_entries"), 4, "three actors, and one of before");
        assert_eq!(number(&mut world, node, "open_entries"), 3, "that one is closed");
    }
}

#[test]
fn a_replica_that_leaves_and_loses_power_takes_nothing_for_seen_that_it_lost() {
    let mut world = world(3, 1, false, &["lazy"]);
    fill(&mut world, &[1], 3);
    calm(&mut world, Span::secs(2));
    world.cut.insert(1);
    put(&mut world, 1, "k3", "v3", Bytes::new());
    let moves = [to(1, 4)];
    world.place(1, &moves);
    let kept = world.kept(1);
    world.crash(1);
    world.restart_from(1, &kept);
    world.cut.clear();
    place_all(&mut world, &moves);
    calm(&mut world, Span::secs(4));
    rest(&mut world, &[1, 2, 3, 4]);
    for node in 2..=4 {
        assert_eq!(lacking(&mut world, node, 4), Vec::<String>::new(), "at {node}");
    }
}

#[test]
fn a_replica_that_leaves_and_forgets_says_that_it_has_nothing_more() {
    let mut world = world(3, 1, true, &["lazy"]);
    fill(&mut world, &[1, 2, 3], 9);
    calm(&mut world, Span::secs(2));
    // Nobody else has this, or hears that the first had to hand it over, before it forgets.
    world.cut.insert(1);
    put(&mut world, 1, "k9", "v9", Bytes::new());
    let moves = [to(1, 4)];
    place_all(&mut world, &moves);
    calm(&mut world, Span::secs(1));
    world.crash(1);
    world.restart(1, true);
    assert_eq!(number(&mut world, 1, "leaving"), 1, "it is not done before others know");
    world.cut.clear();
    calm(&mut world, Span::secs(4));
    rest(&mut world, &[1, 2, 3, 4]);
    for node in 2..=4 {
        assert_eq!(lacking(&mut world, node, 9), Vec::<String>::new(), "at {node}");
        assert_eq!(number(&mut world, node, "open_entries"), 3, "the former one is closed");
    }
}
