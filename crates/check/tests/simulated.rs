//! Histories of a simulated register always hold; with one answer falsified they are condemned.

mod common;

use bytes::Bytes;
use common::{STEPS_MAX, Workload, simulate};
use quorate_check::atomic::{Judge, judge};
use quorate_check::history::{Completion, Entry, History, Recorder};
use quorate_check::judge_all;
use quorate_check::report::Verdict;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;

const SMALL: Workload = Workload {
    operations: 200,
    clients: 10,
    keys: 5,
    unknown_ppm: 50_000,
    refused_ppm: 20_000,
    put_ppm: 400_000,
    delete_ppm: 50_000,
    values: 0,
};
const LARGE: Workload = Workload { operations: 10_000, clients: 20, ..SMALL };

/// The same history with some completions falsified.
fn falsified(history: &History, mut change: impl FnMut(usize, &Entry, &mut Completion)) -> History {
    let mut recorder = Recorder::new();
    for (index, entry) in history.entries().iter().enumerate() {
        let id = recorder.invoke(entry.client(), entry.operation().clone(), entry.invoked());
        let Some(time) = entry.completed() else { continue };
        let mut completion = entry.completion().clone();
        change(index, entry, &mut completion);
        recorder.complete(id, completion, time);
    }
    recorder.into_history()
}

fn is_before(earlier: &Entry, later: &Entry) -> bool {
    earlier.completed().is_some_and(|time| time < later.invoked())
}

fn is_same_key(a: &Entry, b: &Entry) -> bool {
    a.operation().key() == b.operation().key()
}

fn written(entry: &Entry) -> Option<&Bytes> {
    match (entry.operation(), entry.completion()) {
        (Operation::Put { value, .. }, Completion::Written) => Some(value),
        _ => None,
    }
}

fn is_answered_get(entry: &Entry) -> bool {
    matches!(entry.completion(), Completion::Value(_))
}

/// An answered get, drawn at random among those for which `find` finds something.
fn draw<T>(
    history: &History,
    rng: &mut Rng,
    find: impl Fn(&Entry) -> Option<T>,
) -> Option<(usize, T)> {
    let entries = history.entries();
    let gets = (0..entries.len()).filter(|&index| is_answered_get(&entries[index]));
    let mut found: Vec<_> = gets.filter_map(|get| Some((get, find(&entries[get])?))).collect();
    if found.is_empty() {
        return None;
    }
    Some(found.swap_remove(rng.below(found.len() as u64) as usize))
}

/// Condemned, with few operations to show for it.
fn assert_condemned(history: &History, seed: u64, operations_max: usize) {
    match judge(history, STEPS_MAX) {
        Verdict::Violated(why) => {
            assert!(why.operations.len() <= operations_max, "seed {seed}\n{why}");
        }
        other => panic!("seed {seed}: {other}"),
    }
}

#[test]
fn a_stale_read_is_condemned() {
    let mut planted = 0;
    for seed in 0..200 {
        let history = simulate(SMALL, seed);
        let puts: Vec<&Entry> = history.entries().iter().filter(|e| written(e).is_some()).collect();
        // A value that another acknowledged put had replaced before the get began.
        let outdated = |get: &Entry| {
            let of_key = || puts.iter().filter(|put| is_same_key(put, get));
            let newer = of_key().filter(|put| is_before(put, get));
            newer.flat_map(|newer| of_key().filter(|old| is_before(old, newer))).next()
        };
        let Some((get, old)) = draw(&history, &mut Rng::new(seed), outdated) else { continue };
        let old = written(old).cloned();
        let stale = falsified(&history, |index, _, completion| {
            if index == get {
                *completion = Completion::Value(old.clone());
            }
        });
        assert_condemned(&stale, seed, 4);
        planted += 1;
    }
    assert!(planted > 150, "{planted}");
}

#[test]
fn a_lost_write_is_condemned() {
    let mut planted = 0;
    for seed in 0..200 {
        let history = simulate(Workload { delete_ppm: 0, ..SMALL }, seed);
        let seen = |get: &Entry| match get.completion() {
            Completion::Value(Some(value)) => {
                let mut entries = history.entries().iter();
                let put = entries.find(|put| written(put) == Some(value))?;
                is_before(put, get).then(|| value.clone())
            }
            _ => None,
        };
        let Some((_, lost)) = draw(&history, &mut Rng::new(seed), seen) else { continue };
        // Whoever saw the acknowledged value finds nothing.
        let without = falsified(&history, |_, _, completion| {
            if *completion == Completion::Value(Some(lost.clone())) {
                *completion = Completion::Value(None);
            }
        });
        assert_condemned(&without, seed, 3);
        planted += 1;
    }
    assert!(planted > 150, "{planted}");
}

