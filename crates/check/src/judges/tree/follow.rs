//! What a connection follows, and what it is told of it.
//!
//! A watch begins with the answer that says so, and each answer comes behind the events of all
//! changes that it can show. So of each connection it is known which events it must have got
//! between two answers.

use super::facts::{Place, place};
use super::marks;
use super::model::parent;
use super::record::Record;
use super::replay::Conflict;
use super::stream::{Received, Stream};
use crate::history::Completion;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Included};
use quorate_kernel::tree::{
    Act, Changed, Failure, Followed, Item, Refollow, SessionId, Told, TreeReply, What,
};

/// How a node is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Data,
    Children,
    Persistent,
    Recursive,
}

/// What has become of nodes, by zxids; and how those stand that are asked for again.
pub(super) struct Changes<'a> {
    pub of: &'a BTreeMap<u64, Vec<(String, What)>>,
    /// By the operation that asks for them again.
    pub again: &'a BTreeMap<usize, Vec<(String, What)>>,
}

/// A connection as it is followed.
struct Follower<'a> {
    record: &'a Record,
    changes: &'a Changes<'a>,
    name: String,
    follows: BTreeSet<(String, How)>,
    /// Up to which change it was told.
    upto: u64,
    /// What it was told since the last answer.
    told: Vec<&'a Changed>,
    again: Vec<&'a Changed>,
}

/// Compares what a connection was told with what it followed.
pub(super) fn check(
    record: &Record,
    connection: usize,
    stream: &Stream<'_>,
    changes: &Changes<'_>,
) -> Result<(), Conflict> {
    let of = &record.connections[connection];
    let session = of.opened.map_or(SessionId(0), |(session, _)| session);
    let mut follower = Follower {
        record,
        changes,
        name: format!("{} with session {:x}", of.client, session.0),
        follows: BTreeSet::new(),
        upto: 0,
        told: Vec::new(),
        again: Vec::new(),
    };
    for (is_again, received) in &stream.received {
        match received {
            Received::Refollows => {}
            Received::Changed(changed) if *is_again => follower.again.push(changed),
            Received::Changed(changed) => follower.told.push(changed),
            Received::Answer(index) => follower.answer(*index)?,
        }
    }
    follower.end()
}

impl<'a> Follower<'a> {
    fn answer(&mut self, index: usize) -> Result<(), Conflict> {
        let asked = &self.record.asked[index];
        let Some(place) = place(asked) else { return Ok(()) };
        let (Place::Change(zxid) | Place::Shows(zxid) | Place::Local(zxid)) = place;
        if !self.follows.is_empty() || !self.told.is_empty() {
            self.catch_up(zxid, Some(index))?;
        }
        self.upto = self.upto.max(zxid);
        let Completion::Tree(TreeReply { told, .. }) = asked.completion() else { return Ok(()) };
        if let Some(act) = asked.act() {
            self.begin(act, told, index)?;
        }
        Ok(())
    }

    /// An answer may begin a watch, or end one.
    fn begin(
        &mut self,
        act: &Act,
        told: &Result<Told, Failure>,
        index: usize,
    ) -> Result<(), Conflict> {
        let is_there = told.is_ok();
        let mut follow = |path: &String, how| {
            self.follows.insert((path.clone(), how));
        };
        match act {
            Act::One(Item::Exists { path, watch: true })
                if is_there || *told == Err(Failure::NoNode) =>
            {
                follow(path, How::Data);
            }
            Act::One(Item::Get { path, watch: true }) if is_there => follow(path, How::Data),
            Act::One(Item::Children { path, watch: true }) if is_there => {
                follow(path, How::Children);
            }
            Act::Follow { path, recursive } if is_there => {
                follow(path, if *recursive { How::Recursive } else { How::Persistent });
            }
            Act::Unfollow { path, kind, only_check } => {
                return self.unfollow(path, *kind, *only_check, (is_there, index));
            }
            Act::Refollow(refollow) if is_there => return self.refollow(refollow, index),
            _ => {}
        }
        Ok(())
    }

