//! Nodes that come and go.

use super::calm::{end, work};
use super::joining::{event, give_up, of_others, put_at};
use super::judge::{Judge, Written};
use super::world::{World, put};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Message, Page};
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::{Range, leaf, position};
use crate::epidemic::replica::store::Record;
use crate::epto::LogicalTime;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Span;
use std::boxed::Box;
use std::format;
use std::vec::Vec;

fn join(world: &mut World, count: usize) {
    for _ in 0..count {
        let node = world.add();
        world.start(node);
    }
}

#[test]
fn replaced_nodes_take_over_and_nothing_is_lost() {
    for share in [10, 20, 30] {
        let mut world = World::new(40, Level::Strong, 100 + share);
        let mut judge = Judge::default();
        world.settle();
        work(&mut world, &mut judge, 20, 12);
        for _ in 0..2 {
            // No slice loses all its members.
            for _ in 0..40 * share / 100 {
                let node = world.any();
                if world.state(node).size() > 3 {
                    world.kill(node);
                }
                world.run(4);
            }
            let missing = 40 - world.hosts.len();
            join(&mut world, missing);
            work(&mut world, &mut judge, 20, 12);
            world.settle();
        }
        end(&mut world, &mut judge);
        let (reads, stale) = judge.stale(&world, &Written::of(&world));
        assert!(reads > 20 && stale == 0, "{stale} of {reads} reads were stale");
    }
}

#[test]
fn a_joiner_does_not_answer_requests_without_order() {
    let mut world = World::new(24, Level::None, 24);
    world.settle();
    let node = world.add();
    world.start(node);
    let mut asked = 0;
    while !world.state(node).is_whole() {
        for _ in 0..8 {
            let (other, key) = (world.any(), format!("k{asked}"));
            world.ask(other, &key, What::Get);
            asked += 1;
        }
        world.run(1);
        let has_answered = world.answered.contains_key(&node);
        assert!(!has_answered || world.state(node).is_whole(), "it answers for nothing");
        assert!(asked < 2400, "it joins in the end");
    }
    for number in 0..100 {
        let other = world.any();
        world.ask(other, &format!("k{number}"), What::Get);
    }
    world.run(10);
    assert!(world.answered.contains_key(&node), "now it does");
}

#[test]
fn a_joiner_says_nothing_before_it_has_all() {
    let (mut world, mut judge) = (World::new(24, Level::Strong, 21), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 30, 30);
    let node = world.add();
    world.start(node);
    let mut rounds = 0;
    while !world.state(node).is_whole() {
        assert!(world.state(node).delivered.is_empty(), "it has no place yet");
        assert!(!world.answered.contains_key(&node), "it answers for nothing");
        work(&mut world, &mut judge, 1, 30);
        rounds += 1;
        assert!(rounds < 200, "it joins in the end");
    }
    let ttl = u64::from(world.state(node).epto.parameters().ttl);
    assert!(rounds >= ttl + 2, "it has listened for {rounds} rounds only");
    let state = world.state(node);
    let (range, repaired) = (state.range().expect("it has a slice"), state.counters.repaired);
    let is_member = |one: &&NodeId| **one != node && world.state(**one).range() == Some(range);
    let up = world.up();
    let had = up.iter().filter(is_member).map(|one| world.state(*one).store.len()).max();
    assert!(had > Some(0) && repaired > 0, "it has taken over what {had:?} records there were");
    end(&mut world, &mut judge);
}

