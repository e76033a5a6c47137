//! The operations of one connection that have not ended, and the order among those of one key.
//!
//! Operations of one key form a chain and run one after the other; those of different keys run at
//! once. One over several keys stands in the chain of each: it starts when those before it in all
//! of them have ended, and those behind it in any wait for it. Keys are told apart by a 64-bit
//! hash: two that collide wait for each other needlessly, which changes no result.

use super::delay::Delay;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hasher};
use hashbrown::HashMap;
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::mix;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::Item;

/// No slot.
const NONE: u16 = u16::MAX;

/// Takes a hash as it is. The order of the map is never looked at.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only whole 64-bit hashes are keys of this map")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A place in the chain of a key.
#[derive(Debug)]
struct Link {
    hash: u64,
    /// The next operation of the same key.
    next: u16,
}

/// How many links a slot keeps room for between two operations.
const LINKS_KEPT: usize = 8;

#[derive(Debug, Default)]
struct Slot {
    /// Raised at each use, so that an outcome that comes twice is told from a new operation's.
    generation: u16,
    is_used: bool,
    is_started: bool,
    is_read: bool,
    command: u32,
    index: u32,
    lane: LaneId,
    /// One for each of its keys.
    links: Vec<Link>,
    /// In how many chains another one is before it.
    waits: u32,
    /// Of one with items the key of each, in their order.
    items: Vec<u64>,
    parked: Option<(Operation, Option<Delay>)>,
}

/// An operation that ended: which of which command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The number of the command.
    pub(crate) command: u32,
    /// The number of the operation within the command.
    pub(crate) index: u32,
    /// Whether it was a read.
    pub(crate) is_read: bool,
    /// The first of its keys, as [`hash`] has it.
    pub(crate) key: Option<u64>,
    /// The key of each of its items, if it has items.
    pub(crate) items: Vec<u64>,
}

/// The operations that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// The last operation of each key.
    tails: HashMap<u64, u16, BuildHasherDefault<AsIs>>,
    /// Those whose turn has come and that were not started.
    ready: VecDeque<u16>,
    count: usize,
    started: usize,
    reads: usize,
}

impl Flights {
    /// How many have not ended.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether all have ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many were started and have not ended.
    pub(crate) fn started(&self) -> usize {
        self.started
    }

    /// How many of the started ones read.
    pub(crate) fn reads(&self) -> usize {
        self.reads
    }

    /// Whether one could start but was not started.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Adds an operation behind the earlier ones of its keys. If it may start at once and
    /// `may_start` allows, it is given back with its number and counts as started; else it is kept.
    pub(crate) fn add(
        &mut self,
        command: u32,
        index: u32,
        lane: LaneId,
        (operation, delay): (Operation, Option<Delay>),
        may_start: bool,
    ) -> Option<(u32, Operation)> {
        let at = self.slot();
        for key in operation.keys() {
            self.join(at, hash(lane, key));
        }
        let slot = &mut self.slots[usize::from(at)];
        slot.generation = slot.generation.wrapping_add(1);
        slot.is_used = true;
        slot.is_started = false;
        slot.is_read = brings_values(&operation);
        if let Operation::Transact { items, .. } = &operation {
            slot.items = items.iter().map(|item| hash(lane, item.key())).collect();
        }
        (slot.command, slot.index, slot.lane) = (command, index, lane);
        let waits = slot.waits > 0;
        self.count += 1;
        if !waits && may_start && self.ready.is_empty() {
            return Some((self.started_now(at), operation));
        }
        self.slots[usize::from(at)].parked = Some((operation, delay));
        if !waits {
            self.ready.push_back(at);
        }
        None
    }

    /// Puts an operation at the end of the chain of a key.
    fn join(&mut self, at: u16, hash: u64) {
        let before = self.tails.insert(hash, at);
        if before == Some(at) {
            // It names the key twice.
            return;
        }
        if let Some(before) = before {
            let links = &mut self.slots[usize::from(before)].links;
            let link = links.iter_mut().find(|link| link.hash == hash);
            link.expect("the last of a chain has a place in it").next = at;
        }
        let slot = &mut self.slots[usize::from(at)];
        slot.waits += u32::from(before.is_some());
        slot.links.push(Link { hash, next: NONE });
    }

