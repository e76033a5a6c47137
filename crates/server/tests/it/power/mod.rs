//! Hosts whose machines all lose power: what was not synced is gone, and what was acknowledged
//! is there.

mod disk;

use crate::support::cluster::Cluster;
use crate::support::load::{Load, Recorded};
use disk::{Disk, Unsynced};
use quorate_kernel::rng::Rng;

/// How many operations must be answered before and after each loss of power.
const SOME: usize = 300;

/// Clients read and write while all hosts lose power twice: first nothing that was not synced is
/// left, then random parts of it. Before the last loss, syncs of what `lie` names do nothing.
fn harmed(engine: &str, lie: Option<&str>) -> Recorded {
    let keyspace = format!("default={engine}");
    let mut cluster = Cluster::create_with("sync", &["--keyspace", &keyspace]);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    load.more(SOME);
    for unsynced in [Unsynced::Some(Rng::new(1)), Unsynced::Lost] {
        if let (Unsynced::Lost, Some(about)) = (&unsynced, lie) {
            disk.lie(about);
            load.more(SOME);
        }
        cluster.kill(&[1, 2, 3]);
        println!("{} files and directories lost something", disk.lose_power(unsynced));
        cluster.start_all();
        load.more(SOME);
    }
    load.finish(&[1, 2, 3])
}

#[test]
fn all_hosts_that_lose_power_lose_nothing_that_was_acknowledged() {
    harmed("linearizable", None).must_hold(3 * SOME);
}

#[test]
fn registers_with_transactions_outlive_a_loss_of_power_of_all_hosts() {
    harmed("serializable", None).must_hold(3 * SOME);
}

#[test]
fn the_judges_condemn_hosts_whose_syncs_do_nothing() {
    let report = harmed("linearizable", Some("")).judged();
    assert!(!report.verdict().is_holding(), "acknowledged writes are gone: {report}");
}
