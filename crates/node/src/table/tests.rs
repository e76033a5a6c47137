//! A lane's table agrees with an ordered map, however little of it is at hand.

use super::*;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use proptest::prelude::*;
use quorate_kernel::limits::CACHED_RECORD_BYTES_MAX;
use quorate_kernel::storage::{Batch, Write};

const LANE: LaneId = LaneId(7);
/// A lane beside it, whose keys are the same.
const OTHER: LaneId = LaneId(8);

/// The store below: batches that were given, and what of them has reached it.
#[derive(Default)]
struct Below {
    given: VecDeque<Batch>,
    reached: BTreeMap<Bytes, Bytes>,
    reads: RefCell<usize>,
}

impl Reader for Below {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        *self.reads.borrow_mut() += 1;
        Ok(self.reached.get(key).cloned())
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        let range = Bytes::copy_from_slice(from)..Bytes::copy_from_slice(to);
        for (key, value) in self.reached.range(range) {
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }
}

struct World {
    tables: [LaneTable; 2],
    records: RefCell<Records>,
    below: Below,
    lsn: Lsn,
    durable: Durable,
    models: [BTreeMap<Bytes, Bytes>; 2],
}

impl World {
    fn new(durability: Durability, cache_bytes: usize) -> World {
        World {
            tables: [LANE, OTHER].map(|lane| LaneTable::new(lane, durability)),
            records: RefCell::new(Records::new(cache_bytes)),
            below: Below::default(),
            lsn: Lsn(0),
            durable: Durable::default(),
            models: [BTreeMap::new(), BTreeMap::new()],
        }
    }

    /// One batch of one write.
    fn write(&mut self, lane: usize, key: Bytes, value: Option<Bytes>) {
        self.lsn.0 += 1;
        let table = &mut self.tables[lane];
        match &value {
            Some(value) => drop(self.models[lane].insert(key.clone(), value.clone())),
            None => drop(self.models[lane].remove(&key)),
        }
        if table.is_logged(Class::Data) {
            let write =
                Write { key: store_key(table.lane, Class::Data, &key), value: value.clone() };
            let batch = Batch { lsn: self.lsn, must_sync: true, writes: Vec::from([write]) };
            self.below.given.push_back(batch);
        }
        table.write((Class::Data, key, value), self.lsn, self.records.get_mut());
    }

    /// So many batches reach the store; all of them, but for as many, are synced.
    fn reach(&mut self, count: usize, unsynced: u64) {
        for _ in 0..count {
            let Some(batch) = self.below.given.pop_front() else { break };
            self.durable.written = batch.lsn;
            for Write { key, value } in batch.writes {
                match value {
                    Some(value) => drop(self.below.reached.insert(key, value)),
                    None => drop(self.below.reached.remove(&key)),
                }
            }
        }
        let Durable { written, synced } = &mut self.durable;
        *synced = Lsn(written.0.saturating_sub(unsynced)).max(*synced);
        for table in &mut self.tables {
            table.settle(self.durable, self.records.get_mut());
        }
        self.records.get_mut().trim();
    }

    /// A lane is dropped, and one after it has its name: nothing is left of the first.
    fn renew(&mut self, lane: usize) {
        let id = self.tables[lane].lane;
        self.tables[lane] = LaneTable::new(id, self.tables[lane].durability());
        self.records.get_mut().forget(id);
        self.models[lane].clear();
        let is_kept = |key: &Bytes| !key.starts_with(&id.0.to_be_bytes());
        self.below.reached.retain(|key, _| is_kept(key));
        for batch in &mut self.below.given {
            batch.writes.retain(|write| is_kept(&write.key));
        }
    }

    fn reader<'a>(&'a self, lane: usize, fatal: &'a RefCell<Option<Fatal>>) -> LaneReader<'a> {
        let (table, records, store) = (&self.tables[lane], &self.records, &self.below);
        LaneReader { table, records, store, fatal }
    }
}

fn key(n: u8) -> Bytes {
    // Some are the beginnings of others.
    Bytes::from(Vec::from(&b"0123456789ab"[..usize::from(n % 12)]))
}

