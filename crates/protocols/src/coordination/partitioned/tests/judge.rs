//! Whether one tree in one place could have answered the same: a model of it executes what was
//! executed, in the order of a witness. It counts changes by the rule that the chapter gives.

use super::super::{Clock, Command, Volery, slot};
use crate::coordination::tree::tests::model::{Model, ModelNode};
use crate::coordination::tree::{self, Answer, Question};
use crate::smr::partitioned::Bucket;
use crate::testing::partitions::Seen;
use quorate_kernel::tree::{Item, TreeReply, Zxid};
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

/// One tree in one place.
pub struct Judge {
    pub model: Model,
    /// The newest change of the tree, and its time.
    tree: Clock,
    /// The same of each slot.
    slots: BTreeMap<Bucket, Clock>,
    /// The numbers of all changes.
    zxids: BTreeSet<Zxid>,
    /// What has happened.
    pub done: Done,
}

/// How often something has happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Something was changed.
    pub changes: u64,
    /// It was content alone.
    pub sets: u64,
    /// A node went with its session.
    pub ended: u64,
}

fn items(command: &tree::Command) -> &[Item] {
    match command {
        tree::Command::One(_, item) | tree::Command::Ask(Question::One(_, item)) => {
            core::slice::from_ref(item)
        }
        tree::Command::All(_, items)
        | tree::Command::Ask(Question::All(_, items) | Question::Each(_, items)) => items,
        _ => &[],
    }
}

/// Whether all partitions execute a command.
fn is_of_all(command: &tree::Command) -> bool {
    let is =
        |it: &Item| matches!(it, Item::Create { .. } | Item::Delete { .. } | Item::SetAcl { .. });
    match command {
        tree::Command::One(..) | tree::Command::All(..) => items(command).iter().any(is),
        tree::Command::Ask(_) => false,
        _ => true,
    }
}

fn parent_of(path: &str) -> String {
    path[..path.rfind('/').unwrap_or_default().max(1).min(path.len())].into()
}

/// Nodes whose last change is needed, whether they are there or not.
fn looked_at(items: &[Item]) -> Vec<String> {
    let of = items.iter().flat_map(|item| match item {
        // The root has no parent, nor has what is no path.
        Item::Create { path, sequential: false, .. } if path.ends_with('/') => Vec::new(),
        Item::Delete { path, .. } if path.ends_with('/') => Vec::from([path.clone()]),
        Item::Create { path, .. } => Vec::from([parent_of(path)]),
        Item::Delete { path, .. } => Vec::from([parent_of(path), path.clone()]),
        Item::Ephemerals { .. } | Item::CountBelow { .. } => Vec::new(),
        _ => Vec::from([item.path().into()]),
    });
    of.collect()
}

impl Judge {
    pub fn new() -> Judge {
        let (slots, zxids) = (BTreeMap::new(), BTreeSet::new());
        Judge { model: Model::new(), tree: Clock::default(), slots, zxids, done: Done::default() }
    }

    /// Nodes of which a command needs the last change, and that are there.
    fn nodes(&self, command: &tree::Command) -> Vec<String> {
        let owned = |session| {
            let of = self.model.nodes.iter();
            let of = of.filter(move |(_, node)| node.stat.ephemeral_owner == session);
            of.map(|(path, _)| path.clone()).collect()
        };
        let (named, removes): (Vec<String>, bool) = match command {
            tree::Command::Expire { session, .. } => (owned(*session), true),
            tree::Command::Close(who) => (who.session.map(owned).unwrap_or_default(), true),
            tree::Command::Reap { path, .. } => (Vec::from([path.clone()]), true),
            tree::Command::Put(_, path, _) => {
                let ends = path.match_indices('/').map(|(at, _)| path[..at.max(1)].into());
                (ends.chain([path.clone()]).collect(), false)
            }
            _ => (looked_at(items(command)), false),
        };
        let parents = named.iter().filter(|_| removes).map(|path| parent_of(path));
        let all = parents.chain(named.iter().cloned());
        all.filter(|path| self.model.nodes.contains_key(path)).collect()
    }

