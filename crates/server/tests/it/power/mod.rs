//! Hosts whose machines lose power: what was not synced is gone, and what was acknowledged is
//! there.
//!
//! | file | what loses power |
//! |---|---|
//! | `registers.rs` | all hosts, one after the other, and one that is alone |
//! | `periodic.rs` | all hosts, where what was acknowledged last may be lost |
//! | `recycled.rs` | all hosts, whose logs have used their segments again |
//! | `siblings.rs`, `places.rs`, `trees.rs` | all hosts, of engines that have judges of their own |
//! | `orders.rs` | all hosts, right after operators' orders |
//! | `birth.rs` | who makes a cluster |
//!
//! `disk.rs` is the directory that loses what was not synced, `shim.c` what watches over it, and
//! `line.rs` a connection over which clients in threads ask.

mod birth;
mod disk;
mod line;
mod orders;
mod periodic;
mod places;
mod recycled;
mod registers;
mod siblings;
mod trees;

use crate::support::cluster::Cluster;
use disk::{Disk, Unsynced};
use quorate_kernel::rng::Rng;

/// How many operations must be answered before and after each loss of power.
const SOME: usize = 300;

/// All hosts of a cluster lose power, and are started again.
fn lose_power(cluster: &mut Cluster, disk: &mut Disk, unsynced: Unsynced) {
    cluster.kill(&cluster.hosts());
    println!("{} files and directories lost something", disk.lose_power(unsynced));
    cluster.start_all();
}

/// The losses that a test goes through: first random parts of what was not synced are left, then
/// nothing of it.
fn both() -> [Unsynced; 2] {
    [Unsynced::Some(Rng::new(1)), Unsynced::Lost]
}
