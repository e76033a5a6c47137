//! The ring as operators see it.

use crate::support::cluster::Cluster;
use crate::support::run::quorate;

#[test]
fn a_host_shows_the_ring_it_was_born_with() {
    let cluster = Cluster::start("memory");
    let http = cluster.http(2);
    let ring = quorate(&["ring", "--http", &http, "--format", "json"]).json();
    let hosts = ring["hosts"].as_array().expect("a list");
    assert_eq!(hosts.len(), 3);
    let third = hosts.iter().find(|host| host["host"] == 3).expect("it is on the ring");
    assert_eq!(third["address"], cluster.cluster(3).as_str());
    assert_eq!(third["tokens"][0], "ffffffffffffffff", "founding hosts stand evenly");
    assert_eq!(third["standing"], "up");
    assert_eq!(ring["keyspaces"][0]["replicas"], 3);
    let svg = quorate(&["ring", "--http", &http, "--format", "svg"]);
    assert!(svg.out.starts_with("<svg") && svg.out.contains(&cluster.cluster(3)), "{svg:?}");
    let text = quorate(&["ring", "--http", &http]);
    assert!(text.out.contains("Keyspace default: 3 replicas, hash order, atomic"), "{text:?}");
}

#[test]
fn questions_about_what_is_not_there_are_refused() {
    let cluster = Cluster::start("memory");
    let http = cluster.http(1);
    let said = quorate(&["drain", "9", "--http", &http]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains(&cluster.cluster(2)), "it names those that are: {said:?}");
    let said = quorate(&["explain", "get", "k", "--keyspace", "none", "--http", &http]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("no keyspace none; there are default"), "{said:?}");
}
