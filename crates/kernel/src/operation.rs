//! The words doors and engines share: what a client may ask, and what it may be told.

pub use crate::cursor::Cursor;
use crate::engine::Capability;
use crate::explanation::Explanation;
use crate::ids::NodeId;
use crate::keyspace::{CatalogRefusal, KeyspaceOrder};
use crate::lacking::Lacking;
use crate::values::Values;
use crate::watch::Event;
use crate::write::{ContextError, Replaces, WriteName};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use thiserror::Error;

/// Which values of a key are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that it has. Where values stand side by side the keyspace's settings say which of
    /// several is shown, if any is.
    One,
    /// All that stand side by side.
    All,
}

/// One client operation on one keyspace. What it needs of the keyspace's engine follows from what
/// it asks: [`Operation::needs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a key. Answered with [`Outcome::Values`].
    Get {
        /// The key.
        key: Bytes,
        /// Which of its values.
        which: Which,
        /// How many replicas must answer; as many as is usual if none is given.
        replies: Option<u8>,
    },
    /// Sets a value of a key. Answered with [`Outcome::Written`].
    Put {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// What it takes the place of.
        replaces: Replaces,
        /// The client's name for this write, if it has one.
        name: Option<WriteName>,
    },
    /// Removes values of a key. Answered with [`Outcome::Deleted`].
    Delete {
        /// The key.
        key: Bytes,
        /// What is removed.
        replaces: Replaces,
    },
    /// Lists keys in the order of their 64-bit positions. Answered with [`Outcome::Page`].
    Scan {
        /// Where to start, inclusive.
        from: Cursor,
        /// About how many keys to return: deleted keys count too, so a page can hold fewer, even
        /// none.
        limit: u32,
    },
}

impl Operation {
    /// Reads the one value of a key.
    #[must_use]
    pub fn get(key: Bytes) -> Operation {
        Operation::Get { key, which: Which::One, replies: None }
    }

    /// Sets the value of a key, whatever it has.
    #[must_use]
    pub fn put(key: Bytes, value: Bytes) -> Operation {
        Operation::Put { key, value, replaces: Replaces::Whatever, name: None }
    }

    /// Removes a key, whatever it has.
    #[must_use]
    pub fn delete(key: Bytes) -> Operation {
        Operation::Delete { key, replaces: Replaces::Whatever }
    }

    /// Reads all values of a key, and the context that covers them.
    #[must_use]
    pub fn get_all(key: Bytes, replies: Option<u8>) -> Operation {
        Operation::Get { key, which: Which::All, replies }
    }

    /// Sets a value in place of what a context covers.
    #[must_use]
    pub fn put_over(
        key: Bytes,
        value: Bytes,
        context: Bytes,
        name: Option<WriteName>,
    ) -> Operation {
        Operation::Put { key, value, replaces: Replaces::Seen(context), name }
    }

    /// Removes what a context covers.
    #[must_use]
    pub fn delete_over(key: Bytes, context: Bytes) -> Operation {
        Operation::Delete { key, replaces: Replaces::Seen(context) }
    }

    /// The key an operation is about, if it is about one.
    #[must_use]
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Operation::Get { key, .. }
            | Operation::Put { key, .. }
            | Operation::Delete { key, .. } => Some(key),
            Operation::Scan { .. } => None,
        }
    }

    /// Whether the operation may change data.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.replaces().is_some()
    }

    /// What a write takes the place of.
    #[must_use]
    pub fn replaces(&self) -> Option<&Replaces> {
        match self {
            Operation::Put { replaces, .. } | Operation::Delete { replaces, .. } => Some(replaces),
            Operation::Get { .. } | Operation::Scan { .. } => None,
        }
    }

    /// What an engine must be able to do for it, each of them.
    pub fn needs(&self) -> impl Iterator<Item = Capability> + use<> {
        let needs = match self {
            Operation::Get { which, replies, .. } => {
                let values = match which {
                    Which::One => Capability::Values,
                    Which::All => Capability::Siblings,
                };
                [Some(values), replies.map(|_| Capability::Replies)]
            }
            Operation::Put { replaces, .. } | Operation::Delete { replaces, .. } => {
                let values = match replaces {
                    Replaces::Whatever => Capability::Values,
                    Replaces::Seen(_) => Capability::Siblings,
                };
                [Some(values), None]
            }
            Operation::Scan { .. } => [Some(Capability::Listing), None],
        };
        needs.into_iter().flatten()
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
    /// Of any lane: who holds its data, as its holders say? Answered with [`Outcome::Examined`].
    Examine {
        /// From which position on.
        from: u64,
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
    /// What was read. A read of all values carries the context that covers them, to be handed back
    /// with the next write of the key: also without values, when the key is absent.
    Values {
        /// The values: of a read of one value at most one.
        values: Values,
        /// The context; empty for a read of one value.
        context: Bytes,
    },
    /// The put has taken effect and is as durable as the keyspace promises.
    Written {
        /// Covers this write and all it replaced, for the next write of the same client. Empty for
        /// a plain write, and if the key has values that the client has not seen: it must read them
        /// first.
        context: Bytes,
    },
    /// The delete has taken effect; whether its read phase saw a value.
    Deleted {
        /// Whether the read phase saw a value; not said of what a context covered. Another write
        /// may have come between: to tell what a write replaced takes more than a register.
        existed: bool,
        /// As for a put.
        context: Bytes,
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
    /// Who holds what; some of the parts, at least one if there are any.
    Examined(Box<crate::part::Examination>),
    /// The overlay, or the keyspace, knows, durably, and spreads it; or the catalog has decided it.
    Noted,
    /// The cluster is shut down, but for these hosts: they did not say that they end, and may run
    /// on.
    Closed {
        /// The hosts' nodes.
        silent: Vec<NodeId>,
    },
    /// One answer of several, to a watch: more follow until any other outcome ends it.
    More(Vec<Event>),
    /// The operation was refused or its outcome is unknown; the refusal says which.
    Refused(Refusal),
}

impl Outcome {
    /// A read of one value; `None` if the key is absent.
    #[must_use]
    pub fn value(value: Option<Bytes>) -> Outcome {
        Outcome::Values { values: value.into(), context: Bytes::new() }
    }

    /// A plain put.
    #[must_use]
    pub fn written() -> Outcome {
        Outcome::Written { context: Bytes::new() }
    }

    /// Whether nothing follows it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        !matches!(self, Outcome::More(_))
    }

    /// A plain delete, and whether it saw a value.
    #[must_use]
    pub fn deleted(existed: bool) -> Outcome {
        Outcome::Deleted { existed, context: Bytes::new() }
    }
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
