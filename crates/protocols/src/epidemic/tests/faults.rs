//! Faults of the network, and of nodes.

use super::calm::{end, refused, work};
use super::judge::{Judge, Written};
use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::Message;
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::position;
use crate::epto;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::{Span, Time};
use std::boxed::Box;
use std::collections::BTreeSet;
use std::format;
use std::vec::Vec;

fn total(world: &World, of: impl Fn(&crate::epidemic::state::Counters) -> u64) -> u64 {
    world.up().into_iter().map(|node| of(&world.state(node).counters)).sum()
}

#[test]
fn lost_messages_leave_no_stale_read_and_no_difference() {
    for (seed, loss_ppm) in [(1, 10_000), (2, 50_000), (3, 200_000)] {
        let (mut world, mut judge) = (World::new(40, Level::Strong, seed), Judge::default());
        world.loss_ppm = loss_ppm;
        world.settings.surviving_ppm = 1_000_000 - loss_ppm;
        let nodes = world.up();
        nodes.into_iter().for_each(|node| world.start(node));
        world.settle();
        work(&mut world, &mut judge, 40, 8);
        end(&mut world, &mut judge);
        let (reads, stale) = judge.stale(&world, &Written::of(&world));
        assert!(reads > 20 && stale == 0, "{stale} of {reads} reads were stale");
        assert!(refused(&world) <= world.answers.len() / 20, "nearly all are answered");
    }
}

/// A node hears no balls for some rounds, fewer than make it lose its place.
fn deafen(world: &mut World, deaf: NodeId) {
    world.cut = Some(Box::new(move |_, to, message| {
        to == deaf && matches!(message, Message::Epto(epto::Message::Ball(_)))
    }));
}

#[test]
fn who_has_missed_events_finds_it_out_and_asks_what_they_did() {
    let (mut world, mut judge) = (World::new(24, Level::Strong, 11), Judge::default());
    // What repair would bring is not to be seen here.
    (world.settings.repair_rounds, world.settings.acks) = (1_000_000, 1);
    let nodes = world.up();
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    let key = wire_key(b"x");
    let holder = nodes.iter().find(|node| world.state(**node).is_ready(position(&key)));
    let deaf = *holder.expect("somebody has it");
    let is_other = |node: &&NodeId| !world.state(**node).is_mine(position(&key));
    let source = *nodes.iter().find(is_other).expect("there are others");
    world.ask(source, "x", put("1"));
    world.run(40);
    deafen(&mut world, deaf);
    let missed = world.ask(source, "x", put("2"));
    world.run(30);
    world.cut = None;
    assert!(matches!(world.wait(missed), Outcome::Written { .. }));
    let state = world.state(deaf);
    let newest = state.store.held(&key, None).map(|held| held.version);
    let others = nodes.iter().filter(|node| **node != deaf);
    let others: BTreeSet<_> = others
        .filter(|node| world.state(**node).is_ready(position(&key)))
        .map(|node| world.state(*node).store.held(&key, None).map(|held| held.version))
        .collect();
    assert!(!others.contains(&newest), "it has missed the second write");
    let before = world.state(deaf).counters.holes;
    // A read of the same source has its turn: the hole is seen before it is answered.
    // Nobody else answers, so it is its own word that counts.
    world.cut = Some(Box::new(move |from, _, message| {
        from != deaf && matches!(message, Message::Did { .. })
    }));
    let ticket = world.ask(source, "x", What::Get);
    let outcome = world.wait(ticket);
    world.cut = None;
    assert_eq!(value(&outcome), Some(Bytes::from_static(b"2")));
    world.run(20);
    let state = world.state(deaf);
    assert!(state.counters.holes > before && state.counters.filled > 0, "{:?}", state.counters);
    let newest = state.store.held(&key, None).map(|held| held.version);
    assert!(others.contains(&newest), "it is filled");
    judge.look(&world);
    let (_, stale) = judge.stale(&world, &Written::of(&world));
    assert_eq!(stale, 0);
}

