//! What of a node is tree, and what content.

use crate::coordination::tree::Node;
use bytes::Bytes;
use quorate_kernel::limits::TREE_DATA_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::tree::Zxid;
use serde::{Deserialize, Serialize};

/// What is under a key that trees of one partition do not have. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    /// Of what a node has, all but the data.
    Content(Content),
    /// What a node has. Not there if it was given none.
    Data(Bytes),
    /// The newest change in a slot.
    Clock(Clock),
    /// The time of the newest change of the tree, in milliseconds since 1970.
    Time(u64),
}

/// Of what a node has, all but the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The last change of the data.
    pub mzxid: Zxid,
    /// When that was, in milliseconds since 1970.
    pub mtime: i64,
    /// How often the data was set; wraps.
    pub version: i32,
    /// How many bytes they are; none if the node was given none.
    pub bytes: Option<u32>,
}

/// The newest change in a slot that was no change of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Its number.
    pub zxid: Zxid,
    /// Its time, in milliseconds since 1970.
    pub now_ms: u64,
}

/// What stands for data that nobody looks at.
static UNREAD: [u8; TREE_DATA_BYTES_MAX] = [0; TREE_DATA_BYTES_MAX];

impl Content {
    /// That of a node.
    pub fn of(node: &Node) -> Content {
        let bytes = node.data.as_ref().map(|data| data.len() as u32);
        Content { mzxid: node.mzxid, mtime: node.mtime, version: node.version, bytes }
    }

    /// A node, put together of what is tree and of its content. If the data is not here, something
    /// stands for it that is as long.
    pub fn join(&self, tree: &Node, data: Option<Bytes>) -> Node {
        let unread = |bytes: u32| {
            let length = (bytes as usize).min(UNREAD.len());
            Bytes::from_static(&UNREAD[..length])
        };
        let data = self.bytes.map(|bytes| data.unwrap_or_else(|| unread(bytes)));
        let (mzxid, mtime, version) = (self.mzxid, self.mtime, self.version);
        Node { data, mzxid, mtime, version, ..tree.clone() }
    }
}

/// What of a node is tree: with the content that it was made with, and no data.
pub fn tree_of(node: &Node) -> Node {
    if mutant!("volery_reads_anywhere") {
        return Node { mzxid: node.czxid, version: 0, ..node.clone() };
    }
    Node { data: None, mzxid: node.czxid, mtime: node.ctime, version: 0, ..node.clone() }
}
