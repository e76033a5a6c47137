//! Keyspaces that come and go while the cluster serves.

use crate::support::client::Client;
use crate::support::cluster::{Cluster, get as fetch, until};
use crate::support::run::{Said, command, quorate};
use bytes::BytesMut;
use quorate_doors::resp::client::write_command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// Runs `quorate keyspace` against a host.
fn keyspace(cluster: &Cluster, host: usize, args: &[&str]) -> Said {
    let http = cluster.http(host);
    let mut all = vec!["keyspace"];
    all.extend(args);
    all.extend(["--http", &http]);
    quorate(&all)
}

/// The names of the keyspaces that a host knows.
fn names(cluster: &Cluster, host: usize) -> Vec<String> {
    let said = keyspace(cluster, host, &["list", "--format", "json"]);
    let list = said.json();
    let names = list.as_array().into_iter().flatten().map(|keyspace| keyspace["name"].as_str());
    names.map(|name| name.expect("a name").to_owned()).collect()
}

fn put(cluster: &Cluster, host: usize, name: &str, key: &str, value: &str) -> Said {
    let door = cluster.resp(host);
    quorate(&["put", key, value, "--endpoint", &door, "--keyspace", name])
}

fn get(cluster: &Cluster, host: usize, name: &str, key: &str) -> Said {
    let door = cluster.resp(host);
    quorate(&["get", key, "--endpoint", &door, "--keyspace", name])
}

/// Waits until a host has a keyspace open and answers for it.
fn until_served(cluster: &Cluster, host: usize, name: &str) {
    until("the keyspace is served", || get(cluster, host, name, "nothing").code == 3);
}

#[test]
fn a_keyspace_is_made_used_altered_and_dropped_while_the_cluster_serves() {
    let mut cluster = Cluster::start("sync");
    let made = keyspace(&cluster, 1, &["create", "sessions", "value=1KiB"]);
    assert_eq!((made.code, made.out.as_str()), (0, "keyspace sessions is made\n"), "{made:?}");
    (1..=3).for_each(|host| until_served(&cluster, host, "sessions"));
    assert_eq!(put(&cluster, 2, "sessions", "k", "v").code, 0);
    assert_eq!(get(&cluster, 3, "sessions", "k").out.trim_end(), "v");
    assert_eq!(get(&cluster, 3, "default", "k").code, 3, "it is another keyspace");
    let long = "x".repeat(2000);
    assert!(put(&cluster, 2, "sessions", "k", &long).err.contains("over the limit of 1024"));

    let fixed = keyspace(&cluster, 2, &["alter", "sessions", "durability=memory"]);
    assert!(fixed.code == 1 && fixed.err.contains("stays as it is"), "{fixed:?}");
    assert_eq!(keyspace(&cluster, 2, &["alter", "sessions", "value=4KiB"]).code, 0);
    until("the setting is known", || put(&cluster, 3, "sessions", "long", &long).code == 0);
    let shown = keyspace(&cluster, 3, &["show", "sessions"]).out;
    assert!(shown.contains("value") && shown.contains("4096"), "{shown}");
    assert!(shown.contains("no: every key would stand elsewhere on the ring"), "{shown}");

    // What was decided and written outlives every process.
    cluster.kill(&[1, 2, 3]);
    cluster.start_all();
    until_served(&cluster, 1, "sessions");
    assert_eq!(get(&cluster, 1, "sessions", "k").out.trim_end(), "v");
    assert_eq!(names(&cluster, 2), ["default", "sessions"]);

    assert_eq!(keyspace(&cluster, 3, &["drop", "sessions"]).code, 2, "it asks for --yes");
    let dropped = keyspace(&cluster, 3, &["drop", "sessions", "--yes"]);
    assert_eq!(dropped.code, 0, "{dropped:?}");
    for host in 1..=3 {
        until("it is gone", || names(&cluster, host) == ["default"]);
        let said = get(&cluster, host, "sessions", "k");
        assert!(said.code == 3 && said.err.contains("sessions"), "{said:?}");
    }
    let again = keyspace(&cluster, 1, &["create", "sessions"]);
    assert_eq!(again.code, 0, "{again:?}");
    until_served(&cluster, 2, "sessions");
    assert_eq!(get(&cluster, 2, "sessions", "k").code, 3, "it begins empty");
    cluster.kill(&[1]);
    cluster.restart(1);
    let list = keyspace(&cluster, 1, &["list", "--format", "json"]).json();
    assert_eq!((&list[1]["name"], &list[1]["number"]), (&"sessions".into(), &2.into()));
}

