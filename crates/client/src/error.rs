//! How calls fail.

use bytes::Bytes;
use quorate_api::details;
use quorate_api::v1::{self, Kind, NodeFailure};
use thiserror::Error;
use tonic::Status;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ClientError {
    /// The cluster refused it, or could not do it in time. Nothing was changed.
    #[error("{}; {}", .0.what, .0.right)]
    Refused(Box<v1::Error>),
    /// Nobody can say whether the write, or the order of an operator, was done, or will be. Writing
    /// again, as a new write, may bring an old value back over a newer one.
    #[error("nobody can say whether it was done, or will be: {why}")]
    OutcomeUnknown {
        /// What happened that left it open, such as the error of the connection.
        why: String,
        /// What [`Keyspace::how_ended`](crate::Keyspace::how_ended) is asked with, if a host has
        /// said that it will be known.
        token: Option<Bytes>,
    },
    /// No host answered in time. Nothing was changed.
    #[error("no host answered in time: {why}")]
    Unreachable {
        /// What the last one that was tried did.
        why: String,
    },
    /// An address is none. Nothing was sent.
    #[error("`{address}` is no address of a host; write NAME:PORT")]
    Address {
        /// The text that was given as an address.
        address: String,
    },
    /// The system gave no random bytes. Nothing was sent.
    #[error("the system gave no random bytes for a request id")]
    Randomness,
    /// The key has several concurrent values: its keyspace is causal. Nothing was changed.
    #[error("the key has {} concurrent values", .0.values.len())]
    Siblings(v1::Siblings),
    /// The keyspace keeps one value of a key: it has no siblings, and a write between the reading
    /// and the writing of an update would be lost unseen. Nothing was changed.
    #[error("the keyspace keeps one value of a key; ask for it by Client::keyspace")]
    NoSiblings,
    /// What an item of a transaction checks does not hold. Nothing was changed.
    #[error("what item {item} of the transaction checks does not hold; nothing was changed")]
    Unmet {
        /// Which item, from 0.
        item: usize,
    },
    /// A host answered what makes no sense.
    #[error("a host answered what makes no sense: {0}")]
    Nonsense(&'static str),
}

impl ClientError {
    /// A host has said that nobody knows.
    pub(crate) fn unknown(error: v1::Error) -> ClientError {
        let token = Some(error.outcome_token).filter(|token| !token.is_empty());
        ClientError::OutcomeUnknown { why: error.what, token }
    }

    /// Why a stream has ended.
    pub(crate) fn of_stream(status: &Status) -> ClientError {
        match details::error(status) {
            Some(error) => ClientError::Refused(Box::new(error)),
            None => ClientError::Unreachable { why: status.message().to_owned() },
        }
    }

    /// What of a tree did not allow it, if that is why it failed.
    #[must_use]
    pub fn node_failure(&self) -> Option<NodeFailure> {
        match self {
            ClientError::Refused(error) => {
                Some(error.node_failure()).filter(|it| *it != NodeFailure::Unspecified)
            }
            _ => None,
        }
    }

    /// What sort of refusal it is, if it is one.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            ClientError::Refused(error) => Some(error.kind()),
            ClientError::OutcomeUnknown { .. } => Some(Kind::OutcomeUnknown),
            ClientError::Unmet { .. } => Some(Kind::Conflict),
            _ => None,
        }
    }
}
