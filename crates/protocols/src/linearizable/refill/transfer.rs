//! How a node whose data is incomplete gets it from others before its answers count.
//!
//! Three reasons, one transfer:
//! - **It is new in a view.** It hears from a majority of the members of the view before, each of
//!   them after it has left that view (CATS §4.1), so that nothing can still complete there unseen;
//!   half of them where their number is even ([`super::gather`]).
//! - **It forgot** what it had acknowledged (a `memory` lane after a restart, a `periodic` one
//!   after a power loss). It refills from so many others that they meet every majority it was part
//!   of ([`super::amnesia`]).
//! - **It learns**: it copies ahead of a view that will have it, so that little is left to do then.
//!
//! The data moves in ring order. Sources list keys and timestamps (CATS §5, Network Data Transfer);
//! of what a quorum has listed, the newest records that are not here yet are fetched from their
//! holders, in parallel, while the next lists are on their way. What is listed and not yet here is
//! the window: it is bounded, and what was stored is not fetched again after a restart. A source
//! that stops answering is done without: the window is listed anew, by whoever answers.

use super::told::Source;
use crate::linearizable::keys::{cursor_of, first_of, segments, token_of};
use crate::linearizable::message::Bounds;
use crate::linearizable::record::Head;
use crate::linearizable::wire::page::{self, PAGE_BYTES};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{FETCHED_AHEAD_BYTES_MAX, GROUP_MEMBERS_MAX};
use quorate_kernel::operation::Cursor;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::{Range, ViewId};

/// After this without progress the questions are repeated.
pub(crate) const REPEAT: Span = Span::millis(200);
/// After so many repetitions without progress the window is begun anew.
const STALLS_MAX: u32 = 4;
/// How many nodes one transfer asks at the most.
pub(crate) const SOURCES_MAX: usize = 4 * GROUP_MEMBERS_MAX;
/// The least and the most keys that may be asked for in one fetch.
const FETCH_KEYS_MIN: usize = 16;
const FETCH_KEYS_MAX: usize = 512;

/// So many of those nodes must have listed everything.
pub(crate) type Quorum = (Vec<NodeId>, usize);
/// Each of these must be met.
pub(crate) type Quorums = Vec<Quorum>;

/// A record to be fetched.
#[derive(Debug)]
pub(crate) struct Pull {
    pub head: Head,
    holders: Vec<NodeId>,
    /// Whom it is asked of at the moment.
    asked: Option<NodeId>,
}

/// A transfer under way.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub round: u64,
    /// What was asked in an earlier round belongs to another transfer.
    pub first_round: u64,
    /// What sources must have installed before what they say counts.
    pub since: ViewId,
    /// Whether the asker forgot.
    pub forgot: bool,
    /// Whether what forgetful members hold is compared even while others are complete.
    pub lasting: bool,
    /// Whether a quorum is enough also of those that lack data, when nobody else is left.
    pub is_member_refill: bool,
    /// Whether nobody else is left, so that to hear all is enough too, those that lack data as
    /// well.
    pub hears_all: bool,
    /// The incarnations of a loss that this node was told of and had no part in.
    pub told: Vec<Incarnation>,
    /// The loss after which this node goes on ([`super::loss`]); empty if there was none.
    pub lost: Vec<Incarnation>,
    /// The first round that began after every source had said how it stands.
    pub confirming: Option<u64>,
    pub sources: Vec<Source>,
    pub quorums: Quorums,
    /// This too must be met, or one that is whole has listed everything ([`super::gather`]).
    pub or_whole: Option<Quorum>,
    /// The intervals of the range that are not begun.
    intervals: VecDeque<(u64, u64)>,
    /// The first and last token of the interval under way; `None` when all is moved.
    pub interval: Option<(u64, u64)>,
    /// A quorum has listed everything of the interval before this cursor, and what was missing
    /// here is among the pulls or has arrived; `None` at the interval's end.
    pub gathered: Option<Cursor>,
    /// What is missing, in ring order.
    pub pulls: BTreeMap<Bytes, Pull>,
    /// How many keys are asked for in one fetch: about as many as fit the answer.
    fetch_keys: usize,
    has_progressed: bool,
    /// When it was last looked whether it gets on.
    checked_at: Time,
    stalls: u32,
}

impl Transfer {
    pub fn new(
        round: u64,
        since: ViewId,
        range: &Range,
        quorums: Quorums,
        forgot: bool,
    ) -> Transfer {
        let nodes: BTreeSet<NodeId> =
            quorums.iter().flat_map(|(nodes, _)| nodes).copied().collect();
        let mut transfer = Transfer {
            round,
            first_round: round,
            since,
            forgot,
            lasting: false,
            is_member_refill: false,
            hears_all: false,
            told: Vec::new(),
            lost: Vec::new(),
            confirming: None,
            sources: nodes.into_iter().map(|node| Source::new(node, Some(Cursor::at(0)))).collect(),
            quorums,
            or_whole: None,
            intervals: VecDeque::new(),
            interval: None,
            gathered: Some(Cursor::at(0)),
            pulls: BTreeMap::new(),
            fetch_keys: FETCH_KEYS_MIN,
            has_progressed: true,
            checked_at: Time(0),
            stalls: 0,
        };
        transfer.begin_intervals(range);
        transfer
    }

