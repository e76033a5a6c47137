//! Hosts killed, stopped and started again under load: nothing acknowledged is lost.

use crate::support::cluster::Cluster;
use crate::support::load::{Load, Recorded};
use quorate_check::history::Completion;
use quorate_kernel::operation::Operation;
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::path::Path;

/// How many operations must be answered before, during and after a fault.
const SOME: usize = 300;

fn harmed(durability: &str, harm: impl FnOnce(&mut Cluster, &Load)) -> (Cluster, Recorded) {
    let mut cluster = Cluster::start(durability);
    let load = Load::start(cluster.doors());
    load.more(SOME);
    harm(&mut cluster, &load);
    load.more(SOME);
    let recorded = load.finish(&[1, 2, 3]);
    (cluster, recorded)
}

fn kill_one_after_the_other(cluster: &mut Cluster, load: &Load) {
    for host in [2, 3, 1] {
        cluster.kill(&[host]);
        load.more(SOME);
        cluster.restart(host);
        load.more(SOME);
    }
}

#[test]
fn a_killed_host_loses_nothing_when_writes_are_synced() {
    harmed("sync", kill_one_after_the_other).1.must_hold(8 * SOME);
}

#[test]
fn a_killed_host_loses_nothing_when_writes_are_synced_now_and_then() {
    harmed("periodic=50ms", kill_one_after_the_other).1.must_hold(8 * SOME);
}

#[test]
fn a_killed_host_loses_nothing_when_writes_are_in_memory() {
    harmed("memory", kill_one_after_the_other).1.must_hold(8 * SOME);
}

#[test]
fn all_hosts_killed_at_once_lose_nothing_that_was_synced() {
    let (_cluster, recorded) = harmed("sync", |cluster, load| {
        for _ in 0..2 {
            cluster.kill(&[1, 2, 3]);
            cluster.start_all();
            load.more(SOME);
        }
    });
    recorded.must_hold(4 * SOME);
}

#[test]
fn a_stopped_host_is_done_without_and_comes_back() {
    let (_cluster, recorded) = harmed("sync", |cluster, load| {
        for host in [3, 1] {
            cluster.signal(host, Signal::STOP);
            load.more(SOME);
            cluster.signal(host, Signal::CONT);
            load.more(SOME);
        }
    });
    recorded.must_hold(6 * SOME);
}

#[test]
fn the_judges_condemn_a_history_from_which_a_write_is_dropped() {
    let (_cluster, recorded) = harmed("sync", |_, _| {});
    recorded.must_hold(2 * SOME);
    let is_final = |value: &Completion| matches!(value, Completion::Value(Some(_)));
    let last = recorded.records.iter().rfind(|record| is_final(&record.completion));
    let last = last.expect("a key has a value in the end").clone();

    let report = recorded.without_a_final_write().judged();
    assert!(report.order.is_violated(), "a value from nowhere: {report}");

    let mut forgotten = recorded.clone();
    for record in &mut forgotten.records {
        if record.invoked > recorded.healed && record.operation == last.operation {
            record.completion = Completion::Value(Some(bytes::Bytes::from_static(b"other")));
        }
    }
    assert!(!forgotten.judged().verdict().is_holding(), "another value in the end");
    for record in &mut forgotten.records {
        if record.invoked > recorded.healed && record.operation == last.operation {
            record.completion = Completion::Value(None);
        }
        let is_delete = matches!(record.operation, Operation::Delete { .. });
        if is_delete && record.operation.key() == last.operation.key() {
            record.completion = Completion::Refused;
        }
    }
    let durable = forgotten.judged().durable.expect("the durability was judged");
    assert!(durable.is_violated(), "an acknowledged write is gone: {durable}");
}

/// The library that shifts a process's clock, if this machine has it.
fn clock_shifter() -> Option<String> {
    let places = ["/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let library = |place| format!("{place}/faketime/libfaketime.so.1");
    places.into_iter().map(library).find(|path| Path::new(path).exists())
}

#[test]
fn a_clock_that_jumps_harms_nothing() {
    let Some(library) = clock_shifter() else {
        // Not by a macro, so that it is seen although the test passes.
        let line = b"skipped: libfaketime is not installed, so no clock is shifted\n";
        return std::io::stderr().write_all(line).expect("it is open");
    };
    let mut cluster = Cluster::start("sync");
    let load = Load::start(cluster.doors());
    load.more(SOME);
    cluster.kill(&[2]);
    let shift = cluster.place().join("shift");
    let jump = |text: &str| fs::write(&shift, text).expect("a temporary file");
    jump("-3000d\n");
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    cluster.set_environment(vec![
        variable("LD_PRELOAD", &library),
        variable("FAKETIME_TIMESTAMP_FILE", &shift.display().to_string()),
        variable("FAKETIME_NO_CACHE", "1"),
        variable("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]);
    cluster.restart(2);
    let year = |host| cluster.said(host)[..r#"{"ts":"2000"#.len()].to_owned();
    assert_ne!(year(1), year(2), "the clock is shifted");
    for to in ["+3000d\n", "-1d\n", "+0\n"] {
        load.more(SOME);
        jump(to);
    }
    load.more(SOME);
    assert!((1..=3).all(|host| cluster.is_running(host)));
    load.finish(&[1, 2, 3]).must_hold(5 * SOME);
}
