//! Rings: what their logs let go of, and who learns them from afar.

use super::letters::command;
use super::world::{SOON, World, five, settings, world};
use crate::multicast::{Decision, RingId};
use crate::smr::hosted::ring::group;
use crate::smr::hosted::{Message, decided};
use crate::smr::partitioned::PartitionId;
use crate::smr::partitioned::tests::letters::{Letters, Step, read, write};
use crate::vsr::Op;
use quorate_kernel::time::Span;
use std::vec::Vec;

const A: PartitionId = PartitionId(0);
const B: PartitionId = PartitionId(1);

fn write_both(world: &mut World<Letters>, numbers: core::ops::Range<u64>) {
    for number in numbers {
        world.done(0, command(&[write("a1", number), write("b1", number)]));
    }
}

#[test]
fn the_ring_of_all_lets_go_of_what_majorities_of_all_partitions_have_stored() {
    let mut world = five(3);
    // Nobody hears of more than one replica of the second partition that it has stored anything.
    world.take(|_, _, message| matches!(message, Message::Holds { partition: PartitionId(1), .. }));
    write_both(&mut world, 1..40);
    world.run(Span::secs(3));
    let bases = |world: &World<Letters>| [0, 1, 4].map(|at| world.base(at, RingId::ALL));
    assert_eq!(bases(&world), [Op(0); 3], "one replica could be lost with what it has");
    let taken = world.taken();
    assert!(!taken.is_empty(), "replicas say what they have stored");
    let is_trimmed = |world: &mut World<Letters>| bases(world).iter().all(|base| *base > Op(20));
    assert!(world.run_until(SOON, is_trimmed), "then nobody needs it any more");
}

#[test]
fn a_host_without_a_log_of_the_ring_of_all_follows_one() {
    let mut world: World<Letters> = five(4);
    write_both(&mut world, 1..4);
    for at in [2, 3] {
        let node = world.hosts[at].process.as_ref().expect("it is up");
        assert!(!node.hosted.rings.contains_key(&RingId::ALL));
    }
    let leader = world.leader(B.ring()).expect("somebody leads");
    let from = world.now;
    write_both(&mut world, 4..8);
    // What is decided is told at once, and not when it is asked for again.
    assert!(world.now - from < Span::millis(600), "it took {:?}", world.now - from);
    // Whom it has followed fails.
    for gone in [0, 1] {
        let ask = if leader == 2 { 3 } else { 2 };
        world.crash(gone);
        world.unlink(gone);
        let id = world.asks(ask, command(&[write("a1", 9), read("b1")])).expect("there is room");
        assert!(world.told(id, SOON).is_some(), "others are followed");
        world.restart(gone);
        world.run(Span::secs(2));
    }
}

#[test]
fn a_local_command_waits_for_no_period() {
    let mut world: World<Letters> = five(5);
    world.done(0, command(&[write("a1", 1)]));
    world.run(Span::secs(1));
    let leader = world.leader(A.ring()).expect("somebody leads");
    let from = world.now;
    for number in 0..20 {
        world.done(leader, command(&[write("a1", number)]));
    }
    assert!(world.now - from < Span::millis(20 * 25), "it took {:?}", world.now - from);
}

#[test]
fn what_its_primary_alone_has_is_not_executed() {
    let mut world: World<Letters> = five(9);
    world.done(0, command(&[write("a1", 1)]));
    // It has all slots of the ring of all that it needs.
    world.run(Span::secs(1));
    let leader = world.leader(A.ring()).expect("somebody leads");
    (0..5).filter(|at| *at != leader).for_each(|at| world.part(at, leader));
    let id = world.asks(leader, command(&[write("a1", 2)])).expect("there is room");
    assert_eq!(world.told(id, Span::secs(2)), None, "no majority has it");
    let objects = |world: &World<Letters>, at| {
        let replica = world.replica(at, A).expect("it is up");
        replica.objects().get(&b"a1"[..]).copied()
    };
    assert_eq!(objects(&world, leader), Some(1));
    world.cut.clear();
    assert!(world.told(id, SOON).is_some(), "it is sent again");
    assert!(world.run_until(SOON, |world| objects(world, leader) == Some(2)));
}

#[test]
fn who_leads_no_more_answers_no_question() {
    let mut world: World<Letters> = five(10);
    world.done(0, command(&[write("a1", 1)]));
    let leader = world.leader(A.ring()).expect("somebody leads");
    let ends = world.logs[&group(A.ring())].len();
    assert_eq!(world.done(leader, command(&[read("a1")])), [1]);
    let others: Vec<usize> = (0..5).filter(|at| *at != leader).collect();
    others.iter().for_each(|at| world.part(*at, leader));
    let next = |world: &mut World<Letters>| {
        others.iter().any(|at| {
            let node = world.hosts[*at].process.as_ref().expect("it is up");
            node.hosted.leading().any(|ring| ring == A.ring())
        })
    };
    let id = world.asks(leader, command(&[read("a1")])).expect("there is room");
    assert!(world.run_until(SOON, next), "another one leads");
    let ask = others[0];
    world.done(ask, command(&[write("a1", 2)]));
    assert_eq!(world.told(id, Span::millis(100)), None, "nobody confirms it");
    let later = world.asks(leader, command(&[read("a1")])).expect("there is room");
    assert_eq!(world.told(later, Span::secs(1)), None);
    world.cut.clear();
    assert_eq!(world.told(later, SOON), Some(Vec::from([2])));
    let log = &world.logs[&group(A.ring())];
    let commands = log.values().skip(ends).flatten().filter(|bytes| {
        let decision = decided::read::<Letters>(bytes, A.ring(), 2);
        matches!(decision, Some(Decision::Commands(_)))
    });
    assert_eq!(commands.count(), 1, "questions are in no log");
}

