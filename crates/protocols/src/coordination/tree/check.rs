//! What holds for the tree between two commands.

use super::machine::Tree;
use super::object::{Life, Meta, Node, Object};
use super::quota::{self, Quota};
use super::write::SPECIAL;
use crate::coordination::keys;
use crate::smr::Objects;
use alloc::collections::BTreeMap;
use alloc::string::String;
use quorate_kernel::path::Path;

/// Asserts the [invariants](super) of the whole tree. It looks at each object, so it is for tests.
///
/// # Panics
/// One of them does not hold.
pub fn check(objects: &Objects<Tree>) {
    let mut counted = Meta::default();
    let (mut children, mut indexed) = (BTreeMap::<String, u32>::new(), 0);
    let (mut limits, mut quotas, mut exceeded) = (0, 0, 0);
    for (key, object) in objects {
        match object {
            Object::Meta(meta) => {
                assert_eq!(*key, keys::META, "there is one count of the whole tree");
                (counted.zxid, counted.life, counted.began) = (meta.zxid, meta.life, meta.began);
            }
            Object::Node(node) => {
                let text = keys::path(key).expect("a node has the key of a path");
                let path = Path::of(&text).expect("a node has a path");
                assert_eq!(*key, keys::node(path), "{text}");
                if let Some(parent) = path.parent() {
                    check_parent(objects, parent);
                    *children.entry(parent.text().into()).or_default() += 1;
                }
                check_life(objects, path, node);
                indexed += u64::from(node.is_reapable());
                limits += u64::from(quota::limited(&text).is_some());
                counted.nodes += 1;
                counted.bytes += node.bytes(path);
                counted.ephemerals += u64::from(node.owner().is_some());
            }
            Object::Session(_) => {
                assert!(keys::session_of(key).is_some(), "a session has the key of one");
                counted.sessions += 1;
            }
            Object::Ephemeral => {
                let (session, path) = keys::ephemeral_of(key).expect("it names a session's node");
                let node = node(objects, path).expect("what ends with a session is there");
                assert_eq!(node.owner(), Some(session), "{path} ends with another session");
            }
            Object::Reapable => {
                let path = keys::reapable_of(key).expect("it names a node");
                let node = node(objects, path).expect("what may be reaped is there");
                assert!(node.is_reapable(), "{path} stays");
            }
            Object::Quota(quota) => {
                let limited = keys::quota_of(key).expect("a quota has the key of one");
                check_quota(objects, limited, quota);
                exceeded += u64::from(quota.is_exceeded());
                quotas += 1;
            }
            Object::Exceeded(_) => assert_eq!(*key, keys::EXCEEDED, "there is one such count"),
            Object::Part(part) => panic!("a tree of one partition has no {part:?}"),
        }
    }
    check_counts(objects, &children, counted);
    let reapable = objects.values().filter(|object| **object == Object::Reapable).count();
    assert_eq!(reapable as u64, indexed, "each node that may be reaped is found");
    assert_eq!(limits, quotas, "limits have a quota");
    assert_eq!(quota::exceeded(objects), exceeded, "quotas that are passed are counted right");
    let meta = objects.get(&keys::META);
    assert_eq!(meta, Some(&Object::Meta(counted)), "the tree is counted right");
}

fn node<'a>(objects: &'a Objects<Tree>, path: &str) -> Option<&'a Node> {
    match objects.get(&keys::node(Path::of(path).ok()?)) {
        Some(Object::Node(node)) => Some(node),
        _ => None,
    }
}

fn check_parent(objects: &Objects<Tree>, parent: Path<'_>) {
    let parent = node(objects, parent.text()).expect("a node's parent is there");
    assert_eq!(parent.owner(), None, "what ends with a session has no children");
}

fn check_life(objects: &Objects<Tree>, path: Path<'_>, node: &Node) {
    match node.life {
        Life::Persistent => {}
        Life::Ephemeral(session) => {
            let index = objects.get(&keys::ephemeral(session, path));
            assert_eq!(index, Some(&Object::Ephemeral), "its session finds {path:?}");
            assert!(objects.contains_key(&keys::session(session)), "{path:?} outlives its session");
        }
        Life::Container | Life::Ttl(_) => {
            let index = objects.get(&keys::reapable(path.text()));
            assert_eq!(index, Some(&Object::Reapable), "{path:?} is found to be reaped");
        }
    }
}

/// A quota has its limits, and counts and shows what there is.
fn check_quota(objects: &Objects<Tree>, limited: &str, quota: &Quota) {
    let limits = [quota::ROOT, limited, "/zookeeper_limits"].concat();
    let limits = node(objects, &limits).expect("a quota has a node with its limits");
    let mut counted = Quota::of(limits.data.as_ref()).expect("limits can be read");
    for (key, object) in objects {
        let (Some(path), Object::Node(node)) = (keys::path(key), object) else { continue };
        let rest = path.strip_prefix(limited);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            counted.nodes += 1;
            counted.bytes += node.data_bytes() as u64;
        }
    }
    assert_eq!(*quota, counted, "the quota of {limited} counts right");
    if let Some(stats) = node(objects, &quota::stats(limited)) {
        assert_eq!(stats.data, Some(quota.text()), "the counts of {limited} are shown");
    }
}

fn check_counts(objects: &Objects<Tree>, children: &BTreeMap<String, u32>, counted: Meta) {
    for (key, object) in objects {
        let Object::Node(node) = object else { continue };
        let text = keys::path(key).unwrap_or_default();
        let actual = children.get(&text).copied().unwrap_or_default();
        assert_eq!(node.children, actual, "the children of {text} are counted right");
        let first = SPECIAL.iter().filter_map(|path| Path::of(path).ok()?.parent());
        let first = first.filter(|parent| parent.text() == text).count() as u32;
        let given = node.creates.cast_unsigned().saturating_add(first);
        assert!(given >= actual, "each child of {text} was made, or was there before all");
        assert!(node.czxid <= node.mzxid && node.czxid <= node.pzxid, "{text} changes when made");
        assert!(node.seen() <= counted.zxid, "no node is changed later than the tree");
    }
}
