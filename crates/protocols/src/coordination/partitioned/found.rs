//! What a command looks at, put together as the tree of one partition has it; and what it has
//! changed, taken apart.

use super::command::Command;
use super::machine::Volery;
use super::part::{Clock, Content, Part, tree_of};
use super::slots::{next, slot};
use crate::coordination::keys;
use crate::coordination::tree::{Answer, Meta, Node, Object, Tree, whole};
use crate::smr::partitioned::{Bucket, Execution, Wait};
use crate::smr::{self, Machine as _, Objects};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::path::Path;
use quorate_kernel::tree::{TreeReply, Zxid};
use quorate_kernel::{invariant, mutant};

/// What a command finds.
pub struct Found<'a> {
    command: &'a Command,
    /// The objects here, of which all partitions have those of the tree.
    tree: &'a Objects<Tree>,
    /// Nodes with their content, under the keys of their nodes.
    nodes: BTreeMap<Bytes, Node>,
    /// The newest change that it knows of.
    last: Zxid,
    now_ms: u64,
}

impl<'a> Found<'a> {
    /// Reads all that a command looks at, all at once.
    pub fn of<'b: 'a>(
        command: &'a Command,
        on: &mut Execution<'b, Volery>,
    ) -> Result<Found<'a>, Wait> {
        let tree = on.held();
        let mut found = Found {
            command,
            tree,
            nodes: BTreeMap::new(),
            last: command.seen,
            now_ms: command.now_ms,
        };
        found.knows(whole(tree).zxid, time(tree));
        let touched = command.touches(tree);
        let there: Vec<(Path<'_>, &Node, bool)> = touched
            .iter()
            .filter_map(|(path, has_data)| {
                let path = Path::of(path).ok()?;
                Some((path, node(tree, &keys::node(path))?, *has_data))
            })
            .collect();
        let clocks = if command.is_of_all() { BTreeSet::new() } else { command.slots() };
        let mut reads: Vec<Bytes> = clocks.into_iter().map(keys::clock).collect();
        for (path, _, has_data) in &there {
            reads.push(keys::content(path.text()));
            reads.extend(has_data.then(|| keys::data(path.text())));
        }
        if mutant!("volery_reads_anywhere") && !command.is_of_all() && command.sets().is_empty() {
            return Ok(found);
        }
        on.fetch(&reads)?;
        for key in &reads {
            if let Some(Object::Part(Part::Clock(clock))) = on.get(key)? {
                found.knows(clock.zxid, clock.now_ms);
            }
        }
        for (path, node, has_data) in there {
            let content = match on.get(&keys::content(path.text()))? {
                Some(Object::Part(Part::Content(content))) => *content,
                _ => Content::default(),
            };
            let data = if has_data { on.get(&keys::data(path.text()))?.cloned() } else { None };
            let data = match data {
                Some(Object::Part(Part::Data(data))) => Some(data),
                _ => None,
            };
            if !mutant!("volery_counts_the_tree_alone") {
                found.knows(content.mzxid, u64::try_from(content.mtime).unwrap_or_default());
            }
            found.nodes.insert(keys::node(path), content.join(node, data));
        }
        Ok(found)
    }

