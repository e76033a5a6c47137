//! A disk with no space left stops the log, and nothing that was synced is lost.

use crate::host::{batch, contents, fast_clock, identity, put, serve};
use quorate_kernel::error::Fatal;
use quorate_kernel::storage::Log;
use quorate_store::create;
use std::path::Path;
use std::process::Command;

/// A small file system in memory, where the machine lets us mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"])
            .arg(place.path())
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(SmallDisk(place))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
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
    let grown = Command::new("mount").args(["-o", "remount,size=96m"]).arg(disk.path()).output();
    assert!(grown.is_ok_and(|output| output.status.success()), "the disk grows");
    let (_directory, opened) = serve(disk.path(), fast_clock()).expect("opened");
    assert!(opened.recovered.0 >= synced);
    assert!(contents(&opened.reader).len() as u64 >= synced);
}