#[test]
fn a_question_sees_what_ended_at_another_partition() {
    let mut world: World<Letters> = five(13);
    for number in 1..20 {
        let both = command(&[write("a1", number), write("b1", number)]);
        world.done(0, both);
        for at in 0..5 {
            let told = world.done(at, command(&[read("a1")]));
            assert_eq!(told, [number], "it has ended");
            assert_eq!(world.done(at, command(&[read("b1")])), [number]);
        }
    }
}

#[test]
fn a_question_waits_for_what_the_ring_of_all_has_decided() {
    let mut worlds = (20..).map(five::<Letters>);
    let leads = |world: &World<Letters>, ring| world.leader(ring).expect("somebody leads");
    let differ = |world: &World<Letters>| leads(world, A.ring()) != leads(world, RingId::ALL);
    let mut world = worlds.find(differ).expect("some have two primaries");
    let both = |number| command(&[write("a1", number), write("b1", number)]);
    world.done(0, both(1));
    let leader = leads(&world, A.ring());
    // It does not hear what the ring of all decides; another replica signals for the partition.
    let all = group(RingId::ALL);
    world.take(move |_, to, message| {
        let is_all = match message {
            Message::Log(parts) => parts.iter().any(|(of, _)| *of == all),
            Message::Decided { ring, .. } => *ring == RingId::ALL,
            _ => false,
        };
        to == leader && is_all
    });
    let ask = (leader + 1) % 5;
    world.done(ask, both(2));
    assert_eq!(leads(&world, A.ring()), leader);
    let id = world.asks(ask, command(&[read("a1")])).expect("there is room");
    assert_eq!(world.told(id, Span::millis(400)), None, "it does not know what has ended");
    world.taken();
    assert_eq!(world.told(id, SOON), Some(Vec::from([2])));
}

#[test]
fn one_partition_has_no_ring_of_all() {
    let mut world: World<Letters> = world(6, 3, settings(&[&[1, 2, 3]], &[]));
    for number in 1..30 {
        world.done(0, command(&[write("a1", number), write("b1", number), read("a1")]));
    }
    assert_eq!(world.done(1, command(&["a1", "b1"].map(read))), [29, 29]);
    world.crash(2);
    world.run(Span::secs(1));
    world.restart(2);
    assert!(world.run_until(SOON, |world| world.are_alike()));
}

#[test]
fn a_command_is_answered_whoever_leads() {
    let mut world: World<Letters> = five(8);
    for number in 1..4 {
        for ring in [A.ring(), B.ring(), RingId::ALL] {
            let Some(leader) = world.leader(ring) else { panic!("somebody leads") };
            let ask = (leader + 1) % 5;
            let both = command(&[write("a1", number), write("b1", number)]);
            let id = world.asks(ask, both).expect("there is room");
            world.crash(leader);
            world.unlink(leader);
            assert!(world.told(id, SOON).is_some(), "another one leads");
            world.restart(leader);
            assert!(world.run_until(SOON, |world| world.are_led()));
        }
    }
    let order = world.order().expect("there is an order");
    assert!(order.len() >= 9);
}

/// It may wait for hours: what goes on meanwhile must not fill the disks.
#[test]
fn what_waits_for_a_partition_without_majority_is_neither_decided_nor_stored_each_time() {
    let mut world = five::<Letters>(31);
    [3, 4].iter().for_each(|at| world.crash(*at));
    let mut ids = Vec::new();
    let ask = |world: &mut World<Letters>, steps: &[Step]| {
        world.asks(0, command(steps)).expect("there is room")
    };
    ids.push(ask(&mut world, &[write("a1", 1), write("b1", 1)]));
    world.run(Span::secs(2));
    ids.extend((2..22).map(|number| ask(&mut world, &[write("a2", number)])));
    world.run(Span::secs(30));
    let is_open = |world: &World<Letters>| {
        let recorder = world.settings.recorder.borrow();
        ids.iter().all(|id| recorder.output(*id).is_none())
    };
    assert!(is_open(&world), "the first waits for the other partition, and they for it");
    let count =
        |world: &World<Letters>| -> usize { world.logs.values().map(|log| log.len()).sum() };
    let stored = |world: &World<Letters>| {
        let node = world.hosts[0].process.as_ref().expect("it is up");
        node.hosted.partitions[&A].stored_at
    };
    let before = (count(&world), stored(&world));
    world.run(Span::secs(60));
    let after = (count(&world), stored(&world));
    assert!(after.0 - before.0 < 60, "{} entries", after.0 - before.0);
    assert_eq!(before.1, after.1, "nothing was executed");
    [3, 4].iter().for_each(|at| world.restart(*at));
    assert!(ids.iter().all(|id| world.told(*id, SOON).is_some()), "all are answered");
    assert!(world.run_until(SOON, |world| world.are_alike()));
}

/// What was sent to a host that did not serve yet is unknown there, whoever was asked last.
#[test]
fn what_waits_long_is_sent_at_once_to_who_begins_to_serve() {
    for asked_last in 0..3 {
        let mut world = five::<Letters>(37);
        world.done(3, command(&[write("a1", 1)]));
        let leader = world.leader(A.ring()).expect("somebody leads");
        let other = (leader + 1) % 3;
        [leader, other].iter().for_each(|at| world.crash(*at));
        let id = world.asks(3, command(&[write("a1", 2)])).expect("there is room");
        world.run(Span::secs(60 + 10 * asked_last));
        world.restart(other);
        assert!(world.run_until(SOON, |world| world.leader(A.ring()).is_some()), "one leads");
        assert!(world.told(id, Span::secs(2)).is_some(), "it was asked in vain {asked_last}");
    }
}
