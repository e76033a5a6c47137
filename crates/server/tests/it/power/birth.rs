//! A new cluster's directory, when power is lost while it is made.

use super::disk::{Disk, Unsynced};
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
