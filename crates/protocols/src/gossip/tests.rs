//! The components of gossip, one by one.

use super::cyclon::{Cyclon, Peer, Shape};
use super::digest;
use super::doubts::{Doubts, PULLED, PUSHED};
use super::hosts::{BUCKETS, Hosts};
use super::record::{HostRecord, Load, News, Order, Version};
use super::rumours::{Rumours, pack, rounds};
use proptest::prelude::*;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{HOSTS_MAX, NEWS_BYTES_MAX, NEWS_MESSAGES_MAX};
use quorate_kernel::ring::Standing;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::vec::Vec;

fn record(node: u64, start: u32, version: u64) -> HostRecord {
    HostRecord {
        who: Incarnation { node: NodeId(node), start: Start(start) },
        version: Version(version),
        address: "a".into(),
        zone: "".into(),
        tokens: Arc::from([node, version + 1000]),
        load: Load::default(),
        order: Order(0),
        standing: Standing::Up,
        doors: Arc::default(),
    }
}

fn news(node: u64, start: u32, version: u64) -> News {
    News::of(record(node, start, version))
}

fn suspected(node: u64, start: u32, version: u64) -> News {
    News { suspected_by: Some(NodeId(99)), ..news(node, start, version) }
}

fn ordered(node: u64, version: u64, order: u64, standing: Standing) -> News {
    News::of(HostRecord { order: Order(order), standing, ..record(node, 1, version) })
}

fn merged(mut into: News, other: &News) -> News {
    into.merge(other);
    into
}

#[test]
fn the_newest_telling_wins_and_left_wins_for_ever() {
    assert_eq!(merged(news(1, 1, 5), &news(1, 2, 1)).record.stamp(), (Start(2), Version(1)));
    assert_eq!(merged(news(1, 2, 1), &news(1, 1, 5)).record.stamp(), (Start(2), Version(1)));
    let left = merged(ordered(1, 5, 1, Standing::Left), &ordered(1, 9, 900, Standing::Up));
    assert_eq!((left.record.version, left.record.standing), (Version(9), Standing::Left));
    let undone = merged(ordered(1, 5, 1, Standing::Leaving), &ordered(1, 4, 2, Standing::Up));
    assert_eq!((undone.record.version, undone.record.standing), (Version(5), Standing::Up));
    let order = Order(0).next(NodeId(1)).max(Order(0).next(NodeId(2)));
    assert!(order.next(NodeId(3)) > order && Order(0).next(NodeId(1)) != Order(0).next(NodeId(2)));
}

#[test]
fn a_suspicion_holds_for_one_version_alone() {
    assert!(merged(news(1, 1, 5), &suspected(1, 1, 5)).suspected_by.is_some());
    assert!(merged(news(1, 1, 6), &suspected(1, 1, 5)).suspected_by.is_none());
    assert!(merged(suspected(1, 1, 5), &news(1, 1, 6)).suspected_by.is_none(), "refuted");
    assert!(merged(suspected(1, 1, 5), &news(1, 1, 5)).suspected_by.is_some());
    assert!(merged(suspected(1, 1, 5), &news(1, 2, 0)).suspected_by.is_none(), "restarted");
}

/// Any news of one host. What a host says of itself follows from its stamp.
fn any_news() -> impl Strategy<Value = News> {
    (1..4_u32, 0..4_u64, 0..3_u64, 0..3_usize, any::<bool>()).prop_map(
        |(start, version, order, standing, is_suspected)| {
            let standing = [Standing::Up, Standing::Leaving, Standing::Left][standing];
            let order = Order(order);
            let record = HostRecord { order, standing, ..record(1, start, version) };
            News { suspected_by: is_suspected.then_some(NodeId(9)), ..News::of(record) }
        },
    )
}

