//! The judge of operations over several keys against every order there is, on histories of a map
//! that did each operation at one moment: as they are, and with one thing altered.
//!
//! Plain operations stand beside transactions. What clients do not know of happens at once, long
//! after they gave up, or never.

mod common;
#[path = "common/map.rs"]
mod map;

use bytes::Bytes;
use common::{Row, STEPS_MAX, bytes, check_item, delete_item, get_item, history, put_item};
use map::{Map, is_met, saw};
use quorate_check::history::Completion::{self, Refused, Transacted, Unknown, Unmet, Value};
use quorate_check::report::Verdict;
use quorate_check::transactions::judge;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::transaction::ItemOutcome::{self, Checked, Deleted};
use quorate_kernel::transaction::{Condition, Item};

const ROUNDS: u64 = 4000;

fn text(value: &Bytes) -> String {
    String::from_utf8(value.to_vec()).expect("text")
}

/// Does one item, and says what it is told; nothing if what it checks does not hold.
fn done(item: &Item, map: &mut Map) -> Option<ItemOutcome> {
    let key = text(item.key());
    Some(match item {
        Item::Check { holds, .. } if !is_met(holds, map.get(&key)) => return None,
        Item::Check { .. } => Checked,
        Item::Get { .. } => saw(map.get(&key).map_or("", |value| value)),
        Item::Put { value, .. } => {
            map.insert(key, text(value));
            ItemOutcome::Written
        }
        Item::Delete { .. } => Deleted { existed: map.remove(&key).is_some() },
        _ => unreachable!("nobody asks for it here"),
    })
}

/// What a map tells who asks this of it; it is changed only if all of it is done.
fn told(operation: &Operation, map: &mut Map) -> Completion {
    match operation {
        Operation::Get { key, .. } => Value(map.get(&text(key)).map(|value| bytes(value))),
        Operation::Put { key, value, .. } => {
            map.insert(text(key), text(value));
            Completion::Written
        }
        Operation::Delete { key, .. } => {
            Completion::Deleted { existed: map.remove(&text(key)).is_some() }
        }
        Operation::Transact { items, .. } => {
            let mut now = map.clone();
            let mut all = Vec::new();
            for (at, item) in items.iter().enumerate() {
                match done(item, &mut now) {
                    Some(told) => all.push(told),
                    None => return Unmet { item: at },
                }
            }
            *map = now;
            Transacted(all)
        }
        Operation::Scan { .. } => unreachable!("nobody lists keys here"),
        Operation::Tree(_) | Operation::HowEnded { .. } => unreachable!("nobody asks a tree here"),
    }
}

/// Whether one item of a transaction that changed nothing may be named as what did not hold.
fn may_be_named(items: &[Item], at: usize, map: &Map) -> bool {
    let mut now = map.clone();
    for item in items[..at].iter().filter(|item| item.is_write()) {
        done(item, &mut now);
    }
    done(&items[at], &mut now).is_none()
}

/// The map behind a row that happens now; nothing if it cannot happen now.
fn after((_, operation, _, _, completion): &Row, map: &Map) -> Option<Map> {
    let mut now = map.clone();
    let found = told(operation, &mut now);
    let is_so = match (operation, completion) {
        (Operation::Transact { items, .. }, Unmet { item }) => {
            return may_be_named(items, *item, map).then(|| map.clone());
        }
        (_, Unknown) => !matches!(found, Unmet { .. }),
        // Of a delete alone it is not judged whether the key had a value.
        (Operation::Delete { .. }, _) => true,
        _ => found == *completion,
    };
    is_so.then_some(now)
}

/// Whether rows can be taken one after the other until none is left that must be taken.
fn has_order(rows: &[Row], taken: u32, map: &Map) -> bool {
    let is_left = |at: usize| taken & 1 << at == 0;
    let must = |at: usize| is_left(at) && !matches!(rows[at].4, Unknown | Refused);
    if !(0..rows.len()).any(must) {
        return true;
    }
    let may_be_next = |at: &usize| {
        let waits = (0..rows.len()).any(|other| must(other) && rows[other].3 < rows[*at].2);
        is_left(*at) && !waits && rows[*at].4 != Refused
    };
    (0..rows.len())
        .filter(may_be_next)
        .any(|at| after(&rows[at], map).is_some_and(|map| has_order(rows, taken | 1 << at, &map)))
}

/// The one who draws: which keys and values there are.
struct Draw<'a> {
    rng: &'a mut Rng,
    keys: u64,
    values: u64,
}

