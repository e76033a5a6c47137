//! Keyspaces without leaders or agreed membership, on real hosts: the one order, hosts that are
//! killed, versions that clients choose, and places that they hand back.

use crate::native::http::ask;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::run::quorate;
use bytes::Bytes;
use quorate_doors::resp::client::RespReply;
use serde_json::{Value, json};

const RAW: &str = "Accept: application/octet-stream";
const TEXT: &str = "Content-Type: text/plain";

fn made(cluster: &Cluster, args: &[&str]) {
    let http = cluster.http(1);
    let all = [&["keyspace", "create"], args, &["--http", &http]].concat();
    until("enough hosts answer in time", || {
        let said = quorate(&all);
        assert!(said.code == 0 || said.err.contains("nothing was changed"), "{said:?}");
        said.code == 0
    });
}

/// A client of a keyspace that serves it.
fn client(cluster: &Cluster, host: usize, keyspace: &str) -> Client {
    let mut client = Client::to(&cluster.resp(host));
    until("the keyspace is served", || {
        client.told(&[b"SELECT", keyspace.as_bytes()]) == "OK"
            && client.told(&[b"TYPE", b"is it served?"]) == "none"
    });
    client
}

#[test]
fn writes_are_read_at_every_host_and_outlive_all_of_them() {
    let mut cluster = Cluster::start("sync");
    made(&cluster, &["fleet", "--engine", "epidemic", "round_ms=10"]);
    let mut clients = [1, 2, 3].map(|host| client(&cluster, host, "fleet"));
    for (number, client) in clients.iter_mut().enumerate() {
        let (key, value) = (format!("k{number}"), format!("v{number}"));
        assert_eq!(client.told(&[b"SET", key.as_bytes(), value.as_bytes()]), "OK");
    }
    for client in &mut clients {
        for number in 0..3 {
            assert_eq!(
                client.told(&[b"GET", format!("k{number}").as_bytes()]),
                format!("v{number}")
            );
        }
    }
    // Two of three go on without the third, which has it all when it is back.
    cluster.kill(&[3]);
    assert_eq!(clients[0].told(&[b"SET", b"k0", b"new"]), "OK");
    assert_eq!(clients[1].ask(&[b"DEL", b"k1"]).expect("it answers"), RespReply::Integer(1));
    assert_eq!(clients[1].told(&[b"GET", b"k0"]), "new");
    cluster.restart(3);
    let mut third = client(&cluster, 3, "fleet");
    assert_eq!(third.told(&[b"GET", b"k0"]), "new");
    assert_eq!(third.ask(&[b"EXISTS", b"k1"]).expect("it answers"), RespReply::Integer(0));
    // What it took over it lists, in pages of one key, and nothing that was deleted.
    let mut listed = Vec::new();
    let mut cursor = Bytes::from_static(b"0");
    loop {
        let page = third.ask(&[b"SCAN", &cursor, b"COUNT", b"1"]).expect("it answers");
        let RespReply::Array(page) = page else { panic!("{page:?}") };
        let [RespReply::Bulk(next), RespReply::Array(keys)] = &page[..] else { panic!("{page:?}") };
        listed.extend(keys.iter().map(|key| match key {
            RespReply::Bulk(key) => key.clone(),
            other => panic!("{other:?} is no key"),
        }));
        cursor = next.clone();
        if cursor == "0" {
            break;
        }
    }
    listed.sort();
    assert_eq!(listed, ["k0", "k2"]);
    assert_eq!(third.ask(&[b"DBSIZE"]).expect("it answers"), RespReply::Integer(2));
    let page = ask(&cluster.http(2), "GET /v1/kv/fleet\nA: b", b"").json();
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(2), "{page}");
    cluster.kill(&[1, 2, 3]);
    cluster.start_all();
    let mut first = client(&cluster, 1, "fleet");
    assert_eq!(first.told(&[b"GET", b"k0"]), "new");
    assert_eq!(first.told(&[b"GET", b"k2"]), "v2");
    let refused = first.told(&[b"INCR", b"k2"]);
    assert!(refused.contains("needs an engine with transactions"), "{refused}");
    let refused = first.told(&[b"VGET", b"k2", b"1"]);
    assert!(refused.contains("no versions of clients"), "{refused}");
}

