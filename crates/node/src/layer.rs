//! What was written and is not durable yet, in the order of keys: protocol state, and logs.

use crate::memory::Sorted;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::{LogId, LogIndex, Lsn};
use quorate_kernel::invariant;

/// The batch of what is never written: nothing of it settles.
const NEVER: Lsn = Lsn(u64::MAX);

#[derive(Debug)]
struct Entry {
    lsn: Lsn,
    value: Option<Bytes>,
}

/// The newest value of each key, with the batch that wrote it.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    entries: BTreeMap<Sorted, Entry>,
    /// What each batch wrote, oldest first, to be dropped when it is durable.
    log: VecDeque<(Lsn, Sorted)>,
}

impl Layer {
    /// Notes a write of a batch; batches come in order.
    pub fn write(&mut self, key: Bytes, value: Option<Bytes>, lsn: Lsn) {
        let key = Sorted::new(key);
        self.log.push_back((lsn, key.clone()));
        self.entries.insert(key, Entry { lsn, value });
    }

    /// What is known of a key: its value, or that it has none.
    pub fn get(&self, key: &Bytes) -> Option<Option<Bytes>> {
        self.entries.get(&Sorted::new(key.clone())).map(|entry| entry.value.clone())
    }

    /// The next key from one on or behind it, with its value or that it has none.
    pub fn next(&self, from: Bound<&Sorted>) -> Option<(Sorted, Option<Bytes>)> {
        let (key, entry) = self.entries.range::<Sorted, _>((from, Bound::Unbounded)).next()?;
        Some((key.clone(), entry.value.clone()))
    }

    /// Drops what is durable up to a batch: it is read from the store.
    pub fn settle(&mut self, upto: Lsn) {
        while let Some((lsn, key)) = self.log.front()
            && *lsn <= upto
        {
            if self.entries.get(key).is_some_and(|entry| entry.lsn <= upto) {
                self.entries.remove(key);
            }
            self.log.pop_front();
        }
    }
}

/// The logs of a lane. Where it is `memory`, all that they have.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    layer: Layer,
    /// Where those logs begin that were trimmed in this start.
    firsts: BTreeMap<LogId, LogIndex>,
}

impl Logs {
    /// Notes a write of a batch.
    pub fn write(&mut self, key: Bytes, value: Option<Bytes>, lsn: Lsn) {
        match entries::place(&key) {
            Some(Place::Log(log)) => self.trim(log, value.as_deref()),
            Some(Place::Entry(..)) if self.has_passed(&key) => {
                invariant!(value.is_none(), "no entry is written that was given up before");
            }
            Some(Place::Entry(..)) => self.layer.write(key, value, lsn),
            None => panic!("{key:?} is no key of a log"),
        }
    }

    /// Takes a write that no batch has.
    pub fn keep(&mut self, key: Bytes, value: Option<Bytes>) {
        if value.is_none() {
            self.layer.entries.remove(&Sorted::new(key));
            return;
        }
        self.write(key, value, NEVER);
        self.layer.log.clear();
    }

    /// What is known of an entry, its value or that there is none; or of where a log begins.
    pub fn get(&self, key: &Bytes) -> Option<Option<Bytes>> {
        match entries::place(key) {
            Some(Place::Log(log)) => self.firsts.get(&log).map(|first| Some(entries::trim(*first))),
            _ if self.has_passed(key) => Some(None),
            _ => self.layer.get(key),
        }
    }

    /// The next entry from a key on or behind it, with its value or that it was deleted.
    pub fn next(&self, from: Bound<&Sorted>) -> Option<(Sorted, Option<Bytes>)> {
        self.layer.next(from)
    }

    /// Whether this is the key of an entry that was given up in this start.
    pub fn has_passed(&self, key: &[u8]) -> bool {
        let Some(Place::Entry(log, index)) = entries::place(key) else { return false };
        self.firsts.get(&log).is_some_and(|first| index < *first)
    }

    /// Drops what is durable up to a batch.
    pub fn settle(&mut self, upto: Lsn) {
        self.layer.settle(upto);
    }

    fn trim(&mut self, log: LogId, value: Option<&[u8]>) {
        let to = value.and_then(entries::first).expect("a log's own key has an index");
        let first = self.firsts.entry(log).or_default();
        *first = to.max(*first);
        let key = |index| Sorted::new(entries::key(log, index));
        let range = self.layer.entries.range(key(LogIndex(0))..key(*first));
        let given_up: Vec<Sorted> = range.map(|(key, _)| key.clone()).collect();
        for key in given_up {
            self.layer.entries.remove(&key);
        }
    }
}