proptest! {
    #[test]
    fn merging_is_commutative_associative_and_idempotent(
        a in any_news(), b in any_news(), c in any_news(),
    ) {
        prop_assert_eq!(merged(a.clone(), &b), merged(b.clone(), &a));
        prop_assert_eq!(merged(a.clone(), &a), a.clone());
        let left = merged(merged(a.clone(), &b), &c);
        let right = merged(a.clone(), &merged(b.clone(), &c));
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(a.clone().merge(&b).is_any, merged(a.clone(), &b) != a);
    }

    #[test]
    fn comparing_makes_two_tables_equal(
        first in proptest::collection::vec((0..200_u64, any_news()), 0..120),
        second in proptest::collection::vec((0..200_u64, any_news()), 0..120),
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        let (mut a, mut b) = (Hosts::default(), Hosts::default());
        for (hosts, list) in [(&mut a, first), (&mut b, second)] {
            for (node, mut news) in list {
                Arc::make_mut(&mut news.record).who.node = NodeId(node);
                hosts.learn(&news);
            }
        }
        let (buckets, seen) = digest::versions(&a, digest::differing(&a, b.sums()), &mut rng);
        let (lacks, wants) = digest::compare(&b, buckets, &seen);
        let for_a: Vec<News> = lacks.iter().filter_map(|node| b.get(*node).cloned()).collect();
        let for_b: Vec<News> = wants.iter().filter_map(|node| a.get(*node).cloned()).collect();
        for_a.iter().for_each(|news| { a.learn(news); });
        for_b.iter().for_each(|news| { b.learn(news); });
        prop_assert_eq!(a.sum(), b.sum());
        prop_assert!(a.iter().eq(b.iter()));
        prop_assert_eq!(digest::differing(&a, b.sums()), 0);
    }
}

#[test]
fn hosts_are_bounded_and_sums_follow_the_content() {
    let mut hosts = Hosts::default();
    (0..HOSTS_MAX as u64 + 10).for_each(|node| {
        hosts.learn(&news(node, 1, 1));
    });
    assert_eq!((hosts.len(), hosts.refused()), (HOSTS_MAX, 10));
    let before = hosts.sum();
    assert!(!hosts.learn(&news(3, 1, 1)).is_any && hosts.sum() == before);
    assert!(hosts.learn(&news(3, 1, 2)).is_any && hosts.sum() != before);
    let mut again = Hosts::default();
    (0..HOSTS_MAX as u64).rev().for_each(|node| {
        again.learn(&news(node, 1, if node == 3 { 2 } else { 1 }));
    });
    assert_eq!(again.sum(), hosts.sum(), "the order of learning does not matter");
    assert_eq!(hosts.sums().len(), BUCKETS);
    let mut load = record(3, 1, 3);
    (load.load.bytes, load.tokens) = (7, record(3, 1, 2).tokens);
    let changed = hosts.learn(&News::of(load));
    assert!(changed.is_any && !changed.is_ring, "a load does not show on the ring");
}

#[test]
fn hosts_are_found_and_listed_by_their_ids_in_whatever_order_they_come() {
    let (mut hosts, mut rng) = (Hosts::default(), Rng::new(5));
    let mut known = BTreeSet::new();
    for _ in 0..300 {
        let node = rng.below(200);
        hosts.learn(&news(node, 1, 1));
        known.insert(NodeId(node));
        hosts.check();
    }
    assert!(hosts.iter().map(News::node).eq(known.iter().copied()));
    for node in (0..200).map(NodeId) {
        assert_eq!(hosts.get(node).map(News::node), known.get(&node).copied());
    }
    // A draw is of a rank among the ids, whenever its host was heard of.
    let (mut draws, mut same) = (Rng::new(9), Rng::new(9));
    for _ in 0..50 {
        let drawn = hosts.pick(&mut draws, |_| true).map(News::node);
        assert_eq!(drawn, known.iter().nth(same.below(known.len() as u64) as usize).copied());
    }
}

