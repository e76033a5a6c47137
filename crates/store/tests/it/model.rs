//! Both stores against an ordered map, with crashes.

use crate::conformance::{OnDisk, Subject};
use crate::damage::log::PAGE;
use crate::damage::recycling::{narrow, segments};
use crate::host::{Pairs, State, batch, delete, delete_entry, put, put_entry, trim};
use proptest::prelude::*;
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Batch, Log, Write};
use quorate_store::{Crash, MemoryStore, Options};

/// The bytes of a long value: its group has several pages.
const LONG_BYTES: usize = 20_000;

/// Names and values are one byte each, so that writes often meet.
#[derive(Clone, Copy, Debug)]
enum Change {
    Put(u8, u8),
    /// Of a value that is this byte over and over.
    PutLong(u8, u8),
    Delete(u8),
    /// Of one of two logs, at an index below eight.
    PutEntry(u8, u8),
    DeleteEntry(u8),
    Trim(u8),
}

impl Change {
    /// A group with this alone.
    fn step(self) -> Step {
        Step::Apply(vec![vec![self]])
    }

    fn write(&self) -> Write {
        let place = |at: u8| (u64::from(at / 8), u64::from(at % 8));
        match *self {
            Change::Put(name, value) => put(&[name], &[value]),
            Change::PutLong(name, value) => put(&[name], &[value; LONG_BYTES]),
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

fn with<S>(least: usize, (store, recovered): (S, Lsn)) -> (S, Option<(Lsn, usize)>) {
    (store, Some((recovered, least)))
}

/// Takes the steps, and compares after each; returns how many batches were lost in all.
fn run<S: Subject>(mut store: S, steps: &[Step]) -> usize {
    let (mut model, mut lost) = (Model::new(), 0);
    for step in steps {
        let (written, synced) = (model.written(), model.synced);
        // What was recovered, and how much of it there had to be.
        let reopened;
        (store, reopened) = match step {
            Step::Apply(group) => {
                store.log().apply(&model.batches(group)).expect("applied");
                (store, None)
            }
            Step::Sync => {
                store.sync_all();
                model.synced = written;
                (store, None)
            }
            Step::Restart => with(written, store.restart()),
            Step::Kill => with(written, store.kill()),
            Step::PowerLoss(seed) => with(synced, store.lose_power(&mut Rng::new(*seed))),
            Step::FailedSync(seed) => with(synced, store.fail_sync(&mut Rng::new(*seed))),
        };
        if let Some((recovered, least)) = reopened {
            model.recover(recovered, least);
            lost += written - model.written();
        }
        assert_eq!(&store.contents(), model.now());
        store.check(model.written(), model.synced);
    }
    lost
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_memory_store_is_an_ordered_map(steps in steps()) {
        run(MemoryStore::new(), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_store_on_disk_is_an_ordered_map(steps in steps()) {
        run(OnDisk::new(), &steps);
    }
}

/// What an end is, whether anything may be lost at all, and its steps for a seed.
type End = (&'static str, bool, fn(u64) -> Vec<Step>);

/// Ends of a store, each for the memory store, whose crashes the simulator draws, and for the log
/// on a disk.
const ENDS: [End; 12] = {
    use Change::{Delete, Put, PutEntry, PutLong, Trim};
    use Step::{Apply, FailedSync, Kill, PowerLoss, Restart, Sync};
    [
        ("a process is killed", false, |_| after(3, &[Kill, Put(1, 1).step(), Kill])),
        ("a synced store loses power", false, |seed| after(3, &[Sync, PowerLoss(seed)])),
        ("a store that was stopped loses power", false, |seed| {
            after(3, &[Restart, PowerLoss(seed)])
        }),
        ("what was recovered is synced", false, |seed| after(3, &[Kill, PowerLoss(seed)])),
        ("a tail is not synced", true, |seed| after(9, &[PowerLoss(seed)])),
        ("a tail is lost twice", true, |seed| {
            [after(5, &[Sync]), after(5, &[PowerLoss(seed)]), after(5, &[PowerLoss(!seed)])]
                .concat()
        }),
        ("a group is lost in whole batches", true, |seed| {
            let group = (0..4).map(|at| vec![Put(0, at), Delete(at), Put(5, at)]).collect();
            after(2, &[Sync, Apply(group), PowerLoss(seed)])
        }),
        ("entries come back with the trim that is lost", true, |seed| {
            let entries = (0..6).map(|at| vec![PutEntry(at, 1)]).collect();
            let after = [Trim(4), PutEntry(2, 9), Put(1, 1)].map(Change::step);
            [&[Apply(entries), Sync], &after[..], &[PowerLoss(seed)]].concat()
        }),
        ("a group of several pages is lost wholly", true, |seed| {
            let long = (0..4).map(|at| PutLong(at, at).step());
            let ends = [Sync, PutLong(0, 9).step(), PutLong(1, 9).step(), PowerLoss(seed)];
            long.chain(ends).collect()
        }),
        ("a tail is lost behind many groups", true, |seed| {
            [after(GROUPS_OF_A_USE, &[Sync]), after(8, &[PowerLoss(seed)])].concat()
        }),
        ("a tail is lost before groups of an earlier use", true, |seed| {
            let used = [after(GROUPS_OF_A_USE, &[Sync]), after(GROUPS_OF_A_USE, &[Sync])].concat();
            [used, after(8, &[PowerLoss(seed)])].concat()
        }),
        ("a sync fails", true, |seed| {
            let later = after(7, &[FailedSync(seed), Put(1, 1).step(), Kill]);
            [after(2, &[Sync]), later].concat()
        }),
    ]
};

/// So many groups of one write, and then these steps.
fn after(groups: u8, then: &[Step]) -> Vec<Step> {
    let writes = (0..groups).map(|at| Change::Put(at % 4, at).step());
    writes.chain(then.iter().cloned()).collect()
}

/// More groups than all segments of a narrow log have pages for.
const GROUPS_OF_A_USE: u8 = 70;

/// Takes every end with so many seeds; returns how many batches each lost that may lose some.
fn losses<S: Subject>(new: fn() -> S, seeds: u64) -> Vec<(&'static str, usize)> {
    let mut losses = Vec::new();
    for (name, may_lose, steps) in ENDS {
        let lost = (0..seeds).map(|seed| run(new(), &steps(seed))).sum();
        assert!(may_lose || lost == 0, "{name}: {lost} batches were lost");
        losses.extend(may_lose.then_some((name, lost)));
    }
    losses
}

fn ends_as_it_may<S: Subject>(new: fn() -> S, seeds: u64) {
    for (name, lost) in losses(new, seeds) {
        assert!(lost > 0, "{name}: nothing was lost");
    }
}

#[test]
fn the_memory_store_ends_as_a_disk_may() {
    ends_as_it_may(MemoryStore::new, 50);
}

#[test]
fn the_store_on_disk_ends_as_it_may() {
    ends_as_it_may(OnDisk::new, 8);
}

/// Memtables of a few writes, and segments that are soon used again.
fn tiny() -> OnDisk {
    OnDisk::with(Options { memtable_bytes: 300, ..narrow() })
}

/// A table that is written in the meantime makes what it holds durable. When it is, the machine
/// decides, so that a single end may lose nothing with any seed.
#[test]
fn the_store_of_many_tables_ends_as_it_may() {
    let losses = losses(tiny, 8);
    assert!(losses.iter().any(|(_, lost)| *lost > 0), "nothing was lost: {losses:?}");
}

#[test]
fn a_tiny_store_uses_segments_again() {
    let mut store = tiny();
    for lsn in 1..=GROUPS_OF_A_USE.into() {
        store.log().apply(&[batch(lsn, vec![put(b"a", b"1")])]).expect("applied");
        store.sync_all();
    }
    let pages = segments(&store.image()).len() * (narrow().segment_bytes as usize / PAGE - 1);
    assert!(pages < GROUPS_OF_A_USE.into(), "room for {pages} groups of a page");
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
