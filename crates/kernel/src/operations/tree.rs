//! The words of trees: nodes at paths, clients with sessions, and what those follow.
//!
//! They are those of ZooKeeper's clients (Hunt et al., "ZooKeeper: Wait-free coordination for
//! Internet-scale systems", USENIX ATC 2010, §2.1), in no wire's form: each door has its own.

mod item;
mod session;
mod told;

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
pub use item::{ADMIN, ALL, Acl, CREATE, DELETE, Id, Item, Kind, READ, WRITE};
use serde::{Deserialize, Serialize};
pub use session::{Changed, Connect, Followed, Password, Refollow, SessionEvent, SessionId, What};
pub use told::{Failure, Stat, Told, TreeReply, Zxid, bytes_listed};

/// What a client asks of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// For which session, one that the host has open; none if the client has none. What one session
    /// asks is done in the order in which it is asked. A client whose watch of the session has
    /// ended asks nothing for it any more behind the turn in which that was answered.
    pub session: Option<SessionId>,
    /// In which opening of the session it is asked, if the client says: [`SessionEvent::Open`] has
    /// told which. What was asked in an earlier one, and comes late, is refused; but a ping passes.
    pub opening: Option<u64>,
    /// What is asked.
    pub act: Act,
}

/// What is done with a tree, or with a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// One thing. Told as [`Told`] says at each.
    One(Item),
    /// Several at one moment, or none of them; no reads. [`Told::Many`].
    All(Vec<Item>),
    /// Several reads, each by itself. [`Told::Many`].
    Each(Vec<Item>),
    /// All that was done before by whoever asked. [`Told::Done`].
    Sync {
        /// Of which node; it need not exist.
        path: String,
    },
    /// Follows a node until it is told otherwise. [`Told::Done`]. Needs a session.
    Follow {
        /// Which node; it need not exist.
        path: String,
        /// With all nodes below it.
        recursive: bool,
    },
    /// Follows a node no more. [`Told::Done`]. Needs a session.
    Unfollow {
        /// Which node.
        path: String,
        /// What of it.
        kind: Followed,
        /// Whether it is only looked whether something of the kind is followed.
        only_check: bool,
    },
    /// Follows again what the session had followed at another host. [`Told::Done`].
    Refollow(Refollow),
    /// Shows who the client is, beside what it has shown before. [`Told::Done`]. Needs a session.
    Authenticate {
        /// How.
        scheme: String,
        /// What shows it.
        credential: Bytes,
    },
    /// Who the client is. [`Told::Ids`].
    WhoAmI,
    /// It is there. [`Told::Done`]. Needs a session.
    Ping,
    /// Ends the session, and with it its ephemeral nodes. [`Told::Done`].
    Close,
}

impl Act {
    /// Whether it may change nodes, or end a session.
    #[must_use]
    pub fn is_write(&self) -> bool {
        match self {
            Act::One(item) => item.is_write(),
            Act::All(items) => items.iter().any(Item::is_write),
            Act::Close => true,
            _ => false,
        }
    }
}
