//! Holes: events that a node has missed, and what it does about them.
//!
//! Sources count their events, so a node sees that one is missing when a later one of the same
//! source is delivered. It asks members of its slice what the missing ones did to their range.
//! Until it knows, reads wait; if nobody has said it in time they are answered, and say so
//! ([`Doubt`](crate::epidemic::repair::doubt::Doubt)). A read waits for the holes that were known
//! when it began: where others are found all the time it would wait for ever for those.

use crate::epidemic::message::{Came, Found, LISTED_MAX, Message, PAGE_BYTES, RECORDS_MAX};
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epidemic::{Context, Epidemic};
use crate::epto::{EventKey, Sequence};
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::{invariant, mutant, probe};

/// The most holes that are known at a time.
const HOLES_MAX: usize = 4096;
/// How many events a member remembers what they did.
const DELIVERED_MAX: usize = 4096;
/// The most reads that wait.
const HELD_MAX: usize = 4096;
/// The most bytes that they have, with what is answered.
const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// For how many rounds reads wait for a hole to be filled.
pub const WAIT_ROUNDS: u64 = 12;

/// An event by its source and its place there.
pub type Place = (Incarnation, Sequence);

/// What an event did here.
#[derive(Clone, Debug, Default)]
pub struct Delivered {
    /// The range that this node had when it delivered it.
    range: Option<Range>,
    written: Vec<(Bytes, RequestId)>,
}

impl Delivered {
    /// Nothing so far, in this range.
    #[must_use]
    pub fn of(range: Option<Range>) -> Delivered {
        Delivered { range, written: Vec::new() }
    }

    /// It wrote a key.
    pub fn note(&mut self, key: Bytes, id: RequestId) {
        self.written.push((key, id));
    }
}

/// A read that waits.
#[derive(Clone, Debug)]
pub struct HeldRead {
    /// At which event it reads.
    pub event: EventKey,
    /// The request.
    pub id: RequestId,
    /// Its key.
    pub key: Bytes,
    /// What is answered, as far as is known.
    pub came: Came,
    /// In which round it began: it waits for no hole that was found later.
    pub round: u64,
}

impl HeldRead {
    /// Takes what was found of its key, if that is newer and has room.
    fn take(&mut self, record: &Record, room: usize) {
        let Came::Read { version, value, .. } = &mut self.came else { return };
        if Some(record.version) > *version {
            (*version, *value) = (Some(record.version), record.value.clone());
        }
        if self.bytes() > room {
            self.came = Came::Overloaded;
        }
    }

    fn bytes(&self) -> usize {
        let value = match &self.came {
            Came::Read { value: Some(value), .. } => value.len(),
            _ => 0,
        };
        size_of::<HeldRead>() + self.key.len() + value
    }
}

/// What is missing, and what waits for it.
#[derive(Clone, Debug, Default)]
pub struct Holes {
    /// By their round of discovery.
    open: BTreeMap<Place, u64>,
    held: Vec<HeldRead>,
    held_bytes: usize,
    delivered: BTreeMap<Place, Delivered>,
    order: VecDeque<Place>,
}

impl Holes {
    /// Whether something is missing that others may have.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// A read waits; returns whether there was room.
    #[must_use]
    pub fn hold(&mut self, read: HeldRead) -> bool {
        let bytes = self.held_bytes + read.bytes();
        let is_small = bytes <= HELD_BYTES_MAX || mutant!("epidemic_held_without_bound");
        let has_room = self.held.len() < HELD_MAX && is_small;
        if has_room {
            self.held_bytes = bytes;
            self.held.push(read);
        }
        has_room
    }

    /// The events of which it is known what they did.
    #[cfg(test)]
    pub fn places(&self) -> Vec<Place> {
        self.delivered.keys().copied().collect()
    }

