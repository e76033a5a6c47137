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
    look(&mut opened.log);
    drop((tables, opened, directory));
}

/// A small file system in memory, where the machine lets us mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mounted = mount("tmpfs", place.path(), "tmpfs", MountFlags::empty(), c"size=64m");
        mounted.is_ok().then_some(SmallDisk(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(self.0.path(), UnmountFlags::DETACH);
    }
}

/// Takes all that is left of a disk but for so many bytes.
fn fill_up(ballast: &Path, but: u64) {
    let mut file = File::create(ballast).expect("created");
    let mut bytes = 0;
    while file.write_all(&[1; 4096]).is_ok() {
        bytes += 4096;
    }
    file.set_len(bytes - but).expect("cut");
}

/// Looks after the space once a thread has looked what the disk has.
fn look(log: &mut StoreLog) {
    let began = Instant::now();
    while !log.ground.tables.merges.has_looked() {
        assert!(began.elapsed() < PATIENCE, "nobody looks");
        std::thread::yield_now();
    }
    log.reclaim().expect("looked");
}

/// Has space given back until none is left to be given.
fn give_back(log: &mut StoreLog) {
    let began = Instant::now();
    while !log.reclaim.is_done() {
        assert!(began.elapsed() < PATIENCE, "it is never given back");
        log.reclaim().expect("merged");
        // On a busy machine a merge is long, and a long rest follows.
        log.reclaim.rest_until = None;
        std::thread::yield_now();
    }
    log.reclaim().expect("merged");
    look(log);
    // Nothing that was found earlier is taken for what is found from now on.
    look(log);
    log.reclaim.rest_until = None;
}

/// Writes single keys, each in a batch that is synced.
struct Puts {
    rng: Rng,
    lsn: u64,
}

impl Puts {
    /// Some megabytes in tables, of which nothing is left to be given back.
    fn filled(opened: &mut Opened) -> Puts {
        let mut puts = Puts { rng: Rng::new(3), lsn: 0 };
        for number in 0..200 {
            let value = puts.value(64 << 10);
            puts.put(opened, number, Some(value));
        }
        give_back(&mut opened.log);
        puts
    }

    /// Nothing that could be compressed.
    fn value(&mut self, bytes: usize) -> Bytes {
        (0..bytes / 8).flat_map(|_| self.rng.next().to_le_bytes()).collect()
    }

    fn put(&mut self, opened: &mut Opened, number: u64, value: Option<Bytes>) {
        self.lsn += 1;
        let writes = vec![Write { key: name(number), value }];
        let batch = Batch { lsn: Lsn(self.lsn), must_sync: true, writes };
        opened.log.apply(&[batch]).expect("applied");
        opened.log.sync().expect("synced");
    }
}

/// A new store with a small log.
fn small(place: &Path) -> (Directory, Opened) {
    crate::create(place, &identity()).expect("created");
    let options = Options { segment_bytes: 1 << 20, log_bytes_max: 4 << 20, ..Options::default() };
    serve_with(place, &options)
}

/// Something is written before every other look.
#[test]
fn space_is_given_back_between_two_bursts() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let mut puts = Puts::filled(&mut opened);
    (0..60).for_each(|number| puts.put(&mut opened, number, None));
    let burst = puts.value(512 << 10);
    puts.put(&mut opened, 200, Some(burst));
    look(&mut opened.log);
    assert!(!opened.log.reclaim.is_done(), "it is not quiet");
    look(&mut opened.log);
    let began = Instant::now();
    while !opened.log.reclaim.is_done() {
        assert!(began.elapsed() < PATIENCE, "it was quiet, and nothing is given back");
        std::thread::yield_now();
    }
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}

#[test]
fn space_is_given_back_only_where_the_disk_has_room_for_what_is_merged() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let place = disk.0.path();
    let (directory, mut opened) = small(place);
    let mut puts = Puts::filled(&mut opened);
    let full = opened.reader.stats().table_bytes;
    (0..60).for_each(|number| puts.put(&mut opened, number, None));
    let ballast = place.join("ballast");
    fill_up(&ballast, 6 << 20);
    for _ in 0..4 {
        look(&mut opened.log);
        assert!(!opened.log.reclaim.is_done(), "what is left cannot be merged");
    }
    puts.put(&mut opened, 200, None);
    std::fs::remove_file(&ballast).expect("removed");
    give_back(&mut opened.log);
    let left = opened.reader.stats().table_bytes;
    assert!(left < full - (2 << 20), "{left} bytes are left of {full}");
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}

/// A store that is too large for one merge is merged in pieces.
#[test]
fn space_of_a_large_store_is_given_back_in_pieces() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let mut puts = Puts::filled(&mut opened);
    opened.log.reclaim.whole_bytes_most = 0;
    let tables = opened.log.ground.tables.clone();
    for deleted in [20..60, 0..40] {
        let full = opened.reader.stats().table_bytes;
        deleted.for_each(|number| puts.put(&mut opened, number, None));
        // It lies behind all that is in the last level.
        let value = puts.value(8);
        puts.put(&mut opened, 1000 + full, Some(value));
        give_back(&mut opened.log);
        let left = opened.reader.stats().table_bytes;
        assert!(left < full - (1 << 20), "{left} bytes are left of {full}");
        let version = tables.keyspace.tree.current_version();
        let levels: Vec<u64> = version.iter_levels().map(|level| level.size()).collect();
        assert!(
            levels
                .split_last()
                .is_some_and(|(last, rest)| { *last > 0 && rest.iter().all(|bytes| *bytes == 0) })
        );
    }
    for number in 0..200 {
        let value = opened.reader.get(&name(number)).expect("read");
        assert_eq!(value.is_some(), number >= 60, "key {number}");
    }
    drop(tables);
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}