#[test]
fn where_there_is_no_order_a_version_has_one_value_in_the_end() {
    let cluster = Cluster::start("sync");
    made(&cluster, &["loose", "--engine", "epidemic", "level=none", "round_ms=10"]);
    let mut clients = [1, 2, 3].map(|host| client(&cluster, host, "loose"));
    assert_eq!(clients[0].told(&[b"VSET", b"k", b"1", b"a"]), "OK");
    assert_eq!(clients[1].told(&[b"VSET", b"k", b"2", b"b"]), "OK");
    until("the third host has it, too", || clients[2].told(&[b"VGET", b"k", b"1"]) == "a");
    let second = clients[2].told(&[b"VSET", b"k", b"1", b"c"]);
    // The one with the larger hash stays. A host that has not heard of the other may have taken
    // this one before another refused.
    let is_refused = second.contains("one value for each version");
    assert!(second == "OK" || is_refused || second.starts_with("UNKNOWNOUTCOME"), "{second}");
    until("all have the same", || {
        let told = clients.each_mut().map(|client| client.told(&[b"VGET", b"k", b"1"]));
        assert!(told.iter().all(|it| it == "a" || it == "c"), "{told:?}");
        told.iter().all(|it| *it == told[0])
    });
    for client in &mut clients {
        until("it is everywhere", || client.told(&[b"VGET", b"k", b"2"]) == "b");
    }
    let refused = clients[0].told(&[b"SET", b"k", b"d"]);
    assert!(refused.contains("under a version that the client chooses"), "{refused}");
    for wrong in ["x", "-1", "1.5"] {
        let told = clients[0].told(&[b"VGET", b"k", wrong.as_bytes()]);
        assert!(told.contains("not an integer"), "{wrong}: {told}");
    }
    let http = cluster.http(2);
    let read = ask(&http, &format!("GET /v1/kv/loose/k?version=2\n{RAW}"), b"");
    assert_eq!((read.status, &read.body[..]), (200, &b"b"[..]));
    let taken = ask(&http, &format!("PUT /v1/kv/loose/k?version=2\n{TEXT}"), b"c");
    let is_refused = taken.json()["error"]["what"].is_string();
    assert!(taken.status == 200 || taken.status >= 400 && is_refused, "{taken:?}");
}

#[test]
fn answers_say_where_they_stand_and_requests_come_behind() {
    let cluster = Cluster::start("sync");
    made(&cluster, &["fleet", "--engine", "epidemic", "round_ms=10"]);
    for host in 1..=3 {
        client(&cluster, host, "fleet");
    }
    let put = |host, value: &str, more: &str| {
        let head = format!("PUT /v1/kv/fleet/k\n{TEXT}{more}");
        ask(&cluster.http(host), &head, value.as_bytes())
    };
    let first = put(1, "a", "");
    let token = first.header("x-quorate-token").expect("answers carry places").to_owned();
    let receipt = &first.json()["receipt"];
    assert_eq!(receipt["token"], json!(token));
    assert_eq!(receipt["is_degraded"], json!(false));
    assert!(receipt["acks"].as_u64() >= Some(2), "{receipt}");
    let second = put(2, "b", &format!("\nX-Quorate-Token: {token}"));
    let later = second.header("x-quorate-token").expect("answers carry places").to_owned();
    let read =
        ask(&cluster.http(3), &format!("GET /v1/kv/fleet/k\n{RAW}\nX-Quorate-Token: {later}"), b"");
    assert_eq!((read.status, &read.body[..]), (200, &b"b"[..]));
    assert_eq!(read.header("x-quorate-degraded"), Some("0"));
    let keys = br#"{"keys":[{"key":"none"},{"key":"k"}]}"#;
    let json = "content-type: application/json";
    let head = format!("POST /v1/kv/fleet\n{json}\nX-Quorate-Token: {later}");
    let both = ask(&cluster.http(1), &head, keys).json();
    assert_eq!(both["readings"][1]["value"], json!("b"), "{both}");
    assert!(both["readings"][1]["receipt"]["token"].is_string(), "{both}");
    let head = format!("POST /v1/kv/default?version=1\n{json}");
    assert!(ask(&cluster.http(1), &head, keys).status >= 400, "other engines know no places");
    // Nobody was ever given such places.
    for (token, status) in [("x", 400), ("AQ==", 400), (&format!("B{}", &token[1..])[..], 400)] {
        let refused = put(1, "c", &format!("\nX-Quorate-Token: {token}"));
        assert_eq!(refused.status, status, "{token}: {:?}", refused.json());
    }
    let gone = ask(&cluster.http(1), "DELETE /v1/kv/fleet/k\nA: b", b"");
    let Value::Bool(existed) = gone.json()["existed"] else { panic!("{gone:?}") };
    assert!(existed, "{gone:?}");
    // Other engines know no places.
    let refused = ask(&cluster.http(1), "GET /v1/kv/default/k?version=1\nA: b", b"");
    assert!(refused.status >= 400, "{refused:?}");
    assert!(refused.json()["error"]["what"].as_str().is_some_and(|what| what.contains("receipts")));
}
