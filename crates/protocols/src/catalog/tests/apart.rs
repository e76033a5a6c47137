//! Partitions, newcomers, members that come and go, partitions.

use super::world::{World, create, node};
use crate::reconfigure::Ground;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace, KeyspaceOrder};
use quorate_kernel::limits::DECREES_KEPT;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use std::format;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

const SOON: Span = Span::secs(3);

pub fn members(world: &World, host: usize) -> Vec<NodeId> {
    let lane = world.hosts[host].lane.as_ref().expect("it is up");
    lane.state.stored.catalog.as_ref().expect("it has learnt").view().members().to_vec()
}

fn keyspace(world: &World, host: usize, index: usize) -> Arc<Keyspace> {
    Arc::clone(&world.hosts[host].told.as_ref().expect("it was told").list[index].0)
}

#[test]
fn the_side_with_a_majority_goes_on_and_the_other_serves_what_it_has() {
    let mut world = World::founded(1, 5);
    world.run(SOON);
    assert_eq!(members(&world, 0).len(), 5, "five of five");
    world.hosts[3].side = 1;
    world.hosts[4].side = 1;
    let cut = world.order(4, create("x", "groups"), SOON);
    let made = world.order(0, create("x", "groups"), SOON);
    world.run(Span::secs(5));
    assert_eq!(world.answers[&made], Outcome::Noted);
    let refused = Outcome::Refused(Refusal::NoQuorum { reached: 2, needed: 3 });
    assert_eq!(world.answers[&cut], refused, "nothing was changed");
    assert_eq!(world.names(4), ["default"]);
    world.hosts[3].side = 0;
    world.hosts[4].side = 0;
    world.run(Span::secs(10));
    assert!((0..5).all(|host| world.names(host) == ["default", "x"]));
}

#[test]
fn a_reply_to_an_earlier_question_says_nothing_of_the_chain_now() {
    let mut world = World::founded(7, 3);
    world.run(SOON);
    let first = world.order(0, create("default", "groups"), SOON);
    let mut late = Vec::new();
    while !world.answers.contains_key(&first) {
        late.extend(world.hold(2, 0));
        world.run(Span(250_000));
    }
    late.extend(world.hold(2, 0));
    assert!(!late.is_empty(), "host 2 has replied to the question");
    world.hosts[0].side = 1;
    let dropped = world.order(1, KeyspaceOrder::Drop { name: "default".to_string() }, SOON);
    world.run(SOON);
    assert_eq!(world.answers[&dropped], Outcome::Noted);
    // The name is free, and was so before this began. Host 0 cannot know it.
    let second = world.order(0, create("default", "groups"), SOON);
    world.run(Span::millis(10));
    world.deliver(late, 0);
    world.run(SOON);
    let refused = Outcome::Refused(Refusal::NoQuorum { reached: 1, needed: 2 });
    assert_eq!(world.answers[&second], refused);
}

/// What a member has accepted may be decided, and its proposer's client told so: until it knows, it
/// does not say that nothing more was decided.
#[test]
fn who_has_accepted_something_confirms_nothing() {
    let mut world = World::founded(8, 3);
    world.run(SOON);
    world.hosts[0].side = 1;
    let dropped = world.order(1, KeyspaceOrder::Drop { name: "default".to_string() }, SOON);
    while !world.answers.contains_key(&dropped) {
        world.run(Span(250_000));
    }
    assert_eq!(world.answers[&dropped], Outcome::Noted);
    // Nobody else hears that it was decided, and who knows it is gone.
    world.drop_messages();
    world.crash(1);
    assert_eq!((world.version(0), world.version(2)), (2, 2), "both know the chain before it");
    world.hosts[0].side = 0;
    // The name is free: nobody may be told that it is taken.
    let made = world.order(0, create("default", "groups"), Span::secs(20));
    world.run(Span::secs(20));
    assert_eq!(world.answers[&made], Outcome::Noted);
}

