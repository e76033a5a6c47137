//! What consistent quorums are for: without them a change of views is enough for the judge to
//! condemn what clients are told. The same worlds are harmless with them.

use quorate_lab::SIMULATED;
use quorate_lab::quorums::STAMPS;
use quorate_sim::engines;
use quorate_sim::keyspace::Word;
use quorate_sim::prepared::Prepared;
use quorate_sim::scenario::Scenario;
use quorate_sim::seed::{Report, Runner, Setup};
use std::sync::LazyLock;

const SEEDS: u64 = 12;

static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| {
    engines::declare(SIMULATED);
    Scenario::parse("quorums", include_str!("../scenarios/quorums.toml")).expect("it is a scenario")
});

/// The scenario with consistent quorums or without, and with views that change or not.
fn prepared(stamps: &str, does_change: bool) -> Prepared {
    let mut scenario = SCENARIO.clone();
    let settings = &mut scenario.keyspaces[0].settings;
    settings.insert(STAMPS.to_owned(), Word::Text(stamps.to_owned()));
    if !does_change {
        // There is nobody else to take the place of who is cut off.
        scenario.hosts = 3;
        scenario.faults.cycle.truncate(3);
    }
    Prepared::new(scenario).expect("it is valid")
}

fn reports(prepared: &Prepared) -> impl Iterator<Item = Report> + '_ {
    let mut runner = Runner::default();
    (0..SEEDS).map(move |seed| runner.run(prepared, Setup { seed, ..Setup::default() }))
}

#[test]
fn majorities_of_two_views_need_not_meet() {
    let prepared = prepared("no", true);
    let mut found = reports(&prepared).filter_map(|report| report.violation);
    assert!(found.any(|violation| violation.judge == "linearizability"), "nobody is condemned");
}

#[test]
fn consistent_quorums_meet() {
    for report in reports(&prepared("yes", true)) {
        assert_eq!((report.violation, report.undecided), (None, None), "seed {}", report.seed);
    }
}

#[test]
fn plain_majorities_are_enough_while_views_stay() {
    for report in reports(&prepared("no", false)) {
        assert_eq!((report.violation, report.undecided), (None, None), "seed {}", report.seed);
    }
}
