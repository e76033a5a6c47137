//! What was applied and is not in the tables yet: sorted, in memory, read by another thread.
//!
//! One memtable takes writes; full ones are never written again and wait to become tables, newest
//! first. Values are shared with whoever wrote them: they are memory of their own.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::{LaneId, LogId, LogIndex};
use quorate_kernel::storage::{Class, store_key};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// How many entries a scan takes from a memtable that is written to at a time.
const PIECE_ENTRIES: usize = 64;
/// About what an entry takes beside the bytes of its key and its value.
const ENTRY_BYTES: usize = 96;
const WORDS: usize = 3;
const INLINE_BYTES: usize = WORDS * 8;

/// A key whose first bytes are at hand as numbers: most comparisons end there. Lane, class, slot
/// and token of a key are within them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    words: [u64; WORDS],
    length: u32,
    tail: Box<[u8]>,
}

impl Key {
    fn new(bytes: &[u8]) -> Key {
        let mut padded = [0; INLINE_BYTES];
        let inline = bytes.len().min(INLINE_BYTES);
        padded[..inline].copy_from_slice(&bytes[..inline]);
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(padded.chunks_exact(8)) {
            *word = u64::from_be_bytes(bytes.try_into().expect("eight bytes are a word"));
        }
        let length = u32::try_from(bytes.len()).expect("keys are limited");
        Key { words, length, tail: bytes[inline..].into() }
    }

    fn bytes(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.length as usize);
        self.words.iter().for_each(|word| bytes.put_u64(*word));
        bytes.truncate(self.length as usize);
        bytes.put_slice(&self.tail);
        bytes.freeze()
    }
}

impl Ord for Key {
    /// The order of the bytes: of keys that are filled up with zeros to the same words and have no
    /// tail, the shorter is a prefix of the longer.
    fn cmp(&self, other: &Key) -> Ordering {
        let words = self.words.cmp(&other.words);
        let tails = || self.tail.cmp(&other.tail);
        words.then_with(tails).then_with(|| self.length.cmp(&other.length))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A key's newest value, or `None` after a delete.
pub(crate) type Entry = (Bytes, Option<Bytes>);

/// The newest value of each key in a row of batches, sorted.
#[derive(Debug, Default)]
struct Sorted {
    entries: BTreeMap<Key, Option<Bytes>>,
    bytes: usize,
}

/// Whether a memtable keeps what is written to a key.
fn is_kept(key: &[u8]) -> bool {
    !entries::is_of_log(key) || !matches!(entries::store_place(key), Some((_, Place::Log(_))))
}

/// One memtable. Only the thread that applies batches writes to it, while it is the newest.
#[derive(Debug, Default)]
pub(crate) struct Memtable(RwLock<Sorted>);

impl Memtable {
    fn read(&self) -> RwLockReadGuard<'_, Sorted> {
        // Nothing in here can be left half done by a panic that is not a bug of the map itself.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes writes of one batch, all at one moment.
    pub(crate) fn write<'a>(&self, writes: impl Iterator<Item = (&'a [u8], Option<&'a Bytes>)>) {
        let mut sorted = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Where logs begin is not kept here.
        for (key, value) in writes.filter(|(key, _)| is_kept(key)) {
            let value = value.cloned();
            let length = value.as_ref().map_or(0, Bytes::len);
            let name = Key::new(key);
            sorted.bytes += length;
            if let Some(known) = sorted.entries.get_mut(&name) {
                let before = std::mem::replace(known, value);
                sorted.bytes -= before.map_or(0, |before| before.len());
            } else {
                sorted.bytes += key.len() + ENTRY_BYTES;
                sorted.entries.insert(name, value);
            }
        }
    }

    /// Drops the entries of a log before one of them. They are not deleted: older memtables and
    /// tables may have them.
    pub(crate) fn forget_entries(&self, lane: LaneId, log: LogId, first: LogIndex) {
        let key = |index| Key::new(&store_key(lane, Class::Log, &entries::key(log, index)));
        let mut sorted = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let range = sorted.entries.range(key(LogIndex(0))..key(first));
        let given_up: Vec<Key> = range.map(|(key, _)| key.clone()).collect();
        for key in given_up {
            let value = sorted.entries.remove(&key).expect("it was found just now");
            sorted.bytes -= key.length as usize + ENTRY_BYTES + value.map_or(0, |v| v.len());
        }
    }

    /// Bytes of memory, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.read().bytes
    }

