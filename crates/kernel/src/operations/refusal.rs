//! Why an operation is not done, and what that says of the data.

use crate::keyspace::CatalogRefusal;
use crate::lacking::Lacking;
use crate::receipt::TokenError;
use crate::write::ContextError;
use alloc::boxed::Box;
use alloc::string::String;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why an operation was not done. Each variant says what happened to the data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No consistent quorum answered before the deadline. Nothing was changed.
    #[error(
        "{reached} of {needed} replicas needed answered before the deadline; nothing was changed"
    )]
    NoQuorum {
        /// How many replicas of one view answered.
        reached: u8,
        /// How many a quorum needs.
        needed: u8,
    },
    /// The failure detector suspects so many members of the key's view that no quorum is left.
    /// Nothing was changed.
    #[error(
        "{suspected} of the {members} replicas in view {view} are suspected, no quorum is left; \
         nothing was changed"
    )]
    Minority {
        /// The version of the view seen.
        view: u64,
        /// How many of its members are suspected.
        suspected: u8,
        /// How many members it has.
        members: u8,
    },
    /// No replica of the key's range is known yet. Nothing was changed.
    #[error("no replica of the key's range is known to this host yet; nothing was changed")]
    NoRoute,
    /// The change of the cluster's hosts is not allowed. Nothing was changed.
    #[error("{why}; nothing was changed")]
    Membership {
        /// A sentence that says which rule forbids it.
        why: String,
    },
    /// The deadline passed while a write was on its way. It may have been applied, or may yet be.
    #[error("the deadline passed after the write was sent; it may have been applied")]
    OutcomeUnknown,
    /// The deadline passed while a transaction was on its way. It may have been applied, or may yet
    /// be. How it ended can be asked ([`Operation::HowEnded`](crate::operation::Operation)).
    #[error("the deadline passed after the write was sent; it may have been applied")]
    OutcomeOpen {
        /// What is handed back to ask: opaque bytes.
        token: Bytes,
    },
    /// Nobody remembers how a transaction ended that was asked for.
    #[error("nobody remembers any more how the transaction ended; it may have been applied")]
    OutcomeForgotten,
    /// A repeated write was first sent so long ago that what became of it is not remembered. It is
    /// not done again; it may have been applied then.
    #[error(
        "the write was first sent so long ago that what became of it is not remembered; it was not \
         done again, but may have been applied then"
    )]
    NameForgotten,
    /// The keyspace's engine cannot do it. Nothing was changed.
    #[error("{0}")]
    Lacking(Box<Lacking>),
    /// What was asked is nothing for whom it was asked of. Nothing was changed.
    #[error("this engine does not support the operation")]
    Unsupported,
    /// The key has several values, none of which has replaced another, and its keyspace does not
    /// say which one to show. Nothing was changed.
    #[error(
        "the key has {count} siblings and its keyspace shows none of them alone; read them all, \
         with their context, and write back what they come to"
    )]
    Siblings {
        /// How many.
        count: usize,
    },
    /// The context of a write is not one of this key. Nothing was changed.
    #[error(transparent)]
    Context(ContextError),
    /// The token of a request is none of this keyspace. Nothing was changed.
    #[error(transparent)]
    Token(TokenError),
    /// The catalog does not allow it. Nothing was changed.
    #[error("{0}; nothing was changed")]
    Catalog(CatalogRefusal),
    /// The catalog's decision may yet be made.
    #[error("the deadline passed before it was known whether the catalog was changed; look again")]
    CatalogUnknown,
    /// This host has no such keyspace open: it was dropped, or the host has just heard of it.
    /// Nothing was changed.
    #[error("the keyspace is not open on this host; nothing was changed")]
    NotOpen,
    /// A key, a value or a transaction is over its limit. Nothing was changed.
    #[error("{what} of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// "key", "value" or "transaction".
        what: &'static str,
        /// In bytes, as the client sent it.
        length: usize,
        /// The most bytes that are taken.
        limit: usize,
    },
    /// A transaction has too many items. Nothing was changed.
    #[error("a transaction of {count} items is over the limit of {limit}; nothing was changed")]
    TooMany {
        /// How many it has.
        count: usize,
        /// How many it may have.
        limit: usize,
    },
    /// What an item of a transaction checks does not hold. Nothing was changed.
    #[error("what item {item} of the transaction checks does not hold; nothing was changed")]
    Unmet {
        /// Which item, from 0.
        item: usize,
    },
    /// The keyspace's engine does not take such a value for this key. Nothing was changed.
    #[error("this keyspace takes {expected}; nothing was changed")]
    Value {
        /// What it takes.
        expected: &'static str,
    },
    /// The node has too much work in hand. Nothing was changed.
    #[error("the node has too many operations in hand; try again")]
    Overloaded,
    /// A watch has ended: its answers were taken more slowly than they came. What has happened
    /// since the last one is told to whoever watches anew.
    #[error("what happened was not taken in time, and some of it is lost; watch anew")]
    TooSlow,
    /// The host has no such session open: it was never opened here, or it has ended. Nothing was
    /// changed.
    #[error("this host has no such session open; nothing was changed")]
    NoSession,
    /// The tree does not allow it. Nothing was changed.
    #[error("{0}; nothing was changed")]
    Node(crate::tree::Failure),
    /// The node is stopping. Nothing was changed.
    #[error("the node is shutting down")]
    Stopping,
}

/// How a transaction ended, as is told to who was refused with [`Refusal::OutcomeOpen`] and asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// All of it has taken effect, as durably as the keyspace promises.
    Committed,
    /// The same of a part of it: the other changes could not be done where they stood, as one on a
    /// condition that does not hold. What each was told is not remembered.
    Partial,
    /// Nothing of it has taken effect, and never will.
    Aborted,
}

impl Refusal {
    /// Whether the operation may have changed data all the same.
    #[must_use]
    pub fn may_have_applied(&self) -> bool {
        matches!(
            self,
            Refusal::OutcomeUnknown
                | Refusal::OutcomeOpen { .. }
                | Refusal::OutcomeForgotten
                | Refusal::NameForgotten
                | Refusal::CatalogUnknown
        )
    }
}
