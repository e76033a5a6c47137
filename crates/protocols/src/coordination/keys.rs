//! The keys of the tree's objects.
//!
//! | key | object | put by | removed by |
//! |---|---|---|---|
//! | `m` | [`Meta`](super::tree::Meta) | the begin, each change | nobody |
//! | `n`, parent's path, 0, name | [`Node`](super::tree::Node) | the begin, a create | a delete, a reap, the end of its session |
//! | `s`, session u64 | [`Session`](super::tree::Session) | its opening | its end |
//! | `e`, session u64, path | that the node ends with the session | a create | the node's removal |
//! | `r`, path | that the node may be reaped | a create | the node's removal |
//! | `q`, path | [`Quota`](super::tree::Quota) of the node and all below it | a create of its limits | the limits' removal |
//! | `q` | how many quotas are above one of their limits | what makes them more or fewer | nobody |
//!
//! A tree over several partitions ([`partitioned`](super::partitioned)) has the same ones at all of
//! them, and these beside:
//!
//! | key | object | put by | removed by |
//! |---|---|---|---|
//! | `c`, path | [`Content`](super::partitioned::Content) | a create, a set | the node's removal |
//! | `d`, path | the node's data | a create, a set | the node's removal, a set to none |
//! | `z`, slot u16 | [`Clock`](super::partitioned::Clock) | a set | nobody |
//! | `t` | the time of the newest change of the tree | each change of the tree | nobody |
//!
//! Integers are big-endian. A path holds no 0, so the children of one node stand together, in the
//! order of their names, and nothing else with them. The root has no parent, and no name.

use crate::smr::OBJECT_KEY_BYTES_MAX;
use crate::smr::partitioned::Bucket;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::str;
use quorate_kernel::limits::TREE_PATH_BYTES_MAX;
use quorate_kernel::path::Path;
use quorate_kernel::tree::SessionId;

/// The key of what is known of the whole tree.
pub const META: Bytes = Bytes::from_static(b"m");
/// What the keys of nodes begin with.
pub const NODES: &[u8] = b"n";
/// What the keys of sessions begin with.
pub const SESSIONS: &[u8] = b"s";
/// What the keys of nodes that may be reaped begin with.
pub const REAPABLE: &[u8] = b"r";

/// The key of how many quotas are above one of their limits.
pub const EXCEEDED: Bytes = Bytes::from_static(b"q");

/// The key of the time of the newest change of a tree over several partitions.
pub const TIME: Bytes = Bytes::from_static(b"t");

const _: () = assert!(TREE_PATH_BYTES_MAX + 16 <= OBJECT_KEY_BYTES_MAX);

/// The key of a node.
pub fn node(path: Path<'_>) -> Bytes {
    from(path.text())
}

/// The key of a node with this path, or where it would be, of any text.
pub fn from(text: &str) -> Bytes {
    match text.rsplit_once('/') {
        None => key(NODES, &[]),
        Some(("", "")) => key(NODES, &[&[0]]),
        Some(("", name)) => key(NODES, &[b"/", &[0], name.as_bytes()]),
        Some((parent, name)) => key(NODES, &[parent.as_bytes(), &[0], name.as_bytes()]),
    }
}

/// What the keys of a node's children begin with; behind it are their names.
pub fn children(parent: Path<'_>) -> Bytes {
    key(NODES, &[parent.text().as_bytes(), &[0]])
}

/// What the keys of the nodes below a node's children begin with; those of all nodes that have a
/// parent if it is the root.
pub fn below_children(path: Path<'_>) -> Bytes {
    let text = if path == Path::ROOT { "" } else { path.text() };
    key(NODES, &[text.as_bytes(), b"/"])
}

/// The path of a node's key.
pub fn path(key: &[u8]) -> Option<String> {
    let (parent, name) = str::from_utf8(key.strip_prefix(NODES)?).ok()?.split_once('\0')?;
    match Path::of(parent) {
        Ok(parent) => Some(parent.child(name)),
        Err(_) => (parent.is_empty() && name.is_empty()).then(|| Path::ROOT.text().to_string()),
    }
}

/// The key of a session.
pub fn session(session: SessionId) -> Bytes {
    key(SESSIONS, &[&session.0.to_be_bytes()])
}

/// The session of a key.
pub fn session_of(key: &[u8]) -> Option<SessionId> {
    let id = key.strip_prefix(SESSIONS)?.try_into().ok()?;
    Some(SessionId(u64::from_be_bytes(id)))
}

/// What the keys of a session's nodes begin with; behind it are their paths.
pub fn ephemerals(session: SessionId) -> Bytes {
    key(b"e", &[&session.0.to_be_bytes()])
}

/// The key that says that a node ends with a session.
pub fn ephemeral(session: SessionId, path: Path<'_>) -> Bytes {
    key(b"e", &[&session.0.to_be_bytes(), path.text().as_bytes()])
}

/// The session and the path of a key that says that a node ends with a session.
pub fn ephemeral_of(key: &[u8]) -> Option<(SessionId, &str)> {
    let (session, path) = key.strip_prefix(b"e")?.split_first_chunk()?;
    Some((SessionId(u64::from_be_bytes(*session)), str::from_utf8(path).ok()?))
}

/// The key that says that a node may be reaped.
pub fn reapable(path: &str) -> Bytes {
    key(REAPABLE, &[path.as_bytes()])
}

/// The path of a key that says that a node may be reaped.
pub fn reapable_of(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.strip_prefix(REAPABLE)?).ok()
}

/// The key of the quota of a node and all below it.
pub fn quota(path: &str) -> Bytes {
    key(b"q", &[path.as_bytes()])
}

/// The path of the key of a quota.
pub fn quota_of(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.strip_prefix(b"q")?).ok().filter(|path| !path.is_empty())
}

/// The key of what is known of a node's data.
pub fn content(path: &str) -> Bytes {
    key(b"c", &[path.as_bytes()])
}

/// The key of a node's data, where it is apart from the node.
pub fn data(path: &str) -> Bytes {
    key(b"d", &[path.as_bytes()])
}

/// The path of a key of a node's data, or of what is known of it.
pub fn content_of(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.strip_prefix(b"c").or_else(|| key.strip_prefix(b"d"))?).ok()
}

/// The key of the newest change of a slot.
pub fn clock(slot: Bucket) -> Bytes {
    key(b"z", &[&slot.0.to_be_bytes()])
}

/// The slot of a key of its newest change.
pub fn clock_of(key: &[u8]) -> Option<Bucket> {
    let slot = key.strip_prefix(b"z")?.try_into().ok()?;
    Some(Bucket(u16::from_be_bytes(slot)))
}

fn key(kind: &[u8], parts: &[&[u8]]) -> Bytes {
    let length = kind.len() + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(kind);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.into()
}
