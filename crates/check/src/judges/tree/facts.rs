//! What a record says for certain, and what may have happened beside.
//!
//! Each change of a tree has a zxid. Of most changes it is known, as the answer tells it; the
//! others are open: writes whose outcome nobody knows, plain writes, whose answers tell no zxid,
//! and the ends of sessions that expire. Sessions also take zxids when they are moved, which
//! changes no node.

use super::lives::Lives;
use super::marks::{self, Mark};
use super::quiet::changes_a_node;
use super::record::{Event, Invocation, NEVER, Record};
use crate::history::Completion;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Failure, SessionId, Told, TreeReply};

/// How long at least a millisecond of a session's time-out takes: clocks drift.
const TIMEOUT_LEAST_NS_PER_MS: u64 = 980_000;

/// One change of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// What a client has asked.
    Write(usize),
    /// A session begins.
    Open(SessionId),
    /// A session ends although its client has not asked for it.
    Expire(SessionId),
}

/// A change whose zxid is not known.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub change: Change,
    /// It has a zxid above this one, and at most that one.
    pub above: u64,
    pub most: u64,
    /// It has happened.
    pub must: bool,
    /// Whether it changes a node, if it is done.
    pub changes_a_node: bool,
    /// What it may have to do with.
    pub marks: Vec<Mark>,
}

/// What is known of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    /// The newest zxid at which it was there.
    pub alive: u64,
    /// When something was asked for it that was answered, each with whether a gateway took it on.
    heard: Vec<(u64, bool)>,
    /// How long it may be silent.
    timeout_ms: u32,
    /// Its client was told that it has ended; what is asked behind that shows it.
    pub gone_by: Option<u64>,
    /// It ended as its client has asked.
    is_closed: bool,
    pub marks: Vec<Mark>,
}

impl Session {
    /// When its client had first been silent for its time-out since a gateway took it on. What
    /// it asks then may still be answered while its end is on the way.
    fn silent_at(&mut self) -> u64 {
        self.heard.sort_unstable();
        let from = self.heard.iter().rposition(|(_, is_attach)| *is_attach).unwrap_or(0);
        let timeout = u64::from(self.timeout_ms) * TIMEOUT_LEAST_NS_PER_MS;
        let heard = self.heard[from..].iter().map(|(time, _)| *time);
        let next = heard.clone().skip(1).chain([u64::MAX]);
        let silent = heard.zip(next).find(|(time, next)| next - time >= timeout);
        silent.map_or(0, |(time, _)| time + timeout)
    }
}

/// What a record says.
pub(super) struct Facts<'a> {
    pub record: &'a Record,
    /// Changes whose zxid is known.
    pub known: BTreeMap<u64, Change>,
    /// Operations that show the tree as it was at one zxid.
    pub shown: BTreeMap<u64, Vec<usize>>,
    /// Plain operations that show what a node had at some time while they were under way.
    pub glimpses: Vec<usize>,
    pub open: Vec<Open>,
    pub sessions: BTreeMap<SessionId, Session>,
    /// The newest zxid that anybody was told of before an event; one more than there are events.
    pub floors: Vec<u64>,
    /// The highest zxid that what ends before an event can have.
    pub ceilings: Vec<u64>,
    /// The newest zxid of all.
    pub last: u64,
    pub lives: Lives,
}

/// What an answer says of the place of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the change of this zxid.
    Change(u64),
    /// It shows the tree at this zxid.
    Shows(u64),
    /// It was answered by the client's host, which knew of this zxid.
    Local(u64),
}

/// What the answer of an operation says of its place.
pub(super) fn place(asked: &Invocation) -> Option<Place> {
    let Completion::Tree(TreeReply { zxid, told }) = asked.completion() else { return None };
    let act = asked.act()?;
    let zxid = zxid.0;
    Some(match act {
        Act::Ping | Act::WhoAmI | Act::Authenticate { .. } | Act::Unfollow { .. } => {
            Place::Local(zxid)
        }
        _ if act.is_write() && is_done(told) => Place::Change(zxid),
        _ => Place::Shows(zxid),
    })
}

/// Whether all was done that was asked.
pub(super) fn is_done(told: &Result<Told, Failure>) -> bool {
    match told {
        Ok(Told::Many(many)) => many.iter().all(Result::is_ok),
        told => told.is_ok(),
    }
}

/// The path of a plain operation's key.
pub(super) fn path_of(key: &Bytes) -> String {
    let text = String::from_utf8_lossy(key);
    if text.starts_with('/') { text.to_string() } else { format!("/{text}") }
}

