//! The engine on the one simulated world: hosts that are killed and lose power, networks that lose
//! and repeat what they carry. All that clients are told is judged.

use quorate_kernel::effects::Release;
use quorate_kernel::lane::{Lane, Raised};
use quorate_sim::engines;
use quorate_sim::host::Wrap;
use quorate_sim::plant::{Bug, Planted};
use quorate_sim::prepared::Prepared;
use quorate_sim::scenario::Scenario;
use quorate_sim::seed::{Report, Runner, Setup};
use std::sync::LazyLock;

const SEEDS: u64 = 300;

/// The scenario, made ready once for all tests of this process.
static COUNTER: LazyLock<Prepared> = LazyLock::new(|| {
    engines::declare(&[&quorate_counter::ENGINE]);
    let scenario = Scenario::parse("counter", include_str!("../scenarios/counter.toml"));
    Prepared::new(scenario.expect("it is a scenario")).expect("it is valid")
});

fn run(runner: &mut Runner, seed: u64, wrap: Option<Wrap>) -> Report {
    runner.run(&COUNTER, Setup { seed, wrap, ..Setup::default() })
}

#[test]
fn transactions_keep_their_promise_whatever_fails() {
    let (mut runner, mut counting, mut unknown) = (Runner::default(), 0, 0);
    for seed in 0..SEEDS {
        let report = run(&mut runner, seed, None);
        assert_eq!(report.violation, None, "seed {seed}");
        assert_eq!(report.undecided, None, "seed {seed}");
        counting += u64::from(report.idle.is_none());
        unknown += report.counts.unknown;
    }
    assert!(counting * 100 >= SEEDS * 95, "only {counting} of {SEEDS} seeds did enough to count");
    assert!(unknown > SEEDS, "clients gave up only {unknown} times");
}

/// Acknowledges before anything is on disk.
fn early(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let on_raised = |raised: &mut Vec<Raised>, from: usize| {
        for raised in &mut raised[from..] {
            if let Raised::Answer { release, .. } = raised {
                *release = Release::Early;
            }
        }
    };
    Planted::around(inner, Bug { on_raised, ..Bug::NONE })
}

/// Leaves out the last write of several.
fn half_done(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let on_raised = |raised: &mut Vec<Raised>, from: usize| {
        let is_write = |at: &usize| matches!(raised[*at], Raised::Write { .. });
        let writes: Vec<usize> = (from..raised.len()).filter(is_write).collect();
        if let [_, .., last] = writes[..] {
            raised.remove(last);
        }
    };
    Planted::around(inner, Bug { on_raised, ..Bug::NONE })
}

#[test]
fn planted_bugs_are_condemned_by_the_judge_of_transactions() {
    for (name, wrap) in [("early", early as Wrap), ("half done", half_done)] {
        let mut runner = Runner::default();
        let found = (0..SEEDS).find_map(|seed| run(&mut runner, seed, Some(wrap)).violation);
        let found = found.unwrap_or_else(|| panic!("{name} survived"));
        assert_eq!(found.judge, "transactions", "{name}: {}", found.message);
    }
}