#[test]
fn clients_in_the_middle_of_a_dropped_keyspace_are_answered_and_go_on() {
    const AT_ONCE: usize = 64;
    let cluster = Cluster::start("sync");
    assert_eq!(keyspace(&cluster, 1, &["create", "x"]).code, 0);
    (1..=3).for_each(|host| until_served(&cluster, host, "x"));
    thread::scope(|scope| {
        let busy = |host: usize| {
            let door = cluster.resp(host);
            scope.spawn(move || {
                let mut client = Client::to(&door);
                assert_eq!(client.told(&[b"SELECT", b"x"]), "OK");
                let mut sets = BytesMut::new();
                (0..AT_ONCE).for_each(|_| write_command(&mut sets, &[b"SET", b"k", b"v"]));
                // Refused by the host for as long as the door knows the keyspace, then by the door.
                let gone = ["is not open on this host", "of this connection is not there"];
                until("its keyspace is gone", || {
                    client.send(&sets).expect("the host reads");
                    let refused = (0..AT_ONCE).filter(|_| {
                        let reply = client.reply().expect("every command is answered");
                        let told = String::from_utf8_lossy(reply.as_bytes().expect("a text"));
                        gone.iter().any(|gone| told.contains(gone))
                    });
                    refused.count() > 0
                });
                assert_eq!(client.told(&[b"SELECT", b"default"]), "OK");
                assert_eq!(client.told_at_last(&[b"SET", b"k", b"v"]), "OK");
            })
        };
        let clients: Vec<_> = [1, 1, 2, 2, 3, 3].into_iter().map(busy).collect();
        thread::sleep(Duration::from_millis(500));
        let dropped = keyspace(&cluster, 1, &["drop", "x", "--yes"]);
        assert_eq!(dropped.code, 0, "{dropped:?}");
        clients.into_iter().for_each(|client| client.join().expect("it goes on"));
    });
}

#[test]
fn operators_in_the_middle_of_a_dropped_keyspace_are_answered_at_once() {
    let cluster = Cluster::start("sync");
    assert_eq!(keyspace(&cluster, 1, &["create", "x"]).code, 0);
    (1..=3).for_each(|host| until_served(&cluster, host, "x"));
    thread::scope(|scope| {
        let busy = |host: usize| {
            let http = cluster.http(host);
            scope.spawn(move || {
                until("the keyspace is gone", || {
                    let told = fetch(&http, "/explain?keyspace=x&key=k");
                    assert!(!told.contains("did not answer"), "{told}");
                    told.contains("no keyspace x")
                });
            })
        };
        let operators: Vec<_> = (0..24).map(|number| busy(number % 3 + 1)).collect();
        thread::sleep(Duration::from_millis(500));
        let dropped = keyspace(&cluster, 1, &["drop", "x", "--yes"]);
        assert_eq!(dropped.code, 0, "{dropped:?}");
        operators.into_iter().for_each(|operator| operator.join().expect("it is answered"));
    });
}

#[test]
fn of_creations_at_three_hosts_at_once_one_wins_and_a_minority_cannot() {
    let mut cluster = Cluster::start("memory");
    let won = thread::scope(|scope| {
        let cluster = &cluster;
        let create = |host| scope.spawn(move || keyspace(cluster, host, &["create", "x"]));
        let runs: Vec<_> = (1..=3).map(create).collect();
        let said: Vec<Said> = runs.into_iter().map(|run| run.join().expect("it runs")).collect();
        let lost: Vec<&Said> = said.iter().filter(|said| said.code != 0).collect();
        for said in &lost {
            assert!(said.err.contains("there is a keyspace `x` already"), "{said:?}");
        }
        3 - lost.len()
    });
    assert_eq!(won, 1);
    cluster.kill(&[2, 3]);
    let alone = keyspace(&cluster, 1, &["create", "y"]);
    assert_eq!(alone.code, 5, "{alone:?}");
    assert!(alone.err.contains("1 of 2 replicas needed answered"), "{alone:?}");
    assert_eq!(names(&cluster, 1), ["default", "x"], "it goes on with what it has");
}

