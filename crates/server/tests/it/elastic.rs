//! A cluster that grows and shrinks while clients work.

use crate::command_line::dev::{Dev, on};
use crate::support::cluster::until;
use crate::support::run::{Said, quorate};
use serde_json::Value;
use std::path::Path;

/// How many keys the tests keep an eye on.
const KEYS: u32 = 50;

fn start(data: &Path, more: &[&str]) -> Dev {
    let flags = ["--durability", "memory"];
    Dev::start(data, &[&flags[..], more].concat())
}

pub fn ctl(data: &Path, order: &[&str]) -> Said {
    let data = data.display().to_string();
    let said = quorate(&[&["dev", "ctl", "--data", &data], order].concat());
    assert_eq!(said.code, 0, "{order:?}: {said:?}");
    said
}

/// What a host knows of the ring.
pub fn ring(http: &str) -> Value {
    quorate(&["ring", "--http", http, "--format", "json"]).json()
}

/// Each group's members, by their nodes, as a host knows them.
pub fn groups(ring: &Value) -> Vec<Vec<String>> {
    let groups = ring["keyspaces"][0]["groups"].as_array().cloned().unwrap_or_default();
    let text = |member: &Value| member.as_str().expect("a node").to_owned();
    let members = |group: &Value| group["members"].as_array().cloned().unwrap_or_default();
    groups.iter().map(|group| members(group).iter().map(text).collect()).collect()
}

/// The node of the host at an address of the cluster door.
pub fn node_at(ring: &Value, address: &str) -> Option<String> {
    let hosts = ring["hosts"].as_array()?;
    let host = hosts.iter().find(|host| host["address"] == address)?;
    host["node"].as_str().map(str::to_owned)
}

/// The number by which a node is called.
fn number_of(ring: &Value, node: &str) -> Option<u64> {
    let hosts = ring["hosts"].as_array()?;
    hosts.iter().find(|host| host["node"] == node)?["host"].as_u64()
}

fn put_all(resp: &str, value: &str) {
    for number in 0..KEYS {
        let key = format!("key-{number}");
        until("it is written", || on(resp, &["put", &key, value]).code == 0);
    }
}

fn all_are(resp: &str, value: &str) {
    for number in 0..KEYS {
        let key = format!("key-{number}");
        until("it can be read", || on(resp, &["get", &key]).code == 0);
        assert_eq!(on(resp, &["get", &key]).out, value, "{key}");
    }
}

#[test]
fn a_host_joins_takes_over_and_is_drained_and_removed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = start(data, &[]);
    let (first, http) = (dev.door(1, "resp"), dev.door(1, "http"));
    put_all(&first, "before");
    ctl(data, &["add"]);
    let (joined, joined_at) = (&dev.at(4, "resp"), &dev.at(4, "cluster"));
    all_are(joined, "before");
    until("the others hear of it", || node_at(&ring(&http), joined_at).is_some());
    let node = node_at(&ring(&http), joined_at).expect("as above");
    until("it is a member", || groups(&ring(&http)).iter().any(|group| group.contains(&node)));
    put_all(joined, "with four");
    for host in 1..=4 {
        let http = dev.at(host, "http");
        until("it has its number everywhere", || number_of(&ring(&http), &node) == Some(4));
    }
    let said = quorate(&["drain", "4", "--http", &http]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("drained"), "{said:?}");
    let left = || groups(&ring(&dev.at(4, "http")));
    until("it says so itself", || left().iter().all(|group| !group.contains(&node)));
    all_are(&first, "with four");
    ctl(data, &["kill", "4"]);
    let said = quorate(&["remove", &node, "--http", &http]);
    assert_eq!(said.code, 0, "{said:?}");
    all_are(&first, "with four");
    let standing = |ring: &Value| {
        let hosts = ring["hosts"].as_array().cloned().unwrap_or_default();
        hosts.into_iter().find(|host| host["node"] == node.as_str())
    };
    let standing = standing(&ring(&http)).expect("who has left is remembered");
    assert_eq!(standing["standing"], "left");
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn a_drain_can_be_undone_and_the_last_replicas_stay() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let slow = ["--hosts", "4", "--set", "cluster.transfer_rate=8KiB"];
    let dev = start(place.path(), &slow);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    put_all(&resp, "kept");
    assert_eq!(quorate(&["keyspace", "drop", "causal", "--yes", "--http", &http]).code, 0);
    assert_eq!(quorate(&["drain", "2", "--http", &http]).code, 0);
    let said = quorate(&["drain", "2", "--undo", "--http", &http, "--format", "json"]);
    assert_eq!((said.code, &said.json()["state"]), (0, &"up".into()), "{said:?}");
    // Of four groups each host is in three, and so in two together with each other host. A host
    // knows of no group that it is not in, but for a while of one that it has left. What this one
    // does not have yet it would copy, and slowly, with what is written next.
    let node = node_at(&ring(&http), &dev.door(2, "cluster")).expect("it is on the ring");
    let together = |host: usize| {
        let ring = ring(&dev.door(host, "http"));
        let me = ring["node"].as_str().expect("a node").to_owned();
        groups(&ring).iter().filter(|it| it.contains(&node) && it.contains(&me)).count()
    };
    let own = || ring(&dev.door(2, "http"))["keyspaces"][0]["groups"].as_array().cloned();
    let is_ready = |group: &Value| {
        let is_outside = group["role"] == "learner" || group["role"] == "source";
        is_outside || group["status"] == "ready"
    };
    until("it takes part again, and has all of that", || {
        let has_all = own().is_some_and(|groups| groups.iter().all(is_ready));
        [1, 2, 3, 4].map(together) == [2, 3, 2, 2] && has_all
    });
    let drain = |host| quorate(&["drain", host, "--no-wait", "--http", &http]).code;
    // Much to hand over, and slowly: it is not done when the next order comes.
    let large = "kept".repeat(1024);
    put_all(&resp, &large);
    assert_eq!([drain("3"), drain("2"), drain("1")], [0, 1, 1], "three replicas need three hosts");
    let remove = || quorate(&["remove", "3", "--no-wait", "--http", &http]);
    let early = remove();
    assert_eq!(early.code, 1, "{early:?}");
    assert!(early.err.contains("it answers and is not drained yet"), "{early:?}");
    assert!(early.err.contains("wait until it is drained"), "{early:?}");
    all_are(&resp, &large);
    // The others have all that it holds, so it may go once it is away.
    let node = node_at(&ring(&http), &dev.door(3, "cluster")).expect("it is on the ring");
    ctl(place.path(), &["kill", "3"]);
    until("it is removed", || remove().code == 0);
    let ring = ring(&http);
    let left = ring["hosts"].as_array().into_iter().flatten().find(|host| host["node"] == *node);
    assert_eq!(left.expect("it is remembered")["standing"], "left");
    all_are(&resp, &large);
    assert_eq!(dev.stop().0, Some(0));
}

