//! A new cluster's directory, when power is lost while it is made, or first used.

use super::disk::{Disk, Unsynced};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::run::{command, finish};
use std::fs;
use std::path::Path;

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
        // The last thing that it does is to say that it has begun no more.
        let is_whole = again.code == 1 && again.err.contains("is not empty");
        assert!(again.code == 0 || is_whole, "what was begun is taken over: {again:?}");
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

/// The starts of a host whose first one ends within this sync of what the database keeps of its
/// keyspaces, by a kill alone or a loss of power; whether it did.
fn begun(dies_at: u64) -> bool {
    let more = ["--keyspace", "default=linearizable"];
    let mut cluster = Cluster::create_of(1, "sync", &more);
    let mut disk = Disk::under(&mut cluster);
    cluster.set_environment(disk.environment_until(dies_at, "/db/keyspaces"));
    cluster.launch(1);
    until("it is killed, or serves", || {
        !cluster.is_running(1) || cluster.said(1).contains("host_ready")
    });
    let is_killed = !cluster.is_running(1);
    match is_killed {
        true => assert_eq!(cluster.ended(1), None, "{}", cluster.said(1)),
        false => cluster.kill(&[1]),
    }
    if dies_at.is_multiple_of(2) {
        disk.lose_power(Unsynced::Lost);
    }
    cluster.set_environment(disk.environment());
    for life in 0..3 {
        cluster.start_all();
        let mut client = Client::to(&cluster.resp(1));
        for earlier in (0..life).map(|life| format!("life-{life}")) {
            assert_eq!(client.told_at_last(&[b"GET", earlier.as_bytes()]), earlier, "{dies_at}");
        }
        let name = format!("life-{life}");
        let told = client.told_at_last(&[b"SET", name.as_bytes(), name.as_bytes()]);
        assert_eq!(told, "OK", "{dies_at}");
        cluster.kill(&[1]);
    }
    is_killed
}

#[test]
fn a_first_start_that_ends_at_any_sync_of_its_database_is_made_again_by_the_next() {
    assert!((1..).take_while(|&at| begun(at)).count() > 10, "there are syncs to end at");
}
