//! The store in memory, with a crash model for the simulator.
//!
//! A killed process loses nothing that was applied: the operating system has it. A loss of power
//! keeps what was synced and a random prefix of what was not, in whole batches: the batch whose
//! record is torn is gone wholly. After a sync that failed, nobody knows what the disk holds, so a
//! killed process may lose as much as a loss of power would. The store refuses everything after a
//! crash until it is reopened, and reopening syncs, as the store over fjall does.

use bytes::Bytes;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LogIndex, Lsn};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Batch, Class, Durable, Log, Reader, Write, store_key};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

/// How a store's process ends without stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed; the machine runs on.
    ProcessKill,
    /// The machine loses power.
    PowerLoss,
}

/// A store in memory. Clones are handles to the same one.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Rc<RefCell<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    pairs: BTreeMap<Bytes, Bytes>,
    /// Where logs begin, by their own keys.
    firsts: BTreeMap<Bytes, LogIndex>,
    written: Lsn,
    /// What each batch that is not synced replaced, oldest batch first.
    unsynced: VecDeque<Vec<Replaced>>,
    fail_next_sync: bool,
    failure: Option<Fatal>,
    is_crashed: bool,
}

/// What was there before a write.
#[derive(Clone, Debug)]
enum Replaced {
    /// What a key held.
    Pair(Bytes, Option<Bytes>),
    /// Where the log of this key began.
    First(Bytes, Option<LogIndex>),
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// How far the log has come.
    #[must_use]
    pub fn durable(&self) -> Durable {
        let state = self.0.borrow();
        Durable { written: state.written, synced: state.synced() }
    }

    /// How many keys the store holds.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.0.borrow().pairs.len()
    }

    /// Ends the process. Every handle refuses from here on, until [`MemoryStore::reopen`].
    pub fn crash(&self, crash: Crash, rng: &mut Rng) {
        let state = &mut *self.0.borrow_mut();
        if crash == Crash::PowerLoss || state.failure.is_some() {
            let kept = rng.below(state.unsynced.len() as u64 + 1);
            while state.unsynced.len() as u64 > kept {
                state.undo_newest();
            }
        }
        state.is_crashed = true;
    }

    /// Opens the store again, synced. Returns the last batch that was recovered.
    pub fn reopen(&self) -> Lsn {
        let state = &mut *self.0.borrow_mut();
        state.unsynced.clear();
        state.is_crashed = false;
        state.failure = None;
        state.fail_next_sync = false;
        state.written
    }

    /// A copy of all that was written, as of the files of a running host.
    #[must_use]
    pub fn copy(&self) -> MemoryStore {
        MemoryStore(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// Makes the next sync fail, and with it the log until it is reopened.
    pub fn fail_next_sync(&self) {
        self.0.borrow_mut().fail_next_sync = true;
    }

    /// Forgets everything, as a disk that was replaced. The next batch is number 1.
    pub fn wipe(&self) {
        *self.0.borrow_mut() = State::default();
    }
}

impl State {
    fn synced(&self) -> Lsn {
        Lsn(self.written.0 - self.unsynced.len() as u64)
    }

    fn check(&self) -> Result<(), Fatal> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => self.check_open(),
        }
    }

    fn check_open(&self) -> Result<(), Fatal> {
        if self.is_crashed {
            return Err(Fatal::Disk("the store crashed and was not reopened".to_owned()));
        }
        Ok(())
    }

    fn fail(&mut self, failure: Fatal) -> Result<(), Fatal> {
        self.failure = Some(failure.clone());
        Err(failure)
    }

    fn apply(&mut self, batch: &Batch) {
        let mut replaced = Vec::with_capacity(batch.writes.len());
        for Write { key, value } in &batch.writes {
            match entries::store_place(key) {
                Some((_, Place::Log(_))) => {
                    let first = value.as_deref().and_then(entries::first);
                    self.trim(key, first.expect("the write is sound"), &mut replaced);
                }
                Some((lane, Place::Entry(log, index))) => {
                    let log = store_key(lane, Class::Log, &entries::log_key(log));
                    if self.firsts.get(&log).is_none_or(|first| index >= *first) {
                        self.set(key, value.clone(), &mut replaced);
                    }
                }
                None => self.set(key, value.clone(), &mut replaced),
            }
        }
        self.unsynced.push_back(replaced);
        self.written = batch.lsn;
    }

    fn set(&mut self, key: &Bytes, value: Option<Bytes>, replaced: &mut Vec<Replaced>) {
        let before = match value {
            Some(value) => self.pairs.insert(key.clone(), value),
            None => self.pairs.remove(key),
        };
        replaced.push(Replaced::Pair(key.clone(), before));
    }

    /// Gives up the entries of a log before one of them.
    fn trim(&mut self, log: &Bytes, first: LogIndex, replaced: &mut Vec<Replaced>) {
        let before = self.firsts.get(log).copied();
        if before.is_some_and(|before| before >= first) {
            return;
        }
        replaced.push(Replaced::First(log.clone(), before));
        self.firsts.insert(log.clone(), first);
        let end = Bytes::from([&log[..], &first.0.to_be_bytes()].concat());
        let range = self.pairs.range(log.clone()..end);
        let given_up: Vec<Bytes> = range.map(|(key, _)| key.clone()).collect();
        for key in given_up {
            self.set(&key, None, replaced);
        }
    }

    fn undo_newest(&mut self) {
        let Some(replaced) = self.unsynced.pop_back() else { return };
        for replaced in replaced.into_iter().rev() {
            match replaced {
                Replaced::Pair(key, Some(value)) => drop(self.pairs.insert(key, value)),
                Replaced::Pair(key, None) => drop(self.pairs.remove(&key)),
                Replaced::First(log, Some(first)) => drop(self.firsts.insert(log, first)),
                Replaced::First(log, None) => drop(self.firsts.remove(&log)),
            }
        }
        self.written = Lsn(self.written.0 - 1);
    }
}

impl Log for MemoryStore {
    fn apply(&mut self, batches: &[Batch]) -> Result<(), Fatal> {
        let state = &mut *self.0.borrow_mut();
        state.check()?;
        // All numbers are checked before anything is applied, as the store over fjall does.
        for (batch, expected) in batches.iter().zip(state.written.0 + 1..) {
            if batch.lsn.0 != expected {
                let text = format!("batch {} came where {expected} belongs", batch.lsn.0);
                return state.fail(Fatal::Corrupt(text));
            }
            if let Some(write) = batch.writes.iter().find(|write| !entries::is_sound(write)) {
                let text = format!("a key of {} bytes cannot be stored", write.key.len());
                return state.fail(Fatal::Corrupt(text));
            }
        }
        for batch in batches {
            state.apply(batch);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fatal> {
        let state = &mut *self.0.borrow_mut();
        state.check()?;
        if state.fail_next_sync {
            return state.fail(Fatal::Disk("the sync failed".to_owned()));
        }
        state.unsynced.clear();
        Ok(())
    }
}

impl Reader for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        let state = self.0.borrow();
        state.check_open()?;
        if let Some((_, Place::Log(_))) = entries::store_place(key) {
            return Ok(state.firsts.get(key).map(|first| entries::trim(*first)));
        }
        Ok(state.pairs.get(key).cloned())
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        let state = self.0.borrow();
        state.check_open()?;
        if from >= to {
            return Ok(());
        }
        let range = (Bound::Included(from), Bound::Excluded(to));
        for (key, value) in state.pairs.range::<[u8], _>(range) {
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }
}
