//! Tables that pile up, and space that cannot be given back for want of room.

use super::*;
use crate::identity::{Identity, Secret};
use crate::log::machine_clock;
use crate::slow::{SLOW_STEP_LEAST, Step};
use crate::tables::lsm::FIRST_LEVEL_TABLES_MAX;
use fjall::AbstractTree;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Class, Write, store_key};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

/// How long what must come is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn identity() -> Identity {
    Identity {
        cluster: ClusterId(1),
        node: NodeId(2),
        host: 1,
        is_founder: true,
        secret: Secret([7; 32]),
        context_key: None,
        hosts: Vec::new(),
        keyspaces: Vec::new(),
    }
}

/// A directory and its store.
fn serve(path: &Path) -> (Directory, Opened) {
    serve_with(path, &Options::default())
}

fn serve_with(path: &Path, options: &Options) -> (Directory, Opened) {
    let directory = Directory::open(path, None).expect("opened");
    let opened = open(&directory, options, machine_clock()).expect("opened");
    (directory, opened)
}

fn name(number: u64) -> Bytes {
    store_key(LaneId(16), Class::Data, &number.to_be_bytes())
}

/// Adds tables that overlap, more than there may be when another is added, and tells the database
/// of none. Threads look at their start what an earlier one has left, and may merge the first.
fn pile_up(tables: &Tables) {
    let began = Instant::now();
    while tables.keyspace.l0_table_count() <= FIRST_LEVEL_TABLES_MAX {
        assert!(began.elapsed() < PATIENCE, "they do not pile up");
        let mut ingestion = tables.keyspace.tree.ingestion().expect("it begins");
        for number in [0, 1] {
            ingestion.write(&name(number)[..], &b"old"[..]).expect("written");
        }
        ingestion.finish().expect("added");
    }
}

/// Writes a batch whose memtable is to become a table.
fn write_and_seal(opened: &mut Opened, lsn: u64) {
    let write = Write { key: name(1), value: Some(Bytes::from_static(b"new")) };
    let batch = Batch { lsn: Lsn(lsn), must_sync: true, writes: vec![write] };
    opened.log.apply(&[batch]).expect("applied");
    opened.log.disk.with_engine(Wal::seal).expect("handed over");
}

/// Does something that could wait for ever.
fn in_time<T: Send + 'static>(doing: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    std::thread::spawn(move || done.send(doing()));
    ended.recv_timeout(PATIENCE).expect("it ends")
}

#[test]
fn tables_that_have_piled_up_are_merged_though_nobody_told_the_database() {
    let place = tempfile::tempdir().expect("a temporary directory");
    crate::create(place.path(), &identity()).expect("created");
    let (directory, mut opened) = serve(place.path());
    let tables = opened.log.ground.tables.clone();
    pile_up(&tables);
    write_and_seal(&mut opened, 1);
    let opened = in_time(move || {
        opened.log.settle().expect("it becomes a table");
        opened
    });
    assert_eq!(tables.covered(), Ok(Lsn(1)));
    let began = Instant::now();
    // Four are where the levels of the database begin to be out of shape.
    while tables.keyspace.l0_table_count() >= 4 {
        assert!(began.elapsed() < PATIENCE, "the rest of them is never merged");
        std::thread::yield_now();
    }
    assert_eq!(opened.reader.get(&name(1)), Ok(Some(Bytes::from_static(b"new"))));
    assert_eq!(opened.reader.get(&name(0)), Ok(Some(Bytes::from_static(b"old"))));
    drop(tables);
    in_time(move || opened.log.close()).expect("closed");
    drop(directory);
}

#[test]
fn a_store_is_closed_while_a_table_waits_for_merges() {
    let place = tempfile::tempdir().expect("a temporary directory");
    crate::create(place.path(), &identity()).expect("created");
    let (directory, mut opened) = serve(place.path());
    let tables = opened.log.ground.tables.clone();
    opened.log.ground.tables.merges.close();
    pile_up(&tables);
    write_and_seal(&mut opened, 1);
    drop(opened.reader);
    let log = opened.log;
    in_time(move || log.close()).expect("closed");
    assert_eq!(tables.covered(), Ok(Lsn(0)), "it waited to the end");
    drop((tables, directory));
    let (_directory, opened) = serve(place.path());
    assert_eq!(opened.recovered, Lsn(1), "the log has what is not in the tables");
    assert_eq!(opened.reader.get(&name(1)), Ok(Some(Bytes::from_static(b"new"))));
}

