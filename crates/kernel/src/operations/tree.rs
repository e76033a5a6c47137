//! The words of trees: nodes at paths, clients with sessions, and what those follow.
//!
//! They are those of ZooKeeper's clients (Hunt et al., "ZooKeeper: Wait-free coordination for
//! Internet-scale systems", USENIX ATC 2010, §2.1), in no wire's form: each door has its own.

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// Names a session for ever; 0 names none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SessionId(pub u64);

/// What a client shows to be taken for the one that has a session.
pub type Password = [u8; 16];

/// The number of a change of a tree. Along one session, and at one node, they grow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Zxid(pub u64);

/// What a client asks of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// For which session, one that the host has open; none if the client has none. What one session
    /// asks is done in the order in which it is asked.
    pub session: Option<SessionId>,
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

/// One thing that is done with a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// Makes a node. [`Told::Created`].
    Create {
        /// Where; behind the last slash its name, of which a number is the end if it is sequential.
        path: String,
        /// What it has.
        data: Bytes,
        /// Who may do what with it.
        acl: Vec<Acl>,
        /// Which kind of node.
        kind: Kind,
        /// Whether its name ends with a number that counts the children of its parent.
        sequential: bool,
    },
    /// Removes a node without children. [`Told::Done`].
    Delete {
        /// Which.
        path: String,
        /// The version that it must have.
        version: Option<i32>,
    },
    /// Sets what a node has. [`Told::Stat`].
    Set {
        /// Which.
        path: String,
        /// What it has from now on.
        data: Bytes,
        /// The version that it must have.
        version: Option<i32>,
    },
    /// Sets who may do what with a node. [`Told::Stat`].
    SetAcl {
        /// Which.
        path: String,
        /// Who may do what.
        acl: Vec<Acl>,
        /// The version that its list must have.
        version: Option<i32>,
    },
    /// Does nothing if a node is there. [`Told::Done`].
    Check {
        /// Which.
        path: String,
        /// The version that it must have.
        version: Option<i32>,
    },
    /// Whether a node is there. [`Told::Stat`].
    Exists {
        /// Which.
        path: String,
        /// Whether the session is told once when it is made, changed or removed.
        watch: bool,
    },
    /// What a node has. [`Told::Data`].
    Get {
        /// Which.
        path: String,
        /// Whether the session is told once when it is changed or removed.
        watch: bool,
    },
    /// The names of a node's children. [`Told::Children`].
    Children {
        /// Whose.
        path: String,
        /// Whether the session is told once when a child is made or removed, or the node is.
        watch: bool,
    },
    /// Who may do what with a node. [`Told::Acl`].
    GetAcl {
        /// Which.
        path: String,
    },
    /// The paths of the session's ephemeral nodes. [`Told::Paths`].
    Ephemerals {
        /// Those that begin with this.
        prefix: String,
    },
    /// How many nodes are below a node. [`Told::Count`].
    CountBelow {
        /// Which.
        path: String,
    },
}

/// Which kind of node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// One that stays.
    Persistent,
    /// One that ends with the session that made it, and has no children.
    Ephemeral,
    /// One that may be removed once it has had children and has none.
    Container,
    /// One that may be removed when it was not changed for so long, in milliseconds, and has no
    /// children.
    Ttl(u64),
}

/// What somebody may do with a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Acl {
    /// The sum of [`READ`] and its like.
    pub permissions: u32,
    /// Who.
    pub id: Id,
}

/// Reads the node and the names of its children.
pub const READ: u32 = 1;
/// Sets what it has.
pub const WRITE: u32 = 2;
/// Makes children.
pub const CREATE: u32 = 4;
/// Removes children.
pub const DELETE: u32 = 8;
/// Sets who may do what.
pub const ADMIN: u32 = 16;
/// All of these.
pub const ALL: u32 = 31;

/// Who a client is, in the words of a scheme: `world` and `anyone`, `ip` and an address or network,
/// `digest` and a user with the digest of its password, `auth` for whoever the client is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id {
    /// The scheme.
    pub scheme: String,
    /// Who it is.
    pub id: String,
}

impl Id {
    /// Everybody.
    #[must_use]
    pub fn anyone() -> Id {
        Id { scheme: String::from("world"), id: String::from("anyone") }
    }
}

impl Acl {
    /// Everybody may do everything.
    #[must_use]
    pub fn open() -> Vec<Acl> {
        Vec::from([Acl { permissions: ALL, id: Id::anyone() }])
    }
}