    /// How many reads wait.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes out the reads that wait for nothing any more.
    fn take_free(&mut self) -> Vec<HeldRead> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let first = self.open.values().min().copied();
        let waits = |read: &HeldRead| match first {
            Some(_) if mutant!("epidemic_waits_for_later_holes") => true,
            Some(first) => first <= read.round,
            None => false,
        };
        let held = core::mem::take(&mut self.held);
        let (held, free) = held.into_iter().partition(waits);
        self.held = held;
        self.held_bytes = self.held.iter().map(HeldRead::bytes).sum();
        free
    }

    /// An event was delivered.
    pub fn delivered(&mut self, place: Place, delivered: Delivered) {
        self.open.remove(&place);
        if self.delivered.insert(place, delivered).is_none() {
            self.order.push_back(place);
        }
        while self.order.len() > DELIVERED_MAX {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.delivered.remove(&oldest));
        }
    }

    /// Everything begins anew: the place in the order was lost.
    pub fn clear(&mut self) {
        *self = Holes::default();
    }

    /// Reads that wait are answered by what was found of their key. What may have replaced that
    /// is no answer: others have one.
    pub fn found(&mut self, record: &Record) {
        let bytes = &mut self.held_bytes;
        self.held.retain_mut(|read| {
            if read.key != record.key {
                return true;
            }
            *bytes -= read.bytes();
            if record.version > Version::Ordered(read.event) {
                return false;
            }
            read.take(record, HELD_BYTES_MAX.saturating_sub(*bytes));
            *bytes += read.bytes();
            true
        });
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.open.len() <= HOLES_MAX && self.held.len() <= HELD_MAX, "holes are bounded");
        assert!(self.is_open() || self.held.is_empty(), "nothing waits for no hole");
        assert!(self.held_bytes <= HELD_BYTES_MAX, "what waits is bounded");
        let bytes: usize = self.held.iter().map(HeldRead::bytes).sum();
        assert_eq!(self.held_bytes, bytes, "what waits is counted");
        assert_eq!(self.delivered.len(), self.order.len(), "each is remembered once");
    }
}

impl Epidemic {
    /// Events of a source are missing here.
    pub(in crate::epidemic) fn on_hole(
        &mut self,
        source: Incarnation,
        first: Sequence,
        last: Sequence,
    ) {
        invariant!(first <= last, "something is missing");
        let round = self.state.round;
        for number in first.0..=last.0 {
            let state = &mut self.state;
            let place = (source, Sequence(number));
            if state.holes.delivered.contains_key(&place) {
                continue;
            }
            if state.holes.open.len() >= HOLES_MAX {
                probe!("epidemic/holes_full");
                self.doubt_all();
                break;
            }
            // One that is found again is as old as it was.
            if let Entry::Vacant(hole) = state.holes.open.entry(place) {
                probe!("epidemic/hole");
                hole.insert(round);
                state.counters.holes += 1;
            }
        }
        invariant!(self.state.holes.open.len() <= HOLES_MAX, "holes are bounded");
    }

    /// Something is missing for good: whatever this node has may be older than what others have.
    fn doubt_all(&mut self) {
        let range = self.state.range().unwrap_or(Range::ALL);
        self.state.doubt.begin(&range);
    }

    /// A round has passed: who may know is asked, and what nobody has said in time is given up.
    pub(in crate::epidemic) fn on_holes_round(&mut self, cx: &mut Context<'_>) {
        let round = self.state.round;
        let state = &mut self.state;
        let before = state.holes.open.len();
        state.holes.open.retain(|_, since| round < *since + WAIT_ROUNDS);
        let given_up = before - state.holes.open.len();
        if given_up > 0 {
            probe!("epidemic/hole_given_up");
            state.counters.given_up += given_up as u64;
            self.doubt_all();
        }
        let state = &mut self.state;
        let wanted: Vec<Place> = state.holes.open.keys().take(RECORDS_MAX).copied().collect();
        if let Some(member) = state.member(cx.rng).filter(|_| !wanted.is_empty()) {
            // A question promises nothing.
            cx.fx.send_early(member, Message::MissingA(wanted));
        }
        self.release(cx);
    }

