//! Keyspaces that keep siblings, on real hosts: contexts, partitions, power cuts, hosts that come
//! and go.

use crate::command_line::dev::{Dev, on};
use crate::elastic::{node_at, ring};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::run::{Said, quorate};
use quorate_doors::resp::client::RespReply;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::thread;

/// A client of a causal keyspace.
pub struct Cart(Client);

impl Cart {
    pub fn at(door: &str, keyspace: &str) -> Cart {
        let mut client = Client::to(door);
        until("the keyspace is open", || {
            client.told(&[b"SELECT", keyspace.as_bytes()]) == "OK"
                && client.told(&[b"TYPE", b"is it open?"]) == "none"
        });
        Cart(client)
    }

    /// The context and the values of a key, in the order of their bytes.
    fn get(&mut self, key: &str) -> (Vec<u8>, Vec<String>) {
        let reply = self.0.ask(&[b"CGET", key.as_bytes()]).expect("the host answers");
        let RespReply::Array(parts) = &reply else { panic!("{reply:?}") };
        let [RespReply::Bulk(context), RespReply::Array(values)] = &parts[..] else {
            panic!("{reply:?}")
        };
        let text = |value: &RespReply| {
            let bytes = value.as_bytes().unwrap_or_else(|| panic!("{value:?}"));
            String::from_utf8_lossy(bytes).into_owned()
        };
        let mut values: Vec<String> = values.iter().map(text).collect();
        values.sort_unstable();
        (context.to_vec(), values)
    }

    pub fn values(&mut self, key: &str) -> Vec<String> {
        self.get(key).1
    }

