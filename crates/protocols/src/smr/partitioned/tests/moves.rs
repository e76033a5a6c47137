//! Objects that move to other partitions, and partitions that come and go.

use super::cluster::{A, B, C, Cluster, client, done};
use super::letters::{FIRST, copy, read, write};
use crate::multicast::RingId;
use crate::smr::partitioned::{
    Answered, Bucket, COMPARED_EVERY, Layout, PartitionId, Placement, Snapshot, Switch,
};
use std::vec::Vec;

fn go(cluster: &mut Cluster) {
    cluster.level();
    cluster.settle();
}

#[test]
fn what_moves_is_at_the_other_partition_then_and_nowhere_else() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[write("a", 5), write("c", 6)]);
    go(&mut cluster);
    cluster.switch(&[(b'a', B)]);
    let before = cluster.logs[&B.ring()].len();
    let id = cluster.ask(&[copy("a", "b"), read("a first")]);
    assert_eq!(cluster.logs[&B.ring()].len(), before + 1, "it is of the second partition alone");
    go(&mut cluster);
    assert_eq!(cluster.output(id), Some(done(&[5, FIRST])));
    for at in 1..=2 {
        assert_eq!(
            (cluster.number((0, at), "a"), cluster.number((0, at), "a first")),
            (None, None)
        );
        assert_eq!(
            (cluster.number((1, at), "a"), cluster.number((0, at), "c")),
            (Some(5), Some(6))
        );
    }
    let both = cluster.ask(&[copy("a", "c"), copy("c first", "a")]);
    go(&mut cluster);
    assert_eq!(cluster.output(both), Some(done(&[5, FIRST])));
    cluster.switch(&[(b'a', A), (b'b', A)]);
    let back = cluster.ask(&[read("a"), read("b"), read("c")]);
    go(&mut cluster);
    assert_eq!(cluster.output(back), Some(done(&[FIRST, 5, 5])));
}

#[test]
fn a_command_that_was_addressed_before_does_nothing_at_any_of_its_partitions() {
    let mut cluster = Cluster::new(3, 2);
    let one = client(1, 1);
    let alone = cluster.command(one, &[write("a", 1)]);
    let both = cluster.command(one, &[write("a", 2), write("c", 2)]);
    let before = cluster.command(one, &[write("b", 3), write("c", 3)]);
    cluster.decide(before.clone());
    cluster.switch(&[(b'a', B)]);
    for command in [&alone, &both, &before] {
        cluster.level();
        cluster.decide(command.clone());
    }
    go(&mut cluster);
    assert_eq!(cluster.output(alone.id), Some(Answered::Retry(1)));
    assert_eq!(cluster.output(both.id), Some(Answered::Retry(1)));
    assert_eq!(cluster.answer(both.id).len(), 2, "each of its partitions says so");
    assert_eq!(cluster.output(before.id), Some(done(&[])), "what was executed stays answered");
    let id = cluster.ask(&[read("a"), read("c")]);
    cluster.level();
    cluster.ask(&[write("a", 2)]);
    go(&mut cluster);
    assert_eq!(cluster.output(id), Some(done(&[0, 3])));
    assert_eq!(cluster.number((1, 1), "a"), Some(2));
    // Sent again it is not executed now either.
    cluster.decide(both.clone());
    go(&mut cluster);
    assert_eq!(cluster.output(both.id), Some(Answered::Retry(1)));
}

#[test]
fn of_two_switches_of_a_version_the_first_counts() {
    let mut cluster = Cluster::new(2, 1);
    let to = |of| Switch { version: 1, buckets: [(Bucket(0), of)].into() };
    cluster.decide_switch(Switch { version: 2, ..to(B) });
    cluster.decide_switch(to(B));
    cluster.decide_switch(to(A));
    go(&mut cluster);
    for at in [(0, 1), (1, 1)] {
        let placement = cluster.replica(at).placement();
        assert_eq!((placement.version(), placement.of(Bucket(0))), (1, B));
    }
    assert_eq!(cluster.number((1, 1), "a first"), Some(FIRST));
}