/// Three hosts of which those but one have accepted a decree, and nobody was told so.
fn half_decided(seed: u64, left_out: usize) -> World {
    let mut world = World::founded(seed, 3);
    world.run(SOON);
    world.hosts[left_out].side = 1;
    world.order(1, create("x", "groups"), SOON);
    let has_accepted = |world: &World, host: usize| {
        let lane = world.hosts[host].lane.as_ref().expect("it is up");
        lane.state.stored.acceptor.accepted().is_some()
    };
    let others = (0..3).filter(|host| *host != left_out);
    while !others.clone().all(|host| has_accepted(&world, host)) {
        world.run(Span(250_000));
    }
    world.run(Span::millis(1));
    world.drop_messages();
    world.crash(1);
    world.start(1);
    world.hosts[left_out].side = 0;
    assert!((0..3).all(|host| world.version(host) == 2), "nobody knows what is decided");
    world
}

#[test]
fn what_was_decided_is_completed_by_members_that_have_accepted_it() {
    for left_out in [0, 2] {
        let mut world = half_decided(8, left_out);
        world.run(Span::secs(10));
        assert!((0..3).all(|host| world.names(host) == ["default", "x"]), "without {left_out}");
    }
}

#[test]
fn questions_that_wait_for_what_was_accepted_have_it_completed() {
    for left_out in [0, 2] {
        let mut world = half_decided(9, left_out);
        let order = |host| world.order(host, create("default", "groups"), Span::secs(20));
        let asked: Vec<_> = (0..3).map(order).collect();
        world.run(Span::secs(10));
        let exists = CatalogRefusal::Exists { name: "default".to_string() };
        let refused = Outcome::Refused(Refusal::Catalog(exists));
        assert!(asked.iter().all(|ticket| world.answers.get(ticket) == Some(&refused)));
        assert!((0..3).all(|host| world.names(host) == ["default", "x"]), "without {left_out}");
    }
}

#[test]
fn two_sides_of_a_split_network_cannot_both_replace_a_partition() {
    let mut world = World::founded(2, 7);
    world.run(SOON);
    let made = world.order(0, create("p", "places"), SOON);
    world.run(SOON);
    assert_eq!(world.answers[&made], Outcome::Noted);
    let before = keyspace(&world, 0, 1);
    for host in 4..7 {
        world.hosts[host].side = 1;
    }
    world.run(SOON);
    let free = |hosts: core::ops::Range<usize>| {
        let is_far = |node: &NodeId| {
            let near = crate::catalog::partitions::seats::near(before.partitions.len(), 3, 0);
            before.partitions[0].node != *node
                && near.into_iter().all(|other| before.partitions[other].node != *node)
        };
        hosts.map(node).find(is_far)
    };
    let replace = |to| KeyspaceOrder::Replace { name: "p".to_string(), partition: 0, to };
    let tickets: Vec<_> = [(0, free(0..4)), (6, free(4..7))]
        .into_iter()
        .filter_map(|(host, to)| Some(world.order(host, replace(to?), SOON)))
        .collect();
    assert_eq!(tickets.len(), 2, "both sides have a host for it");
    world.run(Span::secs(4));
    let done = tickets.iter().filter(|ticket| world.answers[*ticket] == Outcome::Noted).count();
    assert!(done <= 1, "{:?}", world.answers);
    (4..7).for_each(|host| world.hosts[host].side = 0);
    world.run(Span::secs(10));
    let after = keyspace(&world, 0, 1);
    assert!((0..7).all(|host| keyspace(&world, host, 1) == after));
    assert_eq!(after.partitions[0] != before.partitions[0], done == 1);
}

#[test]
fn a_host_that_joins_learns_everything_and_one_far_behind_too() {
    let mut world = World::founded(3, 3);
    world.run(SOON);
    world.crash(2);
    world.run(SOON);
    for round in 0..DECREES_KEPT / 2 + 2 {
        let host = round % 2;
        let made = world.order(host, create(&format!("k{round}"), "groups"), SOON);
        world.run(Span::millis(100));
        assert_eq!(world.answers[&made], Outcome::Noted, "round {round}");
        if round > 3 {
            world.order(host, KeyspaceOrder::Drop { name: format!("k{round}") }, SOON);
            world.run(Span::millis(100));
        }
    }
    world.start(2);
    world.add(None);
    world.run(Span::secs(10));
    let (version, names) = (world.version(0), world.names(0));
    assert!(version > DECREES_KEPT as u64);
    for host in 2..4 {
        assert_eq!((world.version(host), world.names(host)), (version, names.clone()));
        let lane = world.hosts[host].lane.as_ref().expect("it is up");
        assert_eq!(lane.state.snapshots, 1, "host {host} got the whole");
    }
    world.crash(3);
    world.start(3);
    world.run(Span::millis(100));
    assert_eq!(world.names(3), names, "what it learnt is stored");
}

