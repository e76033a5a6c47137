//! Frames with odd contents, as a host that has gone wrong would send them, among real ones. They
//! pass the checksum, so lanes see them. Whatever they say, no host may end by one.
//!
//! More of them: `quorate-sim forge --seeds A..B`, or `make fuzz`.

use quorate_sim::prepared::Prepared;
use quorate_sim::seed::Runner;
use quorate_sim::shipped;

const SEEDS: u64 = 6;
/// One forged frame for so many real ones.
const ONE_IN: u64 = 4;
const EVENTS: u64 = 20_000;

#[test]
fn no_frame_ends_a_host() {
    let mut sent = 0;
    for name in ["both-moves", "both-churn"] {
        let prepared = Prepared::new(shipped::find(name).expect("it ships")).expect("it is valid");
        for seed in 0..SEEDS {
            let (report, forged) = Runner::default().forge(&prepared, seed, ONE_IN, EVENTS);
            assert_eq!(report.violation, None, "{name}, seed {seed}");
            sent += forged;
        }
    }
    assert!(sent > 5_000, "{sent} frames were forged");
}
