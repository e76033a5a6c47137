//! Hosts that leave, down to as few as there are replicas.

use super::maps::{check, counts, keyspace, places, ring, standing};
use crate::catalog::partitions::levelling::next_levelling;
use crate::catalog::partitions::moves::{next_gone, next_replacement, replacements, stuck};
use crate::catalog::partitions::seats::{check_replacement, is_free, near, spread};
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{Keyspace, Partition, Tenure};
use quorate_kernel::part::{Left, Part};
use quorate_kernel::ring::{Ring, Standing};
use quorate_kernel::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

#[test]
fn who_may_not_leave_is_known_before() {
    let even = |hosts: u64| keyspace(&spread(&ring(hosts), 66, 3).expect("it can be done"), 3);
    assert_eq!(stuck(&even(3), &ring(4), NodeId(2)), None, "the fourth has none yet");
    assert_eq!(stuck(&even(3), &ring(3), NodeId(2)), Some(1));
    for hosts in 4..9 {
        for node in 1..=hosts {
            assert_eq!(stuck(&even(hosts), &ring(hosts), NodeId(node)), None);
        }
    }
    let in_turn: Vec<NodeId> = (0..60).map(|partition| NodeId(1 + partition % 4)).collect();
    let in_turn = keyspace(&in_turn, 3);
    assert!(stuck(&in_turn, &ring(4), NodeId(2)).is_some(), "all others are near");
    assert_eq!(stuck(&in_turn, &ring(6), NodeId(2)), None);
}

#[test]
fn who_alone_has_keys_is_known() {
    // The first part of which nothing is left without a node.
    let bereft = |keyspace: &Keyspace, ring: &Ring, node: NodeId| {
        let is_absent = |other| ring.is_suspected(other);
        let is_lost = |part: &Part| {
            let holds = part.holders.iter().any(|it| it.node == node);
            holds && part.without(&[node], is_absent) == Left::Nothing
        };
        keyspace.parts(|_| 1).iter().position(is_lost)
    };
    let suspected = |node: u64| {
        let mut hosts = ring(3).hosts().to_vec();
        hosts[node as usize - 1].is_suspected = true;
        Ring::new(1, hosts)
    };
    let nodes = [1, 2, 3].map(NodeId);
    let mut three = keyspace(&nodes, 3);
    assert_eq!(bereft(&three, &suspected(2), NodeId(1)), None, "the third has everything");
    three.partitions[2].is_settled = false;
    assert_eq!(bereft(&three, &suspected(2), NodeId(1)), Some(0), "it fetches yet");
    assert_eq!(bereft(&three, &ring(3), NodeId(1)), None);
    let single = keyspace(&nodes, 1);
    assert_eq!(bereft(&single, &ring(3), NodeId(2)), Some(1), "nobody else has them");
    let mut moved = keyspace(&[1, 3, 3].map(NodeId), 1);
    moved.partitions[1].is_settled = false;
    moved.former.push(Tenure { partition: 1, since: 1, node: NodeId(2) });
    assert_eq!(bereft(&moved, &ring(3), NodeId(2)), Some(1), "it has not handed over");
    moved.partitions[1].is_settled = true;
    assert_eq!(bereft(&moved, &ring(3), NodeId(2)), None);
}