#[test]
fn an_order_at_a_host_that_knows_nothing_yet_is_refused() {
    let mut world = World::new(4);
    world.add(None);
    let ticket = world.order(0, create("x", "groups"), SOON);
    world.run(SOON);
    let refused = Outcome::Refused(Refusal::Catalog(CatalogRefusal::NotLearnt));
    assert_eq!(world.answers[&ticket], refused);
}

#[test]
fn members_that_die_or_leave_are_replaced_and_the_group_grows_with_the_cluster() {
    let mut world = World::founded(5, 3);
    world.run(SOON);
    assert_eq!(members(&world, 0), [0, 1, 2].map(node));
    world.add(None);
    world.run(Span::secs(10));
    world.crash(1);
    world.run(Span::secs(10));
    assert_eq!(members(&world, 0), [0, 2, 3].map(node), "a dead member is replaced");
    world.hosts[2].standing = Standing::Leaving;
    world.add(None);
    world.run(Span::secs(10));
    assert_eq!(members(&world, 0), [0, 3, 4].map(node), "and one that leaves");
    world.start(1);
    world.add(None);
    world.run(Span::secs(20));
    assert_eq!(members(&world, 0).len(), 5, "five of five that take part");
    assert!((0..6).all(|host| world.version(host) == world.version(0)));
}

#[test]
fn what_was_accepted_and_left_alone_is_completed() {
    let mut world = World::founded(6, 3);
    world.run(SOON);
    let made = world.order(2, create("x", "groups"), SOON);
    // The members accept, the proposer hears of it, answers and dies before anybody else does.
    while !world.answers.contains_key(&made) {
        world.run(Span::millis(1));
    }
    assert_eq!(world.answers[&made], Outcome::Noted);
    world.crash(2);
    world.drop_messages();
    assert!((0..2).all(|host| world.version(host) == 2), "they have not heard that it is decided");
    world.run(Span::secs(10));
    assert!((0..2).all(|host| world.names(host) == ["default", "x"]));
}

#[test]
fn partitions_of_a_host_that_leaves_are_replaced_one_by_one_as_they_settle() {
    let mut world = World::founded(7, 5);
    world.run(SOON);
    let made = world.order(0, create("p", "places"), SOON);
    world.run(SOON);
    assert_eq!(world.answers[&made], Outcome::Noted);
    let before = keyspace(&world, 0, 1);
    assert_eq!(before.partitions.len(), 9, "eight, rounded up to a multiple of three");
    let mine =
        |keyspace: &Keyspace| keyspace.partitions.iter().filter(|p| p.node == node(1)).count();
    assert!(mine(&before) > 0);
    world.hosts[1].standing = Standing::Leaving;
    let settle = |world: &mut World| {
        for _ in 0..30 {
            world.run(Span::secs(1));
            let now = keyspace(world, 0, 1);
            let open = (0..).zip(&now.partitions).filter(|(_, place)| !place.is_settled);
            let open: Vec<(u32, u64)> = open.map(|(at, place)| (at, place.since)).collect();
            for (at, since) in open {
                world.settled(0, now.lane, at, since);
            }
        }
    };
    settle(&mut world);
    let after = keyspace(&world, 0, 1);
    assert_eq!(mine(&after), 0);
    assert!(after.partitions.iter().all(|place| place.is_settled));
    assert_eq!(after.lane, LaneId(17));
    let held: Vec<NodeId> = after.partitions.iter().map(|place| place.node).collect();
    for start in 0..9 {
        let mut three: Vec<NodeId> = (0..3).map(|step| held[(start + step) % 9]).collect();
        three.sort_unstable();
        three.dedup();
        assert_eq!(three.len(), 3, "distinct hosts from {start} on");
    }
}

