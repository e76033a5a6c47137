//! The judge of operations over several keys on histories as long as a simulated world hands over.

mod common;
#[path = "common/map.rs"]
mod map;

use common::{Row, STEPS_MAX, check_item, delete_item, get_item, history, put_item, transact};
use map::{Map, saw, told_by};
use quorate_check::history::Completion::{Transacted, Unknown};
use quorate_check::report::Verdict;
use quorate_check::transactions::judge;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::transaction::{Item, ItemOutcome};

const CLIENTS: usize = 8;
const KEYS: [&str; 4] = ["w", "x", "y", "z"];

/// A transaction whose values nobody else writes. What it checks is mostly so.
fn draw(rng: &mut Rng, number: usize, map: &Map) -> Vec<Item> {
    let count = rng.between(1, 4);
    let item = |_| {
        let key = KEYS[rng.below(4) as usize];
        let found = map.get(key).map_or("", |text| text);
        match rng.below(8) {
            0..3 => get_item(key),
            3 if rng.below(4) == 0 => check_item(key, "nothing like it"),
            3 | 4 => check_item(key, found),
            5 => delete_item(key),
            _ => put_item(key, &format!("v{number}")),
        }
    };
    (0..count).map(item).collect()
}

/// What clients are told of transactions on one map, each done at one moment. Of one in ten nobody
/// knows; half of these are never done.
fn rows(rng: &mut Rng, count: usize) -> Vec<Row> {
    let mut free = [0; CLIENTS];
    let mut spans: Vec<(u64, u64, u64)> = Vec::new();
    for _ in 0..count {
        let client = (0..CLIENTS).min_by_key(|client| free[*client]).expect("there are some");
        let begun: u64 = free[client];
        let (done, ended) = (begun + rng.between(1, 40), begun + rng.between(41, 80));
        free[client] = ended + rng.between(1, 30);
        spans.push((done, begun, ended));
    }
    spans.sort_unstable();
    let mut map = Map::new();
    let rows = spans.into_iter().enumerate().map(|(number, (_, begun, ended))| {
        let items = draw(rng, number, &map);
        let before = map.clone();
        let told = told_by(&items, &mut map, &mut || false, 0);
        let completion = match rng.below(20) {
            0 => Unknown,
            1 => {
                map = before;
                Unknown
            }
            _ => told,
        };
        (number as u32, transact(&items), begun, ended, completion)
    });
    rows.collect()
}

/// Has a get, late in the history, tell what its key had long before. Says whether there is one.
fn make_stale(rows: &mut [Row]) -> bool {
    let half = rows.len() / 2;
    let (early, late) = rows.split_at_mut(half);
    let is_put = |item: &&Item| matches!(item, Item::Put { key, .. } if &key[..] == b"x");
    let done = early[..half / 2].iter().filter(|row| matches!(row.4, Transacted(_)));
    let items = done.filter_map(|row| match &row.1 {
        Operation::Transact { items, .. } => items.iter().rfind(is_put),
        _ => None,
    });
    let Some(Item::Put { value, .. }) = items.last() else { return false };
    let value = String::from_utf8(value.to_vec()).expect("text");
    for (_, operation, _, _, completion) in late {
        let (Operation::Transact { items, .. }, Transacted(told)) = (operation, completion) else {
            continue;
        };
        // Of what an item before it has written nothing is stale.
        if matches!(&items[0], Item::Get { key } if &key[..] == b"x") {
            told[0] = saw(&value);
            return true;
        }
    }
    false
}

#[test]
fn long_histories_are_decided() {
    let mut stale = 0;
    for seed in 0..40 {
        let mut rows = rows(&mut Rng::new(seed), 400);
        let verdict = judge(&history(&rows), STEPS_MAX);
        assert_eq!(verdict, Verdict::Holds, "seed {seed}: {verdict}");
        if !make_stale(&mut rows) {
            continue;
        }
        stale += 1;
        let verdict = judge(&history(&rows), STEPS_MAX);
        assert!(verdict.is_violated(), "seed {seed}: {verdict}");
    }
    assert!(stale > 30, "only {stale} histories have such a get");
}

#[test]
fn a_value_that_nobody_wrote_is_found_at_once() {
    let mut rows = rows(&mut Rng::new(7), 400);
    let is_read = |told: &&mut ItemOutcome| matches!(told, ItemOutcome::Value(Some(_)));
    let told = rows[200..].iter_mut().find_map(|row| match &mut row.4 {
        Transacted(told) => told.iter_mut().find(is_read),
        _ => None,
    });
    *told.expect("somebody reads") = saw("never");
    let Verdict::Violated(why) = judge(&history(&rows), 10_000) else { panic!("it was invented") };
    assert!(why.operations.len() <= 2, "{why}");
}
