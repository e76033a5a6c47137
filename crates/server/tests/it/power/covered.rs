//! Tables, which are alone to have what was written long ago: a host without others, so that nobody
//! has for it what it lost.

use super::LOSSES_MAX;
use super::disk::{Disk, Lost, Unsynced};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::logged::newest;
use quorate_kernel::rng::Rng;

/// So long values fill the segments of a log within seconds.
const VALUE_BYTES: usize = 64 << 10;
/// How many keys are written once, before all others.
const EARLY: u64 = 64;
/// What the paths of tables, and of what is kept of them, contain.
const TABLES: &str = "/db/";
/// How many syncs of these are survived before power is lost, at most: some belong to a start.
const SYNCS_MAX: u64 = 24;
/// How often power is lost at least.
const LOSSES: u64 = 4;

fn cluster() -> Cluster {
    let mut cluster = Cluster::create_of(1, "sync", &["--keyspace", "default=linearizable"]);
    cluster.set("store.memtable=1MiB");
    cluster
}

fn early(number: u64) -> String {
    format!("early-{number}")
}

/// Writes keys that nobody writes again.
fn write_early(cluster: &Cluster) {
    let mut client = Client::to(&cluster.resp(1));
    for name in (0..EARLY).map(early) {
        until("it is written", || client.told(&[b"SET", name.as_bytes(), name.as_bytes()]) == "OK");
    }
}

/// Whether these are as they were written.
fn has_early(cluster: &Cluster) -> bool {
    let mut client = Client::to(&cluster.resp(1));
    (0..EARLY).map(early).all(|name| client.told_at_last(&[b"GET", name.as_bytes()]) == name)
}

/// Writes until the log has used its segments again: it has nothing of what was written first.
fn fill(cluster: &Cluster) {
    until("the segments are used again", || newest(cluster.data(1)).is_before_older());
}

#[test]
fn what_tables_alone_have_outlives_a_loss_of_power_while_others_are_written() {
    let mut cluster = cluster();
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    write_early(&cluster);
    let load = Load::heavy(cluster.doors(), VALUE_BYTES);
    fill(&cluster);
    cluster.kill(&[1]);
    let (mut rng, mut loss, mut all) = (Rng::new(5), 0, Lost::default());
    // Both have to lose something: a table, or what is kept of them, and the log.
    while loss < LOSSES || all.segments == 0 || all.others == 0 {
        loss += 1;
        assert!(loss < LOSSES_MAX, "all was always synced");
        // It dies when it is about to sync a table, or what is kept of it, sooner or later.
        let dies_at = 1 + rng.below(SYNCS_MAX);
        cluster.set_environment(disk.environment_until(dies_at, TABLES));
        cluster.launch(1);
        assert_eq!(cluster.ended(1), None, "it is killed: {}", cluster.said(1));
        cluster.set_environment(disk.environment());
        load.only_read(true);
        let some = Unsynced::Some(Rng::new(rng.next()));
        let lost = disk.lose_power(if loss % 2 == 0 { Unsynced::Lost } else { some });
        println!("at sync {dies_at}: {lost:?}");
        all = Lost { segments: all.segments + lost.segments, others: all.others + lost.others };
        cluster.start_all();
        assert!(has_early(&cluster), "what was covered long ago is gone");
        load.read_all(&[1]);
        load.only_read(false);
        cluster.kill(&[1]);
    }
    cluster.start_all();
    load.finish(&[1]).must_hold(100);
}

#[test]
fn tables_whose_syncs_do_nothing_are_missed() {
    let mut cluster = cluster();
    let mut disk = Disk::under(&mut cluster);
    disk.lie(TABLES);
    cluster.start_all();
    write_early(&cluster);
    let load = Load::heavy(cluster.doors(), VALUE_BYTES);
    fill(&cluster);
    drop(load);
    cluster.kill(&[1]);
    println!("{:?}", disk.lose_power(Unsynced::Lost));
    cluster.launch(1);
    assert!(cluster.ended(1).is_some_and(|code| code != 0), "it does not start without them");
    assert!(cluster.said(1).contains("has lost writes"), "{}", cluster.said(1));
}
