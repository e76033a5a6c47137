//! What a primary has put into the log and nobody has executed yet.
//!
//! A transaction may be looked at as if the tail were committed: its own entry comes behind, so one
//! that does not commit takes it along. Nothing of it is shown before it is executed. It ends with
//! the view: the next primary begins with what was executed.

use crate::serializable::execute::act::Effect;
use crate::serializable::execute::entry::{Change, Entry};
use crate::serializable::execute::head::{of_ended, of_remembered};
use crate::serializable::execute::items::Stored;
use crate::serializable::execute::locks::Locks;
use crate::serializable::moves::places::first_key;
use crate::serializable::moves::{Step, bucket_of};
use crate::serializable::number::{TxId, Version, VoteSeq};
use crate::serializable::raw::Raw;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;

/// The entries that are in flight, oldest first, and what they do.
#[derive(Debug, Default)]
pub struct Tail {
    entries: VecDeque<(Entry, usize)>,
    /// How many bytes they are.
    bytes: usize,
    /// How many of those are votes.
    votes_bytes: usize,
    /// About how many bytes will be remembered of what ends with them.
    ended_bytes: usize,
    /// About how many of those for clients alone.
    remembered_bytes: usize,
    /// How many were executed before the first.
    executed: u64,
    /// What keys will have, and which entry says so.
    items: BTreeMap<Raw, (u64, Stored)>,
    /// Locks that are about to be held.
    pub locks: Locks,
    /// Transactions that an entry is about.
    moving: BTreeSet<TxId>,
    /// Votes that are about to be taken back.
    revoking: BTreeSet<(TxId, GroupId, VoteSeq)>,
    /// Floors that are about to be, and which entry says so.
    floors: VecDeque<(u64, Version)>,
    /// Tombstones that are about to be dropped.
    purged: BTreeSet<Raw>,
    /// Buckets whose place is about to change: of each one entry is in flight.
    steps: BTreeMap<u8, Step>,
    /// Groups that are about to be founded.
    founding: BTreeSet<GroupId>,
}

impl Tail {
    /// How many entries are in flight.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes they are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes the votes among them are.
    pub fn votes_bytes(&self) -> usize {
        self.votes_bytes
    }

    /// About how many bytes will be remembered of what ends with them.
    pub fn ended_bytes(&self) -> usize {
        self.ended_bytes
    }

    /// About how many of those for clients alone.
    pub fn remembered_bytes(&self) -> usize {
        self.remembered_bytes
    }

    /// The same of transactions with counters above this one.
    pub fn remembered_bytes_ahead(&self, counter_max: u64) -> usize {
        let is_ahead = |entry: &Entry| entry.tx().is_some_and(|tx| tx.counter > counter_max);
        let ahead = self.entries.iter().filter(|(entry, _)| is_ahead(entry));
        ahead.map(|(entry, _)| of_remembered(entry)).sum()
    }

    /// One of the entries, counted from the oldest, and how many bytes it is.
    pub fn get(&self, place: usize) -> Option<(&Entry, usize)> {
        self.entries.get(place).map(|(entry, bytes)| (entry, *bytes))
    }

    /// Whether an entry about a transaction is in flight.
    pub fn moves(&self, tx: TxId) -> bool {
        self.moving.contains(&tx)
    }

    /// Whether a vote is about to be taken back, or a later one of that group.
    pub fn revokes(&self, tx: TxId, group: GroupId, seq: VoteSeq) -> bool {
        let last = (tx, group, VoteSeq(u64::MAX));
        self.revoking.range((tx, group, seq)..=last).next().is_some()
    }

    /// What a key will have.
    pub fn item(&self, key: &Raw) -> Option<&Stored> {
        self.items.get(key).map(|(_, item)| item)
    }

    /// The floor that will be.
    pub fn floor(&self) -> Version {
        self.floors.iter().map(|(_, floor)| *floor).max().unwrap_or_default()
    }

    /// Whether a key is about to be changed.
    pub fn changes(&self, key: &Raw) -> bool {
        self.items.contains_key(key)
    }

    /// Whether a tombstone is about to be dropped.
    pub fn purges(&self, key: &Raw) -> bool {
        self.purged.contains(key)
    }

    /// Whether tombstones of a bucket are about to be dropped.
    pub fn purges_of(&self, bucket: u8) -> bool {
        let next = self.purged.range(first_key(bucket)..).next();
        next.is_some_and(|key| bucket_of(key) == bucket)
    }

    /// The entry about the place of a bucket that is in flight.
    pub fn step_of(&self, bucket: u8) -> Option<&Step> {
        self.steps.get(&bucket)
    }

    /// How many buckets are about to be copied from a group.
    pub fn arriving_from(&self, group: GroupId) -> usize {
        let is_its = |step: &&Step| matches!(step, Step::Arriving { from, .. } if *from == group);
        self.steps.values().filter(is_its).count()
    }

