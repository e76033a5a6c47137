//! Which requests a replica has done, and what came of them.
//!
//! A request that is sent to three nodes is three events. What counts is the first of them in the
//! order, at every replica; the others are told what it did. Without that a value would come back
//! that another client has replaced in between. Ids are forgotten when the order has gone on by the
//! window, so everywhere at the same event.

use super::range::Range;
use super::version::RequestId;
use crate::epidemic::keys::{id_key, id_of};
use crate::epto::{EventKey, LogicalTime};
use crate::slices::position::Position;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::mutant;
use quorate_kernel::plain::PlainData;
use quorate_kernel::rng::mix;
use serde::{Deserialize, Serialize};

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The event that did it.
    pub event: EventKey,
    /// Where its key stands.
    pub position: Position,
    /// Whether the key had a value before.
    pub existed: bool,
}

impl PlainData for Done {}

/// The requests of the window.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    done: BTreeMap<RequestId, Done>,
    order: BTreeSet<(EventKey, RequestId)>,
    /// What was done by this event or an earlier one is not remembered any more.
    forgotten: Option<EventKey>,
}

/// The most requests that are remembered: those of the last events.
pub const SEEN_MAX: usize = 1 << 18;

/// What shall be written: a key, and its value or none.
pub type Write = (Bytes, Option<Bytes>);

impl Seen {
    /// What came of a request; none if it was not done yet.
    #[must_use]
    pub fn get(&self, id: RequestId) -> Option<Done> {
        self.done.get(&id).copied()
    }

    /// A request was done, here or at another replica. Of two events that claim it the first in the
    /// order has done it.
    pub fn note(&mut self, id: RequestId, done: Done, writes: &mut Vec<Write>) {
        if mutant!("epidemic_rid_forgotten") {
            return;
        }
        if self.forgotten.is_some_and(|forgotten| done.event <= forgotten) {
            return;
        }
        if let Some(known) = self.done.get(&id) {
            if known.event <= done.event {
                return;
            }
            self.order.remove(&(known.event, id));
        }
        self.done.insert(id, done);
        self.order.insert((done.event, id));
        writes.push((id_key(id), Some(done.to_bytes())));
    }

    /// Reads one that is stored; returns whether it was one.
    pub fn load(&mut self, key: &[u8], value: &[u8]) -> bool {
        let Some(id) = id_of(key) else { return false };
        let done = Done::from_bytes(value).expect("this lane wrote it");
        self.done.insert(id, done);
        self.order.insert((done.event, id));
        true
    }

    /// Forgets what was done by events before this time.
    pub fn forget_before(&mut self, time: LogicalTime, writes: &mut Vec<Write>) {
        while let Some((event, id)) = self.order.first().copied() {
            if event.time >= time {
                break;
            }
            self.drop_one(event, id, writes);
        }
    }

    /// Forgets whole events, the earliest first, until no more requests are left than that. Members
    /// that have done the same events remember the same.
    pub fn forget_above(&mut self, count: usize, writes: &mut Vec<Write>) {
        while self.done.len() > count
            && let Some((event, id)) = self.order.first().copied()
        {
            self.forgotten = self.forgotten.max(Some(event));
            self.drop_one(event, id, writes);
            while let Some((same, id)) = self.order.first().copied().filter(|it| it.0 == event) {
                self.drop_one(same, id, writes);
            }
        }
    }

    /// Forgets what was done to keys of a range.
    pub fn forget_range(&mut self, range: &Range, writes: &mut Vec<Write>) {
        let gone = self.done.iter().filter(|(_, done)| range.has(done.position));
        let gone: Vec<_> = gone.map(|(id, done)| (done.event, *id)).collect();
        gone.into_iter().for_each(|(event, id)| self.drop_one(event, id, writes));
    }

    fn drop_one(&mut self, event: EventKey, id: RequestId, writes: &mut Vec<Write>) {
        self.order.remove(&(event, id));
        self.done.remove(&id);
        writes.push((id_key(id), None));
    }

