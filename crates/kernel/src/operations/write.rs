//! What a write says of itself beside its key and value: what it takes the place of, and its name.

use crate::time::Span;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a write takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// Whatever the key has; a plain write. Where values stand side by side the keyspace's settings
    /// say how much of that is meant.
    Whatever,
    /// What an earlier answer about the key showed, by the context that it carried; nothing if it
    /// is empty.
    Seen(Bytes),
    /// Whatever the key has; a plain write that comes behind this token in the order
    /// ([`Receipt::token`](crate::receipt::Receipt)).
    After(Bytes),
    /// Nothing: it is the value of a version that the client chooses.
    Version(u64),
}

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
