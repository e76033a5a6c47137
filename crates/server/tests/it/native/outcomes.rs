//! How a transaction ended whose client was told that nobody knows yet: asked at every door.

use super::http::{ask, ask_once};
use super::rustclient::{block_on, client};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use bytes::Bytes;
use quorate_client::v1::{Ended, Kind};
use rustix::process::Signal;
use serde_json::json;

const JSON: &str = "Content-Type: application/json";

fn unhex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Writes at the first host while the others stand still, until one of the writes is open: which,
/// and the token. Once the others are suspected nothing is sent.
fn leave_open(cluster: &Cluster) -> (u32, String) {
    let (mut number, mut open) = (0, None);
    until("a write is left open", || {
        number += 1;
        let body = format!(r#"{{"value":"{number}"}}"#);
        let put = |timeout| format!("PUT /v1/kv/default/k{timeout}\n{JSON}");
        assert_eq!(ask(&cluster.http(1), &put(""), body.as_bytes()).status, 200);
        number += 1;
        let body = format!(r#"{{"value":"{number}"}}"#);
        [2, 3].into_iter().for_each(|host| cluster.signal(host, Signal::STOP));
        let told = ask_once(&cluster.http(1), &put("?timeout_ms=200"), body.as_bytes());
        [2, 3].into_iter().for_each(|host| cluster.signal(host, Signal::CONT));
        let token = told.json()["error"]["outcome_token"].clone();
        open = token.as_str().map(|token| (number, token.to_owned()));
        assert_eq!(open.is_some(), told.status == 504, "{told:?}");
        open.is_some()
    });
    open.expect("it was left open")
}

#[test]
fn every_door_tells_how_a_write_ended_that_was_left_open() {
    let mut cluster = Cluster::create_with("memory", &["--keyspace", "default=serializable"]);
    cluster.start_all();
    let (number, token) = leave_open(&cluster);
    let path = |token: &str| format!("GET /v1/transactions/default/{token}\n{JSON}");
    let mut ended = None;
    until("the second host finds out", || {
        let told = ask(&cluster.http(2), &path(&token), b"");
        ended = told.json()["ended"].as_str().map(str::to_owned);
        assert_eq!(ended.is_some(), told.status == 200, "{told:?}");
        ended.is_some()
    });
    let ended = ended.expect("it was found out");
    let is_committed = ended == "committed";
    assert!(is_committed || ended == "aborted", "{ended}");
    let mut resp = Client::to(&cluster.resp(3));
    let command = [&b"TXN"[..], b"OUTCOME", token.as_bytes()];
    let told = resp.told_at_last(&command);
    assert_eq!(told, ended.to_ascii_uppercase());
    block_on(async {
        let keyspace = client(&[cluster.grpc(1)]).keyspace("default");
        let told = keyspace.how_ended(unhex(&token)).await;
        assert_eq!(told, Ok(if is_committed { Ended::Committed } else { Ended::Aborted }));
        let wrong = keyspace.how_ended(Bytes::from_static(b"token")).await;
        let wrong = wrong.expect_err("nobody gave it");
        assert_eq!(wrong.kind(), Some(Kind::BadContext), "{wrong}");
    });
    let read = ask(&cluster.http(3), &format!("GET /v1/kv/default/k\n{JSON}"), b"");
    let value = if is_committed { number } else { number - 1 };
    assert_eq!(read.json(), json!({ "key": "k", "value": value.to_string() }));
    let wrong = ask(&cluster.http(2), &path("00zz"), b"");
    assert_eq!((wrong.status, wrong.kind().as_str()), (400, "invalid"));
}