    /// Writes in place of what a context covers; the context for the next write.
    pub fn put(&mut self, key: &str, context: &[u8], value: &str) -> Vec<u8> {
        let args: [&[u8]; 4] = [b"CSET", key.as_bytes(), context, value.as_bytes()];
        match self.0.ask(&args).expect("the host answers") {
            RespReply::Bulk(context) => context.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    pub fn delete(&mut self, key: &str, context: &[u8]) {
        let reply = self.0.ask(&[b"CDEL", key.as_bytes(), context]).expect("the host answers");
        assert!(matches!(reply, RespReply::Bulk(_)), "{reply:?}");
    }

    fn told(&mut self, args: &[&[u8]]) -> String {
        self.0.told(args)
    }
}

pub fn keyspace(http: &str, args: &[&str]) -> Said {
    let mut all = vec!["keyspace"];
    all.extend(args);
    all.extend(["--http", http]);
    quorate(&all)
}

/// Has something made or altered. Too few answers before the deadline change nothing, and come
/// where the machine is busy: then it is asked again.
fn made(http: &str, args: &[&str]) {
    until("enough hosts answer in time", || {
        let said = keyspace(http, args);
        assert!(said.code == 0 || said.err.contains("nothing was changed"), "{said:?}");
        said.code == 0
    });
}

/// What a host knows of a keyspace.
pub fn record(http: &str, name: &str) -> Value {
    keyspace(http, &["show", name, "--format", "json"]).json()
}

/// How many partitions a node has, and how many partitions are still fetched.
pub fn partitions(http: &str, name: &str, node: &str) -> (usize, usize) {
    let record = record(http, name);
    let all = record["partitions"].as_array().expect("a list");
    let has = all.iter().filter(|place| place["node"] == node).count();
    (has, all.iter().filter(|place| place["settled"] == false).count())
}

pub fn ctl(data: &Path, order: &[&str]) {
    let data = data.display().to_string();
    let said = quorate(&[&["dev", "ctl", "--data", &data], order].concat());
    assert_eq!(said.code, 0, "{order:?}: {said:?}");
}

#[test]
fn writes_through_different_hosts_are_siblings_until_somebody_has_seen_them() {
    let cluster = Cluster::start("sync");
    made(&cluster.http(1), &["create", "carts", "--engine", "causal", "w=2"]);
    let mut carts = [1, 2, 3].map(|host| Cart::at(&cluster.resp(host), "carts"));
    thread::scope(|scope| {
        for (cart, value) in carts.iter_mut().zip(["ale", "bread", "cheese"]) {
            scope.spawn(move || cart.put("k", b"", value));
        }
    });
    for cart in &mut carts {
        until("all have all", || cart.values("k") == ["ale", "bread", "cheese"]);
        assert_eq!(
            cart.told(&[b"GET", b"k"]),
            "SIBLINGS the key has 3 siblings and its keyspace shows none of them alone; read them \
             all, with their context, and write back what they come to: CGET reads them, CSET \
             replaces them, and a keyspace with siblings=newest shows the newest"
        );
    }
    // Who has seen all replaces all; what was written meanwhile stays beside it.
    let (seen, _) = carts[0].get("k");
    carts[1].put("k", b"", "dates");
    carts[0].put("k", &seen, "ale, bread, cheese");
    for cart in &mut carts {
        until("one is merged and one is new", || {
            cart.values("k") == ["ale, bread, cheese", "dates"]
        });
    }
    // A stale context replaces only what was seen with it.
    carts[2].put("k", &seen, "late");
    until("it replaced nothing", || carts[0].values("k").len() == 3);
    let (all, _) = carts[0].get("k");
    let next = carts[0].put("k", &all, "all of it");
    assert_eq!(carts[0].told(&[b"GET", b"k"]), "all of it");
    carts[0].delete("k", &next);
    for cart in &mut carts {
        until("it is deleted", || cart.values("k").is_empty());
    }
    let (absent, _) = carts[1].get("k");
    carts[1].put("k", &absent, "anew");
    until("a deleted key can be written again", || carts[2].values("k") == ["anew"]);

    made(&cluster.http(2), &["alter", "carts", "siblings=newest"]);
    carts[0].put("k", b"", "beside");
    until("it may choose", || carts[0].told(&[b"GET", b"k"]) == "beside");
    let few = keyspace(&cluster.http(2), &["alter", "carts", "w=4"]);
    assert!(few.code == 1 && few.err.contains("from 1 to 3"), "{few:?}");
    let fixed = keyspace(&cluster.http(2), &["alter", "carts", "replicas=2"]);
    assert!(fixed.code == 1 && fixed.err.contains("stays as it is"), "{fixed:?}");
}

#[test]
fn contexts_are_of_one_key_of_one_cluster_and_registers_have_none() {
    let cluster = Cluster::create_with(
        "memory",
        &["--keyspace", "default=linearizable", "--keyspace", "carts=causal"],
    );
    let mut cluster = cluster;
    cluster.start_all();
    made(&cluster.http(3), &["create", "more", "--engine", "causal"]);
    let mut cart = Cart::at(&cluster.resp(1), "carts");
    let context = cart.put("k", b"", "v");
    let refused = |cart: &mut Cart, key: &[u8], context: &[u8]| {
        let told = cart.told(&[b"CSET", key, context, b"w"]);
        assert!(told.starts_with("ERR ") && told.ends_with("nothing was changed"), "{told}");
        told
    };
    assert!(refused(&mut cart, b"other", &context).contains("another key or keyspace"));
    let mut more = Cart::at(&cluster.resp(1), "more");
    assert!(refused(&mut more, b"k", &context).contains("another key or keyspace"));
    let mut changed = context.clone();
    *changed.last_mut().expect("it is long") ^= 1;
    assert!(refused(&mut cart, b"k", &changed).contains("was changed"));
    assert!(refused(&mut cart, b"k", b"nonsense").contains("damaged"));
    assert_eq!(cart.values("k"), ["v"]);
    let mut cart = Cart::at(&cluster.resp(2), "carts");
    until("it has arrived", || cart.values("k") == ["v"]);
    cart.put("k", &context, "w");
    assert_eq!(cart.values("k"), ["w"], "another host takes it all the same");

    // Plain commands: a blind write leaves siblings, a delete takes what is seen.
    assert_eq!(cart.told(&[b"SET", b"k", b"x"]), "OK");
    assert_eq!(cart.values("k"), ["w", "x"]);
    assert!(matches!(cart.0.ask(&[b"DEL", b"k"]), Ok(RespReply::Integer(1))));
    assert!(matches!(cart.0.ask(&[b"DEL", b"k"]), Ok(RespReply::Integer(0))));
    assert_eq!(cart.told(&[b"SET", b"one", b"1"]), "OK");
    assert_eq!(cart.told(&[b"SET", b"two", b"2"]), "OK");
    assert!(matches!(cart.0.ask(&[b"DBSIZE"]), Ok(RespReply::Integer(2))));
    let scanned = on(&cluster.resp(2), &["scan", "--keyspace", "carts"]);
    let mut keys: Vec<&str> = scanned.out.lines().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["one", "two"], "{scanned:?}");

    let mut register = Client::to(&cluster.resp(1));
    assert_eq!(register.told(&[b"SELECT", b"default"]), "OK");
    let told = register.told(&[b"CGET", b"k"]);
    assert!(told.contains("this keyspace is linearizable: use GET, or use a keyspace"), "{told}");
    assert_eq!(register.told_at_last(&[b"SET", b"k", b"v"]), "OK");
    assert_eq!(register.told_at_last(&[b"GET", b"k"]), "v");
}

#[test]
fn both_sides_of_a_partition_write_and_agree_once_it_heals() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let flags = ["--set", "limits.request_timeout=1s"];
    let dev = Dev::start(data, &flags);
    let doors = [1, 2, 3].map(|host| dev.door(host, "resp"));
    let mut carts = doors.each_ref().map(|door| Cart::at(door, "causal"));
    let first = carts[0].put("k", b"", "before");
    for cart in &mut carts {
        until("all have it", || cart.values("k") == ["before"]);
    }
    assert_eq!(on(&doors[1], &["put", "register", "v"]).code, 0);
    ctl(data, &["partition", "1", "2,3"]);
    // Each side alone serves at once; registers need a majority.
    carts[0].put("k", &first, "alone");
    carts[1].put("k", &first, "with another");
    carts[0].put("here", b"", "only here");
    let (seen, _) = carts[2].get("gone");
    carts[2].delete("gone", &seen);
    assert_eq!(carts[0].values("k"), ["alone"]);
    until("the larger side agrees", || carts[2].values("k") == ["with another"]);
    assert!(carts[2].values("here").is_empty());
    assert_eq!(on(&doors[0], &["get", "register"]).code, 5, "the smaller side has no quorum");
    assert_eq!(on(&doors[2], &["get", "register"]).out, "v");
    ctl(data, &["heal"]);
    for cart in &mut carts {
        until("all agree", || cart.values("k") == ["alone", "with another"]);
        until("all have it", || cart.values("here") == ["only here"]);
    }
    let (seen, _) = carts[2].get("k");
    carts[2].delete("k", &seen);
    for cart in &mut carts {
        until("it is deleted everywhere", || cart.values("k").is_empty());
    }
    until("registers are served again", || on(&doors[0], &["get", "register"]).out == "v");
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn what_was_acknowledged_outlives_a_kill_of_all_hosts() {
    let mut cluster = Cluster::create_with("sync", &["--keyspace", "carts=causal,partitions=9"]);
    cluster.start_all();
    let mut cart = Cart::at(&cluster.resp(1), "carts");
    let mut contexts = Vec::new();
    for number in 0..200 {
        contexts.push(cart.put(&format!("k{number}"), b"", &number.to_string()));
    }
    // Acknowledged by one host: killed with the others before it can have told all.
    cart.put("last", b"", "word");
    cluster.kill(&[1, 2, 3]);
    cluster.start_all();
    let mut carts = [1, 2, 3].map(|host| Cart::at(&cluster.resp(host), "carts"));
    for cart in &mut carts {
        until("the last write is everywhere", || cart.values("last") == ["word"]);
        for number in 0..200 {
            let key = format!("k{number}");
            until("it is there", || cart.values(&key) == [number.to_string()]);
        }
    }
    for (number, context) in contexts.iter().enumerate() {
        carts[2].put(&format!("k{number}"), context, "replaced");
    }
    for number in 0..200 {
        let key = format!("k{number}");
        until("a context of before replaces", || carts[0].values(&key) == ["replaced"]);
    }
}

#[test]
fn a_lost_host_is_replaced_and_a_drained_one_hands_over_first() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = Dev::start(data, &["--durability", "memory"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    let mut cart = Cart::at(&resp, "causal");
    let mut old = Vec::new();
    for number in 0..100 {
        old.push(cart.put(&format!("k{number}"), b"", &number.to_string()));
    }
    for number in (0..100).step_by(10) {
        cart.delete(&format!("k{number}"), &old[number]);
    }
    let are_right = |cart: &mut Cart| {
        for number in 0..100 {
            let key = format!("k{number}");
            let expected: Vec<String> =
                (number % 10 != 0).then(|| number.to_string()).into_iter().collect();
            until("it is as it was left", || cart.values(&key) == expected);
        }
    };
    let lost = node_at(&ring(&http), &dev.door(3, "cluster")).expect("it is on the ring");
    assert_eq!(partitions(&http, "causal", &lost), (22, 0));
    // Its directory is gone for good, and another host comes.
    ctl(data, &["kill", "3"]);
    ctl(data, &["add"]);
    until("it may be removed", || quorate(&["remove", &lost, "--http", &http]).code == 0);
    assert_eq!(partitions(&http, "causal", &lost).0, 0);
    until("the newcomer has copied", || partitions(&http, "causal", &lost) == (0, 0));
    let mut newcomer = Cart::at(&dev.at(4, "resp"), "causal");
    are_right(&mut newcomer);
    are_right(&mut cart);

    // A fifth host, so that one can be drained: it is done when nothing rests on it.
    ctl(data, &["add"]);
    let fifth = || node_at(&ring(&http), &dev.at(5, "cluster"));
    until("it is on the ring", || fifth().is_some());
    let fifth = fifth().expect("as above");
    // By hand one, all others when their host leaves.
    let drained = node_at(&ring(&http), &dev.door(2, "cluster")).expect("it is on the ring");
    let places = record(&http, "causal")["partitions"].clone();
    let mut all = places.as_array().expect("a list").iter();
    let one = all.position(|place| place["node"] == drained.as_str()).expect("it has some");
    until("it takes a partition", || {
        keyspace(&http, &["replace", "causal", &one.to_string(), &fifth]).code == 0
    });
    assert_eq!(record(&http, "causal")["partitions"][one]["node"], fifth.as_str());
    let none = keyspace(&http, &["replace", "causal", "999", &fifth]);
    assert!(none.code == 1 && none.err.contains("and not number 999"), "{none:?}");
    until("it is drained", || quorate(&["drain", &drained, "--http", &http]).code == 0);
    assert_eq!(partitions(&http, "causal", &drained).0, 0);
    ctl(data, &["kill", "2"]);
    until("it is removed", || quorate(&["remove", &drained, "--http", &http]).code == 0);
    are_right(&mut Cart::at(&dev.at(5, "resp"), "causal"));
    are_right(&mut cart);
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn a_host_that_hears_late_of_its_partitions_catches_up() {
    let cluster = Cluster::start("sync");
    // Before it is suspected: a suspected host is given nothing.
    until("it is made while one is stopped", || {
        cluster.signal(3, Signal::STOP);
        let said = keyspace(&cluster.http(1), &["create", "carts", "--engine", "causal"]);
        if said.code != 0 {
            cluster.signal(3, Signal::CONT);
        }
        said.code == 0
    });
    let mut cart = Cart::at(&cluster.resp(1), "carts");
    let mut contexts = Vec::new();
    for number in 0..50 {
        contexts.push(cart.put(&format!("k{number}"), b"", "old"));
    }
    for (number, context) in contexts.iter().enumerate() {
        let key = format!("k{number}");
        match number % 2 {
            0 => drop(cart.put(&key, context, "new")),
            _ => cart.delete(&key, context),
        }
    }
    cluster.signal(3, Signal::CONT);
    let mut late = Cart::at(&cluster.resp(3), "carts");
    for number in 0..50 {
        let expected: &[&str] = if number % 2 == 0 { &["new"] } else { &[] };
        let key = format!("k{number}");
        until("it is as the others have it", || late.values(&key) == expected);
        assert_eq!(cart.values(&key), expected, "and the others lose nothing by it");
    }
    // What was deleted comes back from nowhere.
    until("nothing is left to be told", || {
        let status = cluster.status(1);
        let all = status["keyspaces"].as_array().expect("a list").clone();
        let carts = all.iter().find(|one| one["name"] == "carts").expect("it is there").clone();
        carts["state"]["dot_keys"] == "0" && carts["state"]["unstripped"] == "0"
    });
    assert_eq!(late.values("k1"), [""; 0]);
}
