//! Data that a host has lost, or gets from another one, is there before anybody is told so.

use crate::causal::{Cart, ctl, keyspace, partitions, record};
use crate::command_line::dev::Dev;
use crate::elastic::{node_at, ring};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, get, until};
use std::net::TcpStream;

const KEYS: usize = 200;

fn fill(cart: &mut Cart) {
    for number in 0..KEYS {
        cart.put(&format!("k{number}"), b"", &number.to_string());
    }
}

/// Waits until a host has everything.
fn until_all(cart: &mut Cart) {
    for number in 0..KEYS {
        let key = format!("k{number}");
        until("it has arrived", || cart.values(&key) == [number.to_string()]);
    }
}

fn assert_all(cart: &mut Cart) {
    let is_lacking = |number: &usize| cart.values(&format!("k{number}")) != [number.to_string()];
    let lacking: Vec<usize> = (0..KEYS).filter(is_lacking).collect();
    assert!(lacking.is_empty(), "{} of {KEYS} are not there: {lacking:?}", lacking.len());
}

#[test]
fn the_only_replica_of_each_key_moves_to_a_host_that_joins() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = Dev::start(data, &["--hosts", "1"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    // As `dev` makes its own, with fewer partitions to move.
    let create = ["create", "carts", "--engine", "causal", "replicas=1", "partitions=6"];
    let made = keyspace(&http, &create);
    assert_eq!(made.code, 0, "{made:?}");
    let mut cart = Cart::at(&resp, "carts");
    fill(&mut cart);
    ctl(data, &["add"]);
    let node = |door: &str| node_at(&ring(&http), door);
    until("it is on the ring", || node(&dev.at(2, "cluster")).is_some());
    let both = [dev.door(1, "cluster"), dev.at(2, "cluster")];
    let [first, second] = both.map(|door| node(&door).expect("it is on the ring"));
    let held = |node: &str| partitions(&http, "carts", node);
    let is_level = || held(&first).0.abs_diff(held(&second).0) <= 1 && held(&first).1 == 0;
    until("each has its half", is_level);
    until("nobody hands over any more", || {
        record(&http, "carts")["former"] == serde_json::json!([])
    });
    assert_all(&mut cart);
    let mut other = Cart::at(&dev.at(2, "resp"), "carts");
    assert_all(&mut other);
    let seen = other.put("more", b"", "written at two");
    until("it has arrived", || cart.values("more") == ["written at two"]);
    cart.put("more", &seen, "replaced at one");
    assert_eq!(cart.values("more"), ["replaced at one"]);
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn hosts_in_memory_that_restart_one_after_the_other_when_ready_keep_everything() {
    let keyspaces = ["--keyspace", "default=linearizable", "--keyspace", "carts=causal"];
    let mut cluster = Cluster::create_with("memory", &keyspaces);
    cluster.start_all();
    let mut cart = Cart::at(&cluster.resp(1), "carts");
    fill(&mut cart);
    let mut register = Client::to(&cluster.resp(1));
    assert_eq!(register.told_at_last(&[b"SELECT", b"default"]), "OK");
    assert_eq!(register.told_at_last(&[b"SET", b"register", b"v"]), "OK");
    let mut carts = [2, 3].map(|host| Cart::at(&cluster.resp(host), "carts"));
    carts.iter_mut().for_each(until_all);
    for host in 1..=3 {
        cluster.kill(&[host]);
        cluster.launch(host);
        // As whoever restarts the next one asks.
        until("it is ready", || {
            TcpStream::connect(cluster.http(host)).is_ok()
                && get(&cluster.http(host), "/readyz") == "ok\n"
        });
    }
    for host in 1..=3 {
        assert_all(&mut Cart::at(&cluster.resp(host), "carts"));
        let mut register = Client::to(&cluster.resp(host));
        assert_eq!(register.told_at_last(&[b"SELECT", b"default"]), "OK");
        assert_eq!(register.told_at_last(&[b"GET", b"register"]), "v");
    }
}

#[test]
fn who_cannot_ask_a_host_that_may_have_more_serves_and_is_not_ready() {
    let mut cluster = Cluster::create_with("memory", &["--keyspace", "carts=causal,partitions=9"]);
    cluster.start_all();
    let mut cart = Cart::at(&cluster.resp(1), "carts");
    fill(&mut cart);
    until_all(&mut Cart::at(&cluster.resp(2), "carts"));
    cluster.kill(&[1, 3]);
    cluster.launch(1);
    until("it answers", || TcpStream::connect(cluster.resp(1)).is_ok());
    let mut cart = Cart::at(&cluster.resp(1), "carts");
    until_all(&mut cart);
    let told = get(&cluster.http(1), "/readyz");
    assert!(told.contains("[-]keyspace/carts failed"), "{told}");
    cluster.launch(3);
    until("it is ready", || get(&cluster.http(1), "/readyz") == "ok\n");
    assert_all(&mut cart);
}