    /// Everything of the range is to be listed.
    pub fn begin_intervals(&mut self, range: &Range) {
        self.intervals = segments(range).collect();
        self.next_interval();
    }

    /// So many of those nodes too, some of whom may have left, or one of the others that is whole.
    pub fn or_whole(mut self, nodes: Vec<NodeId>, needed: usize) -> Transfer {
        for node in &nodes {
            if self.sources.iter().all(|source| source.node != *node) {
                self.sources.push(Source::new(*node, Some(Cursor::at(0))));
            }
        }
        self.or_whole = Some((nodes, needed));
        self.interval.into_iter().for_each(|(first, _)| self.begin_window(&Cursor::at(first)));
        self
    }

    /// One more that is asked. Returns whether it is new here, and there was room for it.
    pub fn add_source(&mut self, node: NodeId) -> bool {
        let is_known = self.sources.iter().any(|source| source.node == node);
        let is_added = !is_known && self.sources.len() < SOURCES_MAX;
        if is_added {
            self.sources.push(Source::new(node, self.gathered.clone()));
        }
        is_added
    }

    pub fn next_interval(&mut self) {
        self.interval = self.intervals.pop_front();
        if let Some((first, _)) = self.interval {
            self.begin_window(&Cursor::at(first));
        }
    }

    /// Everything of the interval before this cursor is here; `None` if all of it is.
    pub fn window(&self) -> Option<Cursor> {
        let first = self.pulls.first_key_value().map(|(key, _)| cursor_of(key));
        first.or_else(|| self.gathered.clone())
    }

    /// Lists anew from a cursor on.
    pub fn begin_window(&mut self, from: &Cursor) {
        self.gathered = Some(from.clone());
        self.pulls.clear();
        for source in &mut self.sources {
            source.listed.clear();
            source.next = Some(from.clone());
            source.asked = None;
            source.fetching = false;
            source.whole_from = None;
        }
    }

    /// Whether everything is here.
    pub fn is_done(&self) -> bool {
        // A group without others has no source to wait for.
        self.interval.is_none() || self.quorums.iter().all(|(_, needed)| *needed == 0)
    }

    /// About how much of the range is here, in per cent.
    pub fn percent(&self, range: &Range) -> u64 {
        let width = |(first, last): (u64, u64)| u128::from(last - first) + 1;
        let all: u128 = segments(range).map(width).sum();
        let waiting: u128 = self.intervals.iter().copied().map(width).sum();
        let left =
            |(_, last)| self.window().map_or(0, |window| width((window.token.min(last), last)));
        let left = self.interval.map_or(0, left);
        u64::try_from((all - (waiting + left).min(all)) * 100 / all).unwrap_or(100)
    }

    /// Takes in what a source listed, maybe as one that is whole; returns whether that was what it
    /// was asked for.
    pub fn list(
        &mut self,
        (from, is_whole): (NodeId, bool),
        bounds: Bounds,
        entries: Bytes,
    ) -> bool {
        let Some((_, last)) = self.interval else { return false };
        let Some(source) = self.sources.iter_mut().find(|source| source.node == from) else {
            return false;
        };
        if source.next.as_ref() != Some(&bounds.from) {
            return false;
        }
        let whole_from = source.whole_from.take().unwrap_or(bounds.from);
        source.whole_from = is_whole.then_some(whole_from);
        source.has_gathered |= is_whole;
        // Its range may be wider than the one that is moved.
        source.next = bounds.next.filter(|next| next.token <= last);
        let entries = page::entries(entries).map(|(key, record)| (key, record.head()));
        source.listed.extend(entries.filter(|(key, _)| token_of(key) <= last));
        self.has_progressed = true;
        true
    }

    /// What was listed up to there asks for: each key's newest head, and who holds it.
    pub fn gather(&mut self, reach: Option<&Cursor>) -> BTreeMap<Bytes, Pull> {
        let reach = reach.map(first_of);
        let mut newest: BTreeMap<Bytes, Pull> = BTreeMap::new();
        for source in &mut self.sources {
            let is_inside =
                |(key, _): &(Bytes, Head)| reach.as_ref().is_none_or(|reach| key < reach);
            while source.listed.front().is_some_and(is_inside) {
                let Some((key, head)) = source.listed.pop_front() else { break };
                let pull = newest.entry(key).or_insert_with(|| Pull {
                    head,
                    holders: Vec::new(),
                    asked: None,
                });
                if head.ts > pull.head.ts {
                    (pull.head, pull.holders) = (head, Vec::new());
                }
                if head.ts == pull.head.ts {
                    pull.holders.push(source.node);
                }
            }
        }
        newest
    }

