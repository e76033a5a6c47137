//! Hosts that even out the load of a keyspace in key order while clients work.

use crate::command_line::dev::Dev;
use crate::elastic::ring;
use crate::support::client::Client;
use crate::support::cluster::until;
use crate::support::run::quorate;
use quorate_doors::resp::client::RespReply;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const HOSTS: usize = 5;
const KEYS: u32 = 200;

/// Keys that stand close together, so that three hosts of five hold them all.
fn key(number: u32) -> Vec<u8> {
    format!("u{number:05}").into_bytes()
}

/// Writes every key again and again, and reads others; all must be there.
fn work(resp: String, is_over: Arc<AtomicBool>) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let (mut client, mut done) = (Client::to(&resp), 0_u64);
        let mut step = 0_u32;
        while !is_over.load(Ordering::Relaxed) {
            step = (step + 1) % KEYS;
            let put =
                client.ask(&[b"SET", &key(step * 11 % KEYS), &[b'x'; 100]]).expect("it answers");
            let get = client.ask(&[b"GET", &key(step * 7 % KEYS)]).expect("it answers");
            assert!(!matches!(get, RespReply::Null), "a key is gone");
            done += u64::from(
                !matches!(put, RespReply::Error(_)) && !matches!(get, RespReply::Error(_)),
            );
        }
        done
    })
}

/// Each host's tokens, as a host knows them.
fn tokens(ring: &Value) -> BTreeMap<String, Value> {
    let hosts = ring["hosts"].as_array().cloned().unwrap_or_default();
    let name = |host: &Value| host["node"].as_str().expect("a node").to_owned();
    hosts.iter().map(|host| (name(host), host["tokens"].clone())).collect()
}

/// The bytes that each host holds, by its own word.
fn held(dev: &Dev) -> Vec<u64> {
    let of = |host: usize| {
        let ring = ring(&dev.door(host, "http"));
        let groups = ring["keyspaces"][0]["groups"].as_array().cloned().unwrap_or_default();
        let own = |group: &&Value| {
            let mut members = group["members"].as_array().into_iter().flatten();
            members.any(|member| *member == ring["node"])
        };
        groups.iter().filter(own).filter_map(|group| group["bytes"].as_u64()).sum()
    };
    (1..=HOSTS).map(of).collect()
}

/// The largest host's bytes in hundredths of the mean.
fn largest_percent(held: &[u64]) -> u64 {
    let largest = held.iter().max().copied().unwrap_or(0);
    largest * held.len() as u64 * 100 / held.iter().sum::<u64>().max(1)
}

#[test]
fn tokens_move_to_where_the_keys_are_and_every_key_stays() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    let output = data.display().to_string();
    let base = usize::from(crate::support::ports::base());
    let address = |host: usize| format!("127.0.0.1:{}", base + 10 * host + 1);
    let addresses: Vec<String> = (1..=HOSTS).map(address).collect();
    let keyspace = "default=linearizable,durability=memory,order=key";
    let mut args = vec!["init", "--output", &output, "--keyspace", keyspace];
    addresses.iter().for_each(|address| args.extend(["--host", address]));
    let said = quorate(&args);
    assert_eq!(said.code, 0, "{said:?}");
    let settings = ["--set", "cluster.balance=true", "--set", "cluster.balance_every=1s"];
    let dev = Dev::start(&data, &settings);
    let http = dev.door(1, "http");
    let founded = tokens(&ring(&http));
    let mut first = Client::to(&dev.door(1, "resp"));
    for number in 0..KEYS {
        let written =
            |reply: std::io::Result<RespReply>| !matches!(reply, Ok(RespReply::Error(_)) | Err(_));
        until("it is written", || written(first.ask(&[b"SET", &key(number), &[b'x'; 100]])));
    }
    until("the keys are weighed", || held(&dev).iter().sum::<u64>() > 0);
    let is_over = Arc::new(AtomicBool::new(false));
    let doors = (1..=HOSTS).map(|host| dev.door(host, "resp"));
    let workers: Vec<_> = doors.map(|door| work(door, Arc::clone(&is_over))).collect();
    until("a token is moved or added", || tokens(&ring(&http)) != founded);
    // Three of five hosts held everything: each had 166 % of the mean.
    until("the load is even", || {
        let held = held(&dev);
        held.iter().all(|bytes| *bytes > 0) && largest_percent(&held) <= 155
    });
    is_over.store(true, Ordering::Relaxed);
    for worker in workers {
        assert!(worker.join().expect("no key was gone") > 0, "clients were answered");
    }
    for number in 0..KEYS {
        let value = first.ask(&[b"GET", &key(number)]).expect("it answers");
        assert!(!matches!(value, RespReply::Null | RespReply::Error(_)), "key {number}: {value:?}");
    }
    assert_eq!(dev.stop().0, Some(0));
}
