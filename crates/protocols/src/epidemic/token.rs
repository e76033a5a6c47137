//! Tokens: places in the order as clients carry them.
//!
//! ```text
//! version 21 | mac 11
//! ```
//! The MAC is BLAKE3 over the lane, which is never given to another keyspace, and the version,
//! keyed with the cluster's secret and cut. A client that could make tokens up could take the clock
//! of a node, and with it those of all nodes, further with each call: the grace of tombstones and
//! the window of requests are counted in it. Tokens stand in the order of their versions.

use super::replica::version::{TOKEN_BYTES, Version};
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::LaneId;
use quorate_kernel::mutant;
use quorate_kernel::receipt::TokenError;

const MAC_BYTES: usize = 11;

/// Makes and reads the tokens of keyspaces.
#[derive(Clone)]
pub struct Tokens {
    key: [u8; 32],
}

impl core::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Tokens that are signed with this key.
    #[must_use]
    pub fn with_key(key: [u8; 32]) -> Tokens {
        Tokens { key }
    }

    fn mac(&self, lane: LaneId, version: &[u8]) -> [u8; MAC_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"place");
        hasher.update(&lane.0.to_be_bytes());
        hasher.update(version);
        let whole = hasher.finalize();
        *whole.as_bytes().first_chunk().expect("a hash is longer")
    }

    /// The token of a version in a keyspace.
    #[must_use]
    pub fn seal(&self, lane: LaneId, version: Version) -> Bytes {
        let version = version.to_token();
        let mut token = BytesMut::with_capacity(TOKEN_BYTES + MAC_BYTES);
        token.put_slice(&version);
        token.put_slice(&self.mac(lane, &version));
        token.freeze()
    }

    /// The version of a token of this keyspace.
    ///
    /// # Errors
    /// It is no token, or not one of this keyspace.
    pub fn open(&self, lane: LaneId, token: &[u8]) -> Result<Version, TokenError> {
        let Some((version, mac)) = token.split_at_checked(TOKEN_BYTES) else {
            return Err(TokenError::Damaged);
        };
        if mac.len() != MAC_BYTES {
            return Err(TokenError::Damaged);
        }
        let parsed = Version::from_token(version).ok_or(TokenError::Damaged)?;
        // Who tries many learns nothing from how long it takes.
        let differing =
            mac.iter().zip(self.mac(lane, version)).fold(0, |all, (a, b)| all | (a ^ b));
        if differing != 0 && !mutant!("epidemic_tokens_unsigned") {
            return Err(TokenError::Forged);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epto::{EventKey, LogicalTime};
    use quorate_kernel::ids::{Incarnation, NodeId, Start};

    fn version(time: u64) -> Version {
        let source = Incarnation { node: NodeId(7), start: Start(2) };
        Version::Ordered(EventKey { time: LogicalTime(time), source })
    }

    #[test]
    fn only_tokens_of_the_keyspace_are_opened_and_they_stand_in_order() {
        let (tokens, lane) = (Tokens::with_key([7; 32]), LaneId(17));
        let (low, high) = (tokens.seal(lane, version(5)), tokens.seal(lane, version(300)));
        assert!(low < high);
        assert_eq!(tokens.open(lane, &high), Ok(version(300)));
        assert_eq!(tokens.open(LaneId(18), &high), Err(TokenError::Forged));
        let other = Tokens::with_key([8; 32]);
        assert_eq!(other.open(lane, &high), Err(TokenError::Forged));
        let mut changed = low.to_vec();
        changed[8] += 1;
        assert_eq!(tokens.open(lane, &changed), Err(TokenError::Forged));
        for wrong in [&b"x"[..], &low[1..], &low[..21], &[]] {
            assert_eq!(tokens.open(lane, wrong), Err(TokenError::Damaged));
        }
    }
}
