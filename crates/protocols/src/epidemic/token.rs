//! Tokens: places in the order as clients carry them.
//!
//! ```text
//! version 21 | mac 11
//! ```
//! Signed as [`crate::sealed`] says. A client that could make tokens up could take the clock
//! of a node, and with it those of all nodes, further with each call: the grace of tombstones and
//! the window of requests are counted in it. Tokens stand in the order of their versions.

use super::replica::version::{TOKEN_BYTES, Version};
use crate::sealed::Sealer;
use bytes::Bytes;
use quorate_kernel::ids::LaneId;
use quorate_kernel::receipt::TokenError;

/// Makes and reads the tokens of keyspaces.
#[derive(Clone, Debug)]
pub struct Tokens(Sealer);

impl Tokens {
    /// Tokens that are signed with this key.
    #[must_use]
    pub fn with_key(key: [u8; 32]) -> Tokens {
        Tokens(Sealer::new(key, b"place"))
    }

    /// The token of a version in a keyspace.
    #[must_use]
    pub fn seal(&self, lane: LaneId, version: Version) -> Bytes {
        self.0.seal(lane, &version.to_token())
    }

    /// The version of a token of this keyspace.
    ///
    /// # Errors
    /// It is no token, or not one of this keyspace.
    pub fn open(&self, lane: LaneId, token: &[u8]) -> Result<Version, TokenError> {
        let version = self.0.open::<TOKEN_BYTES>(lane, token)?;
        Version::from_token(&version).ok_or(TokenError::Damaged)
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
