//! The whole cluster is shut down in order, and started again: nothing is lost, nothing moved.

use crate::command_line::dev::Dev;
use crate::elastic::{node_at, ring};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::run::{Said, quorate};
use serde_json::Value;

/// How many operations must be answered before and after.
const SOME: usize = 300;

fn shutdown(http: &str, more: &[&str]) -> Said {
    quorate(&[&["shutdown", "--http", http], more].concat())
}

/// Each group with its version and members, as a host knows them.
fn views(ring: &Value) -> Vec<(String, u64, Value)> {
    let groups = ring["keyspaces"][0]["groups"].as_array().cloned().unwrap_or_default();
    let view = |group: &Value| {
        let low = group["low"].as_str().expect("a token").to_owned();
        (low, group["version"].as_u64().expect("a number"), group["members"].clone())
    };
    let mut views: Vec<_> = groups.iter().map(view).collect();
    views.sort_by(|one, other| one.0.cmp(&other.0));
    views
}

/// Shuts a cluster down under load, and starts it again in another order.
fn there_and_back(durability: &str) {
    let mut cluster = Cluster::start(durability);
    let load = Load::start(cluster.doors());
    load.more(SOME);
    let before: Vec<_> = (1..=3).map(|host| views(&ring(&cluster.http(host)))).collect();
    let said = shutdown(&cluster.http(2), &[]);
    assert_eq!((said.code, said.out.as_str()), (0, "the cluster is shut down\n"), "{said:?}");
    for host in 1..=3 {
        assert_eq!(cluster.ended(host), Some(0), "{}", cluster.said(host));
        let log = cluster.said(host);
        assert!(log.contains("the whole cluster is shut down"), "{log}");
        assert!(log.contains("host_stopped"), "{log}");
    }
    [3, 1, 2].iter().for_each(|&host| cluster.launch(host));
    (1..=3).for_each(|host| cluster.await_ready(host));
    for host in 1..=3 {
        assert!(!cluster.said(host).contains("torn_tail_cut"), "{}", cluster.said(host));
    }
    load.more(SOME);
    for (host, before) in (1..=3).zip(before) {
        assert_eq!(views(&ring(&cluster.http(host))), before, "host {host}");
    }
    let recorded = load.finish(&[1, 2, 3]);
    recorded.must_hold(2 * SOME);
    let report = recorded.without_a_final_write().judged();
    assert!(report.order.is_violated(), "a value from nowhere: {report}");
}

#[test]
fn a_cluster_that_syncs_comes_back_as_it_was() {
    there_and_back("sync");
}

/// Nothing is lost although `periodic` alone would allow it: an orderly end syncs.
#[test]
fn a_cluster_that_syncs_now_and_then_comes_back_as_it_was() {
    there_and_back("periodic=10000ms");
}

#[test]
fn what_is_in_memory_alone_is_not_thrown_away_unasked() {
    let mut cluster = Cluster::start("memory");
    let put = |cluster: &Cluster, key: &str| {
        quorate(&["put", key, "v", "--endpoint", &cluster.resp(3)]).code
    };
    assert_eq!(put(&cluster, "k"), 0);
    let said = shutdown(&cluster.http(1), &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("all that is in default would be lost"), "{said:?}");
    assert!(said.err.contains("--force"), "{said:?}");
    assert_eq!(put(&cluster, "l"), 0, "it serves as before");
    let said = shutdown(&cluster.http(1), &["--force", "--format", "json"]);
    assert_eq!((said.code, said.json()["silent"].as_array().map(Vec::len)), (0, Some(0)));
    (1..=3).for_each(|host| assert_eq!(cluster.ended(host), Some(0)));
    cluster.start_all();
    let get = ["get", "k", "--endpoint", &cluster.resp(2)];
    until("an empty cluster serves", || quorate(&get).code == 3);
}

/// A client that is connected is told, and its operation that was under way is answered.
#[test]
fn clients_are_told_that_the_cluster_ends() {
    let mut cluster = Cluster::start("sync");
    let mut clients: Vec<Client> = cluster.doors().iter().map(|door| Client::to(door)).collect();
    // One host of three cannot be reached, so the order waits for it a while, and clients see it.
    cluster.kill(&[3]);
    clients.truncate(2);
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.told_at_last(&[b"SET", b"k", b"v"]), "OK"));
    let http = cluster.http(1);
    std::thread::scope(|scope| {
        let order = scope.spawn(|| shutdown(&http, &["--format", "json"]));
        for client in &mut clients {
            until("it is refused", || match client.told(&[b"SET", b"k", b"w"]).as_str() {
                "OK" => false,
                told => told == "SHUTDOWN the node is shutting down",
            });
            assert_eq!(client.told(&[b"PING"]), "PONG", "what needs no replica is answered");
        }
        let said = order.join().expect("it ends");
        assert_eq!(said.code, 1, "a host was not reached: {said:?}");
        assert!(said.err.contains("these were not reached"), "{said:?}");
        let address = &said.json()["silent"][0]["address"];
        assert_eq!(*address, cluster.cluster(3).as_str());
    });
    (1..=2).for_each(|host| assert_eq!(cluster.ended(host), Some(0)));
}

/// A host that misses the order is named. Alone it can change nothing, and when the others are back
/// everything is as it was.
#[test]
fn a_host_that_misses_the_order_is_named_and_does_no_harm() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().display().to_string();
    let dev = Dev::start(place.path(), &[]);
    let (first, third) = (dev.door(1, "http"), dev.door(3, "http"));
    let put = quorate(&["put", "k", "v", "--endpoint", &dev.door(1, "resp")]);
    assert_eq!(put.code, 0, "{put:?}");
    let ctl = |order: &[&str]| {
        let said = quorate(&[&["dev", "ctl", "--data", &data], order].concat());
        assert_eq!(said.code, 0, "{order:?}: {said:?}");
    };
    let before = views(&ring(&third));
    ctl(&["partition", "3", "1,2"]);
    let said = shutdown(&first, &["--format", "json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let missed = node_at(&ring(&third), &dev.door(3, "cluster")).expect("it is on the ring");
    let silent = said.json()["silent"].clone();
    assert_eq!(silent.as_array().map(Vec::len), Some(1), "{silent}");
    assert_eq!(silent[0]["node"], missed.as_str());
    let get = |host| quorate(&["get", "k", "--endpoint", &dev.door(host, "resp")]);
    assert_eq!(get(3).code, 5, "alone it answers nothing old");
    // It is no order for a host that is started again.
    ["1", "2"].iter().for_each(|host| ctl(&["start", host]));
    ctl(&["heal"]);
    for host in [1, 2, 3] {
        until("all serve again", || get(host).out == "v");
    }
    assert_eq!(views(&ring(&third)), before);
    assert_eq!(dev.stop().0, Some(0));
}
