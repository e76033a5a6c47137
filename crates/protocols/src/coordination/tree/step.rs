//! One change of the tree: what it does to nodes, and what goes with that.
//!
//! A step keeps together what the [invariants](super::check()) tie together: a node and its
//! parent's counts, the keys that say when it ends, and the counts of the whole tree. All that it
//! does has one zxid, and happens at one moment.

use super::command::{Answer, Change};
use super::machine::Tree;
use super::object::{Life, Meta, Node, Object, Session};
use super::{acl, ask, quota};
use crate::coordination::keys;
use crate::smr::Execution;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::invariant;
use quorate_kernel::limits::{TREE_BYTES_MAX, TREE_NODES_MAX};
use quorate_kernel::path::Path;
use quorate_kernel::tree::{Acl, Failure, SessionId, Told, TreeReply, What, Zxid};

/// A change that is under way.
pub struct Step<'a, 'b> {
    pub(super) on: &'a mut Execution<'b, Tree>,
    /// Of the tree before it.
    before: Meta,
    /// Of the tree behind it.
    meta: Meta,
    is_change: bool,
}

impl<'a, 'b> Step<'a, 'b> {
    /// Nothing is changed yet.
    pub fn begin(on: &'a mut Execution<'b, Tree>) -> Step<'a, 'b> {
        let before = ask::meta(on);
        let zxid = Zxid(before.zxid.0 + 1);
        Step { on, before, meta: Meta { zxid, ..before }, is_change: false }
    }

    /// The change that this is, if it changes something.
    pub fn zxid(&self) -> Zxid {
        self.meta.zxid
    }

