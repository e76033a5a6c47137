//! What a replicated machine keeps in the store, beside its log.
//!
//! | key | value | class | written by | may be dropped |
//! |---|---|---|---|---|
//! | `smr`, group u64, `h` | version byte, then postcard of (place, [`Head`]) | data | each time that it stores, the end of a copy | with the group's log |
//! | `smr`, group u64, `o`, key | version byte, then postcard of an object | data | each time that it stores, a page of a copy | when the object is removed, and while a copy is under way |
//!
//! Integers are big-endian. All that is stored at a time is one batch, so it is of one entry.
//! Nothing of it is synced for anybody: the log is.

use super::clients::Client;
use super::machine::Machine;
use super::sized::sized;
use crate::vsr::Op;
use alloc::collections::BTreeMap;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::KEY_BYTES_MAX;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const PREFIX: &[u8] = b"smr";
const PREFIX_BYTES: usize = PREFIX.len() + 8 + 1;
/// The longest key of an object.
pub const OBJECT_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - PREFIX_BYTES;

/// What is not an object: copied, and stored, in one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Head<M: Machine> {
    /// The latest time of an entry, in milliseconds since 1970.
    pub now_ms: u64,
    /// How many changes the machine has told.
    pub changes: u64,
    /// Each node's commands.
    pub clients: BTreeMap<NodeId, Client<M>>,
}

impl<M: Machine> Default for Head<M> {
    fn default() -> Head<M> {
        Head { now_ms: 0, changes: 0, clients: BTreeMap::new() }
    }
}

/// The key of the head.
pub fn head(group: GroupId) -> Bytes {
    start(group, b'h', 0).freeze()
}

/// The key of an object.
pub fn object(group: GroupId, key: &[u8]) -> Bytes {
    let mut bytes = start(group, b'o', key.len());
    bytes.put_slice(key);
    bytes.freeze()
}

/// The machine's key of a stored object; none if it is none of this group.
pub fn of_object(group: GroupId, key: &[u8]) -> Option<Bytes> {
    let prefix = start(group, b'o', 0);
    key.strip_prefix(&prefix[..]).map(Bytes::copy_from_slice)
}

fn start(group: GroupId, kind: u8, more: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + more);
    bytes.put_slice(PREFIX);
    bytes.put_u64(group.0);
    bytes.put_u8(kind);
    bytes
}

/// The bytes of a value.
pub fn encode<T: Serialize>(value: &T) -> Bytes {
    sized(&[VERSION], value)
}

/// Reads what a peer has sent, or the store has; nothing if it is no such value.
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

/// What was stored as of an entry.
pub type StoredHead<M> = (Op, Head<M>);
