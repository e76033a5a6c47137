//! What a command sees, what may be put into a log, and sets of partitions.

use super::cluster::{A, B, Cluster, client};
use super::letters::{Command, Letters, Step, key};
use crate::multicast::RingId;
use crate::smr::COMMANDS_MAX;
use crate::smr::partitioned::execution::{Here, Lacks};
use crate::smr::partitioned::{
    Addressed, BUCKETS, Bucket, CommandId, Execution, Ordered, PARTITIONS_MAX, PartitionId,
    Partitions, Placement, Switch, Variables, may_order,
};
use std::collections::BTreeMap;
use std::vec::Vec;

fn here(placement: &Placement, destinations: Partitions) -> Here<'_> {
    Here { partition: A, placement, destinations }
}

#[test]
fn own_objects_others_that_have_come_and_what_it_wrote_itself_are_read() {
    let objects = BTreeMap::from([(key("a"), 1), (key("ab"), 2)]);
    let received = Variables::<Letters>::from([(key("b"), Some(3)), (key("bb"), None)]);
    let placement = Placement::even(3);
    let mut on =
        Execution::<Letters>::new(here(&placement, Partitions::all(3)), &objects, received);
    let mut get = |name: &str| on.get(name.as_bytes()).map(Option::<&u64>::copied).ok();
    assert_eq!([get("a"), get("ax")], [Some(Some(1)), Some(None)]);
    assert_eq!([get("b"), get("bb")], [Some(Some(3)), Some(None)], "absent is an answer too");
    on.put(key("ab"), 9).expect("it is of a destination");
    on.put(key("c"), 9).expect("what is not here may be written");
    on.remove(key("b")).expect("it is of a destination");
    let mut get = |name: &str| on.get(name.as_bytes()).map(Option::<&u64>::copied).ok();
    assert_eq!([get("ab"), get("c"), get("b")], [Some(Some(9)), Some(Some(9)), Some(None)]);
    let left = on.left();
    assert_eq!(left.read.into_iter().collect::<Vec<_>>(), [key("a"), key("ax")]);
    assert_eq!((left.written.len(), left.lacks), (3, None));
}

#[test]
fn the_first_thing_that_a_command_lacks_ends_it() {
    let objects = BTreeMap::new();
    let two: Partitions = [A, B].into_iter().collect();
    let placement = Placement::even(3);
    let two = here(&placement, two);
    let mut on = Execution::<Letters>::new(two, &objects, Variables::<Letters>::new());
    assert!(on.get(b"b").is_err() && on.get(b"c").is_err());
    assert_eq!(on.left().lacks, Some(Lacks::Object(key("b"))));
    let mut on = Execution::<Letters>::new(two, &objects, Variables::<Letters>::new());
    assert!(on.put(key("c"), 1).is_err() && on.remove(key("b")).is_ok());
    assert_eq!(on.left().lacks, Some(Lacks::Outside(PartitionId(2))));
}

#[test]
fn what_is_discarded_leaves_nothing() {
    let objects = BTreeMap::from([(key("a"), 1)]);
    let placement = Placement::even(3);
    let all = here(&placement, Partitions::all(3));
    let mut on = Execution::<Letters>::new(all, &objects, Variables::<Letters>::new());
    on.put(key("a"), 2).expect("it is of a destination");
    on.discard();
    assert_eq!(on.get(b"a").expect("it is here"), Some(&1));
    assert!(on.left().written.is_empty());
}

#[test]
fn sets_of_partitions() {
    let some: Partitions = [PartitionId(15), A, PartitionId(3), A].into_iter().collect();
    assert_eq!(some.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 3, 15]);
    assert_eq!(some.without(A).map(|it| it.0).collect::<Vec<_>>(), [3, 15]);
    assert!(some.contains(A) && !some.contains(B) && !some.contains(PartitionId(16)));
    assert_eq!(Partitions::all(PARTITIONS_MAX).count(), 16);
    assert_eq!((some.ring(), Partitions::all(0).ring()), (Some(RingId::ALL), None));
    assert_eq!(Partitions::all(1).ring(), Some(A.ring()));
}

#[test]
fn a_log_takes_commands_of_its_partitions_only() {
    let command = |destinations: Partitions, number, steps: &[Step]| Addressed::<Letters> {
        id: CommandId { client: client(1, 1), number },
        acked: 0,
        version: 0,
        destinations,
        command: Command { steps: steps.to_vec(), early: false },
    };
    let one = |ring, command: Addressed<Letters>| may_order(ring, &Vec::from([command.into()]), 2);
    let (all, alone) = (Partitions::all(2), Partitions::all(1));
    assert!(one(A.ring(), command(alone, 1, &[])) && one(RingId::ALL, command(all, 1, &[])));
    assert!(!one(B.ring(), command(alone, 1, &[])) && !one(RingId::ALL, command(alone, 1, &[])));
    assert!(!one(A.ring(), command(all, 1, &[])));
    assert!(!one(RingId::ALL, command(Partitions::all(3), 1, &[])), "there are two partitions");
    assert!(!one(RingId::ALL, command(Partitions::all(0), 1, &[])));
    assert!(!one(A.ring(), command(alone, 0, &[])), "numbers begin with 1");
    assert!(!one(A.ring(), command(alone, 1, &[Step::Nonsense])));
    let has = |acked| one(A.ring(), Addressed { acked, ..command(alone, 7, &[]) });
    assert!(has(6) && !has(7) && !has(u64::MAX), "nobody has the answer of what it asks");
    let many = |count| std::vec![Ordered::Command(command(alone, 1, &[])); count];
    let switch = |bucket, to| {
        let buckets = [(Bucket(bucket), PartitionId(to))].into();
        Vec::from([Ordered::<Letters>::Switch(Switch { version: 1, buckets })])
    };
    assert!(may_order(RingId::ALL, &switch(0, 1), 2) && !may_order(A.ring(), &switch(0, 1), 2));
    assert!(!may_order(RingId::ALL, &switch(BUCKETS, 1), 2));
    assert!(!may_order(RingId::ALL, &switch(0, 2), 2), "there are two partitions");
    assert!(may_order(A.ring(), &many(COMMANDS_MAX), 2));
    assert!(!may_order(A.ring(), &many(COMMANDS_MAX + 1), 2));
}

#[test]
fn a_machine_of_one_partition_has_one_ring_and_waits_for_nobody() {
    let mut cluster = Cluster::new(1, 3);
    let id = cluster.ask(&[Step::Write("b".into(), 1), Step::Read("a first".into())]);
    cluster.settle();
    assert_eq!(cluster.output(id), Some(super::cluster::done(&[super::letters::FIRST])));
    assert!((1..=3).all(|at| cluster.number((0, at), "b") == Some(1)));
    assert_eq!(cluster.replica((0, 1)).questions().count(), 0);
}
