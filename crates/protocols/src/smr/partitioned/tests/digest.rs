//! Replicas of a partition that differ halt.

use super::cluster::{A, Cluster};
use super::letters::{Step, WRONG, copy, write};
use crate::multicast::RingId;
use crate::smr::partitioned::{COMPARED_EVERY, PartitionId, Snapshot};
use crate::vsr::Op;
use std::vec::Vec;

/// One partition of three replicas, and one less command than they compare after.
fn nearly() -> Cluster {
    let mut cluster = Cluster::new(1, 3);
    for at in 1..COMPARED_EVERY {
        cluster.ask(&[write("a", at)]);
    }
    cluster
}

#[test]
fn a_machine_that_answers_differently_halts() {
    let mut cluster = nearly();
    let last = cluster.ask(&[Step::Differs, write("a", 0)]);
    cluster.learn((0, 1));
    cluster.learn((0, 2));
    WRONG.set(1);
    cluster.learn((0, 3));
    cluster.period();
    let halted: Vec<_> = cluster.halted.iter().map(|(at, _)| at.1).collect();
    assert!(halted.contains(&3) && halted.len() >= 2, "{halted:?}");
    for (_, differs) in &cluster.halted {
        assert_eq!(differs.own.executed, COMPARED_EVERY);
        assert_ne!(differs.own.hash, differs.other.hash);
    }
    let answered = cluster.answers.iter().filter(|(_, id, _)| *id == last).count();
    assert_eq!(answered, 3, "that was before anybody could know");
    // Who has halted does nothing more.
    let next = cluster.ask(&[write("a", 7)]);
    let op = Op(cluster.logs[&A.ring()].len() as u64);
    let decision = cluster.logs[&A.ring()].last().cloned().expect("it is decided");
    assert!(!cluster.replica((0, 3)).learn(A.ring(), op, decision));
    cluster.replica((0, 3)).on_period();
    cluster.effects((0, 3));
    assert!(cluster.replica((0, 3)).is_halted() && cluster.replica((0, 3)).copy().is_none());
    assert!(!cluster.answers.iter().any(|(_, id, _)| *id == next));
}

#[test]
fn a_machine_that_writes_differently_halts_also_when_it_comes_to_it_later() {
    let mut cluster = nearly();
    cluster.ask(&[write("a", 0)]);
    // One of the objects of a replica is not what it was.
    let mut damaged = Snapshot::begin(PartitionId(0), 1);
    damaged.state.objects.insert(super::letters::key("a first"), 8);
    cluster.resume((0, 3), damaged);
    cluster.learn((0, 1));
    cluster.replica((0, 1)).on_period();
    cluster.effects((0, 1));
    while let Some((_, to, message)) = cluster.wire.pop_front() {
        cluster.replica(to).on_message(message);
    }
    assert!(cluster.halted.is_empty(), "they have not come to it");
    cluster.learn((0, 2));
    assert!(cluster.halted.is_empty());
    cluster.learn((0, 3));
    assert_eq!(cluster.halted.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [(0, 3)]);
    let answers = cluster.answers.len() as u64;
    assert_eq!(answers, 2 * COMPARED_EVERY, "no answer leaves it that was not taken before");
}

#[test]
fn replicas_that_are_alike_go_on() {
    let mut cluster = Cluster::new(2, 2);
    for at in 0..COMPARED_EVERY {
        if at.is_multiple_of(100) {
            cluster.ask(&[copy("a", "b"), write("a", at), Step::Remove("b gone".into())]);
        }
        cluster.ask(&[write("a", at), write("a gone", at), Step::Remove("a gone".into())]);
    }
    cluster.level();
    cluster.settle();
    cluster.period();
    // One goes on from what it has stored, and makes the hash of it anew.
    let stored = cluster.replica((0, 1)).snapshot();
    cluster.resume((0, 1), stored);
    for at in 0..COMPARED_EVERY {
        cluster.ask(&[copy("a", "a copy"), write("a", at)]);
    }
    cluster.level();
    cluster.settle();
    (0..2).for_each(|_| cluster.period());
    let executed = cluster.replica((0, 2)).snapshot().state.executed.count;
    assert_eq!((executed, cluster.halted.len()), (2 * COMPARED_EVERY + 10, 0));
    assert!(cluster.logs.contains_key(&RingId::ALL));
}
