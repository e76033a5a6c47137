//! The Rust client sends calls on registers to hosts that hold them, and goes on when they do not.

use crate::command_line::dev::Dev;
use crate::elastic::{node_at, ring};
use crate::native::rustclient::{block_on, client};
use crate::support::cluster::get;
use crate::support::run::quorate;
use bytes::Bytes;
use quorate_kernel::view::Range;
use quorate_protocols::order::Order;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const HOSTS: usize = 5;
const KEYS: usize = 60;
const ROUNDS: usize = 4;

/// The newest view of each group: its version, its part of the ring, its members.
type Groups = BTreeMap<String, (u64, Range, BTreeSet<String>)>;

fn number(group: &Value, name: &str) -> u64 {
    u64::from_str_radix(group[name].as_str().expect("hexadecimal digits"), 16).expect("a token")
}

/// Adds what a host tells of the keyspace `default`.
fn add(groups: &mut Groups, ring: &Value) {
    for group in ring["keyspaces"][0]["groups"].as_array().expect("a list") {
        let version = group["version"].as_u64().expect("a version");
        let members = group["members"].as_array().expect("a list").iter();
        let members = members.map(|node| node.as_str().expect("a node").to_owned()).collect();
        let name = group["group"].as_str().expect("an id").to_owned();
        let range = Range { low: number(group, "low"), high: number(group, "high") };
        if groups.get(&name).is_none_or(|known| known.0 < version) {
            groups.insert(name, (version, range, members));
        }
    }
}

/// The nodes that hold a key.
fn holders(groups: &Groups, name: &str) -> BTreeSet<String> {
    let token = Order::Hash.token(name.as_bytes());
    let group = groups.values().find(|(_, range, _)| range.contains(token));
    group.expect("every token has a group").2.clone()
}

/// How many operations on the keyspace `default` a host has done for clients.
fn done(http: &str) -> u64 {
    let is_ours = |line: &&str| {
        line.starts_with("quorate_requests_total{keyspace=\"default\"") && line.contains("\"ok\"")
    };
    let count = |line: &str| line.rsplit(' ').next().and_then(|text| text.parse::<u64>().ok());
    get(http, "/metrics").lines().filter(is_ours).filter_map(count).sum()
}

#[test]
fn calls_go_to_hosts_that_hold_the_key() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let flags = ["--durability", "memory", "--hosts", "5"];
    let dev = Dev::start(place.path(), &flags);
    let doors = |door: &'static str| (1..=HOSTS).map(move |host| (host, door));
    let all = |door| doors(door).map(|(host, door)| dev.door(host, door)).collect::<Vec<_>>();
    let (grpc, http, cluster) = (all("grpc"), all("http"), all("cluster"));
    let names: Vec<String> = (0..KEYS).map(|key| format!("key-{key}")).collect();
    block_on(async {
        let client = client(&grpc);
        let keyspace = client.keyspace("default");
        for name in &names {
            keyspace.put(name.clone(), name.clone()).await.expect("it is written");
        }
        for (own, address) in http.iter().zip(&cluster) {
            let node = node_at(&ring(own), address).expect("a host knows itself");
            // A call that failed at a busy host may go to any other, and groups may change: then
            // the next round must do without.
            let mut round = 0;
            loop {
                client.learn_routes().await;
                let mut groups = Groups::new();
                http.iter().for_each(|http| add(&mut groups, &ring(http)));
                let strange: Vec<&String> =
                    names.iter().filter(|name| !holders(&groups, name).contains(&node)).collect();
                assert!(strange.len() > KEYS / 10, "two of five hosts do not hold a key");
                let before = done(own);
                for name in strange {
                    keyspace.put(name.clone(), name.clone()).await.expect("it is written");
                    assert!(keyspace.get(name.clone()).await.expect("it is read").is_some());
                }
                if done(own) == before {
                    break;
                }
                round += 1;
                assert!(round < ROUNDS, "calls went to {node}, which holds none of the keys");
            }
        }
        // A route is a hint: what it says of a host that is gone costs nothing but time.
        let data = place.path().display().to_string();
        assert_eq!(quorate(&["dev", "ctl", "--data", &data, "kill", "2"]).code, 0);
        for name in &names {
            let value = keyspace.get(name.clone()).await.expect("others hold it too");
            assert_eq!(value.as_deref(), Some(name.as_bytes()));
            assert_eq!(keyspace.put(name.clone(), Bytes::from_static(b"new")).await, Ok(()));
        }
    });
}

#[test]
fn calls_on_one_cluster_may_be_made_by_many_threads() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(place.path(), &["--durability", "memory"]);
    let hosts: Vec<String> = (1..=3).map(|host| dev.door(host, "grpc")).collect();
    block_on(async {
        let (client, mut tasks) = (client(&hosts), tokio::task::JoinSet::new());
        for task in 0..4 {
            let (keyspace, carts) = (client.keyspace("default"), client.causal("causal"));
            tasks.spawn(async move {
                for number in 0..20 {
                    let name = format!("{task}-{number}");
                    keyspace.put(name.clone(), name.clone()).await?;
                    carts.put(name.clone(), name.clone(), "").await?;
                    assert_eq!(keyspace.get(name.clone()).await?.as_deref(), Some(name.as_bytes()));
                }
                Ok::<_, quorate_client::ClientError>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            assert_eq!(ended.expect("no task fails"), Ok(()));
        }
    });
}
