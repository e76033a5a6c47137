//! Without faults: what each level promises.

use super::judge::{Judge, Written};
use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::pending::What;
use crate::epidemic::replica::version::{RequestId, Version};
use bytes::Bytes;
use quorate_kernel::operation::{Outcome, Refusal};
use std::format;
use std::vec::Vec;

/// Random reads and writes of a few keys by all, some of them sent to three nodes.
pub fn work(world: &mut World, judge: &mut Judge, rounds: u64, keys: u64) {
    for _ in 0..rounds {
        for _ in 0..2 {
            let (key, node) = (format!("k{}", world.rng.below(keys)), world.any());
            let what = match world.rng.below(10) {
                0..4 => What::Get,
                4 => What::Delete,
                _ => put(&format!("v{}", world.asked.len())),
            };
            let id = RequestId(u128::from(world.rng.next()));
            world.ask_as(node, id, &key, what.clone());
            if what != What::Get && world.rng.below(4) == 0 {
                for _ in 0..2 {
                    let node = world.any();
                    world.ask_as(node, id, &key, what.clone());
                }
            }
        }
        world.run(1);
        judge.look(world);
    }
}

/// Waits until nothing moves, and judges.
pub fn end(world: &mut World, judge: &mut Judge) {
    for _ in 0..12 {
        world.run(25);
        judge.look(world);
    }
    Judge::orders(world);
    Judge::quiescent(world);
    Judge::acknowledged(world);
    let open = world.asked.keys().filter(|ticket| !world.answers.contains_key(ticket)).count();
    let gone = world.asked.len() - world.answers.len();
    assert!(open == gone, "each request is answered");
}

pub fn refused(world: &World) -> usize {
    let is_refused = |outcome: &&Outcome| matches!(outcome, Outcome::Refused(_));
    world.answers.values().filter(is_refused).count()
}

#[test]
fn strong_reads_follow_the_one_order() {
    let (mut world, mut judge) = (World::new(40, Level::Strong, 1), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 60, 8);
    end(&mut world, &mut judge);
    assert_eq!(refused(&world), 0, "everything is answered in a calm");
    let (reads, stale) = judge.stale(&world, &Written::of(&world));
    assert!(reads > 30 && stale == 0, "{stale} of {reads} reads were stale");
    let holes: u64 = world.up().iter().map(|node| world.state(*node).counters.holes).sum();
    assert_eq!(holes, 0);
}

/// x = 1 is sent to three nodes and is three events; x = 2 of another client comes between.
#[test]
fn a_request_that_is_sent_to_three_nodes_is_done_once() {
    let mut world = World::new(24, Level::Strong, 2);
    world.settle();
    let nodes = world.up();
    let id = RequestId(77);
    let first = world.ask_as(nodes[0], id, "x", put("1"));
    assert!(matches!(world.wait(first), Outcome::Written { .. }));
    assert!(matches!(world.done("x", put("2")), Outcome::Written { .. }));
    let again = world.ask_as(nodes[1], id, "x", put("1"));
    let third = world.ask_as(nodes[2], id, "x", put("1"));
    let token = |outcome: Outcome| match outcome {
        Outcome::Written { context } => Version::from_token(&context[..21]),
        other => panic!("{other:?}"),
    };
    let tokens = [first, again, third].map(|ticket| token(world.wait(ticket)));
    assert!(tokens[0].is_some() && tokens[0] == tokens[1] && tokens[1] == tokens[2]);
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"2")));
}

#[test]
fn at_level_eventual_reads_are_fast_and_replicas_converge() {
    let (mut world, mut judge) = (World::new(30, Level::Eventual, 3), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 40, 6);
    end(&mut world, &mut judge);
    assert_eq!(refused(&world), 0);
    let node = world.any();
    let ticket = world.ask(node, "k1", What::Get);
    world.run(4);
    assert!(world.answers.contains_key(&ticket), "no event is waited for");
}

fn version(number: u64, value: &str) -> What {
    What::PutVersion(number, Bytes::copy_from_slice(value.as_bytes()))
}

