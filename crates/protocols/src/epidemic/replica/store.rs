//! The records of a replica: keys with their versions.
//!
//! Names are in memory, with a sum for each leaf of positions to compare replicas by; values are
//! read from the table. Of versions that events name only the newest is kept: that is what makes
//! replicas equal that have heard of the same events in whatever way. Of versions that clients
//! choose several are kept. Where clients give one version two values the one with the larger hash
//! wins, in whatever order they come, so all end with the same.

use super::range::{Leaf, Range, leaf, position};
pub use super::record::{Entry, Held, Record};
use super::seen::Write;
use super::version::Version;
use crate::epidemic::keys::{Stored, record_key, record_of};
use crate::epidemic::listings::{Listed, cut_before};
use crate::epidemic::message::PAGE_BYTES;
use crate::epto::LogicalTime;
use crate::slices::position::Position;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorate_kernel::plain::PlainData;
use quorate_kernel::process::Table;
use quorate_kernel::rng::mix;
use quorate_kernel::storage::Class;
use quorate_kernel::{mutant, probe};
use xxhash_rust::xxh3::xxh3_64;

/// How many versions that clients have chosen are kept of a key: the highest.
pub const VERSIONS_MAX: usize = 16;

/// What has become of a record that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is stored.
    Stored,
    /// It was here already.
    Known,
    /// A newer one is here.
    Older,
    /// Another value is here under the same version, and wins.
    Conflict,
}

/// The records.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// By wire key, the versions ascending; never none.
    keys: BTreeMap<Bytes, Vec<Held>>,
    sums: BTreeMap<Leaf, u64>,
    tombstones: BTreeSet<(Version, Bytes)>,
    /// What this input has written: the table does not show it yet.
    fresh: BTreeMap<Bytes, Option<Bytes>>,
}

impl Store {
    /// A new input is handled: the table shows all that was written before.
    pub fn begin(&mut self) {
        self.fresh.clear();
    }

    /// What a key has: the newest version, or a given one.
    #[must_use]
    pub fn held(&self, key: &[u8], version: Option<Version>) -> Option<&Held> {
        let versions = self.keys.get(key)?;
        match version {
            Some(version) => versions.iter().find(|held| held.version == version),
            None => versions.last(),
        }
    }

    /// A version of a key with its value.
    pub fn record(&self, key: &Bytes, version: Version, table: &dyn Table) -> Option<Record> {
        let held = self.held(key, Some(version))?;
        let at = record_key(key, version);
        let bytes = match self.fresh.get(&at) {
            Some(fresh) => fresh.clone(),
            None => table.get(Class::Data, &at),
        };
        let stored = Stored::from_bytes(&bytes.expect("what is known is stored"));
        let stored = stored.expect("this lane wrote it");
        assert_eq!(stored.value.is_none(), held.is_deleted, "memory and table say the same");
        Some(Record { key: key.clone(), version, id: stored.id, value: stored.value })
    }

    /// Takes in a record: what is newer wins, and of two values of one version that clients have
    /// chosen the one with the larger hash.
    pub fn put(&mut self, record: Record, writes: &mut Vec<Write>) -> Put {
        let hash = xxh3_64(record.value.as_deref().unwrap_or_default());
        let held = Held {
            version: record.version,
            id: record.id,
            hash,
            is_deleted: record.value.is_none(),
        };
        let known = self.keys.get(&record.key).map_or(&[][..], Vec::as_slice);
        if let Some(same) = known.iter().find(|known| known.version == record.version).copied() {
            let is_same = (same.hash, same.is_deleted) == (held.hash, held.is_deleted);
            let wins = held.rank() > same.rank() && !mutant!("epidemic_first_value_stays");
            if is_same || !wins {
                return if is_same { Put::Known } else { Put::Conflict };
            }
            probe!("epidemic/value_replaced");
            self.drop_one(&record.key, same.version, writes);
            return self.store(record, held, writes);
        }
        let is_crowded = match record.version {
            Version::Explicit(_) => known.len() >= VERSIONS_MAX,
            Version::Ordered(_) => !known.is_empty(),
        };
        if is_crowded {
            let lowest = known[0].version;
            if record.version < lowest {
                return Put::Older;
            }
            self.drop_one(&record.key, lowest, writes);
        }
        self.store(record, held, writes)
    }

