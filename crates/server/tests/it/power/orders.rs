//! Keyspaces that are made and dropped right before power is lost.

use super::disk::{Disk, Lost};
use super::lose_twice;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, get, until};
use crate::support::run::quorate;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Gives an order until it is acknowledged. One that was given before may have been carried out.
fn order(http: &str, args: &[&str], is_done: &str) {
    let all = [&["keyspace"], args, &["--http", http]].concat();
    until("enough hosts answer in time", || {
        let said = quorate(&all);
        let open = ["nothing was changed", "unknown", "did not answer"];
        let is_open = open.iter().any(|text| said.err.contains(text));
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

/// Sends an order, and has the host answer something that was asked behind it. The order takes
/// syncs of a majority, and that none.
fn begin(http: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(http).expect("the host serves");
    let head = format!("Host: {http}\r\nContent-Length: 0\r\nConnection: close");
    write!(stream, "POST {path} HTTP/1.1\r\n{head}\r\n\r\n").expect("the host serves");
    get(http, "/keyspaces");
    stream
}

/// What the host has answered before it was killed.
fn answer_of(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    // Whether its end was a clean one does not matter.
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn orders_that_were_acknowledged_outlive_a_loss_of_power() {
    let mut cluster = Cluster::create("sync");
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let mut expected = vec![String::from("default")];
    let mut round = 0;
    lose_twice(|unsynced| {
        round += 1;
        let name = |what: &str| format!("{what}-{round}");
        let [dropped, kept, last, open] = ["dropped", "kept", "last", "open"].map(name);
        let http = cluster.http(1 + round % 3);
        for name in [&dropped, &kept] {
            make(&http, name);
            set(&mut client(&cluster, 1, name), name);
        }
        order(&http, &["drop", &dropped, "--yes"], "no keyspace");
        make(&http, &last);
        // Whether this one is made before power is lost is open, but all know the same.
        let path = format!("/control/keyspace/create?name={open}&engine=causal");
        let under_way = begin(&http, &path);
        cluster.kill(&[1, 2, 3]);
        let answer = answer_of(under_way);
        let is_open = answer.is_empty();
        let lost = disk.lose_power(unsynced);
        println!("open {is_open}, {lost:?}");
        cluster.start_all();

        expected.extend([kept.clone(), last.clone()]);
        if answer.starts_with(b"HTTP/1.1 200") {
            expected.push(open);
        }
        expected.sort_unstable();
        are_known(&cluster, &expected);
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
        if is_open { lost } else { Lost::default() }
    });
}

/// Waits until all hosts know the same keyspaces: these, and maybe some that were open. One of them
/// may learn late of what the others have decided.
fn are_known(cluster: &Cluster, expected: &[String]) {
    let mut list = Vec::new();
    until("all hosts know the same keyspaces", || {
        let [first, second, third] = [1, 2, 3].map(|host| known(&cluster.http(host)));
        let is_one = first == second && second == third;
        list = first;
        is_one
    });
    let is_expected = |name: &&String| !name.starts_with("open-") || expected.contains(*name);
    let acknowledged: Vec<&String> = list.iter().filter(is_expected).collect();
    assert_eq!(acknowledged, expected.iter().collect::<Vec<_>>());
}
