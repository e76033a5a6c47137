//! What nodes have done at partitions: that a node has joined is never taken for that it has handed
//! over, nor the other way round, however late or often it is said.

use super::world::{World, create, node};
use crate::catalog::{Catalog, Decree, Entry, Origin};
use crate::reconfigure::Ground;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{
    Birth, Keyspace, KeyspaceOrder, NewKeyspace, Settings, Settlement, Tenure,
};
use quorate_kernel::limits::CATALOG_ORDERS_MAX;
use quorate_kernel::news::News;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Span;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

const LANE: LaneId = LaneId::KEYSPACES;
const SOON: Span = Span::secs(3);

impl World {
    /// Tells a host that its node has joined at a partition.
    pub fn settled(&mut self, host: usize, lane: LaneId, partition: u32, since: u64) {
        let settlement = Settlement::Joined;
        self.hear(host, News::Settled { lane, partition, since, settlement });
    }

    /// Tells a host that its node has handed over what it had of a partition.
    pub fn handed_over(&mut self, host: usize, lane: LaneId, partition: u32, since: u64) {
        let settlement = Settlement::HandedOver;
        self.hear(host, News::Settled { lane, partition, since, settlement });
    }
}

/// A catalog with one keyspace, whose one replica of each key is at these nodes.
fn single(places: &[u64]) -> Catalog {
    let settings = Settings::from([("replicas".to_string(), "1".to_string())]);
    let places = places.iter().copied().map(NodeId).collect();
    let (name, engine) = ("x".to_string(), "places".to_string());
    let decree = Decree::Create { name, engine, settings, birth: Birth::Groupless, places };
    after(&Catalog::born(Vec::from([NodeId(1)])), decree)
}

fn after(catalog: &Catalog, decree: Decree) -> Catalog {
    let next = catalog.after(&Entry { origin: Origin::default(), decree });
    assert_eq!(next.version(), next.view().id.version);
    next
}

fn record(catalog: &Catalog) -> &Keyspace {
    catalog.keyspace(LANE).expect("it was created")
}

/// Another node has partition 0.
fn moved(catalog: &Catalog, to: u64) -> Catalog {
    let since = record(catalog).partitions[0].since;
    after(catalog, Decree::Replace { lane: LANE, partition: 0, since, to: NodeId(to) })
}

fn joined(since: u64) -> Decree {
    Decree::Settle { lane: LANE, partition: 0, since }
}

fn handed_over(since: u64) -> Decree {
    Decree::HandOver { lane: LANE, partition: 0, since }
}

fn tenures(catalog: &Catalog) -> Vec<(u64, u64)> {
    record(catalog).former.iter().map(|one: &Tenure| (one.node.0, one.since)).collect()
}

#[test]
fn that_a_node_has_joined_says_nothing_once_another_has_the_partition() {
    let first = single(&[1, 2]);
    let second = moved(&first, 3);
    let third = moved(&second, 4);
    let [a, b, c] = [&first, &second, &third].map(|catalog| record(catalog).partitions[0].since);
    assert_eq!(tenures(&third), [(1, a), (3, b)]);
    // Said of node 3 when it had the partition: it comes late, and changes nothing.
    assert!(third.judge(&joined(b)).is_err(), "node 3 may have taken what nobody else has");
    assert!(third.judge(&joined(a)).is_err());
    let third = after(&third, joined(c));
    assert_eq!(tenures(&third), [(1, a), (3, b)], "what was before is not handed over by that");
    assert!(record(&third).partitions[0].is_settled);
    assert!(third.judge(&joined(c)).is_err(), "it is said twice");
    // Each former holder has handed over when it says so, once, in any order.
    let third = after(&third, handed_over(b));
    assert_eq!(tenures(&third), [(1, a)]);
    assert!(third.judge(&handed_over(b)).is_err(), "it is said twice");
    assert!(tenures(&after(&third, handed_over(a))).is_empty());
}

