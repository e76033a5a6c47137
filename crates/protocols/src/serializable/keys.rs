//! What a group of transactions keeps in the store, beside its log.
//!
//! | key | value | class | written by | may be dropped |
//! |---|---|---|---|---|
//! | `txn`, group u64, `h` | version byte, then postcard of (place, head); the head has a version byte itself, and behind its postcard that of what has moved, if something has | data | the end of a pass of storing, the end of a copy | with the group's log |
//! | `txn`, group u64, `n` | version byte, then postcard of the newest place whose effects may be stored | data | every step of a pass, before its items | with the group's log |
//! | `txn`, group u64, `i`, key | version byte, then postcard of a stored item | data | a pass, a page of a copy | when a purge drops the tombstone, and when a copy begins |
//!
//! Integers are big-endian. Nothing of it is synced for anybody: the log is.

use super::execute::head::Head;
use super::moves::Moves;
use super::raw::Raw;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::GroupId;
use serde::{Deserialize, Serialize};

/// When it goes up, `entry.rs` says. 2: of a vote, also of one that was taken back, what was asked
/// of its group is kept in short, and of the latter its groups; the horizon; the last clock.
const VERSION: u8 = 2;
const PREFIX: &[u8] = b"txn";
const ITEM_PREFIX_BYTES: usize = PREFIX.len() + 8 + 1;

const _: () = assert!(
    super::rules::ITEM_KEY_BYTES_MAX + ITEM_PREFIX_BYTES <= quorate_kernel::limits::KEY_BYTES_MAX
);

/// The key of the head.
pub fn head(group: GroupId) -> Bytes {
    start(group, b'h', 0).freeze()
}

/// The key of the newest place.
pub fn newest(group: GroupId) -> Bytes {
    start(group, b'n', 0).freeze()
}

/// The key of an item.
pub fn item(group: GroupId, key: &[u8]) -> Bytes {
    let mut bytes = start(group, b'i', key.len());
    bytes.put_slice(key);
    bytes.freeze()
}

/// The client's key of an item's key; none if it is no item of this group.
pub fn of_item(group: GroupId, key: &[u8]) -> Option<Raw> {
    let prefix = start(group, b'i', 0);
    key.strip_prefix(&prefix[..]).map(|rest| Raw(Bytes::copy_from_slice(rest)))
}

fn start(group: GroupId, kind: u8, more: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(ITEM_PREFIX_BYTES + more);
    bytes.put_slice(PREFIX);
    bytes.put_u64(group.0);
    bytes.put_u8(kind);
    bytes
}

/// The bytes of a value.
pub fn encode<T: Serialize>(value: &T) -> Bytes {
    let mut bytes = Vec::from([VERSION]);
    bytes.extend(postcard::to_allocvec(value).expect("plain data always serializes"));
    bytes.into()
}

/// The bytes of a head: what has moved follows if there is something.
pub fn encode_head(head: &Head) -> Bytes {
    let bytes = encode(head);
    if head.moves.is_empty() {
        return bytes;
    }
    let mut bytes = Vec::from(bytes);
    bytes.extend(postcard::to_allocvec(&head.moves).expect("plain data always serializes"));
    bytes.into()
}

/// Reads a head; nothing if it is none.
pub fn read_head(bytes: &[u8]) -> Option<Head> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    let (head, rest) = postcard::take_from_bytes::<Head>(rest).ok()?;
    if rest.is_empty() {
        return Some(head);
    }
    match postcard::take_from_bytes::<Moves>(rest) {
        Ok((moves, [])) if !moves.is_empty() => Some(Head { moves, ..head }),
        _ => None,
    }
}

/// Reads a value back.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> T {
    read(bytes).expect("the store returns what was put into it, in the version that it guards")
}

/// Reads what a peer has sent; nothing if it is no such value.
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}
