//! The hash tree of one group of replicas (DottedDB §III-A1).
//!
//! Its size is fixed when it is made: a root, `width` inner nodes below it, `width` leaves below
//! each of those. A leaf stands for an equal part of the group's hashes and for the keys in it,
//! each with the hash of its object. The lists of all leaves are one ordered map, so a leaf is a
//! range of it. Hashes of objects are noted at once; those of the tree are computed when it is
//! looked at, of the leaves that have changed only.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::{Bound, RangeInclusive};
use quorate_protocols::causal::keys::hash_of;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A hash of an object, of a leaf or of an inner node. 128 bits, so that two that differ are never
/// taken for equal.
pub type Hash = [u8; 16];

/// The hash of what is empty or absent.
pub const NOTHING: Hash = [0; 16];

/// The hash of some bytes.
#[must_use]
pub fn hash(bytes: &[u8]) -> Hash {
    xxh3_128(bytes).to_be_bytes()
}

/// A tree.
#[derive(Clone, Debug)]
pub struct Tree {
    hashes: RangeInclusive<u64>,
    width: u32,
    entries: BTreeMap<Bytes, Hash>,
    key_bytes: usize,
    leaves: Vec<Hash>,
    buckets: Vec<Hash>,
    root: Hash,
    /// The leaves whose hash is not that of their keys.
    dirty: BTreeSet<u32>,
}

impl Tree {
    /// The empty tree of a group with these hashes.
    #[must_use]
    pub fn new(hashes: RangeInclusive<u64>, width: u32) -> Tree {
        assert!((1..=1024).contains(&width), "1 to 1024 children");
        let mut tree = Tree {
            hashes,
            width,
            entries: BTreeMap::new(),
            key_bytes: 0,
            leaves: alloc::vec![NOTHING; (width * width) as usize],
            buckets: alloc::vec![NOTHING; width as usize],
            root: NOTHING,
            dirty: BTreeSet::new(),
        };
        tree.climb(&(0..width).collect());
        tree
    }

    /// How many children each node has.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Notes what is stored of a key.
    pub fn note(&mut self, key: &Bytes, object: Hash) {
        let leaf = self.leaf_of(key);
        match self.entries.insert(key.clone(), object) {
            Some(before) if before == object => return,
            Some(_) => {}
            None => self.key_bytes += key.len(),
        }
        self.dirty.insert(leaf);
    }

