//! The words doors and engines share: what a client may ask, and what it may be told.

use crate::causal::{Ask, ContextError, Told};
use crate::ids::{Incarnation, NodeId};
use crate::keyspace::{CatalogRefusal, KeyspaceOrder};
use crate::time::Span;
use crate::view::View;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use thiserror::Error;

/// Where a listing begins or goes on: in the order of positions, and of the keys that share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The position.
    pub position: u64,
    /// Of the keys of that position, those from this one on; all of them if it is empty.
    pub key: Bytes,
}

impl Cursor {
    /// The first key of a position.
    #[must_use]
    pub const fn at(position: u64) -> Cursor {
        Cursor { position, key: Bytes::new() }
    }

    /// Whether it lies between two positions.
    #[must_use]
    pub fn is_position(&self) -> bool {
        self.key.is_empty()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position)?;
        if self.is_position() { Ok(()) } else { write!(f, " \"{}\"", self.key.escape_ascii()) }
    }
}

/// One client operation on one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads the value of a key. Answered with [`Outcome::Value`].
    Get {
        /// The key.
        key: Bytes,
    },
    /// Sets the value of a key. Answered with [`Outcome::Written`].
    Put {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// Removes a key. Answered with [`Outcome::Deleted`].
    Delete {
        /// The key.
        key: Bytes,
    },
    /// Lists keys in the order of their 64-bit positions. Answered with [`Outcome::Page`].
    Scan {
        /// Where to start, inclusive.
        from: Cursor,
        /// About how many keys to return: deleted keys count too, so a page can hold fewer, even
        /// none.
        limit: u32,
    },
    /// Of a keyspace that keeps siblings. Answered with [`Outcome::Causal`].
    Causal(Ask),
}

impl Operation {
    /// The key an operation is about, if it is about one.
    #[must_use]
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Operation::Get { key } | Operation::Put { key, .. } | Operation::Delete { key } => {
                Some(key)
            }
            Operation::Scan { .. } => None,
            Operation::Causal(ask) => Some(ask.key()),
        }
    }

    /// Whether the operation may change data.
    #[must_use]
    pub fn is_write(&self) -> bool {
        match self {
            Operation::Put { .. } | Operation::Delete { .. } => true,
            Operation::Get { .. } | Operation::Scan { .. } => false,
            Operation::Causal(ask) => ask.is_write(),
        }
    }
}

/// What an operator asks of a lane, beside the operations of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Of a keyspace: read a key like a get, and tell how it was served. Answered with
    /// [`Outcome::Explained`].
    Explain {
        /// The key.
        key: Bytes,
    },
    /// Of a keyspace: which group holds a position? Asked of a quorum of it, as a scan is. Answered
    /// with [`Outcome::Explained`], without a value.
    Examine {
        /// The position.
        position: u64,
    },
    /// Of the overlay: a host shall hand over all it holds and take nothing new, or take part
    /// again. Answered with [`Outcome::Noted`].
    Drain {
        /// The host's node.
        node: NodeId,
        /// Whether it shall take part again.
        undo: bool,
    },
    /// Of the overlay: count a host as gone for good. Answered with [`Outcome::Noted`].
    Remove {
        /// The host's node.
        node: NodeId,
        /// Although what nobody else holds is lost with it.
        force: bool,
    },
    /// Of a keyspace on fixed positions: which host holds each of them, as its engine encodes it;
    /// an older map than the known one changes nothing. Answered with [`Outcome::Noted`].
    Place {
        /// The map.
        map: Bytes,
    },
    /// Of the catalog: make, alter or drop a keyspace. Answered with [`Outcome::Noted`].
    Keyspace(KeyspaceOrder),
    /// Of the overlay: have all hosts finish what they do for clients and end, at one time.
    /// Answered with [`Outcome::Closed`].
    Shutdown,
    /// Of the overlay, by its own host: nothing is in hand for clients any more. Not answered.
    Idle,
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The value read; `None` if the key is absent.
    Value(Option<Bytes>),
    /// The put has taken effect and is as durable as the keyspace promises.
    Written,
    /// The delete has taken effect; whether its read phase saw a value.
    Deleted {
        /// Whether the read phase saw a value. Another write may have come between: to tell what a
        /// write replaced takes more than a register.
        existed: bool,
    },
    /// A page of a scan: keys in the order of positions, and where to continue; `None` at the end.
    Page {
        /// The keys.
        keys: Vec<Bytes>,
        /// Where to continue.
        next: Option<Cursor>,
    },
    /// How a read was served, and what it returned.
    Explained(Box<Explanation>),
    /// The overlay, or the keyspace, knows, durably, and spreads it; or the catalog has decided it.
    Noted,
    /// What became of an operation on a keyspace that keeps siblings.
    Causal(Told),
    /// The cluster is shut down, but for these hosts: they did not say that they end, and may run
    /// on.
    Closed {
        /// The hosts' nodes.
        silent: Vec<NodeId>,
    },
    /// The operation was refused or its outcome is unknown; the refusal says which.
    Refused(Refusal),
}

/// How one read was served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The value's length; `None` if the key is absent.
    pub value_bytes: Option<usize>,
    /// The key's position on the ring.
    pub position: u64,
    /// Who coordinated.
    pub coordinator: Incarnation,
    /// The view that the operation ended in.
    pub view: View,
    /// The members whose answers it could rest on: they have all that they have to hold.
    pub answered: Vec<NodeId>,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// One step of an explained operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long after the operation began.
    pub after: Span,
    /// The member it concerns, if it concerns one.
    pub member: Option<NodeId>,
    /// What happened, in the protocol's words.
    pub what: String,
}

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
        /// Why.
        why: String,
    },
    /// The deadline passed while a write was on its way. It may have been applied, or may yet be.
    #[error("the deadline passed after the write was sent; it may have been applied")]
    OutcomeUnknown,
    /// The engine does not do this operation. Nothing was changed.
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
    /// A key or value is over its limit. Nothing was changed.
    #[error("{what} of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// "key" or "value".
        what: &'static str,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The node has too much work in hand. Nothing was changed.
    #[error("the node has too many operations in hand; try again")]
    Overloaded,
    /// The node is stopping. Nothing was changed.
    #[error("the node is shutting down")]
    Stopping,
}

impl Refusal {
    /// Whether the operation may have changed data all the same.
    #[must_use]
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Refusal::OutcomeUnknown | Refusal::CatalogUnknown)
    }
}