#[test]
fn a_rumour_is_told_for_its_rounds_and_then_rests() {
    let mut rumours = Rumours::default();
    assert_eq!([1, 2, 3, 100, 1000].map(rounds), [2, 3, 4, 9, 12]);
    rumours.heat(NodeId(1), 100);
    let told = (0..20).map(|_| rumours.round(|node| Some(news(node.0, 1, 1))).len());
    assert_eq!(told.sum::<usize>(), 9);
    assert!(!rumours.is_hot());
    (0..2000).for_each(|node| rumours.heat(NodeId(node), 100));
    let first = rumours.round(|node| Some(news(node.0, 1, 1)));
    let bytes: usize = first.iter().map(|news| news.record.bytes_max()).sum();
    assert!(bytes <= NEWS_BYTES_MAX && first.len() < 2000);
    let second = rumours.round(|node| Some(news(node.0, 1, 1)));
    let nodes = |list: &[News]| list.iter().map(News::node).collect::<BTreeSet<_>>();
    assert!(nodes(&first).is_disjoint(&nodes(&second)), "the youngest go first");
    rumours.check();
    let packed = pack((0..1_000_000).map(|node| news(node, 1, 1)));
    assert_eq!(packed.len(), NEWS_MESSAGES_MAX);
}

#[test]
fn a_doubt_waits_and_is_refuted_by_a_newer_version() {
    let mut doubts = Doubts::default();
    let at = |ms: u64| Time(ms * 1_000_000);
    assert!(doubts.note(&suspected(1, 1, 5), at(0) + PULLED));
    assert!(!doubts.note(&suspected(1, 1, 5), at(0) + PUSHED), "the earlier time holds");
    assert!(!doubts.note(&news(1, 1, 5), at(0)), "that is no suspicion");
    assert!(doubts.due(at(900)).is_empty());
    assert_eq!(doubts.suspected_by(NodeId(1), (Start(1), Version(5))), Some(NodeId(99)));
    assert_eq!(doubts.due(at(1000)), [(NodeId(1), (Start(1), Version(5)), NodeId(99))]);
    doubts.note(&suspected(1, 1, 6), at(2000));
    doubts.refute(NodeId(1), (Start(1), Version(6)));
    doubts.restart(at(1900));
    assert!(doubts.due(at(2100)).is_empty(), "the observer stood still");
    doubts.refute(NodeId(1), (Start(1), Version(7)));
    assert!(doubts.due(at(9000)).is_empty());
}

fn peer(node: u64, start: u32, age: u16) -> Peer {
    Peer { who: Incarnation { node: NodeId(node), start: Start(start) }, age, address: "a".into() }
}

fn view(nodes: core::ops::RangeInclusive<u64>) -> Cyclon {
    let mut cyclon = Cyclon::new(NodeId(0), Shape::USUAL);
    nodes.for_each(|node| cyclon.seed(peer(node, 1, node as u16)));
    cyclon
}

#[test]
fn the_oldest_is_asked_and_gone_unless_it_answers() {
    let mut rng = Rng::new(1);
    let mut cyclon = view(1..=20);
    let (partner, given) = cyclon.begin(peer(0, 1, 0), &mut rng).expect("there are others");
    assert_eq!(partner, NodeId(20));
    assert_eq!(given.len(), Shape::USUAL.shuffle);
    assert!(given.contains(&peer(0, 1, 0)), "it offers itself, young");
    assert!(cyclon.view().iter().all(|peer| peer.who.node != partner));
    cyclon.on_reply(NodeId(3), Vec::from([peer(50, 1, 0)]));
    assert!(cyclon.view().iter().all(|peer| peer.who.node != NodeId(50)), "nobody else's answer");
    cyclon.on_reply(partner, Vec::from([peer(50, 1, 0), peer(0, 1, 9)]));
    assert!(cyclon.view().iter().any(|peer| peer.who.node == NodeId(50)));
    cyclon.check();
}

#[test]
fn an_answer_never_holds_the_asker_and_what_was_given_away_makes_room() {
    let mut rng = Rng::new(2);
    for _ in 0..200 {
        let mut cyclon = view(1..=20);
        let given: Vec<Peer> = (100..108).map(|node| peer(node, 1, 0)).collect();
        let answer = cyclon.on_shuffle(NodeId(5), given.clone(), &mut rng);
        assert_eq!(answer.len(), Shape::USUAL.shuffle);
        assert!(answer.iter().all(|peer| peer.who.node != NodeId(5)));
        let away = answer.iter().all(|gone| !cyclon.view().contains(gone));
        assert!(away && given.iter().all(|one| cyclon.view().contains(one)));
        assert_eq!(cyclon.view().len(), Shape::USUAL.view);
    }
}