    /// Shows all entries in order, until one fails.
    pub(crate) fn each<E>(
        &self,
        mut each: impl FnMut(Bytes, Option<&Bytes>) -> Result<(), E>,
    ) -> Result<(), E> {
        let sorted = self.read();
        sorted.entries.iter().try_for_each(|(key, value)| each(key.bytes(), value.as_ref()))
    }

    /// Copies the next entries from a key on, which it includes or not.
    fn piece(&self, from: &Key, is_included: bool, to: &Key, into: &mut Vec<Entry>) {
        let from = if is_included { Bound::Included(from) } else { Bound::Excluded(from) };
        let sorted = self.read();
        let range = sorted.entries.range((from, Bound::Excluded(to)));
        into.extend(range.take(PIECE_ENTRIES).map(|(key, value)| (key.bytes(), value.clone())));
    }
}

/// All memtables, newest first; the first one takes writes.
#[derive(Clone, Debug)]
pub(crate) struct Memtables(Arc<RwLock<Vec<Arc<Memtable>>>>);

impl Memtables {
    /// One empty memtable.
    pub(crate) fn new() -> Memtables {
        Memtables(Arc::new(RwLock::new(vec![Arc::default()])))
    }

    fn list(&self) -> RwLockReadGuard<'_, Vec<Arc<Memtable>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that takes writes.
    pub(crate) fn newest(&self) -> Arc<Memtable> {
        Arc::clone(&self.list()[0])
    }

    /// Begins a new one, and returns the one that took writes until now.
    pub(crate) fn seal(&self) -> Arc<Memtable> {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        list.insert(0, Arc::default());
        Arc::clone(&list[1])
    }

    /// Lets go of the oldest, which is in the tables.
    pub(crate) fn drop_oldest(&self) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        assert!(list.len() > 1, "the one that takes writes stays");
        list.pop();
    }

    /// Bytes of memory of all, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.list().iter().map(|one| one.bytes()).sum()
    }

    /// How many keys they delete.
    pub(crate) fn deletes(&self) -> u64 {
        let of = |one: &Memtable| one.read().entries.values().filter(|it| it.is_none()).count();
        self.list().iter().map(|one| of(one) as u64).sum()
    }

    /// What the newest that knows a key says of it: nothing, or its value, which a delete took.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let key = Key::new(key);
        self.list().iter().find_map(|one| one.read().entries.get(&key).cloned())
    }

    /// What each of them has of `from..to`, newest first. What is written meanwhile may be seen or
    /// not; what was there at this call is.
    pub(crate) fn range(&self, from: &[u8], to: &[u8]) -> Vec<Range> {
        let range = |one: &Arc<Memtable>| Range {
            memtable: Arc::clone(one),
            from: Key::new(from),
            is_included: true,
            to: Key::new(to),
            piece: Vec::new().into_iter(),
            is_done: from >= to,
        };
        self.list().iter().map(range).collect()
    }
}

/// A part of a memtable in order, copied in pieces so that who writes to it never waits long.
pub(crate) struct Range {
    memtable: Arc<Memtable>,
    from: Key,
    is_included: bool,
    to: Key,
    piece: std::vec::IntoIter<Entry>,
    is_done: bool,
}

