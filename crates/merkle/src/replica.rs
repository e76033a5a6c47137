//! One partition's replica: its objects, and the trees over them.

use super::Context;
use super::keys::object_key;
use super::tree::{Hash, Tree, hash};
use alloc::collections::{BTreeMap, BTreeSet};
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_protocols::causal::anti_entropy::watch::Rounds;
use quorate_protocols::causal::keys::{Kind, each_of, hash_of};
use quorate_protocols::causal::map::Shape;
use quorate_protocols::dots::context::CausalContext;
use quorate_protocols::dots::dot::{Actor, Dot, Partition};
use quorate_protocols::dots::object::{Object, Version};

/// A replica.
#[derive(Debug)]
pub struct Replica {
    /// Who it is.
    pub actor: Actor,
    /// The tree of each group that it belongs to.
    pub trees: BTreeMap<u16, Tree>,
    /// Whom it exchanges with, and when.
    pub rounds: Rounds,
    /// The exchange that it began last with each peer: its number, and the roots it told.
    pub asked: BTreeMap<Partition, (u64, BTreeMap<u16, Hash>)>,
    /// The last root that it and a peer were found to have in common.
    pub agreed: BTreeMap<(u16, Partition), Hash>,
    /// The groups in which it began empty, with the peers it must become equal to before its
    /// silence about a key says something.
    pub lacking: BTreeSet<(u16, Partition)>,
    /// Whether it is stored that it has joined.
    pub is_noted: bool,
    /// The objects written by this input, which the table does not show yet.
    fresh: BTreeMap<Bytes, Bytes>,
}

impl Replica {
    /// A replica of what the table holds of it.
    pub fn load(
        actor: Actor,
        has_joined: bool,
        shape: Shape,
        width: u32,
        table: &dyn Table,
    ) -> Replica {
        let at = actor.partition;
        let homes = shape.homes(at);
        let tree = |home: u16| (home, Tree::new(shape.hashes(&(home..=home)), width));
        let mut replica = Replica {
            actor,
            trees: homes.clone().map(tree).collect(),
            rounds: Rounds::default(),
            asked: BTreeMap::new(),
            agreed: BTreeMap::new(),
            lacking: BTreeSet::new(),
            is_noted: has_joined,
            fresh: BTreeMap::new(),
        };
        if !has_joined {
            let pairs = homes.flat_map(|home| shape.replicas_of(home).map(move |at| (home, at)));
            replica.lacking = pairs
                .map(|(home, peer)| (home, Partition(peer)))
                .filter(|(_, p)| *p != at)
                .collect();
        }
        each_of(table, actor.birth, Kind::Object, &[], &mut |key, value| {
            replica.note(shape, &Bytes::copy_from_slice(key), value);
            true
        });
        replica
    }

    /// Where a key's object is stored.
    pub fn stored_key(&self, key: &[u8]) -> Bytes {
        object_key(self.actor.birth, key)
    }

    /// The stored bytes of a key's object; none of a key that it never had.
    pub fn bytes(&self, key: &Bytes, cx: &Context<'_>) -> Option<Bytes> {
        let fresh = self.fresh.get(key).cloned();
        fresh.or_else(|| cx.table.get(Class::Data, &self.stored_key(key)))
    }

    /// The object of a key.
    pub fn read(&self, key: &Bytes, cx: &Context<'_>) -> Object {
        self.bytes(key, cx).map_or_else(Object::default, |bytes| {
            Object::from_bytes(&bytes).expect("the store returns the objects that were put into it")
        })
    }

    fn store(&mut self, shape: Shape, key: &Bytes, object: &Object, cx: &mut Context<'_>) {
        let bytes = object.to_bytes();
        self.note(shape, key, &bytes);
        cx.fx.put(self.stored_key(key), bytes.clone());
        self.fresh.insert(key.clone(), bytes);
    }

    fn note(&mut self, shape: Shape, key: &Bytes, object: &[u8]) {
        let home = shape.home(hash_of(key));
        let tree = self.trees.get_mut(&home).expect("a replica is given only keys that it holds");
        tree.note(key, hash(object));
    }

    /// Ends an input.
    pub fn flush(&mut self) {
        self.fresh.clear();
    }

    /// Takes in another state of a key; returns what became of it, and whether that is new here.
    pub fn update(
        &mut self,
        shape: Shape,
        key: &Bytes,
        other: Object,
        cx: &mut Context<'_>,
    ) -> (Object, bool) {
        let before = self.read(key, cx);
        if !before.agrees(&other) {
            cx.fx.refuse("one dot carries two values");
            return (before, false);
        }
        let mut merged = before.clone();
        merged.merge(other);
        let is_news = merged != before;
        if is_news {
            self.store(shape, key, &merged, cx);
        }
        (merged, is_news)
    }

    /// Puts a version in place of what a context covers; none deletes. The tombstone stays.
    ///
    /// The counter is the key's own: one more than this actor has used for it.
    pub fn put(
        &mut self,
        shape: Shape,
        key: &Bytes,
        version: Option<Version>,
        context: &CausalContext,
        cx: &mut Context<'_>,
    ) -> (Object, Dot) {
        let mut object = self.read(key, cx);
        object.versions.retain(|seen, _| !context.covers(*seen));
        object.context.merge(context);
        let used = object.context.iter().find(|(actor, _)| *actor == self.actor);
        let counter = used.map_or(0, |(_, counter)| counter) + 1;
        let dot = Dot { actor: self.actor, counter };
        object.context.raise(dot.actor, dot.counter);
        object.versions.extend(version.map(|version| (dot, version)));
        self.store(shape, key, &object, cx);
        (object, dot)
    }

    /// Computes the hashes of a group's tree.
    pub fn tree(&mut self, home: u16) -> Option<&Tree> {
        let tree = self.trees.get_mut(&home)?;
        tree.refresh();
        Some(tree)
    }

    /// How many pairs of a group and a peer in it are not known to be equal.
    pub fn unequal(&self, shape: Shape) -> usize {
        let peers = |home: u16| shape.replicas_of(home).map(Partition);
        let is_equal = |home: u16, tree: &Tree, peer: Partition| {
            tree.is_fresh() && self.agreed.get(&(home, peer)) == Some(&tree.root())
        };
        let differing = self.trees.iter().map(|(home, tree)| {
            let others = peers(*home).filter(|peer| *peer != self.actor.partition);
            others.filter(|peer| !is_equal(*home, tree, *peer)).count()
        });
        differing.sum()
    }

    /// What must hold between two inputs.
    pub fn check(&self) {
        assert!(self.fresh.is_empty(), "a step ends with a flush");
    }
}
