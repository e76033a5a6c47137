//! Anti-entropy by hash trees (DottedDB §III-A1).
//!
//! Two replicas compare the trees of the groups that both belong to, level by level, and only below
//! what differs. Of keys that differ the asker sends its objects, the peer merges them with its own
//! and sends back what has become of them, so one exchange repairs both. Nobody remembers an
//! exchange: each message holds all that its answer needs, so any of them may be lost or late.

use super::message::{Leaf, Message, Part};
use super::replica::Replica;
use super::tree::{Hash, Tree};
use super::{Context, Merkle};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::Incarnation;
use quorate_protocols::causal::keys::hash_of;
use quorate_protocols::causal::map::{Map, Shape};
use quorate_protocols::causal::message::{PAGE_BYTES, Pair};
use quorate_protocols::causal::page;
use quorate_protocols::dots::dot::Partition;

/// How many messages of keys, or of objects, answer one message at most. What is left over still
/// differs the next time.
const MESSAGES_MAX: usize = 64;

impl Merkle {
    /// It is time for each replica's next exchange.
    pub(super) fn on_sync_time(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(super::engine::Timer::Sync, cx.now + self.settings.sync_interval);
        let Some(map) = &self.map else { return };
        let shape = self.settings.shape;
        for (at, replica) in &mut self.replicas {
            let Some(peer) = replica.rounds.next(shape.peers(*at), cx.now, cx.rng) else {
                continue;
            };
            let mut roots = BTreeMap::new();
            for home in shape.shared(*at, peer) {
                roots.extend(replica.tree(home).map(|tree| (home, tree.root())));
            }
            let part = |(home, root): (&u16, &Hash)| Part {
                home: *home,
                at: 0,
                hashes: Vec::from([*root]),
            };
            let parts = roots.iter().map(part).collect();
            let exchange = replica.asked.get(&peer).map_or(0, |(last, _)| *last) + 1;
            replica.asked.insert(peer, (exchange, roots));
            let pair = Pair { from: replica.actor, to: peer, map: map.version };
            let host = map.place(peer).expect("peers are partitions").host;
            cx.fx.send(host, Message::Roots { pair, exchange, parts });
        }
    }

    /// Looks at who speaks; returns the replica spoken to if the speaker is what it says, and what
    /// the replica answers with.
    fn greet(
        &mut self,
        from: Incarnation,
        pair: Pair,
        cx: &mut Context<'_>,
    ) -> Option<(&mut Replica, Pair, Shape)> {
        let map = self.map.as_ref()?;
        tell_versions(map, from, pair, cx);
        let replica = self.replicas.get_mut(&pair.to)?;
        let place = map.place(pair.from.partition)?;
        let is_placed = (place.host, place.since) == (from.node, pair.from.since);
        let is_peer = self.settings.shape.are_peers(pair.to, pair.from.partition);
        if !is_placed || !is_peer || pair.from.node != from.node {
            return None;
        }
        let back = Pair { from: replica.actor, to: pair.from.partition, map: map.version };
        Some((replica, back, self.settings.shape))
    }

    /// A peer tells its roots.
    pub(super) fn on_roots(
        &mut self,
        from: Incarnation,
        (pair, exchange): (Pair, u64),
        parts: &[Part],
        cx: &mut Context<'_>,
    ) {
        let Some((replica, back, shape)) = self.greet(from, pair, cx) else { return };
        let shared = shape.shared(pair.to, pair.from.partition);
        let mut differing = Vec::new();
        for part in parts.iter().filter(|part| shared.contains(&part.home)) {
            let Some(tree) = replica.tree(part.home) else { continue };
            let root = tree.root();
            if part.hashes[..] == [root] {
                replica.agree(part.home, pair.from.partition, root);
            } else {
                let hashes = tree.buckets().to_vec();
                differing.push(Part { home: part.home, at: 0, hashes });
            }
        }
        cx.fx.send(from, Message::Buckets { pair: back, exchange, parts: differing });
        self.note_joined(pair.to, cx);
    }

    /// A peer tells what is below the roots that differ.
    pub(super) fn on_buckets(
        &mut self,
        from: Incarnation,
        (pair, exchange): (Pair, u64),
        parts: &[Part],
        cx: &mut Context<'_>,
    ) {
        let Some((replica, back, _)) = self.greet(from, pair, cx) else { return };
        let peer = pair.from.partition;
        if replica.asked.get(&peer).is_none_or(|(last, _)| *last != exchange) {
            return;
        }
        replica.rounds.answered(peer);
        let (_, roots) = replica.asked[&peer].clone();
        for (home, root) in roots {
            if !parts.iter().any(|part| part.home == home) {
                replica.agree(home, peer, root);
            }
        }
        let mut below = Vec::new();
        for part in parts {
            let Some(tree) = replica.tree(part.home) else { continue };
            for at in differing(tree.buckets(), &part.hashes) {
                let hashes = tree.leaves_of(at).to_vec();
                below.push(Part { home: part.home, at, hashes });
            }
        }
        if !below.is_empty() {
            cx.fx.send(from, Message::Leaves { pair: back, parts: below });
        }
        self.note_joined(pair.to, cx);
    }