/// Of six hosts in a ring the first and the fourth share no group, so the first alone would say at
/// once that the fourth holds nothing.
#[test]
fn a_drain_knows_all_groups_or_says_which_it_does_not() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let soon = ["--hosts", "6", "--set", "limits.request_timeout=1s"];
    let dev = start(data, &soon);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    put_all(&resp, "kept");
    let node = node_at(&ring(&http), &dev.door(4, "cluster")).expect("it is on the ring");
    let has = |http: &str| groups(&ring(http)).iter().any(|group| group.contains(&node));
    assert!(!has(&http), "the first host knows no group of the fourth");
    assert!(has(&dev.door(4, "http")));
    let said = quorate(&["drain", &node, "--http", &http]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("is a member of"), "it had something to hand over: {said:?}");
    for host in [3, 4, 5] {
        until("it is a member nowhere", || !has(&dev.door(host, "http")));
    }
    ctl(data, &["kill", "5"]);
    ctl(data, &["kill", "6"]);
    let said = quorate(&["drain", "2", "--http", &http, "--timeout", "3s"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert!(said.err.contains("do not answer"), "{said:?}");
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn a_killed_host_is_replaced_where_there_is_a_spare() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = start(data, &["--hosts", "4"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    put_all(&resp, "safe");
    let lost = node_at(&ring(&http), &dev.door(3, "cluster")).expect("it is on the ring");
    ctl(data, &["kill", "3"]);
    all_are(&resp, "safe");
    until("its groups are whole without it", || {
        let groups = groups(&ring(&http));
        groups.iter().all(|group| group.len() == 3 && !group.contains(&lost))
    });
    all_are(&dev.door(4, "resp"), "safe");
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn a_cluster_that_grew_is_found_again() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = Dev::start(data, &[]);
    put_all(&dev.door(1, "resp"), "kept");
    ctl(data, &["add"]);
    assert_eq!(dev.stop().0, Some(0));
    let again = Dev::start(data, &[]);
    assert_eq!(again.cluster["hosts"].as_array().map(Vec::len), Some(4));
    all_are(&again.door(4, "resp"), "kept");
    assert_eq!(again.stop().0, Some(0));
}

#[test]
fn a_read_is_explained() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = start(place.path(), &[]);
    let http = dev.door(2, "http");
    assert_eq!(on(&dev.door(1, "resp"), &["put", "greeting", "hello"]).code, 0);
    let args = ["explain", "get", "greeting", "--http", &http, "--format", "json"];
    let explained = quorate(&args).json();
    assert_eq!(explained["value_bytes"], 5);
    assert_eq!(explained["view"]["members"].as_array().map(Vec::len), Some(3));
    let steps = explained["steps"].as_array().expect("a list");
    assert!(steps.len() >= 2, "a question and an answer: {explained}");
    let me = ring(&http)["node"].clone();
    assert_eq!(explained["coordinator"]["node"], me, "the host that was asked");
    assert_eq!(dev.stop().0, Some(0));
}

/// Two of four hosts answer, as many as a majority of three replicas, but not of each group.
#[test]
fn a_host_is_not_removed_while_a_group_needs_it() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = start(data, &["--hosts", "4", "--set", "limits.request_timeout=1s"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    put_all(&resp, "kept");
    let node = node_at(&ring(&http), &dev.door(4, "cluster")).expect("it is on the ring");
    let remove = |more: &[&str]| quorate(&[&["remove", &node, "--http", &http], more].concat());
    let said = remove(&[]);
    assert!(said.code == 1 && said.err.contains("answers; drain it first"), "{said:?}");
    ctl(data, &["freeze", "3"]);
    ctl(data, &["freeze", "4"]);
    let mut said = String::new();
    until("both are suspected", || {
        let told = remove(&["--no-wait"]);
        assert_ne!(told.code, 0, "{told:?}");
        said = told.err;
        said.contains("is not removed")
    });
    assert!(said.contains("the groups of keyspace default from"), "{said}");
    assert!(said.contains("--lose-data"), "{said}");
    ctl(data, &["thaw", "3"]);
    until("no group needs it any more", || remove(&["--no-wait"]).code == 0);
    ctl(data, &["kill", "4"]);
    let said = remove(&[]);
    assert_eq!(said.code, 0, "whoever was told not to wait may ask again: {said:?}");
    all_are(&resp, "kept");
    assert_eq!(dev.stop().0, Some(0));
}

/// Members copy so slowly that the drain is half-way for as long as the test looks.
#[test]
fn a_host_that_answers_is_not_removed_while_it_hands_over() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = start(place.path(), &["--hosts", "4", "--set", "cluster.transfer_rate=1KiB"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    put_all(&resp, &"x".repeat(16 << 10));
    assert_eq!(quorate(&["keyspace", "drop", "causal", "--yes", "--http", &http]).code, 0);
    let node = node_at(&ring(&http), &dev.door(2, "cluster")).expect("it is on the ring");
    assert_eq!(quorate(&["drain", &node, "--no-wait", "--http", &http]).code, 0);
    let said = quorate(&["remove", &node, "--no-wait", "--http", &http]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("it answers and is not drained yet"), "{said:?}");
    assert!(said.err.contains("wait until it is drained"), "{said:?}");
    let said = quorate(&["drain", &node, "--http", &http, "--timeout", "1s"]);
    assert_eq!(said.code, 6, "{said:?}");
    let told = ["is a member of", "keeps data for others"];
    assert!(told.iter().any(|told| said.err.contains(told)), "{said:?}");
    assert_eq!(quorate(&["drain", &node, "--undo", "--http", &http]).code, 0);
    assert_eq!(dev.stop().0, Some(0));
}

/// Two of five hosts are cut off together and die: the group of which they were the majority can
/// go on nowhere, and only an order that gives it up counts them as gone.
#[test]
fn hosts_without_which_a_group_has_no_majority_are_removed_by_an_order_that_gives_it_up() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = start(data, &["--hosts", "5", "--set", "limits.request_timeout=1s"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    put_all(&resp, "kept");
    assert_eq!(quorate(&["keyspace", "drop", "causal", "--yes", "--http", &http]).code, 0);
    let node = |host| node_at(&ring(&http), &dev.door(host, "cluster")).expect("it is on the ring");
    let nodes = [node(4), node(5)];
    ctl(data, &["partition", "1,2,3", "4,5"]);
    ctl(data, &["kill", "4"]);
    ctl(data, &["kill", "5"]);
    let remove = |node: &str, more: &[&str]| {
        quorate(&[&["remove", node, "--no-wait", "--http", &http], more].concat())
    };
    let mut said = String::new();
    until("they are suspected", || {
        let told = remove(&nodes[0], &[]);
        assert_ne!(told.code, 0, "{told:?}");
        said = told.err;
        said.contains("is not removed")
    });
    assert!(said.contains("of keyspace default") && said.contains("--lose-data"), "{said}");
    for node in &nodes {
        let said = remove(node, &["--lose-data"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.err.contains("is given up for good"), "{said:?}");
    }
    until("both have left", || {
        let known = ring(&http)["hosts"].as_array().cloned().unwrap_or_default();
        known.iter().filter(|host| host["standing"] == "left").count() == 2
    });
    let keyspace = |order: &[&str]| quorate(&[&["keyspace"], order, &["--http", &http]].concat());
    let lost = (0..KEYS).filter(|number| on(&resp, &["get", &format!("key-{number}")]).code != 0);
    assert!(lost.count() > 0, "what the group held is not served any more");
    until("the keyspace is dropped", || keyspace(&["drop", "default", "--yes"]).code == 0);
    let made = || keyspace(&["create", "default", "durability=memory"]).code == 0;
    until("it is made again", made);
    put_all(&resp, "anew");
    all_are(&dev.door(3, "resp"), "anew");
    assert_eq!(dev.stop().0, Some(0));
}
