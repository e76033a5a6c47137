//! What README, CHANGELOG and help promise in passing, on one cluster: sizes, limits, orders in
//! JSON, what an idle cluster sends and keeps.

use crate::native::http::{Response, ask_once};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::run::{command, feed, quorate};
use quorate_doors::resp::client::RespReply;
use quorate_kernel::rng::Rng;
use serde_json::{Value, json};

#[test]
fn what_is_promised_in_passing_holds() {
    let more = ["--keyspace", "default=linearizable", "--keyspace", "carts=causal"];
    let mut cluster = Cluster::create_with("sync", &more);
    // What is deleted is in tables, and not in memory alone.
    cluster.set("store.memtable=1MiB");
    cluster.start_all();
    keys_are_counted(&cluster);
    a_value_over_the_limit_is_told_the_limit(&cluster);
    the_status_is_json(&cluster);
    orders_are_answered_in_json(&cluster);
    commands_answer_in_json(&cluster);
    space_is_given_back(&cluster);
    a_dropped_keyspace_gives_its_space_back(&cluster);
    idle_replicas_send_little(&cluster);
}

fn keys_are_counted(cluster: &Cluster) {
    let mut clients: Vec<Client> = cluster.doors().iter().map(|door| Client::to(door)).collect();
    let mut count = |expected: i64| {
        for client in &mut clients {
            until("a quorum answers", || match client.ask(&[b"DBSIZE"]) {
                Ok(RespReply::Integer(found)) => {
                    assert_eq!(found, expected);
                    true
                }
                told => {
                    let told = told.expect("the host answers");
                    assert_eq!(told.error_code(), Some(&b"NOQUORUM"[..]), "{told:?}");
                    false
                }
            });
        }
    };
    let mut writer = Client::to(&cluster.resp(2));
    count(0);
    assert_eq!(writer.told_at_last(&[b"SET", b"one", b"1"]), "OK");
    count(1);
    assert_eq!(writer.told_at_last(&[b"SET", b"two", b"2"]), "OK");
    assert_eq!(writer.told_at_last(&[b"SET", b"three", b"3"]), "OK");
    count(3);
}

fn a_value_over_the_limit_is_told_the_limit(cluster: &Cluster) {
    let door = cluster.resp(1);
    let mut put = command(&["put", "large", "-", "--endpoint", &door]);
    let said = feed(&mut put, &vec![b'v'; 17_000_000]);
    assert_eq!(said.code, 1, "{said:?}");
    let text = "17000000 bytes are over the limit of 16777216";
    assert!(said.err.contains(text), "{said:?}");
    assert_eq!(quorate(&["get", "large", "--endpoint", &door]).code, 3, "nothing was written");
}

fn get(http: &str, path: &str) -> Response {
    ask_once(http, &format!("GET {path}\nAccept: */*"), b"")
}