    /// A peer tells its leaves below inner nodes that differ.
    pub(super) fn on_leaves(
        &mut self,
        from: Incarnation,
        pair: Pair,
        parts: &[Part],
        cx: &mut Context<'_>,
    ) {
        let Some((replica, back, shape)) = self.greet(from, pair, cx) else { return };
        let shared = shape.shared(pair.to, pair.from.partition);
        let (mut lists, mut leaves, mut size) = (Vec::new(), Vec::new(), 0);
        for part in parts.iter().filter(|part| shared.contains(&part.home)) {
            let Some(tree) = replica.tree(part.home) else { continue };
            if part.at >= tree.width() {
                continue;
            }
            for child in differing(tree.leaves_of(part.at), &part.hashes) {
                let at = part.at * tree.width() + child;
                let leaf = leaf(tree, part.home, at);
                size += leaf.keys.iter().map(|(key, hash)| key.len() + hash.len()).sum::<usize>();
                leaves.push(leaf);
                if size >= PAGE_BYTES {
                    lists.push(core::mem::take(&mut leaves));
                    size = 0;
                }
            }
        }
        if !leaves.is_empty() {
            lists.push(leaves);
        }
        for leaves in lists.into_iter().take(MESSAGES_MAX) {
            cx.fx.send(from, Message::Keys { pair: back, leaves });
        }
    }

    /// A peer tells its keys in leaves that differ.
    pub(super) fn on_keys(
        &mut self,
        from: Incarnation,
        pair: Pair,
        leaves: &[Leaf],
        cx: &mut Context<'_>,
    ) {
        let Some((replica, back, shape)) = self.greet(from, pair, cx) else { return };
        let shared = shape.shared(pair.to, pair.from.partition);
        let mut keys = BTreeSet::new();
        for theirs in leaves.iter().filter(|leaf| shared.contains(&leaf.home)) {
            let Some(tree) = replica.tree(theirs.home) else { continue };
            if theirs.at >= tree.width() * tree.width() {
                continue;
            }
            let known: BTreeMap<&Bytes, &Hash> =
                theirs.keys.iter().map(|(key, hash)| (key, hash)).collect();
            let is_new = |(key, hash): &(&Bytes, &Hash)| known.get(key) != Some(hash);
            keys.extend(tree.keys_of(theirs.at).filter(is_new).map(|(key, _)| key.clone()));
            let is_lacked = |key: &&Bytes| tree.get(key).is_none();
            let is_here = |key: &&Bytes| shape.home(hash_of(key)) == theirs.home;
            keys.extend(known.into_keys().filter(is_here).filter(is_lacked).cloned());
        }
        let objects = keys.into_iter().map(|key| {
            let object = replica.bytes(&key, cx).unwrap_or_default();
            (key, object)
        });
        for page in pages(objects.collect()) {
            cx.fx.send(from, Message::Repair { pair: back, wants: true, page });
        }
    }

    /// A peer tells its objects of keys that differ.
    pub(super) fn on_repair(
        &mut self,
        from: Incarnation,
        (pair, wants): (Pair, bool),
        page: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some((replica, back, shape)) = self.greet(from, pair, cx) else { return };
        let shared = shape.shared(pair.to, pair.from.partition);
        let Ok(entries) = page::read(page) else { return };
        let (mut answers, mut repaired) = (Vec::new(), 0);
        for page::Entry { key, object, .. } in entries {
            if !shared.contains(&shape.home(hash_of(&key))) {
                continue;
            }
            let (merged, is_news) = replica.update(shape, &key, object.clone(), cx);
            repaired += u64::from(is_news);
            if wants && merged != object {
                answers.push((key, merged.to_bytes()));
            }
        }
        replica.flush();
        for page in pages(answers) {
            cx.fx.send(from, Message::Repair { pair: back, wants: false, page });
        }
        self.repaired += repaired;
    }
}

impl Replica {
    /// The tree of a group was equal to a peer's.
    fn agree(&mut self, home: u16, peer: Partition, root: Hash) {
        self.agreed.insert((home, peer), root);
        self.lacking.remove(&(home, peer));
    }
}

/// Tells an older map to the other of the two.
fn tell_versions(map: &Map, from: Incarnation, pair: Pair, cx: &mut Context<'_>) {
    if pair.map < map.version {
        cx.fx.send(from, Message::MapB { map: map.clone() });
    } else if pair.map > map.version {
        // A question promises nothing.
        cx.fx.send_early(from, Message::MapA { version: map.version });
    }
}

/// Which hashes differ; none if the two are not of one size.
fn differing(ours: &[Hash], theirs: &[Hash]) -> Vec<u32> {
    if ours.len() != theirs.len() {
        return Vec::new();
    }
    let pairs = (0..).zip(ours.iter().zip(theirs));
    pairs.filter(|(_, (one, other))| one != other).map(|(at, _)| at).collect()
}

fn leaf(tree: &Tree, home: u16, at: u32) -> Leaf {
    let keys = tree.keys_of(at).map(|(key, hash)| (key.clone(), *hash)).collect();
    Leaf { home, at, keys }
}

/// Pages of these objects.
fn pages(objects: Vec<(Bytes, Bytes)>) -> Vec<Bytes> {
    let (mut pages, mut page) = (Vec::new(), BytesMut::new());
    for (key, object) in objects {
        page::push(&mut page, &key, &object, &[]);
        if page.len() >= PAGE_BYTES {
            pages.push(page.split().freeze());
        }
    }
    if !page.is_empty() {
        pages.push(page.freeze());
    }
    pages.truncate(MESSAGES_MAX);
    pages
}
