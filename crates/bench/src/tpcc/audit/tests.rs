//! The judge holds what was loaded for consistent, and condemns every damage that is planted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use super::conditions::{CHECKED, judge};
use super::facts::Facts;
use super::violations::{Rule, Violation};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::population::Population;
use crate::tpcc::data::rows::{self, Customer, History, Line, Order, encode};
use crate::tpcc::data::sizes::{District, Sizes};

const SIZES: Sizes = Sizes { warehouses: 2, scale: 100 };
const PLACE: District = District { warehouse: 2, number: 7 };

/// Rows in place of a keyspace.
type Rows = BTreeMap<Key, Bytes>;

fn loaded() -> Rows {
    let population = Population::new(SIZES, 11, 5);
    population.pieces().iter().flat_map(|piece| population.rows(piece)).collect()
}

fn verdict(rows: &Rows) -> Vec<Violation> {
    let mut facts = Facts::default();
    for (key, value) in rows {
        facts.add(&key.bytes(), value).unwrap();
    }
    judge(&facts, SIZES)
}

/// Changes a row.
fn change<T>(rows: &mut Rows, key: Key, change: impl Fn(&mut T))
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut row: T = rows::decode(&rows[&key]).unwrap();
    change(&mut row);
    rows.insert(key, encode(&row));
}

/// Adds to a number.
fn add(rows: &mut Rows, key: Key, more: i64) {
    let number: i64 = rows::parse(&rows[&key]).unwrap();
    rows.insert(key, rows::number(number + more));
}

#[test]
fn what_was_loaded_is_consistent() {
    assert_eq!(verdict(&loaded()), []);
}

/// A damage, and the rules that it must break; those that it breaks too do not matter.
type Damage = (fn(&mut Rows), &'static [Rule]);

const DAMAGES: [Damage; 15] = [
    (|rows| add(rows, Key::WarehouseYtd(2), 1), &[Rule::Condition(1), Rule::Condition(8)]),
    (|rows| add(rows, Key::DistrictYtd(PLACE), -1), &[Rule::Condition(1), Rule::Condition(9)]),
    (|rows| add(rows, Key::NextOrder(PLACE), 1), &[Rule::Condition(2)]),
    (
        // A NewOrder that was half done: number and order, but not its row in NEW-ORDER.
        |rows| drop(rows.remove(&Key::NewOrder(PLACE, SIZES.customers()))),
        &[Rule::Condition(2), Rule::Condition(5)],
    ),
    (
        |rows| drop(rows.remove(&Key::NewOrder(PLACE, SIZES.first_undelivered() + 2))),
        &[Rule::Condition(3), Rule::Condition(5)],
    ),
    (
        |rows| change(rows, Key::Order(PLACE, 4), |row: &mut Order| row.line_count += 1),
        &[Rule::Condition(4), Rule::Condition(6)],
    ),
    (|rows| drop(rows.remove(&Key::Lines(PLACE, 4))), &[Rule::Condition(4), Rule::Condition(6)]),
    (
        |rows| {
            change(rows, Key::Lines(PLACE, 4), |row: &mut Vec<Line>| row[0].delivered = None);
        },
        &[Rule::Condition(7)],
    ),
    (
        |rows| change(rows, Key::Order(PLACE, 4), |row: &mut Order| row.carrier = None),
        &[Rule::Condition(5), Rule::Condition(7)],
    ),
    (
        |rows| {
            let key = Key::History(PLACE, 0, 3);
            change(rows, key, |row: &mut History| row.amount += 1);
        },
        &[Rule::Condition(8), Rule::Condition(9), Rule::Condition(10)],
    ),
    (
        |rows| change(rows, Key::Customer(PLACE, 9), |row: &mut Customer| row.balance += 1),
        &[Rule::Condition(10), Rule::Condition(12)],
    ),
    (
        |rows| change(rows, Key::Customer(PLACE, 9), |row: &mut Customer| row.ytd_payment += 1),
        &[Rule::Condition(12)],
    ),
    (|rows| drop(rows.remove(&Key::Stock(2, 77))), &[Rule::Cardinality]),
    (|rows| add(rows, Key::QueueHead(PLACE), 1), &[Rule::Index]),
    (|rows| add(rows, Key::LastOrder(PLACE, 3), 1), &[Rule::Index]),
];

#[test]
fn each_damage_is_condemned_where_it_is() {
    let loaded = loaded();
    let mut condemned = BTreeSet::new();
    for (index, (damage, rules)) in DAMAGES.iter().enumerate() {
        let mut rows = loaded.clone();
        damage(&mut rows);
        let violations = verdict(&rows);
        for rule in *rules {
            let of_rule = violations.iter().filter(|violation| violation.rule == *rule);
            assert!(of_rule.count() > 0, "damage {index} breaks {rule}: {violations:?}");
            condemned.insert(*rule);
        }
        for violation in &violations {
            assert_eq!(violation.warehouse, Some(2), "damage {index}: {violation}");
            assert!(violation.district.is_none_or(|district| district == 7), "{violation}");
            assert_ne!(violation.left, violation.right);
        }
    }
    for number in CHECKED {
        assert!(condemned.contains(&Rule::Condition(number)), "condition {number} can fail");
    }
}

#[test]
fn lost_rows_are_missed() {
    let loaded = loaded();
    let mut tried = HashMap::new();
    for key in loaded.keys() {
        let count: &mut u32 = tried.entry(std::mem::discriminant(key)).or_default();
        *count += 1;
        if *count == 1 {
            let mut rows = loaded.clone();
            rows.remove(key);
            assert_ne!(verdict(&rows), [], "{key:?}");
        }
    }
    assert_eq!(tried.len(), 15, "all kinds of rows, without what a load keeps for runs");
}

#[test]
fn foreign_rows_are_refused() {
    let mut facts = Facts::default();
    assert!(facts.add(b"user1", b"x").is_err());
    let error = facts.add(&Key::Order(PLACE, 1).bytes(), b"").unwrap_err();
    assert_eq!(error, "the value of o/2/7/1 is no row");
}
