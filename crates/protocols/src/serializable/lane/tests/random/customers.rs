//! Clients of a world: what they ask, and what they were told.

use crate::serializable::lane::tests::world::World;
use bytes::Bytes;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Cursor, Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::vec::Vec;

/// How many keys there are that are never removed.
pub const KEYS: u64 = 8;

/// What a client has asked, and was told.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub items: Vec<Item>,
    pub began: u64,
    pub ended: Option<u64>,
    /// What it has seen of keys that are never removed.
    pub reads: Vec<(Bytes, Option<Bytes>)>,
    /// It was told that it was done.
    pub is_done: bool,
    /// It was told that nothing was changed.
    pub is_refused: bool,
}

/// A listing under way.
struct Listing {
    /// What had been put before it began.
    must: BTreeSet<Bytes>,
    seen: BTreeSet<Bytes>,
}

/// What a client waits for.
struct Waits {
    ticket: Ticket,
    host: usize,
    /// Its place in the history; none for a page of a listing.
    at: Option<usize>,
}

/// A client.
#[derive(Default)]
struct Customer {
    waits: Option<Waits>,
    listing: Option<Listing>,
}

/// All clients.
pub struct Customers {
    all: Vec<Customer>,
    pub history: Vec<Told>,
    clock: u64,
    values: u64,
    /// What was acknowledged of keys that are never removed.
    there: BTreeSet<Bytes>,
    /// The value that each key was seen with last.
    last: BTreeMap<Bytes, Bytes>,
    pub listings: usize,
    pub done: usize,
}

pub fn key(number: u64) -> Bytes {
    format!("key{number}").into()
}

impl Customers {
    pub fn new(count: u64) -> Customers {
        Customers {
            all: (0..count).map(|_| Customer::default()).collect(),
            history: Vec::new(),
            clock: 0,
            values: 0,
            there: BTreeSet::new(),
            last: BTreeMap::new(),
            listings: 0,
            done: 0,
        }
    }

    fn value(&mut self) -> Bytes {
        self.values += 1;
        format!("v{}", self.values).into()
    }

    /// Whether nobody waits.
    pub fn are_idle(&self) -> bool {
        self.all.iter().all(|it| it.waits.is_none())
    }

    /// A host has stopped: whoever waits for it hears no more.
    pub fn lose(&mut self, host: usize) {
        for its in &mut self.all {
            if its.waits.as_ref().is_some_and(|waits| waits.host == host) {
                its.waits = None;
                its.listing = None;
            }
        }
    }

    /// Whoever is free asks something of some host.
    pub fn step(&mut self, world: &mut World) {
        let index = world.rng.below(self.all.len() as u64) as usize;
        let host = world.rng.below(world.hosts.len() as u64) as usize;
        if self.all[index].waits.is_some() || !world.is_up(host) {
            return;
        }
        let within = Span::millis(world.rng.between(300, 4000));
        self.clock += 1;
        if self.all[index].listing.is_none() && world.rng.below(100) < 8 {
            let listing = Listing { must: self.there.clone(), seen: BTreeSet::new() };
            self.all[index].listing = Some(listing);
            return self.list(world, (index, host), Cursor::at(0));
        }
        let (operation, items) = self.operation(world);
        let at = self.history.len();
        self.history.push(Told { items, began: self.clock, ..Told::default() });
        let ticket = world.request(host, operation, within);
        self.all[index].waits = Some(Waits { ticket, host, at: Some(at) });
        self.hear(world);
    }

    fn list(&mut self, world: &mut World, (index, host): (usize, usize), from: Cursor) {
        let limit = world.rng.between(1, 6) as u32;
        let operation = Operation::Scan { from, limit };
        let ticket = world.request(host, operation, Span::secs(4));
        self.all[index].waits = Some(Waits { ticket, host, at: None });
    }

