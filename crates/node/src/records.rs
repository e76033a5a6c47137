//! What a node knows of data without asking the store: one hash table for the data of all its
//! lanes that is logged.
//!
//! An entry has the newest value of a key, or its head alone, and the batch that wrote it last.
//! What its lane has not settled stays whole, for the store cannot be asked for it. The rest is
//! kept as far as the bound allows: a hand goes round the entries (the CLOCK of Corbató, "A Paging
//! Experiment with the Multics System", 1968), takes a value first, its head in the next round, and
//! passes over what was used since the last one.
//!
//! A key stands in one piece with what is kept of its value, so that to find it and to see its head
//! touches an entry, which is one line of the processor's cache, and what follows the key.

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::fmt;
use hashbrown::HashTable;
use quorate_kernel::ids::{LaneId, Lsn};
use quorate_kernel::limits::{CACHED_RECORD_BYTES_MAX, KEY_BYTES_MAX, VALUE_HEAD_BYTES};
use quorate_kernel::mutant;
use quorate_kernel::storage::ValueHead;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// About how much memory an entry takes beside its piece.
const ENTRY_BYTES: usize = size_of::<Entry>() + 16;
/// How many entries are looked at to make room for one, and when many are settled: nobody waits for
/// more.
const STEPS_MAX: usize = 32;
const TRIM_STEPS_MAX: usize = 1024;
/// For each so many bytes that come in one entry more is looked at. It has many times as many, and
/// goes when the hand is at it for the third time, so that long values that take the place of short
/// ones do not outrun the hand.
const STEP_BYTES: usize = 16;
/// The bound unless it is set otherwise, in bytes.
pub const CACHE_BYTES_DEFAULT: usize = 32 << 20;

const _: () = assert!(size_of::<Entry>() <= 64, "an entry is one line of a cache");
const _: () = assert!(ENTRY_BYTES >= 4 * STEP_BYTES, "three rounds free more than came in");
const _: () = assert!(KEY_BYTES_MAX < 1 << 17, "a key and what a lane puts before it fit 32 bits");

/// What an entry has of its key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// It has none.
    Absent,
    /// Its first bytes, which follow the key.
    Head,
    /// All of it, behind the key.
    Whole,
}

/// What is known of a key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has none.
    Absent,
    /// Its first bytes alone.
    Head(ValueHead),
    /// All of it.
    Whole(Bytes),
}

struct Entry {
    hash: u64,
    /// The batch that wrote it last in this start, if one has.
    lsn: Lsn,
    /// The key, and what is kept of its value.
    piece: Bytes,
    lane: LaneId,
    key_length: u32,
    sort: Sort,
    is_used: bool,
    /// Whether it was written since its lane settled it last: nothing else has it for certain.
    is_pending: bool,
    /// Whether it was used since the hand was here.
    is_recent: bool,
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.piece.len()
    }

    fn key(&self) -> &[u8] {
        &self.piece[..self.key_length as usize]
    }

    /// What it has of the value.
    fn rest(&self) -> &[u8] {
        &self.piece[self.key_length as usize..]
    }

    fn known(&self) -> Known {
        match self.sort {
            Sort::Absent => Known::Absent,
            Sort::Head => Known::Head(ValueHead::of(self.rest())),
            Sort::Whole => Known::Whole(self.piece.slice(self.key_length as usize..)),
        }
    }

    /// Takes in what follows the key, in the room of what did before if it fits and nobody else
    /// has it. It is copied, so that it does not pin the buffer that it came in.
    fn set(&mut self, sort: Sort, rest: &[u8]) {
        let key_length = self.key_length as usize;
        let length = key_length + rest.len();
        self.piece = match core::mem::take(&mut self.piece).try_into_mut() {
            Ok(mut room) if (length..=length.saturating_mul(2)).contains(&room.capacity()) => {
                room.truncate(key_length);
                room.extend_from_slice(rest);
                room.freeze()
            }
            Ok(before) => joined(&before[..key_length], rest),
            Err(before) => joined(&before[..key_length], rest),
        };
        self.sort = sort;
    }

    /// Keeps no more of the value than its head.
    fn shorten(&mut self) {
        let head = ValueHead::of(self.rest());
        self.set(Sort::Head, head.as_bytes());
    }
}

fn joined(key: &[u8], rest: &[u8]) -> Bytes {
    let mut piece = BytesMut::with_capacity(key.len() + rest.len());
    piece.extend_from_slice(key);
    piece.extend_from_slice(rest);
    piece.freeze()
}

