//! Joins, crashes, restarts and departures are heard of by all.

use super::world::{World, node};
use crate::gossip::record::{Load, News};
use crate::overlay::message::Message;
use quorate_kernel::ids::{Incarnation, Start};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use std::vec::Vec;

const ALIVE: Option<(Standing, bool)> = Some((Standing::Up, false));

fn all_see(world: &World, what: impl Fn(usize) -> Option<(Standing, bool)>) -> bool {
    let up = (0..world.len()).filter(|host| world.is_up(*host));
    let sees = |host: usize| (0..world.len()).all(|other| world.sees(host, other) == what(other));
    up.into_iter().all(sees)
}

#[test]
fn a_host_that_joins_is_known_to_all_and_knows_all() {
    let mut world = World::founded(1, 20);
    assert!(all_see(&world, |_| ALIVE));
    world.add(&[3]);
    let took = world.until(Span::secs(10), |world| all_see(world, |_| ALIVE));
    assert!(took.is_some_and(|took| took.0 <= Span::secs(4).0), "it took {took:?}");
}

#[test]
fn many_may_join_at_once_by_one_seed_and_under_loss() {
    let mut world = World::new(2);
    world.loss_ppm = 100_000;
    world.add(&[]);
    (0..40).for_each(|_| world.add(&[0]));
    // At such a loss one ping in five finds no answer, so somebody is suspected now and then.
    let is_known = |world: &World, host| (0..41).all(|other| world.sees(host, other).is_some());
    let all_known = |world: &World| (0..41).all(|host| is_known(world, host));
    let took = world.until(Span::secs(60), all_known);
    assert!(took.is_some_and(|took| took.0 <= Span::secs(10).0), "it took {took:?}");
    world.loss_ppm = 0;
    let took = world.until(Span::secs(60), |world| all_see(world, |_| ALIVE));
    assert!(took.is_some_and(|took| took.0 <= Span::secs(10).0), "it took {took:?}");
}

#[test]
fn a_crash_is_suspected_by_all_within_its_bound() {
    let mut world = World::founded(3, 30);
    world.crash(7);
    let seen = |other| if other == 7 { Some((Standing::Up, true)) } else { ALIVE };
    let took = world.until(Span::secs(20), |world| all_see(world, seen));
    assert!(took.is_some_and(|took| took.0 <= Span::secs(6).0), "it took {took:?}");
    world.run(Span::secs(60));
    assert!(all_see(&world, seen), "it stays so");
}

#[test]
fn several_neighbours_may_crash_at_once() {
    let mut world = World::founded(4, 30);
    (5..15).for_each(|host| world.crash(host));
    let seen = |other| Some((Standing::Up, (5..15).contains(&other)));
    let took = world.until(Span::secs(60), |world| all_see(world, seen));
    assert!(took.is_some_and(|took| took.0 <= Span::secs(30).0), "it took {took:?}");
}

#[test]
fn a_restarted_host_is_believed_and_its_older_start_is_not() {
    let mut world = World::founded(5, 10);
    world.crash(4);
    world.run(Span::secs(8));
    world.start(4);
    let newest = |world: &World| (0..10).all(|host| world.start_seen(host, 4) == Some(2));
    assert!(world.until(Span::secs(5), newest).is_some());
    assert!(world.until(Span::secs(5), |world| all_see(world, |_| ALIVE)).is_some());
    let mut old = world.overlay(0).state.record(node(4)).expect("it is known").clone();
    old.who = Incarnation { node: node(4), start: Start(1) };
    old.version.0 = 1 << 40;
    let message = Message::News { news: Vec::from([News::of(old)]) };
    world.inject(Incarnation { node: node(9), start: Start(1) }, 0, message);
    world.run(Span::secs(5));
    assert!(newest(&world));
}

#[test]
fn a_restart_keeps_what_was_known() {
    let mut world = World::founded(6, 10);
    (0..10).for_each(|host| world.crash(host));
    (0..10).for_each(|host| world.start(host));
    let took = world.until(Span::secs(20), |world| all_see(world, |_| ALIVE));
    assert!(took.is_some());
    assert!((0..10).all(|host| world.ring(host).tokens().len() == 20));
}

#[test]
fn who_restarts_remembers_a_host_from_the_moment_it_heard_of_it() {
    for seed in 0..10 {
        let mut world = World::founded(seed, 3);
        world.add(&[0]);
        let known = |world: &World| (0..3).all(|host| world.start_seen(host, 3) == Some(1));
        assert!(world.until(Span::secs(10), known).is_some());
        // Views name it by now. Whoever could tell of it restarts, and it is gone.
        (0..4).for_each(|host| world.crash(host));
        (0..3).for_each(|host| world.start(host));
        let gone = |world: &World| all_see(world, |host| Some((Standing::Up, host == 3)));
        assert!(world.until(Span::secs(30), gone).is_some(), "seed {seed}: it is suspected");
    }
}