    fn operation(&mut self, world: &mut World) -> (Operation, Vec<Item>) {
        let mut some = || key(world.rng.below(KEYS));
        let (one, other, third) = (some(), some(), some());
        let get = |key: &Bytes| Item::Get { key: key.clone() };
        let kind = world.rng.below(10);
        let value = self.value();
        let put = |key: &Bytes, value: &Bytes| Item::Put {
            key: key.clone(),
            value: value.clone(),
            expiry: Expiry::Never,
        };
        let items = match kind {
            0 | 1 => return (Operation::get(one.clone()), Vec::from([get(&one)])),
            2 | 3 => {
                return (
                    Operation::put(one.clone(), value.clone()),
                    Vec::from([put(&one, &value)]),
                );
            }
            4 => Vec::from([get(&one), get(&other), get(&third)]),
            5 | 6 if one != other => {
                let second = self.value();
                Vec::from([get(&one), get(&third), put(&one, &value), put(&other, &second)])
            }
            7 => {
                let holds = match self.last.get(&one) {
                    Some(value) => Condition::Value(value.clone()),
                    None => Condition::Absent,
                };
                Vec::from([Item::Check { key: one.clone(), holds }, put(&other, &value)])
            }
            8 => {
                let gone: Bytes = format!("gone{}", world.rng.below(2)).into();
                let second = self.value();
                let first = [Item::Delete { key: gone.clone() }, put(&gone, &second)];
                let first = first[world.rng.below(2) as usize].clone();
                Vec::from([first, put(&one, &value)])
            }
            _ => Vec::from([get(&one), put(&one, &value)]),
        };
        (Operation::Transact { items: items.clone(), name: None }, items)
    }

    /// What was answered since the last time.
    pub fn hear(&mut self, world: &mut World) {
        for (_, ticket, outcome) in std::mem::take(&mut world.answers) {
            self.clock += 1;
            let is_its = |its: &Customer| its.waits.as_ref().is_some_and(|it| it.ticket == ticket);
            let Some(index) = self.all.iter().position(is_its) else { continue };
            let waits = self.all[index].waits.take().expect("it waits");
            match waits.at {
                Some(at) => self.told(at, outcome),
                None => self.listed(world, (index, waits.host), outcome),
            }
        }
    }

    fn told(&mut self, at: usize, outcome: Outcome) {
        let told = &mut self.history[at];
        told.ended = Some(self.clock);
        let outcomes = match outcome {
            Outcome::Refused(refusal) => {
                told.is_refused = !refusal.may_have_applied();
                return;
            }
            Outcome::Transacted(told) => told,
            Outcome::Values { values, .. } => {
                let value = values.into_one().expect("a key has one value");
                Vec::from([ItemOutcome::Value(value)])
            }
            Outcome::Written { .. } => Vec::from([ItemOutcome::Written]),
            other => panic!("{other:?} answers none of these"),
        };
        told.is_done = true;
        self.done += 1;
        assert_eq!(told.items.len(), outcomes.len(), "each item is told something");
        let mut changed = BTreeSet::new();
        for (item, outcome) in told.items.iter().zip(&outcomes) {
            assert!(item.takes(outcome), "{item:?} is told {outcome:?}");
            match (item, outcome) {
                (Item::Get { key }, ItemOutcome::Value(value)) if !changed.contains(key) => {
                    told.reads.push((key.clone(), value.clone()));
                    if let Some(value) = value {
                        self.last.insert(key.clone(), value.clone());
                    }
                }
                (Item::Check { key, holds: Condition::Value(value) }, _) => {
                    told.reads.push((key.clone(), Some(value.clone())));
                }
                (Item::Check { key, holds: Condition::Absent }, _) => {
                    told.reads.push((key.clone(), None));
                }
                (Item::Put { key, value, .. }, _) => {
                    changed.insert(key.clone());
                    if key.starts_with(b"key") {
                        self.there.insert(key.clone());
                        self.last.insert(key.clone(), value.clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn listed(&mut self, world: &mut World, at: (usize, usize), outcome: Outcome) {
        let Outcome::Page { keys, next } = outcome else {
            self.all[at.0].listing = None;
            return;
        };
        let listing = self.all[at.0].listing.as_mut().expect("it lists");
        for key in keys {
            assert!(listing.seen.insert(key), "a key is listed once");
        }
        match next {
            Some(next) if world.is_up(at.1) => self.list(world, at, next),
            Some(_) => self.all[at.0].listing = None,
            None => {
                let listing = self.all[at.0].listing.take().expect("it lists");
                let missing: Vec<_> = listing.must.difference(&listing.seen).collect();
                assert!(missing.is_empty(), "{missing:?} are there throughout");
                self.listings += 1;
            }
        }
    }
}
