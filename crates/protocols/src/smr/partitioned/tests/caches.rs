//! Copies of objects of other partitions: what they save, and that they change no answer.

use super::cluster::{A, B, Cluster, done};
use super::letters::{FIRST, Step, copy, key, read, write};
use crate::multicast::{RingId, Slot};
use crate::smr::partitioned::caches::{Version, Versions};
use crate::smr::partitioned::{Cached, Caching, CommandId, Message, Place, Snapshot};
use quorate_kernel::rng::Rng;
use std::vec::Vec;

fn cluster(partitions: u8, caching: Caching) -> Cluster {
    let mut cluster = Cluster::new(partitions, 2);
    cluster.replicas.values_mut().for_each(|it| it.set_caching(caching));
    cluster
}

/// Executes a command, and counts the objects of others that travelled for it.
fn run(cluster: &mut Cluster, steps: &[Step]) -> (CommandId, usize) {
    let id = cluster.ask(steps);
    cluster.level();
    let mut objects = 0;
    for at in cluster.replicas.keys().copied().collect::<Vec<_>>() {
        cluster.learn(at);
    }
    while let Some((_, to, message)) = cluster.wire.pop_front() {
        if let Message::Signal(signal) = &message {
            objects += signal.variables.len();
        }
        cluster.replica(to).on_message(message);
        cluster.effects(to);
    }
    (id, objects)
}

fn cached(cluster: &Cluster, of: u8) -> Cached {
    let own = cluster.replicas.iter().filter(|(at, _)| at.0 == of);
    own.fold(Cached::default(), |sum, (_, it)| Cached {
        validated: sum.validated + it.cached().validated,
        speculated: sum.speculated + it.cached().speculated,
        rolled_back: sum.rolled_back + it.cached().rolled_back,
    })
}

#[test]
fn an_object_that_the_other_partition_has_is_not_sent_again() {
    for (caching, times) in [(Caching::Off, 2), (Caching::Conservative, 0)] {
        let mut cluster = cluster(2, caching);
        let (_, first) = run(&mut cluster, &[copy("a first", "b")]);
        let (id, again) = run(&mut cluster, &[copy("a first", "b again")]);
        assert_eq!((first, again), (2, times), "{caching:?}: two replicas get it");
        assert_eq!(cluster.output(id), Some(done(&[FIRST])));
        let validated = cached(&cluster, 1).validated;
        assert_eq!(validated, if caching == Caching::Off { 0 } else { 2 });
    }
}

#[test]
fn what_both_partitions_have_written_both_know() {
    let mut cluster = cluster(2, Caching::Conservative);
    run(&mut cluster, &[write("a", 5), write("b", 6)]);
    let (id, objects) = run(&mut cluster, &[copy("a", "b"), copy("b", "a")]);
    assert_eq!((cluster.output(id), objects), (Some(done(&[5, 5])), 0));
}

#[test]
fn an_object_that_was_written_elsewhere_is_sent_as_it_is_now() {
    for caching in [Caching::Conservative, Caching::Speculative] {
        let mut cluster = cluster(3, caching);
        run(&mut cluster, &[copy("a first", "b")]);
        run(&mut cluster, &[write("a first", 8)]);
        let (id, objects) = run(&mut cluster, &[copy("a first", "b")]);
        assert_eq!((cluster.output(id), objects), (Some(done(&[8])), 2));
        run(&mut cluster, &[write("a first", 9), write("c", 1)]);
        let (id, objects) = run(&mut cluster, &[copy("a first", "b")]);
        assert_eq!((cluster.output(id), objects), (Some(done(&[9])), 2));
        assert_eq!(cluster.number((1, 2), "b"), Some(9));
    }
}

#[test]
fn a_command_goes_on_with_a_copy_and_is_executed_anew_if_it_is_stale() {
    let mut cluster = cluster(2, Caching::Speculative);
    run(&mut cluster, &[copy("a first", "b")]);
    run(&mut cluster, &[copy("a first", "b")]);
    let is_valid = cached(&cluster, 1);
    assert_eq!((is_valid.speculated, is_valid.rolled_back), (2, 0));
    run(&mut cluster, &[write("a first", 8)]);
    // The second partition comes to the command, and has only a copy that is stale.
    let id = cluster.ask(&[copy("a first", "b"), Step::Follow("b".into(), "a".into())]);
    cluster.level();
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.settle();
    assert_eq!(cached(&cluster, 1).speculated, 4);
    assert!(!cluster.answer(id).contains_key(&1), "it is not answered before it is validated");
    assert_eq!(cluster.number((1, 1), "b"), Some(FIRST), "and has no effect");
    cluster.cuts.clear();
    (0..2).for_each(|_| cluster.period());
    assert_eq!(cluster.output(id), Some(done(&[8, 0])));
    assert_eq!(cached(&cluster, 1).rolled_back, 2);
    assert_eq!(cluster.number((1, 2), "b"), Some(8));
}

