//! Directories that are not what the other hosts have seen of their node: copies, what was put
//! back, logs that lost their end, hosts that were removed. Each is refused, and says why.

use crate::elastic::{node_at, ring};
use crate::faults::mishaps::copy;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::logged::{marked, newest};
use crate::support::run::{command, quorate};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// How many writes a host acknowledges.
const WRITES: u64 = 400;

/// The number of the last batch in the log of a directory.
fn logged(data: &Path) -> u64 {
    newest(data).last
}

fn write(cluster: &Cluster, name: &str) {
    let mut client = Client::to(&cluster.resp(1));
    for number in 0..WRITES {
        let key = format!("{name}-{number}");
        assert_eq!(client.told(&[b"SET", key.as_bytes(), name.as_bytes()]), "OK");
    }
}

fn must_read(cluster: &Cluster, hosts: &[usize], name: &str) {
    for &host in hosts {
        let mut client = Client::to(&cluster.resp(host));
        for number in 0..WRITES {
            let key = format!("{name}-{number}");
            let reply = client.ask(&[b"GET", key.as_bytes()]).expect("an answer");
            assert_eq!(reply.as_bytes().map(|value| &value[..]), Some(name.as_bytes()), "{key}");
        }
    }
}

#[test]
fn a_log_that_lost_its_end_after_an_idle_second_is_missed() {
    let mut cluster = Cluster::start("sync");
    write(&cluster, "w");
    let data = cluster.data(3).to_owned();
    until("the mark is where the writes are", || marked(&data).0 == logged(&data));
    cluster.kill(&[3]);
    newest(cluster.data(3)).cut(50);
    cluster.launch(3);
    assert_eq!(cluster.ended(3), Some(9), "{}", cluster.said(3));
    assert!(cluster.said(3).contains("has lost writes"), "{}", cluster.said(3));
    must_read(&cluster, &[1, 2], "w");
}

/// The mark is as damaged as the log, so nothing in the directory itself can tell.
#[test]
fn what_the_others_saw_of_a_host_is_compared_before_it_serves() {
    let mut cluster = Cluster::start("sync");
    let mark = cluster.data(3).join("mark");
    let before = fs::read(&mark).expect("a mark");
    write(&cluster, "w");
    cluster.kill(&[3]);
    newest(cluster.data(3)).cut(50);
    let file = fs::File::options().write(true).open(&mark).expect("the mark");
    file.write_all_at(&before, 0).expect("it can be written");
    cluster.launch(3);
    assert_eq!(cluster.ended(3), Some(9), "{}", cluster.said(3));
    let said = cluster.said(3);
    assert!(said.contains("the node had synced its writes up to batch"), "{said}");
    assert!(said.contains("quorate rejoin --force"), "it says what to do: {said}");
    assert!(!said.contains("host_ready"), "{said}");
    must_read(&cluster, &[1, 2], "w");
}

#[test]
fn a_copy_of_a_running_host_that_is_put_back_is_refused() {
    let mut cluster = Cluster::start("sync");
    write(&cluster, "before");
    let data = cluster.data(3).to_owned();
    let (kept, lost) = (cluster.place().join("kept"), cluster.place().join("lost"));
    copy(&data, &kept);
    write(&cluster, "after");
    // Of the last seconds too, the others know it from their disks.
    let node = cluster.status(3)["node"].as_str().expect("a node").to_owned();
    until("the others keep what they saw", || {
        let last = (node.clone(), logged(&data));
        [1, 2].iter().all(|&host| marked(cluster.data(host)).1.contains(&last))
    });
    cluster.kill(&[1, 2, 3]);
    fs::rename(&data, &lost).expect("a free name");
    copy(&kept, &data);
    [1, 2].iter().for_each(|&host| cluster.launch(host));
    [1, 2].iter().for_each(|&host| cluster.await_ready(host));
    cluster.launch(3);
    assert_eq!(cluster.ended(3), Some(9), "{}", cluster.said(3));
    assert!(
        cluster.said(3).contains("a copy that was made while its host ran"),
        "{}",
        cluster.said(3)
    );
    for _ in 0..2 {
        cluster.launch_with(3, &["--moved"]);
        assert_eq!(cluster.ended(3), Some(9), "{}", cluster.said(3));
        let said = cluster.said(3);
        assert!(said.contains("the node had synced its writes up to batch"), "{said}");
    }
    // What was lost is found again: it was never closed either, and lacks nothing.
    fs::remove_dir_all(&data).expect("a copy");
    fs::rename(&lost, &data).expect("a free name");
    cluster.restart(3);
    must_read(&cluster, &[1, 2, 3], "before");
    must_read(&cluster, &[3], "after");
}

