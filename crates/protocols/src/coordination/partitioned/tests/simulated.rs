//! Trees over partitions with all faults, in the library's world: is what clients see as if there
//! were one tree in one place?

use super::super::{Volery, check};
use super::judge::{Done, Judge};
use super::load::Clients;
use crate::coordination::tree::sessions;
use crate::multicast::Pace;
use crate::smr::partitioned::Caching;
use crate::testing::partitions::{Met, Seen, World};
use std::ops::Range;
use std::vec::Vec;

fn run(seed: u64, pace: Pace, caching: Caching) -> (Met, Done) {
    let mut world: World<Volery, Clients> = World::new(seed, pace, caching, Clients::new(seed));
    let history: Vec<Seen<Volery>> = world.run();
    let order = world.witness.order(&history);
    let order = order.unwrap_or_else(|| panic!("seed {seed}: no order of all is each partition's"));
    let mut judge = Judge::new();
    for (seen, answer) in &order {
        let judged = judge.execute(seen, answer);
        judged.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    let (partitions, placement) = (world.partitions(), world.placement());
    check(&partitions, &placement);
    for partition in placement.partitions().iter() {
        let known = sessions(partitions[&partition]).map(|(id, it)| (id, it.attached));
        let expected = judge.model.sessions.iter().map(|(id, it)| (*id, it.attached));
        assert!(known.eq(expected), "seed {seed}: all partitions know all sessions");
    }
    (world.met, judge.done)
}

fn run_all(seeds: Range<u64>, pace: Pace, caching: Caching) -> (Met, Done) {
    let (mut met, mut all, count) = (Met::default(), Done::default(), seeds.end - seeds.start);
    for seed in seeds {
        let (more, done) = run(seed, pace, caching);
        met.add(more);
        all.changes += done.changes;
        all.sets += done.sets;
        all.ended += done.ended;
    }
    met.assert_all();
    assert!(all.changes > 10 * count && all.sets > count, "{all:?} in {count} worlds");
    (met, all)
}

#[test]
fn a_tree_over_partitions_is_as_one_tree_with_skips_by_demand() {
    let (_, done) = run_all(0..24, Pace::Demand, Caching::Off);
    assert!(done.ended > 0, "nodes went with their sessions: {done:?}");
}

#[test]
fn a_tree_over_partitions_is_as_one_tree_with_skips_by_time() {
    run_all(1000..1012, Pace::Time { origin_ms: 0, slots_per_s: 600 }, Caching::Off);
}

#[test]
fn a_tree_over_partitions_is_as_one_tree_with_conservative_caches() {
    let (met, _) = run_all(2000..2012, Pace::Demand, Caching::Conservative);
    assert!(met.validated > 0 && met.rolled_back == 0, "{met:?}");
}

#[test]
fn a_tree_over_partitions_is_as_one_tree_with_speculative_caches() {
    let (met, _) = run_all(3000..3012, Pace::Demand, Caching::Speculative);
    assert!(met.validated > 0 && met.rolled_back > 0, "{met:?}");
}