#[test]
fn who_has_lost_its_copies_asks_at_once() {
    for caching in [Caching::Conservative, Caching::Speculative] {
        let mut cluster = cluster(2, caching);
        run(&mut cluster, &[copy("a first", "b")]);
        cluster.replica((1, 2)).set_caching(caching);
        let (id, objects) = run(&mut cluster, &[copy("a first", "b again")]);
        assert_eq!(cluster.number((1, 2), "b again"), Some(FIRST));
        assert!(cluster.output(id).is_some() && objects >= 1, "no time has passed");
    }
}

#[test]
fn what_is_kept_for_a_restart_has_what_was_not_sent() {
    let mut cluster = cluster(2, Caching::Conservative);
    run(&mut cluster, &[copy("a first", "b")]);
    run(&mut cluster, &[copy("a first", "b again")]);
    let before = cluster.replica((1, 2)).snapshot();
    cluster.period();
    assert!(cluster.replicas.values().all(|it| it.outbox_count() == 0));
    cluster.resume((1, 2), Snapshot::begin(B, 2));
    cluster.cuts = [(0, 1, 1), (0, 2, 1)].into();
    cluster.period();
    assert!(cluster.replica((1, 2)).snapshot().is_as(&before));
}

#[test]
fn the_oldest_copies_are_dropped_and_what_is_left_is_counted() {
    let version = |slot| {
        let place = Place { slot: Slot(slot), index: 0 };
        if slot.is_multiple_of(2) { Version::found(place) } else { Version::left(place) }
    };
    let mut copies = Versions::<Option<u64>>::new(10_000);
    for at in 0..100 {
        copies.insert(key(&std::format!("a{at}")), version(at), Some(at), 500);
    }
    let has = |copies: &Versions<_>, at: u64| {
        let name = std::format!("a{at}");
        copies.get(name.as_bytes()).is_some_and(|(has, of)| has == version(at) && *of == Some(at))
    };
    assert!(!has(&copies, 0) && !has(&copies, 80) && has(&copies, 90) && has(&copies, 99));
    copies.insert(key("a99"), version(200), None, 20_000);
    assert!(copies.get(b"a99").is_none(), "one that is too large is not kept");
    assert!(has(&copies, 98), "nor is anything dropped for it");
}

/// Any commands, with messages that are lost: what is answered, and what is there in the end.
fn history(seed: u64, caching: Caching) -> (Vec<Option<Vec<u64>>>, Vec<u64>, Cached) {
    let mut rng = Rng::new(seed);
    let mut cluster = cluster(3, caching);
    let names = ["a", "b", "c", "a first", "b first", "c first"];
    let mut ids = Vec::new();
    for at in 0..30 {
        let mut name = || names[rng.below(6) as usize];
        let steps = [copy(name(), name()), read(name()), write(name(), at)];
        let follow = Step::Follow(name().into(), ["a", "b", "c"][rng.below(3) as usize].into());
        let count = rng.between(1, 3) as usize;
        let more = (rng.below(4) == 0).then_some(follow);
        let steps: Vec<Step> = steps[..count].iter().cloned().chain(more).collect();
        let ring = cluster.command(super::cluster::client(1, 1), &steps).destinations.ring();
        ids.push(cluster.ask(&steps));
        // One order, whatever is lost: nothing else is at that slot.
        for other in [A.ring(), B.ring(), crate::smr::partitioned::PartitionId(2).ring()] {
            if Some(other) != ring {
                cluster.skip(other, 1);
            }
        }
        if ring != Some(RingId::ALL) {
            cluster.skip(RingId::ALL, 1);
        }
        let cut = (rng.below(3) as u8, rng.between(1, 2), rng.below(3) as u8);
        cluster.cuts = [cut].into_iter().filter(|_| rng.below(2) == 0).collect();
        cluster.settle();
    }
    cluster.cuts.clear();
    (0..60).for_each(|_| cluster.period());
    let answers = ids.into_iter().map(|id| match cluster.output(id) {
        Some(crate::smr::partitioned::Answered::Done(output)) => Some(output),
        _ => None,
    });
    let answers = answers.collect();
    let of = |name: &&str| cluster.number((name.as_bytes()[0] - b'a', 2), name);
    let numbers = names.iter().map(|name| of(name).unwrap_or_default()).collect();
    let sum = (0..3).map(|of| cached(&cluster, of)).fold(Cached::default(), |sum, it| Cached {
        validated: sum.validated + it.validated,
        speculated: sum.speculated + it.speculated,
        rolled_back: sum.rolled_back + it.rolled_back,
    });
    (answers, numbers, sum)
}

#[test]
fn caches_change_no_answer() {
    let (mut validated, mut rolled_back) = (0, 0);
    for seed in 0..40 {
        let (answers, numbers, none) = history(seed, Caching::Off);
        assert!(answers.iter().all(Option::is_some), "seed {seed}: nothing is stuck");
        assert_eq!(none, Cached::default());
        for caching in [Caching::Conservative, Caching::Speculative] {
            let (same, are, cached) = history(seed, caching);
            assert_eq!((&same, &are), (&answers, &numbers), "seed {seed}, {caching:?}");
            validated += cached.validated;
            rolled_back += cached.rolled_back;
        }
    }
    assert!(validated > 0 && rolled_back > 0, "{validated} {rolled_back}");
}
