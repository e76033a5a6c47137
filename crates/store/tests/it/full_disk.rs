//! A disk with no space left stops the log, and nothing that was synced is lost.

use crate::damage::log::write;
use crate::host::{batch, contents, fast_clock, identity, put, serve, serve_with, small};
use quorate_kernel::error::Fatal;
use quorate_kernel::storage::Log;
use quorate_store::{DirectoryError, Options, create};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// A small file system in memory, where the machine lets us mount one. No program does it: a
/// process that begins has the locks of the other tests' directories for a moment.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &CStr) -> Option<SmallDisk> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mounted = mount("tmpfs", place.path(), "tmpfs", MountFlags::empty(), size);
        mounted.is_ok().then_some(SmallDisk(place))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(self.0.path(), UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_stops_the_log_and_loses_nothing_synced() {
    let Some(disk) = SmallDisk::mount(c"size=12m") else {
        println!(
            "skipped: no file system can be mounted here; the log's own tests inject the error"
        );
        return;
    };
    create(disk.path(), &identity()).expect("created");
    let (directory, mut opened) = serve(disk.path(), fast_clock()).expect("opened");
    let mut synced = 0;
    let failure = loop {
        let lsn = synced + 1;
        let value: Vec<u8> = (0..100_000_u64).map(|at| (at * (lsn + 31) % 251) as u8).collect();
        let write = batch(lsn, vec![put(&lsn.to_be_bytes(), &value)]);
        if let Err(fatal) = opened.log.apply(&[write]).and_then(|()| opened.log.sync()) {
            break fatal;
        }
        synced = lsn;
        assert!(synced < 10_000, "the disk never fills");
    };
    assert!(matches!(failure, Fatal::Disk(_)), "{failure:?}");
    assert!(synced > 10, "{synced} batches fitted");
    assert_eq!(opened.log.apply(&[batch(synced + 1, Vec::new())]), Err(failure.clone()));
    assert_eq!(opened.log.sync(), Err(failure));
    drop((opened, directory));
    mount_remount(disk.path(), MountFlags::empty(), "size=96m").expect("the disk grows");
    let (_directory, opened) = serve(disk.path(), fast_clock()).expect("opened");
    assert!(opened.recovered.0 >= synced);
    assert!(contents(&opened.reader).len() as u64 >= synced);
}

/// Takes all that is left of a disk.
fn fill_up(ballast: &Path) {
    let mut file = File::create(ballast).expect("created");
    let error = loop {
        if let Err(error) = file.write_all(&[1; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
}

#[test]
fn a_log_that_cannot_grow_goes_on_with_what_it_has() {
    let Some(disk) = SmallDisk::mount(c"size=8m") else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    create(disk.path(), &identity()).expect("created");
    let options = Options { segment_bytes: 64 << 10, log_bytes_max: 512 << 10, ..small() };
    let served = serve_with(disk.path(), fast_clock(), &options);
    let (directory, mut opened) = served.expect("opened");
    let (ballast, mut lsn) = (disk.path().join("ballast"), 0);
    // Fifteen groups of a page fill a segment, and the next one is made with the fourth of them.
    for upto in [32, 45, 60] {
        while lsn < upto {
            lsn += 1;
            opened.log.apply(&[batch(lsn, vec![put(b"k", &name_of(lsn))])]).expect("applied");
            opened.log.sync().expect("synced");
            opened.log.settle().expect("it goes on");
        }
        let files = fs::read_dir(disk.path().join("log")).expect("a directory").count();
        assert_eq!(files, 3 + 1, "segments and their list after {upto} groups");
        match upto {
            32 => fill_up(&ballast),
            45 => fs::remove_file(&ballast).expect("removed"),
            _ => {}
        }
    }
    drop((opened, directory));
    let (_directory, opened) = serve_with(disk.path(), fast_clock(), &options).expect("opened");
    assert_eq!(opened.recovered.0, 60);
    let expected = [(b"k".to_vec(), name_of(60).to_vec())].into_iter().collect();
    assert_eq!(contents(&opened.reader), expected);
}

/// Where the disk was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Create,
    Open,
    Write,
    Never,
}

/// Uses a directory on a disk of so many bytes until it is full, or long enough, and tells how many
/// batches were synced.
fn use_up(path: &Path, options: &Options) -> (Step, u64) {
    if create(path, &identity()).is_err() {
        return (Step::Create, 0);
    }
    let (_directory, mut opened) = match serve_with(path, fast_clock(), options) {
        Err(DirectoryError::Io { .. }) => return (Step::Open, 0),
        served => served.expect("only the disk fails"),
    };
    for lsn in 1..=400 {
        let write = batch(lsn, vec![put(&name_of(lsn), &value_of(lsn))]);
        let done = opened.log.apply(&[write]).and_then(|()| opened.log.sync());
        if let Err(fatal) = done.and_then(|()| opened.log.settle()) {
            assert!(matches!(fatal, Fatal::Disk(_)), "{fatal:?}");
            return (Step::Write, lsn - 1);
        }
    }
    (Step::Never, 400)
}

fn name_of(lsn: u64) -> [u8; 8] {
    lsn.to_be_bytes()
}

/// What cannot be made smaller.
fn value_of(lsn: u64) -> Vec<u8> {
    let mut rng = quorate_kernel::rng::Rng::new(lsn);
    (0..500).flat_map(|_| rng.next().to_le_bytes()).collect()
}

#[test]
fn a_disk_that_is_full_at_any_step_loses_nothing_synced() {
    let options = Options { segment_bytes: 64 << 10, log_bytes_max: 256 << 10, ..small() };
    let mut steps = Vec::new();
    // Each step of a first start takes a page or a few.
    let first = [8, 20].into_iter().chain((40..240).step_by(8));
    for kib in first.chain((240..1800).step_by(80)).chain([8000]) {
        let size = CString::new(format!("size={kib}k")).expect("no zeros");
        let Some(disk) = SmallDisk::mount(&size) else {
            println!("skipped: no file system can be mounted here");
            return;
        };
        let (step, synced) = use_up(disk.path(), &options);
        steps.push(step);
        mount_remount(disk.path(), MountFlags::empty(), "size=96m").expect("the disk grows");
        if step == Step::Create {
            create(disk.path(), &identity()).expect("created");
        }
        let served = serve_with(disk.path(), fast_clock(), &options);
        let (directory, mut opened) = served.expect("there is room now");
        let recovered = opened.recovered.0;
        assert!(recovered >= synced, "{kib} KiB, {step:?}: {recovered} of {synced}");
        let expected = (1..=recovered).map(|lsn| (name_of(lsn).to_vec(), value_of(lsn))).collect();
        assert!(contents(&opened.reader) == expected, "{kib} KiB, {step:?}: other pairs");
        write(&mut opened, recovered + 1, true);
        opened.log.settle().expect("it goes on");
        let expected = contents(&opened.reader);
        drop((opened, directory));
        let served = serve_with(disk.path(), fast_clock(), &options);
        let (_directory, opened) = served.expect("it opens again");
        assert!(contents(&opened.reader) == expected, "{kib} KiB, {step:?}: not what it had");
    }
    assert!(steps.is_sorted(), "{steps:?}");
    let has = |step| steps.contains(&step);
    let all = [Step::Create, Step::Open, Step::Write, Step::Never];
    assert!(all.into_iter().all(has), "{steps:?}");
}
