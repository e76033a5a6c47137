//! A history taken apart by key, and one key's operations in the compact form that is judged.

use crate::history::{Completion, Entry, History, NEVER};
use crate::report::Verdict;
use alloc::vec::Vec;
use bytes::Bytes;
use hashbrown::HashTable;
use quorate_kernel::operation::Operation;
use xxhash_rust::xxh3::xxh3_64;

/// The number of the value "absent": what a key holds first and what a delete writes.
pub(crate) const ABSENT: u32 = 0;

/// What an operation does to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Returned the value.
    Read,
    /// Wrote the value and was acknowledged.
    Write,
    /// May have written the value at any time after it began, or never.
    Open,
}

/// One operation on one key; values are numbered within the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub kind: Kind,
    pub value: u32,
    pub began: u32,
    /// [`NEVER`] for an open write.
    pub ended: u32,
    /// Which operation of the history this is.
    pub entry: u32,
}

impl Action {
    pub fn is_write(&self) -> bool {
        self.kind != Kind::Read
    }

    /// Whether this one was over before the other began.
    pub fn is_before(&self, other: &Action) -> bool {
        self.ended < other.began
    }
}

/// Gives equal byte strings equal numbers, in the order of their first appearance.
#[derive(Default)]
struct Interner {
    table: HashTable<u32>,
    /// Per number: its hash and an entry that holds the bytes.
    known: Vec<(u64, u32)>,
}

impl Interner {
    fn clear(&mut self) {
        self.table.clear();
        self.known.clear();
    }

    fn intern<'a>(
        &mut self,
        bytes: &Bytes,
        entry: u32,
        bytes_of: impl Fn(u32) -> &'a Bytes,
    ) -> u32 {
        let hash = xxh3_64(bytes);
        let known = &self.known;
        let found = self.table.find(hash, |&number| {
            let (other_hash, holder) = known[number as usize];
            other_hash == hash && is_same(bytes_of(holder), bytes)
        });
        if let Some(&number) = found {
            return number;
        }
        let number = u32::try_from(known.len()).expect("there are fewer values than operations");
        self.known.push((hash, entry));
        let known = &self.known;
        self.table.insert_unique(hash, number, |&number| known[number as usize].0);
        number
    }
}

/// Equality that is quick for a buffer shared by both sides, however long.
fn is_same(a: &Bytes, b: &Bytes) -> bool {
    a.len() == b.len() && (a.as_ptr() == b.as_ptr() || a == b)
}

/// The bytes an entry's operation has written or returned, if it is a put or a get that found some.
pub(crate) fn value_of(entry: &Entry) -> Option<&Bytes> {
    match (entry.operation(), entry.completion()) {
        (Operation::Put { value, .. }, _) => Some(value),
        (_, Completion::Value(value)) => value.as_ref(),
        _ => None,
    }
}

/// The operations of a history by key; the room is kept from one history to the next.
#[derive(Default)]
pub(crate) struct Partition {
    keys: Interner,
    values: Interner,
    /// Per entry the number of its key, or [`NEVER`] if it has none.
    key_of: Vec<u32>,
    starts: Vec<u32>,
    /// The entries of key `k` are `entries[starts[k]..starts[k + 1]]`, in the order they began.
    entries: Vec<u32>,
    has_transactions: bool,
}

impl Partition {
    /// Sorts a history's operations by key.
    pub fn fill(&mut self, history: &History) {
        self.keys.clear();
        self.key_of.clear();
        let all = history.entries();
        let is_transaction =
            |entry: &Entry| matches!(entry.operation(), Operation::Transact { .. });
        self.has_transactions = all.iter().any(is_transaction);
        let key_at = |entry: u32| {
            all[entry as usize].operation().key().expect("only operations with a key are interned")
        };
        for (index, entry) in (0u32..).zip(all) {
            let number = match entry.operation().key() {
                Some(key) => self.keys.intern(key, index, key_at),
                None => NEVER,
            };
            self.key_of.push(number);
        }
        self.sort_by_key();
    }

    fn sort_by_key(&mut self) {
        let keys = self.keys.known.len();
        self.starts.clear();
        self.starts.resize(keys + 1, 0);
        let with_key = self.key_of.iter().filter(|&&key| key != NEVER);
        let mut count = 0;
        for &key in with_key {
            self.starts[key as usize] += 1;
            count += 1;
        }
        // Each start is first the end of its key's part, and is walked back while it is filled.
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.entries.clear();
        self.entries.resize(count, 0);
        for (index, &key) in self.key_of.iter().enumerate().rev() {
            if key != NEVER {
                let start = &mut self.starts[key as usize];
                *start -= 1;
                self.entries[*start as usize] = index as u32;
            }
        }
    }

    /// Why a judge of single keys cannot judge the history, if it cannot. What a transaction did to
    /// a key is bound to what it did to others, so that the key's other operations prove nothing.
    pub fn unjudged(&self) -> Option<Verdict> {
        self.has_transactions.then(|| Verdict::Unknown {
            why:
                "the history has transactions over several keys, which this judge cannot tell apart"
                    .into(),
        })
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.keys.known.len()
    }

