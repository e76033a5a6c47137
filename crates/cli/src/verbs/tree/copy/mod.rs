//! Trees are copied: from a ZooKeeper, and as JSON lines out of and into a cluster.
//!
//! | module | what it holds |
//! |---|---|
//! | `import`, `export` | the verbs |
//! | `zookeeper` | a connection to a server of ZooKeeper |
//! | `lines` | nodes as JSON lines |
//! | `sink` | where nodes go |
//! | `progress` | how far it is |

pub mod export;
pub mod import;
mod lines;
mod progress;
mod sink;
mod zookeeper;

use quorate_client::v1::{Acl, NodeKind};

/// A node that is copied.
#[derive(Clone, Debug, PartialEq)]
struct Copied {
    path: String,
    data: Vec<u8>,
    acl: Vec<Acl>,
    kind: NodeKind,
    ttl_ms: u64,
}

/// Whether an access list lets everybody do everything.
fn is_open(acl: &[Acl]) -> bool {
    matches!(acl, [one] if one.permissions == 31 && one.scheme == "world" && one.id == "anyone")
}

/// An entry of an access list whose digest was not told to whoever read it: with it nobody could be
/// let in.
fn hidden(acl: &[Acl]) -> Option<&str> {
    let is_hidden = |it: &&Acl| it.scheme == "digest" && it.id.ends_with(":x");
    acl.iter().find(is_hidden).map(|it| &it.id[..])
}

/// Whether a path is that of a node or of one below it.
fn is_within(path: &str, node: &str) -> bool {
    let rest = if node == "/" { path.strip_prefix('/') } else { path.strip_prefix(node) };
    rest.is_some_and(|rest| node == "/" || rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is one of those that a tree keeps for itself.
fn is_own(path: &str) -> bool {
    is_within(path, "/zookeeper")
}

/// The path that a node has when what is at `from` goes to `to`.
fn moved(path: &str, from: &str, to: &str) -> String {
    let rest = if from == "/" { path } else { &path[from.len()..] };
    let (rest, to) = (rest.trim_start_matches('/'), to.trim_end_matches('/'));
    match (rest, to) {
        ("", "") => String::from("/"),
        ("", to) => to.to_owned(),
        (rest, to) => format!("{to}/{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_keep_their_place_below_the_one_that_is_copied() {
        for (path, from, to, goes) in [
            ("/a/b", "/a", "/x", "/x/b"),
            ("/a", "/a", "/x/y", "/x/y"),
            ("/a/b", "/a", "/", "/b"),
            ("/a", "/a", "/", "/"),
            ("/a/b", "/", "/", "/a/b"),
            ("/", "/", "/", "/"),
            ("/a", "/", "/x", "/x/a"),
            ("/", "/", "/x", "/x"),
        ] {
            assert_eq!(moved(path, from, to), goes, "{path} of {from} to {to}");
        }
    }

    #[test]
    fn a_digest_that_is_hidden_is_none() {
        let of = |scheme: &str, id: &str| {
            let (scheme, id) = (scheme.to_owned(), id.to_owned());
            [
                Acl { permissions: 31, scheme: "world".into(), id: "anyone".into() },
                Acl { permissions: 31, scheme, id },
            ]
        };
        assert_eq!(hidden(&of("digest", "bob:x")), Some("bob:x"));
        assert_eq!(hidden(&of("digest", "bob:c2hvd24geW91IGFyZSB3aG8gMQ=x")), None);
        assert_eq!(hidden(&of("ip", "::x")), None);
    }

    #[test]
    fn a_name_that_only_begins_alike_is_not_below() {
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/a", "/"));
        assert!(!is_within("/ab", "/a") && !is_within("/", "/a"));
        assert!(is_own("/zookeeper/quota") && !is_own("/zookeepers"));
    }
}
