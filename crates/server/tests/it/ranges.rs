//! Keyspaces that keep their keys in order: scans walk them so, across groups.

use crate::cluster::Cluster;
use crate::run::{Said, quorate};

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
