//! What a roll keeps in the store.
//!
//! | key | value | class | written by | may be dropped |
//! |---|---|---|---|---|
//! | `roll`, `h` | version byte, then [`Head`] | state | founding, a decided change, being removed | never: who was removed must not join again |
//! | `roll`, `a` | version byte, then the acceptor with its configuration | state | a promise, a vote | with the next configuration, whose acceptor takes its place |

use super::agree::Acceptor;
use super::change::Change;
use super::codec::{put, take};
use super::configuration::Configuration;
use super::number::{RollId, Round};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const HEAD: &[u8] = b"rollh";
const ACCEPTOR: &[u8] = b"rolla";

/// How a node stands, durably.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Standing {
    /// It was never a member.
    #[default]
    New,
    /// It is a member.
    Member,
    /// It was one, and has left.
    Left,
    /// It was one, and the others have removed it.
    Kicked,
}

/// What must not be forgotten, beside the votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub standing: Standing,
    pub configuration: Arc<Configuration>,
}

/// All of them.
pub(crate) const KEYS: [&[u8]; 2] = [HEAD, ACCEPTOR];

impl Head {
    pub fn key() -> Bytes {
        Bytes::from_static(HEAD)
    }

    pub fn stored(&self) -> Bytes {
        let mut out = Vec::from([VERSION]);
        put(&mut out, &self.standing);
        out.extend(self.configuration.encode());
        out.into()
    }

    pub fn load(table: &dyn Table) -> Option<Head> {
        let value = table.get(Class::State, &Head::key())?;
        let mut rest = versioned(&value);
        let standing = take(&mut rest).expect("the store returns what was put into it");
        let read = Configuration::decode(rest).expect("the store returns what was put into it");
        Some(Head { standing, configuration: Arc::new(read) })
    }
}

pub(super) fn acceptor_key() -> Bytes {
    Bytes::from_static(ACCEPTOR)
}

/// An acceptor's bytes. Its votes count in one configuration alone.
pub(super) fn store_acceptor(roll: RollId, acceptor: &Acceptor) -> Bytes {
    let mut out = Vec::from([VERSION]);
    let voted = acceptor.voted.as_ref().map_or(Round::NONE, |(round, _)| *round);
    put(&mut out, &(roll, acceptor.promised, voted));
    if let Some((_, value)) = &acceptor.voted {
        out.extend(value.encode());
    }
    out.into()
}

/// The acceptor of a configuration; one that has promised nothing if none was stored for it.
pub(super) fn load_acceptor(roll: RollId, table: &dyn Table) -> Acceptor {
    let Some(value) = table.get(Class::State, &acceptor_key()) else { return Acceptor::default() };
    let mut rest = versioned(&value);
    let (of, promised, voted): (RollId, Round, Round) =
        take(&mut rest).expect("the store returns what was put into it");
    if of != roll {
        return Acceptor::default();
    }
    let value = || Change::decode(rest).expect("the store returns what was put into it");
    let voted = (voted != Round::NONE).then(|| (voted, Arc::new(value())));
    Acceptor { promised, voted }
}

fn versioned(value: &Bytes) -> &[u8] {
    let (version, rest) = value.split_first().expect("a state value has a version");
    assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
    rest
}