/// Some megabytes of tables of which much is deleted, all of it in tables, and merges at rest.
fn due(opened: &mut Opened) -> Puts {
    let mut puts = Puts::filled(opened);
    (0..60).for_each(|number| puts.put(opened, number, None));
    opened.log.disk.with_engine(Wal::seal).expect("sealed");
    opened.log.settle().expect("in tables");
    let began = Instant::now();
    while opened.log.ground.tables.merge_once().expect("merged") {
        assert!(began.elapsed() < PATIENCE, "merges have an end");
    }
    puts
}

#[test]
fn a_disk_that_fills_up_amid_a_merge_keeps_everything() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let place = disk.0.path();
    let (directory, mut opened) = small(place);
    let mut puts = due(&mut opened);
    let full = opened.reader.stats().table_bytes;
    let ballast = place.join("ballast");
    fill_up(&ballast, 2 << 20);
    opened.log.reclaim.begin(&opened.log.ground).expect("begun");
    let began = Instant::now();
    while !opened.log.reclaim.is_done() {
        assert!(began.elapsed() < PATIENCE, "it never ends");
        std::thread::yield_now();
    }
    let failure = opened.log.reclaim().expect_err("the disk was full");
    assert!(matches!(failure, Fatal::Disk(_)), "{failure:?}");
    assert!(!opened.log.reclaim.is_done(), "it is still to be given back");
    for number in 0..200 {
        let value = opened.reader.get(&name(number)).expect("read");
        assert_eq!(value.is_some(), number >= 60, "key {number}");
    }
    std::fs::remove_file(&ballast).expect("removed");
    puts.put(&mut opened, 200, None);
    give_back(&mut opened.log);
    let left = opened.reader.stats().table_bytes;
    assert!(left < full - (2 << 20), "{left} bytes are left of {full}");
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}

/// Who closes a store waits for one piece at most, and the rest is merged after the next start.
#[test]
fn a_merge_in_pieces_can_be_broken_off() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let puts = due(&mut opened);
    opened.log.reclaim.whole_bytes_most = 0;
    let full = opened.reader.stats().table_bytes;
    opened.log.ground.tables.merges.close();
    opened.log.reclaim.begin(&opened.log.ground).expect("begun");
    opened.log.reclaim.wait().expect("broken off");
    assert!(!opened.log.reclaim.is_done(), "it is still to be merged");
    assert_eq!(opened.reader.stats().table_bytes, full, "nothing was merged");
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
    let options = Options { segment_bytes: 1 << 20, log_bytes_max: 4 << 20, ..Options::default() };
    let (directory, mut opened) = serve_with(place.path(), &options);
    assert_eq!(opened.recovered, Lsn(puts.lsn));
    opened.log.reclaim.whole_bytes_most = 0;
    give_back(&mut opened.log);
    let left = opened.reader.stats().table_bytes;
    assert!(left < full - (2 << 20), "{left} bytes are left of {full}");
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}

#[test]
fn a_merge_that_fails_for_another_reason_stops_the_store() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let puts = due(&mut opened);
    let tables = opened.log.ground.tables.keyspace.path().join("tables");
    let aside = place.path().join("aside");
    std::fs::rename(&tables, &aside).expect("moved");
    opened.log.reclaim.begin(&opened.log.ground).expect("begun");
    let failure = opened.log.reclaim.wait().expect_err("no table can be written");
    let batch = Batch { lsn: Lsn(puts.lsn + 1), must_sync: true, writes: Vec::new() };
    // Who writes nothing hears of it, and stops not as if all were well.
    assert_eq!(opened.log.maintain(), Err(failure.clone()));
    assert_eq!(opened.log.apply(&[batch]), Err(failure.clone()));
    assert_eq!(opened.log.finish(), Err(failure));
    drop((opened, directory));
}

/// The disk becomes full behind it: the log goes on with what it has.
#[test]
fn a_segment_that_was_waited_for_has_its_blocks() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let place = disk.0.path();
    let (directory, mut opened) = small(place);
    let mut puts = Puts { rng: Rng::new(4), lsn: 0 };
    fill_up(&place.join("ballast"), 0);
    let value = puts.value(64 << 10);
    (0..12).for_each(|number| puts.put(&mut opened, number, Some(value.clone())));
    drop((opened, directory));
}

/// A counter that is written all the time is little garbage beside what is there.
#[test]
fn a_store_is_not_merged_for_what_is_little_beside_it() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let mut puts = Puts::filled(&mut opened);
    let full = opened.reader.stats().table_bytes;
    for _ in 0..20 {
        let value = puts.value(64);
        (0..100).for_each(|_| puts.put(&mut opened, 7, Some(value.clone())));
        look(&mut opened.log);
    }
    assert!(opened.log.garbage_bytes() < full / 8, "it is known to be little");
    assert!(!opened.log.reclaim.is_merging(), "and not merged for");
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}

/// What was deleted just before a stop is known to be garbage after the next start.
#[test]
fn deletes_that_the_log_alone_has_count_after_a_start() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let mut puts = Puts::filled(&mut opened);
    let full = opened.reader.stats().table_bytes;
    (0..60).for_each(|number| puts.put(&mut opened, number, None));
    drop((opened, directory));
    let options = Options { segment_bytes: 1 << 20, log_bytes_max: 4 << 20, ..Options::default() };
    let (directory, mut opened) = serve_with(place.path(), &options);
    assert!(opened.log.garbage_bytes() > full / 8);
    give_back(&mut opened.log);
    let left = opened.reader.stats().table_bytes;
    assert!(left < full - (2 << 20), "{left} bytes are left of {full}");
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}
