//! `dev ctl`: a running cluster is steered.

use crate::command_line::dev::{Dev, is_closed, on};
use crate::support::cluster::until;
use crate::support::run::{Said, quorate};
use std::path::Path;

/// Gives an order to the cluster of a directory.
fn ctl(data: &Path, order: &[&str]) -> Said {
    let data = data.display().to_string();
    quorate(&[&["dev", "ctl", "--data", &data], order].concat())
}

/// Gives an order that must be carried out.
fn done(data: &Path, order: &[&str]) -> String {
    let said = ctl(data, order);
    assert_eq!(said.code, 0, "{order:?}: {said:?}");
    said.out
}

/// A cluster of the memory kind that gives up soon.
fn start(data: &Path, more: &[&str]) -> Dev {
    let flags = ["--durability", "memory"];
    let soon = ["--set", "limits.request_timeout=1s"];
    Dev::start(data, &[&flags[..], &soon, more].concat())
}

#[test]
fn hosts_are_killed_started_frozen_and_thawed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = start(data, &[]);
    let (first, second) = (dev.door(1, "resp"), dev.door(2, "resp"));
    assert_eq!(on(&first, &["put", "k", "v"]).code, 0);
    done(data, &["kill", "2"]);
    assert!(is_closed(&second), "it is gone when the order is done");
    assert_eq!(ctl(data, &["kill", "2"]).code, 1, "it runs no more");
    assert!(done(data, &["start", "2"]).contains(&second), "it has its ports again");
    assert_eq!(ctl(data, &["start", "2"]).code, 1, "it runs already");
    until("the host that was killed serves", || on(&second, &["get", "k"]).out == "v");
    done(data, &["freeze", "3"]);
    assert_eq!(on(&first, &["put", "k", "w"]).code, 0, "a majority is enough");
    done(data, &["kill", "2"]);
    assert_ne!(on(&first, &["put", "k", "x"]).code, 0, "one host is none");
    done(data, &["thaw", "3"]);
    until("the host that was frozen answers", || on(&first, &["get", "k"]).code == 0);
    let (code, said) = dev.stop();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn hosts_are_parted_slowed_and_healed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = start(data, &[]);
    let doors = [1, 2, 3].map(|host| dev.door(host, "resp"));
    assert_eq!(on(&doors[0], &["put", "k", "old"]).code, 0);
    done(data, &["partition", "1", "2,3"]);
    assert_eq!(on(&doors[1], &["put", "k", "new"]).code, 0, "the larger side goes on");
    let said = on(&doors[0], &["get", "k"]);
    assert_eq!(said.code, 5, "the smaller side says nothing old: {said:?}");
    done(data, &["heal"]);
    until("they hear each other", || on(&doors[0], &["get", "k"]).out == "new");
    // Whom nobody hears cannot write; it hears the others all the same.
    done(data, &["oneway", "1", "2"]);
    done(data, &["oneway", "1", "3"]);
    assert_eq!(on(&doors[0], &["get", "k"]).code, 5);
    done(data, &["heal"]);
    until("they hear each other again", || on(&doors[0], &["get", "k"]).out == "new");
    done(data, &["delay", "1", "2", "300ms"]);
    done(data, &["delay", "1", "3", "300ms"]);
    let began = std::time::Instant::now();
    let said = on(&doors[0], &["get", "k"]);
    assert_eq!(said.out, "new", "{said:?}");
    assert!(began.elapsed().as_millis() >= 600, "there and back again");
    let said = ctl(data, &["oneway", "1", "7"]);
    assert!(said.code == 1 && said.err.contains("there is no host 7"), "{said:?}");
    assert_eq!(dev.stop().0, Some(0));
    let said = ctl(data, &["heal"]);
    assert!(said.code == 5 && said.err.contains("no cluster of `quorate dev` runs"), "{said:?}");
}

#[test]
fn a_cluster_may_be_one_host_or_seven() {
    for hosts in ["1", "7"] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let dev = start(place.path(), &["--hosts", hosts, "--tokens", "2"]);
        let count = dev.cluster["hosts"].as_array().map_or(0, Vec::len);
        assert_eq!(count.to_string(), hosts);
        let last = dev.door(count, "resp");
        assert_eq!(on(&dev.door(1, "resp"), &["put", "k", "v"]).code, 0);
        assert_eq!(on(&last, &["get", "k"]).out, "v");
        assert_eq!(dev.stop().0, Some(0));
    }
}
