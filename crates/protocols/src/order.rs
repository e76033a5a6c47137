//! Where keys lie on the ring.

#[cfg(test)]
use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

/// How many bytes a token has.
pub(crate) const TOKEN_BYTES: usize = 8;

/// In which order a keyspace lays its keys on the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By hash: load spreads evenly.
    #[default]
    Hash,
    /// By the key's own order, of which the first eight bytes are the token: neighbours stay
    /// together, and the load balancer must even out what that skews. Keys that share their first
    /// eight bytes share a group.
    Key,
}

impl Order {
    /// Where a client's key lies on the ring.
    #[must_use]
    pub fn token(self, key: &[u8]) -> u64 {
        match self {
            Order::Hash => xxh3_64(key),
            Order::Key => {
                let mut first = [0; TOKEN_BYTES];
                let known = key.len().min(TOKEN_BYTES);
                first[..known].copy_from_slice(&key[..known]);
                u64::from_be_bytes(first)
            }
        }
    }

    /// The wire form of a client's key: its token, then the key.
    #[cfg(test)]
    pub(crate) fn data_key(self, key: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(TOKEN_BYTES + key.len());
        bytes.put_u64(self.token(key));
        bytes.put_slice(key);
        bytes.freeze()
    }
}