#[test]
fn who_leaves_is_replaced_where_nothing_near_is_fetched() {
    let mut keyspace = keyspace(&spread(&ring(4), 8, 3).expect("it can be done"), 3);
    assert_eq!(next_replacement(&keyspace, &ring(5)), None);
    let ring = standing(&[2, 3, 4, 5], &[1], Standing::Left);
    let (first, to) = next_replacement(&keyspace, &ring).expect("node 1 has left");
    assert_eq!((first, to), (0, NodeId(5)), "it has the least");
    let several = replacements(&keyspace, &ring, 16);
    assert!(several.len() > 1 && several[0] == (first, to), "{several:?}");
    for (index, (one, _)) in several.iter().enumerate() {
        let rest = &several[index + 1..];
        assert!(rest.iter().all(|(other, _)| near(8, 3, *one).all(|at| at != *other)));
    }
    keyspace.partitions[first] = Partition { node: to, since: 2, is_settled: false };
    let (second, _) = next_replacement(&keyspace, &ring).expect("another one");
    let far = near(8, 3, first).all(|partition| partition != second);
    assert!(far && keyspace.partitions[second].node == NodeId(1));
    for other in [1, 2, 6, 7] {
        assert!(check_replacement(&keyspace, other, NodeId(9)).is_err(), "{other} is near");
    }
    assert!(check_replacement(&keyspace, first, NodeId(9)).is_ok(), "it may be replaced again");
    keyspace.former.push(Tenure { partition: 0, since: 1, node: NodeId(1) });
    assert_eq!(next_gone(&keyspace, &ring), Some(NodeId(1)), "it has partitions yet");
    for place in keyspace.partitions.iter_mut().filter(|place| place.node == NodeId(1)) {
        place.node = NodeId(9);
    }
    assert_eq!(next_gone(&keyspace, &ring), Some(NodeId(1)));
    keyspace.gone.extend([NodeId(1), NodeId(9)]);
    assert_eq!(next_gone(&keyspace, &ring), None, "that is known");
    assert!(check_replacement(&keyspace, first, NodeId(9)).is_err(), "it is gone for good");
}

/// Drains as the catalog does: several moves at a time, each settled sooner or later. How many it
/// took, and whether the host has none any more.
fn drain(keyspace: &mut Keyspace, ring: &Ring, node: u64, rng: &mut Rng) -> (usize, bool) {
    let (replicas, count) = (keyspace.replicas(), keyspace.partitions.len());
    let mut moves = 0;
    loop {
        let next = replacements(keyspace, ring, 16);
        for (partition, to) in &next {
            assert!(check_replacement(keyspace, *partition, *to).is_ok());
            keyspace.partitions[*partition] = Partition { node: *to, since: 2, is_settled: false };
            check(&places(keyspace), replicas);
        }
        moves += next.len();
        assert!(moves <= 8 * count, "it does not end");
        let is_quiet = keyspace.partitions.iter().all(|place| place.is_settled);
        if is_quiet && next.is_empty() {
            return (moves, counts(keyspace, &[node]) == [0]);
        }
        let some = rng.below(2) == 0;
        for place in &mut keyspace.partitions {
            place.is_settled |= !some || rng.below(2) == 0;
        }
    }
}

fn level(keyspace: &mut Keyspace, ring: &Ring) {
    while let Some((partition, to)) = next_levelling(keyspace, ring) {
        keyspace.partitions[partition].node = to;
    }
}

#[test]
fn hosts_come_and_go_and_every_drain_ends_while_there_are_hosts_for_the_replicas() {
    let mut rng = Rng::new(1);
    let mut drains = 0;
    for round in 0..60 {
        let replicas = [3, 2, 3, 4, 3, 1][round % 6];
        let count = replicas * [3, 4, 6, 10, 22][rng.below(5) as usize];
        let born = replicas as u64 + rng.below(4);
        let mut hosts: Vec<u64> = (1..=born).collect();
        let mut last = born;
        let first = spread(&ring(born), count, replicas).expect("it can be done");
        let mut keyspace = keyspace(&first, replicas);
        for _ in 0..12 {
            if rng.below(2) == 0 && hosts.len() < replicas + 5 {
                last += 1;
                hosts.push(last);
            } else if hosts.len() > replicas {
                let node = hosts.remove(rng.below(hosts.len() as u64) as usize);
                let all = standing(&hosts, &[node], Standing::Up);
                assert_eq!(stuck(&keyspace, &all, NodeId(node)), None, "{:?}", places(&keyspace));
                let ring = standing(&hosts, &[node], Standing::Leaving);
                let (moves, is_done) = drain(&mut keyspace, &ring, node, &mut rng);
                assert!(is_done, "{replicas} replicas, {hosts:?}: {:?}", places(&keyspace));
                assert!(moves <= 2 * (count / replicas), "{count} by {replicas}: {moves}");
                drains += 1;
            }
            if rng.below(3) > 0 {
                level(&mut keyspace, &standing(&hosts, &[], Standing::Up));
            }
        }
    }
    assert!(drains > 150, "{drains}");
}

