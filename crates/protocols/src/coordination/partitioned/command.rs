//! What is asked, and of which partitions.

use super::slots::{SEEN_MAX, slot};
use crate::coordination::keys;
use crate::coordination::tree::{self, Question, Tree};
use crate::smr::partitioned::Bucket;
use crate::smr::{Machine as _, Objects};
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::ops::Bound;
use quorate_kernel::path::{Path, Place};
use quorate_kernel::tree::{Item, SessionId, Zxid};
use serde::{Deserialize, Serialize};

/// What is asked, with what its gateway says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The gateway's time in milliseconds since 1970. The command's time is no earlier than that of
    /// anything that it touches.
    pub now_ms: u64,
    /// The newest change that the session has seen: what is answered is no older.
    pub seen: Zxid,
    /// What is asked. Questions are commands here: they are ordered as all others are.
    pub command: tree::Command,
}

impl Command {
    /// Whether it may be put into a log.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = match &self.command {
            // What a client has seen of one node says nothing of what it has missed of another.
            tree::Command::Ask(Question::Refollow(..)) => false,
            tree::Command::Ask(_) => self.command.is_bounded(),
            // Nobody knows here that something is lost.
            tree::Command::Begin { .. } => false,
            command => Tree::is_sound(command),
        };
        is_sound && self.seen <= SEEN_MAX
    }

    /// Whether it changes nothing.
    pub(super) fn is_question(&self) -> bool {
        matches!(self.command, tree::Command::Ask(_))
    }

    /// Whether it may change the tree, which all partitions have.
    pub(super) fn is_of_all(&self) -> bool {
        match &self.command {
            tree::Command::One(_, item) => is_of_tree(item),
            tree::Command::All(_, items) => items.iter().any(is_of_tree),
            tree::Command::Ask(_) => false,
            _ => true,
        }
    }

    /// The paths of nodes of which it looks at content, as far as the command says so; and whether
    /// at the data. Of the parent of what is made or removed it needs the last change.
    pub(super) fn paths(&self) -> BTreeMap<&str, bool> {
        let mut paths = BTreeMap::new();
        let mut add = |path, has_data| *paths.entry(path).or_insert(false) |= has_data;
        match &self.command {
            tree::Command::Put(_, path, _) => {
                let whole = Path::of(path).into_iter().flat_map(Path::whole);
                whole.for_each(|path| add(path.text(), false));
            }
            tree::Command::Reap { path, .. } => {
                add(&path[..], false);
                Path::of(path)
                    .into_iter()
                    .filter_map(Path::parent)
                    .for_each(|it| add(it.text(), false));
            }
            _ => {
                for item in self.items() {
                    looks_at(item).for_each(|path| add(path, matches!(item, Item::Get { .. })));
                }
            }
        }
        paths
    }

    /// The things that it asks for, one or several.
    fn items(&self) -> &[Item] {
        match &self.command {
            tree::Command::One(_, item) | tree::Command::Ask(Question::One(_, item)) => {
                core::slice::from_ref(item)
            }
            tree::Command::All(_, items)
            | tree::Command::Ask(Question::All(_, items) | Question::Each(_, items)) => items,
            _ => &[],
        }
    }

    /// The session that it may end.
    fn ends(&self) -> Option<SessionId> {
        match &self.command {
            tree::Command::Expire { session, .. } => Some(*session),
            tree::Command::Close(who) => who.session,
            _ => None,
        }
    }

    /// The paths of nodes of which it looks at content: with those that end with its session.
    pub(super) fn touches(&self, tree: &Objects<Tree>) -> BTreeMap<String, bool> {
        let said = self.paths().into_iter().map(|(path, has_data)| (path.to_owned(), has_data));
        let mut paths: BTreeMap<String, bool> = said.collect();
        if let Some(session) = self.ends() {
            let prefix = keys::ephemerals(session);
            let from = (Bound::Included(&prefix[..]), Bound::Unbounded);
            let owned = tree.range::<[u8], _>(from).map_while(|(key, _)| keys::ephemeral_of(key));
            for (_, path) in owned.take_while(|(of, _)| *of == session) {
                let parent = Path::of(path).ok().and_then(Path::parent);
                paths.extend(parent.map(|parent| (parent.text().to_owned(), false)));
                paths.insert(path.to_owned(), false);
            }
        }
        paths
    }

    /// The slots where it sets something, if it is not of all.
    pub(super) fn sets(&self) -> BTreeSet<Bucket> {
        let sets = self.items().iter().filter(|item| matches!(item, Item::Set { .. }));
        sets.map(|item| slot(item.path())).collect()
    }

    /// The slots of the partitions that it is sent to, if it is not of all: one at least.
    pub(super) fn slots(&self) -> BTreeSet<Bucket> {
        let paths = self.paths();
        let slots: BTreeSet<Bucket> = paths.keys().map(|path| slot(path)).collect();
        if !slots.is_empty() {
            return slots;
        }
        // All partitions know the answer; whoever has what is asked for first gives it.
        let text = match &self.command {
            tree::Command::Ask(Question::List(from, _)) => from,
            _ => self.items().first().map_or("", Item::path),
        };
        BTreeSet::from([slot(text)])
    }
}

/// Whether something changes what all partitions have.
fn is_of_tree(item: &Item) -> bool {
    matches!(item, Item::Create { .. } | Item::Delete { .. } | Item::SetAcl { .. })
}

/// The paths of nodes of which something looks at content.
fn looks_at(item: &Item) -> impl Iterator<Item = &str> {
    let parent = match item {
        Item::Create { path, sequential, .. } => {
            Place::of(path, *sequential).ok().map(|place| place.parent)
        }
        Item::Delete { path, .. } => Path::of(path).ok().and_then(Path::parent),
        _ => None,
    };
    let own = match item {
        // What is made has no content before, and what tree tells needs none.
        Item::Create { .. } | Item::Ephemerals { .. } | Item::CountBelow { .. } => None,
        _ => Some(item.path()),
    };
    own.into_iter().chain(parent.map(Path::text))
}
