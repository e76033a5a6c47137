//! A replica goes on behind what it has stored, and another one from its snapshot.

use super::cluster::{Cluster, client, done};
use super::letters::{FIRST, copy, read, write};
use crate::multicast::{Decision, RingId};
use crate::smr::partitioned::{Ordered, PartitionId, Snapshot};
use std::vec::Vec;

fn first(partition: u8) -> Snapshot<super::letters::Letters> {
    Snapshot::begin(PartitionId(partition), 2)
}

/// Two partitions of two replicas; a few commands, of which all are executed.
fn busy() -> Cluster {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.ask(&[copy("b first", "a"), write("b first", 2)]);
    cluster.ask(&[copy("a first", "b"), copy("b first", "a")]);
    cluster.level();
    cluster.settle();
    cluster
}

#[test]
fn what_was_kept_is_enough_to_execute_all_again() {
    let mut cluster = busy();
    // All that others kept for it is released.
    cluster.period();
    assert!(cluster.replicas.values().all(|it| it.outbox_count() == 0));
    let before = cluster.replica((1, 2)).snapshot();
    cluster.resume((1, 2), first(1));
    cluster.cuts = (0..2).flat_map(|from| [(from, 1, 1), (from, 2, 1)]).collect();
    cluster.period();
    let after = cluster.replica((1, 2)).snapshot();
    assert!(after.is_as(&before), "it has heard nobody, and is as it was");
}

#[test]
fn what_was_not_kept_is_asked_for_as_it_was_not_released() {
    let mut cluster = busy();
    let before = cluster.replica((1, 2)).snapshot();
    // It ends before anything that it kept is durable, and before it has released anything.
    cluster.kept.remove(&(1, 2));
    cluster.resume((1, 2), first(1));
    cluster.settle();
    assert!(!cluster.replica((1, 2)).snapshot().is_as(&before));
    (0..3).for_each(|_| cluster.period());
    assert!(cluster.replica((1, 2)).snapshot().is_as(&before));
}

#[test]
fn all_replicas_of_all_partitions_execute_all_again() {
    let mut cluster = busy();
    let before = cluster.replica((0, 1)).snapshot();
    cluster.kept.clear();
    for at in [(0, 1), (0, 2), (1, 1), (1, 2)] {
        cluster.resume(at, first(at.0));
    }
    // None is designated: all that is sent is asked for, an object or a signal a period.
    let is_as_before = (0..20).any(|_| {
        cluster.period();
        cluster.replica((0, 1)).snapshot().is_as(&before)
    });
    assert!(is_as_before && cluster.replica((0, 2)).snapshot().is_as(&before));
}

#[test]
fn a_snapshot_has_what_others_may_ask_for_yet() {
    let mut cluster = Cluster::new(2, 1);
    cluster.cuts = [(0, 1, 1)].into();
    let id = cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.level();
    cluster.settle();
    let snapshot = cluster.replica((0, 1)).snapshot();
    assert!(snapshot.passed().is_some(), "the first partition has executed it");
    cluster.kept.clear();
    cluster.resume((0, 1), snapshot);
    cluster.cuts.clear();
    cluster.period();
    assert_eq!(
        (cluster.output(id), cluster.number((1, 1), "b")),
        (Some(done(&[FIRST])), Some(FIRST))
    );
}

#[test]
fn a_snapshot_may_be_of_the_middle_of_a_decision_and_of_a_command() {
    let mut cluster = Cluster::new(2, 2);
    let one = client(1, 1);
    let commands = [
        cluster.command(one, &[copy("a first", "b"), write("a first", 1)]),
        cluster.command(one, &[copy("b first", "a"), write("b first", 2)]),
        cluster.command(one, &[copy("a", "b"), write("b first", 3)]),
    ];
    let batch = Vec::from(commands.clone().map(Ordered::from));
    cluster.logs.entry(RingId::ALL).or_default().push(Decision::Commands(batch));
    cluster.level();
    // The first partition hears nothing: it has sent what the first command reads, and waits in
    // the second one for what that reads.
    cluster.cuts = [(1, 1, 0), (1, 2, 0)].into();
    cluster.settle();
    let in_the_first = cluster.replica((0, 1)).snapshot();
    assert_eq!(in_the_first.passed(), None);
    cluster.cuts.clear();
    cluster.resume((0, 2), in_the_first);
    (0..4).for_each(|_| cluster.period());
    let outputs = [done(&[FIRST]), done(&[FIRST]), done(&[FIRST])];
    let answers = commands.map(|it| cluster.output(it.id).expect("it is answered"));
    assert_eq!(answers, outputs);
    let (one, other) = (cluster.replica((0, 1)).snapshot(), cluster.replica((0, 2)).snapshot());
    assert!(one.is_as(&other) && one.passed().is_some());
    let id = cluster.ask(&[read("b"), read("a first")]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[FIRST, 1])));
}
