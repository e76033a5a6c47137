//! Locks: who holds which key until a decision.

use super::entry::Share;
use crate::serializable::moves::places::{bucket_of, first_key};
use crate::serializable::number::TxId;
use crate::serializable::raw::Raw;
use alloc::collections::{BTreeMap, BTreeSet};
use quorate_kernel::invariant;

/// How a key is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// With others that only rest on it.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// Whether both can hold one key.
    #[must_use]
    pub fn fits(self, other: Mode) -> bool {
        self == Mode::Shared && other == Mode::Shared
    }
}

/// Who holds each key. Not stored: it follows from the votes that are pending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    held: BTreeMap<Raw, BTreeMap<TxId, Mode>>,
}

impl Locks {
    /// Locks all keys of a share.
    pub fn lock(&mut self, tx: TxId, share: &Share) {
        let shared = share.shared.iter().map(|key| (key, Mode::Shared));
        let exclusive = share.exclusive.iter().map(|key| (key, Mode::Exclusive));
        for (key, mode) in shared.chain(exclusive) {
            let holders = self.held.entry(key.clone()).or_default();
            let is_free = holders.iter().all(|(holder, held)| *holder != tx && held.fits(mode));
            invariant!(is_free, "only what is free is locked");
            holders.insert(tx, mode);
        }
    }

    /// Unlocks all keys of a share.
    pub fn unlock(&mut self, tx: TxId, share: &Share) {
        for key in share.shared.iter().chain(&share.exclusive) {
            let holders = self.held.get_mut(key).expect("all keys of a share are locked");
            invariant!(holders.remove(&tx).is_some(), "by its transaction");
            if holders.is_empty() {
                self.held.remove(key);
            }
        }
    }

    /// Those that keep another from holding a key so.
    pub fn conflicts(&self, key: &Raw, mode: Mode) -> impl Iterator<Item = TxId> + '_ {
        let holders = self.held.get(key).into_iter().flatten();
        holders.filter(move |(_, held)| !held.fits(mode)).map(|(tx, _)| *tx)
    }

    /// Whether somebody may be about to change a key.
    #[must_use]
    pub fn is_exclusive(&self, key: &Raw) -> bool {
        self.conflicts(key, Mode::Shared).next().is_some()
    }

    /// Whether anybody holds a key.
    #[must_use]
    pub fn is_held(&self, key: &Raw) -> bool {
        self.held.contains_key(key)
    }

    /// Whether anybody holds a key of a bucket.
    #[must_use]
    pub fn holds_any_of(&self, bucket: u8) -> bool {
        let next = self.held.range(first_key(bucket)..).next();
        next.is_some_and(|(key, _)| bucket_of(key) == bucket)
    }

    /// The keys that are held.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Raw> {
        self.held.keys().cloned().collect()
    }
}
