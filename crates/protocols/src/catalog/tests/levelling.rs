//! Hosts that join take their share, and then it is quiet.

use super::maps::{check, counts, host, keyspace, places, ring, standing};
use super::world::{World, create, node};
use crate::catalog::partitions::levelling::next_levelling;
use crate::catalog::partitions::seats::spread;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{Keyspace, KeyspaceOrder, NewKeyspace, Tenure};
use quorate_kernel::ring::{Closing, Ring, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

/// Levels until nothing is left to do; how many moves that takes.
fn level(keyspace: &mut Keyspace, ring: &Ring, replicas: usize) -> usize {
    let squares = |keyspace: &Keyspace| {
        let all: Vec<u64> = ring.hosts().iter().map(|host| host.who.node.0).collect();
        counts(keyspace, &all).iter().map(|count| count * count).sum::<usize>()
    };
    let (mut moves, mut least, mut is_detour) = (0, squares(keyspace), false);
    while let Some((partition, to)) = next_levelling(keyspace, ring) {
        keyspace.partitions[partition].node = to;
        check(&places(keyspace), replicas);
        moves += 1;
        // A detour is two moves, and both together level something.
        let now = squares(keyspace);
        assert!(now < least || !is_detour, "it levels nothing: {:?}", places(keyspace));
        (is_detour, least) = (now >= least, least.min(now));
        assert!(moves <= 4 * keyspace.partitions.len(), "it does not end");
    }
    moves
}

fn apart(counts: &[usize]) -> usize {
    counts.iter().max().zip(counts.iter().min()).map_or(0, |(most, least)| most - least)
}

#[test]
fn whoever_joins_takes_its_share_in_as_many_moves() {
    for replicas in [1, 2, 3, 5, 7] {
        let count = 64_usize.next_multiple_of(replicas);
        let first = spread(&ring(replicas as u64), count, replicas).expect("it can be done");
        let mut keyspace = keyspace(&first, replicas);
        for hosts in replicas as u64 + 1..20 {
            let moves = level(&mut keyspace, &ring(hosts), replicas);
            let all: Vec<u64> = (1..=hosts).collect();
            let held = counts(&keyspace, &all);
            assert!(apart(&held) <= 1, "{replicas} replicas, {hosts} hosts: {held:?}");
            let share = count.div_ceil(hosts as usize);
            assert!(moves <= share, "{replicas} replicas, {hosts} hosts: {moves} moves");
            assert_eq!(next_levelling(&keyspace, &ring(hosts)), None, "it is at rest");
        }
    }
}

#[test]
fn several_that_join_at_one_time_get_even_shares() {
    for joined in 1..12 {
        let first = spread(&ring(3), 66, 3).expect("it can be done");
        let mut keyspace = keyspace(&first, 3);
        let all: Vec<u64> = (1..=3 + joined).collect();
        let moves = level(&mut keyspace, &ring(3 + joined), 3);
        assert!(apart(&counts(&keyspace, &all)) <= 1);
        assert!(moves <= 66, "each partition at most once: {moves}");
    }
}

#[test]
fn where_no_step_levels_a_guest_gives_a_partition_back_first() {
    // Host 4 stands in its own way wherever a partition of hosts 1 and 3 is.
    let in_turn = [1, 2, 3, 1, 4, 3].map(NodeId).repeat(5);
    let mut keyspace = keyspace(&in_turn, 3);
    assert_eq!(counts(&keyspace, &[1, 2, 3, 4]), [10, 5, 10, 5]);
    let (partition, to) = next_levelling(&keyspace, &ring(4)).expect("it is not level");
    assert_eq!((in_turn[partition], to), (NodeId(4), NodeId(2)), "that levels nothing yet");
    level(&mut keyspace, &ring(4), 3);
    assert!(apart(&counts(&keyspace, &[1, 2, 3, 4])) <= 1);
}

#[test]
fn nothing_moves_while_something_does() {
    let keyspace = keyspace(&spread(&ring(3), 66, 3).expect("it can be done"), 3);
    assert!(next_levelling(&keyspace, &ring(4)).is_some());
    let mut fetching = keyspace.clone();
    fetching.partitions[40].is_settled = false;
    assert_eq!(next_levelling(&fetching, &ring(4)), None, "somebody fetches");
    let mut former = keyspace.clone();
    former.former.push(Tenure { partition: 40, since: 1, node: NodeId(3) });
    assert_eq!(next_levelling(&former, &ring(4)), None, "somebody hands over");
    let leaves = standing(&[1, 2, 4], &[3], Standing::Leaving);
    assert_eq!(next_levelling(&keyspace, &leaves), None, "what leaves comes first");
    let unknown = standing(&[1, 2, 4], &[], Standing::Up);
    assert_eq!(next_levelling(&keyspace, &unknown), None, "host 3 may be leaving");
    let mut ends = ring(4);
    ends.closing = Closing::Finishing;
    assert_eq!(next_levelling(&keyspace, &ends), None, "the cluster ends");
}

#[test]
fn nobody_gets_partitions_who_does_not_answer_leaves_or_is_gone() {
    let even = spread(&ring(3), 66, 3).expect("it can be done");
    let mut keyspace = keyspace(&even, 3);
    for standing_of in [Standing::Leaving, Standing::Left] {
        assert_eq!(next_levelling(&keyspace, &standing(&[1, 2, 3], &[4], standing_of)), None);
    }
    let suspected = |node: u64, hosts: u64| {
        let mut hosts: Vec<_> = (1..=hosts).map(host).collect();
        hosts[node as usize - 1].is_suspected = true;
        Ring::new(1, hosts)
    };
    assert_eq!(next_levelling(&keyspace, &suspected(4, 4)), None);
    // Where a host is away the keys near it would not come together again.
    assert_eq!(next_levelling(&keyspace, &suspected(2, 4)), None);
    level(&mut keyspace, &ring(6), 3);
    for away in 1..=6 {
        assert_eq!(next_levelling(&keyspace, &suspected(away, 6)), None, "it has what it has");
    }
    keyspace.gone.insert(NodeId(7));
    assert_eq!(next_levelling(&keyspace, &ring(7)), None, "host 7 is gone for good");
}

#[test]
fn any_map_comes_to_rest() {
    let mut rng = Rng::new(1);
    for round in 0..300 {
        let replicas = [1, 2, 3, 4][round % 4];
        let count = replicas * (2 + rng.below(12) as usize) + usize::from(round % 7 == 0);
        let hosts = replicas as u64 + 1 + rng.below(6);
        let Ok(mut places) = spread(&ring(hosts), count, replicas) else { continue };
        for _ in 0..rng.below(4 * count as u64) {
            let (partition, to) = (rng.below(count as u64) as usize, NodeId(1 + rng.below(hosts)));
            if crate::catalog::partitions::seats::is_free(&places, replicas, partition, to) {
                places[partition] = to;
            }
        }
        let mut keyspace = keyspace(&places, replicas);
        level(&mut keyspace, &ring(hosts + rng.below(2)), replicas);
    }
}

fn told(world: &World, host: usize) -> Arc<Keyspace> {
    Arc::clone(&world.hosts[host].told.as_ref().expect("it was told").list[1].0)
}

/// Runs for this many seconds; whoever is up settles and hands over what it should.
fn settle(world: &mut World, seconds: usize) {
    for _ in 0..seconds {
        world.run(Span::secs(1));
        let now = told(world, 0);
        let open = (0..).zip(&now.partitions).filter(|(_, place)| !place.is_settled);
        let open: Vec<_> = open.map(|(at, place)| (place.node, at, place.since)).collect();
        assert!(open.len() + now.former.len() <= 2, "one partition at a time");
        for (node, at, since) in open {
            world.settled(node.0 as usize - 1, now.lane, at, since);
        }
        for one in &now.former {
            world.handed_over(one.node.0 as usize - 1, now.lane, one.partition, one.since);
        }
    }
}

/// A host that was frozen for long has not heard that another one leaves, and takes itself for the
/// one to see to what is due. It must not give back what the others took.
#[test]
fn who_leaves_is_given_nothing_by_a_host_that_has_not_heard_of_it() {
    for deaf in 0..3 {
        let mut world = World::founded(9, 3);
        world.run(Span::secs(3));
        let single = [(String::from("replicas"), String::from("1"))];
        let KeyspaceOrder::Create(asked) = create("p", "places") else {
            unreachable!("it creates")
        };
        let order = KeyspaceOrder::Create(NewKeyspace { settings: single.into(), ..asked });
        world.order(0, order, Span::secs(3));
        world.add(None);
        settle(&mut world, 60);
        let held = |world: &World, host: usize| counts(&told(world, host), &[4])[0];
        assert!(held(&world, deaf) > 0);
        let ring = world.ring_of(deaf);
        world.hosts[deaf].stale = Some(ring);
        world.hosts[3].standing = Standing::Leaving;
        let mut has_none = false;
        for _ in 0..60 {
            settle(&mut world, 1);
            let count = held(&world, (deaf + 1) % 3);
            assert!(count == 0 || !has_none, "host {deaf} gives back what others took");
            has_none |= count == 0;
        }
        assert!(has_none, "the others take what it had");
    }
}

#[test]
fn a_host_that_joins_is_given_partitions_and_one_that_is_away_for_a_moment_loses_none() {
    let mut world = World::founded(9, 3);
    world.run(Span::secs(3));
    world.order(0, create("p", "places"), Span::secs(3));
    world.run(Span::secs(3));
    let all: Vec<u64> = (0..4).map(|host| node(host).0).collect();
    assert_eq!(counts(&told(&world, 0), &all), [3, 3, 3, 0]);
    world.add(None);
    settle(&mut world, 8);
    assert_eq!(counts(&told(&world, 0), &all), [3, 3, 3, 0], "it may go again");
    world.crash(3);
    world.start(3);
    settle(&mut world, 8);
    assert_eq!(counts(&told(&world, 0), &all), [3, 3, 3, 0], "it is there anew");
    settle(&mut world, 20);
    let mut held = counts(&told(&world, 0), &all);
    held.sort_unstable();
    assert_eq!(held, [2, 2, 2, 3]);
    let before = told(&world, 0);
    for away in [3, 1] {
        for seconds in [1, 20] {
            world.crash(away);
            settle(&mut world, seconds);
            world.start(away);
            settle(&mut world, 20);
        }
    }
    let after = told(&world, 0);
    assert_eq!(after.partitions, before.partitions);
    let version = world.version(0);
    settle(&mut world, 20);
    assert_eq!(world.version(0), version, "there is nothing more to decide");
}
