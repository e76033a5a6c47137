//! What goes wrong where people work: each is refused clearly, or goes on safely, and nothing is
//! lost.
//!
//! | mishap | tests |
//! |---|---|
//! | a cluster of another name | `join::a_directory_joins_no_other_cluster`, `peers::a_peer_that_sends_garbage_…` |
//! | of another version | `join::seeds_that_cannot_help_…`, `peers::a_peer_that_sends_garbage_…` |
//! | a host returns with a wiped disk | [`a_wiped_host_comes_back_as_a_new_one`] |
//! | with an old disk | [`a_host_with_an_old_disk_is_turned_away`] |
//! | with a copy of its disk, or with less than it acknowledged | `identity::…` |
//! | two hosts with one identity | `join::one_identity_in_two_places_is_refused_loudly` |
//! | removing more than a majority allows | [`a_minority_says_what_it_sees_and_removes_nobody`] |
//! | draining the last replicas | `elastic::a_drain_can_be_undone_and_the_last_replicas_stay` |
//! | a seed that does not answer | `join::seeds_that_…` |
//! | clock skew of hours | `faults::a_clock_that_jumps_harms_nothing` |
//! | operations on a minority's side | [`a_minority_says_what_it_sees_and_removes_nobody`] |

use crate::elastic::{groups, node_at, ring};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::run::quorate;
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How many operations must be answered before, during and after a mishap.
const SOME: usize = 300;

/// Copies a directory with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a place");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("it is there").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("a file")),
        }
    }
}

#[test]
fn a_wiped_host_comes_back_as_a_new_one() {
    let mut cluster = Cluster::start("sync");
    let load = Load::start(cluster.doors());
    load.more(SOME);
    let (http, data) = (cluster.http(1), cluster.data(3).display().to_string());
    let old = node_at(&ring(&http), &cluster.cluster(3)).expect("it is on the ring");
    cluster.kill(&[3]);
    for entry in fs::read_dir(&data).expect("a directory") {
        let path = entry.expect("an entry").path();
        // Its settings are on another disk.
        match path.is_dir() {
            true => fs::remove_dir_all(&path).expect("it can be emptied"),
            false if path.ends_with("quorate.toml") => continue,
            false => fs::remove_file(&path).expect("it can be emptied"),
        }
    }
    cluster.launch(3);
    assert_ne!(cluster.ended(3), Some(0), "an empty directory is no host");
    let secret = cluster.place().join("data/cluster.secret").display().to_string();
    let join = ["--join", http.as_str(), "--secret-file", secret.as_str()];
    let at = ["--cluster", &cluster.cluster(3)];
    cluster.launch_with(3, &[&join[..], &at].concat());
    assert_eq!(cluster.ended(3), Some(1), "{}", cluster.said(3));
    let said = cluster.said(3);
    assert!(said.contains(&format!("quorate remove {old}")), "it says what to do: {said}");
    load.more(SOME);
    until("it is counted as gone", || quorate(&["remove", &old, "--http", &http]).code == 0);
    cluster.launch_with(3, &[&join[..], &at].concat());
    cluster.await_ready(3);
    until("it is a member in place of the old one", || {
        let groups = groups(&ring(&http));
        groups.iter().all(|group| group.len() == 3 && !group.contains(&old))
    });
    load.more(SOME);
    // It has everything: one of the others is enough beside it.
    cluster.kill(&[2]);
    load.more(SOME);
    load.finish(&[1, 3]).must_hold(4 * SOME);
}

#[test]
fn a_host_with_an_old_disk_is_turned_away() {
    let mut cluster = Cluster::start("sync");
    let load = Load::start(cluster.doors());
    load.more(SOME);
    let (data, old) = (cluster.data(3).to_owned(), cluster.place().join("old"));
    cluster.kill(&[3]);
    copy(&data, &old);
    for _ in 0..2 {
        cluster.restart(3);
        until("the others hear of its new start", || {
            [1, 2].iter().all(|&host| cluster.metric(host, "quorate_peer_up{peer=\"3\"}") == 1)
        });
        load.more(SOME);
        cluster.kill(&[3]);
    }
    let new = cluster.place().join("new");
    fs::rename(&data, &new).expect("a free name");
    fs::rename(&old, &data).expect("a free name");
    cluster.launch(3);
    assert_eq!(cluster.ended(3), Some(9), "{}", cluster.said(3));
    assert!(cluster.said(3).contains("made while its host ran"), "{}", cluster.said(3));
    cluster.launch_with(3, &["--moved"]);
    assert_eq!(cluster.ended(3), Some(9), "{}", cluster.said(3));
    let said = cluster.said(3);
    assert!(said.contains("another process spoke") || said.contains("have seen start"), "{said}");
    assert!(!said.contains("host_ready"), "it answers nothing old: {said}");
    load.more(SOME);
    fs::rename(&data, &old).expect("a free name");
    fs::rename(&new, &data).expect("a free name");
    cluster.restart(3);
    load.more(SOME);
    load.finish(&[1, 2, 3]).must_hold(5 * SOME);
}

/// Far from the deadline of its operations, which is longer than the client waits.
#[test]
fn a_minority_says_what_it_sees_and_removes_nobody() {
    let mut cluster = Cluster::create("sync");
    cluster.set("limits.request_timeout=60s");
    cluster.start_all();
    assert_eq!(quorate(&["put", "k", "v", "--endpoint", &cluster.resp(1)]).code, 0);
    let nodes = [2, 3].map(|host| node_at(&ring(&cluster.http(1)), &cluster.cluster(host)));
    let nodes = nodes.map(|node| node.expect("it is on the ring"));
    cluster.kill(&[2, 3]);
    let mut client = Client::connect(&cluster.resp(1), Duration::from_secs(30)).expect("it runs");
    let must_refuse = |told: &str| {
        let rest = told.strip_prefix("NOQUORUM 2 of the 3 replicas in view ");
        let end = " are suspected, no quorum is left; nothing was changed";
        assert!(rest.is_some_and(|rest| rest.ends_with(end)), "{told}");
    };
    must_refuse(&client.told(&[b"GET", b"k"]));
    // By now both are suspected, so the write is not sent to anybody.
    must_refuse(&client.told(&[b"SET", b"k", b"w"]));
    for node in &nodes {
        let said = quorate(&["remove", node, "--http", &cluster.http(1)]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("the groups of keyspace default from"), "{said:?}");
        assert!(said.err.contains("--lose-data"), "{said:?}");
    }
    let said = quorate(&["drain", &nodes[0], "--http", &cluster.http(1)]);
    assert!(said.code == 1 && said.err.contains("add a host first"), "{said:?}");
    [2, 3].iter().for_each(|&host| cluster.launch(host));
    [2, 3].iter().for_each(|&host| cluster.await_ready(host));
    let get = ["get", "k", "--endpoint", &cluster.resp(3)];
    until("what was there is there", || quorate(&get).out == "v");
}

#[test]
fn a_hangup_does_not_end_a_host() {
    let mut cluster = Cluster::start("memory");
    cluster.signal(1, Signal::HUP);
    until("it was noticed", || cluster.said(1).contains("hangup_ignored"));
    assert!(cluster.is_running(1));
    assert_eq!(Client::to(&cluster.resp(1)).told_at_last(&[b"SET", b"k", b"v"]), "OK");
}