#[test]
fn an_idle_partition_comes_with_its_first_bucket_and_goes_with_its_last() {
    let mut cluster = Cluster::placed(3, 2, &Placement::even(2));
    assert_eq!(cluster.placement.partitions().count(), 2);
    cluster.ask(&[write("z", 4), write("c", 5), write("e", 1)]);
    go(&mut cluster);
    assert_eq!(cluster.number((2, 1), "z"), None);
    cluster.switch(&[(b'c', C)]);
    let id = cluster.ask(&[copy("z", "c")]);
    go(&mut cluster);
    assert_eq!(cluster.answer(id).into_keys().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((cluster.output(id), cluster.number((2, 2), "c")), (Some(done(&[4])), Some(4)));
    assert_eq!(cluster.number((2, 2), "z first"), Some(FIRST), "it has what all have");
    cluster.switch(&[(b'c', B)]);
    let id = cluster.ask(&[write("z", 8), read("c")]);
    go(&mut cluster);
    assert_eq!((cluster.output(id), cluster.answer(id).len()), (Some(done(&[4])), 2));
    assert!((1..=2).all(|at| cluster.replicas[&(2, at)].objects().is_empty()));
    // What all have was written meanwhile; it comes anew.
    cluster.switch(&[(b'e', C)]);
    let id = cluster.ask(&[read("z"), read("e")]);
    go(&mut cluster);
    assert_eq!((cluster.output(id), cluster.number((2, 1), "z")), (Some(done(&[8, 1])), Some(8)));
    assert!(cluster.replicas.values().all(|it| it.placement().version() == 3));
}

#[test]
fn a_new_partition_begins_where_another_is_in_the_ring_of_all() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[write("a", 5), write("b", 6)]);
    cluster.ask(&[write("z", 5)]);
    cluster.switch(&[(b'b', A)]);
    go(&mut cluster);
    (0..2).for_each(|_| cluster.period());
    let members = |of| (1..=2).map(move |at| super::cluster::node_id((of, at))).collect();
    cluster.layout = Layout::new((0..3).map(members).collect());
    for replica in cluster.replicas.values_mut() {
        replica.set_layout(cluster.layout.clone());
    }
    let donor = cluster.replica((0, 2)).snapshot();
    for at in 1..=2 {
        cluster.resume((2, at), donor.join(C).expect("no placement has it"));
    }
    cluster.replica((2, 1)).designate(true);
    cluster.switch(&[(b'a', C), (b'b', C)]);
    let id = cluster.ask(&[read("a"), copy("b", "a"), read("z")]);
    go(&mut cluster);
    (0..3).for_each(|_| cluster.period());
    assert_eq!(cluster.output(id), Some(done(&[5, 6, 5])));
    assert_eq!(cluster.number((2, 2), "a"), Some(6));
    assert!(cluster.replicas.values().all(|it| it.outbox_count() == 0));
}

#[test]
fn no_partition_begins_behind_the_switch_that_gave_it_something() {
    let mut cluster = Cluster::placed(3, 1, &Placement::even(2));
    let before = cluster.replica((0, 1)).snapshot();
    assert!(before.join(C).is_some() && before.join(A).is_none() && before.join(B).is_none());
    cluster.switch(&[(b'a', C)]);
    go(&mut cluster);
    assert!(cluster.replica((0, 1)).snapshot().join(C).is_none(), "it would not have the bucket");
    cluster.switch(&[(b'a', B)]);
    go(&mut cluster);
    assert!(cluster.replica((0, 1)).snapshot().join(C).is_some(), "it has nothing any more");
}

#[test]
fn a_command_is_executed_however_many_buckets_move_that_it_does_not_touch() {
    let mut cluster = Cluster::new(3, 2);
    let one = client(1, 1);
    for round in 0..10 {
        let alone = cluster.command(one, &[write("c", round)]);
        let both = cluster.command(one, &[copy("c", "b")]);
        cluster.switch(&[(b'a', if round % 2 == 0 { B } else { C })]);
        for command in [&alone, &both] {
            cluster.decide(command.clone());
            cluster.level();
        }
        go(&mut cluster);
        assert_eq!(cluster.output(alone.id), Some(done(&[])));
        assert_eq!(cluster.output(both.id), Some(done(&[round])));
        assert_eq!(cluster.number((1, 2), "b"), Some(round));
    }
    // Where it is sent to more than it needs it is there as well.
    let mut wide = cluster.command(one, &[write("c", 77)]);
    wide.destinations = cluster.to_all();
    cluster.switch(&[(b'a', A)]);
    cluster.decide(wide.clone());
    go(&mut cluster);
    assert_eq!((cluster.output(wide.id), cluster.number((2, 1), "c")), (Some(done(&[])), Some(77)));
}

#[test]
fn a_switch_is_executed_again_after_a_restart_and_asked_for_if_it_was_lost() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[write("a", 5), write("b", 6)]);
    cluster.switch(&[(b'a', B)]);
    cluster.cuts = [(0, 1, 1)].into();
    go(&mut cluster);
    assert_eq!(cluster.number((1, 1), "a"), None, "nothing of the first partition has come");
    cluster.cuts.clear();
    (0..2).for_each(|_| cluster.period());
    assert_eq!(cluster.number((1, 1), "a"), Some(5));
    let before = cluster.replica((1, 2)).snapshot();
    cluster.resume((1, 2), Snapshot::begin(PartitionId(1), 2));
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.period();
    assert!(cluster.replica((1, 2)).snapshot().is_as(&before), "what it has kept is enough");
}

#[test]
fn replicas_stay_alike_when_objects_move() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[write("a", 5), write("c", 6)]);
    cluster.switch(&[(b'a', B)]);
    for at in 0..COMPARED_EVERY {
        cluster.ask(&[write("a", at)]);
    }
    go(&mut cluster);
    let stored = cluster.replica((1, 2)).snapshot();
    cluster.resume((1, 2), stored);
    for at in 0..COMPARED_EVERY {
        cluster.ask(&[write("a", at)]);
    }
    go(&mut cluster);
    cluster.period();
    assert_eq!(cluster.halted, []);
    assert!(cluster.logs.contains_key(&RingId::ALL));
}
