//! What partitions say to each other about a command, and what happens if it is not heard.

use super::cluster::{Cluster, client, done};
use super::letters::{FIRST, HUGE, Letters, Step, copy, read, write};
use crate::multicast::RingId;
use crate::smr::partitioned::{
    Answered, Effect, Layout, Message, PartitionId, Partitions, Variables,
};
use std::vec::Vec;

/// How often an object of a partition is sent in what is on its way.
fn sends(cluster: &Cluster, from: u8) -> usize {
    let of = cluster.wire.iter().filter(|(at, ..)| at.0 == from);
    let counts = of.map(|(.., message)| match message {
        Message::Signal(signal) => signal.variables.len(),
        _ => 0,
    });
    counts.sum()
}

#[test]
fn a_command_takes_effect_at_all_of_its_partitions() {
    let mut cluster = Cluster::new(3, 3);
    let id = cluster.ask(&[copy("a first", "b"), copy("b first", "a"), write("b first", 1)]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.answer(id).len(), 2, "both of its partitions answer, and no other");
    assert_eq!(cluster.output(id), Some(done(&[FIRST, FIRST])));
    for at in 1..=3 {
        assert_eq!(cluster.number((0, at), "a"), Some(FIRST));
        assert_eq!(cluster.number((1, at), "b"), Some(FIRST));
        assert_eq!(cluster.number((1, at), "b first"), Some(1));
        let elsewhere = [cluster.number((0, at), "b"), cluster.number((2, at), "a")];
        assert_eq!(elsewhere, [None, None], "what it wrote of others is theirs");
    }
}

#[test]
fn objects_that_are_known_early_leave_with_the_signal_and_once() {
    let mut cluster = Cluster::new(2, 1);
    let mut command = cluster.command(client(1, 1), &[read("a"), read("b"), read("a")]);
    command.command.early = true;
    cluster.decide(command);
    cluster.level();
    cluster.learn((0, 1));
    assert_eq!((cluster.wire.len(), sends(&cluster, 0)), (1, 1));
    cluster.settle();
    assert!(cluster.replicas.values().all(|it| it.snapshot().passed().is_some()));
}

#[test]
fn what_is_read_of_what_was_read_is_exchanged_as_it_is_found() {
    let mut cluster = Cluster::new(3, 2);
    cluster.ask(&[write("c7", 3), write("a3", 8)]);
    let follow = |name: &str, letter: &str| Step::Follow(name.into(), letter.into());
    let id = cluster.ask(&[follow("b first", "c"), copy("c7", "b"), follow("b", "a")]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[3, 3, 8])));
}

#[test]
fn what_is_written_before_it_is_read_is_sent_to_nobody() {
    let mut cluster = Cluster::new(2, 1);
    let id = cluster.ask(&[write("a", 4), copy("a", "b")]);
    cluster.level();
    cluster.learn((0, 1));
    assert_eq!(sends(&cluster, 0), 0);
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[4])));
}

#[test]
fn a_signal_that_is_lost_is_asked_for() {
    let mut cluster = Cluster::new(2, 2);
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    let id = cluster.ask(&[copy("a first", "b")]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.answer(id).len(), 1, "the second partition has heard nothing");
    // The designated replica is gone for good; what the other one has is as good.
    cluster.replicas.remove(&(0, 1));
    cluster.cuts.clear();
    cluster.period();
    assert_eq!(cluster.answer(id).len(), 2);
    assert_eq!(cluster.number((1, 2), "b"), Some(FIRST));
}

#[test]
fn an_object_is_sent_as_the_command_found_it() {
    let mut cluster = Cluster::new(2, 2);
    cluster.cuts = [(0, 1, 1)].into();
    let id = cluster.ask(&[copy("a first", "b"), write("a first", 50)]);
    cluster.skip(PartitionId(0).ring(), 5);
    let later = cluster.ask(&[write("a first", 100)]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(later), Some(done(&[])));
    assert_eq!(cluster.number((0, 2), "a first"), Some(100));
    cluster.cuts.clear();
    cluster.period();
    assert_eq!(cluster.output(id), Some(done(&[FIRST])));
    assert_eq!(cluster.number((1, 1), "b"), Some(FIRST));
}