    /// The entry's time in milliseconds since 1970, as stats have it.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.on.now_ms()).unwrap_or(i64::MAX)
    }

    /// All of it was done, or nothing is.
    pub fn end(self, told: Result<Told, Failure>) -> Answer {
        match told {
            Ok(told) => Answer::Told(TreeReply { zxid: self.take_effect(), told: Ok(told) }),
            Err(failure) => self.abandon(Err(failure)),
        }
    }

    /// What was done so far takes effect. Returns the newest change.
    pub fn take_effect(self) -> Zxid {
        if !self.is_change {
            return self.before.zxid;
        }
        self.on.put(keys::META, Object::Meta(self.meta));
        self.meta.zxid
    }

    /// Nothing of what was done so far takes effect.
    pub fn abandon(self, told: Result<Told, Failure>) -> Answer {
        self.on.discard();
        Answer::Told(TreeReply { zxid: self.before.zxid, told })
    }

    /// Makes a node that is not there, below one that is. Returns how it is.
    ///
    /// # Errors
    /// [`Failure::Quota`]: the tree would be too large, or a part of it that is limited.
    /// [`Failure::BadArguments`]: what it limits cannot be limited. The step has to be abandoned.
    pub fn make(&mut self, path: Path<'_>, node: Node) -> Result<(), Failure> {
        invariant!(ask::find(self.on, path).is_none(), "nothing is made where something is");
        let (life, zxid) = (node.life, self.zxid());
        let is_below = path.parent().is_some_and(|parent| {
            self.change(parent, |parent| {
                parent.creates = parent.creates.wrapping_add(1);
                parent.children += 1;
                parent.pzxid = zxid;
            })
        });
        invariant!(is_below, "a node is made below another");
        match life {
            Life::Persistent => {}
            Life::Container | Life::Ttl(_) => {
                self.on.put(keys::reapable(path.text()), Object::Reapable);
            }
            Life::Ephemeral(session) => {
                self.on.put(keys::ephemeral(session, path), Object::Ephemeral);
                self.meta.ephemerals += 1;
            }
        }
        self.meta.nodes += 1;
        self.resize(0, node.bytes(path));
        let (guard, data) = (acl::guard(&node), node.data.clone());
        self.on.put(keys::node(path), Object::Node(node));
        self.tell(path, What::Created, guard);
        quota::made(self, path, data.as_ref())?;
        self.has_room()
    }

    /// Removes a node that has no children.
    pub fn remove(&mut self, path: Path<'_>) {
        let Some(node) = ask::find(self.on, path) else { return };
        let (life, bytes, zxid) = (node.life, node.bytes(path), self.zxid());
        let data = node.data.clone();
        let guard = acl::guard(node);
        invariant!(node.children == 0, "a node goes behind its children");
        let is_below = path.parent().is_some_and(|parent| {
            self.change(parent, |parent| {
                invariant!(parent.children > 0, "a child is counted");
                parent.children -= 1;
                parent.pzxid = zxid;
            })
        });
        invariant!(is_below, "the root stays");
        match life {
            Life::Persistent => {}
            Life::Container | Life::Ttl(_) => self.on.remove(keys::reapable(path.text())),
            Life::Ephemeral(session) => {
                self.on.remove(keys::ephemeral(session, path));
                self.meta.ephemerals -= 1;
            }
        }
        self.meta.nodes -= 1;
        self.resize(bytes, 0);
        self.on.remove(keys::node(path));
        self.tell(path, What::Deleted, guard);
        quota::removed(self, path, data.as_ref());
    }

    /// Changes a node where it stands; its parent, children and life stay. Whether there is one.
    pub fn change(&mut self, path: Path<'_>, change: impl FnOnce(&mut Node)) -> bool {
        let (mut before, mut after) = (0, 0);
        let is_there = self.on.change(&keys::node(path), |object| {
            if let Object::Node(node) = object {
                before = node.bytes(path);
                change(node);
                after = node.bytes(path);
            }
        });
        self.resize(before, after);
        self.is_change |= is_there;
        is_there
    }

    /// Puts a node in the place of the one that it was, which counted for so many bytes. Parent,
    /// children and life stay.
    pub fn replace(&mut self, path: Path<'_>, before: u64, node: Node) {
        self.resize(before, node.bytes(path));
        self.on.put(keys::node(path), Object::Node(node));
        self.is_change = true;
    }

    /// What a node has was set, or a node was made or removed. `guard` says who may read it, if not
    /// everybody may.
    pub fn tell(&mut self, path: Path<'_>, what: What, guard: Option<Arc<[Acl]>>) {
        let (zxid, path) = (self.zxid(), path.text().to_string());
        self.on.tell(match guard {
            Some(acl) => Change::Guarded { zxid, path, what, acl },
            None => Change::Node { zxid, path, what },
        });
        self.is_change = true;
    }

    /// Puts a session in its place, which it had before or not.
    pub fn put_session(&mut self, id: SessionId, session: Session) {
        if ask::session(self.on, id).is_none() {
            self.meta.sessions += 1;
        }
        self.on.put(keys::session(id), Object::Session(session));
        self.is_change = true;
    }

    /// Ends a session: with it end its nodes, in the order of their paths.
    pub fn end_session(&mut self, id: SessionId) {
        let Some(session) = ask::session(self.on, id) else { return };
        for path in self.owned(id) {
            let path = Path::of(&path).expect("only what is a path was put under a key of one");
            self.remove(path);
        }
        self.on.remove(keys::session(id));
        self.on.tell(Change::Session { session: id, gateway: session.gateway, is_moved: false });
        self.meta.sessions -= 1;
        self.is_change = true;
        invariant!(self.owned(id).is_empty(), "nothing outlives its session");
    }

    fn owned(&self, session: SessionId) -> Vec<String> {
        let prefix = keys::ephemerals(session);
        let path = |key: &[u8]| Some(keys::ephemeral_of(key)?.1.to_string());
        self.on.below(&prefix).filter_map(|(key, _)| path(key)).collect()
    }

    fn resize(&mut self, before: u64, after: u64) {
        self.meta.bytes = self.meta.bytes + after - before;
    }

    /// Whether the tree may be as large as it is by now.
    ///
    /// # Errors
    /// [`Failure::Quota`]: it may not, and was smaller before. The step has to be abandoned.
    pub fn has_room(&self) -> Result<(), Failure> {
        let (is, was) = (&self.meta, &self.before);
        let has_grown = is.nodes > was.nodes || is.bytes > was.bytes;
        let is_small = is.nodes <= TREE_NODES_MAX && is.bytes <= TREE_BYTES_MAX;
        (is_small || !has_grown).then_some(()).ok_or(Failure::Quota)
    }
}
