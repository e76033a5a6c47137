//! Names of requests, and of what they wrote.

use crate::epto::{EventKey, LogicalTime};
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use serde::{Deserialize, Serialize};

/// Names one request of one client, to whichever nodes it is sent, and however often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u128);

/// Names what a key had at one time. The larger of two is the newer one, at every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Version {
    /// Chosen by the client.
    Explicit(u64),
    /// The name of the event that wrote it. A replica that counted writes itself would count
    /// otherwise than one with a hole.
    Ordered(EventKey),
}

/// How many bytes a version has as a token.
pub const TOKEN_BYTES: usize = 21;

impl Version {
    /// The time of the event that wrote it; 0 of one that a client has chosen.
    #[must_use]
    pub fn time(self) -> LogicalTime {
        match self {
            Version::Explicit(_) => LogicalTime(0),
            Version::Ordered(event) => event.time,
        }
    }

    /// Whether a correct node may have told it.
    #[must_use]
    pub fn is_sound(self) -> bool {
        match self {
            Version::Explicit(_) => true,
            Version::Ordered(event) => event.is_sound(),
        }
    }

    /// The version as bytes, in whose order versions stand.
    #[must_use]
    pub fn to_token(self) -> Vec<u8> {
        let (tag, time, source) = match self {
            Version::Explicit(number) => (0, number, Incarnation::default()),
            Version::Ordered(event) => (1, event.time.0, event.source),
        };
        let mut token = Vec::with_capacity(TOKEN_BYTES);
        token.push(tag);
        token.extend(time.to_be_bytes());
        token.extend(source.node.0.to_be_bytes());
        token.extend(source.start.0.to_be_bytes());
        token
    }

    /// The version of a token; none if the bytes are none.
    #[must_use]
    pub fn from_token(token: &[u8]) -> Option<Version> {
        let (tag, rest) = token.split_first()?;
        let (time, rest) = rest.split_first_chunk()?;
        let (node, start) = rest.split_first_chunk()?;
        let start = Start(u32::from_be_bytes(start.try_into().ok()?));
        let source = Incarnation { node: NodeId(u64::from_be_bytes(*node)), start };
        let time = u64::from_be_bytes(*time);
        match tag {
            0 if source == Incarnation::default() => Some(Version::Explicit(time)),
            1 => Some(Version::Ordered(EventKey { time: LogicalTime(time), source })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(time: u64, node: u64, start: u32) -> Version {
        let source = Incarnation { node: NodeId(node), start: Start(start) };
        Version::Ordered(EventKey { time: LogicalTime(time), source })
    }

    #[test]
    fn tokens_stand_in_the_order_of_versions_and_come_back() {
        let mut versions = Vec::from([
            ordered(5, 2, 1),
            ordered(5, 1, 9),
            ordered(4, u64::MAX, u32::MAX),
            ordered(5, 2, 0),
            Version::Explicit(u64::MAX),
            Version::Explicit(3),
            ordered(256, 0, 0),
        ]);
        versions.sort();
        let tokens: Vec<_> = versions.iter().map(|version| version.to_token()).collect();
        assert!(tokens.is_sorted() && tokens.iter().all(|token| token.len() == TOKEN_BYTES));
        let back: Vec<_> = tokens.iter().filter_map(|token| Version::from_token(token)).collect();
        assert_eq!(back, versions);
        for wrong in [&[][..], &[1, 2], &[2; TOKEN_BYTES], &[0; TOKEN_BYTES + 1]] {
            assert_eq!(Version::from_token(wrong), None);
        }
    }
}
