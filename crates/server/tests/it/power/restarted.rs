//! Hosts that end, start again, and only then lose power: what they have found of their logs, and
//! shown since, is there.

use super::disk::{Disk, SEGMENT, Unsynced};
use super::{LOSSES_MAX, SOME};
use crate::support::cluster::Cluster;
use crate::support::load::Load;
use crate::support::logged::{marked, newest};
use quorate_kernel::rng::Rng;

/// How many syncs of a segment end before one fails, at most: some of them belong to a start.
const SYNCS_MAX: u64 = 200;
/// Which sync of the mark fails: those before it belong to a start.
const FAILS_AT: u64 = 3;

/// At the start after that the mark is synced, written again and synced, and synced when it is
/// opened: no later than in the last of these, what was found is durable.
const OPENED_AT: u64 = 3;

/// A host alone.
fn alone() -> Cluster {
    Cluster::create_of(1, "sync", &["--keyspace", "default=linearizable"])
}

/// Starts a host of which a sync fails, and waits until it has ended by that.
fn fail(cluster: &mut Cluster, disk: &Disk, at: u64, on: &str) {
    cluster.set_environment(disk.environment_failing(at, on));
    cluster.launch(1);
    assert!(cluster.ended(1).is_some_and(|code| code != 0), "a sync failed: {}", cluster.said(1));
    cluster.set_environment(disk.environment());
}

/// Starts a host and reads each key; nothing is written any more. Then it is killed, and its
/// machine loses power.
fn read_and_lose_power(cluster: &mut Cluster, disk: &mut Disk, load: &Load) {
    load.only_read(true);
    cluster.start_all();
    load.read_all(&[1]);
    cluster.kill(&[1]);
    println!("{:?}", disk.lose_power(Unsynced::Lost));
}

#[test]
fn what_a_host_found_when_it_started_outlives_a_loss_of_power() {
    let mut cluster = alone();
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    let is_met = (1..=LOSSES_MAX).any(|_| {
        load.more(SOME / 2);
        cluster.kill(&[1]);
        let is_unsynced = disk.unsynced_since(&cluster.data(1).join("log")).is_some();
        // What the host syncs then it has found.
        read_and_lose_power(&mut cluster, &mut disk, &load);
        cluster.start_all();
        load.read_all(&[1]);
        load.only_read(false);
        is_unsynced
    });
    assert!(is_met, "the host was never killed within a sync");
    load.finish(&[1]).must_hold(SOME / 2);
}

/// The system tells of a write that failed in the background once. If it tells a start, that ends,
/// and the next one must know all the same that something may be lost.
#[test]
fn a_start_that_is_told_of_a_lost_write_leaves_word_of_it() {
    let mut cluster = alone();
    let disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME / 10);
    cluster.kill(&[1]);
    let start = cluster.data(1).join("start.toml");
    let says = || std::fs::read_to_string(&start).expect("it is there");
    assert!(says().contains("unsynced_survived = true"), "{}", says());
    fail(&mut cluster, &disk, 1, SEGMENT);
    assert!(says().contains("unsynced_survived = false"), "{}", says());
    cluster.start_all();
    load.read_all(&[1]);
    load.finish(&[1]).must_hold(SOME / 10);
}

#[test]
fn what_a_failed_sync_has_left_in_memory_alone_is_written_again() {
    let mut cluster = alone();
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME / 2);
    cluster.kill(&[1]);
    let mut rng = Rng::new(7);
    // The sync that fails may also be of a segment that is made.
    let is_met = (1..=LOSSES_MAX).any(|_| {
        fail(&mut cluster, &disk, 1 + rng.below(SYNCS_MAX), SEGMENT);
        let found = newest(cluster.data(1));
        let is_lost = !disk.is_durable(&found.segment);
        read_and_lose_power(&mut cluster, &mut disk, &load);
        assert!(newest(cluster.data(1)).last >= found.last, "what was found was not synced");
        cluster.start_all();
        load.read_all(&[1]);
        load.only_read(false);
        cluster.kill(&[1]);
        is_lost
    });
    assert!(is_met, "no sync of a group has failed");
    cluster.start_all();
    load.finish(&[1]).must_hold(SOME / 2);
}

#[test]
fn a_mark_that_a_failed_sync_has_left_in_memory_alone_is_written_again() {
    let mut cluster = alone();
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME / 2);
    cluster.kill(&[1]);
    fail(&mut cluster, &disk, FAILS_AT, "/mark");
    let (data, found) = (cluster.data(1).to_owned(), marked(cluster.data(1)).0);
    assert!(!disk.is_durable(&data.join("mark")), "it was just written");
    load.only_read(true);
    // It ends when the mark was opened, before it is written anew.
    cluster.set_environment(disk.environment_until(OPENED_AT, "/mark"));
    cluster.launch(1);
    assert_eq!(cluster.ended(1), None, "it is killed: {}", cluster.said(1));
    cluster.set_environment(disk.environment());
    disk.lose_power(Unsynced::Lost);
    assert!(marked(&data).0 >= found, "what was found was not synced");
    cluster.start_all();
    load.only_read(false);
    load.finish(&[1]).must_hold(SOME / 2);
}
