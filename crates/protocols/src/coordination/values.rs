//! Keys of clients that know keys and values alone, as paths of nodes.
//!
//! A key is the path of a node; the slash in front may be left out, so `a/b` and `/a/b` are one
//! key. Listings tell paths.

use alloc::string::String;
use bytes::Bytes;
use quorate_kernel::operation::{Cursor, Refusal};
use quorate_kernel::path::Path;
use quorate_kernel::tree::Failure;

/// The path of a key.
pub fn path_of(key: &[u8]) -> Result<String, Refusal> {
    let wrong = || Refusal::Node(Failure::BadArguments);
    let text = core::str::from_utf8(key).map_err(|_| wrong())?;
    let path = if text.starts_with('/') { String::from(text) } else { String::from("/") + text };
    Path::of(&path).map_err(Refusal::Node)?;
    Ok(path)
}

/// Whether a path is a key of clients: the root is none, nor is what the tree keeps for itself.
pub fn is_key(path: &str) -> bool {
    let own = path
        .strip_prefix("/zookeeper")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path != "/" && !own
}

/// The key of a path.
pub fn key_of(path: &str) -> Bytes {
    Bytes::copy_from_slice(path.as_bytes())
}

/// Where a listing goes on.
pub fn cursor_of(path: &str) -> Cursor {
    Cursor { token: 0, key: key_of(path) }
}

/// Where a listing begins: nodes from this path on; all of them if it is none.
pub fn paths_from(cursor: &Cursor) -> String {
    core::str::from_utf8(&cursor.key).map(String::from).unwrap_or_default()
}
