//! All changes done one after the other on a model, and what everybody was told held against it.

use super::evidence::AllEvidence;
use super::facts::{Change, Facts, Place, is_done, place};
use super::follow::{self, Changes};
use super::lives::begin_of;
use super::marks::{self, Mark};
use super::model::{Model, parent, timeless};
use super::record::{Invocation, NEVER};
use super::stream::Stream;
use crate::history::Completion;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Failure, Item, Refollow, SessionId, TreeReply, What};

/// Something that the changes as they are taken to be do not explain.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    /// At which zxid.
    pub at: u64,
    /// Only a change of that zxid can explain it.
    pub is_here: bool,
    /// Only this open change can.
    pub only: Option<usize>,
    /// What it has to do with.
    pub marks: Vec<Mark>,
    /// Why it is not explained.
    pub why: String,
    /// The operations that show it.
    pub asked: Vec<usize>,
}

/// Which open change has which zxid.
pub(super) type Placed = BTreeMap<u64, usize>;

/// One walk over all changes.
struct Replay<'a> {
    facts: &'a Facts<'a>,
    evidence: &'a AllEvidence,
    placed: &'a Placed,
    model: Model,
    changes: BTreeMap<u64, Vec<(String, What)>>,
    again: BTreeMap<usize, Vec<(String, What)>>,
    /// What nodes had from which zxid on, of those that plain reads show.
    had: BTreeMap<String, Vec<(u64, Option<Bytes>)>>,
}

/// Holds everything against the changes as they are placed.
pub(super) fn replay(
    facts: &Facts<'_>,
    evidence: &AllEvidence,
    streams: &[Stream<'_>],
    placed: &Placed,
) -> Result<(), Conflict> {
    let mut replay = Replay {
        facts,
        evidence,
        placed,
        model: Model::new(),
        changes: BTreeMap::new(),
        again: BTreeMap::new(),
        had: BTreeMap::new(),
    };
    for index in &facts.glimpses {
        if let Some(path) = plain_path(&facts.record.asked[*index]) {
            replay.had.insert(path, Vec::from([(0, None)]));
        }
    }
    for zxid in facts.zxids() {
        replay.step(zxid)?;
    }
    replay.in_time()?;
    replay.glimpses()?;
    replay.all_placed()?;
    let changes = Changes { of: &replay.changes, again: &replay.again };
    for (connection, stream) in streams.iter().enumerate() {
        follow::check(facts.record, connection, stream, &changes)?;
    }
    Ok(())
}

fn plain_path(asked: &Invocation) -> Option<String> {
    match &asked.operation {
        Operation::Get { key, .. } | Operation::Put { key, .. } | Operation::Delete { key, .. } => {
            Some(super::facts::path_of(key))
        }
        _ => None,
    }
}

impl Facts<'_> {
    /// All zxids that changes may have, ascending.
    pub fn zxids(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.lives.zxids(0, u64::MAX)
    }

    /// Behind the last zxid that anybody knows of there may be some of open changes.
    pub fn end(&self) -> u64 {
        self.zxids().next_back().unwrap_or(self.last)
    }

    /// How an operation is shown in an explanation.
    pub fn asked(&self, index: usize) -> &Invocation {
        &self.record.asked[index]
    }
}