#[test]
fn at_level_none_each_version_has_one_value_in_the_end() {
    let mut world = World::new(30, Level::None, 4);
    world.settle();
    // Of two values the same one wins, whichever comes first.
    let mut winners = Vec::new();
    for (key, values) in [("x", ["a", "c"]), ("z", ["c", "a"])] {
        assert!(matches!(world.done(key, version(1, values[0])), Outcome::Written { .. }));
        assert!(matches!(world.done(key, version(2, "b")), Outcome::Written { .. }));
        world.run(20);
        let clash = world.done(key, version(1, values[1]));
        let wins = matches!(clash, Outcome::Written { .. });
        let is_refused = matches!(clash, Outcome::Refused(Refusal::Value { .. }));
        assert!(wins || is_refused, "{clash:?}");
        world.run(20);
        let winner = if wins { values[1] } else { values[0] };
        assert!(matches!(world.done(key, version(1, winner)), Outcome::Written { .. }), "again");
        let read = value(&world.done(key, What::GetVersion(1)));
        assert_eq!(read, Some(Bytes::from_static(winner.as_bytes())));
        assert_eq!(value(&world.done(key, What::Get)), Some(Bytes::from_static(b"b")));
        winners.push(winner);
    }
    assert_eq!(winners[0], winners[1]);
    assert_eq!(value(&world.done("y", What::Get)), None);
    let ordered = world.done("x", put("d"));
    assert!(matches!(ordered, Outcome::Refused(Refusal::Value { .. })), "without a version");
    world.run(60);
    Judge::quiescent(&world);
}

/// Two clients give one version two values while some replicas hear of neither, and a joiner copies
/// from one that has lost.
#[test]
fn replicas_that_had_two_values_of_a_version_become_equal() {
    let mut world = World::new(12, Level::None, 6);
    world.settle();
    let nodes = world.up();
    for number in 0..8 {
        let key = format!("k{number}");
        let tickets = ["a", "b", "c"].map(|value| {
            let node = world.any();
            world.ask(node, &key, version(1, value))
        });
        // Half of all messages are lost: replicas keep what reaches them.
        world.loss_ppm = 500_000;
        world.run(3);
        world.loss_ppm = 0;
        for ticket in tickets {
            let outcome = world.wait(ticket);
            let may_be = matches!(
                outcome,
                Outcome::Written { .. }
                    | Outcome::Refused(Refusal::OutcomeUnknown | Refusal::Value { .. })
            );
            assert!(may_be, "{outcome:?}");
        }
    }
    world.stop(nodes[0]);
    world.start(nodes[0]);
    world.run(100);
    world.settle();
    Judge::quiescent(&world);
}

#[test]
fn a_tombstone_goes_everywhere_when_its_grace_is_over() {
    let mut world = World::new(12, Level::Strong, 5);
    (world.settings.grace, world.settings.window) = (40, 20);
    let nodes = world.up();
    nodes.into_iter().for_each(|node| world.start(node));
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    assert!(matches!(world.done("x", What::Delete), Outcome::Deleted { .. }));
    assert_eq!(value(&world.done("x", What::Get)), None);
    for number in 0..60 {
        let node = world.any();
        world.ask(node, &format!("y{number}"), put("1"));
        world.run(2);
    }
    world.run(60);
    let key = crate::epidemic::keys::wire_key(b"x");
    let held: Vec<_> = world
        .up()
        .into_iter()
        .filter(|node| world.state(*node).store.held(&key, None).is_some())
        .collect();
    assert!(held.is_empty(), "{} nodes keep the tombstone", held.len());
    let seen = world.up().into_iter().map(|node| world.state(node).seen.len()).max();
    assert!(seen < Some(40), "requests are forgotten too");
    Judge::quiescent(&world);
}

/// Each has few or one to tell, and none of what is told may be thrown away.
#[test]
fn two_or_three_nodes_are_enough() {
    for nodes in [2, 3] {
        let (mut world, mut judge) = (World::new(nodes, Level::Strong, 5), Judge::default());
        world.settle();
        for number in 0..20 {
            let (key, text) = (format!("k{}", number % 3), format!("v{number}"));
            let node = world.any();
            let ticket = world.ask(node, &key, put(&text));
            assert!(matches!(world.wait(ticket), Outcome::Written { .. }), "{nodes}: {number}");
            let node = world.any();
            let ticket = world.ask(node, &key, What::Get);
            assert_eq!(value(&world.wait(ticket)), Some(Bytes::from(text)), "{nodes}: {number}");
        }
        end(&mut world, &mut judge);
        let holes: u64 = world.up().iter().map(|node| world.state(*node).counters.holes).sum();
        assert_eq!(holes, 0);
    }
}
