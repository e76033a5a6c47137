//! What the clients of a host follow. Volatile: it ends with a client's connection.
//!
//! The primary tells a host of all changes, in their order, each answer at its place among them;
//! what a client follows begins with the answer that says so. So nothing is kept elsewhere, and
//! nothing is missed when the primary changes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::tree::{Changed, Followed, What, Zxid};

/// The most that all clients of a host follow.
pub const FOLLOWED_MAX: usize = 1 << 20;

/// How something is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Whether a node is there, and what it has: once.
    Data,
    /// A node's children: once.
    Children,
    /// A node and its children, until told otherwise.
    Persistent,
    /// A node and all below it, until told otherwise.
    Recursive,
}

/// Who follows what. A client is the ticket of its connection.
#[derive(Debug)]
pub struct Watches {
    of: BTreeMap<String, BTreeSet<(How, Ticket)>>,
    by: BTreeMap<Ticket, BTreeSet<(String, How)>>,
    count: usize,
    most: usize,
}

impl Default for Watches {
    fn default() -> Watches {
        Watches { of: BTreeMap::new(), by: BTreeMap::new(), count: 0, most: FOLLOWED_MAX }
    }
}

impl Watches {
    /// Whether nobody follows anything.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a client follows something.
    pub fn follows(&self, client: Ticket) -> bool {
        self.by.contains_key(&client)
    }

    /// Not even in a test can so much be followed.
    #[cfg(test)]
    pub fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// How much is followed.
    pub fn len(&self) -> usize {
        self.count
    }

    /// How many clients follow something, and how many nodes are followed.
    pub fn followers(&self) -> (usize, usize) {
        (self.by.len(), self.of.len())
    }

    /// A client follows a node; whether there was room for it.
    pub fn follow(&mut self, client: Ticket, path: &str, how: How) -> bool {
        if self.count >= self.most {
            return false;
        }
        if self.of.entry(String::from(path)).or_default().insert((how, client)) {
            self.by.entry(client).or_default().insert((String::from(path), how));
            self.count += 1;
        }
        true
    }

    /// Whether a client follows something of this kind there; it follows it no more unless it was
    /// only asked.
    pub fn unfollow(&mut self, client: Ticket, path: &str, kind: Followed, only_ask: bool) -> bool {
        let hows = match kind {
            Followed::Children => &[How::Children][..],
            Followed::Data => &[How::Data],
            Followed::Any => &[How::Data, How::Children, How::Persistent, How::Recursive],
            Followed::Persistent => &[How::Persistent],
            Followed::Recursive => &[How::Recursive],
        };
        let there = |how: &&How| {
            self.of.get(path).is_some_and(|followers| followers.contains(&(**how, client)))
        };
        let found: Vec<How> = hows.iter().filter(there).copied().collect();
        if !only_ask {
            found.iter().for_each(|how| self.remove(client, path, *how));
        }
        !found.is_empty()
    }

    /// A client is gone; whether it had followed anything.
    pub fn drop_client(&mut self, client: Ticket) -> bool {
        let all = self.by.get(&client).cloned().unwrap_or_default();
        all.iter().for_each(|(path, how)| self.remove(client, path, *how));
        !all.is_empty()
    }

    /// The clients that follow something.
    pub fn clients(&self) -> Vec<Ticket> {
        self.by.keys().copied().collect()
    }

    fn remove(&mut self, client: Ticket, path: &str, how: How) {
        if let Some(followers) = self.of.get_mut(path)
            && followers.remove(&(how, client))
        {
            self.count -= 1;
            if followers.is_empty() {
                self.of.remove(path);
            }
        }
        if let Some(all) = self.by.get_mut(&client) {
            all.remove(&(String::from(path), how));
            if all.is_empty() {
                self.by.remove(&client);
            }
        }
    }

    /// A node was made, removed, or has other data: who is told what. Who follows it once does so
    /// no more.
    pub fn change(&mut self, zxid: Zxid, path: &str, what: What) -> Vec<(Ticket, Changed)> {
        self.change_of(zxid, path, what, |_| true)
    }

    /// The same of a node that not everybody may read. Who follows a node above it is told only if
    /// it may: it would learn of names otherwise that nobody tells it.
    pub fn change_of(
        &mut self,
        zxid: Zxid,
        path: &str,
        what: What,
        may_read: impl Fn(Ticket) -> bool,
    ) -> Vec<(Ticket, Changed)> {
        let mut told = BTreeSet::new();
        let is_gone = what == What::Deleted;
        for (how, client) in self.at(path) {
            let is_told = match how {
                How::Children => is_gone,
                How::Recursive => may_read(client),
                How::Data | How::Persistent => true,
            };
            if is_told {
                told.insert((client, 0, path, what));
            }
        }
        let mut above = path;
        while let Some(parent) = parent(above) {
            for (how, client) in self.at(parent) {
                if how == How::Recursive && may_read(client) {
                    told.insert((client, 0, path, what));
                }
            }
            above = parent;
        }
        if let Some(parent) = parent(path).filter(|_| what != What::Data) {
            for (how, client) in self.at(parent) {
                if matches!(how, How::Children | How::Persistent) {
                    told.insert((client, 1, parent, What::Children));
                }
            }
        }
        let told: Vec<(Ticket, Changed)> = told
            .into_iter()
            .map(|(client, _, path, what)| {
                (client, Changed { zxid, path: String::from(path), what })
            })
            .collect();
        for (client, changed) in told.iter().filter(|_| !mutant!("tree_watch_stays")) {
            let children = changed.what == What::Children;
            if !children {
                self.remove(*client, &changed.path, How::Data);
            }
            if children || changed.what == What::Deleted {
                self.remove(*client, &changed.path, How::Children);
            }
        }
        told
    }

    fn at(&self, path: &str) -> impl Iterator<Item = (How, Ticket)> {
        self.of.get(path).into_iter().flatten().copied()
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        let count: usize = self.of.values().map(BTreeSet::len).sum();
        let by: usize = self.by.values().map(BTreeSet::len).sum();
        invariant!(count == self.count && by == count, "what is followed is known both ways");
    }
}

/// The path of a node's parent; the root has none.
fn parent(path: &str) -> Option<&str> {
    let (parent, name) = path.rsplit_once('/')?;
    match (parent, name) {
        (_, "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}
