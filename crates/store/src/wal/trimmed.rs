//! Where logs begin: what is before that is gone, without a delete of each entry.
//!
//! Reads ask what is known at the moment. Who leaves entries out of tables asks what is **synced**:
//! a trim that a loss of power takes back must find the entries again.

use crate::tables::memtable::Memtable;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::{LaneId, LogId, LogIndex};
use quorate_kernel::mutant;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The first entry of each log that was ever trimmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Firsts(BTreeMap<(LaneId, LogId), LogIndex>);

/// Bytes of a log in the stored form: lane u32, log u64, first u64.
const STORED_BYTES: usize = 20;

impl Firsts {
    /// Whether a whole key is that of an entry that was given up.
    pub(crate) fn has_passed(&self, key: &[u8]) -> bool {
        let Some((lane, Place::Entry(log, index))) = entries::store_place(key) else {
            return false;
        };
        self.0.get(&(lane, log)).is_some_and(|first| index < *first)
    }

    /// Takes a write of a log's own key; says whether it gives anything up.
    pub(crate) fn raise(&mut self, lane: LaneId, log: LogId, to: LogIndex) -> bool {
        let first = self.0.entry((lane, log)).or_default();
        let is_higher = to > *first;
        *first = to.max(*first);
        is_higher
    }

    /// What of this is stored with the tables.
    pub(crate) fn stored(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.0.len() * STORED_BYTES);
        for ((lane, log), first) in &self.0 {
            bytes.put_u32(lane.0);
            bytes.put_u64(log.0);
            bytes.put_u64(first.0);
        }
        bytes.freeze()
    }

    /// Reads it back; nothing if these are not such bytes.
    pub(crate) fn of_stored(mut bytes: &[u8]) -> Option<Firsts> {
        if !bytes.len().is_multiple_of(STORED_BYTES) {
            return None;
        }
        let mut firsts = Firsts::default();
        while bytes.has_remaining() {
            let (lane, log) = (LaneId(bytes.get_u32()), LogId(bytes.get_u64()));
            firsts.raise(lane, log, LogIndex(bytes.get_u64()));
        }
        Some(firsts)
    }
}

#[derive(Debug, Default)]
struct Shared {
    now: RwLock<Firsts>,
    synced: RwLock<Arc<Firsts>>,
}

/// Where the logs of a store begin. Clones are handles to the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trimmed(Arc<Shared>);

impl Trimmed {
    /// What the tables say, which is synced.
    pub(crate) fn begin(&self, firsts: Firsts) {
        *self.0.synced.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(firsts.clone());
        *self.0.now.write().unwrap_or_else(PoisonError::into_inner) = firsts;
    }

    fn now(&self) -> RwLockReadGuard<'_, Firsts> {
        self.0.now.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether reads must not see a whole key: it is of an entry that was given up.
    pub(crate) fn hides(&self, key: &[u8]) -> bool {
        entries::is_of_log(key) && self.now().has_passed(key)
    }

    /// Where a log begins, if it was ever trimmed.
    pub(crate) fn first(&self, lane: LaneId, log: LogId) -> Option<LogIndex> {
        self.now().0.get(&(lane, log)).copied()
    }

    /// Takes the writes of a batch that move the begin of logs, and lets the memtable that takes
    /// its other writes forget what is given up.
    pub(crate) fn write<'a>(
        &self,
        writes: impl Iterator<Item = (&'a [u8], Option<&'a Bytes>)>,
        memtable: &Memtable,
    ) {
        for (key, value) in writes.filter(|(key, _)| entries::is_of_log(key)) {
            let Some((lane, Place::Log(log))) = entries::store_place(key) else { continue };
            let Some(first) = value.and_then(|value| entries::first(value)) else { continue };
            let mut now = self.0.now.write().unwrap_or_else(PoisonError::into_inner);
            let is_higher = now.raise(lane, log, first);
            drop(now);
            if is_higher {
                memtable.forget_entries(lane, log, first);
            }
        }
    }

    /// All that was written is synced.
    pub(crate) fn sync(&self) {
        let now = Arc::new(self.now().clone());
        *self.0.synced.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// As of the last time that all was synced.
    pub(crate) fn synced(&self) -> Arc<Firsts> {
        if mutant!("log_trim_unsynced") {
            return Arc::new(self.now().clone());
        }
        let synced = self.0.synced.read();
        Arc::clone(&synced.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Leaves out of merged tables what was given up.
impl Factory for Trimmed {
    fn name(&self) -> &str {
        "trimmed logs"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter(self.synced()))
    }
}

struct Filter(Arc<Firsts>);

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        // Older values of the key may come to light again: nobody reads them.
        let is_gone = self.0.has_passed(item.key());
        Ok(if is_gone { Verdict::Destroy } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::storage::{Class, store_key};

    fn entry(lane: u32, log: u64, index: u64) -> Bytes {
        store_key(LaneId(lane), Class::Log, &entries::key(LogId(log), LogIndex(index)))
    }

    #[test]
    fn a_log_begins_where_the_highest_trim_said_and_so_it_is_stored() {
        let mut firsts = Firsts::default();
        assert!(firsts.raise(LaneId(1), LogId(2), LogIndex(5)));
        assert!(!firsts.raise(LaneId(1), LogId(2), LogIndex(3)), "it never goes back");
        assert!(firsts.raise(LaneId(1), LogId(3), LogIndex(1)));
        let back = Firsts::of_stored(&firsts.stored());
        assert_eq!(back.as_ref(), Some(&firsts));
        let passed = |lane, log, index| firsts.has_passed(&entry(lane, log, index));
        assert!(passed(1, 2, 4) && !passed(1, 2, 5) && !passed(1, 4, 0) && !passed(2, 2, 0));
        assert_eq!(Firsts::of_stored(&[0; 19]), None);
    }

    #[test]
    fn what_is_left_out_of_tables_is_known_to_be_synced() {
        let (trimmed, memtable) = (Trimmed::default(), Memtable::default());
        let key = store_key(LaneId(1), Class::Log, &entries::log_key(LogId(2)));
        let first = entries::trim(LogIndex(5));
        trimmed.write([(&key[..], Some(&first))].into_iter(), &memtable);
        assert!(trimmed.hides(&entry(1, 2, 4)));
        assert!(!trimmed.synced().has_passed(&entry(1, 2, 4)));
        trimmed.sync();
        assert!(trimmed.synced().has_passed(&entry(1, 2, 4)));
    }
}