    /// A member asks what events did here.
    pub(in crate::epidemic) fn on_missing(
        &mut self,
        from: Incarnation,
        wanted: &[Place],
        cx: &mut Context<'_>,
    ) {
        invariant!(wanted.len() <= RECORDS_MAX, "a question is bounded");
        let (mut found, mut bytes) = (Vec::new(), 0);
        for place in wanted {
            let Some(delivered) = self.state.holes.delivered.get(place) else { continue };
            // Those that have no room are asked for again.
            if bytes >= PAGE_BYTES {
                break;
            }
            found.push(self.found_of(*place, delivered, &mut bytes, cx));
        }
        invariant!(found.len() <= wanted.len(), "only what was asked for is told");
        if !found.is_empty() {
            cx.fx.send(from, Message::MissingB(found));
        }
    }

    /// What an event did here, with as many records as there is room for.
    fn found_of(
        &self,
        (source, sequence): Place,
        delivered: &Delivered,
        bytes: &mut usize,
        cx: &Context<'_>,
    ) -> Found {
        let state = &self.state;
        let (mut records, mut left, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (key, id) in &delivered.written {
            ids.extend(state.seen.get(*id).map(|done| (*id, done)));
            let Some(held) = state.store.held(key, None) else { continue };
            *bytes += key.len();
            if *bytes >= PAGE_BYTES {
                left.push((key.clone(), held.version));
                continue;
            }
            let record = state.store.record(key, held.version, cx.table).expect("it is held");
            *bytes += record.value.as_ref().map_or(0, Bytes::len);
            records.push(record);
        }
        let range = delivered.range;
        let heard = self.heard_of(delivered.written.iter().map(|(key, _)| key));
        Found { source, sequence, range, heard, records, left, ids }
    }

    /// What the missing events did.
    pub(in crate::epidemic) fn on_found(
        &mut self,
        from: Incarnation,
        found: Vec<Found>,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let mut wanted = Vec::new();
        for found in found {
            if self.is_late(found.heard) {
                continue;
            }
            self.merge_answer(found.heard, found.records, found.ids);
            // Who has a narrower slice does not know what the event did to the rest of this one.
            let covers = |range: Range| found.range.is_some_and(|told| told.covers(&range));
            let is_all = self.state.range().is_some_and(covers) || mutant!("epidemic_part_is_all");
            let state = &self.state;
            // Its slice may have been wider at who tells it.
            let has = |(key, version): &(Bytes, Version)| {
                !state.is_mine(position(key))
                    || state.store.held(key, None).is_some_and(|held| held.version >= *version)
            };
            let before = wanted.len();
            wanted.extend(found.left.into_iter().filter(|left| !has(left)));
            let is_whole = wanted.len() == before;
            let place = (found.source, found.sequence);
            if is_all && is_whole && self.state.holes.open.remove(&place).is_some() {
                probe!("epidemic/hole_filled");
                self.state.counters.filled += 1;
            }
        }
        self.flush(cx);
        if !wanted.is_empty() {
            probe!("epidemic/hole_in_parts");
            wanted.truncate(LISTED_MAX);
            let (page, records, ids) = (None, Vec::new(), Vec::new());
            let heard = self.heard_of(core::iter::empty());
            // A question promises nothing.
            cx.fx.send_early(from, Message::Records { page, heard, records, ids, wanted });
        }
        self.release(cx);
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// Answers the reads of which nothing is missing any more that was when they began.
    fn release(&mut self, cx: &mut Context<'_>) {
        let members = self.state.told_size();
        for mut read in self.state.holes.take_free() {
            if let Came::Read { is_degraded, .. } = &mut read.came {
                // What was found missing since may come before it.
                *is_degraded = self.state.is_degraded(&read.key) || self.state.holes.is_open();
            }
            let results = Vec::from([(read.id, read.came)]);
            let event = read.event;
            cx.fx.send(event.source, Message::Did { event, members, results });
        }
    }
}