#[test]
fn who_is_designated_in_the_middle_of_a_command_sends_what_it_has() {
    let mut cluster = Cluster::new(2, 2);
    let id = cluster.ask(&[copy("a first", "b"), read("b first")]);
    cluster.level();
    cluster.replica((0, 1)).designate(false);
    cluster.settle();
    assert_eq!(cluster.answer(id).len(), 0, "nobody sends for the first partition");
    cluster.replica((0, 2)).designate(true);
    cluster.effects((0, 2));
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[FIRST, FIRST])));
    cluster.replica((0, 2)).designate(true);
    cluster.effects((0, 2));
    assert!(cluster.wire.is_empty(), "it was designated before");
}

#[test]
fn what_comes_early_or_twice_or_late_is_no_harm() {
    let mut cluster = Cluster::new(2, 1);
    let id = cluster.ask(&[copy("a first", "b"), copy("b first", "a")]);
    cluster.level();
    cluster.learn((0, 1));
    let early: Vec<_> = cluster.wire.iter().cloned().collect();
    assert!(!early.is_empty());
    for _ in 0..2 {
        for (_, _, message) in &early {
            cluster.replica((1, 1)).on_message(message.clone());
        }
    }
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[FIRST, FIRST])));
    let before = cluster.replica((1, 1)).snapshot();
    cluster.wire.extend(early);
    cluster.settle();
    assert_eq!(cluster.replica((1, 1)).snapshot(), before);
    assert_eq!(cluster.answers.len(), 2);
}

#[test]
fn what_is_no_signal_of_its_partition_is_not_heard() {
    let mut cluster = Cluster::new(2, 1);
    let id = cluster.ask(&[copy("a first", "b")]);
    cluster.level();
    cluster.learn((0, 1));
    cluster.learn((1, 1));
    let Some((.., Message::Signal(signal))) = cluster.wire.front().cloned() else {
        panic!("the first partition signals")
    };
    cluster.wire.clear();
    let other = Variables::<Letters>::from([(super::letters::key("b first"), Some(1))]);
    let mut of_others = signal.clone();
    of_others.variables.extend(other);
    let wrong = [
        crate::smr::partitioned::Signal { from: PartitionId(1), ..signal.clone() },
        crate::smr::partitioned::Signal { from: PartitionId(9), ..signal },
        of_others,
    ];
    for signal in wrong {
        cluster.replica((1, 1)).on_message(Message::Signal(signal));
        cluster.effects((1, 1));
    }
    assert_eq!(cluster.answer(id).len(), 0);
}

#[test]
fn a_command_that_goes_outside_of_its_partitions_does_nothing_anywhere() {
    let mut cluster = Cluster::new(3, 2);
    let mut command = cluster.command(client(1, 1), &[write("a", 1), copy("b first", "c")]);
    command.destinations = Partitions::all(2);
    let id = cluster.decide(command);
    let mut wider = cluster.command(client(1, 1), &[write("a", 1), copy("b first", "c")]);
    wider.destinations = cluster.to_all();
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.answer(id).len(), 2);
    assert_eq!(cluster.output(id), Some(Answered::Outside(PartitionId(2))));
    assert_eq!(cluster.number((0, 1), "a"), None);
    let id = cluster.decide(wider);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[FIRST])));
    assert_eq!((cluster.number((0, 2), "a"), cluster.number((2, 2), "c")), (Some(1), Some(FIRST)));
}

