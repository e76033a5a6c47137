//! Hosts that keep a roll of who takes part.

use crate::command_line::dev::Dev;
use crate::elastic::{ctl, ring};
use crate::support::cluster::until;
use serde_json::Value;

/// Whether a host says that so many are on the roll, and that it goes on.
fn has(ring: &Value, members: u64) -> bool {
    ring["roll"]["members"] == members && ring["roll"]["goes_on"] == true
}

/// One of four dies, and comes again.
fn one_dies_and_comes_again(kind: &str) {
    let place = tempfile::tempdir().expect("a directory");
    let roll = format!("membership.roll={kind}");
    let settings = ["--hosts", "4", "--durability", "memory", "--set", &roll];
    let dev = Dev::start(place.path(), &settings);
    let http = dev.door(1, "http");
    until("all are on the roll", || has(&ring(&http), 4));
    assert_eq!(ring(&http)["roll"]["kind"], kind);
    let first = ring(&http)["roll"]["number"].as_u64().expect("a number");
    ctl(place.path(), &["kill", "4"]);
    until("the others say that it is gone", || has(&ring(&http), 3));
    let report = ring(&http);
    let off: Vec<&Value> = report["hosts"].as_array().expect("hosts").iter().collect();
    let off = off.into_iter().filter(|host| host["on_roll"] == false);
    assert_eq!(off.map(|host| host["host"].as_u64()).collect::<Vec<_>>(), [Some(4)]);
    ctl(place.path(), &["start", "4"]);
    until("it is on the roll again", || has(&ring(&http), 4));
    let last = ring(&http)["roll"]["number"].as_u64().expect("a number");
    assert!(last >= first + 2, "each change is a configuration of its own: {first} to {last}");
}

#[test]
fn a_host_that_dies_is_taken_off_the_roll_and_comes_again() {
    one_dies_and_comes_again("rapid");
}

#[test]
fn with_prime_it_is_taken_off_and_comes_again_as_well() {
    one_dies_and_comes_again("prime");
}
