//! What clients ask of a keyspace that keeps concurrent values, and what they are told.

use crate::time::Span;
use alloc::vec::Vec;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Names one write of one client, so that a repeated one is known for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteId(pub u128);

/// The name of a write, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteName {
    /// Whichever host it is sent to, the same.
    pub id: WriteId,
    /// How long ago it was sent first; zero if it is sent for the first time. A host that cannot
    /// tell what became of it since then does not do it again.
    pub age: Span,
}

/// One operation on a keyspace that keeps siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Reads all siblings of a key. Answered with [`Told::Siblings`].
    Get {
        /// The key.
        key: Bytes,
        /// How many replicas must answer; the keyspace's `r` if none is given.
        replies: Option<u8>,
    },
    /// Writes a value in place of everything that the context covers. Answered with
    /// [`Told::Stored`].
    Put {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// What an earlier answer about this key carried; empty for a blind write, which replaces
        /// nothing.
        context: Bytes,
        /// The client's name for this write, if it has one.
        id: Option<WriteName>,
    },
    /// Removes everything that the context covers. Answered with [`Told::Stored`].
    Delete {
        /// The key.
        key: Bytes,
        /// As for a put; with an empty one nothing is removed.
        context: Bytes,
    },
}

impl Ask {
    /// The key it is about.
    #[must_use]
    pub fn key(&self) -> &Bytes {
        match self {
            Ask::Get { key, .. } | Ask::Put { key, .. } | Ask::Delete { key, .. } => key,
        }
    }

    /// Whether it may change data.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(self, Ask::Get { .. })
    }
}

/// What became of an [`Ask`] that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The values that nobody has replaced, none of which has seen another, and the context that
    /// covers them. Without values the key is absent; its context matters all the same.
    Siblings {
        /// The values.
        values: Vec<Bytes>,
        /// To be handed back with the next write of this key.
        context: Bytes,
    },
    /// The write is stored as often as the keyspace's `w` asks.
    Stored {
        /// Covers this write and all it replaced, for the next write of the same client. Empty if
        /// the key has siblings that the client has not seen: it must read them first.
        context: Bytes,
    },
}

/// Why a context was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ContextError {
    /// The bytes do not have the form of a context.
    #[error("the context is damaged: it does not have the form of one; nothing was changed")]
    Damaged,
    /// This cluster did not make it, or it was changed since.
    #[error("the context was not made by this cluster, or it was changed; nothing was changed")]
    Forged,
    /// It was made for another key or another keyspace.
    #[error("the context belongs to another key or keyspace; nothing was changed")]
    Foreign,
}