    fn store(&mut self, record: Record, held: Held, writes: &mut Vec<Write>) -> Put {
        self.insert(record.key.clone(), held);
        let stored = Stored { id: record.id, value: record.value };
        self.write(record_key(&record.key, record.version), Some(stored.to_bytes()), writes);
        Put::Stored
    }

    fn write(&mut self, key: Bytes, value: Option<Bytes>, writes: &mut Vec<Write>) {
        self.fresh.insert(key.clone(), value.clone());
        writes.push((key, value));
    }

    fn insert(&mut self, key: Bytes, held: Held) {
        self.fold(&key, &held);
        if held.is_deleted {
            self.tombstones.insert((held.version, key.clone()));
        }
        let versions = self.keys.entry(key).or_default();
        let place = versions.partition_point(|known| known.version < held.version);
        versions.insert(place, held);
    }

    fn drop_one(&mut self, key: &Bytes, version: Version, writes: &mut Vec<Write>) {
        let Some(versions) = self.keys.get_mut(key) else { return };
        let Some(place) = versions.iter().position(|held| held.version == version) else { return };
        let held = versions.remove(place);
        if versions.is_empty() {
            self.keys.remove(key);
        }
        self.tombstones.remove(&(version, key.clone()));
        self.fold(key, &held);
        self.write(record_key(key, version), None, writes);
    }

    /// Puts a version into the sum of its leaf, or takes it out again.
    fn fold(&mut self, key: &[u8], held: &Held) {
        let name = xxh3_64(&record_key(key, held.version));
        let sum = mix(name ^ mix(held.hash ^ u64::from(held.is_deleted)));
        let leaf = leaf(position(key));
        let known = self.sums.entry(leaf).or_insert(0);
        *known ^= sum;
        if *known == 0 {
            self.sums.remove(&leaf);
        }
    }

    /// Reads one that is stored; returns whether it was one.
    pub fn load(&mut self, at: &[u8], value: &[u8]) -> bool {
        let Some((key, version)) = record_of(at) else { return false };
        let stored = Stored::from_bytes(value).expect("this lane wrote it");
        let hash = xxh3_64(stored.value.as_deref().unwrap_or_default());
        let is_deleted = stored.value.is_none();
        self.insert(key, Held { version, id: stored.id, hash, is_deleted });
        true
    }

    /// The sum of a leaf; 0 without any record.
    #[must_use]
    pub fn sum(&self, leaf: Leaf) -> u64 {
        self.sums.get(&leaf).copied().unwrap_or(0)
    }

