//! The judge of atomic registers against one that tries every order.

mod common;

use common::{ABSENT, DELETED, Row, STEPS_MAX, delete, get, history, put, value};
use quorate_check::atomic::judge;
use quorate_check::history::Completion;
use quorate_check::report::Verdict;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;

/// Whether some order of the rows explains them, tried one by one.
fn is_explained(rows: &[Row], used: u32, now: &Completion) -> bool {
    let is_left = |index: usize| used & (1 << index) == 0;
    let must = |row: &Row| !matches!(row.4, Completion::Unknown | Completion::Refused);
    if (0..rows.len()).all(|index| !is_left(index) || !must(&rows[index])) {
        return true;
    }
    (0..rows.len()).filter(|&index| is_left(index)).any(|index| {
        let (_, operation, invoked, _, completion) = &rows[index];
        let waits = rows
            .iter()
            .enumerate()
            .any(|(other, row)| is_left(other) && must(row) && other != index && row.3 < *invoked);
        if waits || *completion == Completion::Refused {
            return false;
        }
        let used = used | 1 << index;
        match operation {
            Operation::Put { value, .. } => {
                is_explained(rows, used, &Completion::Value(Some(value.clone())))
            }
            Operation::Delete { .. } => is_explained(rows, used, &ABSENT),
            _ => completion == now && is_explained(rows, used, now),
        }
    })
}

fn random_rows(rng: &mut Rng, count_max: u64, values: u64) -> Vec<Row> {
    let count = rng.between(1, count_max);
    let mut times: Vec<u64> = (0..count * 2).collect();
    for index in (1..times.len()).rev() {
        times.swap(index, rng.below(index as u64 + 1) as usize);
    }
    let unknown_ppm = [0, 150_000, 400_000][rng.below(3) as usize];
    let row = |pair: &[u64]| {
        let (from, to) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        let text = format!("v{}", rng.below(values));
        let (operation, mut completion) = match rng.below(10) {
            0..4 => (put("k", &text), Completion::Written),
            4 => (delete("k"), DELETED),
            5 => (get("k"), ABSENT),
            _ => (get("k"), value(&text)),
        };
        if rng.chance_ppm(unknown_ppm) {
            completion = Completion::Unknown;
        } else if rng.chance_ppm(20_000) {
            completion = Completion::Refused;
        }
        (from as u32, operation, from, to, completion)
    };
    times.chunks_exact(2).map(row).collect()
}

fn agree(seed: u64, rounds: usize, count_max: u64, values: u64) {
    let mut rng = Rng::new(seed);
    let (mut held, mut violated) = (0, 0);
    for round in 0..rounds {
        let rows = random_rows(&mut rng, count_max, values);
        let expected = is_explained(&rows, 0, &ABSENT);
        match judge(&history(&rows), STEPS_MAX) {
            Verdict::Holds => assert!(expected, "round {round}: missed {rows:#?}"),
            Verdict::Violated(why) => {
                assert!(!expected, "round {round}: false alarm {rows:#?}\n{why}");
                let shown: Vec<Row> = sorted(&rows, &why.operations);
                assert!(
                    !is_explained(&shown, 0, &ABSENT),
                    "round {round}: the explanation proves nothing\n{why}"
                );
                violated += 1;
                continue;
            }
            Verdict::Unknown { why } => panic!("round {round}: {why}"),
        }
        held += 1;
    }
    assert!(held > rounds / 10, "only {held} of {rounds} held");
    assert!(violated > rounds / 10, "only {violated} of {rounds} were violated");
}

/// The rows an explanation shows.
fn sorted(rows: &[Row], operations: &[usize]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.2);
    operations.iter().map(|&index| rows[index].clone()).collect()
}

#[test]
fn tiny_histories_of_two_values() {
    agree(1, 40_000, 6, 2);
}

#[test]
fn tiny_histories_of_one_value() {
    agree(2, 10_000, 6, 1);
}

#[test]
fn small_histories_of_three_values() {
    agree(3, 4_000, 8, 3);
}
