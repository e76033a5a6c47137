//! Which requests a replica has done, and what came of them.
//!
//! A request that is sent to three nodes is three events. What counts is the first of them in the
//! order, at every replica; the others are told what it did. Without that a value would come back
//! that another client has replaced in between. Ids are forgotten when the order has gone on by the
//! window, so everywhere at the same event, and the earliest of too many. So a request that is sent
//! again tells since when it may have been done: who has forgotten events from then on cannot tell
//! whether it was, and refuses it.

use super::range::{Leaf, Range, leaf};
use super::version::RequestId;
use crate::epidemic::keys::{FORGOTTEN, id_key, id_of};
use crate::epto::{EventKey, LogicalTime};
use crate::slices::position::Position;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
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
    /// Nor is what was done before this time.
    before: LogicalTime,
    /// The sum of each leaf that has any, and of each 256 leaves.
    sums: BTreeMap<Leaf, u64>,
    pages: BTreeMap<u8, u64>,
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
        let is_forgotten = self.forgotten.is_some_and(|forgotten| done.event <= forgotten);
        if is_forgotten || done.event.time < self.before {
            return;
        }
        if let Some(known) = self.done.get(&id).copied() {
            if known.event <= done.event {
                return;
            }
            self.take_out(id, known);
        }
        self.put_in(id, done);
        writes.push((id_key(id), Some(done.to_bytes())));
    }

    fn put_in(&mut self, id: RequestId, done: Done) {
        self.done.insert(id, done);
        self.order.insert((done.event, id));
        self.fold(id, done);
    }

    fn take_out(&mut self, id: RequestId, done: Done) {
        self.done.remove(&id);
        self.order.remove(&(done.event, id));
        self.fold(id, done);
    }

    /// Puts a request into the sums, or takes it out again.
    fn fold(&mut self, id: RequestId, done: Done) {
        let (word, leaf) = (word(id, done), leaf(done.position));
        fold_into(&mut self.sums, leaf, word);
        fold_into(&mut self.pages, page_of(leaf), word);
    }

    /// Whether a request that is not known may have been done by an event behind this time all the
    /// same.
    #[must_use]
    pub fn may_have_forgotten(&self, since: LogicalTime) -> bool {
        self.before > since || self.forgotten.is_some_and(|forgotten| forgotten.time > since)
    }

    /// Up to which event requests were forgotten because there were too many.
    #[must_use]
    pub fn forgotten(&self) -> Option<EventKey> {
        self.forgotten
    }

    /// Reads one that is stored; returns whether it was one.
    pub fn load(&mut self, key: &[u8], value: &[u8]) -> bool {
        if key == &FORGOTTEN[..] {
            self.forgotten = Some(EventKey::from_bytes(value).expect("this lane wrote it"));
            return true;
        }
        let Some(id) = id_of(key) else { return false };
        let done = Done::from_bytes(value).expect("this lane wrote it");
        self.put_in(id, done);
        true
    }

    /// Forgets what was done by events before this time.
    pub fn forget_before(&mut self, time: LogicalTime, writes: &mut Vec<Write>) {
        self.before = self.before.max(time);
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
        let too_many = self.done.len().saturating_sub(count);
        let last = too_many.checked_sub(1).and_then(|place| self.order.iter().nth(place).copied());
        self.forget_up_to(last.map(|(event, _)| event), writes);
    }

    /// Forgets what was done by this event and earlier ones, as another member has.
    pub fn forget_up_to(&mut self, event: Option<EventKey>, writes: &mut Vec<Write>) {
        let Some(last) = event.filter(|_| event > self.forgotten) else { return };
        self.forgotten = event;
        writes.push((FORGOTTEN, Some(last.to_bytes())));
        while let Some((event, id)) = self.order.first().copied().filter(|one| one.0 <= last) {
            self.drop_one(event, id, writes);
        }
    }

    /// Forgets what was done to keys of a range.
    pub fn forget_range(&mut self, range: &Range, writes: &mut Vec<Write>) {
        let gone = self.done.iter().filter(|(_, done)| range.has(done.position));
        let gone: Vec<_> = gone.map(|(id, done)| (done.event, *id)).collect();
        gone.into_iter().for_each(|(event, id)| self.drop_one(event, id, writes));
    }

    fn drop_one(&mut self, event: EventKey, id: RequestId, writes: &mut Vec<Write>) {
        let done = self.done[&id];
        debug_assert_eq!(done.event, event, "the order names what was done");
        self.take_out(id, done);
        writes.push((id_key(id), None));
    }

    /// The newest of a range, newest first, before `below`.
    pub fn newest(
        &self,
        range: &Range,
        below: Option<EventKey>,
        count: usize,
    ) -> Vec<(RequestId, Done)> {
        let first = below.map(|below| (below, RequestId(0)));
        let end = first.map_or(Bound::Unbounded, Bound::Excluded);
        let newest = self.order.range((Bound::Unbounded, end)).rev();
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

    /// A sum over the requests of a range of whole leaves. It is kept, not reckoned: members
    /// compare it every few rounds, and remember many.
    #[must_use]
    pub fn sum(&self, range: &Range) -> u64 {
        let (first, last) = range.leaves();
        let (from, to) = (page_of(first), page_of(last));
        let ends = [from, to].into_iter().take(if from == to { 1 } else { 2 });
        let of_page = |page: u8| {
            let page = u16::from(page) << 8;
            let leaves = Leaf(page).max(first)..=Leaf(page | 0xff).min(last);
            self.sums.range(leaves).fold(0, |sum, (_, word)| sum ^ word)
        };
        let between = self.pages.iter().filter(|(page, _)| (from..to).contains(page));
        let between = between.filter(|(page, _)| **page != from);
        between.map(|(_, word)| *word).chain(ends.map(of_page)).fold(0, |sum, word| sum ^ word)
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
        assert!(self.sums.len() <= self.done.len(), "a sum is of what is there");
        assert!(self.pages.len() <= self.sums.len(), "a page has leaves");
    }
}