impl Replay<'_> {
    /// The change of a zxid, and what was shown at it.
    fn step(&mut self, zxid: u64) -> Result<(), Conflict> {
        self.model.begin(zxid);
        let open = self.placed.get(&zxid).map(|open| self.facts.open[*open].change);
        let change = self.facts.known.get(&zxid).copied().or(open);
        match change {
            None => {}
            Some(Change::Open(session)) => {
                self.model.sessions.insert(session);
            }
            Some(Change::Expire(session)) => self.expire(zxid, session)?,
            Some(Change::Write(index)) => self.write(zxid, index)?,
        }
        for seen in self.evidence.of.get(&zxid).into_iter().flatten() {
            if !seen.fits(&self.model.changes) {
                let (path, word) = (&seen.path, seen.what.word());
                let why = format!(
                    "{path} was {word} by change {zxid}, which no write of anybody can have been"
                );
                let mut marks = marks::shown(path);
                // Its name may have a number: that of children that were ever made.
                marks.extend(parent(path).map(|above| Mark::Below(above.to_string())));
                let asked = seen.asked.into_iter().collect();
                // If it is known which change that is, one before it may have left another tree.
                let is_here = change.is_none();
                return Err(Conflict { at: zxid, is_here, only: None, marks, why, asked });
            }
        }
        self.keep(zxid);
        for (session, known) in &self.facts.sessions {
            let is_over = known.gone_by == Some(zxid) || (zxid == 0 && known.gone_by == Some(0));
            let is_of_it = session.0 >= begin_of(zxid);
            if is_over && is_of_it && self.model.sessions.contains(session) {
                let why = format!(
                    "the client of session {:x} was told that it had ended before change {zxid}, \
                     and it goes on",
                    session.0
                );
                return Err(self.conflict(zxid, known.marks.clone(), why, None));
            }
        }
        for index in self.facts.shown.get(&zxid).into_iter().flatten() {
            self.show(zxid, *index)?;
        }
        Ok(())
    }

    fn keep(&mut self, zxid: u64) {
        if self.model.changes.is_empty() {
            return;
        }
        for (path, had) in &mut self.had {
            // Who reads values alone sees none as empty.
            let data = self.model.node(path).map(|node| node.data.clone().unwrap_or_default());
            if had.last().is_none_or(|(_, last)| *last != data) {
                had.push((zxid, data));
            }
        }
        self.changes.insert(zxid, core::mem::take(&mut self.model.changes));
    }

    fn conflict(
        &self,
        at: u64,
        marks: Vec<Mark>,
        why: String,
        index: impl IntoIterator<Item = usize>,
    ) -> Conflict {
        let asked = index.into_iter().collect();
        Conflict { at, is_here: false, only: None, marks, why, asked }
    }

    /// A session ends unasked.
    fn expire(&mut self, zxid: u64, session: SessionId) -> Result<(), Conflict> {
        if !self.model.sessions.contains(&session) {
            let marks = self.facts.sessions[&session].marks.clone();
            let why = format!("session {:x} cannot end twice", session.0);
            return Err(self.conflict(zxid, marks, why, None));
        }
        self.model.end_session(session);
        Ok(())
    }

    /// A client's write takes effect.
    fn write(&mut self, zxid: u64, index: usize) -> Result<(), Conflict> {
        let asked = self.facts.asked(index);
        let session = asked.session();
        let told = match &asked.operation {
            Operation::Put { key, value, .. } => self.model.put(&super::facts::path_of(key), value),
            Operation::Delete { key, .. } => {
                let path = super::facts::path_of(key);
                self.model.act(&Act::One(Item::Delete { path, version: None }), None)
            }
            Operation::Tree(ask) => self.model.act(&ask.act, session),
            _ => return Ok(()),
        };
        let must = match asked.completion() {
            Completion::Tree(TreeReply { told, .. }) => Some(told),
            _ => None,
        };
        let is_so = match must {
            Some(must) => timeless(must) == timeless(&told),
            None => is_done(&told),
        };
        if is_so {
            return Ok(());
        }
        let client = asked.client;
        let why = match must {
            Some(_) => format!("by change {zxid} {client} must have been told {}", in_words(&told)),
            None => format!("change {zxid} cannot be that of {client}"),
        };
        Err(self.conflict(zxid, marks::of_answer(asked), why, Some(index)))
    }

    /// An operation shows the tree as it is now.
    fn show(&mut self, zxid: u64, index: usize) -> Result<(), Conflict> {
        let asked = self.facts.asked(index);
        let (Some(act), Completion::Tree(reply)) = (asked.act(), asked.completion()) else {
            return Ok(());
        };
        let session = asked.session();
        if let Act::Refollow(refollow) = act {
            self.again.insert(index, self.again(refollow));
        }
        let must = match reply.told {
            // It goes on elsewhere, so it is there.
            Err(Failure::SessionMoved) => {
                let is_there = session.is_some_and(|it| self.model.sessions.contains(&it));
                is_there.then_some(Err(Failure::SessionMoved))
            }
            _ => None,
        };
        let must = must.unwrap_or_else(|| self.model.act(act, session));
        if timeless(&reply.told) == timeless(&must) {
            return Ok(());
        }
        let why = format!(
            "{} was shown the tree as change {zxid} has left it, and must have been told {}",
            asked.client,
            in_words(&must)
        );
        Err(self.conflict(zxid, marks::of_answer(asked), why, Some(index)))
    }

    /// What has become of nodes that a client had followed elsewhere.
    fn again(&self, refollow: &Refollow) -> Vec<(String, What)> {
        let (node, seen) = (|path: &String| self.model.node(path), refollow.seen.0);
        let data = refollow.data.iter().filter_map(|path| match node(path) {
            None => Some((path.clone(), What::Deleted)),
            Some(node) => (node.mzxid > seen).then(|| (path.clone(), What::Data)),
        });
        let absent = refollow.absent.iter().filter(|path| node(path).is_some());
        let absent = absent.map(|path| (path.clone(), What::Created));
        let children = refollow.children.iter().filter_map(|path| match node(path) {
            None => Some((path.clone(), What::Deleted)),
            Some(node) => (node.pzxid > seen).then(|| (path.clone(), What::Children)),
        });
        data.chain(absent).chain(children).collect()
    }

    /// Of two changes the one that had ended before the other began is the earlier one.
    fn in_time(&self) -> Result<(), Conflict> {
        let mut ended: Option<(usize, usize)> = None;
        for zxid in self.facts.zxids().rev() {
            let open = self.placed.get(&zxid).map(|open| self.facts.open[*open].change);
            let Some(Change::Write(index)) = self.facts.known.get(&zxid).copied().or(open) else {
                continue;
            };
            let asked = self.facts.asked(index);
            if let Some((_, other)) = ended.filter(|(ended, _)| *ended < asked.began) {
                let later = self.facts.asked(other);
                let why = format!(
                    "{} had ended before {} began, and comes behind it",
                    later.client, asked.client
                );
                let marks = [marks::of_write(asked), marks::of_write(later)].concat();
                return Err(self.conflict(zxid, marks, why, [index, other]));
            }
            if asked.ended != NEVER && ended.is_none_or(|(ended, _)| asked.ended < ended) {
                ended = Some((asked.ended, index));
            }
        }
        Ok(())
    }

    /// Plain operations saw what a node had at some moment.
    fn glimpses(&self) -> Result<(), Conflict> {
        let facts = self.facts;
        let placed = self.placed.iter().map(|(zxid, open)| (*zxid, facts.open[*open].change));
        let open: Vec<(u64, &Invocation)> = placed
            .filter_map(|(zxid, change)| match change {
                Change::Write(index) => Some((zxid, facts.asked(index))),
                _ => None,
            })
            .collect();
        for index in &facts.glimpses {
            let asked = facts.asked(*index);
            let Some(path) = plain_path(asked) else { continue };
            let value = match asked.completion() {
                Completion::Value(value) => value.as_ref(),
                _ => None,
            };
            let before = open.iter().filter(|(_, it)| it.ended < asked.began);
            let behind = open.iter().filter(|(_, it)| it.began > asked.ended);
            let last = before.max_by_key(|(zxid, _)| *zxid);
            let next = behind.min_by_key(|(zxid, _)| *zxid);
            let low = last.map_or(0, |(zxid, _)| *zxid);
            let high = next.map_or(u64::MAX, |(zxid, _)| zxid - 1);
            let low = low.max(facts.floors[asked.began]);
            let high = high.min(facts.ceiling(asked.ended));
            let had = &self.had[&path];
            let ends = had.iter().skip(1).map(|(zxid, _)| zxid - 1).chain([u64::MAX]);
            let mut spans = had.iter().zip(ends);
            let is_seen = spans
                .any(|((begin, data), end)| data.as_ref() == value && *begin <= high && end >= low);
            if !is_seen {
                let shown = value.map_or("nothing".into(), |it| it.escape_ascii().to_string());
                let why = format!(
                    "{} found {shown} in {path}, which it had not at any time between change \
                     {low} and change {}",
                    asked.client,
                    high.min(facts.last)
                );
                let at = high.min(facts.end());
                // Were those elsewhere, it would be another time.
                let bounds = last.into_iter().chain(next).flat_map(|(_, it)| marks::of_write(it));
                let marks = marks::of_answer(asked).into_iter().chain(bounds).collect();
                return Err(self.conflict(at, marks, why, Some(*index)));
            }
        }
        Ok(())
    }

    /// What was done has a zxid.
    fn all_placed(&self) -> Result<(), Conflict> {
        for (number, open) in self.facts.open.iter().enumerate().filter(|(_, open)| open.must) {
            if self.placed.values().any(|placed| *placed == number) {
                continue;
            }
            let index = match open.change {
                Change::Write(index) => Some(index),
                _ => None,
            };
            let client = index.map_or(String::new(), |it| self.facts.asked(it).client.to_string());
            let why = format!(
                "{client} was told that its write was done, and no change between {} and {} can \
                 be it",
                open.above + 1,
                open.most.min(self.facts.end())
            );
            let at = open.most.min(self.facts.end());
            let conflict = self.conflict(at, open.marks.clone(), why, index);
            return Err(Conflict { only: Some(number), ..conflict });
        }
        Ok(())
    }
}

/// What should have been told.
fn in_words(told: &Result<quorate_kernel::tree::Told, Failure>) -> String {
    match told {
        Ok(told) => format!("{told:?}"),
        Err(failure) => format!("that {failure}"),
    }
}

/// What the answer of an operation says of its place; for explanations.
pub(super) fn zxid_of(asked: &Invocation) -> Option<u64> {
    match place(asked)? {
        Place::Change(zxid) | Place::Shows(zxid) | Place::Local(zxid) => Some(zxid),
    }
}