/// What of a node is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Followed {
    /// Its children, once.
    Children,
    /// Whether it is there and what it has, once.
    Data,
    /// All of that, and what is followed until it is told otherwise.
    Any,
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

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeReply {
    /// The newest change that the answer shows, or rests on.
    pub zxid: Zxid,
    /// What was done.
    ///
    /// # Errors
    /// Nothing was changed; why.
    pub told: Result<Told, Failure>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Nothing more is to be said.
    Done,
    /// A node was made.
    Created {
        /// Where: with its number if it is sequential.
        path: String,
        /// How it is.
        stat: Stat,
    },
    /// How a node is.
    Stat(Stat),
    /// What a node has.
    Data {
        /// That.
        data: Bytes,
        /// How it is.
        stat: Stat,
    },
    /// The children of a node.
    Children {
        /// Their names, ascending.
        names: Vec<String>,
        /// How their parent is.
        stat: Stat,
    },
    /// Who may do what with a node.
    Acl {
        /// That.
        acl: Vec<Acl>,
        /// How it is.
        stat: Stat,
    },
    /// A count.
    Count(u64),
    /// Paths, ascending.
    Paths(Vec<String>),
    /// Who the client is.
    Ids(Vec<Id>),
    /// Of several things each, in their order. Where all or nothing was asked and one failed, none
    /// was done: those before it fail with [`Failure::NotDone`], those behind it with
    /// [`Failure::NotTried`].
    Many(Vec<Result<Told, Failure>>),
}

/// How a node is. Counts wrap, as clients know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// The change that made it.
    pub czxid: Zxid,
    /// The last change of what it has.
    pub mzxid: Zxid,
    /// When it was made, in milliseconds since 1970.
    pub ctime: i64,
    /// When it was changed last, in milliseconds since 1970.
    pub mtime: i64,
    /// How often what it has was set.
    pub version: i32,
    /// How often a child was made or removed.
    pub cversion: i32,
    /// How often its list of who may do what was set.
    pub aversion: i32,
    /// The session with which it ends; none has 0.
    pub ephemeral_owner: SessionId,
    /// How many bytes it has.
    pub data_length: u32,
    /// How many children it has.
    pub children: u32,
    /// The last change that made or removed a child.
    pub pzxid: Zxid,
}

/// Why something was not done. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// There is no node at the path, or none that could be its parent.
    NoNode,
    /// There is a node at the path.
    Exists,
    /// It has another version.
    BadVersion,
    /// It has children.
    NotEmpty,
    /// Its parent ends with a session, so it can have no children.
    NoChildrenForEphemerals,
    /// The client may not do it.
    NoAuth,
    /// The list of who may do what is none.
    InvalidAcl,
    /// What should show who the client is does not.
    AuthFailed,
    /// What was asked is malformed.
    BadArguments,
    /// The session has ended.
    SessionExpired,
    /// The session is at another host by now.
    SessionMoved,
    /// Nothing of that kind is followed there.
    NotFollowed,
    /// Nothing does it here.
    Unimplemented,
    /// It would be too much: of nodes, of bytes, of what is followed.
    Quota,
    /// It is one of several that are done all or none, and one behind it failed.
    NotDone,
    /// The same, and one before it failed.
    NotTried,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::NoNode => "there is no such node",
            Failure::Exists => "the node is there already",
            Failure::BadVersion => "the node has another version",
            Failure::NotEmpty => "the node has children",
            Failure::NoChildrenForEphemerals => "an ephemeral node has no children",
            Failure::NoAuth => "the node's access list does not allow it",
            Failure::InvalidAcl => "the access list is not valid",
            Failure::AuthFailed => "the credential is not valid",
            Failure::BadArguments => "what was asked is malformed",
            Failure::SessionExpired => "the session has expired",
            Failure::SessionMoved => "the session has moved to another host",
            Failure::NotFollowed => "nothing of that kind is watched there",
            Failure::Unimplemented => "it is not implemented",
            Failure::Quota => "a limit is exceeded",
            Failure::NotDone => "another operation of the same transaction failed",
            Failure::NotTried => "an operation before it failed",
        })
    }
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
    /// What.
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

impl Item {
    /// The path that it is about.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Item::Create { path, .. }
            | Item::Delete { path, .. }
            | Item::Set { path, .. }
            | Item::SetAcl { path, .. }
            | Item::Check { path, .. }
            | Item::Exists { path, .. }
            | Item::Get { path, .. }
            | Item::Children { path, .. }
            | Item::GetAcl { path }
            | Item::CountBelow { path } => path,
            Item::Ephemerals { prefix } => prefix,
        }
    }

    /// Whether it changes nodes if it is done.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self,
            Item::Create { .. } | Item::Delete { .. } | Item::Set { .. } | Item::SetAcl { .. }
        )
    }
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