#[test]
fn a_younger_entry_and_a_newer_start_replace() {
    let mut cyclon = view(1..=3);
    let mut rng = Rng::new(3);
    cyclon.on_shuffle(NodeId(9), Vec::from([peer(3, 1, 9), peer(2, 1, 0)]), &mut rng);
    assert!(cyclon.view().contains(&peer(3, 1, 3)), "an older age does not overwrite");
    assert!(cyclon.view().contains(&peer(2, 1, 0)));
    cyclon.on_shuffle(NodeId(9), Vec::from([peer(3, 2, 9), peer(2, 0, 0)]), &mut rng);
    assert!(cyclon.view().contains(&peer(3, 2, 9)), "a restarted node is another");
    assert!(cyclon.view().contains(&peer(2, 1, 0)), "an older start is none");
}

#[test]
fn a_view_of_another_shape_is_as_large_as_it_says() {
    let shape = Shape { view: 40, shuffle: 12, period: Span::millis(20), ages_when_told: true };
    let (mut cyclon, mut rng) = (Cyclon::new(NodeId(0), shape), Rng::new(6));
    (1..=60).for_each(|node| cyclon.seed(peer(node, 1, node as u16)));
    assert_eq!((cyclon.view().len(), cyclon.shape()), (40, shape));
    let answer = cyclon.on_shuffle(NodeId(70), Vec::from([peer(70, 1, 0)]), &mut rng);
    assert_eq!(answer.len(), 12);
    let (_, given) = cyclon.begin(peer(0, 1, 0), &mut rng).expect("there are others");
    assert_eq!(given.len(), 12);
    cyclon.check();
    assert!(!Shape { shuffle: 0, ..shape }.is_sound(), "nothing would be exchanged");
    assert!(!Shape { shuffle: 41, ..shape }.is_sound(), "more than there is");
}

/// Many nodes that begin in a chain end in a graph whose in-degrees are close together, and from
/// which the dead are gone.
#[test]
fn shuffling_mixes_and_forgets_the_dead() {
    const NODES: u64 = 200;
    let mut rng = Rng::new(4);
    let mut nodes: Vec<Cyclon> =
        (0..NODES).map(|node| Cyclon::new(NodeId(node), Shape::USUAL)).collect();
    (0..NODES).for_each(|node| nodes[node as usize].seed(peer((node + 1) % NODES, 1, 0)));
    let shuffle = |nodes: &mut Vec<Cyclon>, rng: &mut Rng, alive: u64| {
        for node in 0..alive {
            let Some((to, given)) = nodes[node as usize].begin(peer(node, 1, 0), rng) else {
                continue;
            };
            if to.0 < alive {
                let answer = nodes[to.0 as usize].on_shuffle(NodeId(node), given, rng);
                nodes[node as usize].on_reply(to, answer);
            }
        }
    };
    (0..60).for_each(|_| shuffle(&mut nodes, &mut rng, NODES));
    let mut degrees = [0; NODES as usize];
    for one in nodes.iter().flat_map(Cyclon::view) {
        degrees[one.who.node.0 as usize] += 1;
    }
    let (low, high) = (degrees.iter().min(), degrees.iter().max());
    assert!(low >= Some(&8) && high <= Some(&36), "{low:?} to {high:?}");
    (0..60).for_each(|_| shuffle(&mut nodes, &mut rng, NODES / 2));
    let views = nodes[..NODES as usize / 2].iter().flat_map(Cyclon::view);
    assert!(views.into_iter().all(|peer| peer.who.node.0 < NODES / 2));
    nodes.iter().for_each(Cyclon::check);
}

const _: () = assert!(PUSHED.0 < PULLED.0 && Span::secs(1).0 == Shape::USUAL.period.0);
