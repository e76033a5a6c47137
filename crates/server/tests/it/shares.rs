//! Partitions of a causal keyspace: who joins takes its share, and what a host has can always go
//! back to as few hosts as a key has replicas.

use crate::causal::{Cart, ctl, keyspace, partitions, record};
use crate::command_line::dev::Dev;
use crate::elastic::{node_at, ring};
use crate::support::cluster::until;
use crate::support::run::quorate;

const KEYS: usize = 100;

fn are_right(cart: &mut Cart) {
    for number in 0..KEYS {
        let key = format!("k{number}");
        let expected: Vec<String> =
            (!number.is_multiple_of(10)).then(|| number.to_string()).into_iter().collect();
        until("it is as it was left", || cart.values(&key) == expected);
    }
}

#[test]
fn a_host_that_joins_takes_its_share_and_three_hosts_take_back_what_one_of_four_had() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path();
    let dev = Dev::start(data, &["--durability", "memory"]);
    let (http, resp) = (dev.door(1, "http"), dev.door(1, "resp"));
    let made = keyspace(&http, &["create", "carts", "--engine", "causal", "partitions=12"]);
    assert_eq!(made.code, 0, "{made:?}");
    let mut cart = Cart::at(&resp, "carts");
    let contexts: Vec<Vec<u8>> =
        (0..KEYS).map(|number| cart.put(&format!("k{number}"), b"", &number.to_string())).collect();
    for number in (0..KEYS).step_by(10) {
        cart.delete(&format!("k{number}"), &contexts[number]);
    }
    let mut hosts: Vec<String> = (1..=3)
        .map(|host| node_at(&ring(&http), &dev.door(host, "cluster")).expect("it is on the ring"))
        .collect();
    let held = |node: &String| partitions(&http, "carts", node);
    assert!(hosts.iter().all(|node| held(node) == (4, 0)), "{:?}", record(&http, "carts"));

    // Nobody asks for it.
    ctl(data, &["add"]);
    let fourth = || node_at(&ring(&http), &dev.at(4, "cluster"));
    until("it is on the ring", || fourth().is_some());
    hosts.push(fourth().expect("as above"));
    until("it has its share", || hosts.iter().all(|node| held(node) == (3, 0)));
    until("nobody hands over any more", || {
        record(&http, "carts")["former"] == serde_json::json!([])
    });
    let level = record(&http, "carts");
    let mut newcomer = Cart::at(&dev.at(4, "resp"), "carts");
    are_right(&mut newcomer);
    are_right(&mut cart);
    let more = newcomer.put("more", b"", "written at four");

    // Of the three that stay each is near some partition of the one that leaves. `dev` has a
    // keyspace of 66 partitions besides, of which by now the fourth has some.
    assert_eq!(record(&http, "carts")["partitions"], level["partitions"], "it is at rest");
    let drained = hosts.remove(1);
    let said = quorate(&["drain", &drained, "--http", &http]);
    assert_eq!(said.code, 0, "{said:?}");
    // It has nothing any more, and has handed over what it had; who has it now may fetch yet.
    let record = || record(&http, "carts");
    let has_none = || {
        let handing = record()["former"].as_array().expect("a list").clone();
        held(&drained).0 == 0 && handing.iter().all(|one| one["node"] != drained.as_str())
    };
    assert!(has_none(), "{:?}", record());
    until("those that stay share it", || hosts.iter().all(|node| held(node) == (4, 0)));
    assert!(has_none(), "nothing comes back: {:?}", record());
    ctl(data, &["kill", "2"]);
    until("it is removed", || quorate(&["remove", &drained, "--http", &http]).code == 0);
    are_right(&mut newcomer);
    are_right(&mut cart);
    until("the last write is there", || cart.values("more") == ["written at four"]);
    cart.delete("more", &more);
    until("its delete is known", || newcomer.values("more").is_empty());
    let said = quorate(&["drain", &hosts[0], "--http", &http]);
    assert!(said.code != 0 && said.err.contains("add a host first"), "{said:?}");
    assert_eq!(dev.stop().0, Some(0));
}
