//! What is kept for others and for later: how much, for whom, and what happens when it is gone.

use super::cluster::{A, B, Cluster, replica_id};
use super::letters::{FIRST, HUGE, Letters, copy, key, write};
use crate::multicast::{Decision, RingId, Slot};
use crate::smr::partitioned::exchange::bytes_of;
use crate::smr::partitioned::outbox::{Outbox, Released};
use crate::smr::partitioned::{
    Effect, Layout, Message, PartitionId, Partitions, Place, Signal, Snapshot, Variables,
    WAITING_BYTES_MAX,
};
use crate::vsr::Op;
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

fn first(partition: u8) -> Snapshot<Letters> {
    Snapshot::begin(PartitionId(partition), 2)
}

#[test]
fn what_an_earlier_start_released_is_not_believed_of_a_later_one() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.level();
    // One replica of the second partition has it, and says so; the other one has nothing yet.
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.settle();
    cluster.cuts.clear();
    let slow = cluster.replicas.remove(&(1, 1)).expect("it is there");
    cluster.period();
    cluster.period();
    assert_eq!(cluster.number((1, 2), "b"), Some(FIRST));
    // It loses all that it had, and says that it is there before the slow one releases anything.
    cluster.kept.clear();
    cluster.resume((1, 2), first(1));
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.settle();
    cluster.period();
    cluster.replicas.insert((1, 1), slow);
    let place = cluster.replica((0, 1)).snapshot().passed().expect("it has passed one");
    for at in [(0, 1), (0, 2)] {
        let released = Message::Released { replica: replica_id((1, 1), 1), place };
        cluster.replica(at).on_message(released);
        assert_eq!(cluster.replica(at).outbox_count(), 1, "the later start has released nothing");
        // What is still on its way of the earlier start says nothing of this one.
        let late = Message::Released { replica: replica_id((1, 2), 1), place };
        cluster.replica(at).on_message(late);
        assert_eq!(cluster.replica(at).outbox_count(), 1);
    }
    cluster.cuts.clear();
    cluster.period();
    assert_eq!(cluster.number((1, 2), "b"), Some(FIRST));
}

#[test]
fn what_an_earlier_start_released_is_not_believed_after_a_restart_either() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.level();
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.settle();
    let at = (0, 1);
    let place = Place { slot: Slot(0), index: 0 };
    // A later start of one replica is heard of, and then this one starts again.
    let later = Message::Needs { replica: replica_id((1, 2), 2), places: Vec::new() };
    cluster.replica(at).on_message(later);
    let stored = cluster.replica(at).snapshot();
    cluster.resume(at, stored);
    assert_eq!(cluster.replica(at).outbox_count(), 1);
    for of in [(1, 1), (1, 2)] {
        let released = Message::Released { replica: replica_id(of, 1), place };
        cluster.replica(at).on_message(released);
        assert_eq!(cluster.replica(at).outbox_count(), 1, "of two one has released nothing");
    }
    let released = Message::Released { replica: replica_id((1, 2), 2), place };
    cluster.replica(at).on_message(released);
    assert_eq!(cluster.replica(at).outbox_count(), 0);
}

#[test]
fn which_start_was_heard_of_is_kept_from_before_the_next_snapshot_on() {
    let mut cluster = Cluster::new(2, 2);
    let stored = cluster.replica((0, 1)).snapshot();
    cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.level();
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.settle();
    let at = (0, 1);
    let place = Place { slot: Slot(0), index: 0 };
    let later = Message::Needs { replica: replica_id((1, 2), 2), places: Vec::new() };
    cluster.replica(at).on_message(later.clone());
    cluster.settle();
    cluster.replica(at).on_message(later);
    assert!(cluster.replica(at).take_effects().is_empty(), "it is kept once");
    cluster.resume(at, stored);
    cluster.settle();
    assert_eq!(cluster.replica(at).outbox_count(), 1, "it has executed that again");
    for of in [(1, 1), (1, 2)] {
        let released = Message::Released { replica: replica_id(of, 1), place };
        cluster.replica(at).on_message(released);
    }
    assert_eq!(cluster.replica(at).outbox_count(), 1, "its later start may need it");
}

