//! False suspicions end, and after a partition there is one ring again.

use super::world::{World, node};
use crate::gossip::record::News;
use crate::overlay::message::Message;
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use std::vec::Vec;

fn suspected(world: &World, host: usize) -> Vec<usize> {
    let is_suspected = |other: &usize| world.sees(host, *other).is_some_and(|(_, is)| is);
    (0..world.len()).filter(is_suspected).collect()
}

fn is_calm(world: &World) -> bool {
    (0..world.len()).all(|host| suspected(world, host).is_empty())
}

/// Every node's pointers are those of the one ring of all hosts.
fn is_one_ring(world: &World) -> bool {
    (0..world.len()).all(|host| {
        let tokens: Vec<_> = world.ring(host).tokens().collect();
        world.overlay(host).state.ring.pointers().iter().all(|pointers| {
            let place = tokens.iter().position(|(token, _)| *token == pointers.own());
            let place = place.expect("an own token is on the ring");
            let next = |step: usize| tokens[(place + step) % tokens.len()];
            let before = next(tokens.len() - 1);
            let is_right = pointers.predecessor().map(|one| (one.token, one.node)) == Some(before);
            let successors = pointers.successors().iter().map(|one| (one.token, one.node));
            is_right && successors.eq((1..=8).map(next))
        })
    })
}

#[test]
fn one_bad_link_does_not_make_anybody_else_suspect() {
    let mut world = World::founded(11, 12);
    // Nothing from 0 reaches its neighbours; all others hear it.
    let watchers = world.overlay(0).state.ring.neighbours(1);
    let near = (1..12).filter(|host| watchers.contains(&node(*host)));
    world.cut = near.map(|host| (0, host)).collect();
    let mut believed = 0;
    for _ in 0..120 {
        world.run(Span::millis(500));
        believed +=
            (1..12).filter(|host| suspected(&world, *host).iter().any(|one| *one > 0)).count();
    }
    assert_eq!(believed, 0, "nobody but the host behind the link is ever suspected");
    world.cut.clear();
    assert!(world.until(Span::secs(20), is_calm).is_some());
}

#[test]
fn a_host_that_stood_still_refutes_and_suspects_nobody() {
    let mut world = World::founded(12, 12);
    world.freeze(3, Span::secs(20));
    world.run(Span::secs(10));
    assert_eq!(suspected(&world, 0), [3]);
    world.run(Span::secs(10));
    let took = world.until(Span::secs(20), is_calm);
    assert!(took.is_some_and(|took| took.0 <= Span::secs(5).0), "it took {took:?}");
    assert!(world.overlay(3).state.counters.pauses > 0);
    assert_eq!(world.overlay(3).state.counters.suspicions, 0, "it suspected nobody");
}

#[test]
fn a_ring_stabilizes() {
    let mut world = World::founded(13, 25);
    assert!(world.until(Span::secs(10), is_one_ring).is_some());
}

#[test]
fn after_a_partition_there_is_one_ring_again() {
    for (seed, hosts, seconds) in [(14, 20, 30), (15, 20, 300), (16, 45, 60)] {
        let mut world = World::founded(seed, hosts);
        world.partition(|host| u8::from(host % 2 == 0));
        world.run(Span::secs(seconds));
        let others = |world: &World, host: usize| {
            let seen = suspected(world, host);
            seen.len() == (0..hosts).filter(|other| other % 2 != host % 2).count()
        };
        let apart = world.until(Span::secs(60), |world| (0..hosts).all(|host| others(world, host)));
        assert!(apart.is_some(), "each side takes the other for dead: {seed}");
        world.partition(|_| 0);
        let took = world.until(Span::secs(60), |world| is_calm(world) && is_one_ring(world));
        assert!(took.is_some_and(|took| took.0 <= Span::secs(25).0), "{seed}: it took {took:?}");
    }
}

#[test]
fn healing_does_not_make_a_side_suspect_its_own() {
    let mut world = World::founded(17, 24);
    world.partition(|host| u8::from(host < 12));
    world.run(Span::secs(60));
    world.partition(|_| 0);
    for _ in 0..200 {
        world.run(Span::millis(100));
        for host in 0..24 {
            let own = suspected(&world, host).into_iter().filter(|one| (*one < 12) == (host < 12));
            assert_eq!(own.count(), 0, "{host} suspects a friend");
        }
    }
    assert!(is_calm(&world));
}

#[test]
fn a_host_that_was_cut_off_alone_comes_back() {
    let mut world = World::founded(18, 10);
    world.partition(|host| u8::from(host == 4));
    world.run(Span::secs(120));
    assert_eq!(suspected(&world, 0), [4]);
    assert_eq!(suspected(&world, 4).len(), 9);
    assert!((0..10).all(|host| world.sees(host, 4).map(|(one, _)| one) == Some(Standing::Up)));
    world.partition(|_| 0);
    let took = world.until(Span::secs(60), |world| is_calm(world) && is_one_ring(world));
    assert!(took.is_some_and(|took| took.0 <= Span::secs(25).0), "it took {took:?}");
}

/// Two that suspect each other cannot tell each other by rumours, which go to the living only, and
/// here is no third to pass them on.
#[test]
fn two_that_suspect_each_other_make_up_without_a_third() {
    for seed in 0..12 {
        let mut world = World::founded(1900 + seed, 3);
        world.partition(|host| host as u8);
        world.run(Span::millis(1500 + 200 * seed));
        world.partition(|host| u8::from(host == 2));
        let is_made_up =
            |world: &World| !suspected(world, 0).contains(&1) && !suspected(world, 1).contains(&0);
        world.run(Span::secs(3));
        for _ in 0..100 {
            assert!(is_made_up(&world), "seed {seed}: no longer than three seconds");
            world.run(Span::millis(100));
        }
    }
}

/// What a host hears itself outweighs what it was told, even if the suspect never refutes.
#[test]
fn who_answers_is_not_suspected_on_hearsay() {
    let mut world = World::founded(42, 3);
    // A version that host 1 knows nothing of, so that it has nothing to refute.
    let mut record = world.overlay(0).state.record(node(1)).expect("it is known").clone();
    record.version.0 += 5;
    let mut lie = News::of(record);
    lie.suspected_by = Some(node(2));
    let from = world.overlay(2).state.me;
    world.inject(from, 0, Message::News { news: Vec::from([lie]) });
    for _ in 0..100 {
        world.run(Span::millis(100));
        assert!(suspected(&world, 0).is_empty(), "it answers");
    }
    world.crash(1);
    world.run(Span::secs(5));
    assert_eq!(suspected(&world, 0), [1]);
}

/// Neither knows the version in which the other suspects it, so neither has anything to refute.
#[test]
fn two_that_cannot_refute_do_not_talk_without_end() {
    let mut world = World::founded(43, 2);
    for (host, other) in [(0, 1), (1, 0)] {
        let mut record = world.overlay(host).state.record(node(other)).expect("known").clone();
        record.version.0 += 5;
        let mut lie = News::of(record);
        lie.suspected_by = Some(node(7));
        let from = world.overlay(other).state.me;
        world.inject(from, host, Message::Missing { news: Vec::from([lie]) });
    }
    world.run(Span::secs(10));
    let before: u64 = world.sent().iter().sum();
    world.run(Span::secs(10));
    let sent = world.sent().iter().sum::<u64>() - before;
    assert!(sent < 400, "{sent} messages in ten seconds");
}