#[test]
fn what_does_not_come_is_asked_for_less_and_less_often() {
    let mut cluster = Cluster::new(2, 1);
    cluster.ask(&[copy("a first", "b")]);
    cluster.level();
    cluster.cuts = [(0, 1, 1)].into();
    cluster.settle();
    let mut asked = Vec::new();
    for period in 0..64 {
        cluster.replica((1, 1)).on_period();
        let is_question = |effect: &Effect<Letters>| match effect {
            Effect::Send(_, Message::Needs { places, .. }) => !places.is_empty(),
            _ => false,
        };
        let effects = cluster.replica((1, 1)).take_effects();
        asked.extend(effects.iter().any(is_question).then_some(period));
    }
    assert_eq!(asked, [0, 1, 3, 7, 15, 31, 47, 63]);
    // Where something comes the next is asked for at once.
    cluster.cuts.clear();
    (0..16).for_each(|_| cluster.period());
    assert_eq!(cluster.number((1, 1), "b"), Some(FIRST));
    cluster.ask(&[copy("a first", "b")]);
    cluster.level();
    cluster.cuts = [(0, 1, 1)].into();
    cluster.settle();
    cluster.cuts.clear();
    cluster.period();
    assert!(cluster.replica((1, 1)).is_idle());
}

#[test]
fn what_is_lacked_next_is_asked_for_at_once() {
    let mut cluster = Cluster::new(3, 1);
    cluster.ask(&[write("c7", 3), write("a3", 8)]);
    cluster.level();
    cluster.settle();
    let follow = |name: &str, letter: &str| Step::Follow(name.into(), letter.into());
    let id = cluster.ask(&[follow("b first", "c"), copy("c7", "b"), follow("b", "a")]);
    cluster.level();
    cluster.cuts = [(0, 1, 1), (2, 1, 1)].into();
    cluster.settle();
    // The third partition is not heard for long. When it is, an object of the first is lacked.
    (0..20).for_each(|_| cluster.period());
    cluster.cuts = [(0, 1, 1)].into();
    let lacks = |cluster: &mut Cluster, name: &str| {
        let head = cluster.replica((1, 1)).head.as_ref();
        head.and_then(|head| head.lacks.as_deref()) == Some(name.as_bytes())
    };
    while !lacks(&mut cluster, "a3") {
        assert!(lacks(&mut cluster, "c first") || lacks(&mut cluster, "c7"));
        cluster.period();
    }
    cluster.cuts.clear();
    cluster.period();
    assert!(cluster.replica((1, 1)).is_idle());
    assert_eq!(cluster.output(id), Some(done(&[3, 3, 8])));
}

#[test]
fn what_is_signalled_is_kept_until_all_replicas_of_the_others_have_released_it() {
    let mut cluster = Cluster::new(3, 2);
    cluster.cuts = [(1, 2, 0)].into();
    cluster.ask(&[copy("a first", "b")]);
    cluster.level();
    cluster.settle();
    let counts = |cluster: &Cluster| {
        cluster.replicas.values().map(|it| it.outbox_count()).collect::<Vec<_>>()
    };
    assert_eq!(counts(&cluster), [1, 1, 1, 1, 0, 0]);
    cluster.period();
    assert_eq!(counts(&cluster), [1, 1, 0, 0, 0, 0], "one replica of the second is not heard");
    // What is no replica of that partition says nothing about it.
    let of_others = cluster.wire.len();
    let place = cluster.replica((1, 1)).snapshot().passed().expect("it has come to one");
    let mut replica = super::cluster::replica_id((2, 1), 9);
    replica.partition = PartitionId(1);
    let released = Message::Released { replica, place };
    cluster.replica((0, 1)).on_message(released);
    assert_eq!((counts(&cluster)[0], of_others), (1, 0));
    cluster.cuts.clear();
    cluster.period();
    assert_eq!(counts(&cluster), [0; 6]);
}

#[test]
fn a_partition_that_keeps_too_much_for_others_waits_for_them() {
    let mut cluster = Cluster::new(2, 1);
    cluster.ask(&[write("a", HUGE)]);
    cluster.ask(&[copy("a", "b")]);
    let next = cluster.ask(&[read("a first"), read("b first")]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(next), None, "there is no room for it at the first partition");
    cluster.period();
    cluster.period();
    assert_eq!(cluster.output(next), Some(done(&[FIRST, FIRST])));
}

