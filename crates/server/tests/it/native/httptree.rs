//! Trees over HTTP: nodes with versions as ETags, several things at once, and nodes that are
//! followed as server-sent events.

use crate::native::http::{Response, ask};
use crate::native::tree::cluster;
use crate::support::cluster::SOON;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

const RAW: &str = "Content-Type: application/octet-stream";
const JSON: &str = "Content-Type: application/json";

fn at(host: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
    ask(host, &format!("{method} /v1/tree/config{path}\n{headers}"), body)
}

#[test]
fn nodes_have_values_children_and_versions() {
    let (cluster, _) = cluster();
    let (one, two) = (cluster.http(1), cluster.http(2));
    let made = at(&one, "POST", "/a", RAW, b"one");
    assert_eq!((made.status, made.header("etag")), (201, Some("\"0\"")));
    assert_eq!((&made.json()["path"], &made.json()["is_repeated"]), (&json!("/a"), &json!(false)));
    let numbered = at(&one, "POST", "/a/n-?sequential=true", JSON, br#"{"value":"x"}"#);
    assert_eq!((numbered.status, &numbered.json()["path"]), (201, &json!("/a/n-0000000000")));
    let read = at(&two, "GET", "/a", "Accept: */*", b"");
    assert_eq!((read.status, read.header("etag")), (200, Some("\"0\"")));
    assert_eq!(
        (&read.json()["value"], &read.json()["stat"]["children"]),
        (&json!("one"), &json!(1))
    );
    let raw = at(&two, "GET", "/a", "Accept: application/octet-stream", b"");
    assert_eq!((raw.body.as_slice(), raw.header("etag")), (&b"one"[..], Some("\"0\"")));
    let list = at(&two, "GET", "/a?children=true", "Accept: */*", b"");
    assert_eq!(list.json()["children"], json!(["n-0000000000"]));
    let root = at(&two, "GET", "/?children=true", "Accept: */*", b"");
    assert_eq!(root.json()["children"], json!(["a", "zookeeper"]));
    let with = |version: &str| format!("{RAW}\nIf-Match: {version}");
    let late = at(&one, "PUT", "/a", &with("\"7\""), b"two");
    assert_eq!((late.status, late.kind().as_str()), (412, "conflict"));
    assert_eq!(late.json()["error"]["node_failure"], "bad_version");
    let set = at(&one, "PUT", "/a", &with("\"0\""), b"two");
    assert_eq!((set.status, set.header("etag")), (200, Some("\"1\"")));
    assert_eq!(at(&one, "DELETE", "/a/n-0000000000", &with("\"1\""), b"").status, 412);
    let full = at(&one, "DELETE", "/a", RAW, b"");
    assert_eq!((full.status, &full.json()["error"]["node_failure"]), (409, &json!("not_empty")));
    assert_eq!(at(&one, "DELETE", "/a/n-0000000000", &with("\"0\""), b"").status, 200);
    for (method, path, status, kind) in [
        ("GET", "/none", 404, "no_node"),
        ("GET", "/none?children=true", 404, "no_node"),
        ("PUT", "/none", 404, "no_node"),
        ("DELETE", "/none", 404, "no_node"),
        ("POST", "/none/a", 404, "no_node"),
        ("POST", "/a", 409, "exists"),
        ("GET", "/a/", 400, "invalid"),
        ("GET", "//a", 400, "invalid"),
        ("GET", "/a?recursive=true", 400, "invalid"),
        ("POST", "/b?kind=ephemeral", 400, "invalid"),
        ("POST", "/b?kind=ttl", 400, "invalid"),
    ] {
        let refused = at(&one, method, path, RAW, b"v");
        assert_eq!((refused.status, refused.kind().as_str()), (status, kind), "{method} {path}");
    }
    let other = ask(&one, &format!("GET /v1/tree/default/a\n{RAW}"), b"");
    assert_eq!((other.status, other.kind().as_str()), (501, "unsupported"));
}

#[test]
fn several_things_are_done_at_one_moment_or_none_of_them() {
    let (cluster, _) = cluster();
    let one = cluster.http(1);
    let all = br#"{"items":[{"op":"create","path":"/a","value":"one"},
        {"op":"set","path":"/a","value":"two","version":0},{"op":"check","path":"/a","version":1},
        {"op":"create","path":"/a/b"}]}"#;
    let done = at(&one, "POST", "", JSON, all);
    assert_eq!(done.status, 200, "{done:?}");
    let answers = done.json()["answers"].clone();
    assert_eq!((&answers[0]["path"], &answers[1]["stat"]["version"]), (&json!("/a"), &json!(1)));
    assert_eq!((&answers[2], &answers[3]["path"]), (&json!({}), &json!("/a/b")));
    let none = br#"{"items":[{"op":"delete","path":"/a/b"},
        {"op":"check","path":"/a","version":7}]}"#;
    let refused = at(&one, "POST", "", JSON, none);
    assert_eq!((refused.status, &refused.json()["error"]["field"]), (412, &json!("items[1]")));
    assert_eq!(at(&one, "GET", "/a/b", "Accept: */*", b"").status, 200, "nothing was done");
}

#[test]
fn a_node_is_followed_as_server_sent_events() {
    let (cluster, _) = cluster();
    let mut stream = TcpStream::connect(cluster.http(1)).expect("the door is open");
    stream.set_read_timeout(Some(SOON)).expect("a socket has a timeout");
    let path = "/v1/tree/config/a?watch=true&recursive=true";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the host reads");
    let mut lines = BufReader::new(stream).lines();
    let mut next = || loop {
        let line = lines.next().expect("it goes on").expect("it is text");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str::<Value>(data).expect("it is JSON");
        }
    };
    assert_eq!(next()["event"], "watching");
    let two = cluster.http(2);
    assert_eq!(at(&two, "POST", "/a", RAW, b"").status, 201);
    assert_eq!(at(&two, "POST", "/a/b", RAW, b"").status, 201);
    assert_eq!(at(&two, "DELETE", "/a/b", RAW, b"").status, 200);
    for (event, path) in [("created", "/a"), ("created", "/a/b"), ("deleted", "/a/b")] {
        let told = next();
        assert_eq!((&told["event"], &told["path"]), (&json!(event), &json!(path)));
    }
}