    fn slot(&mut self) -> u16 {
        self.free.pop().unwrap_or_else(|| {
            assert!(self.slots.len() < usize::from(NONE), "a connection has bounded operations");
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u16
        })
    }

    fn started_now(&mut self, at: u16) -> u32 {
        let slot = &mut self.slots[usize::from(at)];
        slot.is_started = true;
        self.started += 1;
        self.reads += usize::from(slot.is_read);
        u32::from(slot.generation) << 16 | u32::from(at)
    }

    /// Takes the next operation whose turn has come; it counts as started, and so do ends of keys
    /// that count from its beginning.
    pub(crate) fn start_next(&mut self, now: WallTime) -> Option<(u32, LaneId, Operation)> {
        let at = self.ready.pop_front()?;
        let number = self.started_now(at);
        let slot = &mut self.slots[usize::from(at)];
        let parked = slot.parked.take();
        let (mut operation, delay) = parked.expect("a ready one was parked when it was added");
        delay.inspect(|delay| delay.pass(&mut operation, now));
        Some((number, slot.lane, operation))
    }

    /// An operation has ended; the next one of each of its keys becomes ready if it waits for
    /// nothing else. `None` if no operation of
    /// this number is started, as when an outcome comes twice.
    pub(crate) fn end(&mut self, number: u32) -> Option<Ended> {
        let at = number as u16;
        let slot = self.slots.get_mut(usize::from(at))?;
        let is_current = u32::from(slot.generation) == number >> 16;
        if !(slot.is_used && slot.is_started && is_current) {
            return None;
        }
        slot.is_used = false;
        let (command, index, is_read) = (slot.command, slot.index, slot.is_read);
        let key = slot.links.first().map(|link| link.hash);
        let items = core::mem::take(&mut slot.items);
        let ended = Ended { command, index, is_read, key, items };
        let mut links = core::mem::take(&mut slot.links);
        for Link { hash, next } in links.drain(..) {
            if next == NONE {
                self.tails.remove(&hash);
                continue;
            }
            let next_slot = &mut self.slots[usize::from(next)];
            next_slot.waits -= 1;
            if next_slot.waits == 0 {
                self.ready.push_back(next);
            }
        }
        links.shrink_to(LINKS_KEPT);
        self.slots[usize::from(at)].links = links;
        self.free.push(at);
        self.count -= 1;
        self.started -= 1;
        self.reads -= usize::from(ended.is_read);
        Some(ended)
    }
}

/// Whether values may come with the outcome.
fn brings_values(operation: &Operation) -> bool {
    match operation {
        Operation::Transact { items, .. } => {
            items.iter().any(|item| matches!(item, Item::Get { .. }))
        }
        other => !other.is_write(),
    }
}