#[test]
fn a_cluster_that_grows_and_shrinks_moves_ranges_and_loses_nothing() {
    let (mut world, mut judge) = (World::new(12, Level::Strong, 22), Judge::default());
    world.settings.keep_rounds = 60;
    let nodes = world.up();
    nodes.into_iter().for_each(|node| world.start(node));
    world.settle();
    work(&mut world, &mut judge, 20, 40);
    let before = world.state(world.up()[0]).slices.groups();
    // What is given up stays where it is until it was handed over.
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::Listed { .. })));
    for _ in 0..18 {
        join(&mut world, 2);
        world.run(4);
    }
    world.settle();
    work(&mut world, &mut judge, 80, 40);
    let kept = world.up().into_iter().filter(|node| !world.state(*node).former.is_empty());
    let kept: Vec<NodeId> = kept.collect();
    assert!(!kept.is_empty(), "ranges were given up, and nobody has said that they are safe");
    // A start does not forget what is on the disk, whatever it was.
    world.stop(kept[0]);
    world.start(kept[0]);
    world.cut = None;
    world.run(100);
    world.settle();
    let grown = world.state(world.up()[0]).slices.groups();
    assert!(grown > before, "{before:?} became {grown:?}");
    end(&mut world, &mut judge);
    let keeps = world.up().into_iter().filter(|node| !world.state(*node).former.is_empty());
    assert_eq!(keeps.count(), 0, "what was handed over is dropped");
    for node in world.up() {
        let (state, range) = (world.state(node), world.state(node).range());
        let range = range.expect("it has a slice");
        let is_own = state.store.iter().all(|(key, _)| range.has(position(key)));
        assert!(is_own, "nothing of other slices is left at {node}");
    }
    // They leave one after the other, and never the last of a slice.
    while world.hosts.len() > 12 {
        let nodes: Vec<NodeId> = world.up();
        let most = nodes.into_iter().max_by_key(|node| world.state(*node).size());
        world.kill(most.expect("some are up"));
        world.run(8);
        judge.look(&world);
    }
    world.run(100);
    world.settle();
    assert!(world.state(world.up()[0]).slices.groups() < grown);
    work(&mut world, &mut judge, 20, 40);
    end(&mut world, &mut judge);
    let (reads, stale) = judge.stale(&world, &Written::of(&world));
    assert!(reads > 20 && stale == 0, "{stale} of {reads} reads were stale");
}

/// A world in which one node was away for longer than tombstones are kept: it has a key that all
/// others have deleted and purged.
fn been_away(seed: u64) -> (World, NodeId) {
    left(seed, |world, away| world.stop(away))
}

fn left(seed: u64, leaves: impl FnOnce(&mut World, NodeId)) -> (World, NodeId) {
    let mut world = World::new(12, Level::Strong, seed);
    (world.settings.grace, world.settings.window) = (40, 20);
    let nodes = world.up();
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(40);
    let away = nodes.into_iter().find(|node| has_x(&world, *node)).expect("somebody has it");
    leaves(&mut world, away);
    world.run(30);
    let deleted = world.ask(awake(&world), "x", What::Delete);
    assert!(matches!(world.wait(deleted), Outcome::Deleted { .. }));
    for number in 0..70 {
        let node = awake(&world);
        world.ask(node, &format!("y{number}"), put("1"));
        world.run(2);
    }
    world.run(60);
    (world, away)
}

/// Nothing happens at a node for long.
fn sleep(world: &mut World, node: NodeId) {
    let until = world.now + Span(world.settings.round.0 * 500);
    world.hosts.get_mut(&node).expect("it is there").asleep_until = until;
}

/// It goes on with what has come.
fn wake(world: &mut World, node: NodeId) {
    while world.hosts[&node].asleep_until > world.now {
        world.run(10);
    }
    world.run(30);
}

fn awake(world: &World) -> NodeId {
    let is_awake = |node: &NodeId| world.hosts[node].asleep_until <= world.now;
    world.up().into_iter().find(is_awake).expect("some are awake")
}

fn has_x(world: &World, node: NodeId) -> bool {
    let key = wire_key(b"x");
    world.state(node).store.held(&key, None).is_some()
}

fn nobody_has_it_again(world: &mut World) {
    world.settle();
    world.run(60);
    let back = world.up().into_iter().filter(|node| has_x(world, *node)).count();
    assert_eq!(back, 0, "{back} nodes have again what was deleted");
    Judge::quiescent(world);
}

/// Who was away for longer than tombstones are kept may have what all others have purged.
#[test]
fn who_was_away_for_too_long_brings_nothing_back() {
    let (mut world, away) = been_away(23);
    let mut judge = Judge::default();
    world.start(away);
    assert!(has_x(&world, away), "it finds it on its disk");
    // Meanwhile members compare what they have, with it too.
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotB(_))));
    world.run(60);
    world.cut = None;
    nobody_has_it_again(&mut world);
    judge.look(&world);
}

/// Who joins has not all of its range, and nothing to say of it.
#[test]
fn who_joins_answers_no_comparison() {
    let (mut world, away) = been_away(23);
    let node = awake(&world);
    world.start(away);
    let range = world.state(node).range().expect("it has a slice");
    let sums = std::vec![0; range.parts_usual()];
    let compare = Message::Compare { number: 1, range, sums, ids: 0, last: None, forgotten: None };
    let answers =
        |message: &Message| matches!(message, Message::Leaves { .. } | Message::Equal { .. });
    let told = world.heard(|world| world.say(away, node, compare.clone()));
    assert!(told.iter().any(answers), "who is ready tells");
    let told = world.heard(|world| world.say(node, away, compare));
    assert!(!told.iter().any(answers), "{told:?}");
}

