//! The judge of operations over several keys: what it must condemn, what it must let pass, and that
//! it agrees with one that tries every order.

mod common;
#[path = "common/map.rs"]
mod map;

use common::{
    ABSENT, Row, STEPS_MAX, check_item, delete_item, get, get_item, history, put, put_item,
    transact, value,
};
use map::{Map, is_met, saw, told_by};
use quorate_check::history::Completion::{self, Refused, Transacted, Unknown, Unmet, Written};
use quorate_check::report::Verdict;
use quorate_check::transactions::judge;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::transaction::ItemOutcome::{self, Checked, Deleted};
use quorate_kernel::transaction::{Condition, Item};

fn judged(rows: &[Row]) -> Verdict {
    judge(&history(rows), STEPS_MAX)
}

fn done(told: &[ItemOutcome]) -> Completion {
    Transacted(told.to_vec())
}

const WROTE: ItemOutcome = ItemOutcome::Written;

/// Both keys are set to "0".
fn setup() -> Row {
    (0, transact(&[put_item("x", "0"), put_item("y", "0")]), 1, 2, done(&[WROTE, WROTE]))
}

/// Reads both keys.
fn both(client: u32, from: u64, x: &str, y: &str) -> Row {
    let items = [get_item("x"), get_item("y")];
    (client, transact(&items), from, from + 5, done(&[saw(x), saw(y)]))
}

fn condemned(rows: &[Row]) {
    let verdict = judged(rows);
    assert!(verdict.is_violated(), "{verdict} {rows:#?}");
}

fn held(rows: &[Row]) {
    let verdict = judged(rows);
    assert_eq!(verdict, Verdict::Holds, "{verdict} {rows:#?}");
}

#[test]
fn a_lost_update_is_condemned() {
    let update = |client, from, old: &str, new: &str| -> Row {
        let items = [get_item("x"), put_item("x", new)];
        (client, transact(&items), from, from + 50, done(&[saw(old), WROTE]))
    };
    let [first, second] = [update(1, 10, "0", "1"), update(2, 20, "0", "2")];
    condemned(&[setup(), first.clone(), second]);
    held(&[setup(), first.clone(), update(2, 20, "1", "2")]);
    // If nobody knows of the first, it may never have happened.
    let unknown = (1, first.1.clone(), 10, 60, Unknown);
    held(&[setup(), unknown.clone(), update(2, 20, "0", "2")]);
    // But it has if somebody saw it: then the second came before it.
    let late = |x: &str| (3, get("x"), 90, 91, value(x));
    held(&[setup(), unknown.clone(), update(2, 20, "0", "2"), late("1")]);
    let early = (3, get("x"), 12, 14, value("1"));
    condemned(&[setup(), unknown, update(2, 20, "0", "2"), early]);
}

#[test]
fn a_dirty_read_is_condemned() {
    let write = transact(&[check_item("y", "7"), put_item("x", "1")]);
    // What was not done was seen.
    condemned(&[setup(), (1, write.clone(), 10, 20, Unmet { item: 0 }), both(2, 15, "1", "0")]);
    condemned(&[setup(), (1, write.clone(), 10, 20, Refused), both(2, 15, "1", "0")]);
    // Nobody knows what became of it, but its check cannot have held.
    condemned(&[setup(), (1, write.clone(), 10, 20, Unknown), both(2, 15, "1", "0")]);
    held(&[setup(), (1, write, 10, 20, Unmet { item: 0 }), both(2, 15, "0", "0")]);
    // Of two values that one transaction leaves in a key only the last is there for others.
    let twice = transact(&[put_item("x", "1"), put_item("x", "2")]);
    let twice = (1, twice, 10, 20, done(&[WROTE, WROTE]));
    condemned(&[setup(), twice.clone(), both(2, 12, "1", "0")]);
    held(&[setup(), twice, both(2, 12, "2", "0")]);
}

