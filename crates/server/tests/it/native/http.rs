//! HTTP/JSON under `/v1`: values as text, base64 and raw bytes, errors as JSON, the description.

use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// What was answered.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The kind of an error that says everything it must.
    pub fn kind(&self) -> String {
        let error = self.json()["error"].clone();
        let says = |name: &str| error[name].as_str().is_some_and(|text| !text.is_empty());
        assert!(says("what") && says("right") && error["may_have_applied"].is_boolean(), "{error}");
        error["kind"].as_str().expect("a kind").to_owned()
    }
}

/// Asks until a quorum answers: on a machine that is too busy for the hosts' pings requests are
/// refused for a moment, and such a refusal promises that nothing was changed.
pub fn ask(address: &str, head: &str, body: &[u8]) -> Response {
    let mut answer = ask_once(address, head, body);
    until("a quorum answers", || {
        let is_refused = answer.status == 503 && answer.kind() == "no_quorum";
        if is_refused {
            answer = ask_once(address, head, body);
        }
        !is_refused
    });
    answer
}

pub fn ask_once(address: &str, head: &str, body: &[u8]) -> Response {
    let mut stream = TcpStream::connect(address).expect("the http door is open");
    let length = body.len();
    let (request, headers) = head.split_once('\n').expect("a request line and headers");
    let headers = headers.replace('\n', "\r\n");
    let head = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\
         {headers}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the host reads");
    // A body that is too long may be refused before all of it was sent.
    let _ = stream.write_all(body);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(all[..end].to_vec()).expect("a head is text");
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    Response { status, head, body: all[end + 4..].to_vec() }
}

const RAW: &str = "Content-Type: application/octet-stream";
const JSON: &str = "Content-Type: application/json";