fn word(id: RequestId, done: Done) -> u64 {
    mix((id.0 as u64) ^ mix((id.0 >> 64) as u64 ^ done.event.time.0))
}

fn page_of(leaf: Leaf) -> u8 {
    leaf.0.to_be_bytes()[0]
}

fn fold_into<K: Ord + Copy>(sums: &mut BTreeMap<K, u64>, at: K, word: u64) {
    let known = sums.entry(at).or_insert(0);
    *known ^= word;
    if *known == 0 {
        sums.remove(&at);
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
        // Event 3 was the last to be forgotten, at its time; a start knows that, too.
        let mut again = Seen::default();
        let stored = writes.iter().rev().find(|(key, _)| key == &FORGOTTEN).cloned();
        let (key, value) = stored.expect("what was forgotten is stored");
        assert!(again.load(&key, &value.expect("it is never removed")));
        for seen in [&seen, &again] {
            let knows = |since| !seen.may_have_forgotten(LogicalTime(since));
            assert!(knows(3) && !knows(2) && !knows(0));
        }
        assert!(!Seen::default().may_have_forgotten(LogicalTime(0)), "all is remembered");
    }

    #[test]
    fn what_another_member_has_forgotten_is_forgotten_and_not_taken_again() {
        let (mut seen, mut writes) = (Seen::default(), Vec::new());
        let event = |time| EventKey { time: LogicalTime(time), source: Incarnation::default() };
        let done = |time| Done { event: event(time), position: Position(0), existed: false };
        (1..9).for_each(|id| seen.note(RequestId(u128::from(id)), done(id), &mut writes));
        seen.forget_up_to(Some(event(5)), &mut writes);
        seen.forget_up_to(Some(event(2)), &mut writes);
        assert_eq!((seen.len(), seen.forgotten()), (3, Some(event(5))));
        seen.forget_before(LogicalTime(8), &mut writes);
        assert!(seen.may_have_forgotten(LogicalTime(7)), "time passes too");
        seen.note(RequestId(7), done(7), &mut writes);
        assert_eq!(seen.len(), 1);
        seen.check();
    }

    /// Sums that are kept are those of what is there, whatever the range.
    #[test]
    fn sums_are_those_of_what_is_known() {
        let (mut seen, mut writes) = (Seen::default(), Vec::new());
        let mut rng = quorate_kernel::rng::Rng::new(3);
        for step in 0..4_000_u64 {
            let source = Incarnation::default();
            let event = EventKey { time: LogicalTime(1 + rng.below(900)), source };
            // Some leaves have many.
            let position = Position(rng.next() >> (rng.below(4) * 5));
            let done = Done { event, position, existed: false };
            seen.note(RequestId(u128::from(rng.below(2_000))), done, &mut writes);
            match step % 500 {
                100 => seen.forget_above(600, &mut writes),
                200 => seen.forget_before(LogicalTime(step / 20), &mut writes),
                300 => seen.forget_range(&Range::of_leaf(Leaf(3)), &mut writes),
                _ => {}
            }
        }
        seen.check();
        assert!(seen.len() > 300);
        let parts = [Leaf(0), Leaf(7), Leaf(255), Leaf(256), Leaf(1 << 12), Leaf(u16::MAX)];
        for (from, first) in parts.iter().enumerate() {
            for last in &parts[from..] {
                let first = Range::of_leaf(*first).first;
                let range = Range { first, last: Range::of_leaf(*last).last };
                let there = seen.done.iter().filter(|(_, done)| range.has(done.position));
                let sum = there.fold(0, |sum, (id, done)| sum ^ word(*id, *done));
                assert_eq!(seen.sum(&range), sum, "{range:?}");
            }
        }
        let all = seen.newest(&Range::ALL, None, usize::MAX);
        let below = Some(all[40].1.event);
        let older: Vec<_> = all.iter().filter(|(_, done)| Some(done.event) < below).collect();
        assert_eq!(seen.newest(&Range::ALL, below, 5).iter().collect::<Vec<_>>(), older[..5]);
    }
}