fn value(n: u8, length: u16) -> Bytes {
    let length = if length == 0 { CACHED_RECORD_BYTES_MAX + 1 } else { usize::from(length % 300) };
    Bytes::from(alloc::vec![n; length])
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16),
    Delete,
    Get,
    Head,
    Scan,
    Reach(u8, u8),
    Renew,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<u8>(), any::<u16>()).prop_map(|(n, length)| Step::Put(n, length)),
        1 => any::<u8>().prop_map(|n| Step::Put(n, 0)),
        1 => Just(Step::Delete),
        4 => Just(Step::Get),
        4 => Just(Step::Head),
        1 => Just(Step::Scan),
        1 => Just(Step::Renew),
        2 => (0..4_u8, 0..3_u8).prop_map(|(count, unsynced)| Step::Reach(count, unsynced)),
    ]
}

proptest! {
    #[test]
    fn it_has_what_was_written_last(
        durability in prop_oneof![
            Just(Durability::Sync),
            Just(Durability::Memory),
            Just(Durability::Periodic { every_ms: 50 }),
        ],
        cache_bytes in prop_oneof![Just(0), Just(1_000), Just(1_000_000)],
        steps in prop::collection::vec((0..2_usize, any::<u8>(), step()), 0..80),
    ) {
        let mut world = World::new(durability, cache_bytes);
        for (lane, at, step) in steps {
            let key = key(at);
            let fatal = RefCell::new(None);
            match step {
                Step::Put(n, length) => world.write(lane, key, Some(value(n, length))),
                Step::Delete => world.write(lane, key, None),
                Step::Renew => world.renew(lane),
                Step::Reach(count, unsynced) => {
                    world.reach(usize::from(count), u64::from(unsynced));
                }
                Step::Get => {
                    let found = world.reader(lane, &fatal).get(Class::Data, &key);
                    prop_assert_eq!(found.as_ref(), world.models[lane].get(&key));
                }
                Step::Head => {
                    let found = world.reader(lane, &fatal).head(&key);
                    let model = world.models[lane].get(&key);
                    prop_assert_eq!(found, model.map(|value| ValueHead::of(value)));
                }
                Step::Scan => {
                    let mut found = Vec::new();
                    world.reader(lane, &fatal).scan(Class::Data, &key, &mut |key, value| {
                        found.push((Bytes::copy_from_slice(key), value.clone()));
                        true
                    });
                    let model = world.models[lane].range(key..);
                    let model: Vec<_> = model.map(|(k, v)| (k.clone(), v.clone())).collect();
                    prop_assert_eq!(found, model);
                }
            }
            world.records.borrow().check();
        }
    }
}

/// What is at hand is not read from the store, and a write takes its place.
#[test]
fn what_was_read_is_at_hand_until_it_is_overwritten() {
    let mut world = World::new(Durability::Sync, 1 << 20);
    let (fatal, name) = (RefCell::new(None), key(9));
    world.write(0, name.clone(), Some(value(1, 99)));
    world.reach(1, 0);
    // As after a restart.
    world.records = RefCell::new(Records::new(1 << 20));
    for read in [1, 1, 1] {
        let found = world.reader(0, &fatal).get(Class::Data, &name);
        assert_eq!(found, Some(value(1, 99)));
        assert_eq!(*world.below.reads.borrow(), read, "the store is asked once");
    }
    world.write(0, name.clone(), Some(value(2, 99)));
    let head = |world: &World| world.reader(0, &fatal).head(&name);
    assert_eq!(world.reader(0, &fatal).get(Class::Data, &name), Some(value(2, 99)));
    assert_eq!(head(&world), Some(ValueHead::of(&value(2, 99))));
    world.reach(1, 0);
    assert_eq!(world.reader(0, &fatal).get(Class::Data, &name), Some(value(2, 99)));
    assert_eq!(*world.below.reads.borrow(), 1, "what was written is at hand too");
}

/// More than there is room for: what is not synced stays, the rest is taken from the store again.
#[test]
fn the_bound_is_kept_beside_what_is_not_synced() {
    let (mut world, bound) = (World::new(Durability::Sync, 20_000), 20_000);
    let fatal = RefCell::new(None);
    let name = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
    for n in 0..400 {
        world.write(0, name(n), Some(value(n as u8, 100)));
        assert_eq!(world.tables[0].needs_key(&name(n), world.records.get_mut()).synced, world.lsn);
    }
    assert!(world.records.get_mut().bytes() > 400 * 100, "nothing of it is in the store yet");
    world.reach(400, 0);
    for n in 0..400 {
        let found = world.reader(0, &fatal).get(Class::Data, &name(n));
        assert_eq!(found, Some(value(n as u8, 100)));
    }
    let bytes = world.records.get_mut().bytes();
    assert!(bytes <= bound + 1_000, "{bytes} bytes");
    assert!(*world.below.reads.borrow() > 0, "what there was no room for is read again");
    world.records.get_mut().forget(LANE);
    assert_eq!(world.records.get_mut().bytes(), 0);
}

