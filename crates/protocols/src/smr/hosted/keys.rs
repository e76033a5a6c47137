//! What a host stores of a machine over partitions, beside the logs of rings.
//!
//! | key | value | class | written by | may be dropped |
//! |---|---|---|---|---|
//! | `ring`, ring u32 | (place of an entry, the first slot behind it) | data | its log, when it stores | with the log |
//! | `part`, partition u8, `h` | a snapshot without its objects | data | each time that the partition is stored, the end of a copy | with the partition |
//! | `part`, partition u8, `o`, key | an object | data | the same | when the object is removed |
//! | `part`, partition u8, `k`, number u64 | one thing that is [kept](crate::smr::partitioned::Kept) | data | as the partition asks | when a snapshot that has passed it is stored |
//!
//! Integers are big-endian. Each value is a version byte, then postcard. What is stored at once is
//! one batch, so head and objects are of one moment.

use crate::multicast::RingId;
use crate::smr::partitioned::PartitionId;
use crate::smr::sized;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::limits::KEY_BYTES_MAX;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const RING: &[u8] = b"ring";
const PARTITION: &[u8] = b"part";
const PREFIX_BYTES: usize = PARTITION.len() + 2;
/// The longest key of an object.
pub const OBJECT_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - PREFIX_BYTES;

/// The key of a ring's slots.
pub(super) fn slots(ring: RingId) -> Bytes {
    let mut bytes = BytesMut::from(RING);
    bytes.put_u32(ring.0);
    bytes.freeze()
}

/// The key of a partition's head.
pub(super) fn head(partition: PartitionId) -> Bytes {
    start(partition, b'h', 0).freeze()
}

/// The key of an object.
pub(super) fn object(partition: PartitionId, key: &[u8]) -> Bytes {
    let mut bytes = start(partition, b'o', key.len());
    bytes.put_slice(key);
    bytes.freeze()
}

/// The machine's key of a stored object; none if it is none of this partition.
pub(super) fn of_object(partition: PartitionId, key: &[u8]) -> Option<Bytes> {
    let prefix = start(partition, b'o', 0);
    key.strip_prefix(&prefix[..]).map(Bytes::copy_from_slice)
}

/// The key of something that is kept.
pub(super) fn kept(partition: PartitionId, number: u64) -> Bytes {
    let mut bytes = start(partition, b'k', 8);
    bytes.put_u64(number);
    bytes.freeze()
}

/// The number of something that is kept; none if it is nothing of this partition.
pub(super) fn of_kept(partition: PartitionId, key: &[u8]) -> Option<u64> {
    let prefix = start(partition, b'k', 0);
    let number = key.strip_prefix(&prefix[..])?;
    number.try_into().ok().map(u64::from_be_bytes)
}

fn start(partition: PartitionId, kind: u8, more: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + more);
    bytes.put_slice(PARTITION);
    bytes.put_u8(partition.0);
    bytes.put_u8(kind);
    bytes
}

/// The bytes of a value.
pub(super) fn encode<T: Serialize>(value: &T) -> Bytes {
    sized(&[VERSION], value)
}

/// Reads what a peer has sent, or the store has; nothing if it is no such value.
pub(super) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}
