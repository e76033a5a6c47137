//! What a connection watches: the values that keys had when `WATCH` read them.
//!
//! `EXEC` checks that they have these values at the moment at which it is done. That is all that
//! can be said without versions: a key that was changed and changed back, or set to the value that
//! it had, is not noticed, where Redis would refuse. Only if the client itself has read the other
//! value is it known, and nothing is done: what a client was shown of a watched key since `WATCH`
//! is what the key has when `EXEC` is done.

use super::order::hash;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::LaneId;
use quorate_kernel::limits::TRANSACTION_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::Refusal;
use quorate_kernel::transaction::{Condition, Item};
use quorate_kernel::values::Values;

/// A key, and the value that it had, if it had one.
pub(crate) type Found = (Bytes, Option<Bytes>);

/// A key that is watched.
#[derive(Debug)]
struct Entry {
    /// Tells it from others, those of other keyspaces too.
    hash: u64,
    key: Bytes,
    value: Option<Bytes>,
}

/// The keys that a connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The number of the keyspace that they are of, if there are any.
    keyspace: usize,
    entries: Vec<Entry>,
    /// A key that shall be watched could not be read: what follows must not be done without it.
    is_lost: bool,
    /// The client has read something else of one of them since.
    is_changed: bool,
}

impl Watched {
    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes they keep alive.
    pub(crate) fn bytes(&self) -> usize {
        let of = |entry: &Entry| entry.key.len() + entry.value.as_ref().map_or(0, Bytes::len);
        self.entries.iter().map(of).sum()
    }

    /// The keyspace that they are of, if there are any.
    pub(crate) fn keyspace(&self) -> Option<usize> {
        (!self.entries.is_empty()).then_some(self.keyspace)
    }

    /// Whether a key that shall be watched could not be read.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the client has read of a key that it has another value. If that is taken back before
    /// `EXEC` no check would notice, but the client may have decided by it.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// A key that shall be watched could not be read. What the others have is of no use then.
    pub(crate) fn lose(&mut self) {
        *self = Watched { is_lost: !mutant!("watch_forgets_loss"), ..Watched::default() };
    }

    /// Keys of a keyspace, which has this lane, were read. One that is watched already stays as it
    /// was.
    ///
    /// # Errors
    /// What is watched is more than a transaction can check: all of it is lost.
    pub(crate) fn add(
        &mut self,
        keyspace: usize,
        lane: LaneId,
        found: Vec<Found>,
    ) -> Result<(), Refusal> {
        if self.is_lost {
            return Ok(());
        }
        self.keyspace = keyspace;
        for (key, value) in found {
            match self.entries.iter().find(|entry| entry.key == key) {
                Some(entry) => self.is_changed |= entry.value != value,
                None => self.entries.push(Entry { hash: hash(lane, &key), key, value }),
            }
        }
        let length = self.bytes();
        if length <= TRANSACTION_BYTES_MAX || mutant!("watch_without_bounds") {
            return Ok(());
        }
        self.lose();
        Err(too_large(length))
    }

    /// The client has read a key of this hash.
    pub(crate) fn on_read(&mut self, hash: u64, values: &Values) {
        if mutant!("watch_ignores_reads") {
            return;
        }
        let mut known = self.entries.iter().filter(|entry| entry.hash == hash);
        self.is_changed |= known.any(|entry| !values.iter().eq(&entry.value));
    }

    /// The client has read whether there is a key of this hash, and no value of it.
    pub(crate) fn on_seen(&mut self, hash: u64, is_there: bool) {
        if mutant!("watch_ignores_lifetimes") {
            return;
        }
        let mut known = self.entries.iter().filter(|entry| entry.hash == hash);
        self.is_changed |= known.any(|entry| entry.value.is_some() != is_there);
    }

    /// What must hold for `EXEC` to be done.
    pub(crate) fn checks(self) -> impl Iterator<Item = Item> {
        self.entries.into_iter().map(|Entry { key, value, .. }| {
            let holds = value.map_or(Condition::Absent, Condition::Value);
            Item::Check { key, holds }
        })
    }
}

/// So many bytes are more than a transaction can check.
pub(crate) fn too_large(length: usize) -> Refusal {
    Refusal::TooLarge { what: "watched data", length, limit: TRANSACTION_BYTES_MAX }
}