/// Of two records under one number a host keeps the first. So whatever changes a record gives it
/// another number, also where only a former holder is struck out.
#[test]
fn whatever_changes_a_record_gives_it_a_higher_number() {
    let first = single(&[1, 2]);
    let second = moved(&first, 3);
    let third = moved(&second, 4);
    let [a, _, c] = [&first, &second, &third].map(|catalog| record(catalog).partitions[0].since);
    let fourth = after(&third, joined(c));
    let fifth = after(&fourth, handed_over(a));
    let sixth = after(&fifth, Decree::Gone { lane: LANE, node: NodeId(3) });
    assert!(tenures(&sixth).is_empty());
    let all = [first, second, third, fourth, fifth, sixth];
    let numbers = all.map(|catalog| record(&catalog).changed);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn that_a_node_has_handed_over_says_nothing_of_who_has_the_partition() {
    let first = single(&[1, 2]);
    let second = moved(&first, 3);
    let third = moved(&second, 1);
    let [a, b, c] = [&first, &second, &third].map(|catalog| record(catalog).partitions[0].since);
    assert!(second.judge(&handed_over(b)).is_err(), "node 3 has the partition");
    for since in [a, b] {
        let catalog = after(&third, handed_over(since));
        assert_eq!(record(&catalog).former.len(), 1);
        assert!(!record(&catalog).partitions[0].is_settled, "node 1 is back, with another tenure");
    }
    // Nor of another partition, or of a decree that gave nothing away.
    assert!(third.judge(&handed_over(c)).is_err());
    assert!(third.judge(&handed_over(c + 1)).is_err());
    for partition in [1, 9] {
        let (lane, since) = (LANE, a);
        assert!(third.judge(&Decree::HandOver { lane, partition, since }).is_err());
    }
    // Of who is gone for good nothing is waited for, and nothing is taken.
    let gone = after(&third, Decree::Gone { lane: LANE, node: NodeId(3) });
    assert_eq!(tenures(&gone), [(1, a)]);
    assert!(gone.judge(&handed_over(b)).is_err());
}

/// The second keyspace, as a host was told of it last.
pub fn told(world: &World, host: usize) -> Arc<Keyspace> {
    Arc::clone(&world.hosts[host].told.as_ref().expect("it was told").list[1].0)
}

/// The word is said to a host that knows who has the partition now, and to one that is behind.
#[test]
fn a_word_that_comes_late_to_the_system_group_is_forgotten() {
    for deaf in [false, true] {
        let mut world = World::founded(8, 5);
        world.run(SOON);
        let settings = Settings::from([("replicas".to_string(), "1".to_string())]);
        let KeyspaceOrder::Create(asked) = create("p", "places") else { panic!("it creates") };
        world.order(0, KeyspaceOrder::Create(NewKeyspace { settings, ..asked }), SOON);
        world.run(SOON);
        let of = told(&world, 0).partitions[0].node;
        let spare: Vec<usize> = (1..5).filter(|host| node(*host) != of).collect();
        let replace = |world: &mut World, to: usize| {
            let (name, to) = ("p".to_string(), node(to));
            let order = world.order(0, KeyspaceOrder::Replace { name, partition: 0, to }, SOON);
            world.run(SOON);
            assert_eq!(world.answers[&order], Outcome::Noted, "{to:?}");
        };
        replace(&mut world, spare[0]);
        let (now, host) = (told(&world, 0), spare[0]);
        let (lane, since) = (now.lane, now.partitions[0].since);
        assert_eq!(now.former[0].node, of);
        world.hosts[host].side = u8::from(deaf);
        replace(&mut world, spare[1]);
        assert_eq!(told(&world, host).former.len(), if deaf { 1 } else { 2 });
        world.settled(host, lane, 0, since);
        world.hosts[host].side = 0;
        world.settled(0, lane, 0, since);
        world.run(Span::secs(20));
        let after = told(&world, host);
        assert_eq!(after.former.len(), 2, "nobody has handed over: {after:?}");
        assert!(!after.partitions[0].is_settled);
        world.handed_over(host, lane, 0, since);
        world.handed_over(host, lane, 0, since);
        world.run(SOON);
        assert_eq!(told(&world, 0).former.len(), 1);
        assert_eq!(told(&world, 0).former[0].node, of);
    }
}

/// A host that cannot reach the system group has joined at more partitions than may wait: what is
/// too much is forgotten, as it is said again, and what an operator asks finds room.
#[test]
fn of_very_many_words_at_once_some_are_forgotten_until_they_are_said_again() {
    const COUNT: u32 = 2 * CATALOG_ORDERS_MAX as u32;
    let mut world = World::founded(3, 4);
    world.run(SOON);
    let settings = [("replicas", "1".to_string()), ("partitions", COUNT.to_string())];
    let settings = settings.map(|(name, value)| (name.to_string(), value)).into();
    let KeyspaceOrder::Create(asked) = create("p", "places") else { panic!("it creates") };
    world.order(0, KeyspaceOrder::Create(NewKeyspace { settings, ..asked }), SOON);
    world.run(SOON);
    let (host, to) = (3, node(3));
    for partition in 0..COUNT {
        let name = "p".to_string();
        world.order(0, KeyspaceOrder::Replace { name, partition, to }, SOON);
        world.run(Span::millis(50));
    }
    let unsettled = |world: &World| -> Vec<(u32, u64)> {
        let now = told(world, host);
        let places = (0..).zip(&now.partitions).filter(|(_, place)| !place.is_settled);
        places.map(|(partition, place)| (partition, place.since)).collect()
    };
    let all = unsettled(&world);
    assert_eq!(all.len(), COUNT as usize);
    let lane = told(&world, host).lane;
    let say = |world: &mut World, words: &[(u32, u64)]| {
        words.iter().for_each(|(partition, since)| world.settled(host, lane, *partition, *since));
    };
    world.hosts[host].side = 1;
    say(&mut world, &all);
    let asked = world.order(host, create("q", "places"), Span::secs(9));
    world.hosts[host].side = 0;
    world.run(Span::secs(10));
    assert_eq!(world.answers[&asked], Outcome::Noted);
    let left = unsettled(&world);
    assert!(!left.is_empty() && left.len() < all.len(), "{}", left.len());
    for _ in 0..4 {
        let left = unsettled(&world);
        say(&mut world, &left);
        world.run(Span::secs(10));
    }
    assert_eq!(unsettled(&world), []);
}