#[test]
fn slow_steps_are_kept_where_the_caller_wants_them() {
    let place = tempfile::tempdir().expect("a temporary directory");
    crate::create(place.path(), &identity()).expect("created");
    let options = Options { sync_delay: SLOW_STEP_LEAST, ..Options::default() };
    let (_directory, mut opened) = serve_with(place.path(), &options);
    let slow = SlowSteps::default();
    opened.log.keep_slow_steps(&slow);
    write_and_seal(&mut opened, 1);
    let is_kept = |step: Step| slow.list().iter().any(|slow| slow.step == step);
    let write = Write { key: name(2), value: None };
    let batch = Batch { lsn: Lsn(2), must_sync: true, writes: vec![write] };
    opened.log.apply(&[batch]).expect("applied");
    opened.log.sync().expect("synced");
    assert!(is_kept(Step::Sync), "{:?}", slow.list());
    opened.log.disk.engine.slow.timed(Step::Backlog, 0, || std::thread::sleep(SLOW_STEP_LEAST));
    assert!(is_kept(Step::Backlog), "the write path keeps its own there too");
    opened.log.close().expect("closed");
}

/// The database has its list of tables locked while it syncs the next one, several times.
#[test]
fn nothing_waits_for_the_list_of_tables_but_threads_that_wait_for_the_disk_anyway() {
    let place = tempfile::tempdir().expect("a temporary directory");
    crate::create(place.path(), &identity()).expect("created");
    let (directory, mut opened) = serve(place.path());
    write_and_seal(&mut opened, 1);
    opened.log.settle().expect("it becomes a table");
    let tables = opened.log.ground.tables.clone();
    let listed = tables.keyspace.tree.get_version_history_lock();
    let mut opened = in_time(move || {
        assert_eq!(opened.log.ground.memtables.get(&name(1)), None, "it is in a table alone");
        assert_eq!(opened.reader.get(&name(1)), Ok(Some(Bytes::from_static(b"new"))));
        assert_eq!(opened.reader.get(&name(2)), Ok(None));
        let mut found = 0;
        let mut count = |_: &Bytes, _: &Bytes| {
            found += 1;
            true
        };
        opened.reader.scan(&name(0), &name(9), &mut count).expect("scanned");
        assert_eq!(found, 1);
        assert!(opened.reader.stats().table_bytes > 0);
        assert!(opened.log.garbage_bytes() > 0, "the record may have replaced another");
        for lsn in 2..4 {
            opened.log.reclaim().expect("asked for");
            let batch = Batch { lsn: Lsn(lsn), must_sync: true, writes: Vec::new() };
            opened.log.apply(&[batch]).expect("applied");
            opened.log.sync().expect("synced");
            opened.log.maintain().expect("marked");
        }
        opened
    });
    drop(listed);
    // Who had to wait goes on.
    space::look(&mut opened.log);
    drop((tables, opened, directory));
}

/// The list of tables is locked, so that no memtable becomes a table.
#[test]
fn writers_wait_while_two_full_memtables_wait() {
    const BATCHES: u64 = 40;
    const MEMTABLE_BYTES: u64 = 400;
    let place = tempfile::tempdir().expect("a temporary directory");
    crate::create(place.path(), &identity()).expect("created");
    let options = Options { memtable_bytes: MEMTABLE_BYTES, ..Options::default() };
    let (directory, mut opened) = serve_with(place.path(), &options);
    let (reader, tables) = (opened.reader.clone(), opened.log.ground.tables.clone());
    let written = Arc::new(AtomicU64::new(0));
    let so_far = Arc::clone(&written);
    // Where the test fails the store is closed when the lock is free.
    let writer;
    let listed = tables.keyspace.tree.get_version_history_lock();
    writer = std::thread::spawn(move || {
        for lsn in 1..=BATCHES {
            let write = Write { key: name(lsn), value: Some(Bytes::from(vec![1; 100])) };
            let batch = Batch { lsn: Lsn(lsn), must_sync: false, writes: vec![write] };
            opened.log.apply(&[batch]).expect("applied");
            so_far.store(lsn, Ordering::Release);
        }
        opened
    });
    let began = Instant::now();
    // Two that wait, and one that is to be handed over.
    while reader.stats().memtable_bytes < 3 * MEMTABLE_BYTES {
        assert!(began.elapsed() < PATIENCE, "nothing is written");
        std::thread::yield_now();
    }
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(2));
        let bytes = reader.stats().memtable_bytes;
        assert!(bytes < 5 * MEMTABLE_BYTES, "{bytes} bytes are in memory");
    }
    assert!(written.load(Ordering::Acquire) < BATCHES, "it waits");
    drop(listed);
    let opened = in_time(move || writer.join().expect("written"));
    let found = |lsn| opened.reader.get(&name(lsn)).expect("read").is_some();
    assert!((1..=BATCHES).all(found), "nothing is lost by waiting");
    drop((reader, tables, opened, directory));
}

mod space;