    /// The number of an entry's key.
    pub fn key_of(&self, entry: usize) -> Option<usize> {
        let key = self.key_of[entry];
        (key != NEVER).then_some(key as usize)
    }

    /// The number of a key, if any operation named it.
    pub fn find(&self, key: &Bytes, history: &History) -> Option<usize> {
        let hash = xxh3_64(key);
        let known = &self.keys.known;
        let found = self.keys.table.find(hash, |&number| {
            let (other_hash, entry) = known[number as usize];
            let operation = history.entries()[entry as usize].operation();
            other_hash == hash && operation.key().is_some_and(|other| is_same(other, key))
        });
        found.map(|&number| number as usize)
    }

    /// The bytes of a key.
    pub fn name<'a>(&self, key: usize, history: &'a History) -> &'a Bytes {
        let entry = self.keys.known[key].1;
        history.entries()[entry as usize].operation().key().expect("a key was interned")
    }

    /// The operations of a key in the order they began.
    pub fn entries(&self, key: usize) -> &[u32] {
        &self.entries[self.starts[key] as usize..self.starts[key + 1] as usize]
    }

    /// The actions of a key in the order they began, and how many values they name. Left out is
    /// what promises nothing: a get without an answer and a refused write.
    pub fn actions(&mut self, key: usize, history: &History, out: &mut Vec<Action>) -> u32 {
        let all = history.entries();
        let value_at =
            |entry: u32| value_of(&all[entry as usize]).expect("a numbered value has bytes");
        self.values.clear();
        // Takes the number of "absent", which stands for no bytes at all.
        self.values.known.push((0, 0));
        out.clear();
        let range = self.starts[key] as usize..self.starts[key + 1] as usize;
        for &index in &self.entries[range] {
            let entry = &all[index as usize];
            let Some(kind) = kind_of(entry) else { continue };
            let value = match value_of(entry) {
                Some(bytes) => self.values.intern(bytes, index, value_at),
                None => ABSENT,
            };
            let ended = if kind == Kind::Open { NEVER } else { entry.ended };
            out.push(Action { kind, value, began: entry.began, ended, entry: index });
        }
        u32::try_from(self.values.known.len()).expect("there are fewer values than operations")
    }
}

fn kind_of(entry: &Entry) -> Option<Kind> {
    match (entry.operation(), entry.completion()) {
        (Operation::Get { .. }, Completion::Value(_)) => Some(Kind::Read),
        (Operation::Put { .. } | Operation::Delete { .. }, Completion::Unknown) => Some(Kind::Open),
        (Operation::Put { .. } | Operation::Delete { .. }, Completion::Refused) => None,
        (Operation::Put { .. } | Operation::Delete { .. }, _) => Some(Kind::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ClientId, Recorder};
    use quorate_kernel::operation::Cursor;
    use quorate_kernel::time::Time;

    #[test]
    fn a_history_is_taken_apart_by_key() {
        let mut recorder = Recorder::new();
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        let mut at = 0;
        let mut run = |operation: Operation, completion: Completion| {
            at += 2;
            let id = recorder.invoke(ClientId(1), operation, Time(at));
            recorder.complete(id, completion, Time(at + 1));
        };
        let put = |key, value| Operation::put(bytes(key), bytes(value));
        run(put("a", "1"), Completion::Written);
        run(put("b", "1"), Completion::Unknown);
        run(put("a", "2"), Completion::Refused);
        run(Operation::Scan { from: Cursor::default(), limit: 1 }, Completion::Unknown);
        run(Operation::get(bytes("a")), Completion::Value(Some(bytes("1"))));
        run(Operation::get(bytes("a")), Completion::Value(None));
        run(Operation::get(bytes("a")), Completion::Refused);
        run(Operation::delete(bytes("b")), Completion::Deleted { existed: false });
        run(put("a", ""), Completion::Written);
        let history = recorder.finish();
        let mut partition = Partition::default();
        let mut actions = Vec::new();
        for _ in 0..2 {
            partition.fill(history);
            assert_eq!(partition.keys(), 2);
            assert_eq!(partition.entries(0), [0, 2, 4, 5, 6, 8]);
            assert_eq!(partition.entries(1), [1, 7]);
            assert_eq!((partition.key_of(3), partition.key_of(7)), (None, Some(1)));
            assert_eq!(partition.find(&bytes("b"), history), Some(1));
            assert_eq!(partition.find(&bytes("c"), history), None);
            assert_eq!(partition.actions(0, history, &mut actions), 3);
            let seen: Vec<_> = actions.iter().map(|a| (a.kind, a.value)).collect();
            use Kind::{Open, Read, Write};
            assert_eq!(seen, [(Write, 1), (Read, 1), (Read, ABSENT), (Write, 2)]);
            assert_eq!(partition.actions(1, history, &mut actions), 2);
            let seen: Vec<_> = actions.iter().map(|a| (a.kind, a.value, a.ended)).collect();
            assert_eq!(seen[0], (Open, 1, NEVER));
            assert_eq!(seen[1].0, Write);
            assert_eq!(seen[1].1, ABSENT);
        }
    }
}
