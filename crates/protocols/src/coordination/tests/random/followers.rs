//! What a client follows, as a model: from the answers that begin it, and from what has changed, it
//! says what the client is to be told, and in which order.

use quorate_kernel::tree::{Act, Changed, Failure, Followed, Item, Told, TreeReply, What, Zxid};
use std::collections::{BTreeSet, VecDeque};
use std::string::String;

/// How a node is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Data,
    Children,
    Persistent,
    Recursive,
}

/// What a client follows, and is to be told.
pub struct Follower<'a> {
    /// All that becomes of nodes, in its order.
    changes: &'a [(u64, String, What)],
    follows: BTreeSet<(String, How)>,
    due: VecDeque<Changed>,
    /// How many events it was told, and follows something until told otherwise.
    pub told: usize,
}

impl<'a> Follower<'a> {
    /// A client that follows nothing, and is told of these changes from now on.
    pub fn new(changes: &'a [(u64, String, What)]) -> Follower<'a> {
        Follower { changes, follows: BTreeSet::new(), due: VecDeque::new(), told: 0 }
    }

    /// All changes up to this one have happened.
    fn advance(&mut self, zxid: u64) {
        while let Some(((at, path, what), rest)) = self.changes.split_first()
            && *at <= zxid
        {
            self.changes = rest;
            self.change(*at, path, *what);
        }
    }

    fn change(&mut self, zxid: u64, path: &str, what: What) {
        let is_gone = what == What::Deleted;
        let mut is_told = false;
        for (of, how) in &self.follows {
            is_told |= match how {
                How::Data | How::Persistent => of == path,
                How::Children => of == path && is_gone,
                How::Recursive => of == path || of == "/" || is_below(path, of),
            };
        }
        let mut tell = |path: &str, what| {
            self.due.push_back(Changed { zxid: Zxid(zxid), path: path.into(), what });
        };
        if is_told {
            tell(path, what);
        }
        let parent = match path.rsplit_once('/').expect("it has a parent").0 {
            "" => "/",
            parent => parent,
        };
        let follows = |how| self.follows.contains(&(String::from(parent), how));
        let is_parent_told = follows(How::Children) || follows(How::Persistent);
        if what != What::Data && is_parent_told {
            tell(parent, What::Children);
            self.follows.remove(&(parent.into(), How::Children));
        }
        self.follows.remove(&(path.into(), How::Data));
        if is_gone {
            self.follows.remove(&(path.into(), How::Children));
        }
    }

    /// The client is told of a change.
    ///
    /// # Errors
    /// It is not the next one that it is to be told.
    pub fn event(&mut self, changed: &Changed) -> Result<(), String> {
        self.told += 1;
        if self.due.is_empty() {
            self.advance(changed.zxid.0);
        }
        let due = self.due.pop_front();
        let is_right = due.as_ref() == Some(changed);
        is_right.then_some(()).ok_or_else(|| std::format!("{changed:?} is told instead of {due:?}"))
    }

    /// Whether the client was told of all that it follows up to a change.
    ///
    /// # Errors
    /// It was not.
    pub fn is_told_up_to(&mut self, zxid: u64) -> Result<(), String> {
        self.advance(zxid);
        match self.due.front() {
            None => Ok(()),
            Some(due) => Err(std::format!("{due:?} is not told before {zxid} is shown")),
        }
    }

    /// The client is told an answer: it was told of all that the answer shows, and follows what
    /// that begins.
    ///
    /// # Errors
    /// It was not told of it, or what it follows is not what it seems.
    pub fn answer(&mut self, act: &Act, reply: &TreeReply) -> Result<(), String> {
        self.is_told_up_to(reply.zxid.0)?;
        let (path, how) = match act {
            Act::One(Item::Exists { path, watch: true }) => (path, How::Data),
            Act::One(Item::Get { path, watch: true }) => (path, How::Data),
            Act::One(Item::Children { path, watch: true }) => (path, How::Children),
            Act::Follow { path, recursive: true } => (path, How::Recursive),
            Act::Follow { path, recursive: false } => (path, How::Persistent),
            Act::Unfollow { path, kind, only_check } => {
                return self.unfollow(path, *kind, *only_check, &reply.told);
            }
            _ => return Ok(()),
        };
        let is_absent =
            matches!(act, Act::One(Item::Exists { .. })) && reply.told == Err(Failure::NoNode);
        if reply.told.is_ok() || is_absent {
            self.follows.insert((path.clone(), how));
        }
        Ok(())
    }

    fn unfollow(
        &mut self,
        path: &str,
        kind: Followed,
        only_check: bool,
        told: &Result<Told, Failure>,
    ) -> Result<(), String> {
        let hows = match kind {
            Followed::Data => &[How::Data][..],
            Followed::Children => &[How::Children],
            Followed::Any => &[How::Data, How::Children, How::Persistent, How::Recursive],
            Followed::Persistent => &[How::Persistent],
            Followed::Recursive => &[How::Recursive],
        };
        let there = |how: &&How| self.follows.contains(&(path.into(), **how));
        let found: BTreeSet<How> = hows.iter().filter(there).copied().collect();
        match told {
            Ok(_) if !found.is_empty() => {}
            Err(Failure::NotFollowed) if found.is_empty() => {}
            Err(Failure::SessionExpired | Failure::SessionMoved) => return Ok(()),
            _ => return Err(std::format!("{path} is followed by {found:?}: {told:?}")),
        }
        if !only_check {
            found.into_iter().for_each(|how| _ = self.follows.remove(&(path.into(), how)));
        }
        Ok(())
    }
}

fn is_below(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'))
}
