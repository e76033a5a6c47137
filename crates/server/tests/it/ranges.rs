//! Keyspaces that keep their keys in order: scans walk them so, across groups.

use crate::support::client::Client;
use crate::support::cluster::{Cluster, get};
use crate::support::run::{Said, quorate};
use quorate_doors::resp::client::RespReply;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

fn on(resp: &str, keyspace: &str, args: &[&str]) -> Said {
    let target = ["--endpoint", resp, "--keyspace", keyspace];
    quorate(&[args, &target[..]].concat())
}

#[test]
fn a_range_is_read_in_order_across_groups() {
    let more = ["--keyspace", "plain=linearizable", "--keyspace", "days=linearizable,order=key"];
    let more = [&more[..], &["--tokens", "3"]].concat();
    let mut cluster = Cluster::create_with("memory", &more);
    cluster.start_all();
    // First bytes from one end of the ring to the other, so that every group has some.
    let names: Vec<String> = (0..16).map(|digit| format!("{digit:x}-day")).collect();
    let names: Vec<String> = names.into_iter().chain(["~last".to_owned()]).collect();
    for (place, name) in names.iter().enumerate() {
        let resp = cluster.resp(place % 3 + 1);
        assert_eq!(on(&resp, "days", &["put", name, "x"]).code, 0);
        assert_eq!(on(&resp, "plain", &["put", name, "x"]).code, 0);
    }
    let resp = cluster.resp(2);
    let lines = |said: &Said| said.out.lines().map(str::to_owned).collect::<Vec<_>>();
    let all = on(&resp, "days", &["scan"]);
    assert_eq!(lines(&all), names, "{all:?}");
    let some = on(&resp, "days", &["scan", "--from", "3", "--to", "9-day"]);
    assert_eq!(lines(&some), names[3..9], "{some:?}");
    let few = on(&resp, "days", &["scan", "--from", "c-day", "--limit", "2"]);
    assert_eq!(lines(&few), names[12..14], "{few:?}");
    assert_eq!(on(&resp, "days", &["del", "4-day"]).code, 0);
    let less = on(&resp, "days", &["scan", "--from", "4", "--to", "6"]);
    assert_eq!(lines(&less), ["5-day"], "{less:?}");
    let mut unordered = lines(&on(&resp, "plain", &["scan"]));
    unordered.sort();
    assert_eq!(unordered, names, "a scan shows everything, in whatever order");
    let refused = on(&resp, "plain", &["scan", "--from", "3"]);
    assert!(refused.code == 2 && refused.err.contains("order=key"), "{refused:?}");
}

/// The cursor and the keys of a reply to `SCAN`.
fn page(reply: &RespReply) -> (String, Vec<String>) {
    let RespReply::Array(parts) = reply else { panic!("{reply:?}") };
    let [next, RespReply::Array(keys)] = &parts[..] else { panic!("{reply:?}") };
    let text = |reply: &RespReply| {
        let bytes = reply.as_bytes().expect("a text");
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    };
    (text(next), keys.iter().map(text).collect())
}

/// Keys that share their first eight bytes share a token of the ring; a page between hosts holds
/// 256 KiB of keys, these are ten times as many.
#[test]
fn keys_that_share_their_first_bytes_are_listed_in_pieces() {
    let more = ["--keyspace", "days=linearizable,order=key"];
    let mut cluster = Cluster::create_with("memory", &more);
    cluster.start_all();
    let tail = "x".repeat(3_000);
    let pile = (0..900).map(|number| format!("samehead{number:04}{tail}"));
    let names: BTreeSet<String> = pile.chain(["a".to_owned(), "z".to_owned()]).collect();
    let resp = cluster.resp(1);
    let mut client = Client::connect(&resp, Duration::from_secs(60)).expect("the door is open");
    for name in &names {
        assert_eq!(client.told_at_last(&[b"SET", name.as_bytes(), b"v"]), "OK");
    }
    // One reply has all of a token, whatever was asked for.
    let (mut cursor, mut all, mut longest) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = client.ask(&[b"SCAN", cursor.as_bytes(), b"COUNT", b"50"]);
        let (next, keys) = page(&reply.expect("the host answers"));
        longest = longest.max(keys.len());
        all.extend(keys);
        if next == "0" {
            break;
        }
        cursor = next;
    }
    assert!(all.iter().eq(&names), "each key once, in order");
    assert!(longest >= 900, "{longest}");
    // A page over HTTP goes on behind a key, at any host.
    let (mut cursor, mut all, mut pages) = (String::new(), Vec::new(), 0);
    while pages == 0 || !cursor.is_empty() {
        let path = format!("/v1/kv/days?limit=70&cursor={cursor}");
        let told = get(&cluster.http(pages % 3 + 1), &path);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        let keys = told["entries"].as_array().expect("a list").iter();
        let before = all.len();
        all.extend(keys.map(|entry| entry["key"].as_str().expect("text").to_owned()));
        assert!(all.len() - before <= 70);
        cursor = told["cursor"].as_str().unwrap_or_default().to_owned();
        pages += 1;
    }
    assert!(all.iter().eq(&names), "each key once, in order");
    assert!(pages > 10, "{pages}");
}
