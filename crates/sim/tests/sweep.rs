//! The simulator as a whole: it repeats itself, its scenarios hold, and its judges see.

use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::lane::{Lane, Raised};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Request;
use quorate_sim::plant::{Bug, Planted};
use quorate_sim::prepared::Prepared;
use quorate_sim::replay::Replay;
use quorate_sim::seed::{Report, Runner, Setup};
use quorate_sim::{shipped, shrink};

fn prepared(name: &str) -> Prepared {
    Prepared::new(shipped::find(name).expect("it ships")).expect("it is valid")
}

fn all() -> Vec<Prepared> {
    let prepare = |scenario| Prepared::new(scenario).expect("it is valid");
    shipped::scenarios().into_iter().map(prepare).collect()
}

fn run(runner: &mut Runner, prepared: &Prepared, seed: u64) -> Report {
    runner.run(prepared, Setup { seed, ..Setup::default() })
}

#[test]
fn a_seed_run_twice_leaves_the_same_trace() {
    for prepared in all() {
        let name = &prepared.scenario.name;
        let first = run(&mut Runner::default(), &prepared, 7);
        let mut used = Runner::default();
        run(&mut used, &prepared, 8);
        let second = run(&mut used, &prepared, 7);
        assert_eq!(first, second, "{name}");
        assert_ne!(first.hash, run(&mut used, &prepared, 8).hash, "{name}");
    }
}

#[test]
fn writing_the_trace_does_not_change_it() {
    let prepared = prepared("churn");
    let mut runner = Runner::default();
    let silent = run(&mut runner, &prepared, 3);
    let out: Box<dyn std::io::Write> = Box::new(std::io::sink());
    let told = runner.run(&prepared, Setup { seed: 3, out: Some(out), ..Setup::default() });
    assert_eq!(silent, told);
}

#[test]
fn every_scenario_holds() {
    let mut runner = Runner::default();
    for prepared in all() {
        let name = &prepared.scenario.name;
        for seed in 1000..1002 {
            assert_eq!(run(&mut runner, &prepared, seed).violation, None, "{name}, seed {seed}");
        }
    }
}

/// Seeds that found something. It has tests of its own, too: when the code changes, a seed may meet
/// other moments.
const KEPT: &[(&str, u64)] = &[
    ("causal-single", 92_004_307),
    ("causal-power", 1_001_304),
    ("causal-single", 1_011_463),
    ("causal-single", 1_017_924),
    ("causal-single", 1_066_828),
    ("causal-retries", 1_002_318),
];

#[test]
fn seeds_that_found_something_hold() {
    let mut runner = Runner::default();
    for (name, seed) in KEPT {
        assert_eq!(run(&mut runner, &prepared(name), *seed).violation, None, "{name}, seed {seed}");
    }
}

fn answer(raised: &mut Vec<Raised>, ticket: Ticket, outcome: Outcome) -> bool {
    let release = quorate_kernel::effects::Release::Early;
    raised.push(Raised::Answer { ticket, outcome, release });
    true
}

/// Acknowledges every ninth put without doing it.
fn forgetful(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |request: &mut Request, raised: &mut Vec<Raised>, ticket: Ticket| {
        let is_put = matches!(request.operation, Operation::Put { .. });
        is_put && ticket.0.is_multiple_of(9) && answer(raised, ticket, Outcome::written())
    };
    Planted::around(inner, Bug { on_request: lie, ..Bug::NONE })
}

/// Answers every ninth get with a value that nobody wrote.
fn inventive(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |request: &mut Request, raised: &mut Vec<Raised>, ticket: Ticket| {
        let is_get = matches!(request.operation, Operation::Get { .. });
        let invented = Outcome::value(Some(Bytes::from_static(b"invented")));
        is_get && ticket.0.is_multiple_of(9) && answer(raised, ticket, invented)
    };
    Planted::around(inner, Bug { on_request: lie, ..Bug::NONE })
}

/// Never answers one put in nine.
fn silent(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |request: &mut Request, _: &mut Vec<Raised>, ticket: Ticket| {
        matches!(request.operation, Operation::Put { .. }) && ticket.0.is_multiple_of(9)
    };
    Planted::around(inner, Bug { on_request: lie, ..Bug::NONE })
}

/// Breaks an invariant at the fiftieth request.
fn broken(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |_: &mut Request, _: &mut Vec<Raised>, ticket: Ticket| {
        assert!(ticket.0 < 50, "planted: ticket {} is too many", ticket.0);
        false
    };
    Planted::around(inner, Bug { on_request: lie, ..Bug::NONE })
}

#[test]
fn planted_bugs_are_condemned_by_the_right_judge() {
    let prepared = prepared("calm");
    let plants: [(quorate_sim::host::Wrap, &[&str]); 4] = [
        (forgetful, &["linearizability", "durable"]),
        (inventive, &["linearizability", "durable"]),
        (silent, &["liveness"]),
        (broken, &["panic"]),
    ];
    for (index, (wrap, judges)) in plants.into_iter().enumerate() {
        let mut runner = Runner::default();
        let violation = (0..20).find_map(|seed| {
            let setup = Setup { seed, wrap: Some(wrap), ..Setup::default() };
            runner.run(&prepared, setup).violation
        });
        let violation = violation.unwrap_or_else(|| panic!("plant {index} survived"));
        assert!(judges.contains(&violation.judge), "plant {index}: {violation:?}");
        if violation.judge == "panic" {
            assert!(violation.message.contains("planted: ticket 50"), "{violation:?}");
        }
    }
}

#[test]
fn a_failing_seed_is_reduced_to_what_matters() {
    let prepared = prepared("churn");
    let mut runner = Runner::default();
    let replay = Replay::of(&prepared, 2);
    assert!(replay.faults.len() > 5);
    let shrunk = shrink::shrink(&mut runner, replay.clone(), Some(inventive));
    let shrunk = shrunk.expect("it can be run").expect("it fails");
    assert!(shrunk.replay.faults.is_empty(), "the planted bug needs no fault");
    assert!(shrunk.replay.scenario.keyspaces[0].workload.operations <= 40);
    let read_back = Replay::parse("test", &shrunk.replay.to_text()).expect("it is a replay");
    let again = shrink::run(&mut runner, &read_back, Some(inventive)).expect("it can be run");
    assert_eq!(again.violation, Some(shrunk.violation));
    assert!(shrink::shrink(&mut runner, replay, None).expect("it can be run").is_none());
}
