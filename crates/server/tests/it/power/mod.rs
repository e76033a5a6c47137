//! Hosts whose machines lose power: what was not synced is gone, and what was acknowledged is
//! there.
//!
//! | file | what loses power |
//! |---|---|
//! | `registers.rs` | all hosts, one after the other, and one that is alone |
//! | `periodic.rs` | all hosts, where what was acknowledged last may be lost |
//! | `recycled.rs` | all hosts, whose logs have used their segments again |
//! | `covered.rs` | one that is alone, and writes tables |
//! | `restarted.rs` | one that was killed and has started again |
//! | `siblings.rs`, `places.rs`, `trees.rs` | all hosts, of engines that have judges of their own |
//! | `orders.rs` | all hosts, right after operators' orders |
//! | `birth.rs` | who makes a cluster |
//!
//! `disk.rs` is the directory that loses what was not synced, `shim.c` what watches over it, and
//! `line.rs` a connection over which clients in threads ask.

mod birth;
mod covered;
mod disk;
mod line;
mod orders;
mod periodic;
mod places;
mod recycled;
mod registers;
mod restarted;
mod siblings;
mod trees;

use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use disk::{Disk, Lost, Unsynced};
use quorate_kernel::rng::Rng;

/// How many operations must be answered before and after each loss of power.
const SOME: usize = 300;
/// How often power is lost at most until something is lost with it.
const LOSSES_MAX: u64 = 20;

/// All hosts of a cluster lose power, and are started again.
fn lose_power(cluster: &mut Cluster, disk: &mut Disk, unsynced: Unsynced) -> Lost {
    cluster.kill(&cluster.hosts());
    start_without(cluster, disk, unsynced)
}

/// The same under clients, once a host has something that no sync that has ended covers.
fn lose_unsynced(cluster: &mut Cluster, disk: &mut Disk, unsynced: Unsynced) -> Lost {
    kill_unsynced(cluster, disk);
    start_without(cluster, disk, unsynced)
}

/// Kills all hosts once one has something that no sync that has ended covers.
fn kill_unsynced(cluster: &mut Cluster, disk: &Disk) {
    until("a host has something to sync", || {
        let logs = cluster.hosts().into_iter().map(|host| cluster.data(host).join("log"));
        logs.map(|log| disk.unsynced_since(&log)).any(|since| since.is_some())
    });
    cluster.kill(&cluster.hosts());
}

/// Starts all hosts, which were killed, without what a loss of power takes.
fn start_without(cluster: &mut Cluster, disk: &mut Disk, unsynced: Unsynced) -> Lost {
    let lost = disk.lose_power(unsynced);
    println!("{lost:?}");
    cluster.start_all();
    lost
}

/// The same under the clients of a load. They write nothing before each key was read on each host:
/// a write that is missing would else be covered by the next one before anybody misses it.
fn start_and_read(load: &Load, cluster: &mut Cluster, disk: &mut Disk, unsynced: Unsynced) -> Lost {
    load.only_read(true);
    let lost = start_without(cluster, disk, unsynced);
    load.read_all(&cluster.hosts());
    load.only_read(false);
    lost
}

/// The losses that a test goes through: first random parts of what was not synced are left, then
/// nothing of it. A sync may end right before its host is killed, and all of it may be left by
/// chance: if no log lacks anything, power is lost once more.
fn lose_twice(mut lose: impl FnMut(Unsynced) -> Lost) {
    for is_all_lost in [false, true] {
        let unsynced = |seed| match is_all_lost {
            true => Unsynced::Lost,
            false => Unsynced::Some(Rng::new(seed)),
        };
        let is_met = (1..=LOSSES_MAX).any(|seed| lose(unsynced(seed)).segments > 0);
        assert!(is_met, "no log ever had something that was not synced");
    }
}
