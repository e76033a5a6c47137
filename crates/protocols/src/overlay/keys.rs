//! What the overlay keeps in the store.
//!
//! | class | key | value | written by | may be dropped |
//! |---|---|---|---|---|
//! | state | `host` and node id (8, big-endian) | version byte, postcard of [`HostRecord`] | start, learning; at once for the own standing and for marks of those that have left, others every few seconds | never: a host that is forgotten could not be found again after a partition, and one that has left could come back |
//!
//! The node's own record holds its tokens. Suspicions and loads are not kept up to date.

use crate::gossip::record::HostRecord;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::NodeId;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

const VERSION: u8 = 1;
const PREFIX: &[u8] = b"host";

/// The key of a host's record.
pub(super) fn key(node: NodeId) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX.len() + 8);
    bytes.put_slice(PREFIX);
    bytes.put_u64(node.0);
    bytes.freeze()
}

/// The stored form of a record.
pub(super) fn value(record: &HostRecord) -> Bytes {
    let mut bytes = Vec::from([VERSION]);
    bytes.extend(postcard::to_allocvec(record).expect("plain data always serializes"));
    bytes.into()
}

/// Every stored record.
pub(super) fn load(table: &dyn Table) -> Vec<HostRecord> {
    let mut records = Vec::new();
    table.scan(Class::State, PREFIX, &mut |key, value| {
        if !key.starts_with(PREFIX) {
            return false;
        }
        let (version, rest) = value.split_first().expect("a state value has a version");
        assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
        records.push(postcard::from_bytes(rest).expect("the store returns what was put into it"));
        true
    });
    records
}