#[test]
fn a_copy_meets_every_host_also_when_it_is_started_again_without_the_order() {
    let mut cluster = Cluster::start("sync");
    write(&cluster, "w");
    cluster.kill(&[2, 3]);
    let moved = cluster.place().join("moved");
    copy(cluster.data(3), &moved);
    cluster.move_data(3, moved);
    // Host 1 is met, and with it a majority; host 2 may have acknowledged what the copy lacks.
    for order in [&["--moved"][..], &[], &[]] {
        cluster.launch_with(3, order);
        let has = |cluster: &Cluster, event| cluster.said(3).contains(event);
        until("it has waited, or not", || {
            has(&cluster, "hosts_not_met") || has(&cluster, "host_ready")
        });
        assert!(!has(&cluster, "host_ready"), "{order:?}: {}", cluster.said(3));
        cluster.signal(3, Signal::TERM);
        assert_eq!(cluster.ended(3), Some(0), "{order:?}: {}", cluster.said(3));
    }
    [2, 3].iter().for_each(|&host| cluster.launch(host));
    [2, 3].iter().for_each(|&host| cluster.await_ready(host));
    must_read(&cluster, &[1, 2, 3], "w");
    // It is at home there now: a majority is enough.
    cluster.kill(&[2, 3]);
    cluster.restart(3);
}

#[test]
fn a_copy_beside_the_running_host_is_refused_and_that_one_goes_on() {
    let mut cluster = Cluster::start("sync");
    write(&cluster, "w");
    let twin = cluster.place().join("twin");
    copy(cluster.data(3), &twin);
    let (twin, me) = (twin.display().to_string(), std::process::id().to_string());
    let mut args = vec!["server", "--data", &twin, "--exit-with", &me];
    args.extend(["--cluster", "127.0.0.1:0", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    args.extend(["--grpc", "127.0.0.1:0", "--zookeeper", "127.0.0.1:0"]);
    let said = quorate(&args);
    assert_eq!(said.code, 9, "{said:?}");
    args.push("--moved");
    // It has everything, so only that the other one is there speaks against it.
    let log = fs::File::create(cluster.place().join("twin.log")).expect("a log");
    let twin = command(&args).stdout(Stdio::null()).stderr(log).status().expect("it runs");
    let log = fs::read_to_string(cluster.place().join("twin.log")).expect("a log");
    assert_eq!(twin.code(), Some(9), "{log}");
    assert!(!log.contains("host_ready"), "{log}");
    write(&cluster, "x");
    must_read(&cluster, &[1, 2, 3], "x");
    assert!(cluster.is_running(3), "{}", cluster.said(3));
}

#[test]
fn a_removed_host_that_is_started_again_says_so_and_ends() {
    let mut cluster = Cluster::start("sync");
    write(&cluster, "w");
    let http = cluster.http(1);
    let node = node_at(&ring(&http), &cluster.cluster(3)).expect("it is on the ring");
    cluster.kill(&[3]);
    until("it is removed", || quorate(&["remove", &node, "--http", &http]).code == 0);
    let (began, starts) = (Instant::now(), 8);
    for _ in 0..starts {
        cluster.launch(3);
        assert_eq!(cluster.ended(3), Some(10), "{}", cluster.said(3));
        let said = cluster.said(3);
        assert!(said.contains("was removed from the cluster for good"), "{said}");
        assert!(said.contains("quorate rejoin --force --data"), "it says what to do: {said}");
        assert!(!said.contains("host_ready"), "{said}");
    }
    // Each start dials the others again and again; they log that at once at most, and then every
    // ten seconds.
    let most = 2 + began.elapsed().as_secs() / 10;
    for host in [1, 2] {
        let said = cluster.said(host);
        let is_of_it = |line: &&str| line.contains(&node) && line.contains("was removed");
        let lines = said.lines().filter(is_of_it).count() as u64;
        assert!(lines <= most, "{lines} lines of {starts} starts: {said}");
    }
    must_read(&cluster, &[1, 2], "w");
}