#[test]
fn repair_makes_members_equal_where_events_were_missed() {
    let (mut world, mut judge) = (World::new(24, Level::Strong, 16), Judge::default());
    world.settle();
    let deaf = world.any();
    for round in 0..8 {
        deafen(&mut world, deaf);
        let node = world.any();
        world.ask(node, &format!("k{round}"), put("v"));
        world.run(3);
    }
    world.run(30);
    world.cut = None;
    end(&mut world, &mut judge);
    assert!(total(&world, |counters| counters.repaired) > 0);
}

#[test]
fn who_stood_still_answers_nothing_until_it_has_joined_again() {
    let (mut world, mut judge) = (World::new(30, Level::Strong, 13), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 10, 4);
    let sleeper = world.any();
    let until = world.now + Span(world.settings.round.0 * 80);
    world.hosts.get_mut(&sleeper).expect("it is there").asleep_until = until;
    work(&mut world, &mut judge, 78, 4);
    let joins = world.state(sleeper).counters.joins;
    let before = world.state(sleeper).delivered.len();
    while world.now < Time(until.0 + world.settings.round.0 * 3) {
        work(&mut world, &mut judge, 1, 4);
    }
    assert!(!world.state(sleeper).is_whole(), "it has lost its place");
    assert_eq!(world.state(sleeper).delivered.len(), before, "its queue is not delivered");
    work(&mut world, &mut judge, 40, 4);
    end(&mut world, &mut judge);
    assert!(world.state(sleeper).counters.joins > joins);
    let (reads, stale) = judge.stale(&world, &Written::of(&world));
    assert!(reads > 50 && stale == 0, "{stale} of {reads} reads were stale");
}

#[test]
fn restarted_nodes_keep_what_they_have_and_join() {
    let (mut world, mut judge) = (World::new(30, Level::Strong, 14), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 10, 6);
    for _ in 0..4 {
        let node = world.any();
        world.stop(node);
        work(&mut world, &mut judge, 8, 6);
        world.start(node);
        let keys = world.state(node).store.len();
        let stored = world.hosts[&node].disk.0.keys().filter(|key| key[0] == b'k').count();
        assert_eq!(keys, stored, "what is on the disk is known");
        assert!(world.state(node).ready.is_none(), "nothing is answered at once");
        work(&mut world, &mut judge, 8, 6);
    }
    world.settle();
    end(&mut world, &mut judge);
    let (reads, stale) = judge.stale(&world, &Written::of(&world));
    assert!(reads > 20 && stale == 0, "{stale} of {reads} reads were stale");
}

#[test]
fn a_cluster_that_was_switched_off_has_what_it_had() {
    let (mut world, mut judge) = (World::new(24, Level::Strong, 15), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 20, 8);
    world.run(60);
    judge.look(&world);
    let nodes = world.up();
    nodes.iter().for_each(|node| world.stop(*node));
    world.run(10);
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    work(&mut world, &mut judge, 10, 8);
    end(&mut world, &mut judge);
    let (_, stale) = judge.stale(&world, &Written::of(&world));
    assert_eq!(stale, 0);
}

/// Both sides go on. When the division ends larger versions win, everywhere.
#[test]
fn after_a_division_all_have_the_newest_of_both_sides() {
    let (mut world, mut judge) = (World::new(40, Level::Strong, 16), Judge::default());
    world.settle();
    let half: BTreeSet<NodeId> = world.up().into_iter().step_by(2).collect();
    let is_cut =
        move |from: NodeId, to: NodeId, _: &Message| half.contains(&from) != half.contains(&to);
    world.cut = Some(Box::new(is_cut));
    // Shorter than it takes to forget members.
    work(&mut world, &mut judge, 12, 6);
    world.cut = None;
    work(&mut world, &mut judge, 12, 6);
    world.settle();
    end(&mut world, &mut judge);
}

