//! A lane's logs agree with an ordered map, however much of them the store has.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::{LogId, LogIndex};

const LANE: LaneId = LaneId(7);

type Pairs = BTreeMap<Bytes, Bytes>;

/// Entries by their keys, and where logs begin.
#[derive(Clone, Debug, Default)]
struct State {
    pairs: Pairs,
    firsts: BTreeMap<LogId, LogIndex>,
}

impl State {
    fn apply(&mut self, key: &Bytes, value: Option<Bytes>) {
        match (entries::place(key).expect("of a log"), value) {
            (Place::Log(log), value) => {
                let to = entries::first(&value.expect("an index")).expect("an index");
                let to = to.max(self.firsts.get(&log).copied().unwrap_or_default());
                self.firsts.insert(log, to);
                self.pairs.retain(|key, _| {
                    let place = entries::place(key);
                    !matches!(place, Some(Place::Entry(of, at)) if of == log && at < to)
                });
            }
            (Place::Entry(..), _) if self.has_passed(key) => {}
            (Place::Entry(..), Some(value)) => drop(self.pairs.insert(key.clone(), value)),
            (Place::Entry(..), None) => drop(self.pairs.remove(key)),
        }
    }

    /// Whether this is the key of an entry that was given up.
    fn has_passed(&self, key: &[u8]) -> bool {
        let Some(Place::Entry(log, index)) = entries::place(key) else { return false };
        self.firsts.get(&log).is_some_and(|first| index < *first)
    }
}

impl Reader for State {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        if let Some(Place::Log(log)) = entries::place(&key[5..]) {
            return Ok(self.firsts.get(&log).map(|first| entries::trim(*first)));
        }
        Ok(self.pairs.get(&key[5..]).cloned())
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        let whole = |key: &Bytes| store_key(LANE, Class::Log, key);
        let mut pairs = self.pairs.iter().map(|(key, value)| (whole(key), value));
        let is_within = |key: &Bytes| key[..] >= *from && key[..] < *to;
        pairs.all(|(key, value)| !is_within(&key) || each(&key, value));
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Trim(u8),
    /// So many batches reach the store, all but for as many synced.
    Reach(u8, u8),
    Scan(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..16_u8, any::<u8>()).prop_map(|(at, value)| Step::Put(at, value)),
        2 => (0..16_u8).prop_map(Step::Delete),
        2 => (0..16_u8).prop_map(Step::Trim),
        3 => (0..4_u8, 0..3_u8).prop_map(|(count, unsynced)| Step::Reach(count, unsynced)),
        2 => (0..16_u8).prop_map(Step::Scan),
    ]
}

/// One of two logs, at an index below eight.
fn key(at: u8) -> Bytes {
    entries::key(LogId((at / 8).into()), LogIndex((at % 8).into()))
}

fn write(step: &Step) -> Option<(Bytes, Option<Bytes>)> {
    match *step {
        Step::Put(at, value) => Some((key(at), Some(Bytes::copy_from_slice(&[value])))),
        Step::Delete(at) => Some((key(at), None)),
        Step::Trim(at) => {
            let first = entries::trim(LogIndex((at % 8).into()));
            Some((entries::log_key(LogId((at / 8).into())), Some(first)))
        }
        _ => None,
    }
}

/// A table, and a model of what it must show.
struct Compared {
    table: LaneTable,
    records: RefCell<Records>,
    model: State,
    below: State,
    given: VecDeque<(Lsn, Bytes, Option<Bytes>)>,
    lsn: Lsn,
    durable: Durable,
}

impl Compared {
    fn reach(&mut self, count: u8, unsynced: u8) {
        for _ in 0..count {
            let Some((lsn, key, value)) = self.given.pop_front() else { break };
            self.durable.written = lsn;
            self.below.apply(&key, value);
        }
        let synced = Lsn(self.durable.written.0.saturating_sub(unsynced.into()));
        self.durable.synced = synced.max(self.durable.synced);
        self.table.settle(self.durable, self.records.get_mut());
    }

    fn check(&self, from: &Bytes) {
        let fatal = RefCell::new(None);
        let (table, records, store) = (&self.table, &self.records, &self.below);
        let reader = LaneReader { table, records, store, fatal: &fatal };
        for at in 0..16 {
            let found = reader.get(Class::Log, &key(at));
            assert_eq!(found.as_ref(), self.model.pairs.get(&key(at)), "{at}");
        }
        for log in [LogId(0), LogId(1)] {
            let found = reader.get(Class::Log, &entries::log_key(log));
            assert_eq!(found, self.model.firsts.get(&log).map(|first| entries::trim(*first)));
        }
        let mut found = Vec::new();
        reader.scan(Class::Log, from, &mut |key, value| {
            found.push((Bytes::copy_from_slice(key), value.clone()));
            true
        });
        let model = self.model.pairs.range(from.clone()..);
        let model: Vec<_> = model.map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(found, model);
    }
}

fn run(durability: Durability, steps: &[Step]) {
    let mut compared = Compared {
        table: LaneTable::new(LANE, durability),
        records: RefCell::new(Records::new(1 << 10)),
        model: State::default(),
        below: State::default(),
        given: VecDeque::new(),
        lsn: Lsn(0),
        durable: Durable::default(),
    };
    for step in steps {
        // No lane writes an entry that was given up.
        let may_be =
            |(key, value): &(Bytes, Option<_>)| value.is_none() || !compared.model.has_passed(key);
        if let Some((key, value)) = write(step).filter(may_be) {
            compared.model.apply(&key, value.clone());
            compared.lsn.0 += 1;
            let lsn = compared.lsn;
            if compared.table.is_logged(Class::Log) {
                compared.given.push_back((lsn, key.clone(), value.clone()));
            }
            compared.table.write((Class::Log, key, value), lsn, compared.records.get_mut());
            if compared.table.is_logged(Class::Log) {
                assert_eq!(compared.table.needs_all(), compared.table.needs_data(lsn));
            }
        }
        match step {
            Step::Reach(count, unsynced) => compared.reach(*count, *unsynced),
            Step::Scan(at) => compared.check(&key(*at)),
            _ => {}
        }
        compared.check(&key(0));
    }
}

proptest! {
    #[test]
    fn logs_are_an_ordered_map_that_loses_its_begin(
        steps in prop::collection::vec(step(), 1..60),
        durability in prop_oneof![
            Just(Durability::Sync),
            Just(Durability::Periodic { every_ms: 50 }),
            Just(Durability::Memory),
        ],
    ) {
        run(durability, &steps);
    }
}
