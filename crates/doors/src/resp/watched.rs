//! What a connection watches: the values that keys had when `WATCH` read them.
//!
//! `EXEC` checks that they have these values at the moment at which it is done. That is all that
//! can be said without versions: a key that was changed and changed back, or set to the value that
//! it had, is not noticed, where Redis would refuse.

use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::transaction::{Condition, Item};

/// A key, and the value that it had, if it had one.
pub(crate) type Found = (Bytes, Option<Bytes>);

/// The keys that a connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The number of the keyspace that they are of, if there are any.
    keyspace: usize,
    found: Vec<Found>,
    /// A key that shall be watched could not be read: what follows must not be done without it.
    is_lost: bool,
}

impl Watched {
    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// How many bytes they keep alive.
    pub(crate) fn bytes(&self) -> usize {
        let of = |(key, value): &Found| key.len() + value.as_ref().map_or(0, Bytes::len);
        self.found.iter().map(of).sum()
    }

    /// The keyspace that they are of, if there are any.
    pub(crate) fn keyspace(&self) -> Option<usize> {
        (!self.found.is_empty()).then_some(self.keyspace)
    }

    /// Whether a key that shall be watched could not be read.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Keys were read, or could not be. One that is watched already stays as it was.
    pub(crate) fn add(&mut self, keyspace: usize, found: Option<Vec<Found>>) {
        let Some(found) = found else {
            self.is_lost = true;
            return;
        };
        self.keyspace = keyspace;
        for (key, value) in found {
            if self.found.iter().all(|(known, _)| *known != key) {
                self.found.push((key, value));
            }
        }
    }

    /// What must hold for `EXEC` to be done.
    pub(crate) fn checks(self) -> impl Iterator<Item = Item> {
        self.found.into_iter().map(|(key, value)| {
            let holds = value.map_or(Condition::Absent, Condition::Value);
            Item::Check { key, holds }
        })
    }
}