#[test]
fn what_a_dead_host_had_is_not_kept_waiting() {
    let keyspace = keyspace(&spread(&ring(4), 66, 3).expect("it can be done"), 3);
    for (how, first) in [(Standing::Leaving, 4), (Standing::Left, 1)] {
        let ring = standing(&[2, 3, 4], &[1], how);
        let (partition, _) = next_replacement(&keyspace, &ring).expect("host 1 goes");
        assert_eq!(keyspace.partitions[partition].node, NodeId(first), "{how:?}");
    }
}

/// What no single replacement changes where there is one host more than replicas: the columns of
/// odd partitions, read round the end, with equal neighbours cancelled.
fn word(places: &[NodeId], replicas: usize) -> Vec<usize> {
    let count = places.len();
    let odd = (0..count).filter(|at| places[*at] != places[(at + replicas) % count]);
    let mut word: Vec<usize> = Vec::new();
    for column in odd.map(|partition| partition % replicas) {
        if word.last() == Some(&column) {
            word.pop();
        } else {
            word.push(column);
        }
    }
    while word.len() > 1 && word.first() == word.last() {
        word.remove(0);
        word.pop();
    }
    // Where it begins is no matter.
    let turned = |by: usize| [&word[by..], &word[..by]].concat();
    (0..word.len()).map(turned).min().unwrap_or_default()
}

/// All maps over hosts 1 to `replicas + 1`, those that single replacements lead to from each other
/// with the same number.
fn all_maps(count: usize, replicas: usize) -> BTreeMap<Vec<NodeId>, usize> {
    let hosts: Vec<NodeId> = (1..=replicas as u64 + 1).map(NodeId).collect();
    let mut all: Vec<Vec<NodeId>> = Vec::from([Vec::new()]);
    for partition in 0..count {
        let longer = |map: &Vec<NodeId>| {
            let (map, near) = (map.clone(), near(count, replicas, partition).collect::<Vec<_>>());
            let is_free = move |host: &&NodeId| {
                let mut given = near.iter().filter(|other| **other < partition);
                given.all(|other| map[*other] != **host)
            };
            hosts.iter().filter(is_free).copied().collect::<Vec<_>>()
        };
        all = all
            .iter()
            .flat_map(|map| longer(map).into_iter().map(|host| [&map[..], &[host]].concat()))
            .collect();
    }
    let mut parts: BTreeMap<Vec<NodeId>, usize> = BTreeMap::new();
    for (number, first) in all.into_iter().enumerate() {
        let mut todo = Vec::from([first]);
        while let Some(map) = todo.pop() {
            if parts.contains_key(&map) {
                continue;
            }
            for partition in 0..count {
                for host in &hosts {
                    if is_free(&map, replicas, partition, *host) && map[partition] != *host {
                        let mut next = map.clone();
                        next[partition] = *host;
                        todo.push(next);
                    }
                }
            }
            parts.insert(map, number);
        }
    }
    parts
}

/// With four hosts and three replicas, and the like: single replacements, also to the host that
/// leaves, lead to a map without it exactly where nothing is left of the word.
#[test]
fn a_map_of_one_host_more_than_replicas_shrinks_if_its_word_is_empty_and_never_otherwise() {
    for (count, replicas) in [(6, 2), (8, 2), (9, 3), (12, 3)] {
        let maps = all_maps(count, replicas);
        let last = NodeId(replicas as u64 + 1);
        let is_without = |map: &Vec<NodeId>| map.iter().all(|node| *node != last);
        let small: BTreeSet<usize> =
            maps.iter().filter(|(map, _)| is_without(map)).map(|(_, part)| *part).collect();
        let (mut can, mut planned, mut dead_ends) = (0, 0, 0);
        for (map, part) in &maps {
            let word = word(map, replicas);
            let is_small = small.contains(part);
            assert_eq!(is_small, word.is_empty(), "{map:?} {word:?}");
            let all = ring(replicas as u64 + 1);
            let is_planned = stuck(&keyspace(map, replicas), &all, last).is_none();
            assert!(is_small || !is_planned);
            can += usize::from(is_small);
            planned += usize::from(is_planned);
            dead_ends += usize::from(!is_small);
        }
        assert!(dead_ends > 0 && planned > can / 2, "{count}: {planned} of {can}, {dead_ends}");
    }
}