#[test]
fn values_are_text_base64_or_raw_bytes() {
    let cluster = Cluster::start("memory");
    let (one, two) = (cluster.http(1), cluster.http(2));
    let at = |method: &str, key: &str, more: &str| format!("{method} /v1/kv/default/{key}\n{more}");
    let written = ask(&one, &at("PUT", "a%2fb/%C3%BC", JSON), r#"{"value":"grüß"}"#.as_bytes());
    assert_eq!((written.status, written.json()), (200, json!({ "is_repeated": false })));
    let read = ask(&two, &at("GET", "a/b/%c3%bc", "Accept: */*"), b"");
    assert_eq!(read.json(), json!({ "key": "a/b/ü", "value": "grüß" }));
    let coordinator = read.header("x-quorate-coordinator").expect("it says who").to_owned();
    assert!(coordinator.len() > 17 && coordinator.contains('.'), "{coordinator}");
    let mut resp = Client::to(&cluster.resp(3));
    assert_eq!(resp.told_at_last(&[b"GET", "a/b/ü".as_bytes()]), "grüß");

    assert_eq!(ask(&one, &at("PUT", "%ff", RAW), b"\xff\0\n").status, 200);
    let read = ask(&two, &at("GET", "%ff", "Accept: application/json"), b"");
    assert_eq!(read.json(), json!({ "key_base64": "/w==", "value_base64": "/wAK" }));
    let raw = ask(&two, &at("GET", "%ff", "Accept: application/octet-stream"), b"");
    assert_eq!((raw.status, &raw.body[..]), (200, &b"\xff\0\n"[..]));
    assert_eq!(raw.header("content-type"), Some("application/octet-stream"));
    let again = ask(&one, &at("PUT", "%ff", JSON), br#"{"value_base64":"AAE="}"#);
    assert_eq!(again.status, 200);
    let raw = ask(&two, &at("GET", "%ff", "Accept: application/octet-stream"), b"");
    assert_eq!(raw.body, b"\0\x01");

    let deleted = ask(&one, &at("DELETE", "%ff", RAW), b"");
    assert_eq!(deleted.json(), json!({ "existed": true, "is_repeated": false }));
    let absent = ask(&two, &at("GET", "%ff", "Accept: application/octet-stream"), b"");
    let nothing = json!({ "key_base64": "/w==", "value": null });
    assert_eq!((absent.status, absent.json()), (404, nothing));
}

#[test]
fn a_write_sent_again_is_known_by_its_headers() {
    let cluster = Cluster::start("memory");
    let (one, two) = (cluster.http(1), cluster.http(2));
    let id = "X-Quorate-Request-Id: 00112233445566778899aabbccddeeff";
    let first = ask(&one, &format!("PUT /v1/kv/default/k\n{RAW}\n{id}"), b"v");
    let coordinator = first.header("x-quorate-coordinator").expect("it says who").to_owned();
    let head = format!(
        "PUT /v1/kv/default/k\n{RAW}\n{id}\nX-Quorate-Repeat-Of: {coordinator}\n\
         X-Quorate-Repeat-Age-Ms: 20"
    );
    assert_eq!(ask(&one, &head, b"v").json(), json!({ "is_repeated": true }));
    let elsewhere = ask(&two, &head, b"v");
    assert_eq!((elsewhere.status, elsewhere.kind().as_str()), (504, "outcome_unknown"));
    assert_eq!(elsewhere.json()["error"]["may_have_applied"], true);
    assert_eq!(ask(&one, &head, b"other").kind(), "invalid", "the id was another write's");
}

#[test]
fn listings_go_page_by_page() {
    let cluster = Cluster::start("memory");
    let one = cluster.http(1);
    for number in 0..30 {
        let head = format!("PUT /v1/kv/default/key-{number}\n{RAW}");
        assert_eq!(ask(&one, &head, b"v").status, 200);
    }
    let (mut cursor, mut found) = (String::new(), Vec::new());
    for page in 0.. {
        assert!(page < 30, "it ends");
        let head = format!("GET /v1/kv/default?limit=7&values=true{cursor}\nAccept: */*");
        let answer = ask(&cluster.http(page % 3 + 1), &head, b"");
        let body = answer.json();
        assert_eq!(body["promise"]["engine"], "linearizable");
        for entry in body["entries"].as_array().expect("a list") {
            assert_eq!(entry["value"], "v");
            found.push(entry["key"].as_str().expect("text").to_owned());
        }
        let Some(next) = body["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    found.sort();
    let mut expected: Vec<String> = (0..30).map(|number| format!("key-{number}")).collect();
    expected.sort();
    assert_eq!(found, expected, "every key once");
    let keyspaces = ask(&one, "GET /v1/keyspaces\nAccept: */*", b"").json();
    assert_eq!(keyspaces["keyspaces"][0]["name"], "default");
}

/// A cluster with registers, `default`, and siblings, `carts`.
fn with_carts() -> Cluster {
    let more = ["--keyspace", "default=linearizable", "--keyspace", "carts=causal,partitions=9"];
    let mut cluster = Cluster::create_with("memory", &more);
    cluster.start_all();
    cluster
}

/// Asks for several keys until a quorum answers for each.
fn batch(address: &str, path: &str, body: &Value) -> Response {
    let ask = || ask(address, &format!("POST {path}\n{JSON}"), body.to_string().as_bytes());
    let is_refused = |reading: &Value| reading["error"]["kind"] == "no_quorum";
    let mut answer = ask();
    until("a quorum answers for each", || {
        let readings = answer.json()["readings"].clone();
        let is_done = !readings.as_array().into_iter().flatten().any(is_refused);
        if !is_done {
            answer = ask();
        }
        is_done
    });
    answer
}

#[test]
fn several_keys_are_read_each_by_itself() {
    let cluster = with_carts();
    let (one, two) = (cluster.http(1), cluster.http(2));
    for (key, value) in [("a", &b"text"[..]), ("%ff", b"\xff\0")] {
        assert_eq!(ask(&one, &format!("PUT /v1/kv/default/{key}\n{RAW}"), value).status, 200);
    }
    let long = "k".repeat(65_281);
    let a = json!({ "key": "a" });
    let asked =
        json!({ "keys": [a, { "key": "none" }, { "key_base64": "/w==" }, { "key": long }, a] });
    let answer = batch(&two, "/v1/kv/default?timeout_ms=60000", &asked);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.header("x-quorate-coordinator").is_some(), "{answer:?}");
    let readings = answer.json()["readings"].clone();
    let text = json!({ "key": "a", "value": "text" });
    assert_eq!((&readings[0], &readings[4]), (&text, &text), "a key may be there twice");
    assert_eq!(readings[1], json!({ "key": "none", "value": null }));
    assert_eq!(readings[2], json!({ "key_base64": "/w==", "value_base64": "/wA=" }));
    let error = &readings[3]["error"];
    assert_eq!((&error["kind"], &error["field"]), (&"too_large".into(), &"key".into()));
    assert_eq!((&readings[3]["key"], readings.as_array().map(Vec::len)), (&long.into(), Some(5)));

    // Siblings and contexts, as of a single key.
    for value in ["ale", "bread"] {
        assert_eq!(ask(&one, &format!("PUT /v1/kv/carts/k\n{RAW}"), value.as_bytes()).status, 200);
    }
    let asked = json!({ "keys": [{ "key": "k" }, { "key": "none" }] });
    let readings = batch(&one, "/v1/kv/carts?replicas=3", &asked).json()["readings"].clone();
    let mut siblings = readings[0]["siblings"].as_array().expect("a list").clone();
    siblings.sort_by_key(ToString::to_string);
    assert_eq!(siblings, [json!({ "value": "ale" }), json!({ "value": "bread" })]);
    assert_eq!(readings[1]["siblings"], json!([]));
    let context = readings[0]["context"].as_str().expect("a context");
    let head = format!("PUT /v1/kv/carts/k\n{RAW}\nX-Quorate-Context: {context}");
    assert_eq!(ask(&one, &head, b"both").status, 200);
    let single = ask(&one, "GET /v1/kv/carts/k?replicas=3\nAccept: */*", b"").json();
    assert_eq!(single["siblings"], json!([{ "value": "both" }]));
    let readings = batch(&two, "/v1/kv/carts?replicas=3", &asked).json()["readings"].clone();
    assert_eq!(readings[0]["siblings"], single["siblings"], "the context was of this key");
}

#[test]
fn keys_that_cannot_be_read_are_refused_each_or_all() {
    let mut cluster = with_carts();
    let one = cluster.http(1);
    let asked = json!({ "keys": [{ "key": "k" }, { "key": "none" }] });
    for (path, body, status, kind) in [
        ("/v1/kv/none", &asked, 404, "no_keyspace"),
        ("/v1/kv/default?replicas=1", &asked, 501, "unsupported"),
        ("/v1/kv/carts?replicas=4", &asked, 400, "invalid"),
        ("/v1/kv/default?limit=1", &asked, 400, "invalid"),
        ("/v1/kv/default", &json!({ "keys": ["a"] }), 400, "invalid"),
        ("/v1/kv/default", &json!({ "keys": vec![json!({ "key": "a" }); 1_001] }), 400, "invalid"),
    ] {
        let answer = batch(&one, path, body);
        assert_eq!((answer.status, answer.kind().as_str()), (status, kind), "{path}: {answer:?}");
    }
    // More than fits into an answer, of a key that host 1 has itself.
    let large = vec![b'v'; 1024 * 1024];
    assert_eq!(ask(&one, &format!("PUT /v1/kv/carts/large\n{RAW}"), &large).status, 200);
    let many = json!({ "keys": vec![json!({ "key": "large" }); 33] });
    let answer = batch(&one, "/v1/kv/carts", &many);
    assert_eq!((answer.status, answer.kind().as_str()), (413, "too_large"));
    cluster.kill(&[2, 3]);
    let head = format!("POST /v1/kv/default?timeout_ms=500\n{JSON}");
    let answer = ask(&one, &head, asked.to_string().as_bytes());
    let readings = answer.json()["readings"].clone();
    assert_eq!((answer.status, readings.as_array().map(Vec::len)), (200, Some(2)));
    for reading in readings.as_array().into_iter().flatten() {
        assert_eq!(reading["error"]["kind"], "no_quorum", "{reading}");
    }
}

#[test]
fn a_wrong_request_is_answered_with_its_kind() {
    let more = ["--keyspace", "default=linearizable,value=1MiB"];
    let mut cluster = Cluster::create_with("memory", &more);
    cluster.start_all();
    let one = cluster.http(1);
    let long = format!("GET /v1/kv/default/{}\nAccept: */*", "k".repeat(65_281));
    let table: [(&str, &[u8], u16, &str); 24] = [
        ("GET /v1/kv/none/k\nAccept: */*", b"", 404, "no_keyspace"),
        ("GET /v1/kv/default/\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/kv//k\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/nothing\nAccept: */*", b"", 404, "invalid"),
        ("PATCH /v1/kv/default/k\nAccept: */*", b"", 405, "invalid"),
        ("POST /v1/kv/default\nAccept: */*", b"", 400, "invalid"),
        ("POST /v1/kv/default\nContent-Type: text/plain", b"{\"keys\":[]}", 400, "invalid"),
        ("POST /v1/kv/default\nOrigin: http://page", b"", 403, "invalid"),
        ("PUT /v1/kv/default\nAccept: */*", b"", 405, "invalid"),
        (&long, b"", 413, "too_large"),
        ("GET /v1/kv/default/k?timeout=5\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/kv/default/k?timeout_ms=x\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/kv/default/k?replicas=1\nAccept: */*", b"", 501, "unsupported"),
        ("GET /v1/kv/default?limit=0\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/kv/default?cursor=%21\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/kv/default?cursor=AAAA\nAccept: */*", b"", 400, "invalid"),
        ("GET /v1/kv/default?from=a\nAccept: */*", b"", 501, "unsupported"),
        ("GET /v1/kv/default?values=yes\nAccept: */*", b"", 400, "invalid"),
        ("PUT /v1/kv/default/k\nAccept: */*", b"v", 400, "invalid"),
        ("PUT /v1/kv/default/k\nContent-Type: application/json", b"v", 400, "invalid"),
        (
            "PUT /v1/kv/default/k\nContent-Type: text/plain\nX-Quorate-Context: AA==",
            b"v",
            501,
            "unsupported",
        ),
        (
            "PUT /v1/kv/default/k\nContent-Type: text/plain\nX-Quorate-Context: !",
            b"v",
            400,
            "invalid",
        ),
        (
            "PUT /v1/kv/default/k\nContent-Type: text/plain\nX-Quorate-Request-Id: 7",
            b"v",
            400,
            "invalid",
        ),
        ("DELETE /v1/kv/default/k\nOrigin: http://page", b"", 403, "invalid"),
    ];
    for (head, body, status, kind) in table {
        let answer = ask(&one, head, body);
        let shown = &head[..head.len().min(80)];
        assert_eq!((answer.status, answer.kind().as_str()), (status, kind), "{shown}");
    }
    let large = vec![b'v'; 1024 * 1024 + 1];
    let refused = ask(&one, &format!("PUT /v1/kv/default/k\n{RAW}"), &large);
    assert_eq!((refused.status, refused.kind().as_str()), (413, "too_large"));
    assert_eq!(ask(&one, &format!("PUT /v1/kv/default/k\n{RAW}"), &large[1..]).status, 200);
    let read = ask(&one, "GET /v1/kv/default/k\nAccept: application/octet-stream", b"");
    let shown = String::from_utf8_lossy(&read.body[..read.body.len().min(400)]);
    assert_eq!(read.body.len(), large.len() - 1, "the limit itself is fine: {shown}");
}

#[test]
fn without_a_quorum_it_says_so() {
    let mut cluster = Cluster::start("memory");
    cluster.kill(&[2, 3]);
    let one = cluster.http(1);
    let answer = ask_once(&one, "GET /v1/kv/default/k?timeout_ms=500\nAccept: */*", b"");
    assert_eq!((answer.status, answer.kind().as_str()), (503, "no_quorum"));
    assert!(answer.json()["error"]["replicas_needed"].is_u64());
    assert_eq!(ask(&one, "GET /livez\nAccept: */*", b"").status, 200);
}

#[test]
fn the_description_describes_what_is_there() {
    let cluster = Cluster::start("memory");
    let one = cluster.http(1);
    let document = ask(&one, "GET /v1/openapi.json\nAccept: */*", b"").json();
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.len(), 9);
    for (path, item) in paths {
        let path = path.replace("{keyspace}", "default").replace("{token}", "00");
        let path = path.replace("{key}", "k").replace("{path}", "k");
        for method in ["get", "put", "delete", "post"] {
            let described = item.get(method).map(|operation| &operation["responses"]);
            if described.is_some() && path == "/v1/events" {
                // The answer has no end; who follows events tests it.
                continue;
            }
            let upper = method.to_uppercase();
            let answer = ask(&one, &format!("{upper} {path}\n{RAW}"), b"v");
            match described {
                Some(responses) => {
                    let is_described = responses.get(answer.status.to_string()).is_some();
                    assert!(is_described, "{upper} {path}: {answer:?}");
                    assert_ne!(answer.status, 405, "{upper} {path}");
                }
                None => assert_eq!(answer.status, 405, "{upper} {path}: {answer:?}"),
            }
        }
    }
}

/// A page whose name was made to point here after it was loaded asks under that name.
#[test]
fn requests_for_another_host_are_refused() {
    let mut cluster = Cluster::create("memory");
    cluster.set("http.hosts=quorate.example");
    cluster.start_all();
    let answer = |host: &str, path: &str| {
        let mut stream = TcpStream::connect(cluster.http(1)).expect("the door is open");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("the host reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the answer is text");
        answer
    };
    for path in ["/status", "/v1/keyspaces", "/metrics", "/livez"] {
        let refused = answer("evil.example", path);
        assert!(refused.starts_with("HTTP/1.1 421") && refused.contains("http.hosts"), "{refused}");
        for own in ["localhost", "127.0.0.1:1", "quorate.example:80"] {
            assert!(answer(own, path).starts_with("HTTP/1.1 200"), "{own} {path}");
        }
    }
}
