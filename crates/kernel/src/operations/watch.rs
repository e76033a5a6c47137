//! What clients can follow: an operation that is answered more than once.
//!
//! A lane answers a watch with [`crate::operation::Outcome::More`] as often as it likes, until any
//! other outcome ends it, or until it hears that the client has ended it. Whoever carries the
//! answers to the client may end it too, when they are not taken. The gate holds each answer like
//! any other.

use crate::ids::NodeId;
use crate::tree::{Connect, SessionEvent};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What a client wants to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The keyspaces and hosts of the cluster, as one host learns of them. The first answer says
    /// what there is ([`Event::Keyspace`] and [`Event::Host`] with [`Change::Present`], at last
    /// [`Event::Current`]); those that follow say what changes.
    Cluster,
    /// A session with a tree, which the watch is for as long as it lasts ([`Event::Session`]). The
    /// first answer says which it is, or that it has expired.
    Session(Connect),
}

/// Something that a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All that there was when the watch began has been told.
    Current,
    /// About a keyspace. What one host says of a keyspace comes in the order of the decrees.
    Keyspace {
        /// What has become of it.
        change: Change,
        /// What clients call it by.
        name: String,
        /// The name of what serves it.
        engine: String,
    },
    /// About a host. What another host believes may come in another order, or never.
    Host {
        /// What has become of it.
        change: Change,
        /// The host's id, which stays the same over its restarts.
        node: NodeId,
        /// Where its cluster door was last heard of.
        address: String,
    },
    /// About the session that the watch is for.
    Session(SessionEvent),
}

/// What has become of a keyspace or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was there when the watch began.
    Present,
    /// A keyspace was created.
    Created,
    /// A setting of a keyspace was changed.
    Altered,
    /// A keyspace was dropped.
    Dropped,
    /// A host has joined.
    Joined,
    /// A host began to hand over what it holds.
    Leaving,
    /// A host that was leaving takes part again.
    Stays,
    /// A host is gone for good.
    Left,
    /// A host is in another start than it was: it was restarted.
    Restarted,
    /// A host is suspected to be down. It may be wrong.
    Suspected,
    /// A host is no longer suspected.
    Trusted,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Change::Present => "present",
            Change::Created => "created",
            Change::Altered => "altered",
            Change::Dropped => "dropped",
            Change::Joined => "joined",
            Change::Leaving => "leaving",
            Change::Stays => "stays",
            Change::Left => "left",
            Change::Restarted => "restarted",
            Change::Suspected => "suspected",
            Change::Trusted => "trusted",
        }
    }
}

impl Event {
    /// About how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = match self {
            Event::Keyspace { name, engine, .. } => name.len() + engine.len(),
            Event::Host { address, .. } => address.len(),
            Event::Session(SessionEvent::Changed(changed)) => changed.path.len(),
            Event::Current | Event::Session(_) => 0,
        };
        size_of::<Event>() + texts
    }

    /// What happened, in one word for every door: `current`, `keyspace-created`, `host-left`.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Event::Current => String::from("current"),
            Event::Keyspace { change, .. } => String::from("keyspace-") + change.word(),
            Event::Host { change, .. } => String::from("host-") + change.word(),
            Event::Session(SessionEvent::Open { .. }) => String::from("session-open"),
            Event::Session(SessionEvent::Expired) => String::from("session-expired"),
            Event::Session(SessionEvent::Changed(changed)) => {
                String::from("node-") + changed.what.word()
            }
        }
    }

    /// What it happened to, as names and texts, the same for every door.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Event::Current => Vec::new(),
            Event::Keyspace { name, engine, .. } => {
                [("keyspace", name.clone()), ("engine", engine.clone())].into()
            }
            Event::Host { node, address, .. } => {
                [("node", node.to_string()), ("address", address.clone())].into()
            }
            Event::Session(SessionEvent::Open { session, timeout_ms, .. }) => {
                [("session", format!("{:016x}", session.0)), ("timeout_ms", timeout_ms.to_string())]
                    .into()
            }
            Event::Session(SessionEvent::Expired) => Vec::new(),
            Event::Session(SessionEvent::Changed(changed)) => {
                [("path", changed.path.clone()), ("zxid", changed.zxid.0.to_string())].into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn an_event_has_a_word_and_names_what_it_is_about() {
        let (name, engine) = (String::from("carts"), String::from("causal"));
        let created = Event::Keyspace { change: Change::Created, name, engine };
        assert_eq!(created.word(), "keyspace-created");
        let fields = [("keyspace", "carts"), ("engine", "causal")];
        assert_eq!(created.fields(), fields.map(|(name, text)| (name, String::from(text))));
        let address = String::from("h:1");
        let left = Event::Host { change: Change::Left, node: NodeId(0xa1), address };
        assert_eq!(left.word(), "host-left");
        let node = ("node", String::from("00000000000000a1"));
        assert_eq!(left.fields(), vec![node, ("address", String::from("h:1"))]);
        assert_eq!((Event::Current.word(), Event::Current.fields()), ("current".into(), vec![]));
    }
}
