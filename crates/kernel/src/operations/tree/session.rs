//! Sessions of clients with trees, and what they follow.

use super::told::Zxid;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// Names a session for ever; 0 names none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SessionId(pub u64);

/// What a client shows to be taken for the one that has a session.
pub type Password = [u8; 16];

/// What of a node is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Followed {
    /// Its children, once.
    Children,
    /// Whether it is there and what it has, once.
    Data,
    /// All of that, and what is followed until it is told otherwise.
    Any,
    /// The node and its children, until it is told otherwise.
    Persistent,
    /// The node and all below it, until it is told otherwise.
    Recursive,
}

/// What a session had followed at another host: it is told at once of what has changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refollow {
    /// The newest change that the client knows of.
    pub seen: Zxid,
    /// Nodes whose data is followed, once.
    pub data: Vec<String>,
    /// Nodes that were not there, once.
    pub absent: Vec<String>,
    /// Nodes whose children are followed, once.
    pub children: Vec<String>,
    /// Nodes that are followed until it is told otherwise.
    pub persistent: Vec<String>,
    /// The same with all that is below them.
    pub recursive: Vec<String>,
}

/// A client that opens a session, or goes on with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The one that it goes on with.
    pub session: Option<(SessionId, Password)>,
    /// How long it wants to be able to be silent, in milliseconds.
    pub timeout_ms: u32,
    /// The newest change that it has seen: no older state may be shown to it.
    pub seen: Zxid,
    /// Where it is, if that is known.
    pub peer: Option<IpAddr>,
}

/// What the client of a session is told beside answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// It has its session: what it asks for it is taken from now on.
    Open {
        /// Its name.
        session: SessionId,
        /// What the client shows to go on with it elsewhere.
        password: Password,
        /// How long it may be silent, in milliseconds.
        timeout_ms: u32,
        /// Which opening of the session this is: grows each time that its client goes on with it.
        opening: u64,
    },
    /// There is no such session, or not any more. Nothing follows.
    Expired,
    /// A node that it follows has changed. Told behind the answer from which on it is followed, and
    /// before every answer of the session that shows the change.
    Changed(Changed),
}

/// What has become of a node that somebody follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// By which change.
    pub zxid: Zxid,
    /// Which node.
    pub path: String,
    /// What has become of it.
    pub what: What,
}

/// What becomes of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum What {
    /// It was made.
    Created,
    /// It was removed.
    Deleted,
    /// What it has was set.
    Data,
    /// A child was made or removed.
    Children,
}

impl What {
    /// The word for it, the same at every door.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            What::Created => "created",
            What::Deleted => "deleted",
            What::Data => "changed",
            What::Children => "children",
        }
    }
}