#[test]
fn a_host_is_gone_before_its_partitions_are_given_away_so_that_those_near_can_settle() {
    let mut world = World::founded(9, 6);
    world.run(SOON);
    world.order(0, create("p", "places"), SOON);
    world.run(SOON);
    let before = keyspace(&world, 0, 1);
    // A partition is fetched, and the host of the next one is lost.
    let lost = before.partitions[1].node;
    let near: Vec<NodeId> = [7, 8, 1, 2].iter().map(|at| before.partitions[*at].node).collect();
    let free =
        (0..6).map(node).find(|node| !near.contains(node) && *node != before.partitions[0].node);
    let replace = KeyspaceOrder::Replace {
        name: "p".to_string(),
        partition: 0,
        to: free.expect("six hosts, and five hold it or have keys in common with it"),
    };
    let order = world.order(0, replace, SOON);
    world.run(SOON);
    assert_eq!(world.answers[&order], Outcome::Noted, "{before:?}");
    let index = (0..6).find(|host| node(*host) == lost).expect("it is one of them");
    world.hosts[index].standing = Standing::Left;
    world.crash(index);
    world.add(None);
    world.run(Span::secs(10));
    let asked = (0..6).find(|host| *host != index).expect("others are there");
    let now = keyspace(&world, asked, 1);
    assert!(!now.partitions[0].is_settled && now.partitions[1].node == lost, "it waits");
    assert!(now.gone.contains(&lost), "whoever fetches partition 0 knows: {now:?}");
    world.settled(asked, now.lane, 0, now.partitions[0].since);
    for _ in 0..40 {
        world.run(Span::secs(1));
        let now = keyspace(&world, asked, 1);
        let open = (0..).zip(&now.partitions).filter(|(_, place)| !place.is_settled);
        let open: Vec<(u32, u64)> = open.map(|(at, place)| (at, place.since)).collect();
        open.into_iter().for_each(|(at, since)| world.settled(asked, now.lane, at, since));
    }
    let after = keyspace(&world, asked, 1);
    assert!(after.partitions.iter().all(|place| place.node != lost && place.is_settled));
    let expected = |tenure: &quorate_kernel::keyspace::Tenure| tenure.node == lost;
    assert!(!after.former.iter().any(expected), "nothing is expected of it: {after:?}");
}

#[test]
fn who_held_a_partition_is_waited_for_until_it_has_handed_over_or_is_gone_for_good() {
    let mut world = World::founded(8, 5);
    world.run(SOON);
    world.order(0, create("p", "places"), SOON);
    world.run(SOON);
    let before = keyspace(&world, 0, 1);
    let held = |node: NodeId| {
        let places = (0..).zip(&before.partitions).filter(move |(_, place)| place.node == node);
        places.map(|(at, _)| at).collect::<Vec<u32>>()
    };
    let (first, to) = (held(node(1))[0], node(4));
    let replace = |partition, to| {
        let name = "p".to_string();
        KeyspaceOrder::Replace { name, partition, to }
    };
    let order = world.order(0, replace(first, to), SOON);
    world.run(SOON);
    let now = keyspace(&world, 0, 1);
    assert_eq!(world.answers[&order], Outcome::Noted, "{before:?}");
    let tenure = now.former[0];
    assert_eq!((tenure.partition, tenure.node, now.former.len()), (first, node(1), 1));
    assert!(!now.partitions[first as usize].is_settled);
    world.handed_over(1, now.lane, first, tenure.since);
    world.run(SOON);
    let now = keyspace(&world, 0, 1);
    assert!(now.former.is_empty(), "it has handed over");
    assert!(!now.partitions[first as usize].is_settled, "that says nothing of the new holder");
    assert!(now.gone.is_empty());
    // All the others' partitions of a host that is removed go, and what it had is not waited for.
    world.hosts[2].standing = Standing::Left;
    world.crash(2);
    world.add(None);
    for _ in 0..40 {
        world.run(Span::secs(1));
        let now = keyspace(&world, 0, 1);
        let open = (0..).zip(&now.partitions).filter(|(_, place)| !place.is_settled);
        let open: Vec<(u32, u64)> = open.map(|(at, place)| (at, place.since)).collect();
        open.into_iter().for_each(|(at, since)| world.settled(0, now.lane, at, since));
    }
    let after = keyspace(&world, 0, 1);
    assert!(after.partitions.iter().all(|place| place.node != node(2)));
    assert!(after.former.is_empty() && after.gone.contains(&node(2)), "{after:?}");
    let back = world.order(0, replace(first, node(2)), SOON);
    world.run(SOON);
    assert!(matches!(world.answers[&back], Outcome::Refused(_)));
}