fn the_status_is_json(cluster: &Cluster) {
    let status = || get(&cluster.http(2), "/status").json();
    until("it is ready", || status()["ready"] == true);
    let status = status();
    for (name, expected) in [
        ("host", json!(2)),
        ("start", json!(1)),
        ("stage", json!("serving")),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("cluster_address", json!(cluster.cluster(2))),
        ("resp", json!(cluster.resp(2))),
    ] {
        assert_eq!(status[name], expected, "{name}: {status}");
    }
    let is_id = |value: &Value, digits: usize| {
        let text = value.as_str().expect("a text");
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    assert!(is_id(&status["cluster"], 32) && is_id(&status["node"], 16), "{status}");
    for name in ["pid", "uptime_seconds", "clients", "unsynced_bytes"] {
        assert!(status[name].is_u64(), "{name}: {status}");
    }
    for name in ["log_bytes", "table_bytes", "garbage_bytes", "longest_step_micros"] {
        assert!(status["disk"][name].is_u64(), "{name}: {status}");
    }
    let names = |list: &Value| {
        let names = list.as_array().expect("a list").iter().map(|one| one["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&status["keyspaces"]), ["default", "carts"]);
    let first = &status["keyspaces"][0];
    assert_eq!((&first["engine"], &first["durability"]), (&json!("linearizable"), &json!("sync")));
    assert_eq!([&first["members"], &first["members_needed"]], [3, 2], "{first}");
    assert!(first["state"].is_object() && first["sent_bytes"].is_u64(), "{first}");
    let peers = status["peers"].as_array().expect("a list");
    let mut others: Vec<_> = peers.iter().map(|peer| peer["address"].clone()).collect();
    others.sort_by_key(ToString::to_string);
    assert_eq!(others, [cluster.cluster(1), cluster.cluster(3)]);
    for peer in peers {
        assert!(peer["up"].is_boolean() && peer["trouble"].is_string(), "{peer}");
        assert!(is_id(&peer["node"], 16) && peer["frames_dropped"].is_u64(), "{peer}");
    }
}

/// What a cluster of three says of five replicas.
const FEWER: &str = "the cluster has 3 hosts, so each key has 3 replicas until 5 hosts are there";

fn orders_are_answered_in_json(cluster: &Cluster) {
    let http = cluster.http(1);
    let order = |path: &str| {
        let answer = ask_once(&http, &format!("POST /control/{path}\nAccept: */*"), b"");
        (answer.status, answer.json())
    };
    let made = order("keyspace/create?name=q&engine=linearizable&replicas=5");
    assert_eq!(made, (200, json!({ "noted": true, "note": FEWER })));
    let altered = order("keyspace/alter?name=q&replicas=3");
    assert_eq!(altered, (200, json!({ "noted": true, "note": null })));
    for (path, status, part) in [
        ("keyspace/create?name=q&engine=linearizable", 409, "there is a keyspace `q` already"),
        ("keyspace/create?name=Q&engine=linearizable", 400, "a-z"),
        ("keyspace/create?name=r&engine=fast", 400, "linearizable"),
        ("keyspace/create?name=r&engine=linearizable&replicas=2", 400, "replicas"),
        ("keyspace/alter?name=q&durability=memory", 409, "stays as it is"),
        ("keyspace/alter?name=none&replicas=3", 404, "none"),
        ("keyspace/alter?name=q&replicas=3&replicas=1", 400, "replicas is given twice"),
        ("keyspace/alter?name=q&engine=causal", 400, "engine"),
        ("keyspace/create?name=a&name=b", 400, "name is given twice"),
        ("keyspace/drop?name=none", 404, "none"),
        ("drain", 400, "say which host: node=NODE"),
        ("drain?node=9", 404, "no host 9; the ring has"),
        ("drain?node=3&undo=maybe", 400, "undo is true or false"),
        ("drain?node=3&Undo=true", 400, "there is no parameter Undo; there are node, undo"),
        ("drain?node=1&node=2", 400, "node is given twice"),
        ("keyspace/drop?name=a&name=b", 400, "name is given twice"),
        ("remove", 400, "say which host: node=NODE"),
        ("remove?node=3", 409, "answers; drain it first, or stop it"),
        ("remove?node=03", 404, "no host 03; the ring has"),
        ("remove?node=%2B3", 404, "no host +3; the ring has"),
        ("remove?node=3&lose_data=maybe", 400, "lose_data is true or false"),
    ] {
        let (found, body) = order(path);
        assert_eq!(found, status, "{path}: {body}");
        let error = body["error"].as_str().unwrap_or_else(|| panic!("{path}: {body}"));
        assert!(error.contains(part), "{path}: {error}");
        assert_eq!(body.as_object().map(serde_json::Map::len), Some(1), "{path}: {body}");
    }
    let dropped = order("keyspace/drop?name=q");
    assert_eq!(dropped, (200, json!({ "noted": true })));
    let list = get(&http, "/keyspaces").json();
    let names = list["keyspaces"].as_array().into_iter().flatten().map(|one| &one["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["default", "carts"]);
}

fn commands_answer_in_json(cluster: &Cluster) {
    let http = cluster.http(3);
    let keyspace = |args: &[&str]| {
        let said = quorate(&[&["keyspace"], args, &["--http", &http, "--format", "json"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!((said.err.as_str(), said.out.lines().count()), ("", 1), "{said:?}");
        said.json()
    };
    let told = |done: &str, note: Value| json!({ "keyspace": "s", "done": done, "note": note });
    assert_eq!(keyspace(&["create", "s", "replicas=5"]), told("made", FEWER.into()));
    assert_eq!(keyspace(&["alter", "s", "value=4KiB"])["done"], "altered");
    assert_eq!(keyspace(&["drop", "s", "--yes"]), told("dropped", Value::Null));
    let said = quorate(&["keyspace", "create", "t", "replicas=5", "--http", &http]);
    assert_eq!((said.code, said.out.as_str()), (0, "keyspace t is made\n"), "{said:?}");
    assert_eq!(said.err, format!("note: {FEWER}\n"), "people are told too");
    assert_eq!(quorate(&["keyspace", "drop", "t", "--yes", "--http", &http]).code, 0);
}

fn table_bytes(cluster: &Cluster, host: usize) -> u64 {
    let status = cluster.status(host);
    status["disk"]["table_bytes"].as_u64().unwrap_or_else(|| panic!("{status}"))
}

/// So many values are enough: of stores that are smaller than 8 MiB nothing is given back.
const VALUES: usize = 48;

/// Asks for something until it is done. Each may be done twice, so one of which nobody knows
/// whether it was done is done again.
fn done(client: &mut Client, args: &[&[u8]]) {
    until("a quorum answers", || {
        let reply = client.ask(args).expect("the host answers");
        let code = reply.error_code();
        let may = [None, Some(&b"NOQUORUM"[..]), Some(&b"UNKNOWNOUTCOME"[..])];
        assert!(may.contains(&code), "{reply:?}");
        code.is_none()
    });
}

/// Writes values that cannot be made smaller, until they are in tables.
fn fill(cluster: &Cluster, client: &mut Client) {
    let (mut rng, mut value) = (Rng::new(1), vec![0; 256 * 1024]);
    for number in 0..VALUES {
        value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&rng.next().to_le_bytes()));
        done(client, &[b"SET", format!("space-{number}").as_bytes(), &value]);
    }
    tables_are(cluster, "the values are in tables", &|bytes| bytes > 8 << 20);
}

/// Waits until the tables of all hosts are as large as they should be.
fn tables_are(cluster: &Cluster, what: &str, so: &dyn Fn(u64) -> bool) {
    until(what, || (1..=3).all(|host| so(table_bytes(cluster, host))));
}

fn space_is_given_back(cluster: &Cluster) {
    let mut client = Client::to(&cluster.resp(1));
    fill(cluster, &mut client);
    for number in 0..VALUES {
        done(&mut client, &[b"DEL", format!("space-{number}").as_bytes()]);
    }
    tables_are(cluster, "their space is given back", &|bytes| bytes < 2 << 20);
}

fn a_dropped_keyspace_gives_its_space_back(cluster: &Cluster) {
    let http = cluster.http(2);
    let made = ["keyspace", "create", "bulk", "--http", &http];
    assert_eq!(quorate(&made).code, 0);
    let mut client = Client::to(&cluster.resp(1));
    until("the keyspace is known", || client.told(&[b"SELECT", b"bulk"]) == "OK");
    fill(cluster, &mut client);
    assert_eq!(quorate(&["keyspace", "drop", "bulk", "--yes", "--http", &http]).code, 0);
    tables_are(cluster, "its files are gone", &|bytes| bytes < 2 << 20);
    let files = |host| cluster.metric(host, "quorate_disk_bytes{kind=\"tables\"}");
    assert!((1..=3).all(|host| files(host) < 2 << 20), "metrics say so too");
}

/// Replicas that have nothing to tell each other ask less and less often. An empty keyspace sent
/// 92 kB a second when they did not. How little it is at rest is counted where the engine is
/// tested, in its own time; here it is seconds after the last write.
fn idle_replicas_send_little(cluster: &Cluster) {
    const BYTES_A_SECOND: u64 = 15_000;
    const SECONDS: u64 = 4;
    let sent = |host| cluster.metric(host, "quorate_keyspace_sent_bytes_total{keyspace=\"carts\"}");
    let look = || {
        let seconds = cluster.status(1)["uptime_seconds"].as_u64().expect("a number");
        (seconds, [1, 2, 3].map(sent))
    };
    let mut began = look();
    until("every host sends little", || {
        let now = look();
        let seconds = now.0 - began.0;
        if seconds < SECONDS {
            return false;
        }
        let mut hosts = now.1.iter().zip(&began.1);
        let is_little = hosts.all(|(now, began)| now - began <= BYTES_A_SECOND * seconds);
        began = now;
        is_little
    });
    until("they go on", || (1..=3).all(|host| sent(host) > began.1[host - 1]));
}
