//! Hosts whose machines all lose power: what was not synced is gone, and what was acknowledged
//! is there.

mod disk;

use crate::support::cluster::Cluster;
use crate::support::load::{Load, Recorded};
use crate::support::run::{command, finish};
use disk::{Disk, Unsynced};
use quorate_kernel::rng::Rng;
use std::fs;
use std::path::Path;

/// How many operations must be answered before and after each loss of power.
const SOME: usize = 300;

/// Clients read and write while all hosts lose power twice: first nothing that was not synced is
/// left, then random parts of it. Before the last loss, syncs of what `lie` names do nothing.
fn harmed(engine: &str, lie: Option<&str>) -> Recorded {
    let keyspace = format!("default={engine}");
    let mut cluster = Cluster::create_with("sync", &["--keyspace", &keyspace]);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME);
    for unsynced in [Unsynced::Some(Rng::new(1)), Unsynced::Lost] {
        if let (Unsynced::Lost, Some(about)) = (&unsynced, lie) {
            disk.lie(about);
            load.more(SOME);
        }
        cluster.kill(&[1, 2, 3]);
        println!("{} files and directories lost something", disk.lose_power(unsynced));
        cluster.start_all();
        load.more(SOME);
    }
    load.finish(&[1, 2, 3])
}

#[test]
fn all_hosts_that_lose_power_lose_nothing_that_was_acknowledged() {
    harmed("linearizable", None).must_hold(3 * SOME);
}

#[test]
fn registers_with_transactions_outlive_a_loss_of_power_of_all_hosts() {
    harmed("serializable", None).must_hold(3 * SOME);
}

#[test]
fn the_judges_condemn_hosts_whose_syncs_do_nothing() {
    let report = harmed("linearizable", Some("")).judged();
    assert!(!report.verdict().is_holding(), "acknowledged writes are gone: {report}");
}

/// Makes the directory of a host, whose machine then loses power at the sync of this number, or
/// after the last; whether it was made.
fn made(place: &Path, dies_at: usize, lie: Option<&str>) -> bool {
    let root = place.join("root");
    fs::create_dir(&root).expect("a free name");
    let (mut disk, data) = (Disk::of(&root), root.join("data").display().to_string());
    if let Some(about) = lie {
        disk.lie(about);
    }
    let args = ["init", "--output", &data, "--host", "127.0.0.1:18411"];
    let mut first = command(&args);
    first.envs(disk.environment()).env("POWER_DIES_AT", dies_at.to_string());
    let is_made = first.output().expect("the binary runs").status.success();
    disk.lose_power(Unsynced::Lost);
    let again = finish(command(&args));
    println!("sync {dies_at}, made {is_made}: {again:?}");
    if is_made {
        let is_there = again.code == 1 && again.err.contains("is not empty");
        assert_eq!(is_there, lie.is_none(), "what was made is there: {again:?}");
    } else {
        assert_eq!(again.code, 0, "what was begun is taken over: {again:?}");
    }
    is_made
}

#[test]
fn a_directory_that_was_begun_when_power_was_lost_is_made_again() {
    let died = (1..).take_while(|&at| {
        let place = tempfile::tempdir().expect("a temporary directory");
        !made(place.path(), at, None)
    });
    assert!(died.count() > 5, "there are syncs to die at");
}

#[test]
fn a_directory_whose_names_were_not_synced_is_gone() {
    let place = tempfile::tempdir().expect("a temporary directory");
    assert!(made(place.path(), usize::MAX >> 1, Some("directories/")));
}