/// The table.
pub struct Records {
    places: HashTable<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Where the hand is.
    hand: usize,
    bytes: usize,
    bytes_max: usize,
}

impl Records {
    /// An empty table that keeps so many bytes at most, beside what is not settled.
    #[must_use]
    pub fn new(bytes_max: usize) -> Records {
        Records {
            places: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            hand: 0,
            bytes: 0,
            bytes_max,
        }
    }

    fn find(&self, lane: LaneId, hash: u64, key: &[u8]) -> Option<usize> {
        let is_it = |place: &u32| {
            let entry = &self.entries[*place as usize];
            entry.hash == hash && entry.lane == lane && entry.key() == key
        };
        self.places.find(hash, is_it).map(|place| *place as usize)
    }

    /// What is known of a key's value, if anything is. The key counts as used.
    pub(crate) fn look_up(&mut self, lane: LaneId, key: &[u8]) -> Option<Known> {
        let place = self.find(lane, hash_of(lane, key), key)?;
        self.entries[place].is_recent = true;
        Some(self.entries[place].known())
    }

    /// The first bytes of a key's value, as far as is known: `Some(None)` if it has none. The key
    /// counts as used.
    pub(crate) fn head(&mut self, lane: LaneId, key: &[u8]) -> Option<Option<ValueHead>> {
        let place = self.find(lane, hash_of(lane, key), key)?;
        let entry = &mut self.entries[place];
        entry.is_recent = true;
        Some((entry.sort != Sort::Absent).then(|| ValueHead::of(entry.rest())))
    }

    /// The value of a key, of which all is known that there is.
    pub(crate) fn value(&self, lane: LaneId, key: &[u8]) -> Option<Bytes> {
        let place = self.find(lane, hash_of(lane, key), key)?;
        match self.entries[place].known() {
            Known::Whole(value) => Some(value),
            Known::Absent => None,
            Known::Head(_) => unreachable!("what is kept for good is whole"),
        }
    }

    /// The first bytes of the same.
    pub(crate) fn kept_head(&self, lane: LaneId, key: &[u8]) -> Option<ValueHead> {
        let place = self.find(lane, hash_of(lane, key), key)?;
        Some(ValueHead::of(self.entries[place].rest()))
    }

    /// The batch that wrote a key last, as far as is known: of what is not settled it always is.
    pub(crate) fn lsn_of(&self, lane: LaneId, key: &[u8]) -> Lsn {
        let place = self.find(lane, hash_of(lane, key), key);
        place.map_or(Lsn(0), |place| self.entries[place].lsn)
    }

    /// The key at a place and the batch that wrote it last.
    pub(crate) fn at(&self, place: u32) -> (&[u8], Lsn) {
        let entry = &self.entries[place as usize];
        (entry.key(), entry.lsn)
    }

    /// The value at a place whose entry is pending, if the key has one; it is shared.
    pub(crate) fn whole(&self, place: u32) -> Option<Bytes> {
        match self.entries[place as usize].known() {
            Known::Whole(value) => Some(value),
            Known::Absent => None,
            Known::Head(_) => unreachable!("what is pending stays whole"),
        }
    }

    /// Takes in a write of a batch; the entry keeps its place until it is settled.
    pub(crate) fn write(
        &mut self,
        lane: LaneId,
        key: &[u8],
        value: Option<&Bytes>,
        lsn: Lsn,
    ) -> u32 {
        let place = self.change(lane, key, |entry| {
            assert!(lsn >= entry.lsn, "batches are numbered upwards");
            let is_cached = !entry.is_pending && entry.sort == Sort::Whole;
            (entry.lsn, entry.is_pending, entry.is_recent) = (lsn, true, true);
            match value {
                _ if is_cached && mutant!("stale_cache") => {}
                None => entry.set(Sort::Absent, &[]),
                Some(value) => entry.set(Sort::Whole, value),
            }
        });
        self.make_room_for(key, value);
        place
    }

    /// Keeps a value for good, as there is no store below; returns whether the key is new.
    pub(crate) fn keep(&mut self, lane: LaneId, key: &[u8], value: &[u8]) -> bool {
        let count = self.places.len();
        self.change(lane, key, |entry| entry.set(Sort::Whole, value));
        self.places.len() > count
    }