#[test]
fn swapped_values_are_condemned() {
    for seed in 0..200 {
        let history = simulate(SMALL, seed);
        let mut rng = Rng::new(seed);
        let found = |get: &Entry| match get.completion() {
            Completion::Value(value) => value.clone(),
            _ => None,
        };
        let first = draw(&history, &mut rng, found);
        let (first, a) = first.expect("some get finds a value");
        let other_key =
            |get: &Entry| found(get).filter(|_| !is_same_key(get, &history.entries()[first]));
        let second = draw(&history, &mut rng, other_key);
        let (second, b) = second.expect("some get of another key finds a value");
        let swapped = falsified(&history, |index, _, completion| {
            if index == first {
                *completion = Completion::Value(Some(b.clone()));
            } else if index == second {
                *completion = Completion::Value(Some(a.clone()));
            }
        });
        assert_condemned(&swapped, seed, 1);
    }
}

#[test]
fn a_refused_write_that_shows_is_condemned() {
    for seed in 0..200 {
        let history = simulate(SMALL, seed);
        let found = |get: &Entry| match get.completion() {
            Completion::Value(value) => value.clone(),
            _ => None,
        };
        let shown = draw(&history, &mut Rng::new(seed), found);
        let (_, shown) = shown.expect("some get finds a value");
        let refused = falsified(&history, |_, entry, completion| {
            if matches!(entry.operation(), Operation::Put { value, .. } if *value == shown) {
                *completion = Completion::Refused;
            }
        });
        assert_condemned(&refused, seed, 2);
    }
}

#[test]
fn one_stale_read_among_ten_thousand_operations_is_found() {
    for (seed, delete_ppm) in [(1, 0), (2, 100_000)] {
        let history = simulate(Workload { delete_ppm, ..LARGE }, seed);
        let entries = history.entries();
        let of_first_key = |entry: &&Entry| is_same_key(entry, &entries[0]);
        let first = entries.iter().filter(of_first_key).find_map(written).cloned();
        let last = (0..entries.len()).rev().find(|&index| {
            is_answered_get(&entries[index]) && is_same_key(&entries[index], &entries[0])
        });
        let stale = falsified(&history, |index, _, completion| {
            if Some(index) == last {
                *completion = Completion::Value(first.clone());
            }
        });
        assert_condemned(&stale, seed, 3);
    }
}

#[test]
fn a_search_that_is_cut_off_never_passes() {
    let history = simulate(LARGE, 1);
    for steps_max in [0, 10, 1000] {
        let verdict = judge(&history, steps_max);
        assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict}");
    }
}

#[test]
fn histories_of_a_register_hold() {
    let mut judge = Judge::new();
    for seed in 0..100 {
        let mixes = [
            SMALL,
            Workload { unknown_ppm: 0, ..SMALL },
            Workload { delete_ppm: 300_000, ..SMALL },
            Workload { values: 2, unknown_ppm: 200_000, ..SMALL },
            Workload { keys: 1, values: 3, clients: 20, ..SMALL },
        ];
        for workload in mixes {
            let verdict = judge.judge(&simulate(workload, seed), STEPS_MAX);
            assert_eq!(verdict, Verdict::Holds, "seed {seed}\n{verdict}");
        }
    }
}

#[test]
fn ten_thousand_operations_of_twenty_clients_hold() {
    let mixes = [
        LARGE,
        Workload { unknown_ppm: 0, ..LARGE },
        Workload { delete_ppm: 300_000, ..LARGE },
        Workload { values: 4, ..LARGE },
        Workload { keys: 1, ..LARGE },
        Workload { keys: 1, values: 2, delete_ppm: 200_000, ..LARGE },
    ];
    for (seed, workload) in (0..).zip(mixes) {
        let history = simulate(workload, seed);
        assert_eq!(history.entries().len(), 10_000);
        let report = judge_all(&history, STEPS_MAX);
        assert_eq!(report.order, Verdict::Holds, "{report}");
    }
}
