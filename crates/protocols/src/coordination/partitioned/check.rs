//! What holds for the parts of all partitions together, between two commands.

use super::found::slot_of;
use super::machine::Volery;
use super::part::{Content, Part};
use crate::coordination::keys;
use crate::coordination::tree::{self, Meta, Object, Tree};
use crate::smr::Objects;
use crate::smr::partitioned::{Holder, PartitionId, Placement};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// Asserts the [invariants](super) of a tree whose partitions have these objects, and have executed
/// the same commands of all. It looks at each object, so it is for tests.
///
/// # Panics
/// One of them does not hold.
pub fn check(partitions: &BTreeMap<PartitionId, &Objects<Tree>>, placement: &Placement) {
    let is_tree = |(key, _): &(&Bytes, &Object)| slot_of(key).is_none();
    let has = |partition: &PartitionId| placement.partitions().contains(*partition);
    let of: Vec<_> = partitions.iter().filter(|(partition, _)| has(partition)).collect();
    let (_, first) = of.first().expect("some partition has something");
    let mut content: Objects<Tree> = BTreeMap::new();
    let mut last = tree::whole(first).zxid;
    for (partition, objects) in &of {
        assert!(
            objects.iter().filter(is_tree).eq(first.iter().filter(is_tree)),
            "all partitions have the same tree"
        );
        for (key, object) in objects.iter().filter(|it| !is_tree(it)) {
            let holder = placement.holder::<Volery>(key);
            assert_eq!(holder, Holder::One(**partition), "{key:?} is where its slot is");
            if let Object::Part(Part::Clock(clock)) = object {
                last = last.max(clock.zxid);
            }
            assert_eq!(
                content.insert(key.clone(), object.clone()),
                None,
                "{key:?} is in one place"
            );
        }
    }
    let mut tree: Objects<Tree> = BTreeMap::new();
    for (key, object) in
        first.iter().filter(|(key, _)| **key != keys::TIME && slot_of(key).is_none())
    {
        let object = match (object, keys::path(key)) {
            (Object::Node(node), Some(path)) => {
                let own = take_content(&mut content, &path);
                // The tree counts the bytes of what all partitions have.
                Object::Node(Content { bytes: None, ..own }.join(node, None))
            }
            (Object::Meta(meta), _) => Object::Meta(Meta { zxid: last, ..*meta }),
            _ => object.clone(),
        };
        tree.insert(key.clone(), object);
    }
    tree::check(&tree);
    content.retain(|_, object| !matches!(object, Object::Part(Part::Clock(_))));
    assert!(content.is_empty(), "what a node has goes with it: {content:?}");
}

/// Takes out what is of a node.
fn take_content(whole: &mut Objects<Tree>, path: &str) -> Content {
    let content = match whole.remove(&keys::content(path)) {
        Some(Object::Part(Part::Content(content))) => content,
        other => panic!("{path} has a content, and no {other:?}"),
    };
    let bytes = match whole.remove(&keys::data(path)) {
        Some(Object::Part(Part::Data(data))) => Some(data.len() as u32),
        _ => None,
    };
    assert_eq!(content.bytes, bytes, "the data of {path} is as long as is known of it");
    content
}
