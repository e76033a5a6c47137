//! Contexts and siblings through the native API: HTTP, gRPC, and the Rust client.

use crate::cluster::{Cluster, until};
use crate::http::ask;
use bytes::Bytes;
use quorate_client::v1::Kind;
use quorate_client::{Client, Scan, Settings};
use serde_json::{Value, json};
use std::time::Duration;

const RAW: &str = "Accept: application/octet-stream";
const TEXT: &str = "Content-Type: text/plain";

fn started(base: u16) -> Cluster {
    let specs = ["--keyspace", "default=linearizable", "--keyspace", "carts=causal"];
    let mut cluster = Cluster::create_with(base, "memory", &specs);
    cluster.start_all();
    for host in 1..=3 {
        until("the keyspace is served", || {
            ask(&cluster.http(host), "GET /v1/kv/carts/nothing\nA: b", b"").status == 404
        });
    }
    cluster
}

fn siblings(answer: &Value) -> Vec<&str> {
    let all = answer["siblings"].as_array().expect("a list");
    let mut all: Vec<&str> = all.iter().map(|one| one["value"].as_str().expect("text")).collect();
    all.sort_unstable();
    all
}

#[test]
fn over_http_contexts_travel_in_a_header_and_siblings_are_json() {
    let cluster = started(24_600);
    let http = cluster.http(1);
    let get = |accept: &str| ask(&http, &format!("GET /v1/kv/carts/k\n{accept}"), b"");
    let put = |value: &str, context: &str| {
        let head = format!("PUT /v1/kv/carts/k\n{TEXT}\nX-Quorate-Context: {context}");
        ask(&http, &head, value.as_bytes())
    };
    let absent = get("A: b");
    assert_eq!((absent.status, absent.json()["siblings"].clone()), (404, json!([])));
    assert!(absent.header("x-quorate-context").is_some(), "absence has a context too");
    let first = put("ale", "");
    let context = first.header("x-quorate-context").expect("a context").to_owned();
    assert_eq!((first.status, &first.json()["context"]), (200, &json!(context)));
    let one = get(RAW);
    assert_eq!((one.status, &one.body[..]), (200, &b"ale"[..]), "one value is raw bytes");
    assert!(one.header("x-quorate-context").is_some());
    assert_eq!(put("bread", "").status, 200);
    let two = get("A: b");
    assert_eq!((two.status, siblings(&two.json())), (200, vec!["ale", "bread"]));
    assert_eq!(two.json()["context"], two.header("x-quorate-context").expect("the same"));
    let choices = get(RAW);
    assert_eq!((choices.status, siblings(&choices.json())), (300, vec!["ale", "bread"]));
    assert_eq!(put("cheese", &context).status, 200);
    assert_eq!(siblings(&get("A: b").json()), ["bread", "cheese"], "it replaced what it had seen");

    let forged = put("x", "AAAA");
    assert_eq!((forged.status, forged.kind().as_str()), (400, "bad_context"));
    let mut bytes = context.into_bytes();
    bytes[30] = if bytes[30] == b'A' { b'B' } else { b'A' };
    let changed = put("x", &String::from_utf8(bytes).expect("base64"));
    assert_eq!((changed.status, changed.kind().as_str()), (400, "bad_context"));
    let register = format!("PUT /v1/kv/default/k\n{TEXT}\nX-Quorate-Context: AAAA");
    assert_eq!(ask(&http, &register, b"x").kind(), "unsupported");
    let page = ask(&http, "GET /v1/kv/carts?values=true\nA: b", b"").json();
    assert_eq!(page["promise"]["engine"], "causal");
    assert_eq!(siblings(&page["entries"][0]), ["bread", "cheese"], "{page}");

    // Without a context a delete takes what the host has.
    let deleted = ask(&http, "DELETE /v1/kv/carts/k\nA: b", b"");
    assert_eq!((deleted.status, &deleted.json()["existed"]), (200, &json!(true)));
    assert_eq!(get("A: b").status, 404);
}

#[test]
fn the_rust_client_reads_siblings_writes_over_them_and_merges() {
    let cluster = started(24_650);
    let settings = Settings { timeout: Duration::from_secs(60) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let at = |host| {
            let client = Client::with(&[cluster.grpc(host)], settings.clone());
            client.expect("an address").keyspace("carts")
        };
        let (one, other) = (at(1), at(2));
        assert_eq!(one.get("k").await, Ok(None));
        let first = one.put_over("k", "ale", "").await.expect("it is written");
        assert_eq!(one.get("k").await, Ok(Some(Bytes::from_static(b"ale"))));
        other.put("k", "bread").await.expect("a blind write");
        let (mut count, until_two) = (0, tokio::time::Instant::now() + Duration::from_secs(60));
        while count != 2 {
            assert!(tokio::time::Instant::now() < until_two, "they see each other's");
            count = one.siblings("k").await.expect("it is read").values.len();
        }
        assert!(one.get("k").await.is_err(), "there are two");
        let next = one.put_over("k", "stout", first.clone()).await.expect("it is written");
        assert!(next.is_empty(), "there is a sibling that was not seen");
        let changed: Vec<u8> = first.iter().rev().copied().collect();
        let refused = one.put_over("k", "x", changed).await.expect_err("it was changed");
        assert_eq!(refused.kind(), Some(Kind::BadContext));
        let foreign = one.put_over("l", "x", first).await.expect_err("of another key");
        assert_eq!(foreign.kind(), Some(Kind::BadContext));

        let sorted = |values: &[Bytes]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            Bytes::from(values.join(&b","[..]))
        };
        let carts = one.merging(sorted);
        assert_eq!(carts.get("k").await, Ok(Some(Bytes::from_static(b"bread,stout"))));
        let add =
            |now: Option<Bytes>| Some(Bytes::from([&now.expect("two")[..], b",tea"].concat()));
        carts.update("k", add).await.expect("it is written");
        assert_eq!(one.get("k").await, Ok(Some(Bytes::from_static(b"bread,stout,tea"))));
        let all = one.scan(Scan { with_values: true, ..Scan::default() });
        let all = all.all().await.expect("it is listed");
        assert_eq!(all.len(), 1);
        carts.update("k", |_| None).await.expect("it is deleted");
        assert_eq!(carts.get("k").await, Ok(None));
        carts.update("k", |_| None).await.expect("there is nothing to delete");
        let scan = one.scan(Scan::default()).all().await.expect("it is listed");
        assert!(scan.is_empty());
    });
}
