//! Registers and their like: what was acknowledged is there, and what was deleted is not.

use super::disk::{Disk, SEGMENT, Unsynced};
use super::{LOSSES_MAX, SOME, kill_unsynced, lose_twice, start_and_read};
use crate::support::cluster::{Cluster, until};
use crate::support::load::{Load, Recorded};
use quorate_kernel::rng::Rng;

/// How often a host that is alone loses power.
const LIVES: usize = 5;
/// How many syncs of its log it survives before: some belong to its start.
const SYNCS_LEAST: u64 = 40;

fn cluster(count: u16, durability: &str, engine: &str) -> Cluster {
    Cluster::create_of(count, durability, &["--keyspace", &format!("default={engine}")])
}

/// Clients read and write while all hosts lose power twice.
fn harmed(engine: &str) -> Recorded {
    let mut cluster = cluster(3, "sync", engine);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME);
    lose_twice(|unsynced| {
        kill_unsynced(&mut cluster, &disk);
        let lost = start_and_read(&load, &mut cluster, &mut disk, unsynced);
        load.more(SOME / 2);
        lost
    });
    load.finish(&cluster.hosts())
}

#[test]
fn all_hosts_that_lose_power_lose_nothing_that_was_acknowledged() {
    harmed("linearizable").must_hold(2 * SOME);
}

#[test]
fn registers_with_transactions_outlive_a_loss_of_power_of_all_hosts() {
    harmed("serializable").must_hold(2 * SOME);
}

/// It always loses power within the sync of its log that the newest writes wait for.
#[test]
fn a_host_that_is_alone_loses_nothing_that_was_acknowledged() {
    let mut cluster = cluster(1, "sync", "linearizable");
    let mut disk = Disk::under(&mut cluster);
    let load = Load::start(cluster.doors());
    load.only_read(true);
    let mut rng = Rng::new(4);
    for life in 0..LIVES {
        let dies_at = SYNCS_LEAST + rng.below(SYNCS_LEAST);
        cluster.set_environment(disk.environment_until(dies_at, SEGMENT));
        cluster.start_all();
        load.read_all(&[1]);
        load.only_read(false);
        assert_eq!(cluster.ended(1), None, "it is killed: {}", cluster.said(1));
        load.only_read(true);
        let is_all_lost = life % 2 == 0;
        let some = Unsynced::Some(Rng::new(rng.next()));
        let lost = disk.lose_power(if is_all_lost { Unsynced::Lost } else { some });
        println!("at sync {dies_at}: {lost:?}");
        assert!(lost.segments > 0 || !is_all_lost, "what it was about to sync is gone");
    }
    cluster.set_environment(disk.environment());
    cluster.start_all();
    load.read_all(&[1]);
    load.finish(&[1]).must_hold(SOME);
}

/// Each has lost what it had not synced when the next one does, and has it again from the others.
#[test]
fn hosts_that_lose_power_one_after_the_other_lose_nothing_that_others_have() {
    let mut cluster = cluster(3, "periodic=50ms", "linearizable");
    let mut disks = Vec::new();
    for host in cluster.hosts() {
        let disk = Disk::of(cluster.data(host));
        cluster.set_environment_of(host, disk.environment());
        disks.push(disk);
    }
    cluster.start_all();
    let load = Load::roaming(cluster.doors());
    load.more(SOME);
    for (host, is_all_lost) in [(2, true), (3, false), (1, true)] {
        let is_met = (1..=LOSSES_MAX).any(|seed| {
            let some = Unsynced::Some(Rng::new(seed));
            let unsynced = if is_all_lost { Unsynced::Lost } else { some };
            cluster.kill(&[host]);
            let lost = disks[host - 1].lose_power(unsynced);
            println!("host {host}: {lost:?}");
            load.more(SOME / 2);
            cluster.restart(host);
            until("it has again what it lost", || cluster.status(host)["ready"] == true);
            load.more_on(&[host], SOME / 6);
            lost.segments > 0
        });
        assert!(is_met, "host {host} had always synced everything");
    }
    load.finish(&[1, 2, 3]).must_hold(2 * SOME);
}

#[test]
fn the_judges_condemn_hosts_whose_syncs_do_nothing() {
    let mut cluster = cluster(3, "sync", "linearizable");
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let mut load = Load::start(cluster.doors());
    load.more(SOME);
    disk.lie("");
    // No client overwrites it before it is read, so it is certain that it is missed.
    load.write_last();
    cluster.kill(&[1, 2, 3]);
    let lost = disk.lose_power(Unsynced::Lost);
    assert!(lost.segments >= 3, "each host's log has lost something, not {lost:?}");
    cluster.start_all();
    let report = load.finish(&[1, 2, 3]).judged();
    let durable = report.durable.as_ref().expect("the durability was judged");
    assert!(durable.is_violated(), "acknowledged writes are gone: {report}");
}
