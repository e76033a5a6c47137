//! Logs that have used their segments again: behind the torn end lie groups of an earlier use,
//! which do not come back.

use super::disk::{Disk, Unsynced};
use super::{SOME, kill_unsynced, start_and_read};
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::logged::newest;
use quorate_kernel::rng::Rng;

/// So long values fill the segments of a test's hosts within seconds.
const VALUE_BYTES: usize = 64 << 10;

/// Whether older groups lie behind the newest one of each host.
fn are_used_again(cluster: &Cluster) -> bool {
    cluster.hosts().iter().all(|&host| newest(cluster.data(host)).is_before_older())
}

#[test]
fn groups_of_an_earlier_use_of_a_segment_do_not_come_back() {
    let mut cluster = Cluster::create("sync");
    // Memtables, too, are full so soon that segments are covered by tables.
    cluster.set("store.memtable=1MiB");
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let load = Load::heavy(cluster.doors(), VALUE_BYTES);
    let mut rng = Rng::new(3);
    for is_all_lost in [false, true] {
        until("the segments of all hosts are used again", || are_used_again(&cluster));
        // Hosts go on until they are killed, and may have come to a segment's end.
        until("power is lost while they are", || {
            load.more(SOME / 10);
            kill_unsynced(&mut cluster, &disk);
            let is_met = are_used_again(&cluster);
            let some = Unsynced::Some(Rng::new(rng.next()));
            let unsynced = if is_all_lost { Unsynced::Lost } else { some };
            let lost = start_and_read(&load, &mut cluster, &mut disk, unsynced);
            is_met && lost.segments > 0
        });
        load.more(SOME / 3);
    }
    kill_unsynced(&mut cluster, &disk);
    start_and_read(&load, &mut cluster, &mut disk, Unsynced::Lost);
    load.finish(&[1, 2, 3]).must_hold(SOME);
}