    /// The sums of those leaves from the first to the last that have anything.
    pub fn sums(&self, first: Leaf, last: Leaf) -> impl Iterator<Item = (Leaf, u64)> + '_ {
        self.sums.range(first..=last).map(|(leaf, sum)| (*leaf, *sum))
    }

    /// The sum of the leaves from the first to the last.
    #[must_use]
    pub fn sum_of(&self, first: Leaf, last: Leaf) -> u64 {
        let sums = self.sums.range(first..=last);
        // Sums of leaves are not exchangeable: what moves from one to another is seen.
        sums.fold(0, |all, (leaf, sum)| all ^ mix(*sum ^ u64::from(leaf.0)))
    }

    /// Versions of a range behind a key, ascending, at most so many keys; and the last key, if more
    /// follow.
    #[must_use]
    pub fn list(
        &self,
        range: &Range,
        after: Option<&Bytes>,
        count: usize,
    ) -> (Vec<Entry>, Option<Bytes>) {
        let first = Bytes::copy_from_slice(&range.first.0.to_be_bytes());
        let from = after.map_or(Bound::Included(first), |after| Bound::Excluded(after.clone()));
        let in_range = self.keys.range((from, Bound::Unbounded));
        let mut in_range = in_range.take_while(|(key, _)| range.has(position(key)));
        let (mut listed, mut last) = (Vec::new(), None);
        for (key, versions) in in_range.by_ref().take(count) {
            let entry =
                |held: &Held| Entry { key: key.clone(), version: held.version, rank: held.rank() };
            listed.extend(versions.iter().map(entry));
            last = Some(key.clone());
        }
        let has_more = in_range.next().is_some();
        (listed, last.filter(|_| has_more))
    }

    /// Keys that are not deleted from a place on to the last of these positions, ascending: so many
    /// are looked at at most, until they are as long as a page; and the place behind them, if more
    /// follow. One key always fits.
    #[must_use]
    pub fn page(&self, from: &Bytes, last: Position, limit: usize) -> Listed {
        let (mut listed, mut bytes) = (Listed::default(), 0);
        let mut before: Option<&Bytes> = None;
        let all = self.keys.range::<Bytes, _>(from..).take_while(|(key, _)| position(key) <= last);
        for (count, (key, versions)) in all.enumerate() {
            if let Some(before) = before.filter(|_| count >= limit || bytes >= PAGE_BYTES) {
                listed.next = Some(cut_before(key, before));
                break;
            }
            before = Some(key);
            let is_there = versions.last().is_some_and(|held| !held.is_deleted);
            if is_there || mutant!("epidemic_lists_tombstones") {
                bytes += key.len();
                listed.keys.push(key.clone());
            }
        }
        listed
    }

    /// Drops the tombstones of events before this time.
    pub fn purge_before(&mut self, time: LogicalTime, writes: &mut Vec<Write>) -> usize {
        let mut count = 0;
        while let Some((version, key)) = self.tombstones.first().cloned() {
            if version.time() >= time {
                break;
            }
            self.drop_one(&key, version, writes);
            count += 1;
        }
        count
    }

    /// Drops what is in a range, at most so many keys; returns whether all is gone.
    pub fn drop_range(&mut self, range: &Range, count: usize, writes: &mut Vec<Write>) -> bool {
        let (listed, more) = self.list(range, None, count);
        listed.into_iter().for_each(|one| self.drop_one(&one.key, one.version, writes));
        more.is_none()
    }

    /// Keys with their versions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &[Held])> {
        self.keys.iter().map(|(key, versions)| (key, versions.as_slice()))
    }

    /// How many keys there are, those with tombstones among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Asserts what must hold between two calls, and that the sums are right.
    pub fn check(&self) {
        let is_bounded = |held: &Vec<Held>| (1..=VERSIONS_MAX).contains(&held.len());
        assert!(self.keys.values().all(is_bounded), "a key has versions, and not too many");
        let is_sorted = |held: &Vec<Held>| held.is_sorted_by(|a, b| a.version < b.version);
        assert!(self.keys.values().all(is_sorted), "versions ascend");
        let is_ordered = |held: &Held| matches!(held.version, Version::Ordered(_));
        let is_one = |held: &Vec<Held>| held.len() == 1 || !held.iter().any(is_ordered);
        assert!(self.keys.values().all(is_one), "of ordered versions the newest is kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epidemic::keys::wire_key;
    use crate::epidemic::replica::version::RequestId;
    use crate::epto::EventKey;
    use quorate_kernel::ids::{Incarnation, NodeId, Start};
    use std::collections::BTreeMap as Map;

    struct Disk(Map<Bytes, Bytes>);

    impl Table for Disk {
        fn get(&self, _: Class, key: &Bytes) -> Option<Bytes> {
            self.0.get(key).cloned()
        }

        fn scan(&self, _: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
            let mut all = self.0.iter().filter(|(key, _)| &key[..] >= from);
            all.all(|(key, value)| each(key, value));
        }
    }

    impl Disk {
        fn apply(&mut self, writes: &mut Vec<Write>) {
            for (key, value) in writes.drain(..) {
                match value {
                    Some(value) => drop(self.0.insert(key, value)),
                    None => drop(self.0.remove(&key)),
                }
            }
        }
    }

    fn ordered(time: u64, node: u64) -> Version {
        let source = Incarnation { node: NodeId(node), start: Start(1) };
        Version::Ordered(EventKey { time: LogicalTime(time), source })
    }

    fn record(key: &str, version: Version, value: Option<&'static str>) -> Record {
        let value = value.map(|value| Bytes::from_static(value.as_bytes()));
        Record { key: wire_key(key.as_bytes()), version, id: RequestId(1), value }
    }

    #[test]
    fn whatever_order_records_come_in_the_newest_stays_and_sums_are_equal() {
        let mut disk = Disk(Map::new());
        let (mut one, mut two, mut writes) = (Store::default(), Store::default(), Vec::new());
        let (old, new) = (ordered(5, 1), ordered(5, 2));
        assert_eq!(one.put(record("k", old, Some("a")), &mut writes), Put::Stored);
        assert_eq!(one.put(record("k", new, Some("b")), &mut writes), Put::Stored);
        disk.apply(&mut writes);
        assert_eq!(two.put(record("k", new, Some("b")), &mut writes), Put::Stored);
        assert_eq!(two.put(record("k", old, Some("a")), &mut writes), Put::Older);
        assert_eq!(two.put(record("k", new, Some("b")), &mut writes), Put::Known);
        assert_eq!(two.put(record("k", new, Some("c")), &mut writes), Put::Conflict);
        let leaf = leaf(position(&wire_key(b"k")));
        assert_eq!((one.sum(leaf), one.len()), (two.sum(leaf), 1));
        assert_ne!(one.sum(leaf), 0);
        one.begin();
        let read = one.record(&wire_key(b"k"), new, &disk).expect("it is there");
        assert_eq!(read, record("k", new, Some("b")));
        assert_eq!(disk.0.len(), 1, "the older one is not stored any more");
        let mut again = Store::default();
        assert!(disk.0.iter().all(|(key, value)| again.load(key, value)));
        assert_eq!(again.sum(leaf), one.sum(leaf));
        again.check();
    }

    #[test]
    fn of_two_values_of_a_chosen_version_one_wins_in_whatever_order_they_come() {
        let put = |store: &mut Store, version, value, writes: &mut Vec<Write>| {
            store.put(record("k", Version::Explicit(version), Some(value)), writes)
        };
        let (mut one, mut two, mut writes) = (Store::default(), Store::default(), Vec::new());
        let said = ["a", "b"].map(|value| put(&mut one, 0, value, &mut writes));
        let other = ["b", "a"].map(|value| put(&mut two, 0, value, &mut writes));
        assert!((said[1] == Put::Stored) != (other[1] == Put::Stored), "{said:?} {other:?}");
        let listed = |store: &Store| store.list(&Range::ALL, None, 9).0;
        assert_eq!(listed(&one), listed(&two));
        let leaf = leaf(position(&wire_key(b"k")));
        assert_eq!(one.sum(leaf), two.sum(leaf));
        let mut store = one;
        for version in 1..VERSIONS_MAX as u64 {
            assert_eq!(put(&mut store, version, "c", &mut writes), Put::Stored);
        }
        assert_eq!(put(&mut store, 99, "d", &mut writes), Put::Stored);
        assert_eq!(put(&mut store, 0, "a", &mut writes), Put::Older, "the lowest went");
        store.check();
    }

    #[test]
    fn tombstones_go_by_the_age_of_their_events() {
        let (mut store, mut writes) = (Store::default(), Vec::new());
        store.put(record("a", ordered(5, 1), None), &mut writes);
        store.put(record("b", ordered(9, 1), None), &mut writes);
        store.put(record("c", ordered(3, 1), Some("x")), &mut writes);
        assert_eq!(store.purge_before(LogicalTime(9), &mut writes), 1);
        assert_eq!(store.len(), 2);
        assert!(store.drop_range(&Range::ALL, 10, &mut writes) && store.is_empty());
        assert_eq!(store.sum_of(Leaf(0), Leaf(u16::MAX)), 0);
        store.check();
    }
}