#[test]
fn a_host_that_joins_learns_the_keyspaces_made_before() {
    let cluster = Cluster::start("sync");
    assert_eq!(keyspace(&cluster, 2, &["create", "x"]).code, 0);
    let dropped = keyspace(&cluster, 1, &["drop", "default", "--yes"]);
    assert_eq!(dropped.code, 0, "{dropped:?}");
    let data = cluster.place().join("joiner").display().to_string();
    let secret = cluster.place().join("data/cluster.secret").display().to_string();
    let (seed, me) = (cluster.http(1), std::process::id().to_string());
    let (door, http, own) = (&cluster.resp(5), &cluster.http(5), &cluster.cluster(5));
    let mut args = vec!["server", "--data", &data, "--join", &seed, "--secret-file", &secret];
    args.extend(["--cluster", own, "--http", http, "--resp", door, "--exit-with", &me]);
    args.extend(["--grpc", "127.0.0.1:0", "--zookeeper", "127.0.0.1:0"]);
    let mut joiner = command(&args);
    let joiner = joiner.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut joiner = joiner.expect("the binary starts");
    until("it serves what was made, and not what was dropped", || {
        let told = |name| quorate(&["get", "k", "--endpoint", door, "--keyspace", name]);
        told("x").code == 3 && told("default").code == 3 && told("default").err.contains('x')
    });
    let said = quorate(&["put", "k", "v", "--endpoint", door, "--keyspace", "x"]);
    joiner.kill().expect("it runs");
    joiner.wait().expect("it ends");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(get(&cluster, 3, "x", "k").out.trim_end(), "v");
}

#[test]
fn clients_of_a_dropped_keyspace_are_told_so_and_hurt_no_host() {
    let mut cluster = Cluster::start("memory");
    assert_eq!(keyspace(&cluster, 1, &["create", "middle"]).code, 0);
    assert_eq!(keyspace(&cluster, 1, &["create", "last"]).code, 0);
    for name in ["middle", "last"] {
        (1..=3).for_each(|host| until_served(&cluster, host, name));
    }
    let mut clients: Vec<Client> = cluster.doors().iter().map(|door| Client::to(door)).collect();

    // One that has a number below others.
    for client in &mut clients {
        assert_eq!(client.told(&[b"SELECT", b"middle"]), "OK");
        assert_eq!(client.told_at_last(&[b"SET", b"k", b"v"]), "OK");
    }
    assert_eq!(keyspace(&cluster, 2, &["drop", "middle", "--yes"]).code, 0);
    (1..=3).for_each(|host| until("it is gone", || names(&cluster, host) == ["default", "last"]));
    for client in &mut clients {
        assert_eq!(client.told(&[b"PING"]), "PONG");
        let gone =
            "ERR the keyspace 1 of this connection is not there: SELECT one of: default, last";
        assert_eq!(client.told(&[b"SET", b"k", b"v"]), gone);
        assert_eq!(client.told(&[b"GET", b"k"]), gone);
        assert_eq!(client.told(&[b"SELECT", b"1"]), "ERR DB index is out of range");
    }

    for client in &mut clients {
        assert_eq!(client.told(&[b"SELECT", b"last"]), "OK");
    }
    assert_eq!(keyspace(&cluster, 2, &["drop", "last", "--yes"]).code, 0);
    (1..=3).for_each(|host| until("it is gone", || names(&cluster, host) == ["default"]));
    for client in &mut clients {
        assert_eq!(client.told(&[b"PING"]), "PONG");
        let told = client.told(&[b"SET", b"k", b"v"]);
        assert!(told.contains("of this connection is not there: SELECT one of: default"), "{told}");
        assert_eq!(client.told(&[b"SELECT", b"0"]), "OK");
        assert_eq!(client.told_at_last(&[b"SET", b"k", b"v"]), "OK");
    }

    // The first keyspace has number 0 for good, and clients that select none mean it.
    assert_eq!(keyspace(&cluster, 1, &["create", "other"]).code, 0);
    assert_eq!(keyspace(&cluster, 1, &["drop", "default", "--yes"]).code, 0);
    (1..=3).for_each(|host| until("it is gone", || names(&cluster, host) == ["other"]));
    assert_eq!(keyspace(&cluster, 3, &["create", "default"]).code, 0);
    (1..=3).for_each(|host| until_served(&cluster, host, "default"));
    for client in &mut clients {
        assert_eq!(client.told_at_last(&[b"SET", b"k", b"again"]), "OK");
    }
    let mut fresh = Client::to(&cluster.resp(2));
    assert_eq!(fresh.told_at_last(&[b"GET", b"k"]), "again");
    assert!((1..=3).all(|host| cluster.is_running(host)));
}
