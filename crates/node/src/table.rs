//! A lane's bytes: what is not durable yet, over the store.
//!
//! State has an ordered layer, in which an entry stays until its batch is synced, and so have logs
//! ([`crate::layer`]). Data stands in the table of the node ([`crate::records`]), which also keeps
//! what is durable as far as it has room: both answer two questions at once, what the newest value
//! is and what a reader of it must wait for. What a `memory` lane has of data and logs is never
//! written: its data has a table of its own ([`crate::memory`]), its logs stay in their layer.

use crate::gate::Needs;
use crate::layer::{Layer, Logs};
use crate::memory::{Memory, Sorted};
use crate::records::{Known, Records};
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;
use core::cell::RefCell;
use core::cmp::Ordering;
use core::ops::Bound;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, Lsn};
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::{
    Class, Durability, Durable, Reader, ValueHead, store_end, store_key,
};

/// The data that is not durable yet, by its places in the node's table.
#[derive(Debug, Default)]
struct Pending {
    /// What each batch wrote, oldest first.
    log: VecDeque<(Lsn, u32)>,
    /// The keys of the first `sorted_count` of them, in order: scans alone ask for that, so they
    /// sort what has come since the last one.
    sorted: BTreeMap<Sorted, u32>,
    sorted_count: usize,
}

impl Pending {
    fn sort(&mut self, records: &Records) {
        for (_, place) in self.log.range(self.sorted_count..) {
            let (key, _) = records.at(*place);
            self.sorted.insert(Sorted::new(Bytes::copy_from_slice(key)), *place);
        }
        self.sorted_count = self.log.len();
    }

    fn settle(&mut self, upto: Lsn, records: &mut Records) {
        while let Some(&(lsn, place)) = self.log.front()
            && lsn <= upto
        {
            self.log.pop_front();
            self.sorted_count = self.sorted_count.saturating_sub(1);
            let (key, newest) = records.at(place);
            if newest <= upto {
                if !self.sorted.is_empty() {
                    self.sorted.remove(&Sorted::new(Bytes::copy_from_slice(key)));
                }
                records.settle(place);
            }
        }
    }
}

/// The bytes of one lane.
#[derive(Debug)]
pub struct LaneTable {
    lane: LaneId,
    durability: Durability,
    state: Layer,
    logs: Logs,
    pending: RefCell<Pending>,
    /// The data of a `memory` lane.
    memory: Memory,
    newest_state: Lsn,
    newest_data: Lsn,
}

impl LaneTable {
    /// The empty table of a lane.
    #[must_use]
    pub fn new(lane: LaneId, durability: Durability) -> LaneTable {
        LaneTable {
            lane,
            durability,
            state: Layer::default(),
            logs: Logs::default(),
            pending: RefCell::default(),
            memory: Memory::default(),
            newest_state: Lsn(0),
            newest_data: Lsn(0),
        }
    }

    /// How durable its data is.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Whether writes of this class go to the log at all.
    #[must_use]
    pub fn is_logged(&self, class: Class) -> bool {
        class == Class::State || self.durability != Durability::Memory
    }

    /// Whether writes of this class must be synced before what depends on them leaves.
    #[must_use]
    pub fn must_sync(&self, class: Class) -> bool {
        class == Class::State || self.durability == Durability::Sync
    }

    /// Notes a write that is part of batch `lsn`, or of no batch for a class that is not logged.
    /// Returns the value for that batch: in memory of its own, which whoever keeps it may share.
    pub fn write(
        &mut self,
        (class, key, value): (Class, Bytes, Option<Bytes>),
        lsn: Lsn,
        records: &mut Records,
    ) -> Option<Bytes> {
        match class {
            Class::Data if !self.is_logged(class) => {
                self.memory.set(&key, value);
                return None;
            }
            Class::Log if !self.is_logged(class) => {
                self.logs.keep(key, own(value));
                return None;
            }
            _ => {}
        }
        let newest = match class {
            Class::State => &mut self.newest_state,
            Class::Data | Class::Log => &mut self.newest_data,
        };
        assert!(*newest <= lsn, "batches are numbered upwards");
        *newest = lsn;
        match class {
            Class::State => {
                let value = own(value);
                self.state.write(key, value.clone(), lsn);
                value
            }
            Class::Log => {
                let value = own(value);
                self.logs.write(key, value.clone(), lsn);
                value
            }
            Class::Data => {
                let place = records.write(self.lane, &key, value.as_ref(), lsn);
                self.pending.get_mut().log.push_back((lsn, place));
                records.whole(place)
            }
        }
    }

    /// Takes in that the log has come this far: what is durable enough is read from the store where
    /// it is not at hand.
    pub fn settle(&mut self, durable: Durable, records: &mut Records) {
        let data_upto = match self.durability {
            Durability::Periodic { .. } => durable.written,
            Durability::Sync | Durability::Memory => durable.synced,
        };
        self.state.settle(durable.synced);
        self.logs.settle(data_upto);
        self.pending.get_mut().settle(data_upto, records);
    }

    /// What must be durable before something that rests on the whole lane may leave.
    #[must_use]
    pub fn needs_all(&self) -> Needs {
        self.needs_data(self.newest_data)
    }

