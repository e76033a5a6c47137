//! What is answered of trees.

use super::item::{Acl, Id};
use super::session::SessionId;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The number of a change of a tree. Along one session, and at one node, they grow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Zxid(pub u64);

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
        /// That; none if it was given none.
        data: Option<Bytes>,
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
    /// So many.
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

impl Told {
    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = |texts: &[String]| texts.iter().map(|text| bytes_listed(text)).sum();
        let acl = |acl: &Acl| acl.id.scheme.len() + acl.id.id.len() + 32;
        64 + match self {
            Told::Created { path, .. } => path.len(),
            Told::Data { data, .. } => data.as_ref().map_or(0, Bytes::len),
            Told::Children { names, .. } => all(names),
            Told::Paths(paths) => all(paths),
            Told::Acl { acl: list, .. } => list.iter().map(acl).sum(),
            Told::Many(many) => many.iter().flatten().map(Told::bytes).sum(),
            _ => 0,
        }
    }
}

/// About how many bytes one text of a list has.
#[must_use]
pub fn bytes_listed(text: &str) -> usize {
    text.len() + 4
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
