//! What the catalog is told of a partition, and when: that a node has joined, and that it has
//! handed over, are two words.

use crate::causal::tests::traps::{CausalWorld, bytes, deliver_all, get, put};
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, Partition, Settings, Tenure};
use quorate_kernel::news::News;
use quorate_kernel::process::Process;
use quorate_kernel::time::Span;
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

/// Longer than until a word is said again.
const LONG: Span = Span::secs(12);
const SOON: Span = Span::millis(500);

fn world(spares: u64) -> CausalWorld {
    let options = ["replicas=1", "partitions=1"].map(|option| option.to_string()).into();
    World::new(&Setup { members: 1, spares, options, ..Setup::default() })
}

/// The catalog's record in a version: who has the one partition since that, and who had it.
fn record(version: u64, node: u64, former: &[(u64, u64)]) -> Arc<Keyspace> {
    let settings = Settings::from([("replicas".to_string(), "1".to_string())]);
    let tenure = |one: &(u64, u64)| Tenure { partition: 0, since: one.1, node: NodeId(one.0) };
    let place = Partition { node: NodeId(node), since: version, is_settled: version == 1 };
    Arc::new(Keyspace {
        changed: version,
        partitions: Vec::from([place]),
        former: former.iter().map(tenure).collect(),
        ..Keyspace::new("k", LaneId(16), "causal", settings, 1)
    })
}

fn tell(world: &mut CausalWorld, nodes: &[u64], record: &Arc<Keyspace>) {
    for node in nodes {
        world.step(*node, |lane, cx| lane.on_news(News::Keyspace(record), cx));
    }
}

/// What the catalog is told while time passes: by whom, of which tenure, and what.
fn said(world: &mut CausalWorld, span: Span) -> Vec<String> {
    let end = world.now + span;
    while world.now < end {
        deliver_all(world);
        world.tick(Span::millis(20));
    }
    let log = std::mem::take(&mut world.log);
    let words = log.iter().filter_map(|line| {
        let (node, word) = line.split_once(": announces Settled ")?;
        let word = word.replace("partition: 0, ", "").replace("settlement: ", "");
        Some(format!("{node} {word}"))
    });
    words.collect()
}

#[test]
fn who_has_joined_and_holds_the_partition_no_more_says_so_when_all_is_handed_over() {
    let mut world = world(2);
    put(&mut world, 1, "old", "1", Bytes::new());
    tell(&mut world, &[1, 2, 3], &record(2, 2, &[(1, 1)]));
    assert_eq!(said(&mut world, SOON), ["2 { since: 2, Joined }", "1 { since: 1, HandedOver }"]);
    // The catalog decides that the first has handed over, not that the second has joined, and then
    // gives the partition to the third.
    put(&mut world, 2, "new", "2", Bytes::new());
    world.cut.insert(3);
    tell(&mut world, &[1, 2, 3], &record(4, 3, &[(2, 2)]));
    assert_eq!(said(&mut world, LONG), [""; 0], "the third has copied nothing");
    assert!(world.field(2, "leaving") == "1" && world.field(3, "joining") == "1");
    world.cut.clear();
    let words = ["3 { since: 4, Joined }", "2 { since: 2, HandedOver }"];
    assert_eq!(said(&mut world, Span::secs(3)), words);
    for (key, value) in [("old", "1"), ("new", "2")] {
        assert_eq!(get(&mut world, 3, key).0, [bytes(value)]);
    }
    // Both are said again until they are decided, also by who starts anew.
    let mut again = said(&mut world, LONG);
    again.sort_unstable();
    assert_eq!(again, ["2 { since: 2, HandedOver }", "3 { since: 4, Joined }"]);
    for node in [2, 3] {
        world.crash(node);
        world.restart(node, false);
        tell(&mut world, &[node], &record(4, 3, &[(2, 2)]));
        assert_eq!(said(&mut world, SOON).len(), 1, "node {node}");
    }
}

