//! Both stores against an ordered map, with crashes.

use crate::conformance::{OnDisk, Subject};
use crate::host::{Pairs, State, batch, contents, delete, delete_entry, put, put_entry, trim};
use proptest::prelude::*;
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Batch, Log, Write};
use quorate_store::{Crash, MemoryStore};

/// Names and values are one byte each, so that writes often meet.
#[derive(Clone, Debug)]
enum Change {
    Put(u8, u8),
    Delete(u8),
    /// Of one of two logs, at an index below eight.
    PutEntry(u8, u8),
    DeleteEntry(u8),
    Trim(u8),
}

impl Change {
    fn write(&self) -> Write {
        let place = |at: u8| (u64::from(at / 8), u64::from(at % 8));
        match *self {
            Change::Put(name, value) => put(&[name], &[value]),
            Change::Delete(name) => delete(&[name]),
            Change::PutEntry(at, value) => put_entry(place(at).0, place(at).1, &[value]),
            Change::DeleteEntry(at) => delete_entry(place(at).0, place(at).1),
            Change::Trim(at) => trim(place(at).0, place(at).1),
        }
    }
}

type Writes = Vec<Change>;

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<Writes>),
    Sync,
    Restart,
    Kill,
    PowerLoss(u64),
    FailedSync(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = prop_oneof![
        4 => (0..6_u8, any::<u8>()).prop_map(|(name, value)| Change::Put(name, value)),
        2 => (0..6_u8).prop_map(Change::Delete),
        4 => (0..16_u8, any::<u8>()).prop_map(|(at, value)| Change::PutEntry(at, value)),
        1 => (0..16_u8).prop_map(Change::DeleteEntry),
        1 => (0..16_u8).prop_map(Change::Trim),
    ];
    let writes = prop::collection::vec(change, 0..4);
    let step = prop_oneof![
        8 => prop::collection::vec(writes, 1..4).prop_map(Step::Apply),
        4 => Just(Step::Sync),
        1 => Just(Step::Restart),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(Step::PowerLoss),
        1 => any::<u64>().prop_map(Step::FailedSync),
    ];
    prop::collection::vec(step, 1..40)
}

/// What the store must hold after each batch.
struct Model {
    states: Vec<State>,
    synced: usize,
}

impl Model {
    fn new() -> Model {
        Model { states: vec![State::default()], synced: 0 }
    }

    fn written(&self) -> usize {
        self.states.len() - 1
    }

    /// Takes the next batches in, and returns them for the store.
    fn batches(&mut self, group: &[Writes]) -> Vec<Batch> {
        let mut batches = Vec::new();
        for writes in group {
            let mut state = self.states[self.written()].clone();
            let list: Vec<Write> = writes.iter().map(Change::write).collect();
            list.iter().for_each(|write| state.apply(write));
            self.states.push(state);
            batches.push(batch(self.written() as u64, list));
        }
        batches
    }

    fn now(&self) -> &Pairs {
        &self.states[self.written()].pairs
    }

    /// After a reopen: everything recovered is synced.
    fn recover(&mut self, recovered: Lsn, least: usize) {
        let recovered = recovered.0 as usize;
        assert!((least..=self.written()).contains(&recovered), "{recovered}, not below {least}");
        self.states.truncate(recovered + 1);
        self.synced = recovered;
    }
}

fn run_memory(steps: &[Step]) {
    let (mut store, mut model) = (MemoryStore::new(), Model::new());
    for step in steps {
        match step {
            Step::Apply(group) => store.apply(&model.batches(group)).expect("applied"),
            Step::Sync => {
                store.sync().expect("synced");
                model.synced = model.written();
            }
            Step::Restart | Step::Kill => {
                let (next, recovered) = store.kill();
                store = next;
                model.recover(recovered, model.written());
            }
            Step::PowerLoss(seed) => {
                store.crash(Crash::PowerLoss, &mut Rng::new(*seed));
                assert!(store.sync().is_err(), "a crashed store refuses");
                model.recover(store.reopen(), model.synced);
            }
            Step::FailedSync(seed) => {
                store.fail_next_sync();
                assert!(store.sync().is_err());
                assert!(store.apply(&[]).is_err(), "a failed log stays failed");
                store.crash(Crash::ProcessKill, &mut Rng::new(*seed));
                model.recover(store.reopen(), model.synced);
            }
        }
        assert_eq!(&contents(&store), model.now());
        assert_eq!(store.durable().written.0 as usize, model.written());
        assert_eq!(store.durable().synced.0 as usize, model.synced);
    }
}

fn run_on_disk(steps: &[Step]) {
    let (mut store, mut model) = (OnDisk::new(), Model::new());
    for step in steps {
        match step {
            Step::Apply(group) => store.log().apply(&model.batches(group)).expect("applied"),
            Step::Sync => store.log().sync().expect("synced"),
            Step::Restart => {
                let (next, recovered) = store.restart();
                store = next;
                model.recover(recovered, model.written());
            }
            Step::Kill | Step::PowerLoss(_) | Step::FailedSync(_) => {
                let (next, recovered) = store.kill();
                store = next;
                model.recover(recovered, model.written());
            }
        }
        assert_eq!(&store.contents(), model.now());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_memory_store_is_an_ordered_map(steps in steps()) {
        run_memory(&steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_store_on_disk_is_an_ordered_map(steps in steps()) {
        run_on_disk(&steps);
    }
}

#[test]
fn a_loss_of_power_keeps_every_prefix_of_what_was_not_synced() {
    let mut seen = [0; 4];
    for seed in 0..200 {
        let mut store = MemoryStore::new();
        store.apply(&[batch(1, vec![put(b"a", b"1")])]).expect("applied");
        store.sync().expect("synced");
        let unsynced: Vec<Batch> = (2..5).map(|lsn| batch(lsn, vec![put(b"a", b"2")])).collect();
        store.apply(&unsynced).expect("applied");
        store.crash(Crash::PowerLoss, &mut Rng::new(seed));
        seen[store.reopen().0 as usize - 1] += 1;
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn a_wiped_store_is_a_new_one() {
    let mut store = MemoryStore::new();
    store.apply(&[batch(1, vec![put(b"a", b"1")])]).expect("applied");
    store.wipe();
    assert_eq!((store.key_count(), store.reopen()), (0, Lsn(0)));
    store.apply(&[batch(1, vec![put(b"b", b"1")])]).expect("applied");
    assert_eq!(store.key_count(), 1);
}
