//! The operations of one connection that have not ended, and the order among those of one key.
//!
//! Operations of one key form a chain and run one after the other; those of different keys run at
//! once. Keys are told apart by a 64-bit hash: two that collide wait for each other needlessly,
//! which changes no result.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hasher};
use hashbrown::HashMap;
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::mix;

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
    hash: Option<u64>,
    /// The next operation of the same key.
    next: u16,
    parked: Option<Operation>,
}

/// An operation that ended: which of which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The number of the command.
    pub(crate) command: u32,
    /// The number of the operation within the command.
    pub(crate) index: u32,
    /// Whether it was a read.
    pub(crate) is_read: bool,
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

    /// Adds an operation behind the earlier ones of its key. If it may start at once and
    /// `may_start` allows, it is given back with its number and counts as started; else it is kept.
    pub(crate) fn add(
        &mut self,
        command: u32,
        index: u32,
        lane: LaneId,
        operation: Operation,
        may_start: bool,
    ) -> Option<(u32, Operation)> {
        let hash = operation.key().map(|key| hash(lane, key));
        let at = self.slot();
        let waits = match hash {
            Some(hash) => match self.tails.insert(hash, at) {
                Some(tail) => {
                    self.slots[usize::from(tail)].next = at;
                    true
                }
                None => false,
            },
            None => false,
        };
        let slot = &mut self.slots[usize::from(at)];
        slot.generation = slot.generation.wrapping_add(1);
        slot.is_used = true;
        slot.is_started = false;
        slot.is_read = !operation.is_write();
        (slot.command, slot.index, slot.lane) = (command, index, lane);
        (slot.hash, slot.next) = (hash, NONE);
        self.count += 1;
        if !waits && may_start && self.ready.is_empty() {
            return Some((self.started_now(at), operation));
        }
        self.slots[usize::from(at)].parked = Some(operation);
        if !waits {
            self.ready.push_back(at);
        }
        None
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

    /// Takes the next operation whose turn has come; it counts as started.
    pub(crate) fn start_next(&mut self) -> Option<(u32, LaneId, Operation)> {
        let at = self.ready.pop_front()?;
        let number = self.started_now(at);
        let slot = &mut self.slots[usize::from(at)];
        let operation = slot.parked.take().expect("a ready operation was parked when it was added");
        Some((number, slot.lane, operation))
    }

    /// An operation has ended; the next one of its key becomes ready. `None` if no operation of
    /// this number is started, as when an outcome comes twice.
    pub(crate) fn end(&mut self, number: u32) -> Option<Ended> {
        let at = number as u16;
        let slot = self.slots.get_mut(usize::from(at))?;
        let is_current = u32::from(slot.generation) == number >> 16;
        if !(slot.is_used && slot.is_started && is_current) {
            return None;
        }
        slot.is_used = false;
        let ended = Ended { command: slot.command, index: slot.index, is_read: slot.is_read };
        let (hash, next) = (slot.hash, slot.next);
        if next != NONE {
            self.ready.push_back(next);
        } else if let Some(hash) = hash {
            self.tails.remove(&hash);
        }
        self.free.push(at);
        self.count -= 1;
        self.started -= 1;
        self.reads -= usize::from(ended.is_read);
        Some(ended)
    }
}

/// A hash of a key in a lane, eight bytes at a time.
fn hash(lane: LaneId, key: &[u8]) -> u64 {
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
            flights.add(command, 0, LaneId(1), get(key), true).map(|(number, _)| number)
        };
        let first = add(&mut flights, 0, "a").expect("nothing is before it");
        assert_eq!(add(&mut flights, 1, "a"), None);
        let other = add(&mut flights, 2, "b").expect("another key");
        assert_eq!(add(&mut flights, 3, "a"), None);
        assert!(flights.start_next().is_none());
        assert_eq!(flights.end(first).map(|ended| ended.command), Some(0));
        assert_eq!(flights.end(first), None, "an outcome that comes twice is ignored");
        let (second, _, operation) = flights.start_next().expect("its turn has come");
        assert_eq!(operation, get("a"));
        assert_eq!(flights.end(other).map(|ended| ended.command), Some(2));
        assert_eq!(flights.end(second).map(|ended| ended.command), Some(1));
        let (third, ..) = flights.start_next().expect("its turn has come");
        assert_eq!((flights.len(), flights.started(), flights.reads()), (1, 1, 1));
        assert_eq!(flights.end(third).map(|ended| ended.command), Some(3));
        assert!(flights.is_empty());
        assert!(flights.tails.is_empty());
    }

    #[test]
    fn what_may_not_start_waits_in_line() {
        let mut flights = Flights::default();
        assert_eq!(flights.add(0, 0, LaneId(1), get("a"), false), None);
        assert!(flights.has_ready());
        assert_eq!(flights.add(1, 0, LaneId(1), get("b"), true), None, "it must not overtake");
        let order = [flights.start_next(), flights.start_next()].map(|next| next.map(|it| it.2));
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