/// A hash of a key in a lane, eight bytes at a time.
pub(crate) fn hash(lane: LaneId, key: &[u8]) -> u64 {
    let mut sum = mix(u64::from(lane.0) << 32 ^ key.len() as u64);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        sum = mix(sum ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(sum ^ u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn get(key: &'static str) -> Operation {
        Operation::get(Bytes::from_static(key.as_bytes()))
    }

    #[test]
    fn one_key_in_order_and_others_at_once() {
        let mut flights = Flights::default();
        let add = |flights: &mut Flights, command, key| {
            flights.add(command, 0, LaneId(1), (get(key), None), true).map(|(number, _)| number)
        };
        let first = add(&mut flights, 0, "a").expect("nothing is before it");
        assert_eq!(add(&mut flights, 1, "a"), None);
        let other = add(&mut flights, 2, "b").expect("another key");
        assert_eq!(add(&mut flights, 3, "a"), None);
        assert!(flights.start_next(WallTime::default()).is_none());
        assert_eq!(flights.end(first).map(|ended| ended.command), Some(0));
        assert_eq!(flights.end(first), None, "an outcome that comes twice is ignored");
        let (second, _, operation) =
            flights.start_next(WallTime::default()).expect("its turn has come");
        assert_eq!(operation, get("a"));
        assert_eq!(flights.end(other).map(|ended| ended.command), Some(2));
        assert_eq!(flights.end(second).map(|ended| ended.command), Some(1));
        let (third, ..) = flights.start_next(WallTime::default()).expect("its turn has come");
        assert_eq!((flights.len(), flights.started(), flights.reads()), (1, 1, 1));
        assert_eq!(flights.end(third).map(|ended| ended.command), Some(3));
        assert!(flights.is_empty());
        assert!(flights.tails.is_empty());
    }

    #[test]
    fn one_over_several_keys_waits_for_all_of_them_and_others_for_it() {
        let mut flights = Flights::default();
        let several = |keys: &[&'static str]| {
            let key = |key: &&'static str| Item::Get { key: Bytes::from_static(key.as_bytes()) };
            Operation::Transact { items: keys.iter().map(key).collect(), name: None }
        };
        let add = |flights: &mut Flights, command, operation| {
            flights.add(command, 0, LaneId(1), (operation, None), true).map(|(number, _)| number)
        };
        let start = |flights: &mut Flights| {
            flights.start_next(WallTime::default()).map(|(number, ..)| number)
        };
        let a = add(&mut flights, 0, get("a")).expect("nothing is before it");
        let b = add(&mut flights, 1, get("b")).expect("nothing is before it");
        let both = several(&["a", "b", "a"]);
        assert_eq!(add(&mut flights, 2, both.clone()), None);
        assert_eq!(add(&mut flights, 3, get("b")), None);
        assert_eq!(add(&mut flights, 4, several(&["c", "a"])), None);
        let c = add(&mut flights, 5, get("c"));
        assert_eq!(c, None, "it is behind one that waits");
        let d = add(&mut flights, 6, get("d")).expect("another key");
        assert!(flights.end(a).is_some() && flights.end(d).is_some());
        assert_eq!(start(&mut flights), None, "b has not ended");
        assert!(flights.end(b).is_some());
        let (first, _, operation) =
            flights.start_next(WallTime::default()).expect("both have ended");
        assert_eq!(operation, both);
        assert_eq!(start(&mut flights), None, "the next ones wait for it");
        assert_eq!(flights.end(first).map(|ended| ended.command), Some(2));
        let next = [start(&mut flights), start(&mut flights)].map(|next| next.expect("ready"));
        assert_eq!(start(&mut flights), None);
        let ended = next.map(|number| flights.end(number).map(|ended| ended.command));
        assert_eq!(ended, [Some(4), Some(3)], "as they stand at its keys");
        let last = start(&mut flights).expect("it was behind the second");
        assert_eq!(flights.end(last).map(|ended| ended.command), Some(5));
        assert!(flights.is_empty() && flights.tails.is_empty());
    }

    #[test]
    fn what_may_not_start_waits_in_line() {
        let mut flights = Flights::default();
        assert_eq!(flights.add(0, 0, LaneId(1), (get("a"), None), false), None);
        assert!(flights.has_ready());
        assert_eq!(
            flights.add(1, 0, LaneId(1), (get("b"), None), true),
            None,
            "it must not overtake"
        );
        let order =
            [flights.start_next(WallTime::default()), flights.start_next(WallTime::default())]
                .map(|next| next.map(|it| it.2));
        assert_eq!(order, [Some(get("a")), Some(get("b"))]);
    }

    #[test]
    fn keys_and_lanes_are_told_apart() {
        let hashes = [
            hash(LaneId(1), b""),
            hash(LaneId(2), b""),
            hash(LaneId(1), b"a"),
            hash(LaneId(1), b"a\0"),
            hash(LaneId(1), b"12345678"),
            hash(LaneId(1), b"123456789"),
        ];
        for (n, one) in hashes.iter().enumerate() {
            assert!(!hashes[..n].contains(one));
        }
    }
}