    fn unfollow(
        &mut self,
        path: &str,
        kind: Followed,
        only_check: bool,
        (is_there, index): (bool, usize),
    ) -> Result<(), Conflict> {
        let hows = match kind {
            Followed::Children => &[How::Children][..],
            Followed::Data => &[How::Data],
            Followed::Any => &[How::Data, How::Children, How::Persistent, How::Recursive],
            Followed::Persistent => &[How::Persistent],
            Followed::Recursive => &[How::Recursive],
        };
        let of = |how: &How| (path.to_string(), *how);
        let is_followed = hows.iter().any(|how| self.follows.contains(&of(how)));
        if is_followed != is_there {
            let is = if is_followed { "follows" } else { "does not follow" };
            let why = format!("{} {is} {path}, and was told otherwise", self.name);
            return Err(self.conflict(self.upto, path, why, Some(index)));
        }
        if !only_check {
            for how in hows {
                self.follows.remove(&of(how));
            }
        }
        Ok(())
    }

    /// What was followed elsewhere is followed again; what has changed meanwhile was told before.
    fn refollow(&mut self, refollow: &Refollow, index: usize) -> Result<(), Conflict> {
        let empty = Vec::new();
        let expected = self.changes.again.get(&index).unwrap_or(&empty);
        let told = core::mem::take(&mut self.again);
        let mut got: Vec<(String, What)> =
            told.iter().map(|changed| (changed.path.clone(), changed.what)).collect();
        let mut must = expected.clone();
        got.sort();
        must.sort();
        if got != must {
            let why = format!(
                "{} came with what it had followed up to {}, and must be told {must:?} of it; it \
                 was told {got:?}",
                self.name, refollow.seen.0
            );
            let path = must.iter().chain(&got).map(|(path, _)| path.clone()).next();
            let path = path.unwrap_or_default();
            let mut conflict = self.conflict(self.upto, &path, why, Some(index));
            let paths = must.iter().chain(&got).flat_map(|(path, _)| marks::shown(path));
            conflict.marks.extend(paths);
            return Err(conflict);
        }
        let has_changed = |path: &String, is_children: bool| {
            expected.iter().any(|(of, what)| {
                let fits = match what {
                    What::Children => is_children,
                    What::Deleted => true,
                    What::Data | What::Created => !is_children,
                };
                of == path && fits
            })
        };
        let once = [
            (&refollow.data, How::Data),
            (&refollow.absent, How::Data),
            (&refollow.children, How::Children),
        ];
        for (paths, how) in once {
            let rest = paths.iter().filter(|path| !has_changed(path, how == How::Children));
            self.follows.extend(rest.map(|path| (path.clone(), how)));
        }
        let persistent = refollow.persistent.iter().map(|path| (path.clone(), How::Persistent));
        let recursive = refollow.recursive.iter().map(|path| (path.clone(), How::Recursive));
        self.follows.extend(persistent.chain(recursive));
        Ok(())
    }

