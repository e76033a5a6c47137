//! Registers and their like: what was acknowledged is there, and what was deleted is not.

use super::disk::{Disk, Unsynced};
use super::{SOME, both, lose_power};
use crate::support::cluster::{Cluster, until};
use crate::support::load::{Load, Recorded};
use quorate_kernel::rng::Rng;

fn cluster(count: u16, durability: &str, engine: &str) -> Cluster {
    Cluster::create_of(count, durability, &["--keyspace", &format!("default={engine}")])
}

/// Clients read and write while all hosts lose power twice.
fn harmed(count: u16, engine: &str) -> Recorded {
    let mut cluster = cluster(count, "sync", engine);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME);
    for unsynced in both() {
        lose_power(&mut cluster, &mut disk, unsynced);
        load.more(SOME);
    }
    load.finish(&cluster.hosts())
}

#[test]
fn all_hosts_that_lose_power_lose_nothing_that_was_acknowledged() {
    harmed(3, "linearizable").must_hold(3 * SOME);
}

#[test]
fn registers_with_transactions_outlive_a_loss_of_power_of_all_hosts() {
    harmed(3, "serializable").must_hold(3 * SOME);
}

#[test]
fn a_host_that_is_alone_loses_nothing_that_was_acknowledged() {
    harmed(1, "linearizable").must_hold(3 * SOME);
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
    let losses = [(2, Unsynced::Lost), (3, Unsynced::Some(Rng::new(2))), (1, Unsynced::Lost)];
    for (host, unsynced) in losses {
        cluster.kill(&[host]);
        let lost = disks[host - 1].lose_power(unsynced);
        println!("host {host}: {lost} files and directories lost something");
        load.more(SOME / 2);
        cluster.restart(host);
        until("it has again what it lost", || cluster.status(host)["ready"] == true);
        load.more_on(&[host], SOME / 6);
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
    assert!(lost >= 3, "each host's log has lost something, {lost} files and directories");
    cluster.start_all();
    let report = load.finish(&[1, 2, 3]).judged();
    let durable = report.durable.as_ref().expect("the durability was judged");
    assert!(durable.is_violated(), "acknowledged writes are gone: {report}");
}