    /// How many buckets are about to be handed over to a group.
    pub fn released_to(&self, group: GroupId) -> usize {
        let is_its = |step: &&Step| matches!(step, Step::Release { to, .. } if *to == group);
        self.steps.values().filter(is_its).count()
    }

    /// Whether a group is about to be founded.
    pub fn founds(&self, group: GroupId) -> bool {
        self.founding.contains(&group)
    }

    fn push_step(&mut self, at: u64, step: &Step) {
        if let Some(bucket) = step.bucket() {
            let before = self.steps.insert(bucket, step.clone());
            invariant!(before.is_none(), "of a bucket one entry is in flight");
        }
        match step {
            Step::Take { floor, .. } => self.floors.push_back((at, *floor)),
            Step::Found { group, .. } => _ = self.founding.insert(*group),
            _ => {}
        }
    }

    fn pop_step(&mut self, step: &Step) {
        if let Some(bucket) = step.bucket() {
            self.steps.remove(&bucket);
        }
        match step {
            Step::Take { .. } => _ = self.floors.pop_front(),
            Step::Found { group, .. } => _ = self.founding.remove(group),
            _ => {}
        }
    }

    /// An entry of so many bytes is put into the log, or waits for room in it.
    pub fn push(&mut self, entry: Entry, bytes: usize) {
        let at = self.executed + self.entries.len() as u64;
        match &entry {
            // Several votes of a transaction may be taken back at a time.
            Entry::Revoked { tx, group, seq, .. } => {
                let is_new = self.revoking.insert((*tx, *group, *seq));
                invariant!(is_new, "a vote is taken back once");
            }
            _ => {
                if let Some(tx) = entry.tx() {
                    invariant!(self.moving.insert(tx), "of a transaction one entry is in flight");
                }
            }
        }
        match &entry {
            Entry::DecidedApplied { tx, outcome: Ok((changes, _)), .. } => {
                for change in changes {
                    let item = after(*tx, change);
                    self.items.insert(change.key.clone(), (at, item));
                }
            }
            Entry::Prepared(prepared) => {
                if let Ok(share) = &prepared.vote {
                    self.locks.lock(prepared.rank.tx, share);
                }
            }
            Entry::Expire { keys, .. } => {
                for (key, version) in keys {
                    let (version, writer) = (version.next(), TxId::NONE);
                    let gone = Stored { version, op: 0, writer, content: None };
                    self.items.insert(key.clone(), (at, gone));
                }
            }
            Entry::Purge { keys } => {
                let floor = keys.iter().map(|key| key.version).max();
                self.floors.push_back((at, floor.unwrap_or_default()));
                self.purged.extend(keys.iter().map(|key| key.key.clone()));
            }
            Entry::Move(step) => self.push_step(at, step),
            _ => {}
        }
        self.bytes += bytes;
        self.ended_bytes += of_ended(&entry);
        self.remembered_bytes += of_remembered(&entry);
        self.votes_bytes += if matches!(entry, Entry::Prepared(_)) { bytes } else { 0 };
        self.entries.push_back((entry, bytes));
    }

    /// The oldest entry was executed.
    pub fn pop(&mut self) -> (Entry, usize) {
        let oldest = self.entries.pop_front();
        let (entry, bytes) = oldest.expect("only what is in flight is executed");
        self.bytes -= bytes;
        self.ended_bytes -= of_ended(&entry);
        self.remembered_bytes -= of_remembered(&entry);
        self.votes_bytes -= if matches!(entry, Entry::Prepared(_)) { bytes } else { 0 };
        let at = self.executed;
        self.executed += 1;
        match &entry {
            Entry::Revoked { tx, group, seq, .. } => {
                self.revoking.remove(&(*tx, *group, *seq));
            }
            _ => {
                if let Some(tx) = entry.tx() {
                    self.moving.remove(&tx);
                }
            }
        }
        let mut drop_item = |key: &Raw| {
            if self.items.get(key).is_some_and(|(of, _)| *of == at) {
                self.items.remove(key);
            }
        };
        match &entry {
            Entry::DecidedApplied { outcome: Ok((changes, _)), .. } => {
                changes.iter().for_each(|change| drop_item(&change.key));
            }
            Entry::Expire { keys, .. } => keys.iter().for_each(|(key, _)| drop_item(key)),
            Entry::Prepared(prepared) => {
                if let Ok(share) = &prepared.vote {
                    self.locks.unlock(prepared.rank.tx, share);
                }
            }
            Entry::Purge { keys } => {
                self.floors.pop_front();
                keys.iter().for_each(|key| _ = self.purged.remove(&key.key));
            }
            Entry::Move(step) => self.pop_step(step),
            _ => {}
        }
        (entry, bytes)
    }
}

fn after(tx: TxId, change: &Change) -> Stored {
    let content = match &change.effect {
        Effect::Put { value, expires } => Some((value.clone(), *expires)),
        Effect::Delete => None,
    };
    Stored { version: change.version, op: 0, writer: tx, content }
}