    /// The newest of a range, newest first, before `below`.
    pub fn newest(
        &self,
        range: &Range,
        below: Option<EventKey>,
        count: usize,
    ) -> Vec<(RequestId, Done)> {
        let older = |(event, _): &&(EventKey, RequestId)| below.is_none_or(|below| *event < below);
        let newest = self.order.iter().rev().skip_while(|one| !older(one));
        let told = newest.map(|(_, id)| (*id, self.done[id]));
        told.filter(|(_, done)| range.has(done.position)).take(count).collect()
    }

    /// The newest of a range before `below`: so many at most, and all of each event, unless one has
    /// more than that alone. With it the last of these events, if more follow.
    pub fn page(
        &self,
        range: &Range,
        below: Option<EventKey>,
        count: usize,
    ) -> (Vec<(RequestId, Done)>, Option<EventKey>) {
        let mut newest = self.newest(range, below, count + 1);
        if newest.len() <= count {
            return (newest, None);
        }
        let next = newest.pop().expect("there is one too many").1.event;
        let whole = newest.iter().take_while(|(_, done)| done.event != next).count();
        newest.truncate(if whole == 0 { count } else { whole });
        let last = newest.last().map(|(_, done)| done.event);
        (newest, last)
    }

    /// A sum over the requests of a range.
    #[must_use]
    pub fn sum(&self, range: &Range) -> u64 {
        let in_range = self.done.iter().filter(|(_, done)| range.has(done.position));
        in_range.fold(0, |sum, (id, done)| {
            sum ^ mix((id.0 as u64) ^ mix((id.0 >> 64) as u64 ^ done.event.time.0))
        })
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert_eq!(self.done.len(), self.order.len(), "each is in the order once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::Incarnation;

    /// A page that ended within an event would lose the rest of it.
    #[test]
    fn a_page_ends_between_two_events() {
        let (mut seen, mut writes) = (Seen::default(), Vec::new());
        for id in 0..10_u128 {
            let time = LogicalTime(1 + id as u64 / 4);
            let event = EventKey { time, source: Incarnation::default() };
            let done = Done { event, position: Position(0), existed: false };
            seen.note(RequestId(id), done, &mut writes);
        }
        let (mut all, mut below, mut pages) = (Vec::new(), None, 0);
        loop {
            let (page, rest) = seen.page(&Range::ALL, below, 5);
            all.extend(page);
            (below, pages) = (rest, pages + 1);
            if rest.is_none() {
                break;
            }
        }
        let mut ids: Vec<u128> = all.iter().map(|(id, _)| id.0).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..10).collect::<Vec<_>>());
        assert_eq!(pages, 3);
        assert_eq!(seen.page(&Range::ALL, None, 2).0.len(), 2, "of a longer event only a part");
    }

    /// An event may hold hundreds of requests: a window of time alone is no bound.
    #[test]
    fn of_many_requests_those_of_the_last_events_are_remembered() {
        let (mut seen, mut writes) = (Seen::default(), Vec::new());
        let done = |id: u128| {
            let time = LogicalTime(1 + id as u64 / 4);
            let event = EventKey { time, source: Incarnation::default() };
            Done { event, position: Position(0), existed: false }
        };
        (0..20).for_each(|id| seen.note(RequestId(id), done(id), &mut writes));
        seen.forget_above(10, &mut writes);
        assert_eq!(seen.len(), 8, "an event is remembered whole, or not at all");
        assert_eq!(seen.get(RequestId(12)), Some(done(12)));
        seen.note(RequestId(3), done(3), &mut writes);
        assert!(seen.get(RequestId(3)).is_none(), "another one still remembers it");
        seen.note(RequestId(3), done(20), &mut writes);
        assert_eq!(seen.len(), 9, "done by a later event it is new");
        seen.check();
    }
}
