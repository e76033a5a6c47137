//! What is asked of the tree, and answered; as logs, stores and messages carry it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::tree::{Acl, Id, Item, Refollow, SessionId, TreeReply, What, Zxid};
use serde::{Deserialize, Serialize};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The host that serves the client, in the start in which it does: the client's gateway.
    pub gateway: Incarnation,
    /// The client's session; none of one that has none.
    pub session: Option<SessionId>,
    /// Who the client has shown that it is.
    pub ids: Vec<Id>,
    /// Where the client is, if that is known.
    pub peer: Option<IpAddr>,
}

/// A command: it changes nodes, or sessions. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Does one thing that changes a node. [`Answer::Told`].
    One(Who, Item),
    /// Does all of it, or nothing. [`Answer::Told`].
    All(Who, Vec<Item>),
    /// Sets what a node has; makes it if it is not there, and its parents. For clients that know
    /// keys and values alone. [`Answer::Told`], with the stat.
    Put(Who, String, Bytes),
    /// Makes a session, at its gateway. [`Answer::Open`].
    Open {
        /// Which.
        gateway: Incarnation,
        /// How long its client may be silent, in milliseconds.
        timeout_ms: u32,
    },
    /// Moves a session to a gateway, or tells that it goes on there. [`Answer::Open`], or
    /// [`Answer::Expired`].
    Attach {
        /// Where it is from now on.
        gateway: Incarnation,
        /// Which session.
        session: SessionId,
    },
    /// Ends a session, with its ephemeral nodes, if it is where it was when that was asked: it was
    /// attached so often. [`Answer::Expired`], also if it has ended before, and [`Answer::Told`] if
    /// it has been attached since.
    Expire {
        /// Which.
        session: SessionId,
        /// How often it was attached.
        attached: u64,
    },
    /// The client ends its session. [`Answer::Told`].
    Close(Who),
    /// Removes a node that ends by itself, if it is still as it was seen: a container that has had
    /// children and has none, or one whose time has passed. [`Answer::Told`].
    Reap {
        /// Where.
        path: String,
        /// Its last change, or the last change of its children.
        seen: Zxid,
    },
    /// The tree goes on with what is left of it, in another life. [`Answer::Told`].
    Begin {
        /// Which.
        life: u64,
    },
    /// A question that goes ahead of a command of its client, and is answered at its place among
    /// commands. It changes nothing. The question's answer, or [`Answer::Lost`].
    Ask(Question),
}

/// A question: it changes nothing. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// One thing. [`Answer::Told`].
    One(Who, Item),
    /// Several, each by itself, all at one moment. [`Answer::Told`].
    Each(Who, Vec<Item>),
    /// Several that must all hold, all at one moment. [`Answer::Told`].
    All(Who, Vec<Item>),
    /// What has become of followed nodes since. [`Answer::Changed`].
    Refollow(Who, Refollow),
    /// Nothing but that the session is there. [`Answer::Told`].
    Sync(Who),
    /// The paths of nodes from one on, so many at most, in the order of
    /// [`crate::coordination::keys`].
    /// [`Answer::Paths`].
    List(String, u32),
}

/// What is answered. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// What was done, or why not.
    Told(TreeReply),
    /// A session is at this gateway.
    Open {
        /// Which.
        session: SessionId,
        /// How long its client may be silent, in milliseconds.
        timeout_ms: u32,
        /// How often it was attached.
        attached: u64,
        /// The newest change.
        zxid: Zxid,
    },
    /// There is no such session.
    Expired,
    /// What has become of nodes: each a path and what, in the order in which they were asked for.
    Changed {
        /// The newest change.
        zxid: Zxid,
        /// Which nodes, and what.
        changed: Vec<(String, What)>,
    },
    /// Some paths, and where the next ones begin.
    Paths {
        /// The paths.
        paths: Vec<String>,
        /// The next one.
        next: Option<String>,
    },
    /// A [`Command::Ask`] was executed, and what was found is not known any more.
    Lost,
}

/// What has happened. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A node was made, removed, or what it has was set ([`What::Children`] is not told: whoever
    /// follows a parent knows it from its children).
    Node {
        /// By which change.
        zxid: Zxid,
        /// Where.
        path: String,
        /// What.
        what: What,
    },
    /// A session has ended, or is at another gateway.
    Session {
        /// Which.
        session: SessionId,
        /// Whose it was.
        gateway: Incarnation,
        /// Whether it goes on elsewhere.
        is_moved: bool,
    },
    /// As [`Change::Node`], of a node that not everybody may read.
    Guarded {
        /// By which change.
        zxid: Zxid,
        /// Where.
        path: String,
        /// What.
        what: What,
        /// Who may do what with it; if it was removed, until then.
        acl: Arc<[Acl]>,
    },
}