#[test]
fn who_begins_with_nothing_says_so_before_it_needs_anything() {
    let mut cluster = Cluster::new(2, 1);
    cluster.resume((1, 1), first(1));
    cluster.replica((1, 1)).on_period();
    let effects = cluster.replica((1, 1)).take_effects();
    let needs = Message::Needs { replica: replica_id((1, 1), 2), places: Vec::new() };
    assert!(effects.contains(&Effect::Send(A, needs)), "{effects:?}");
}

#[test]
fn who_needs_what_nobody_keeps_hears_so_and_goes_on_from_a_copy() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.level();
    cluster.settle();
    cluster.period();
    assert!(cluster.replicas.values().all(|it| it.outbox_count() == 0));
    cluster.kept.remove(&(1, 2));
    cluster.resume((1, 2), first(1));
    cluster.settle();
    cluster.period();
    assert_eq!((&cluster.lost[..], cluster.number((1, 2), "b")), (&[(1, 2); 2][..], None));
    let copy = cluster.replica((1, 1)).copy().expect("it has come to all that it had");
    cluster.resume((1, 2), copy);
    cluster.period();
    assert_eq!((cluster.lost.len(), cluster.number((1, 2), "b")), (2, Some(FIRST)));
}

#[test]
fn a_replica_gives_no_copy_of_what_is_behind_what_it_has_released() {
    let mut cluster = Cluster::new(2, 2);
    cluster.ask(&[copy("a first", "b"), write("a first", 1)]);
    cluster.level();
    cluster.settle();
    cluster.period();
    // It goes on with what it has kept. Nobody keeps that for who goes on from this.
    cluster.resume((1, 1), first(1));
    assert!(cluster.replica((1, 1)).copy().is_none());
    cluster.settle();
    assert!(cluster.replica((1, 1)).copy().is_some());
}

#[test]
fn all_that_waits_is_asked_for_at_once() {
    let mut cluster = Cluster::new(2, 2);
    for at in 0..20 {
        cluster.ask(&[copy("a first", "b"), write("a first", at)]);
    }
    cluster.level();
    cluster.settle();
    let before = cluster.replica((1, 2)).snapshot();
    // It has lost all, of which the others keep everything.
    cluster.kept.clear();
    cluster.resume((1, 2), first(1));
    cluster.settle();
    assert_eq!(cluster.number((1, 2), "b"), None);
    cluster.period();
    assert!(cluster.replica((1, 2)).snapshot().is_as(&before), "one question was enough");
}

#[test]
fn what_waits_behind_a_command_is_bounded_and_nothing_is_lost() {
    let mut cluster = Cluster::new(2, 1);
    cluster.ask(&[copy("b first", "a")]);
    let big = "a".repeat(WAITING_BYTES_MAX / 4);
    let writes: Vec<_> = (0..8).map(|at| cluster.ask(&[write(&big, at)])).collect();
    cluster.level();
    let at = (0, 1);
    // The second partition says nothing: all waits behind the first command.
    let all = cluster.logs[&RingId::ALL].clone();
    for (op, decision) in (1..).zip(all) {
        assert!(cluster.replica(at).learn(RingId::ALL, Op(op), decision));
    }
    let own = cluster.logs[&A.ring()].clone();
    let learned = (1..).zip(own.clone()).take_while(|(op, decision)| {
        cluster.replica(at).learn(A.ring(), Op(*op), decision.clone())
    });
    let learned = learned.count();
    // One is delivered, and waits with the rest of its decision behind the command.
    assert!((4..=5).contains(&learned), "{learned}");
    assert!(!cluster.replica(at).has_room(A.ring()) && cluster.replica(at).has_room(RingId::ALL));
    cluster.learn((1, 1));
    while let Some((_, to, message)) = cluster.wire.pop_front() {
        cluster.replica(to).on_message(message);
    }
    assert!(cluster.replica(at).has_room(A.ring()));
    for (op, decision) in (1..).zip(own).skip(learned) {
        assert!(cluster.replica(at).learn(A.ring(), Op(op), decision));
    }
    cluster.effects(at);
    assert!(writes.iter().all(|id| cluster.output(*id).is_some()));
    assert_eq!(cluster.number(at, &big), Some(7));
}