/// Also if all of them start at one time, so that nobody is ready to say how late it is.
#[test]
fn who_was_away_for_too_long_brings_nothing_back_when_all_start() {
    let (mut world, away) = been_away(24);
    let others: Vec<NodeId> = world.up().into_iter().filter(|node| *node != away).collect();
    others.iter().for_each(|node| world.stop(*node));
    world.start(away);
    others.iter().for_each(|node| world.start(*node));
    assert!(has_x(&world, away), "it finds it on its disk");
    nobody_has_it_again(&mut world);
}

/// A node stood still for longer than tombstones are kept, and handles what has come before it sees
/// that: questions that were asked long ago, or just now.
#[test]
fn who_stood_still_for_too_long_answers_with_nothing_that_is_taken() {
    let (mut world, away) = left(25, sleep);
    let key = wire_key(b"x");
    let node = world.holders(&key).into_iter().find(|node| *node != away);
    let node = node.expect("others have its slice, too");
    assert!(has_x(&world, away) && !has_x(&world, node) && world.state(away).is_whole());
    let page = Page { number: 1, leaf: leaf(position(&key)), until: None };
    let listed = Message::Listed { page, after: None, held: Vec::new() };
    let wanted = world.state(away).holes.places();
    let mut answers = world.heard(|world| world.say(node, away, listed));
    answers.extend(world.heard(|world| world.say(node, away, Message::MissingA(wanted))));
    let has_it = |answer: &&Message| match answer {
        Message::Records { records, .. } => records.iter().any(|record| record.key == key),
        Message::MissingB(found) => {
            found.iter().any(|found| found.records.iter().any(|record| record.key == key))
        }
        _ => false,
    };
    assert_eq!(answers.iter().filter(has_it).count(), 2, "{answers:?}");
    for answer in answers {
        world.say(away, node, answer);
        assert!(!has_x(&world, node), "it takes what it has purged");
    }
    wake(&mut world, away);
    nobody_has_it_again(&mut world);
}

/// A node asked for what it lacks, and stood still before the answer came. It takes it, as it is as
/// old itself, and drops it with all that it has.
#[test]
fn what_was_asked_for_before_a_pause_brings_nothing_back() {
    let (mut world, away) = left(26, sleep);
    let (key, heard) = (wire_key(b"x"), world.state(away).last.expect("it has come far").time);
    let held = *world.state(away).store.held(&key, None).expect("it has it");
    let value = Some(Bytes::from_static(b"1"));
    let record = Record { key: key.clone(), version: held.version, id: held.id, value };
    world.with_host(away, |engine, cx| {
        engine.state.store.begin();
        engine.state.store.drop_range(&Range::ALL, usize::MAX, &mut engine.state.writes);
        engine.flush(cx);
    });
    let (ids, wanted) = (Vec::new(), Vec::new());
    let records = Vec::from([record]);
    let answer = Message::Records { page: None, heard, records, ids, wanted };
    world.say(awake(&world), away, answer.clone());
    assert!(has_x(&world, away));
    wake(&mut world, away);
    nobody_has_it_again(&mut world);
    // Once more, when it has joined.
    world.say(awake(&world), away, answer);
    assert!(!has_x(&world, away));
}

/// Who hands out what it has given up knows no more of that than when it did.
#[test]
fn what_is_handed_out_of_a_range_that_was_given_up_is_as_old_as_that() {
    let mut world = World::new(24, Level::Strong, 58);
    world.settle();
    let (node, other) = (world.up()[0], world.up()[1]);
    let key = of_others(&world, node);
    put_at(&mut world, node, &key, 3);
    give_up(&mut world, node);
    let heard = LogicalTime(9);
    world.with_host(node, |engine, _| engine.state.last = Some(event(heard.0)));
    let version = world.state(node).store.held(&key, None).expect("it is here").version;
    let (records, ids, wanted) = (Vec::new(), Vec::new(), Vec::from([(key, version)]));
    let question = Message::Records { page: None, heard, records, ids, wanted };
    let answers = world.heard(|world| world.say(other, node, question));
    let [Message::Records { heard: told, records, .. }] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert!(records.len() == 1 && *told == LogicalTime(3) && heard > *told);
}