impl Draw<'_> {
    fn key(&mut self) -> &'static str {
        ["x", "y", "z"][self.rng.below(self.keys) as usize]
    }

    fn value(&mut self) -> String {
        self.rng.between(1, self.values).to_string()
    }

    fn item(&mut self) -> Item {
        let (key, value) = (self.key(), self.value());
        match self.rng.below(9) {
            0..3 => get_item(key),
            3 => check_item(key, ""),
            4 => check_item(key, &value),
            5 => Item::Check { key: bytes(key), holds: Condition::Present },
            6 => delete_item(key),
            _ => put_item(key, &value),
        }
    }

    fn operation(&mut self) -> Operation {
        let (key, value) = (self.key(), self.value());
        match self.rng.below(8) {
            0 => common::get(key),
            1 => common::put(key, &value),
            2 if self.rng.below(2) == 0 => common::delete(key),
            _ => {
                let count = self.rng.between(1, 4);
                common::transact(&(0..count).map(|_| self.item()).collect::<Vec<Item>>())
            }
        }
    }

    /// A history that has an order.
    fn rows(&mut self) -> Vec<Row> {
        let count = self.rng.between(2, 6) as usize;
        let width = self.rng.between(4, 60);
        let mut moments: Vec<(u64, usize)> = Vec::new();
        let mut rows: Vec<Row> = Vec::new();
        // No two things happen at once: the lowest digits tell them apart.
        let mut serial = 0;
        let mut draw = |rng: &mut Rng, behind: u64, width: u64| {
            serial += 1;
            (behind / 100 + rng.between(1, width)) * 100 + serial
        };
        for at in 0..count {
            let from = draw(self.rng, 0, 80);
            let moment = draw(self.rng, from, width);
            let to = draw(self.rng, moment, width);
            let (completion, moment) = match self.rng.below(12) {
                0 => (Unknown, None),
                1 => (Unknown, Some(moment)),
                2 => (Unknown, Some(draw(self.rng, to, 100))),
                3 => (Refused, None),
                // It is told when it happens.
                _ => (Value(None), Some(moment)),
            };
            moments.extend(moment.map(|moment| (moment, at)));
            rows.push((at as u32, self.operation(), from, to, completion));
        }
        moments.sort_unstable();
        let mut map = Map::new();
        for (_, at) in moments {
            let told = told(&rows[at].1, &mut map);
            if rows[at].4 != Unknown {
                rows[at].4 = told;
            }
        }
        rows
    }

    /// Alters what one client was told, or when.
    fn alter(&mut self, rows: &mut [Row]) {
        let row = &mut rows[self.rng.below(rows.len() as u64) as usize];
        let value = if self.rng.below(3) == 0 { String::new() } else { self.value() };
        match (&row.1, &mut row.4) {
            _ if self.rng.below(5) == 0 => {
                let shift = self.rng.between(20, 120) * 100;
                (row.2, row.3) = (row.2 + shift, row.3 + shift);
            }
            (Operation::Get { .. }, told @ Value(_)) => {
                *told = Value((!value.is_empty()).then(|| bytes(&value)));
            }
            (Operation::Transact { items, .. }, Transacted(told)) => {
                let at = self.rng.below(items.len() as u64) as usize;
                match (&items[at], &mut told[at]) {
                    (Item::Check { .. }, _) => row.4 = Unmet { item: at },
                    (_, ItemOutcome::Value(found)) => {
                        *found = (!value.is_empty()).then(|| bytes(&value));
                    }
                    (_, Deleted { existed }) => *existed = !*existed,
                    _ => row.4 = Refused,
                }
            }
            (operation, completion) => {
                // It was done, if the map had been empty.
                let mut map = Map::new();
                *completion = told(operation, &mut map);
            }
        }
    }
}

/// Judges rows by both; whether there is an order.
fn both(rows: &[Row], round: u64) -> bool {
    let is_possible = has_order(rows, 0, &Map::new());
    match judge(&history(rows), STEPS_MAX) {
        Verdict::Holds => assert!(is_possible, "round {round}: let pass {rows:#?}"),
        Verdict::Violated(why) => assert!(!is_possible, "round {round}: {why}\n{rows:#?}"),
        Verdict::Unknown { why } => panic!("round {round}: {why}"),
    }
    is_possible
}

#[test]
fn small_histories_are_judged_as_by_trying_every_order() {
    let mut rng = Rng::new(7);
    let mut violated = 0;
    for round in 0..ROUNDS {
        let (keys, values) = (rng.between(2, 3), [2, 4, 40][rng.below(3) as usize]);
        let mut draw = Draw { rng: &mut rng, keys, values };
        let mut rows = draw.rows();
        assert!(both(&rows, round), "round {round}: a map did {rows:#?}");
        draw.alter(&mut rows);
        violated += u64::from(!both(&rows, round));
    }
    assert!(violated * 6 > ROUNDS, "only {violated} of {ROUNDS} were violated");
}