impl Iterator for Range {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(entry) = self.piece.next() {
            return Some(entry);
        }
        if self.is_done {
            return None;
        }
        let mut piece = Vec::new();
        self.memtable.piece(&self.from, self.is_included, &self.to, &mut piece);
        self.is_done = piece.len() < PIECE_ENTRIES;
        if let Some((last, _)) = piece.last() {
            self.from = Key::new(last);
            self.is_included = false;
        }
        self.piece = piece.into_iter();
        self.piece.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        // Zeros, and lengths about that of the words, where orders could differ.
        prop::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..40)
    }

    fn pad() -> impl Strategy<Value = Vec<u8>> {
        (0..30_usize).prop_map(|length| vec![0; length])
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_bytes(
            one in prop_oneof![key(), pad()],
            other in prop_oneof![key(), pad()],
        ) {
            prop_assert_eq!(Key::new(&one).cmp(&Key::new(&other)), one.cmp(&other));
            prop_assert_eq!(&Key::new(&one).bytes()[..], &one[..]);
        }

        #[test]
        fn ranges_show_what_an_ordered_map_has(
            keys in prop::collection::vec((0..400_u16, any::<bool>()), 0..300),
            from in 0..400_u16,
            to in 0..400_u16,
        ) {
            let memtables = Memtables::new();
            let mut model = BTreeMap::new();
            for (name, is_put) in &keys {
                let name = name.to_be_bytes();
                let value = is_put.then(|| Bytes::copy_from_slice(&name));
                memtables.newest().write(std::iter::once((&name[..], value.as_ref())));
                model.insert(name.to_vec(), value.map(|value| value.to_vec()));
            }
            let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
            let found: Vec<_> = memtables.range(&from, &to).remove(0)
                .map(|(key, value)| (key.to_vec(), value.map(|value| value.to_vec())))
                .collect();
            let is_within = |key: &Vec<u8>| key[..] >= from[..] && key[..] < to[..];
            let expected: Vec<_> = model.into_iter().filter(|(key, _)| is_within(key)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    fn put(memtables: &Memtables, key: &[u8], value: Option<&[u8]>) {
        let value = value.map(Bytes::copy_from_slice);
        memtables.newest().write(std::iter::once((key, value.as_ref())));
    }

    #[test]
    fn the_newest_memtable_that_knows_a_key_answers() {
        let memtables = Memtables::new();
        put(&memtables, b"a", Some(b"1"));
        put(&memtables, b"b", Some(b"1"));
        let sealed = memtables.seal();
        put(&memtables, b"a", None);
        assert_eq!(memtables.get(b"a"), Some(None), "a delete is known");
        assert_eq!(memtables.get(b"b"), Some(Some(Bytes::from_static(b"1"))));
        assert_eq!(memtables.get(b"c"), None);
        assert!(sealed.bytes() > 0);
        memtables.drop_oldest();
        assert_eq!(memtables.get(b"b"), None);
    }

    #[test]
    fn bytes_are_those_of_what_is_kept() {
        let memtables = Memtables::new();
        put(&memtables, b"a", Some(&[0; 1000]));
        let once = memtables.bytes();
        put(&memtables, b"a", Some(&[1; 1000]));
        assert_eq!(memtables.bytes(), once, "an overwrite takes no more");
        put(&memtables, b"a", None);
        assert_eq!(memtables.bytes(), once - 1000);
    }

    #[test]
    fn a_scan_goes_on_in_a_memtable_that_was_sealed_meanwhile() {
        let memtables = Memtables::new();
        for name in 0..200_u8 {
            put(&memtables, &[name], Some(b"1"));
        }
        let mut range = memtables.range(&[0], &[255]).remove(0);
        assert_eq!(range.next().map(|(key, _)| key[0]), Some(0));
        memtables.seal();
        memtables.drop_oldest();
        put(&memtables, &[100], None);
        let rest: Vec<u8> = range.map(|(key, value)| value.map_or(0, |_| key[0])).collect();
        assert_eq!(rest, (1..200).collect::<Vec<u8>>());
    }
}