#[test]
fn a_decision_of_the_log_itself_is_no_command() {
    let mut cluster = Cluster::new(2, 1);
    for ring in [A.ring(), B.ring(), RingId::ALL] {
        cluster.logs.entry(ring).or_default().push(Decision::Nothing);
    }
    let id = cluster.ask(&[copy("a first", "b")]);
    cluster.level();
    cluster.settle();
    assert!(cluster.output(id).is_some());
}

#[test]
fn objects_are_counted_with_the_leaves_that_they_are_in() {
    let of = |count: u64| -> Variables<Letters> {
        (0..count).map(|at| (key(&std::format!("a{at}")), Some(at))).collect()
    };
    let entry = size_of::<(Bytes, Option<u64>)>();
    let more = |count| bytes_of::<Letters>(&of(count)) - bytes_of::<Letters>(&of(0));
    assert!(more(1) >= 11 * entry, "a single entry has a leaf");
    assert!(more(1000) >= 1000 * entry * 11 / 5, "leaves may be half full");
    let huge = Variables::<Letters>::from([(key("a"), Some(HUGE))]);
    assert!(bytes_of::<Letters>(&huge) > bytes_of::<Letters>(&of(1)));
}

/// What the outbox has to keep, by looking at all of it.
struct Model(BTreeMap<Place, Partitions>);

impl Model {
    fn releases(&mut self, of: PartitionId, floor: Place) {
        for (place, owed) in &mut self.0 {
            if *place <= floor {
                *owed = owed.without(of).collect();
            }
        }
        self.0.retain(|_, owed| !owed.is_empty());
    }
}

#[test]
fn the_outbox_finds_by_partition_what_it_would_find_by_looking_at_all() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let (mut outbox, mut model) = (Outbox::<Letters>::default(), Model(BTreeMap::new()));
        for slot in 0..200 {
            let place = Place { slot: Slot(slot), index: rng.below(2) as u32 };
            let others = (1..4).map(PartitionId).filter(|_| rng.below(2) == 0);
            let destinations: Partitions = others.chain([A]).collect();
            if destinations.count() > 1 {
                let variables = Variables::<Letters>::new();
                let versions = BTreeMap::new();
                let signal = Signal { place, from: A, takes_part: true, variables, versions };
                outbox.begin(A, destinations, signal);
                model.0.insert(place, destinations.without(A).collect());
            }
            let floor = Place { slot: Slot(rng.below(slot + 1)), index: rng.below(2) as u32 };
            let of = PartitionId(rng.between(1, 3) as u8);
            outbox.release(of, floor);
            model.releases(of, floor);
            assert_eq!(outbox.count(), model.0.len());
            assert!(model.0.keys().all(|place| outbox.get(*place).is_some()));
        }
        (1..4).map(PartitionId).for_each(|of| outbox.release(of, Place::LAST));
        assert_eq!(outbox, Outbox::default(), "nothing is left, no bytes either");
    }
}

#[test]
fn what_all_of_a_partition_have_released_is_what_the_last_of_them_has() {
    let nodes = [1, 2].map(|at| super::cluster::node_id((1, at)));
    let layout = Layout::new(Vec::from([[super::cluster::node_id((0, 1))].into(), nodes.into()]));
    let place = |slot| Place { slot: Slot(slot), index: 0 };
    let mut released = Released::default();
    assert!(released.note(replica_id((1, 1), 3), Some(place(9))));
    assert_eq!(released.floor(B, &layout), None);
    assert!(released.note(replica_id((1, 2), 1), Some(place(5))));
    assert!(released.note(replica_id((1, 2), 1), Some(place(4))));
    assert_eq!(released.floor(B, &layout), Some(place(5)));
    assert!(!released.note(replica_id((1, 1), 2), Some(place(99))), "it is of an earlier start");
    assert!(released.note(replica_id((1, 1), 4), None));
    assert_eq!(released.floor(B, &layout), None);
}