    /// Adds to what is missing.
    pub fn pull(&mut self, pulls: BTreeMap<Bytes, Pull>) {
        for (key, pull) in pulls {
            match self.pulls.get_mut(&key) {
                None => {
                    self.pulls.insert(key, pull);
                }
                // A source that lags behind has listed a newer record; of an older one that is on
                // its way nothing is expected any more.
                Some(known) if pull.head.ts > known.head.ts => *known = pull,
                Some(known) if pull.head.ts == known.head.ts => known.holders.extend(pull.holders),
                Some(_) => {}
            }
        }
    }

    /// Who is asked for which records now: each goes to the holder with the least to do, of those
    /// that are idle.
    pub fn assign(&mut self, busy: &BTreeSet<NodeId>) -> BTreeMap<NodeId, Vec<(Bytes, Head)>> {
        let is_idle = |source: &&Source| !source.fetching && !busy.contains(&source.node);
        let idle = self.sources.iter().filter(is_idle);
        let mut asked: BTreeMap<NodeId, Vec<(Bytes, Head)>> =
            idle.map(|source| (source.node, Vec::new())).collect();
        let mut bytes: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (key, pull) in self.pulls.iter_mut().filter(|(_, pull)| pull.asked.is_none()) {
            let count = |node: &&NodeId| asked.get(*node).map_or(usize::MAX, Vec::len);
            let Some(&best) = pull.holders.iter().min_by_key(count) else { continue };
            let bytes = bytes.entry(best).or_default();
            match asked.get_mut(&best) {
                Some(keys) if keys.len() < self.fetch_keys && *bytes < PAGE_BYTES => {
                    *bytes += key.len();
                    keys.push((key.clone(), pull.head));
                    pull.asked = Some(best);
                }
                _ => {}
            }
        }
        asked.retain(|_, keys| !keys.is_empty());
        for source in &mut self.sources {
            source.fetching |= asked.contains_key(&source.node);
        }
        asked
    }

    /// A record arrived; returns whether it was asked for. What was not may be of a window that was
    /// begun anew: it is asked for again.
    pub fn take(&mut self, key: &Bytes, head: Head) -> bool {
        let is_asked = self.pulls.get(key).is_some_and(|pull| head.ts >= pull.head.ts);
        is_asked && self.pulls.remove(key).is_some()
    }

    /// Whether the next question to a source must wait until what it has sent is durable.
    pub fn must_wait(&mut self, node: NodeId) -> bool {
        let source = self.sources.iter_mut().find(|source| source.node == node);
        let waiting = source.filter(|source| source.sent_bytes >= FETCHED_AHEAD_BYTES_MAX);
        waiting.map(|source| source.sent_bytes = 0).is_some()
    }

    /// A source answered a fetch with so many records: what it left out is asked for again.
    pub fn fetched(&mut self, from: NodeId, keys: usize, bytes: usize) {
        let is_left_out = |pull: &&Pull| pull.asked == Some(from);
        let has_left_out = self.pulls.values().any(|pull| is_left_out(&pull));
        // Not many more than fit an answer, or most questions are asked in vain.
        let fitting = if has_left_out { keys + keys / 8 + 1 } else { self.fetch_keys * 2 };
        self.fetch_keys = fitting.clamp(FETCH_KEYS_MIN, FETCH_KEYS_MAX);
        if let Some(source) = self.sources.iter_mut().find(|source| source.node == from) {
            source.fetching = false;
            source.sent_bytes += bytes;
        }
        for pull in self.pulls.values_mut().filter(|pull| pull.asked == Some(from)) {
            pull.asked = None;
        }
        self.has_progressed = true;
    }

    /// Whether everything is here that was listed so far.
    pub fn has_all_listed(&self) -> bool {
        self.pulls.is_empty()
    }

    /// It waits for leave to fetch more, not for an answer.
    pub fn waits(&mut self) {
        self.has_progressed = true;
    }

    /// The repetition timer: whether the window must be begun anew.
    pub fn is_stuck(&mut self, now: Time) -> bool {
        if now < self.checked_at + REPEAT {
            return false;
        }
        self.checked_at = now;
        if core::mem::take(&mut self.has_progressed) {
            self.stalls = 0;
            return false;
        }
        self.stalls += 1;
        for source in &mut self.sources {
            (source.fetching, source.asked) = (false, None);
        }
        self.pulls.values_mut().for_each(|pull| pull.asked = None);
        self.stalls.is_multiple_of(STALLS_MAX)
    }
}
