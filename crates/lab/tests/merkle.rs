//! The baseline of the DottedDB measurements keeps the promise of its clients under faults, so that
//! what is compared with it does the same work.

use quorate_lab::SIMULATED;
use quorate_sim::engines;
use quorate_sim::prepared::Prepared;
use quorate_sim::scenario::Scenario;
use quorate_sim::seed::{Runner, Setup};

const SEEDS: u64 = 12;

#[test]
fn trees_bring_every_update_everywhere_whatever_fails() {
    engines::declare(SIMULATED);
    let scenario = Scenario::parse("merkle", include_str!("../scenarios/merkle.toml"));
    let prepared = Prepared::new(scenario.expect("it is a scenario")).expect("it is valid");
    let (mut runner, mut counting) = (Runner::default(), 0);
    for seed in 0..SEEDS {
        let report = runner.run(&prepared, Setup { seed, ..Setup::default() });
        assert_eq!((report.violation, report.undecided), (None, None), "seed {seed}");
        counting += u64::from(report.idle.is_none());
    }
    assert!(counting * 10 >= SEEDS * 9, "only {counting} of {SEEDS} seeds did enough to count");
}