#[test]
fn write_skew_is_condemned() {
    // Each sees the other's key as it was, and writes its own.
    let skewed = |client, from, other: &str, seen: &str, own: &str| -> Row {
        let items = [get_item(other), put_item(own, "1")];
        (client, transact(&items), from, from + 50, done(&[saw(seen), WROTE]))
    };
    let first = skewed(1, 10, "y", "0", "x");
    condemned(&[setup(), first.clone(), skewed(2, 12, "x", "0", "y")]);
    held(&[setup(), first, skewed(2, 12, "x", "1", "y")]);
    // The same with checks.
    let checked = |client, from, other: &str, own: &str| -> Row {
        let items = [check_item(other, "0"), put_item(own, "1")];
        (client, transact(&items), from, from + 50, done(&[Checked, WROTE]))
    };
    let first = checked(1, 10, "y", "x");
    condemned(&[setup(), first.clone(), checked(2, 12, "x", "y")]);
    let (client, operation, from, to, _) = checked(2, 12, "x", "y");
    held(&[setup(), first, (client, operation, from, to, Unmet { item: 0 })]);
}

#[test]
fn a_stale_read_after_an_acknowledgement_is_condemned() {
    let write = transact(&[put_item("x", "1"), put_item("y", "1")]);
    let write = |completion| (1, write.clone(), 10, 20, completion);
    let acknowledged = write(done(&[WROTE, WROTE]));
    condemned(&[setup(), acknowledged.clone(), both(2, 30, "0", "0")]);
    condemned(&[setup(), acknowledged.clone(), (2, get("x"), 30, 31, value("0"))]);
    held(&[setup(), acknowledged, both(2, 15, "0", "0"), both(2, 30, "1", "1")]);
    // Without an acknowledgement it may come late; but not go away again.
    held(&[setup(), write(Unknown), both(2, 30, "0", "0"), both(2, 40, "1", "1")]);
    condemned(&[setup(), write(Unknown), both(2, 30, "1", "1"), both(2, 40, "0", "0")]);
    // A check that is said not to hold is a read, too.
    let check = |x| (3, transact(&[check_item("x", x)]), 30, 31, Unmet { item: 0 });
    condemned(&[setup(), check("0")]);
    held(&[setup(), write(done(&[WROTE, WROTE])), check("0")]);
    held(&[setup(), write(Unknown), check("0")]);
    condemned(&[setup(), write(Unknown), check("0"), both(2, 40, "0", "0")]);
}

#[test]
fn a_transaction_that_is_half_done_is_condemned() {
    let write = transact(&[put_item("x", "1"), put_item("y", "1")]);
    for completion in [done(&[WROTE, WROTE]), Unknown] {
        let write = (1, write.clone(), 10, 60, completion);
        condemned(&[setup(), write.clone(), both(2, 20, "1", "0")]);
        condemned(&[setup(), write.clone(), both(2, 20, "0", "1")]);
        // Nor may two reads of one key each show it.
        let one = |at, key, text| (2, get(key), at, at + 1, value(text));
        condemned(&[setup(), write.clone(), one(20, "x", "1"), one(25, "y", "0")]);
        held(&[setup(), write.clone(), one(20, "y", "0"), one(25, "x", "1")]);
        held(&[setup(), write, both(2, 20, "0", "0"), both(2, 30, "1", "1")]);
    }
}

#[test]
fn items_see_what_those_before_them_did() {
    let items = [delete_item("x"), check_item("x", ""), put_item("x", "1"), get_item("x")];
    let told = |existed, last: &str| done(&[Deleted { existed }, Checked, WROTE, saw(last)]);
    let row = |completion| (1, transact(&items), 10, 20, completion);
    held(&[setup(), row(told(true, "1"))]);
    condemned(&[setup(), row(told(true, "0"))]);
    condemned(&[setup(), row(told(false, "1"))]);
    // The check sees the delete, so that it cannot fail.
    condemned(&[setup(), row(Unmet { item: 1 })]);
    let Verdict::Violated(why) = judged(&[setup(), row(told(true, "0"))]) else { panic!() };
    assert_eq!(why.operations, [1]);
    let text = "what c1 was told contradicts what its own items had written before";
    assert_eq!(why.why, text);
}