impl<'a> Facts<'a> {
    /// What a record says.
    ///
    /// # Errors
    /// Two changes have one zxid, or one has none: their operations, and why that is wrong.
    pub fn of(record: &'a Record) -> Result<Facts<'a>, (Vec<usize>, String)> {
        let events = record.events.len();
        let mut facts = Facts {
            record,
            known: BTreeMap::new(),
            shown: BTreeMap::new(),
            glimpses: Vec::new(),
            open: Vec::new(),
            sessions: BTreeMap::new(),
            floors: vec![0; events + 1],
            ceilings: vec![u64::MAX; events + 1],
            last: 0,
            lives: Lives::default(),
        };
        facts.note_sessions()?;
        for (index, asked) in record.asked.iter().enumerate() {
            facts.note(index, asked)?;
        }
        facts.bound();
        facts.note_open();
        // Each connection may have moved its session, by a change that nobody was told of.
        facts.lives.unseen(facts.open.len() + record.connections.len());
        Ok(facts)
    }

    fn know(&mut self, zxid: u64, change: Change) -> Result<(), (Vec<usize>, String)> {
        let of = |change: Change| match change {
            Change::Write(index) => Some(index),
            _ => None,
        };
        if zxid == 0 {
            return Err((of(change).into_iter().collect(), "a change has no zxid".into()));
        }
        match self.known.insert(zxid, change) {
            None => Ok(()),
            Some(other) => {
                let both = [other, change].into_iter().filter_map(of).collect();
                Err((both, format!("two changes have the zxid {zxid}")))
            }
        }
    }

    fn note_sessions(&mut self) -> Result<(), (Vec<usize>, String)> {
        for connection in &self.record.connections {
            let Some((session, timeout_ms)) = connection.opened else { continue };
            if connection.wanted.is_none() {
                // A session is named by the change that makes it.
                self.know(session.0, Change::Open(session))?;
            }
            let known = self.sessions.entry(session).or_default();
            known.alive = known.alive.max(session.0);
            known.heard.push((connection.began_at.0, true));
            known.timeout_ms = timeout_ms;
        }
        Ok(())
    }

    fn note(&mut self, index: usize, asked: &Invocation) -> Result<(), (Vec<usize>, String)> {
        let is_served = match asked.completion() {
            Completion::Tree(TreeReply { told, .. }) => {
                !matches!(told, Err(Failure::SessionExpired | Failure::SessionMoved))
            }
            _ => false,
        };
        let mut alive = 0;
        match (place(asked), asked.completion()) {
            (Some(Place::Change(zxid)), _) => {
                self.know(zxid, Change::Write(index))?;
                alive = zxid;
            }
            (Some(Place::Shows(zxid)), _) => {
                self.shown.entry(zxid).or_default().push(index);
                alive = zxid;
            }
            (_, Completion::Value(_) | Completion::Deleted { existed: false }) => {
                self.glimpses.push(index);
            }
            _ => {}
        }
        if let Some(session) = asked.session().filter(|_| is_served && alive > 0) {
            let known = self.sessions.entry(session).or_default();
            known.alive = known.alive.max(alive);
            // What a host answers by itself while it is cut off keeps no session.
            if !self.record.may_be_old(asked) {
                known.heard.push((asked.invoked.0, false));
            }
            let is_change = matches!(place(asked), Some(Place::Change(_)));
            known.is_closed |= is_change && matches!(asked.act(), Some(Act::Close));
        }
        Ok(())
    }

    /// Finds out between which zxids what is recorded at each event must be.
    fn bound(&mut self) {
        let record = self.record;
        for (at, (_, event)) in record.events.iter().enumerate() {
            let told = match event {
                Event::Answered(index) => match place(&record.asked[*index]) {
                    Some(Place::Change(zxid) | Place::Shows(zxid) | Place::Local(zxid)) => zxid,
                    None => 0,
                },
                Event::Opened(index) => record.connections[*index].opened.map_or(0, |it| it.0.0),
                Event::Changed(_, changed) => changed.zxid.0,
                _ => 0,
            };
            self.floors[at + 1] = self.floors[at].max(told);
            self.lives.told(told);
        }
        self.last = self.floors[record.events.len()];
        for (at, (_, event)) in record.events.iter().enumerate().rev() {
            let most = match event {
                // It may be older than what had ended before.
                Event::Asked(index) if record.may_be_old(&record.asked[*index]) => u64::MAX,
                Event::Asked(index) => match place(&record.asked[*index]) {
                    Some(Place::Change(zxid)) => zxid.saturating_sub(1),
                    Some(Place::Shows(zxid)) => zxid,
                    _ => u64::MAX,
                },
                Event::Connects(index) => {
                    let connection = &record.connections[*index];
                    let made = connection.opened.filter(|_| connection.wanted.is_none());
                    made.map_or(u64::MAX, |(session, _)| session.0 - 1)
                }
                _ => u64::MAX,
            };
            self.ceilings[at] = self.ceilings[at + 1].min(most);
        }
    }

    /// The newest zxid that anybody was told of before a time in nanoseconds.
    pub fn known_before(&self, ns: u64) -> u64 {
        let at = self.record.events.partition_point(|(time, _)| time.0 < ns);
        self.floors[at]
    }

    /// The highest zxid of what ends at an event.
    pub fn ceiling(&self, at: usize) -> u64 {
        if at == NEVER { u64::MAX } else { self.ceilings[at] }
    }

    /// The highest zxid that each operation can have, as its session asks behind it what has one.
    fn most(&self) -> Vec<u64> {
        let record = self.record;
        let mut behind: BTreeMap<SessionId, u64> = BTreeMap::new();
        // What a session asks is done in the order in which it is asked.
        let mut most = vec![u64::MAX; record.asked.len()];
        for (index, asked) in record.asked.iter().enumerate().rev() {
            let Some(session) = asked.session() else { continue };
            let least = behind.entry(session).or_insert(u64::MAX);
            most[index] = *least;
            *least = (*least).min(match place(asked) {
                Some(Place::Change(zxid)) => zxid - 1,
                Some(Place::Shows(zxid)) => zxid,
                _ => u64::MAX,
            });
        }
        most
    }

    fn note_open(&mut self) {
        let record = self.record;
        let most = self.most();
        let mut before: BTreeMap<SessionId, u64> = BTreeMap::new();
        for (index, asked) in record.asked.iter().enumerate() {
            let mut above = self.floors[asked.began];
            if let Some(session) = asked.session() {
                let newest = before.entry(session).or_insert(session.0);
                above = above.max(*newest);
                if let Some(Place::Change(zxid) | Place::Shows(zxid)) = place(asked) {
                    *newest = (*newest).max(zxid);
                }
            }
            let is_write = match &asked.operation {
                Operation::Tree(ask) => ask.act.is_write(),
                operation => operation.is_write(),
            };
            let must = matches!(
                asked.completion(),
                Completion::Written | Completion::Deleted { existed: true }
            );
            let may = is_write && *asked.completion() == Completion::Unknown;
            let marks = marks::of_write(asked);
            if let Some(session) = asked.session()
                && let Some(known) = self.sessions.get_mut(&session)
            {
                known.marks.extend(marks::of_ephemerals(asked));
            }
            if must || may {
                let most = most[index].min(self.ceiling(asked.ended));
                let change = Change::Write(index);
                let changes_a_node = changes_a_node(&asked.operation);
                self.open.push(Open { change, above, most, must, changes_a_node, marks });
            }
        }
        self.note_ends();
        // The ends of sessions that ask for them have to do with their nodes, too.
        for open in &mut self.open {
            if let Change::Write(index) = open.change
                && let Some(session) = self.record.asked[index].session()
                && matches!(self.record.asked[index].act(), Some(Act::Close))
            {
                open.marks = self.sessions.get(&session).map_or(Vec::new(), |it| it.marks.clone());
            }
        }
    }

    /// Sessions may end although nobody has asked for it.
    fn note_ends(&mut self) {
        let record = self.record;
        for connection in &record.connections {
            let session = connection.opened.map(|(session, _)| session).or(connection.wanted);
            let Some((session, place)) = session.zip(connection.expired) else { continue };
            let by = self.ceiling(place);
            if let Some(known) = self.sessions.get_mut(&session) {
                known.gone_by = Some(known.gone_by.map_or(by, |had| had.min(by)));
            }
        }
        let mut sessions = core::mem::take(&mut self.sessions);
        for (session, known) in &mut sessions {
            known.marks.push(Mark::Session(*session));
            known.marks.sort();
            known.marks.dedup();
            if known.is_closed {
                continue;
            }
            // It ends unasked only when nothing was heard of its client for its time-out, or in
            // another life.
            let over = known.silent_at();
            let ends = self.lives.next(known.alive).map_or(u64::MAX, |begin| begin - 1);
            self.open.push(Open {
                change: Change::Expire(*session),
                above: known.alive.max(self.known_before(over).min(ends)),
                most: known.gone_by.unwrap_or(u64::MAX),
                must: false,
                changes_a_node: false,
                marks: known.marks.clone(),
            });
        }
        self.sessions = sessions;
    }
}