/// It has joined, and says so; it need not wait with the other word until that would be said again.
#[test]
fn that_it_has_handed_over_is_said_at_once_where_it_has_just_said_that_it_joined() {
    let mut world = world(2);
    tell(&mut world, &[1, 2, 3], &record(2, 2, &[(1, 1)]));
    assert_eq!(said(&mut world, SOON), ["2 { since: 2, Joined }", "1 { since: 1, HandedOver }"]);
    tell(&mut world, &[1, 2, 3], &record(4, 3, &[(2, 2)]));
    let words = said(&mut world, Span::secs(3));
    assert_eq!(words, ["3 { since: 4, Joined }", "2 { since: 2, HandedOver }"]);
}

/// Other nodes tell a newer map than the record of this node's own catalog. By that record it still
/// has to join, and it never will: that it has nothing left is not that it has joined.
#[test]
fn by_an_older_record_who_has_given_the_partition_up_says_nothing() {
    let mut world = world(2);
    world.cut.insert(1);
    tell(&mut world, &[1, 2], &record(2, 2, &[(1, 1)]));
    assert_eq!(said(&mut world, SOON), [""; 0], "it has copied nothing");
    let newer = record(3, 3, &[(1, 1), (2, 2)]);
    tell(&mut world, &[3], &newer);
    let map = crate::causal::map::Map::of(&newer);
    world.step(2, |lane, cx| lane.take_map(map, cx));
    world.cut.clear();
    tell(&mut world, &[1], &newer);
    let words = ["3 { since: 3, Joined }", "1 { since: 1, HandedOver }"];
    assert_eq!(said(&mut world, Span::secs(5)), words);
    assert_eq!(world.field(2, "leaving"), "0");
    tell(&mut world, &[2], &newer);
    assert_eq!(said(&mut world, SOON), ["2 { since: 2, HandedOver }"]);
}

/// More partitions than words may wait at the catalog go to the second at once. Each decision
/// brings the next words; where none comes, those come that were not said yet.
#[test]
fn of_very_many_words_some_are_said_at_a_time_and_the_next_when_they_are_decided() {
    const COUNT: u64 = 40;
    for decides in [true, false] {
        let options = ["replicas=1".to_string(), format!("partitions={COUNT}")].into();
        let mut world: CausalWorld =
            World::new(&Setup { members: 1, spares: 1, options, ..Setup::default() });
        let mut settled: BTreeSet<u64> = BTreeSet::new();
        let record = |version: u64, settled: &BTreeSet<u64>| {
            let place =
                |at| Partition { node: NodeId(2), since: 2, is_settled: settled.contains(&at) };
            let tenure = |at| Tenure { partition: at as u32, since: 1, node: NodeId(1) };
            Arc::new(Keyspace {
                changed: version,
                partitions: (0..COUNT).map(place).collect(),
                former: (0..COUNT).map(tenure).collect(),
                ..Keyspace::clone(&record(version, 2, &[]))
            })
        };
        tell(&mut world, &[1, 2], &record(2, &settled));
        let end = world.now + if decides { Span::secs(10) } else { Span::secs(60) };
        let mut most = 0;
        while settled.len() < COUNT as usize && world.now < end {
            deliver_all(&mut world);
            world.tick(Span::millis(100));
            let log = std::mem::take(&mut world.log);
            let said: BTreeSet<u64> = log.iter().filter_map(|line| joined(line)).collect();
            most = said.len().max(most);
            let before = settled.len();
            settled.extend(said);
            if decides && settled.len() > before {
                tell(&mut world, &[1, 2], &record(2 + settled.len() as u64, &settled));
            }
        }
        assert_eq!(settled.len(), COUNT as usize, "decided: {decides}");
        assert!(most <= 10, "{most} at a time");
    }
}

/// The partition at which a line of the log says that the second has joined.
fn joined(line: &str) -> Option<u64> {
    let (_, word) = line.split_once("2: announces Settled ")?;
    let (_, word) = word.split_once("partition: ")?;
    let (at, rest) = word.split_once(',')?;
    rest.contains("Joined").then(|| at.parse().expect("a number"))
}
