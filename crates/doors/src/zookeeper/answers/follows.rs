//! What a request begins to follow.

use alloc::string::String;
use quorate_kernel::tree::{Act, Item};

/// What its client follows from the moment at which a request was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing new.
    Nothing,
    /// The node at this path, alone.
    Node(String),
    /// A node and all that is below it.
    Below(String),
    /// Nodes that are not listed here.
    Several,
}

impl Follows {
    /// What an act begins to follow.
    pub fn of(act: &Act) -> Follows {
        match act {
            Act::One(
                Item::Exists { path, watch: true }
                | Item::Get { path, watch: true }
                | Item::Children { path, watch: true },
            )
            | Act::Follow { path, recursive: false } => Follows::Node(path.clone()),
            Act::Follow { path, recursive: true } => Follows::Below(path.clone()),
            Act::Refollow(_) => Follows::Several,
            _ => Follows::Nothing,
        }
    }

    /// Whether it may be why its client is told of a node.
    pub fn concerns(&self, path: &str) -> bool {
        match self {
            Follows::Nothing => false,
            Follows::Node(node) => node == path,
            Follows::Below(node) => {
                let below = path.strip_prefix(&node[..]);
                node == "/" || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Follows::Several => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_node_is_no_sibling_of_it() {
        let path = || String::from("/a");
        let below = Follows::of(&Act::Follow { path: path(), recursive: true });
        assert!(["/a", "/a/b", "/a/b/c"].iter().all(|path| below.concerns(path)));
        assert!(!["/", "/ab", "/b/a"].iter().any(|path| below.concerns(path)));
        let all = Follows::of(&Act::Follow { path: String::from("/"), recursive: true });
        assert!(all.concerns("/") && all.concerns("/b"));
        let node = Follows::of(&Act::Follow { path: path(), recursive: false });
        assert!(node.concerns("/a") && !node.concerns("/a/b"));
        let read = |watch| Follows::of(&Act::One(Item::Get { path: path(), watch }));
        assert_eq!((read(true), read(false)), (Follows::Node(path()), Follows::Nothing));
        assert!(Follows::of(&Act::Refollow(Default::default())).concerns("/x"));
    }
}