#[test]
fn a_replica_that_has_left_holds_nothing_up() {
    let mut cluster = Cluster::new(2, 2);
    cluster.replicas.remove(&(1, 2));
    cluster.ask(&[write("a", HUGE)]);
    cluster.ask(&[copy("a", "b")]);
    let next = cluster.ask(&[read("a first"), read("b first")]);
    cluster.level();
    (0..9).for_each(|_| cluster.period());
    assert_eq!(cluster.output(next), None, "it might come back and ask");
    let members = [Vec::from([(0, 1), (0, 2)]), Vec::from([(1, 1)])];
    let members = members.map(|of| of.into_iter().map(super::cluster::node_id).collect());
    cluster.layout = Layout::new(members.into());
    for replica in cluster.replicas.values_mut() {
        replica.set_layout(cluster.layout.clone());
    }
    (0..9).for_each(|_| cluster.period());
    assert_eq!(cluster.output(next), Some(done(&[FIRST, FIRST])));
}

#[test]
fn a_signal_that_was_dropped_for_want_of_room_is_asked_for() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[write("a", HUGE)]);
    cluster.ask(&[copy("a", "b"), write("a", 1)]);
    cluster.level();
    let (slow, at) = ((1, 2), (0, 1));
    cluster.learn(at);
    cluster.learn((1, 1));
    while let Some((_, to, message)) = cluster.wire.pop_front() {
        cluster.replica(to).on_message(message);
        cluster.effects(to);
    }
    assert_eq!(cluster.number((1, 1), "b"), Some(HUGE));
    cluster.settle();
    assert_eq!(cluster.number(slow, "b"), None, "it has dropped what came early");
    cluster.period();
    assert_eq!(cluster.number(slow, "b"), Some(HUGE));
}

#[test]
fn what_all_hold_is_read_without_being_sent_and_written_by_all_at_once() {
    let mut cluster = Cluster::new(3, 2);
    let id = cluster.ask(&[copy("z first", "z"), write("a", 1), copy("z", "c")]);
    cluster.level();
    cluster.learn((0, 1));
    assert_eq!(sends(&cluster, 0), 0);
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[FIRST, FIRST])));
    let has = |of| {
        cluster.number((of, 1), "z") == Some(FIRST) && cluster.number((of, 2), "z") == Some(FIRST)
    };
    assert!((0..3).all(has));
    let mut one = cluster.command(client(1, 1), &[copy("z", "b")]);
    one.destinations = [PartitionId(1)].into_iter().collect();
    let one = cluster.decide(one);
    cluster.level();
    cluster.settle();
    assert_eq!((cluster.output(one), cluster.answer(one).len()), (Some(done(&[FIRST])), 1));
}

#[test]
fn what_all_hold_is_not_written_by_some() {
    let mut cluster = Cluster::new(3, 1);
    let mut some = cluster.command(client(1, 1), &[write("a", 1), write("z", 1)]);
    some.destinations = Partitions::all(2);
    let some = cluster.decide(some);
    let id = cluster.ask(&[read("z"), read("a")]);
    cluster.level();
    cluster.settle();
    assert_eq!(cluster.output(some), Some(Answered::Outside(PartitionId(2))));
    assert_eq!(cluster.output(id), Some(done(&[0, 0])));
}

#[test]
fn commands_of_others_in_the_common_ring_are_passed_over() {
    let mut cluster = Cluster::new(3, 1);
    cluster.ask(&[write("a", 1), write("b", 1)]);
    let id = cluster.ask(&[copy("b", "c")]);
    cluster.skip(PartitionId(2).ring(), 9);
    cluster.level();
    cluster.learn((2, 1));
    assert_eq!(cluster.wire.len(), 1, "of the second alone it signals");
    cluster.settle();
    assert_eq!(cluster.output(id), Some(done(&[1])));
    assert_eq!(cluster.logs[&RingId::ALL].len(), 3);
}