    /// What a command comes behind.
    fn before(&self, command: &Command) -> Clock {
        let mut last = self.tree;
        let mut knows = |zxid: Zxid, now_ms| {
            last = Clock { zxid: last.zxid.max(zxid), now_ms: last.now_ms.max(now_ms) };
        };
        knows(command.seen, command.now_ms);
        for path in self.nodes(&command.command) {
            let stat = self.model.nodes[&path].stat;
            knows(stat.mzxid, stat.mtime as u64);
        }
        if !is_of_all(&command.command) {
            let items = items(&command.command);
            let mut paths = looked_at(items);
            if paths.is_empty() {
                paths.push(items.first().map_or("", Item::path).into());
            }
            for path in paths {
                let clock = self.slots.get(&slot(&path)).copied().unwrap_or_default();
                knows(clock.zxid, clock.now_ms);
            }
        }
        last
    }

    /// Executes a command. What is wrong with its answer, if something is.
    pub fn execute(&mut self, seen: &Seen<Volery>, answer: &Answer) -> Result<(), String> {
        let command = &seen.command;
        let is_of_all = is_of_all(&command.command);
        let Clock { zxid: last, now_ms } = self.before(command);
        let sets = items(&command.command).iter().filter(|it| matches!(it, Item::Set { .. }));
        let sets: BTreeSet<Bucket> = sets.map(|it| slot(it.path())).collect();
        let low = sets.first().filter(|_| !is_of_all).map_or(0, |slot| u64::from(slot.0) + 1);
        let next = Zxid((((last.0 >> 11) + 1) << 11) + low);
        let is_question = matches!(command.command, tree::Command::Ask(_));
        let before = self.model.nodes.clone();
        self.model.zxid = if is_question { last.0 } else { next.0 - 1 };
        self.model.now_ms = now_ms;
        let mut expected = self.model.execute(now_ms, &command.command);
        self.model.changes.clear();
        let is_change = !is_question && self.model.zxid == next.0;
        if is_change {
            self.done.changes += 1;
            self.done.sets += u64::from(!is_of_all);
            let owned = before.values().filter(|it| it.stat.ephemeral_owner.0 != 0);
            if matches!(command.command, tree::Command::Expire { .. } | tree::Command::Close(_)) {
                self.done.ended += (owned.count() > self.owned()) as u64;
            }
            self.is_counted(next, &before)?;
            let clock = Clock { zxid: next, now_ms };
            match is_of_all {
                true => self.tree = clock,
                false => self.slots.extend(sets.into_iter().map(|slot| (slot, clock))),
            }
        } else if let Answer::Told(TreeReply { zxid, .. }) = &mut expected {
            *zxid = last;
        }
        let said = || format!("{command:?}: {answer:?}, and not {expected:?}");
        (expected == *answer).then_some(()).ok_or_else(said)
    }

    /// How many nodes end with sessions.
    fn owned(&self) -> usize {
        self.model.nodes.values().filter(|it| it.stat.ephemeral_owner.0 != 0).count()
    }

    /// The number of a change is given once, and is above what its nodes had.
    fn is_counted(
        &mut self,
        zxid: Zxid,
        before: &BTreeMap<String, ModelNode>,
    ) -> Result<(), String> {
        if !self.zxids.insert(zxid) {
            return Err(format!("{zxid:?} is given twice"));
        }
        for (path, was) in before {
            let newest = was.stat.mzxid.max(was.stat.pzxid).max(was.stat.czxid);
            let is_as = self.model.nodes.get(path) == Some(was);
            if !is_as && newest >= zxid {
                return Err(format!("{path} was changed by {newest:?} and is by {zxid:?}"));
            }
        }
        Ok(())
    }
}