#[test]
fn keys_that_nothing_binds_together_are_judged_apart() {
    // A pair for each of many keys, all at once: an order of all of them would take for ever.
    let pair = |n: u32| -> [Row; 3] {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        let write = |text: &str| transact(&[put_item(&a, text), put_item(&b, text)]);
        let read = transact(&[get_item(&a), get_item(&b)]);
        [
            (n, write("1"), 10, 100, done(&[WROTE, WROTE])),
            (n + 1000, write("2"), 10, 100, done(&[WROTE, WROTE])),
            (n + 2000, read, 110, 120, done(&[saw("2"), saw("2")])),
        ]
    };
    let mut rows: Vec<Row> = (0..500).flat_map(pair).collect();
    held(&rows);
    let operation = transact(&[get_item("a333"), get_item("b333")]);
    rows[1001] = (9, operation, 110, 120, done(&[saw("1"), saw("2")]));
    let Verdict::Violated(why) = judged(&rows) else { panic!("it is wrong") };
    assert!(why.operations.len() <= 3, "{why}");
}

#[test]
fn what_is_wrong_is_said_in_few_lines() {
    let mut rows = vec![setup()];
    for n in 0..40 {
        let items = [get_item("x"), put_item("x", &format!("{}", n + 1))];
        let told = done(&[saw(&n.to_string()), WROTE]);
        rows.push((1, transact(&items), 10 + n * 10, 15 + n * 10, told));
    }
    rows.push((2, get("x"), 500, 501, value("39")));
    let Verdict::Violated(why) = judged(&rows) else { panic!("it is stale") };
    let text = why.to_string();
    assert_eq!(why.operations.len(), 3, "{text}");
    assert!(
        text.starts_with("2 keys from \"x\" on: no order explains these 3 of its 42"),
        "{text}"
    );
    assert!(text.contains("transact [get \"x\", put \"x\" \"40\"]"), "{text}");
    assert!(text.contains("done [\"39\", written]"), "{text}");
    rows.pop();
    rows.push((2, get("x"), 500, 501, value("never")));
    let Verdict::Violated(why) = judged(&rows) else { panic!("nobody wrote it") };
    let text = "c2 found \"never\" in key \"x\", which nobody can have written by then";
    assert_eq!((why.operations.len(), &why.why[..]), (1, text));
}

/// What a transaction does to a map and is told; `None` if what it is said to have been told is
/// something else. Without an answer only checks can keep it from happening.
fn apply(items: &[Item], told: &Completion, map: &Map) -> Option<Map> {
    let mut now = map.clone();
    let name = |item: &Item| String::from_utf8(item.key().to_vec()).expect("text");
    for (at, item) in items.iter().enumerate() {
        let key = name(item);
        let found = now.get(&key).cloned();
        let is_so = match (item, told) {
            (Item::Check { holds, .. }, Unmet { item }) if *item == at => {
                return (!is_met(holds, found.as_ref())).then(|| map.clone());
            }
            (Item::Check { .. }, Unmet { .. }) => true,
            (Item::Check { holds, .. }, _) => is_met(holds, found.as_ref()),
            (Item::Get { .. }, Transacted(told)) => told[at] == saw(&found.unwrap_or_default()),
            (Item::Delete { .. }, Transacted(told)) => {
                told[at] == Deleted { existed: found.is_some() }
            }
            _ => true,
        };
        if !is_so {
            return None;
        }
        match item {
            Item::Put { value, .. } => {
                now.insert(key, String::from_utf8(value.to_vec()).expect("text"));
            }
            Item::Delete { .. } => {
                now.remove(&key);
            }
            Item::Check { .. } | Item::Get { .. } => {}
            Item::Change { .. }
            | Item::Expire { .. }
            | Item::Lifetime { .. }
            | Item::Copy { .. } => {
                unreachable!("nobody asks for it here")
            }
        }
    }
    Some(now)
}

/// Whether some order of the rows explains them, tried one by one.
fn is_explained(rows: &[Row], used: u32, map: &Map) -> bool {
    let is_left = |index: usize| used & (1 << index) == 0;
    let must = |row: &Row| !matches!(row.4, Unknown | Refused);
    if (0..rows.len()).all(|index| !is_left(index) || !must(&rows[index])) {
        return true;
    }
    (0..rows.len()).filter(|&index| is_left(index)).any(|index| {
        let (_, operation, invoked, _, completion) = &rows[index];
        let waits = rows
            .iter()
            .enumerate()
            .any(|(other, row)| is_left(other) && must(row) && other != index && row.3 < *invoked);
        let Operation::Transact { items, .. } = operation else { panic!("all are transactions") };
        let after = apply(items, completion, map).filter(|_| !waits && *completion != Refused);
        after.is_some_and(|map| is_explained(rows, used | 1 << index, &map))
    })
}

