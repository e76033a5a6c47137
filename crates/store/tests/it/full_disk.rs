//! A disk with no space left stops the log, and nothing that was synced is lost.

use crate::host::{batch, contents, fast_clock, identity, put, serve};
use quorate_kernel::error::Fatal;
use quorate_kernel::storage::Log;
use quorate_store::create;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::path::Path;

/// A small file system in memory, where the machine lets us mount one. No program does it: a
/// process that begins has the locks of the other tests' directories for a moment.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mounted = mount("tmpfs", place.path(), "tmpfs", MountFlags::empty(), c"size=12m");
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
    let Some(disk) = SmallDisk::mount() else {
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