    /// All that it follows was told up to a change, and nothing else was.
    fn catch_up(&mut self, zxid: u64, index: Option<usize>) -> Result<(), Conflict> {
        let told = core::mem::take(&mut self.told);
        let order = told.windows(2).find(|pair| pair[0].zxid > pair[1].zxid);
        if let Some([one, other]) = order.map(|pair| [pair[0], pair[1]]) {
            let why = format!(
                "{} was told of change {} before change {}",
                self.name, one.zxid.0, other.zxid.0
            );
            return Err(self.conflict(other.zxid.0, &other.path, why, index));
        }
        let mut told = told.into_iter().peekable();
        let changes = self.changes.of.range((Excluded(self.upto), Included(zxid.max(self.upto))));
        for (at, changes) in changes {
            let mut must = self.fire(changes);
            let mut got = Vec::new();
            while let Some(changed) = told.next_if(|changed| changed.zxid.0 == *at) {
                got.push((changed.path.clone(), changed.what));
            }
            must.sort();
            got.sort();
            if must == got {
                continue;
            }
            let missing = must.iter().find(|one| !got.contains(one));
            let (path, what, how) = match missing {
                Some((path, what)) => (path, what, "follows it and was not told"),
                None => {
                    let (path, what) =
                        got.iter().find(|one| !must.contains(one)).unwrap_or(&got[0]);
                    (path, what, "was told so and does not follow it, or was told twice")
                }
            };
            let mut why = format!("{path} was {} by change {at}: {} {how}", what.word(), self.name);
            if index.is_some() {
                why += &format!(" before an answer that shows change {zxid}");
            }
            return Err(self.conflict(*at, path, why, index));
        }
        match told.next() {
            None => Ok(()),
            Some(changed) => {
                let (path, at) = (&changed.path, changed.zxid.0);
                let why = format!(
                    "{} was told that {path} was {} by change {at}, and nothing that it follows \
                     was, between {} and {zxid}",
                    self.name,
                    changed.what.word(),
                    self.upto
                );
                Err(self.conflict(at, path, why, index))
            }
        }
    }

    /// What it is told of the changes of one zxid. What it follows once it follows no more.
    fn fire(&mut self, changes: &[(String, What)]) -> Vec<(String, What)> {
        let mut all = Vec::new();
        for (path, what) in changes {
            let follows = |path: &str, how| self.follows.contains(&(path.to_string(), how));
            let is_gone = *what == What::Deleted;
            let mut above = parent(path);
            let mut is_told = follows(path, How::Data)
                || follows(path, How::Persistent)
                || follows(path, How::Recursive)
                || (is_gone && follows(path, How::Children));
            while let Some(at) = above {
                is_told |= follows(at, How::Recursive);
                above = parent(at);
            }
            let over = parent(path).filter(|_| *what != What::Data);
            let over =
                over.filter(|over| follows(over, How::Children) || follows(over, How::Persistent));
            if is_told {
                all.push((path.clone(), *what));
                self.follows.remove(&(path.clone(), How::Data));
                if is_gone {
                    self.follows.remove(&(path.clone(), How::Children));
                }
            }
            if let Some(over) = over {
                all.push((over.to_string(), What::Children));
                self.follows.remove(&(over.to_string(), How::Children));
            }
        }
        all
    }

    /// The connection has ended, or the record: what comes behind the last answer may be missing.
    fn end(&mut self) -> Result<(), Conflict> {
        let Some(last) = self.told.last().map(|changed| changed.zxid.0) else { return Ok(()) };
        // Of the last change some may be missing.
        let (of_last, before): (Vec<&Changed>, Vec<&Changed>) =
            core::mem::take(&mut self.told).into_iter().partition(|it| it.zxid.0 == last);
        self.told = before;
        self.catch_up(last - 1, None)?;
        self.upto = self.upto.max(last - 1);
        let empty = Vec::new();
        let must = self.fire(self.changes.of.get(&last).unwrap_or(&empty));
        let is_due = |changed: &&Changed| {
            let of = |one: &(String, What)| one.0 == changed.path && one.1 == changed.what;
            let got =
                of_last.iter().filter(|it| it.path == changed.path && it.what == changed.what);
            must.iter().filter(|one| of(one)).count() >= got.count()
        };
        match of_last.iter().find(|changed| !is_due(changed)) {
            None => Ok(()),
            Some(changed) => {
                let why = format!(
                    "{} was told that {} was {} by change {last}, and does not follow it, or was \
                     told twice",
                    self.name,
                    changed.path,
                    changed.what.word()
                );
                Err(self.conflict(last, &changed.path, why, None))
            }
        }
    }

    fn conflict(&self, at: u64, path: &str, why: String, index: Option<usize>) -> Conflict {
        let asked = index.into_iter().collect();
        Conflict { at, is_here: false, only: None, marks: marks::shown(path), why, asked }
    }
}
