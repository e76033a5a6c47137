//! Contexts and siblings through the native API over HTTP.

use crate::native::http::ask;
use crate::support::cluster::{Cluster, until};
use serde_json::{Value, json};

const RAW: &str = "Accept: application/octet-stream";
const TEXT: &str = "Content-Type: text/plain";

fn started() -> Cluster {
    let specs = ["--keyspace", "default=linearizable", "--keyspace", "carts=causal"];
    let mut cluster = Cluster::create_with("memory", &specs);
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
    let cluster = started();
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
