//! Hosts that are killed, start again, and only then lose power: what they have found of their
//! logs, and shown since, is there.

use super::disk::{Disk, Unsynced};
use super::{LOSSES_MAX, SOME};
use crate::support::cluster::Cluster;
use crate::support::load::Load;

#[test]
fn what_a_host_found_when_it_started_outlives_a_loss_of_power() {
    let more = ["--keyspace", "default=linearizable"];
    let mut cluster = Cluster::create_of(1, "sync", &more);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::start(cluster.doors());
    let is_met = (1..=LOSSES_MAX).any(|_| {
        load.more(SOME / 2);
        cluster.kill(&[1]);
        let is_unsynced = disk.unsynced_since(&cluster.data(1).join("log")).is_some();
        // Nothing is written any more: what the host syncs it has found.
        load.only_read(true);
        cluster.start_all();
        load.read_all(&[1]);
        cluster.kill(&[1]);
        println!("unsynced {is_unsynced}, then {:?}", disk.lose_power(Unsynced::Lost));
        cluster.start_all();
        load.read_all(&[1]);
        load.only_read(false);
        is_unsynced
    });
    assert!(is_met, "the host was never killed within a sync");
    load.finish(&[1]).must_hold(SOME / 2);
}