/// What is written and not synced yet is in the store all the same: in between two syncs of a
/// `periodic` keyspace much may be.
#[test]
fn the_bound_is_kept_between_two_syncs() {
    let (periodic, bound) = (Durability::Periodic { every_ms: 60_000 }, 20_000);
    let (mut world, fatal) = (World::new(periodic, bound), RefCell::new(None));
    let name = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
    for n in 0..400 {
        world.write(0, name(n), Some(value(n as u8, 100)));
    }
    world.reach(400, 400);
    assert_eq!(world.durable, Durable { written: world.lsn, synced: Lsn(0) });
    for n in 0..400 {
        let found = world.reader(0, &fatal).get(Class::Data, &name(n));
        assert_eq!(found, Some(value(n as u8, 100)));
    }
    let bytes = world.records.get_mut().bytes();
    assert!(bytes <= bound + 1_000, "{bytes} bytes");
}

/// Long values that are read, or written, where many short ones were.
#[test]
fn the_bound_is_kept_when_longer_values_come() {
    let bound = 1 << 20;
    let name = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
    let long = Bytes::from(alloc::vec![7; CACHED_RECORD_BYTES_MAX]);
    for is_read in [true, false] {
        let (mut world, fatal) = (World::new(Durability::Sync, bound), RefCell::new(None));
        for n in 0..8_000 {
            world.write(0, name(n), Some(value(1, 40)));
        }
        world.reach(8_000, 0);
        for n in 8_000..8_200 {
            if is_read {
                let key = store_key(LANE, Class::Data, &name(n));
                world.below.reached.insert(key, long.clone());
                let found = world.reader(0, &fatal).get(Class::Data, &name(n));
                assert_eq!(found.as_ref(), Some(&long));
            } else {
                world.write(0, name(n), Some(long.clone()));
                world.reach(1, 0);
            }
            let bytes = world.records.get_mut().bytes();
            assert!(bytes <= bound * 3 / 2, "{bytes} bytes, is_read {is_read}");
        }
    }
}

/// Of what is read, and of what is written and has reached the store.
#[test]
fn a_record_is_at_hand_as_a_whole_up_to_its_bound() {
    for (length, is_whole) in
        [(CACHED_RECORD_BYTES_MAX, true), (CACHED_RECORD_BYTES_MAX + 1, false)]
    {
        let (mut world, fatal) = (World::new(Durability::Sync, 1 << 20), RefCell::new(None));
        let (name, long) = (key(9), Bytes::from(alloc::vec![7; length]));
        world.write(0, name.clone(), Some(long.clone()));
        world.reach(1, 0);
        let reads = |world: &World| {
            let found = world.reader(0, &fatal).get(Class::Data, &name);
            assert_eq!(found.as_ref(), Some(&long));
            *world.below.reads.borrow()
        };
        assert_eq!(reads(&world), usize::from(!is_whole), "{length} bytes were written");
        world.records = RefCell::new(Records::new(1 << 20));
        let first = reads(&world);
        assert_eq!(reads(&world) - first, usize::from(!is_whole), "{length} bytes were read");
    }
}

/// A value that is overwritten by one of its length stays in its place, unless somebody has it.
#[test]
fn memory_is_overwritten_in_place() {
    let mut memory = Memory::default();
    let name = key(9);
    let place = |memory: &Memory| memory.get(&name).map(|value| value.as_ptr() as usize);
    memory.set(&name, Some(value(1, 100)));
    let first = place(&memory);
    memory.set(&name, Some(value(2, 100)));
    assert_eq!((place(&memory), memory.get(&name)), (first, Some(value(2, 100))));
    let held = memory.get(&name);
    memory.set(&name, Some(value(3, 100)));
    assert_eq!((held, memory.get(&name)), (Some(value(2, 100)), Some(value(3, 100))));
}
