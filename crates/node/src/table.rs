//! A lane's bytes: the ordered layer of what is not durable yet, over the store.
//!
//! An entry stays in the layer until its batch is as durable as its class must be, so the layer
//! answers two questions at once: what is the newest value, and what must a reader of it wait for.
//! The data of a `memory` lane is never written, so it has a table of its own ([`crate::memory`]).

use crate::gate::Needs;
use crate::memory::{Memory, Sorted};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::cell::RefCell;
use core::cmp::Ordering;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, Lsn};
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::{Class, Durability, Durable, Reader, store_key};

#[derive(Debug)]
struct Entry {
    lsn: Lsn,
    value: Option<Bytes>,
}

type Layer = BTreeMap<Sorted, Entry>;

/// The bytes of one lane.
#[derive(Debug)]
pub struct LaneTable {
    durability: Durability,
    state: Layer,
    data: Layer,
    /// The data of a `memory` lane.
    memory: Memory,
    /// What each batch wrote, oldest first, to be dropped from the layer when it is durable.
    state_log: VecDeque<(Lsn, Sorted)>,
    data_log: VecDeque<(Lsn, Sorted)>,
    newest_state: Lsn,
    newest_data: Lsn,
}

impl LaneTable {
    /// The empty layer of a lane.
    #[must_use]
    pub fn new(durability: Durability) -> LaneTable {
        LaneTable {
            durability,
            state: Layer::new(),
            data: Layer::new(),
            memory: Memory::default(),
            state_log: VecDeque::new(),
            data_log: VecDeque::new(),
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
    pub fn write(&mut self, class: Class, key: Bytes, value: Option<Bytes>, lsn: Lsn) {
        if !self.is_logged(class) {
            self.memory.set(&key, value);
            return;
        }
        let key = Sorted::new(key);
        let (layer, log, newest) = match class {
            Class::State => (&mut self.state, &mut self.state_log, &mut self.newest_state),
            Class::Data => (&mut self.data, &mut self.data_log, &mut self.newest_data),
        };
        assert!(*newest <= lsn, "batches are numbered upwards");
        *newest = lsn;
        log.push_back((lsn, key.clone()));
        layer.insert(key, Entry { lsn, value });
    }

    /// Drops from the layer what is durable enough and can be read from the store.
    pub fn settle(&mut self, durable: Durable) {
        let data_upto = match self.durability {
            Durability::Periodic { .. } => durable.written,
            Durability::Sync | Durability::Memory => durable.synced,
        };
        settle(&mut self.state, &mut self.state_log, durable.synced);
        settle(&mut self.data, &mut self.data_log, data_upto);
    }

    /// What must be durable before something that rests on the whole lane may leave.
    #[must_use]
    pub fn needs_all(&self) -> Needs {
        self.needs_data(self.newest_data)
    }

    /// What must be durable before something that rests on this data key may leave.
    #[must_use]
    pub fn needs_key(&self, key: &Bytes) -> Needs {
        if mutant!("gate_ignores_key") || !self.is_logged(Class::Data) {
            return self.needs_state();
        }
        let pending = self.data.get(&Sorted::new(key.clone()));
        self.needs_data(pending.map_or(Lsn(0), |entry| entry.lsn))
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

    fn layer(&self, class: Class) -> &Layer {
        match class {
            Class::State => &self.state,
            Class::Data => &self.data,
        }
    }
}

fn settle(layer: &mut Layer, log: &mut VecDeque<(Lsn, Sorted)>, upto: Lsn) {
    while log.front().is_some_and(|(lsn, _)| *lsn <= upto) {
        if let Some((_, key)) = log.pop_front()
            && layer.get(&key).is_some_and(|entry| entry.lsn <= upto)
        {
            layer.remove(&key);
        }
    }
}

/// What a lane reads during one call. A failure of the store is kept for the node, which then stops
/// and lets nothing out that the call asked for.
pub struct LaneReader<'a> {
    /// The lane's layer.
    pub table: &'a LaneTable,
    /// The lane.
    pub lane: LaneId,
    /// The store below.
    pub store: &'a dyn Reader,
    /// Where a failure goes.
    pub fatal: &'a RefCell<Option<Fatal>>,
}

impl LaneReader<'_> {
    fn fail(&self, fatal: Fatal) {
        self.fatal.borrow_mut().get_or_insert(fatal);
    }
}

impl Table for LaneReader<'_> {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        if !self.table.is_logged(class) {
            return self.table.memory.get(key);
        }
        if let Some(entry) = self.table.layer(class).get(&Sorted::new(key.clone())) {
            return entry.value.clone();
        }
        self.store.get(&store_key(self.lane, class, key)).unwrap_or_else(|fatal| {
            self.fail(fatal);
            None
        })
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        if !self.table.is_logged(class) {
            return self.table.memory.scan(from, each);
        }
        let start = Sorted::new(Bytes::copy_from_slice(from));
        let mut upper = self.table.layer(class).range(start..).peekable();
        let mut more = true;
        let low = store_key(self.lane, class, from);
        let mut high = Vec::from(&store_key(self.lane, class, &[])[..]);
        *high.last_mut().expect("the prefix has five bytes") += 1;
        let scanned = self.store.scan(&low, &high, &mut |stored, value| {
            let key = &stored[5..];
            while more && let Some((above, entry)) = upper.peek() {
                match above.bytes[..].cmp(key) {
                    Ordering::Greater => break,
                    order => {
                        if let Some(value) = &entry.value {
                            more = each(&above.bytes, value);
                        }
                        upper.next();
                        if order == Ordering::Equal {
                            return more;
                        }
                    }
                }
            }
            more = more && each(key, value);
            more
        });
        if let Err(fatal) = scanned {
            return self.fail(fatal);
        }
        for (key, entry) in upper {
            if !more {
                return;
            }
            if let Some(value) = &entry.value {
                more = each(&key.bytes, value);
            }
        }
    }
}
