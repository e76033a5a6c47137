//! Frames with odd contents, as a host that has gone wrong would send them, among real ones. They
//! pass the checksum, so lanes see them. Whatever they say, no host may end by one.
//!
//! More of them: `quorate-sim forge --seeds A..B`, or `make fuzz`. The same at a real door is a
//! test of the server.

use quorate_kernel::ids::LaneId;
use quorate_sim::forger::WORLDS;
use quorate_sim::prepared::Prepared;
use quorate_sim::seed::Runner;
use quorate_sim::shipped;
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 6;
/// One forged frame for so many real ones.
const ONE_IN: u64 = 4;
const EVENTS: u64 = 20_000;
/// The fewest forged frames of each lane, over all worlds.
const LEAST: u64 = 100;

#[test]
fn no_frame_ends_a_host() {
    let (mut sent, mut engines) = (BTreeMap::<LaneId, u64>::new(), BTreeSet::new());
    for name in WORLDS {
        let prepared = Prepared::new(shipped::find(name).expect("it ships")).expect("it is valid");
        for seed in 0..SEEDS {
            let (report, forged) = Runner::default().forge(&prepared, seed, ONE_IN, EVENTS);
            assert_eq!(report.violation, None, "{name}, seed {seed}");
            for (lane, count) in forged {
                *sent.entry(lane).or_default() += count;
                let keyspace = prepared.keyspaces.iter().find(|keyspace| keyspace.lane == lane);
                engines.extend(keyspace.and_then(|keyspace| keyspace.engine).map(|it| it.name));
            }
        }
    }
    let lanes = [LaneId::OVERLAY, LaneId::CATALOG, LaneId::KEYSPACES];
    let few = lanes.iter().find(|lane| sent.get(lane).is_none_or(|count| *count < LEAST));
    assert_eq!(few, None, "{sent:?}");
    assert_eq!(engines, BTreeSet::from(["causal", "linearizable"]));
    assert!(sent.values().sum::<u64>() > 20_000, "{sent:?}");
}