    /// The command comes behind a change.
    fn knows(&mut self, zxid: Zxid, now_ms: u64) {
        self.last = self.last.max(zxid);
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// The change that the command is, if it changes something.
    fn zxid(&self) -> Zxid {
        let first = self.command.sets().first().copied();
        next(self.last, first.filter(|_| !self.command.is_of_all()))
    }

    /// Does the command as the tree of one partition does it, and puts what it has changed in its
    /// places.
    pub fn execute(&self, on: &mut Execution<'_, Volery>) -> Result<Answer, Wait> {
        // The tree counts one on, to the number of this change.
        let before = if self.command.is_question() { self.last } else { Zxid(self.zxid().0 - 1) };
        let known = whole(self.tree);
        // It counts what nodes have as well, as far as it is told of it.
        let data = self.nodes.values().filter_map(|node| node.data.as_ref());
        let bytes = known.bytes + data.map(|data| data.len() as u64).sum::<u64>();
        let meta = Meta { zxid: before, bytes, ..known };
        let mut tree = smr::Execution::new(self.tree, self.now_ms);
        tree.put(keys::META, Object::Meta(meta));
        for (key, node) in &self.nodes {
            tree.put(key.clone(), Object::Node(node.clone()));
        }
        let mut answer = Tree::execute(&self.command.command, &mut tree);
        let (written, _) = tree.left();
        let after = written.get(&keys::META).cloned().flatten();
        match after {
            Some(Object::Meta(after)) if after.zxid == self.zxid() => {
                self.apply(after, written, on)?;
            }
            _ => {
                // Nothing was changed: what is told rests on what was there.
                if let Answer::Told(TreeReply { zxid, .. }) = &mut answer {
                    *zxid = self.last;
                }
            }
        }
        Ok(answer)
    }

    fn apply(
        &self,
        after: Meta,
        written: BTreeMap<Bytes, Option<Object>>,
        on: &mut Execution<'_, Volery>,
    ) -> Result<(), Wait> {
        let mut bytes = whole(self.tree).bytes;
        for (key, object) in written.into_iter().filter(|(key, _)| *key != keys::META) {
            match keys::path(&key) {
                Some(path) => {
                    let path = Path::of(&path).expect("only what is a path is the key of a node");
                    let was = node(self.tree, &key);
                    let is = match object {
                        Some(Object::Node(node)) => Some(node),
                        _ => None,
                    };
                    let size = |node: Option<&Node>| node.map_or(0, |it| it.bytes(path));
                    let tree = is.as_ref().map(tree_of);
                    bytes = bytes + size(tree.as_ref()) - size(was);
                    self.put_content(path, is.as_ref(), on)?;
                    if tree.as_ref() != was {
                        put(key, tree.map(Object::Node), on)?;
                    }
                }
                None => put(key, object, on)?,
            }
        }
        if self.command.is_of_all() {
            on.put(keys::META, Object::Meta(Meta { bytes, ..after }))?;
            return on.put(keys::TIME, Object::Part(Part::Time(self.now_ms)));
        }
        invariant!(bytes == whole(self.tree).bytes, "the tree is changed by all partitions");
        let clock = Clock { zxid: self.zxid(), now_ms: self.now_ms };
        for slot in self.command.sets() {
            on.put(keys::clock(slot), Object::Part(Part::Clock(clock)))?;
        }
        Ok(())
    }

    /// What a node has, if this change has set it, or has removed the node.
    fn put_content(
        &self,
        path: Path<'_>,
        node: Option<&Node>,
        on: &mut Execution<'_, Volery>,
    ) -> Result<(), Wait> {
        let (content, data) = (keys::content(path.text()), keys::data(path.text()));
        match node {
            Some(node) if node.mzxid == self.zxid() => {
                invariant!(node.czxid <= node.mzxid, "a node is set when it is there");
                put(data, node.data.clone().map(|data| Object::Part(Part::Data(data))), on)?;
                on.put(content, Object::Part(Part::Content(Content::of(node))))
            }
            Some(_) => Ok(()),
            None if mutant!("volery_leaves_content") => Ok(()),
            None => {
                on.remove(content)?;
                on.remove(data)
            }
        }
    }
}

fn put(key: Bytes, object: Option<Object>, on: &mut Execution<'_, Volery>) -> Result<(), Wait> {
    match object {
        Some(object) => on.put(key, object),
        None => on.remove(key),
    }
}

/// The time of the newest change of the tree.
pub fn time(tree: &Objects<Tree>) -> u64 {
    match tree.get(&keys::TIME) {
        Some(Object::Part(Part::Time(now_ms))) => *now_ms,
        _ => 0,
    }
}

/// What is tree of a node.
fn node<'a>(tree: &'a Objects<Tree>, key: &Bytes) -> Option<&'a Node> {
    match tree.get(key) {
        Some(Object::Node(node)) => Some(node),
        _ => None,
    }
}

/// The keys that a command will read, as far as it says so itself.
pub fn early(command: &Command) -> Vec<Bytes> {
    let clocks = if command.is_of_all() { BTreeSet::new() } else { command.slots() };
    let paths = command.paths();
    let contents = paths.keys().map(|path| keys::content(path));
    let datas = paths.iter().filter(|(_, has_data)| **has_data).map(|(path, _)| keys::data(path));
    clocks.into_iter().map(keys::clock).chain(contents).chain(datas).collect()
}

/// The slot of a key; none of one of the tree.
pub fn slot_of(key: &[u8]) -> Option<Bucket> {
    if let Some(slot) = keys::clock_of(key) {
        return Some(slot);
    }
    keys::content_of(key).map(slot)
}
