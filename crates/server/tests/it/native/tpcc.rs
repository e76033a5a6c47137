//! TPC-C-like runs against three real hosts: the conditions hold, also where one is killed, and a
//! damaged number is condemned.

use super::rustclient::{block_on, client};
use crate::support::cluster::{Cluster, until};
use crate::support::run::{Said, command, finish};
use serde_json::Value;

/// The keyspace has two groups, so most transactions are of both.
fn start() -> (Cluster, Vec<String>) {
    let keyspace = ["--keyspace", "default=serializable,groups=2"];
    let mut cluster = Cluster::create_with("memory", &keyspace);
    cluster.start_all();
    let hosts = (1..=3).map(|host| cluster.grpc(host)).collect();
    (cluster, hosts)
}

fn run(hosts: &[String], operations: &str, more: &[&str]) -> Said {
    let hosts = hosts.join(",");
    let mut args = vec!["bench", "tpcc", "--keyspace", "default", "--format", "json"];
    args.extend(["--endpoints", &hosts, "--operations", operations, "--warm-up", "0s"]);
    args.extend(more);
    finish(command(&args))
}

const SMALL: [&str; 6] = ["--warehouses", "2", "--scale", "100", "--clients", "8"];

fn sum(report: &Value, field: &str) -> u64 {
    let kinds = report["transactions"].as_array().expect("the five kinds");
    assert_eq!(kinds.len(), 5);
    let of = |kind: &Value| kind.pointer(field).and_then(Value::as_u64).expect("a number");
    kinds.iter().map(of).sum()
}

#[test]
fn tpcc_holds_its_conditions_and_condemns_damage() {
    let (_cluster, hosts) = start();
    let said = run(&hosts, "150", &SMALL);
    assert_eq!(said.code, 0, "{said:?}");
    let report = said.json();
    assert!(report["label"].as_str().is_some_and(|label| label.starts_with("TPC-C-like")));
    assert_eq!((&report["warehouses"], &report["scale"]), (&2.into(), &100.into()));
    let committed = sum(&report, "/latencies/operations");
    let others = ["/rolled_back", "/unknown", "/failed", "/unfinished"];
    let others: u64 = others.iter().map(|field| sum(&report, field)).sum();
    assert_eq!(committed + others, 150, "{report}");
    assert!(committed > 120, "{report}");
    assert!(report["tpmc"].as_f64().is_some_and(|tpmc| tpmc > 0.0));
    let rows = report["audit"]["rows"].as_u64().expect("all were read");
    assert!(rows > report["load"]["keys"].as_u64().expect("they were loaded"), "{report}");
    assert_eq!(report["audit"]["violation_count"], 0, "{report}");

    let again = run(&hosts, "1", &SMALL);
    assert_eq!((again.code, again.err.contains("not empty")), (1, true), "{again:?}");

    block_on(async {
        let keyspace = client(&hosts).keyspace("default");
        let paid = keyspace.get("wy/2").await.expect("it is read").expect("it was loaded");
        let paid: i64 = std::str::from_utf8(&paid).expect("text").parse().expect("cents");
        keyspace.put("wy/2", (paid + 1).to_string()).await.expect("it is written");
    });
    let said = run(&hosts, "20", &["--no-load"]);
    assert_eq!(said.code, 8, "{said:?}");
    let violations = said.json()["audit"]["violations"].clone();
    let [first, second] = violations.as_array().expect("a list").as_slice() else {
        panic!("conditions 1 and 8: {violations}");
    };
    for (violation, condition) in [(first, 1), (second, 8)] {
        assert_eq!(violation["rule"]["condition"], condition, "{violation}");
        assert_eq!(violation["warehouse"], 2, "{violation}");
        let number = |side: &str| violation[side].as_i64().expect("cents");
        assert_eq!(number("left") - number("right"), 1, "{violation}");
    }
}

#[test]
fn tpcc_holds_its_conditions_while_hosts_are_killed() {
    let (mut cluster, hosts) = start();
    let asked = hosts.clone();
    let run = std::thread::spawn(move || run(&asked, "300", &SMALL));
    let is_loaded = || {
        let meta = block_on(async { client(&hosts).keyspace("default").get("meta").await });
        meta.is_ok_and(|meta| meta.is_some())
    };
    until("the tables are loaded", is_loaded);
    for host in [1, 2] {
        cluster.kill(&[host]);
        cluster.restart(host);
    }
    let said = run.join().expect("the run ends");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json()["audit"]["violation_count"], 0, "{said:?}");
}