/// Transactions on three keys, told what a map that did them in some order would tell, or anything.
fn random_rows(rng: &mut Rng, count_max: u64) -> Vec<Row> {
    let count = rng.between(1, count_max);
    let mut times: Vec<u64> = (0..count * 2).collect();
    for index in (1..times.len()).rev() {
        // Near its place, so that not everything happens at once.
        let other = index - rng.below(5.min(index as u64 + 1)) as usize;
        times.swap(index, other);
    }
    let mut map = Map::new();
    let rows = times.chunks_exact(2).enumerate().map(|(number, pair)| {
        let (from, to) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        let items: Vec<Item> = (0..rng.between(1, 3)).map(|_| random_item(rng, number)).collect();
        let completion = match rng.below(10) {
            0 | 1 => Unknown,
            2 if rng.below(4) == 0 => Refused,
            _ => answer(&items, &mut map, rng),
        };
        if completion == Unknown && rng.below(2) == 0 {
            map = apply(&items, &Unknown, &map).unwrap_or(map.clone());
        }
        (number as u32, transact(&items), from, to, completion)
    });
    rows.collect()
}

fn random_item(rng: &mut Rng, number: usize) -> Item {
    let key = ["x", "y", "z"][rng.below(3) as usize];
    let text = format!("{}", if rng.below(3) == 0 { rng.below(8) } else { number as u64 });
    match rng.below(8) {
        0 | 1 => get_item(key),
        2 => check_item(key, if rng.below(2) == 0 { "" } else { &text }),
        3 => Item::Check { key: key.into(), holds: Condition::Present },
        4 => delete_item(key),
        _ => put_item(key, &text),
    }
}

/// What the map answers; now and then a lie.
fn answer(items: &[Item], map: &mut Map, rng: &mut Rng) -> Completion {
    let invented = rng.below(8);
    told_by(items, map, &mut || rng.below(12) == 0, invented)
}

#[test]
fn it_agrees_with_one_that_tries_every_order() {
    let mut rng = Rng::new(1);
    let (mut held, mut violated) = (0, 0);
    for round in 0..20_000 {
        let rows = random_rows(&mut rng, 7);
        let is_possible = is_explained(&rows, 0, &Map::new());
        match judged(&rows) {
            Verdict::Holds => assert!(is_possible, "round {round}: missed {rows:#?}"),
            Verdict::Violated(why) => {
                assert!(!is_possible, "round {round}: false alarm {rows:#?}\n{why}");
                let mut sorted = rows.clone();
                sorted.sort_by_key(|row| row.2);
                let shown: Vec<Row> =
                    why.operations.iter().map(|index| sorted[*index].clone()).collect();
                let proves = !is_explained(&shown, 0, &Map::new());
                assert!(proves, "round {round}: the explanation proves nothing\n{why}");
                violated += 1;
                continue;
            }
            Verdict::Unknown { why } => panic!("round {round}: {why}"),
        }
        held += 1;
    }
    assert!(held > 2000 && violated > 2000, "{held} held, {violated} were violated");
}

#[test]
fn a_history_of_single_keys_is_judged_as_by_the_judge_of_registers() {
    let written = (1, put("k", "A"), 1, 2, Written);
    for (row, is_right) in
        [((2, get("k"), 3, 4, value("A")), true), ((2, get("k"), 3, 4, ABSENT), false)]
    {
        assert_eq!(judged(&[written.clone(), row]).is_holding(), is_right);
    }
    let workload = |values| common::Workload {
        operations: 300,
        clients: 5,
        keys: 4,
        unknown_ppm: 50_000,
        refused_ppm: 20_000,
        put_ppm: 400_000,
        delete_ppm: 100_000,
        values,
    };
    for seed in 0..60 {
        let history = common::simulate(workload(seed % 3 * 4), seed);
        assert_eq!(judge(&history, STEPS_MAX), Verdict::Holds, "seed {seed}");
    }
}
