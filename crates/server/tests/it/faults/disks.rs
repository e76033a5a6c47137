//! Disks that fill up, tear and rot: one host stops or cuts, and nothing acknowledged is lost.

use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::logged::{newest, overwrite};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// How many operations must be answered before, during and after a fault.
const SOME: usize = 300;

#[test]
fn a_torn_tail_is_cut_and_damage_below_it_is_refused() {
    let mut cluster = Cluster::start("sync");
    let load = Load::start(cluster.doors());
    load.more(SOME);
    cluster.kill(&[1, 2, 3]);
    newest(cluster.data(2)).tear();
    cluster.start_all();
    assert!(cluster.said(2).contains("torn_tail_cut"), "the cut is told: {}", cluster.said(2));
    assert!(!cluster.said(1).contains("torn_tail_cut"), "{}", cluster.said(1));
    load.more(SOME);

    cluster.kill(&[2]);
    let found = newest(cluster.data(2));
    let (segment, middle) = (&found.segment, found.at / 2 / 4096 * 4096 + 30);
    let whole = fs::read(segment).expect("the segment");
    overwrite(segment, &[!whole[middle]], middle);
    let before = fs::read(segment).expect("the segment");
    cluster.launch(2);
    assert_eq!(cluster.ended(2), Some(9), "{}", cluster.said(2));
    let said = cluster.said(2);
    assert!(said.contains("eep the directory"), "it says what to do: {said}");
    assert!(fs::read(segment).expect("the segment") == before, "nothing was changed");
    load.more(SOME);
    assert!(cluster.is_running(1) && cluster.is_running(3));
    overwrite(segment, &[whole[middle]], middle);
    cluster.restart(2);
    load.more(SOME);
    load.finish(&[1, 2, 3]).must_hold(4 * SOME);
}

/// A small file system in memory; gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: PathBuf) -> Result<SmallDisk, String> {
        fs::create_dir(&path).expect("a new directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(&path);
        let said = mount.output().map_err(|error| error.to_string())?;
        let refused = || String::from_utf8_lossy(&said.stderr).into_owned();
        said.status.success().then(|| SmallDisk(path)).ok_or_else(refused)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since a host that is about to be killed may still use it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_host_whose_disk_is_full_stops_and_the_others_go_on() {
    let mut cluster = Cluster::create("sync");
    let disk = match SmallDisk::mount(cluster.place().join("small")) {
        Ok(disk) => disk,
        Err(error) => return println!("skipped: no small file system can be mounted: {error}"),
    };
    let copied = Command::new("cp").arg("-a").arg(cluster.data(2)).arg(&disk.0).status();
    assert!(copied.expect("cp runs").success());
    cluster.move_data(2, disk.0.join("host-2"));
    cluster.set("store.memtable=1MiB");
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME);
    let mut filler = Client::to(&cluster.resp(1));
    let (mut count, mut kept) = (0_u32, Vec::new());
    let mut value = vec![0; 256 * 1024];
    let mut rng = quorate_kernel::rng::Rng::new(1);
    until("the disk is full", || {
        // What cannot be made smaller.
        value
            .chunks_exact_mut(8)
            .for_each(|chunk| chunk.copy_from_slice(&rng.next().to_le_bytes()));
        count += 1;
        let key = format!("filler-{count}");
        match filler.told(&[b"SET", key.as_bytes(), &value]) {
            told if told == "OK" => kept.push(key),
            // On a busy machine the host may end while the write is on its way.
            told => assert!(told.starts_with("UNKNOWNOUTCOME"), "{told}"),
        }
        !cluster.is_running(2)
    });
    assert_eq!(cluster.ended(2), Some(1), "{}", cluster.said(2));
    let said = cluster.said(2);
    assert!(said.contains("host_failed") && said.contains("disk failure"), "{said}");
    // The log meets the end of the disk, or a table.
    let names_cause = ["No space left", "is the disk full?"].iter().any(|text| said.contains(text));
    assert!(names_cause, "{said}");
    load.more(SOME);
    assert!(cluster.is_running(1) && cluster.is_running(3));
    for key in kept {
        let reply = filler.ask(&[b"GET", key.as_bytes()]).expect("the host answers");
        assert_eq!(reply.as_bytes().map(|kept| kept.len()), Some(value.len()), "{key}");
    }
    load.finish(&[1, 3]).must_hold(2 * SOME);
}