    /// What must be durable before something that rests on this data key may leave.
    #[must_use]
    pub fn needs_key(&self, key: &[u8], records: &Records) -> Needs {
        if mutant!("gate_ignores_key") || !self.is_logged(Class::Data) {
            return self.needs_state();
        }
        self.needs_data(records.lsn_of(self.lane, key))
    }

    /// What must be durable before something that rests on the protocol state may leave.
    #[must_use]
    pub fn needs_state(&self) -> Needs {
        Needs { synced: self.newest_state, written: Lsn(0) }
    }

    fn needs_data(&self, data: Lsn) -> Needs {
        if self.must_sync(Class::Data) {
            Needs { synced: self.newest_state.max(data), written: Lsn(0) }
        } else {
            Needs { synced: self.newest_state, written: data }
        }
    }
}

/// The same bytes in memory of their own: as a part of a frame they would pin all of it.
fn own(value: Option<Bytes>) -> Option<Bytes> {
    value.map(|value| Bytes::copy_from_slice(&value))
}

/// What a lane reads during one call. A failure of the store is kept for the node, which then stops
/// and lets nothing out that the call asked for.
pub struct LaneReader<'a> {
    /// The lane's table.
    pub table: &'a LaneTable,
    /// The data of all lanes that is logged, as far as it is at hand.
    pub records: &'a RefCell<Records>,
    /// The store below.
    pub store: &'a dyn Reader,
    /// Where a failure goes.
    pub fatal: &'a RefCell<Option<Fatal>>,
}

impl LaneReader<'_> {
    fn fail(&self, fatal: Fatal) {
        self.fatal.borrow_mut().get_or_insert(fatal);
    }

    fn stored(&self, class: Class, key: &[u8]) -> Option<Bytes> {
        self.store.get(&store_key(self.table.lane, class, key)).unwrap_or_else(|fatal| {
            self.fail(fatal);
            None
        })
    }

    /// Reads a data key from the store, and keeps what it has.
    fn learn(&self, key: &[u8]) -> Option<Bytes> {
        let value = self.stored(Class::Data, key);
        if self.fatal.borrow().is_none() {
            self.records.borrow_mut().learn(self.table.lane, key, value.as_ref());
        }
        value
    }

    fn data(&self, key: &Bytes) -> Option<Bytes> {
        match self.records.borrow_mut().look_up(self.table.lane, key) {
            Some(Known::Whole(value)) => return Some(value),
            Some(Known::Absent) => return None,
            Some(Known::Head(_)) | None => {}
        }
        self.learn(key)
    }

    /// The next pair that is not durable yet, from a key on or behind it.
    fn pending(&self, class: Class, from: Bound<&Sorted>) -> Option<(Sorted, Option<Bytes>)> {
        match class {
            Class::State => self.table.state.next(from),
            Class::Log => self.table.logs.next(from),
            Class::Data => {
                let pending = self.table.pending.borrow();
                let range = (from, Bound::Unbounded);
                let (key, place) = pending.sorted.range::<Sorted, _>(range).next()?;
                Some((key.clone(), self.records.borrow().whole(*place)))
            }
        }
    }
}

impl Table for LaneReader<'_> {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        let known = match class {
            Class::State => self.table.state.get(key),
            Class::Log => self.table.logs.get(key),
            Class::Data if !self.table.is_logged(class) => return self.table.memory.get(key),
            Class::Data => return self.data(key),
        };
        match known {
            Some(value) => value,
            None if self.table.is_logged(class) => self.stored(class, key),
            None => None,
        }
    }

    fn head(&self, key: &Bytes) -> Option<ValueHead> {
        if !self.table.is_logged(Class::Data) {
            return self.table.memory.head(key);
        }
        let known = self.records.borrow_mut().head(self.table.lane, key);
        known.unwrap_or_else(|| self.learn(key).map(|value| ValueHead::of(&value)))
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let is_logged = self.table.is_logged(class);
        if class == Class::Data {
            if !is_logged {
                return self.table.memory.scan(from, each);
            }
            self.table.pending.borrow_mut().sort(&self.records.borrow());
        }
        let start = Sorted::new(Bytes::copy_from_slice(from));
        let mut upper = self.pending(class, Bound::Included(&start));
        let mut more = true;
        let lane = self.table.lane;
        let low = store_key(lane, class, from);
        let high =
            if is_logged { Bytes::copy_from_slice(&store_end(lane, class)) } else { low.clone() };
        let scanned = self.store.scan(&low, &high, &mut |stored, value| {
            let key = &stored[5..];
            if class == Class::Log && self.table.logs.has_passed(key) {
                return true;
            }
            while more && let Some((above, newest)) = &upper {
                let order = above.bytes[..].cmp(key);
                if order == Ordering::Greater {
                    break;
                }
                if let Some(value) = newest {
                    more = each(&above.bytes, value);
                }
                upper = self.pending(class, Bound::Excluded(above));
                if order == Ordering::Equal {
                    return more;
                }
            }
            more = more && each(key, value);
            more
        });
        if let Err(fatal) = scanned {
            return self.fail(fatal);
        }
        while more && let Some((key, newest)) = &upper {
            if let Some(value) = newest {
                more = each(&key.bytes, value);
            }
            upper = self.pending(class, Bound::Excluded(key));
        }
    }
}

#[cfg(test)]
mod logs;
#[cfg(test)]
mod tests;
