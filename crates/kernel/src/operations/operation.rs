//! The words doors and engines share: what a client may ask, and what it may be told.

pub use crate::cursor::Cursor;
use crate::engine::Capability;
use crate::explanation::Explanation;
use crate::ids::NodeId;
use crate::keyspace::KeyspaceOrder;
use crate::refusal::Ended;
pub use crate::refusal::Refusal;
use crate::transaction::{Item, ItemOutcome};
use crate::tree;
use crate::values::Values;
use crate::watch::Event;
use crate::write::{Replaces, WriteName};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// Which values of a key are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that it has. Where values stand side by side the keyspace's settings say which of
    /// several is shown, if any is.
    One,
    /// All that stand side by side.
    All,
    /// The one that it has, of a replica that is as far in the order as this token says
    /// ([`Receipt::token`](crate::receipt::Receipt)).
    After(Bytes),
    /// The one of a version that a client has chosen.
    Version(u64),
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
    /// Lists keys in the order of their 64-bit tokens. Answered with [`Outcome::Page`].
    Scan {
        /// Where to start, inclusive.
        from: Cursor,
        /// About how many keys to return: deleted keys count too, so a page can hold fewer, even
        /// none.
        limit: u32,
    },
    /// Does several things at one moment, or nothing. Answered with [`Outcome::Transacted`].
    Transact {
        /// What is done, in this order; one item at least.
        items: Vec<Item>,
        /// The client's name for it, if it has one.
        name: Option<WriteName>,
    },
    /// Does something with a tree, or with a session. Answered with [`Outcome::Tree`].
    Tree(Box<tree::Ask>),
    /// Asks how a transaction ended ([`Refusal::OutcomeOpen`]). Answered with [`Outcome::Ended`].
    HowEnded {
        /// The token that its client was told.
        token: Bytes,
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

    /// The key an operation is about, if it is about one alone.
    #[must_use]
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Operation::Get { key, .. }
            | Operation::Put { key, .. }
            | Operation::Delete { key, .. } => Some(key),
            Operation::Scan { .. }
            | Operation::Transact { .. }
            | Operation::Tree(_)
            | Operation::HowEnded { .. } => None,
        }
    }

    /// All keys an operation is about; one that several items are about comes several times.
    pub fn keys(&self) -> impl Iterator<Item = &Bytes> {
        let items = match self {
            Operation::Transact { items, .. } => &items[..],
            _ => &[],
        };
        self.key().into_iter().chain(items.iter().flat_map(Item::keys))
    }

    /// Whether the operation may change data.
    #[must_use]
    pub fn is_write(&self) -> bool {
        match self {
            Operation::Transact { items, .. } => items.iter().any(Item::is_write),
            Operation::Tree(ask) => ask.act.is_write(),
            _ => self.replaces().is_some(),
        }
    }

    /// What a write of one key takes the place of.
    #[must_use]
    pub fn replaces(&self) -> Option<&Replaces> {
        match self {
            Operation::Put { replaces, .. } | Operation::Delete { replaces, .. } => Some(replaces),
            _ => None,
        }
    }

    /// What an engine must be able to do for it, each of them.
    pub fn needs(&self) -> impl Iterator<Item = Capability> + use<> {
        let needs = match self {
            Operation::Get { which, replies, .. } => {
                let values = match which {
                    Which::One => Capability::Values,
                    Which::All => Capability::Siblings,
                    Which::After(_) | Which::Version(_) => Capability::Receipts,
                };
                [Some(values), replies.map(|_| Capability::Replies), None]
            }
            Operation::Put { replaces, .. } | Operation::Delete { replaces, .. } => {
                let values = match replaces {
                    Replaces::Whatever => Capability::Values,
                    Replaces::Seen(_) => Capability::Siblings,
                    Replaces::After(_) | Replaces::Version(_) => Capability::Receipts,
                };
                [Some(values), None, None]
            }
            Operation::Scan { .. } => [Some(Capability::Listing), None, None],
            Operation::Tree(_) => [Some(Capability::Tree), None, None],
            Operation::HowEnded { .. } => [Some(Capability::Transactions), None, None],
            Operation::Transact { items, .. } => {
                let is_change = |item: &Item| matches!(item, Item::Change { .. });
                let changes = items.iter().any(is_change).then_some(Capability::Changes);
                let expiry = items.iter().any(Item::is_about_expiry).then_some(Capability::Expiry);
                [Some(Capability::Transactions), changes, expiry]
            }
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
        /// From which token on.
        from: u64,
        /// A host that leaves: what keeps it is asked too.
        leaver: Option<NodeId>,
    },
    /// Of the overlay: a host shall hand over all it holds and take nothing new, or take part
    /// again. Answered with [`Outcome::Noted`].
    Drain {
        /// The host's node.
        node: NodeId,
        /// Whether it shall take part again.
        undo: bool,
        /// The most replicas that any keyspace has now: with fewer hosts left, none is drained.
        replicas: usize,
    },
    /// Of the overlay: count a host as gone for good. Answered with [`Outcome::Noted`].
    Remove {
        /// The host's node.
        node: NodeId,
        /// Although what nobody else holds is lost with it.
        force: bool,
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
        /// The context; for a read of one value empty, or a [`Receipt`](crate::receipt::Receipt) of
        /// an engine that gives them.
        context: Bytes,
    },
    /// The put has taken effect and is as durable as the keyspace promises.
    Written {
        /// Covers this write and all it replaced, for the next write of the same client. Empty for
        /// a plain write, and if the key has values that the client has not seen: it must read them
        /// first. A [`Receipt`](crate::receipt::Receipt) of an engine that gives them.
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
    /// A page of a scan: keys in the order of tokens, and where to continue; `None` at the end.
    Page {
        /// The keys.
        keys: Vec<Bytes>,
        /// Where to continue.
        next: Option<Cursor>,
    },
    /// All of the transaction has taken effect, as durably as the keyspace promises: what each of
    /// its items is told, in their order.
    Transacted(Vec<ItemOutcome>),
    /// What a tree answers; it is as durable as the keyspace promises.
    Tree(Box<tree::TreeReply>),
    /// How a transaction ended. That does not change any more.
    Ended(Ended),
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
    /// About how many bytes of memory it holds beside its own size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Outcome::Values { values, context } => values.bytes() + context.len(),
            Outcome::Written { context } | Outcome::Deleted { context, .. } => context.len(),
            Outcome::Page { keys, .. } => {
                keys.iter().map(|key| size_of::<Bytes>() + key.len()).sum()
            }
            Outcome::Transacted(told) => {
                told.iter().map(|told| size_of::<ItemOutcome>() + told.bytes()).sum()
            }
            Outcome::Ended(_) => 0,
            Outcome::Tree(reply) => reply.told.as_ref().map_or(0, tree::Told::bytes),
            Outcome::More(events) => events.iter().map(Event::bytes).sum(),
            // Operators are told these.
            Outcome::Explained(_)
            | Outcome::Examined(_)
            | Outcome::Noted
            | Outcome::Closed { .. }
            | Outcome::Refused(_) => 0,
        }
    }

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
