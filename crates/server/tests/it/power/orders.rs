//! Keyspaces that are made and dropped right before power is lost.

use super::both;
use super::disk::Disk;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::run::{command, quorate};
use std::process::Stdio;

/// Gives an order until it is acknowledged. One that was given before may have been carried out.
fn order(http: &str, args: &[&str], is_done: &str) {
    let all = [&["keyspace"], args, &["--http", http]].concat();
    until("enough hosts answer in time", || {
        let said = quorate(&all);
        let is_open = said.err.contains("nothing was changed") || said.err.contains("unknown");
        assert!(said.code == 0 || is_open || said.err.contains(is_done), "{said:?}");
        said.code == 0 || said.err.contains(is_done)
    });
}

fn make(http: &str, name: &str) {
    order(http, &["create", name, "--engine", "linearizable"], "already");
}

/// The names of all keyspaces that a host knows.
fn known(http: &str) -> Vec<String> {
    let said = quorate(&["keyspace", "list", "--format", "json", "--http", http]);
    assert_eq!(said.code, 0, "{said:?}");
    let list = said.json();
    let names = list.as_array().expect("a list").iter().map(|one| &one["name"]);
    let mut names: Vec<String> =
        names.map(|name| name.as_str().expect("a text").to_owned()).collect();
    names.sort_unstable();
    names
}

fn client(cluster: &Cluster, host: usize, keyspace: &str) -> Client {
    let mut client = Client::to(&cluster.resp(host));
    until("the keyspace is open", || client.told(&[b"SELECT", keyspace.as_bytes()]) == "OK");
    client
}

/// Asks until a quorum answers: of a keyspace that was just made a host may know nobody yet.
fn set(client: &mut Client, value: &str) {
    until("it is written", || {
        let told = client.told(&[b"SET", b"k", value.as_bytes()]);
        assert!(told == "OK" || told.starts_with("NOQUORUM"), "{told}");
        told == "OK"
    });
}

#[test]
fn orders_that_were_acknowledged_outlive_a_loss_of_power() {
    let mut cluster = Cluster::create("sync");
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let mut expected = vec![String::from("default")];
    for (round, unsynced) in both().into_iter().enumerate() {
        let name = |what: &str| format!("{what}-{round}");
        let [dropped, kept, last, open] = ["dropped", "kept", "last", "open"].map(name);
        let http = cluster.http(1 + round);
        for name in [&dropped, &kept] {
            make(&http, name);
            set(&mut client(&cluster, 1, name), name);
        }
        order(&http, &["drop", &dropped, "--yes"], "no keyspace");
        make(&http, &last);
        // Whether this one is made before power is lost is open, but all know the same.
        let all = ["keyspace", "create", &open, "--engine", "causal", "--http", &http];
        let mut under_way = command(&all);
        let silent = under_way.stdout(Stdio::null()).stderr(Stdio::null());
        let mut under_way = silent.spawn().expect("the binary starts");
        cluster.kill(&[1, 2, 3]);
        println!("{} files and directories lost something", disk.lose_power(unsynced));
        cluster.start_all();
        under_way.wait().expect("it ends when its host has");

        expected.extend([kept.clone(), last.clone()]);
        until("all hosts know the same keyspaces", || {
            let lists = [1, 2, 3].map(|host| known(&cluster.http(host)));
            let is_acknowledged = |name: &&String| !name.starts_with("open-");
            for list in &lists {
                let acknowledged: Vec<&String> = list.iter().filter(is_acknowledged).collect();
                expected.sort_unstable();
                assert_eq!(acknowledged, expected.iter().collect::<Vec<_>>());
            }
            lists.iter().all(|list| *list == lists[0])
        });
        for host in 1..=3 {
            let mut client = client(&cluster, host, &kept);
            assert_eq!(client.told_at_last(&[b"GET", b"k"]), kept);
        }
        set(&mut client(&cluster, 2, &last), "new");
        // Under its name a new one is made, and nothing of the old one is in it.
        make(&http, &dropped);
        let mut client = client(&cluster, 3, &dropped);
        until("it is served", || !client.told(&[b"TYPE", b"k"]).starts_with("NOQUORUM"));
        assert_eq!(client.told_at_last(&[b"TYPE", b"k"]), "none");
        order(&http, &["drop", &dropped, "--yes"], "no keyspace");
    }
}
