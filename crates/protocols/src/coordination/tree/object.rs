//! What the tree is made of.

use super::quota::Quota;
use crate::coordination::partitioned::Part;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::mutant;
use quorate_kernel::path::Path;
use quorate_kernel::tree::{Acl, SessionId, Stat, Zxid};
use serde::{Deserialize, Serialize};

/// What is under one of the [`keys`](super::keys). New variants are only appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Object {
    /// What is known of the whole tree.
    Meta(Meta),
    /// A node.
    Node(Node),
    /// A session.
    Session(Session),
    /// The node ends with the session.
    Ephemeral,
    /// The node may be reaped some day.
    Reapable,
    /// Of a tree over several partitions, what is not in one of one partition.
    Part(Part),
    /// The limits of a part of the tree, and what is there of it.
    Quota(Quota),
    /// How many quotas are above one of their limits.
    Exceeded(u64),
}

/// What is known of the whole tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The last change.
    pub zxid: Zxid,
    /// How many nodes there are.
    pub nodes: u64,
    /// How many of them end with a session.
    pub ephemerals: u64,
    /// The bytes of what nodes have, and of their paths and lists.
    pub bytes: u64,
    /// How many sessions there are.
    pub sessions: u32,
    /// Which life of the tree this is: it grows when something that was acknowledged may have been
    /// lost. 0 if nothing ever was.
    pub life: u64,
    /// The change with which it began.
    pub began: Zxid,
}

impl Meta {
    /// Whether a session is of an earlier life: what its client has seen may be lost, and what it
    /// relies on with it.
    #[must_use]
    pub fn outlives(&self, session: SessionId) -> bool {
        session.0 < self.began.0 && !mutant!("tree_sessions_outlive_losses")
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it has; none if it was given none, which clients tell from empty.
    pub data: Option<Bytes>,
    /// Who may do what; none is everybody everything.
    pub acl: Option<Arc<[Acl]>>,
    /// When it ends.
    pub life: Life,
    /// The change that made it.
    pub czxid: Zxid,
    /// The last change of what it has.
    pub mzxid: Zxid,
    /// The last change that made or removed a child; the one that made it before the first.
    pub pzxid: Zxid,
    /// When it was made, in milliseconds since 1970.
    pub ctime: i64,
    /// When what it has was set last, in milliseconds since 1970.
    pub mtime: i64,
    /// How often what it has was set; wraps.
    pub version: i32,
    /// How often its list was set; wraps.
    pub aversion: i32,
    /// How many children were ever made; wraps. The number of the next sequential child. Those that
    /// were there before the first command do not count.
    pub creates: i32,
    /// How many children it has.
    pub children: u32,
}

/// When a node ends, if nobody removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// Never.
    Persistent,
    /// With the session.
    Ephemeral(SessionId),
    /// Once it has had children, and has none.
    Container,
    /// Once nobody has set what it has for so many milliseconds, and it has no children.
    Ttl(u64),
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Where it is.
    pub gateway: Incarnation,
    /// How often it came to a gateway, the first time included.
    pub attached: u64,
    /// How long its client may be silent, in milliseconds.
    pub timeout_ms: u32,
}

impl Node {
    /// A node that is made by a change, and has empty data yet.
    #[must_use]
    pub fn made(zxid: Zxid, now_ms: i64) -> Node {
        Node {
            data: Some(Bytes::new()),
            acl: None,
            life: Life::Persistent,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: now_ms,
            mtime: now_ms,
            version: 0,
            aversion: 0,
            creates: 0,
            children: 0,
        }
    }

    /// How it is, as clients know it.
    #[must_use]
    pub fn stat(&self) -> Stat {
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // Of as many creates as there were, all but the children were followed by a removal.
            cversion: self.creates.wrapping_mul(2).wrapping_sub(self.children.cast_signed()),
            aversion: self.aversion,
            ephemeral_owner: self.owner().unwrap_or_default(),
            data_length: self.data_bytes() as u32,
            children: self.children,
            pzxid: self.pzxid,
        }
    }

    /// The session with which it ends.
    #[must_use]
    pub fn owner(&self) -> Option<SessionId> {
        match self.life {
            Life::Ephemeral(session) => Some(session),
            _ => None,
        }
    }

    /// Whether it may be reaped some day.
    #[must_use]
    pub fn is_reapable(&self) -> bool {
        matches!(self.life, Life::Container | Life::Ttl(_))
    }

    /// Who may do what.
    #[must_use]
    pub fn acl(&self) -> Vec<Acl> {
        self.acl.as_ref().map_or_else(Acl::open, |acl| acl.to_vec())
    }

    /// The last change of what it has, or of its children.
    #[must_use]
    pub fn seen(&self) -> Zxid {
        self.mzxid.max(self.pzxid)
    }

    /// How many bytes it counts for.
    #[must_use]
    pub fn bytes(&self, path: Path<'_>) -> u64 {
        (path.text().len() + self.held()) as u64
    }

    /// The bytes of what it has, and of its list.
    #[must_use]
    pub fn held(&self) -> usize {
        let of = |acl: &Acl| size_of::<Acl>() + acl.id.scheme.len() + acl.id.id.len();
        self.data_bytes() + self.acl.iter().flat_map(|acl| acl.iter()).map(of).sum::<usize>()
    }

    /// The bytes of what it has.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        self.data.as_ref().map_or(0, Bytes::len)
    }
}