    /// Takes in what the store has of a key of which nothing is known, or the head alone.
    pub(crate) fn learn(&mut self, lane: LaneId, key: &[u8], value: Option<&Bytes>) {
        self.change(lane, key, |entry| {
            assert!(entry.sort != Sort::Whole, "the store is not asked for what is known");
            entry.is_recent = true;
            match value {
                None => entry.set(Sort::Absent, &[]),
                Some(value) if value.len() > CACHED_RECORD_BYTES_MAX => {
                    entry.set(Sort::Head, ValueHead::of(value).as_bytes());
                }
                Some(value) => entry.set(Sort::Whole, value),
            }
        });
        self.make_room_for(key, value);
    }

    /// What is written at a place can be read from the store.
    pub(crate) fn settle(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        entry.is_pending = false;
        if entry.rest().len() > CACHED_RECORD_BYTES_MAX {
            let before = entry.bytes();
            entry.shorten();
            self.bytes = self.bytes - before + entry.bytes();
        }
    }

    /// Forgets a key.
    pub(crate) fn remove_key(&mut self, lane: LaneId, key: &[u8]) {
        if let Some(place) = self.find(lane, hash_of(lane, key), key) {
            self.remove(place);
        }
    }

    /// Forgets all of a lane, which is gone.
    pub(crate) fn forget(&mut self, lane: LaneId) {
        for place in 0..self.entries.len() {
            if self.entries[place].is_used && self.entries[place].lane == lane {
                self.remove(place);
            }
        }
    }

    /// Changes the entry of a key, or a new one without a value; its place.
    fn change(&mut self, lane: LaneId, key: &[u8], change: impl FnOnce(&mut Entry)) -> u32 {
        let hash = hash_of(lane, key);
        let place = match self.find(lane, hash, key) {
            Some(place) => place,
            None => self.insert(lane, hash, key),
        };
        let entry = &mut self.entries[place];
        let before = entry.bytes();
        change(entry);
        self.bytes = self.bytes - before + entry.bytes();
        place as u32
    }

    fn insert(&mut self, lane: LaneId, hash: u64, key: &[u8]) -> usize {
        let entry = Entry {
            hash,
            lsn: Lsn(0),
            piece: Bytes::copy_from_slice(key),
            lane,
            key_length: key.len() as u32,
            sort: Sort::Absent,
            is_used: true,
            is_pending: false,
            is_recent: true,
        };
        self.bytes += entry.bytes();
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("memory ends before 2^32 entries")
            }
        };
        let entries = &self.entries;
        self.places.insert_unique(hash, place, |place| entries[*place as usize].hash);
        place as usize
    }

    fn remove(&mut self, place: usize) {
        let entry = &mut self.entries[place];
        assert!(entry.is_used, "an entry is removed once");
        self.bytes -= entry.bytes();
        (entry.is_used, entry.piece, entry.key_length) = (false, Bytes::new(), 0);
        let found = self.places.find_entry(entry.hash, |other| *other as usize == place);
        found.expect("every entry that is used is found").remove();
        self.free.push(place as u32);
    }

    /// Makes room after many entries were settled.
    pub fn trim(&mut self) {
        self.make_room(TRIM_STEPS_MAX);
    }

    /// Makes room after a key came in. What is not kept of a longer value leaves by itself.
    fn make_room_for(&mut self, key: &[u8], value: Option<&Bytes>) {
        let value_bytes = value.map_or(0, Bytes::len).min(CACHED_RECORD_BYTES_MAX);
        self.make_room(STEPS_MAX + (key.len() + value_bytes) / STEP_BYTES);
    }

    /// Moves the hand on until the bound is kept, or it has moved far enough for one call.
    fn make_room(&mut self, steps_max: usize) {
        for _ in 0..steps_max {
            if self.bytes <= self.bytes_max {
                return;
            }
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &mut self.entries[self.hand];
            let is_pending = entry.is_pending && !mutant!("evicts_pending");
            if !entry.is_used || is_pending {
                continue;
            }
            if core::mem::take(&mut entry.is_recent) {
                continue;
            }
            if entry.sort == Sort::Whole && entry.rest().len() > VALUE_HEAD_BYTES {
                let before = entry.bytes();
                entry.shorten();
                self.bytes = self.bytes - before + entry.bytes();
            } else {
                self.remove(self.hand);
            }
        }
    }

    /// How many bytes it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asserts what must hold between two inputs.
    pub(crate) fn check(&self) {
        assert_eq!(self.places.len() + self.free.len(), self.entries.len(), "no place is lost");
    }
}

/// A fixed hash, so that runs repeat.
fn hash_of(lane: LaneId, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, u64::from(lane.0))
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Records({} of {} bytes)", self.places.len(), self.bytes)
    }
}
