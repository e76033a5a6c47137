//! Space that is given back, or cannot be for want of room.

use super::*;

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
pub(super) fn look(log: &mut StoreLog) {
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
        (log.reclaim.rest_until, log.reclaim.rest_if_half_until) = (None, None);
        std::thread::yield_now();
    }
    log.reclaim().expect("merged");
    look(log);
    // Nothing that was found earlier is taken for what is found from now on.
    look(log);
    (log.reclaim.rest_until, log.reclaim.rest_if_half_until) = (None, None);
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
    assert!(opened.log.reclaim.restored > 0, "and known to be left over");
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

/// A keyspace is dropped while what was loaded into it is merged, or soon after that.
#[test]
fn a_store_rests_less_where_half_of_it_is_garbage() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (directory, mut opened) = small(place.path());
    let mut puts = Puts::filled(&mut opened);
    opened.log.reclaim.rest_until = Some(Instant::now() + 100 * PATIENCE);
    (0..60).for_each(|number| puts.put(&mut opened, number, None));
    (0..4).for_each(|_| look(&mut opened.log));
    assert!(!opened.log.reclaim.is_merging(), "it rests");
    (60..160).for_each(|number| puts.put(&mut opened, number, None));
    // So much was left of an earlier merge.
    opened.log.reclaim.restored = opened.log.garbage_bytes();
    (0..4).for_each(|_| look(&mut opened.log));
    assert!(!opened.log.reclaim.is_merging(), "it rests as long as after that");
    opened.log.reclaim.restored = 0;
    let began = Instant::now();
    while opened.log.garbage_bytes() > 0 {
        assert!(began.elapsed() < PATIENCE, "it rests as long");
        opened.log.reclaim().expect("looked");
        std::thread::yield_now();
    }
    give_back(&mut opened.log);
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
}
