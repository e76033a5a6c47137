//! The cluster of the DataFlagons measurements: what is calm misses nothing, what is not shows it,
//! and a seed repeats. Nothing is said of times.

use quorate_kernel::time::Span;
use quorate_lab::dataflagons::run::{Found, measure};
use quorate_lab::dataflagons::simulated::traffic::Kind;
use quorate_lab::dataflagons::simulated::{Cluster, Network, Shape};
use quorate_protocols::epidemic::Level;

const NODES: usize = 32;
const SECONDS: u64 = 12;
const SETTLE_ROUNDS: u64 = 2000;

/// Messages that are faster than a round.
fn calm(seed: u64) -> Shape {
    Shape { network: Network::REGION, keys: 20, ..Shape::of(NODES, seed) }
}

fn all_done(found: &Found) -> bool {
    found.requests.0 == found.requests.1 && found.requests.1 > 0
}

#[test]
fn a_calm_cluster_misses_nothing() {
    for acks in [1, 4] {
        let found = measure(&Shape { acks, ..calm(1) }, SECONDS);
        assert!(found.settled.is_some(), "all nodes are ready");
        assert!(found.slices > 1, "there are slices");
        let (delivered, judged) = (found.delivered, found.judged);
        assert!(delivered.events >= 10, "{delivered:?}");
        let pairs = delivered.events * NODES as u64;
        assert_eq!((delivered.pairs, delivered.holes), (pairs, 0), "{delivered:?}");
        assert_eq!(delivered.inversions, 0);
        assert!(judged.reads >= 10 && judged.words > judged.reads, "{judged:?}");
        assert_eq!((judged.stale_words, judged.stale), (0, 0), "{judged:?}");
        assert!(all_done(&found), "{:?}", found.requests);
        assert_eq!((found.missing, found.repaired), (Some(0), Some(0)));
        // An event is delivered when it is TTL + 2 rounds old, give or take what rounds vary.
        let fastest = found.latency[0].quantile(0.0).expect("reads were answered") as f64 / 1e3;
        assert!(fastest > 0.8 * found.expected_ms(), "{fastest} ms");
    }
}

#[test]
fn too_few_rounds_to_too_few_leave_holes_that_are_noticed() {
    let shape = Shape { fanout: Some(2), ttl: Some(2), loss_ppm: 200_000, ..calm(1) };
    let found = measure(&shape, SECONDS);
    let delivered = found.delivered;
    assert!(delivered.holes * 10 > delivered.pairs, "{delivered:?}");
    assert_eq!(delivered.inversions, 0, "what is delivered is in order all the same");
    assert!(found.noticed.0 > 0 && found.noticed.1 > 0, "{:?}", found.noticed);
    assert!(found.repaired.is_some(), "repair brings what holes have left out");
}

#[test]
fn a_seed_repeats_and_another_one_does_not() {
    let of = |seed| {
        let found = measure(&Shape { churn_percent: 100, loss_ppm: 50_000, ..calm(seed) }, SECONDS);
        (found.delivered, found.judged, found.requests, found.traffic, found.replaced)
    };
    let first = of(3);
    assert_eq!(first, of(3));
    assert_ne!(first, of(4));
    assert!(first.4 > 0, "nodes are replaced");
}

#[test]
fn who_grows_by_four_agrees_on_more_slices_and_has_all_copies() {
    let mut cluster = Cluster::new(&Shape { nodes: NODES / 2, ..calm(5) });
    cluster.settle(SETTLE_ROUNDS).expect("it settles");
    let before = cluster.agreed().expect("it has");
    cluster.load();
    cluster.run(Span::secs(5));
    cluster.grow(3 * NODES / 2, Span::secs(20));
    cluster.run(Span::secs(21));
    cluster.rest();
    let is_equal =
        |cluster: &Cluster| cluster.agreed().is_some_and(|slices| cluster.missing(slices) == 0);
    cluster.until(SETTLE_ROUNDS, is_equal).expect("replicas become equal");
    cluster.check();
    assert_eq!(cluster.size(), 2 * NODES);
    assert!(cluster.agreed() > Some(before), "{before} slices");
}

#[test]
fn only_ordered_levels_send_balls() {
    for (level, is_ordered) in [(Level::None, false), (Level::Eventual, true)] {
        let found = measure(&Shape { level, acks: 3, ..calm(6) }, SECONDS);
        assert_eq!(found.traffic[Kind::Ball].messages > 0, is_ordered, "{level:?}");
        assert!(found.traffic[Kind::Flask].messages > 0 && found.requests.0 > 0);
    }
}
