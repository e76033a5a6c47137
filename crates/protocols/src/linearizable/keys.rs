//! What the engine keeps in the store.
//!
//! | class | key | value | written by | may be dropped |
//! |---|---|---|---|---|
//! | state | `view` | postcard of the installed view | start, install | never |
//! | state | `status` | postcard of [`Status`] | start, install, refill | never |
//! | state | `crashes` | postcard of the crash vector | a peer's refill | never |
//! | state | `lost` | postcard of [`Lost`] | a refill that found everything lost | never |
//! | data | hash (8, big-endian) and key | [`Record`](super::record::Record) | WriteA, refill | never yet: a tombstone may go only when no older view's member can return with its old data |
//!
//! Each state value begins with a version byte. Data stands in hash order, so scans, refills and
//! cursors (64-bit positions) all follow it.

use super::state::Status;
use crate::quorum::CrashVector;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::view::View;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u8 = 1;
const POSITION_BYTES: usize = 8;

/// Where a client's key lies in the hash space.
#[must_use]
pub fn position(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The stored form of a client's key: its position, then the key.
pub(super) fn data_key(key: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(POSITION_BYTES + key.len());
    bytes.put_u64(position(key));
    bytes.put_slice(key);
    bytes.freeze()
}

/// The first stored key of a position.
pub(super) fn first_at(position: u64) -> [u8; POSITION_BYTES] {
    position.to_be_bytes()
}

/// The position of a stored key.
pub(super) fn position_of(data_key: &[u8]) -> u64 {
    u64::from_be_bytes(*data_key.first_chunk().expect("a stored key begins with its position"))
}

/// The client's key of a stored key.
pub(super) fn client_key(data_key: &Bytes) -> Bytes {
    data_key.slice(POSITION_BYTES..)
}

/// Checks a stored key that came from a peer.
pub(super) fn is_data_key(key: &[u8]) -> Result<(), WireError> {
    if key.len() < POSITION_BYTES {
        return Err(WireError::Truncated { what: "key" });
    }
    if key.len() > POSITION_BYTES + KEY_BYTES_MAX {
        let (length, limit) = (key.len() as u64, (POSITION_BYTES + KEY_BYTES_MAX) as u64);
        return Err(WireError::TooLong { what: "key", length, limit });
    }
    if position_of(key) != position(&key[POSITION_BYTES..]) {
        return Err(WireError::Malformed { what: "key at a position that is not its hash" });
    }
    Ok(())
}

/// A kind of protocol state.
pub(super) trait Stored: Serialize + DeserializeOwned {
    const KEY: &'static [u8];

    fn key() -> Bytes {
        Bytes::from_static(Self::KEY)
    }

    fn to_bytes(&self) -> Bytes {
        let out = Vec::from([VERSION]);
        postcard_extend(self, out).into()
    }

    fn load(table: &dyn Table) -> Option<Self> {
        let bytes = table.get(Class::State, &Self::key())?;
        let (version, rest) = bytes.split_first().expect("a state value has a version");
        assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
        Some(postcard_read(rest))
    }
}

fn postcard_extend<T: Serialize>(value: &T, mut out: Vec<u8>) -> Vec<u8> {
    out.extend(postcard::to_allocvec(value).expect("plain data always serializes"));
    out
}

fn postcard_read<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("the store returns the state that was put into it")
}

impl Stored for View {
    const KEY: &'static [u8] = b"view";
}

impl Stored for Status {
    const KEY: &'static [u8] = b"status";
}

/// The incarnations in which all members of the group had forgot at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lost(pub Vec<Incarnation>);

impl Stored for Lost {
    const KEY: &'static [u8] = b"lost";
}

impl Stored for CrashVector {
    const KEY: &'static [u8] = b"crashes";
}