#[test]
fn half_of_a_slice_may_die_at_once() {
    let (mut world, mut judge) = (World::new(40, Level::Strong, 17), Judge::default());
    world.settle();
    work(&mut world, &mut judge, 20, 12);
    world.run(40);
    let node = world.any();
    let state = world.state(node);
    let members: Vec<NodeId> = state.slices.members().iter().map(|peer| peer.who.node).collect();
    members.iter().step_by(2).for_each(|member| world.kill(*member));
    work(&mut world, &mut judge, 20, 12);
    world.settle();
    end(&mut world, &mut judge);
}

#[test]
fn a_write_that_nobody_has_acknowledged_is_broadcast_again() {
    let (mut world, mut judge) = (World::new(24, Level::Strong, 18), Judge::default());
    world.settle();
    let node = world.any();
    world.cut = Some(Box::new(move |from, _, _| from == node));
    let ticket = world.ask(node, "x", put("1"));
    // It is said anew by its source as long as it is young.
    world.run(30);
    world.cut = None;
    assert!(matches!(world.wait(ticket), Outcome::Written { .. }));
    assert!(world.state(node).counters.again > 0);
    judge.look(&world);
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"1")));
}

/// Neither side has any of the other in its views then.
#[test]
fn a_long_division_ends_in_one_cluster() {
    let (mut world, mut judge) = (World::new(24, Level::Strong, 19), Judge::default());
    world.settle();
    let half: BTreeSet<NodeId> = world.up().into_iter().step_by(2).collect();
    let sides = half.clone();
    let is_cut =
        move |from: NodeId, to: NodeId, _: &Message| sides.contains(&from) != sides.contains(&to);
    world.cut = Some(Box::new(is_cut));
    work(&mut world, &mut judge, 150, 6);
    let knows_both = |world: &World, node: &NodeId| {
        let view = world.state(*node).cyclon.view().iter();
        let count = view.filter(|peer| half.contains(&peer.who.node) != half.contains(node));
        count.count() > 0
    };
    assert!(!world.up().iter().any(|node| knows_both(&world, node)), "they are far apart");
    world.cut = None;
    world.run(60);
    assert!(world.up().iter().all(|node| knows_both(&world, node)), "they have met");
    world.settle();
    end(&mut world, &mut judge);
}

/// K is what it takes for as many balls to arrive, whatever the settings say.
#[test]
fn measured_loss_raises_the_fanout_and_ends_with_it() {
    let mut world = World::new(40, Level::Strong, 20);
    world.settle();
    let fanouts = |world: &World| {
        let nodes = world.up();
        let all = nodes.iter().map(|node| world.state(*node).epto.parameters().fanout);
        all.sum::<usize>() / nodes.len()
    };
    let usual = fanouts(&world);
    world.loss_ppm = 300_000;
    world.run(300);
    let raised = fanouts(&world);
    assert!(raised >= usual + usual / 4, "{usual} neighbours, then {raised}");
    world.loss_ppm = 0;
    world.run(320);
    assert!(fanouts(&world) <= usual + 1, "{} neighbours in the end", fanouts(&world));
}

/// Its own pauses are none of the network.
#[test]
fn who_stands_still_does_not_take_that_for_latency() {
    let mut world = World::new(12, Level::Strong, 21);
    world.settle();
    let node = world.any();
    for _ in 0..8 {
        world.run(7);
        let until = world.now + Span(world.settings.round.0 * 3);
        world.hosts.get_mut(&node).expect("it is there").asleep_until = until;
        world.run(3);
    }
    world.run(40);
    let latency = world.state(node).measured.latency();
    assert!(latency > Span(0) && latency <= world.delay, "{latency:?} one way");
    assert!(world.state(node).measured.surviving_ppm() > Some(900_000), "nothing is lost");
}

/// An operator makes rounds much shorter: no node has stood still.
#[test]
fn whoever_makes_rounds_shorter_costs_nobody_its_place() {
    let mut world = World::new(4, Level::Strong, 92);
    world.settle();
    for node in world.up() {
        world.with_host(node, |engine, _| engine.settings.round = Span::millis(5));
    }
    world.run(1);
    for node in world.up() {
        assert_eq!(world.state(node).epto.counters().places_lost, 0);
    }
}
