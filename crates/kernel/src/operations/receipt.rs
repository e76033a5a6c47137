//! What an answer says beside the value, of engines whose replicas may differ for a while.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// Why a [`Receipt::token`] that a client hands back was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// The bytes do not have the form of a token.
    #[error("the token is damaged: it does not have the form of one; nothing was changed")]
    Damaged,
    /// This keyspace did not give it, or it was changed since. Keyspaces of one name that were made
    /// one after the other are two.
    #[error("the token was not given by this keyspace, or it was changed; nothing was changed")]
    Forged,
    /// It names a place that nobody near this host has come to.
    #[error(
        "the token names a place far ahead of all that this host has heard of; nothing was changed"
    )]
    Ahead,
}

/// Beside what was read or written: where it stands in the order, and who has said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The place in the order of what the answer has seen or done: opaque bytes, in whose order
    /// places stand. A client that hands the largest one back is not shown anything from before it.
    pub token: Bytes,
    /// How many replicas have said so.
    pub acks: u8,
    /// Whether one of them knew that it had missed something.
    pub is_degraded: bool,
}

impl Receipt {
    /// The receipt as the context of an outcome.
    #[must_use]
    pub fn to_context(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.token.len() + 2);
        bytes.put_slice(&self.token);
        bytes.put_u8(self.acks);
        bytes.put_u8(u8::from(self.is_degraded));
        bytes.freeze()
    }

    /// The receipt of a context; none if it is none.
    #[must_use]
    pub fn of_context(context: &Bytes) -> Option<Receipt> {
        match context[..] {
            [.., acks, degraded @ (0 | 1)] => {
                let token = context.slice(..context.len() - 2);
                Some(Receipt { token, acks, is_degraded: degraded == 1 })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_comes_back_from_a_context() {
        for (acks, is_degraded, token) in [(0, false, &b""[..]), (3, true, &[7; 21])] {
            let receipt = Receipt { token: Bytes::copy_from_slice(token), acks, is_degraded };
            assert_eq!(Receipt::of_context(&receipt.to_context()), Some(receipt));
        }
        for wrong in [&b""[..], &[1], &[1, 2]] {
            assert_eq!(Receipt::of_context(&Bytes::copy_from_slice(wrong)), None);
        }
    }
}
