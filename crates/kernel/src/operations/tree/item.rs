//! What is done with one node of a tree.

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One thing that is done with a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// Makes a node. [`Told::Created`].
    Create {
        /// Where; behind the last slash its name, of which a number is the end if it is sequential.
        path: String,
        /// What it has; none is not the same as empty, and is read as none.
        data: Option<Bytes>,
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
        /// What it has from now on, as at a create.
        data: Option<Bytes>,
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
    /// `world`, `ip`, `digest` or `auth`.
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

    /// How many bytes of data it gives to a node.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        match self {
            Item::Create { data, .. } | Item::Set { data, .. } => {
                data.as_ref().map_or(0, Bytes::len)
            }
            _ => 0,
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