#[test]
fn who_has_left_never_comes_back() {
    let mut world = World::founded(7, 10);
    assert_eq!(
        world.order(2, Control::Drain { node: node(5), undo: false, replicas: 3 }),
        Outcome::Noted
    );
    world.run(Span::secs(5));
    assert!((0..10).all(|host| world.sees(host, 5) == Some((Standing::Leaving, false))));
    assert_eq!(world.order(3, Control::Remove { node: node(5), force: false }), Outcome::Noted);
    let left = |world: &World| {
        (0..10)
            .all(|host| world.sees(host, 5).is_some_and(|(standing, _)| standing == Standing::Left))
    };
    assert!(world.until(Span::secs(5), left).is_some(), "all hear of it, it too");
    world.crash(5);
    world.start(5);
    world.run(Span::secs(30));
    assert!(left(&world), "a restart changes nothing");
    // Even with its directory lost it finds out that it has left.
    world.crash(5);
    world.wipe(5);
    world.start(5);
    world.run(Span::secs(30));
    assert!(left(&world));
    let before = world.sent()[5];
    world.run(Span::secs(30));
    assert_eq!(world.sent()[5], before, "it says nothing any more");
}

#[test]
fn a_mark_of_leaving_outlives_the_restart_of_everybody() {
    let mut world = World::founded(8, 6);
    world.crash(5);
    world.run(Span::secs(10));
    assert_eq!(world.order(0, Control::Remove { node: node(5), force: false }), Outcome::Noted);
    world.crash(0);
    world.start(0);
    let left = |world: &World| {
        (0..5)
            .all(|host| world.sees(host, 5).is_some_and(|(standing, _)| standing == Standing::Left))
    };
    assert!(world.until(Span::secs(20), left).is_some(), "its word was durable before the answer");
}

/// What a node sends when nothing happens does not grow with the cluster.
#[test]
fn messages_of_a_node_do_not_depend_on_the_size_of_the_cluster() {
    let rate = |hosts: usize| {
        let mut world = World::founded(9, hosts);
        world.run(Span::secs(10));
        let before: u64 = world.sent().iter().sum();
        world.run(Span::secs(15));
        (world.sent().iter().sum::<u64>() - before) / hosts as u64
    };
    let (few, many) = (rate(25), rate(100));
    assert!(many * 10 <= few * 13 && few * 10 <= many * 13, "{few} against {many} in 15 s");
}

#[test]
fn a_copy_of_the_directory_elsewhere_is_noticed_and_begins_no_race() {
    let mut world = World::founded(10, 6);
    let mut copy = world.overlay(3).state.own().record.as_ref().clone();
    copy.version.0 += 5;
    copy.address = "elsewhere:7000".into();
    let message = Message::News { news: Vec::from([News::of(copy)]) };
    world.inject(Incarnation { node: node(1), start: Start(1) }, 3, message);
    world.run(Span::secs(10));
    assert_eq!(world.overlay(3).state.counters.clones, 1);
    assert_eq!(world.overlay(3).state.counters.refutations, 0);
}

#[test]
fn a_load_is_told_in_steps() {
    let mut world = World::founded(19, 6);
    let load = |bytes| Load { keys: 5000, bytes, operations: 100 };
    world.overlay_mut(2).set_load(load(100 << 20));
    world.run(Span::secs(15));
    let told = |world: &World, host: usize| {
        world.overlay(host).state.record(node(2)).expect("it is known").load.bytes
    };
    assert!((0..6).all(|host| told(&world, host) == 100 << 20));
    world.overlay_mut(2).set_load(load(110 << 20));
    world.run(Span::secs(15));
    assert!((0..6).all(|host| told(&world, host) == 100 << 20), "less than an eighth is no news");
}

#[test]
fn of_two_hosts_in_one_place_the_higher_node_takes_another() {
    let mut world = World::founded(21, 4);
    let (low, high) = if node(0) < node(1) { (0, 1) } else { (1, 0) };
    let tokens = |world: &World, host: usize| world.overlay(host).state.own().record.tokens.clone();
    let meet = |world: &mut World, from: usize, at: usize| {
        let mut record = world.overlay(from).state.own().record.as_ref().clone();
        record.version.0 += 1;
        record.tokens = tokens(world, at);
        let message = Message::News { news: Vec::from([News::of(record)]) };
        world.inject(Incarnation { node: node(2), start: Start(1) }, at, message);
    };
    let (kept, lost) = (tokens(&world, low), tokens(&world, high));
    meet(&mut world, high, low);
    assert_eq!(tokens(&world, low), kept, "the lower node has it");
    meet(&mut world, low, high);
    let moved = tokens(&world, high);
    assert_eq!(moved.len(), lost.len());
    assert!(moved.iter().all(|token| !lost.contains(token)));
}
