//! Each command takes effect once, at all of its partitions or at none.

use super::cluster::{Cluster, client, done};
use super::letters::{FIRST, Letters, copy, read, write};
use crate::multicast::RingId;
use crate::smr::partitioned::{
    Addressed, Answered, CommandId, OUTSTANDING_MAX, Partitions, may_order,
};
use std::vec::Vec;

#[test]
fn a_command_that_comes_again_is_answered_the_same_and_not_executed() {
    let mut cluster = Cluster::new(2, 2);
    let one = client(1, 1);
    let both = cluster.command(one, &[copy("a first", "b"), write("a first", 1)]);
    let alone = cluster.command(one, &[copy("a first", "a"), write("a first", 2)]);
    for command in [&both, &alone, &both, &alone] {
        cluster.decide(command.clone());
        cluster.level();
        cluster.settle();
    }
    assert_eq!(cluster.output(both.id), Some(done(&[FIRST])));
    assert_eq!(cluster.output(alone.id), Some(done(&[1])));
    assert_eq!(cluster.answers.len(), 2 * (2 * 2 + 2), "each time they are answered");
    assert_eq!(cluster.number((1, 2), "b"), Some(FIRST));
    assert_eq!(cluster.number((0, 2), "a first"), Some(2));
}

#[test]
fn commands_of_a_client_are_executed_in_any_order_of_their_numbers() {
    let mut cluster = Cluster::new(2, 1);
    let commands = [(); 5].map(|()| cluster.command(client(1, 1), &[copy("a", "b")]));
    for at in [3, 0, 4, 1, 0, 2] {
        cluster.decide(commands[at].clone());
    }
    cluster.level();
    cluster.settle();
    assert!(commands.iter().all(|it| cluster.output(it.id) == Some(done(&[0]))));
}

#[test]
fn what_a_client_has_is_forgotten_and_not_executed_again() {
    let mut cluster = Cluster::new(1, 1);
    let one = client(1, 1);
    let first = cluster.command(one, &[write("a", 1)]);
    let second = cluster.command(one, &[write("a", 2)]);
    let mut third = cluster.command(one, &[write("a", 3)]);
    third.acked = 1;
    [&first, &second, &third].into_iter().for_each(|it| _ = cluster.decide(it.clone()));
    cluster.settle();
    cluster.answers.clear();
    cluster.decide(first.clone());
    cluster.decide(second.clone());
    cluster.settle();
    assert_eq!((cluster.output(first.id), cluster.output(second.id)), (None, Some(done(&[]))));
    assert_eq!(cluster.number((0, 1), "a"), Some(3));
}

#[test]
fn a_client_has_so_many_commands_in_hand_and_no_more() {
    let mut cluster = Cluster::new(2, 1);
    let mut far = cluster.command(client(1, 1), &[copy("a first", "b")]);
    far.id.number = OUTSTANDING_MAX + 2;
    far.acked = 1;
    let mut early = far.clone();
    early.acked = 0;
    early.id = CommandId { client: client(2, 1), number: OUTSTANDING_MAX + 1 };
    let may = |it: &Addressed<Letters>| may_order(RingId::ALL, &Vec::from([it.clone().into()]), 2);
    assert!(!may(&early) && !may(&far), "they are one too far above what the clients have");
    far.acked = 2;
    assert!(may(&far));
    cluster.decide(far.clone());
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(far.id), Some(done(&[FIRST])));
}

#[test]
fn what_a_client_says_to_have_in_a_command_that_comes_again_is_heard() {
    let mut cluster = Cluster::new(1, 1);
    let one = client(1, 1);
    let first = cluster.command(one, &[write("a", 1)]);
    let mut second = cluster.command(one, &[write("a", 2)]);
    cluster.decide(first.clone());
    cluster.decide(second.clone());
    second.acked = 1;
    cluster.decide(second.clone());
    cluster.settle();
    assert_eq!(cluster.answers.len(), 3);
    cluster.decide(first.clone());
    cluster.settle();
    assert_eq!(cluster.answers.len(), 3, "the client has that answer, so it is forgotten");
    assert_eq!(cluster.number((0, 1), "a"), Some(2));
}

#[test]
fn what_one_partition_refuses_none_executes() {
    let mut cluster = Cluster::new(2, 2);
    let (old, new) = (client(1, 1), client(1, 2));
    // The first partition knows of the later start, and the second does not.
    let later = cluster.command(new, &[write("a", 5)]);
    cluster.decide(later.clone());
    let late = cluster.command(old, &[read("b first"), copy("a first", "b")]);
    cluster.level();
    cluster.decide(late.clone());
    cluster.level();
    let next = cluster.ask(&[read("b"), read("a")]);
    cluster.level();
    cluster.settle();
    cluster.period();
    assert_eq!((cluster.output(late.id), cluster.number((1, 1), "b")), (None, None));
    assert_eq!(cluster.output(next), Some(done(&[0, 5])), "nothing is stuck behind it");
}

#[test]
fn a_command_that_is_sent_again_to_others_is_executed_by_none_of_them() {
    let mut cluster = Cluster::new(3, 1);
    let mut command = cluster.command(client(1, 1), &[write("b", 1)]);
    command.destinations = Partitions::all(2);
    let id = cluster.decide(command.clone());
    command.destinations = cluster.to_all();
    cluster.decide(command);
    let next = cluster.ask(&[read("b"), read("c")]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.answer(id).into_keys().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(cluster.output(id), Some(done(&[])));
    assert_eq!(cluster.output(next), Some(Answered::Done(Vec::from([1, 0]))));
}
