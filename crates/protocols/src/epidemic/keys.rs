//! What the engine keeps in the store.
//!
//! | class | key | value | written by | may be dropped |
//! |---|---|---|---|---|
//! | data | `k`, hash (8), key, version (21) | postcard of [`Stored`] | a write that is applied, repair, a snapshot | when a newer version replaces it; a tombstone when its grace is over; with a range that was given up |
//! | data | `i`, request id (16) | postcard of [`Done`](super::replica::seen::Done) | with the write that it names | when the window has passed it |
//! | data | `f` | postcard of the [`EventKey`](crate::epto::EventKey) up to which requests were forgotten as there were too many | with the removal of the last of them | never |
//! | data | `b` | postcard of [`Behind`](crate::epidemic::repair::behind::Behind) | with what is given up, taken over, or taken of who is not ready | never |
//! | data | `d` | postcard of the leaves that were [lost](crate::epidemic::repair) when they were taken over, as runs | with what is taken over, compared or dropped | when nothing is lost |
//! | data | `l` | postcard of the last [`EventKey`](crate::epto::EventKey) | each delivery, in the batch of what it wrote | never |
//!
//! Integers are big-endian. All that one input writes is one batch, so a value, its version, the id
//! of its request and the last event are never apart.

use super::replica::range::position;
use super::replica::version::{RequestId, TOKEN_BYTES, Version};
use crate::epto::EventKey;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::plain::PlainData;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// How many bytes of a wire key are its hash.
pub const HASH_BYTES: usize = 8;
/// Where the last event stands.
pub const LAST: Bytes = Bytes::from_static(b"l");

/// Where it stands up to which event requests were forgotten.
pub const FORGOTTEN: Bytes = Bytes::from_static(b"f");

/// Where it stands what was heard of ranges for which the node does not answer.
pub const BEHIND: Bytes = Bytes::from_static(b"b");

/// Where it stands what was taken over without a copy.
pub const LOST: Bytes = Bytes::from_static(b"d");

/// What stands under a key and a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The request that wrote it.
    pub id: RequestId,
    /// The value; none of a tombstone.
    pub value: Option<Bytes>,
}

impl PlainData for Stored {}
impl PlainData for EventKey {}

/// The wire form of a client's key: its hash, and itself.
#[must_use]
pub fn wire_key(key: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HASH_BYTES + key.len());
    bytes.put_u64(xxh3_64(key));
    bytes.put_slice(key);
    bytes.freeze()
}

/// The client's key of a wire key.
#[must_use]
pub fn client_key(wire: &[u8]) -> &[u8] {
    &wire[HASH_BYTES..]
}

/// Whether a peer may say this wire key.
#[must_use]
pub fn is_wire_key(wire: &[u8]) -> bool {
    let is_short = wire.len() <= HASH_BYTES + KEY_BYTES_MAX;
    is_short && wire.len() >= HASH_BYTES && position(wire).0 == xxh3_64(client_key(wire))
}

/// Where a version of a key stands.
pub fn record_key(wire: &[u8], version: Version) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + wire.len() + TOKEN_BYTES);
    bytes.put_u8(b'k');
    bytes.put_slice(wire);
    bytes.put_slice(&version.to_token());
    bytes.freeze()
}

/// The wire key and the version of what stands there; none of anything else.
pub fn record_of(stored: &[u8]) -> Option<(Bytes, Version)> {
    let rest = stored.strip_prefix(b"k")?;
    let (wire, token) = rest.split_at_checked(rest.len().checked_sub(TOKEN_BYTES)?)?;
    Some((Bytes::copy_from_slice(wire), Version::from_token(token)?))
}

/// Where the result of a request stands.
pub fn id_key(id: RequestId) -> Bytes {
    let mut bytes = Vec::from(*b"i");
    bytes.extend(id.0.to_be_bytes());
    bytes.into()
}

/// The request whose result stands there; none of anything else.
pub fn id_of(stored: &[u8]) -> Option<RequestId> {
    let rest = stored.strip_prefix(b"i")?;
    Some(RequestId(u128::from_be_bytes(rest.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back() {
        let wire = wire_key(b"k");
        assert!(is_wire_key(&wire) && !is_wire_key(b"short") && !is_wire_key(&[0; 9]));
        assert_eq!(client_key(&wire), b"k");
        let stored = record_key(&wire, Version::Explicit(7));
        assert_eq!(record_of(&stored), Some((wire, Version::Explicit(7))));
        assert_eq!(id_of(&id_key(RequestId(1 << 100))), Some(RequestId(1 << 100)));
        assert!(
            id_of(&stored).is_none() && record_of(b"k").is_none() && record_of(&LAST).is_none()
        );
    }
}