    /// The hash of a key's object, if there is one.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Hash> {
        self.entries.get(key)
    }

    /// Computes the hashes of what has changed.
    pub fn refresh(&mut self) {
        let dirty = core::mem::take(&mut self.dirty);
        let mut buckets = BTreeSet::new();
        for leaf in dirty {
            let mut hasher = Xxh3::new();
            for (key, object) in self.keys_of(leaf) {
                hasher.update(key);
                hasher.update(object);
            }
            self.leaves[leaf as usize] = hasher.digest128().to_be_bytes();
            buckets.insert(leaf / self.width);
        }
        if !buckets.is_empty() {
            self.climb(&buckets);
        }
    }

    fn climb(&mut self, buckets: &BTreeSet<u32>) {
        for bucket in buckets {
            self.buckets[*bucket as usize] = hash(self.leaves_of(*bucket).as_flattened());
        }
        self.root = hash(self.buckets.as_flattened());
    }

    /// The hash of everything. Like the others, as of the last [`Tree::refresh`].
    #[must_use]
    pub fn root(&self) -> Hash {
        assert!(self.dirty.is_empty(), "hashes are computed before they are looked at");
        self.root
    }

    /// Whether the hashes are those of the keys.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.dirty.is_empty()
    }

    /// The hashes of the inner nodes.
    #[must_use]
    pub fn buckets(&self) -> &[Hash] {
        &self.buckets
    }

    /// The hashes of the leaves below an inner node.
    #[must_use]
    pub fn leaves_of(&self, bucket: u32) -> &[Hash] {
        let first = (bucket * self.width) as usize;
        &self.leaves[first..first + self.width as usize]
    }

    /// The keys of a leaf with the hashes of their objects, ascending.
    pub fn keys_of(&self, leaf: u32) -> impl Iterator<Item = (&Bytes, &Hash)> {
        let first = Bound::Included(self.first_of(leaf).to_be_bytes());
        let end = match leaf + 1 < self.width * self.width {
            true => Bound::Excluded(self.first_of(leaf + 1).to_be_bytes()),
            false => Bound::Unbounded,
        };
        let first = first.as_ref().map(|bytes| &bytes[..]);
        let end = end.as_ref().map(|bytes| &bytes[..]);
        self.entries.range::<[u8], _>((first, end))
    }

    /// The leaf that a key belongs to.
    #[must_use]
    pub fn leaf_of(&self, key: &[u8]) -> u32 {
        let at = hash_of(key);
        assert!(self.hashes.contains(&at), "a key is in the tree of its group");
        let leaves = u128::from(self.width * self.width);
        (u128::from(at - self.hashes.start()) * leaves / self.length()) as u32
    }

    /// The lowest hash of a leaf.
    fn first_of(&self, leaf: u32) -> u64 {
        let leaves = u128::from(self.width * self.width);
        let below = (u128::from(leaf) * self.length()).div_ceil(leaves);
        self.hashes.start() + below as u64
    }

    fn length(&self) -> u128 {
        u128::from(self.hashes.end() - self.hashes.start()) + 1
    }

    /// How many keys it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many bytes of keys and hashes it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let nodes = 1 + self.buckets.len() + self.leaves.len() + self.entries.len();
        self.key_bytes + nodes * size_of::<Hash>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quorate_protocols::causal::keys::data_key;
    use std::format;

    fn tree(keys: impl IntoIterator<Item = u32>, width: u32) -> Tree {
        let mut tree = Tree::new(0..=u64::MAX, width);
        for key in keys {
            tree.note(&data_key(format!("k{key}").as_bytes()), hash(b"object"));
        }
        tree.refresh();
        tree
    }

    #[test]
    fn each_key_is_in_its_leaf_and_in_no_other() {
        for width in [1, 2, 3, 10] {
            let tree = tree(0..500, width);
            let mut found = 0;
            for leaf in 0..width * width {
                for (key, _) in tree.keys_of(leaf) {
                    assert_eq!(tree.leaf_of(key), leaf);
                    found += 1;
                }
            }
            assert_eq!((found, tree.len()), (500, 500));
        }
        let part = Tree::new(1000..=1999, 10);
        assert_eq!((part.first_of(0), part.first_of(1), part.first_of(99)), (1000, 1010, 1990));
    }

    #[test]
    fn a_changed_object_changes_its_path_and_nothing_else() {
        let before = tree(0..500, 5);
        let mut after = before.clone();
        let key = data_key(b"k7");
        after.note(&key, hash(b"another"));
        assert!(!after.is_fresh());
        after.refresh();
        let leaf = after.leaf_of(&key);
        let differing: Vec<usize> =
            (0..25).filter(|leaf| before.leaves[*leaf] != after.leaves[*leaf]).collect();
        assert_eq!(differing, [leaf as usize]);
        let differing: Vec<usize> =
            (0..5).filter(|at| before.buckets()[*at] != after.buckets()[*at]).collect();
        assert_eq!(differing, [(leaf / 5) as usize]);
        assert!(before.root() != after.root());
        assert_eq!(before.bytes(), after.bytes());
        after.note(&key, hash(b"object"));
        after.refresh();
        assert_eq!(before.root(), after.root());
    }

    #[test]
    fn its_bytes_are_counted() {
        let empty = tree([], 3).bytes();
        assert_eq!(empty, 13 * 16);
        assert_eq!(tree([1, 22], 3).bytes(), empty + 2 * (16 + 8) + 2 + 3);
        assert!(tree([], 3).is_empty());
    }

    proptest! {
        #[test]
        fn the_order_of_writes_does_not_show(
            mut keys in proptest::collection::vec(0u32..50, 0..40), width in 1u32..6
        ) {
            let one = tree(keys.iter().copied(), width);
            keys.reverse();
            prop_assert_eq!(one.root(), tree(keys, width).root());
        }
    }
}
