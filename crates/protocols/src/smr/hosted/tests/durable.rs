//! What is acknowledged is durable: hosts that lose what they have not synced, all of them at once.

use super::letters::command;
use super::world::{SOON, World, settings, world};
use crate::smr::partitioned::PartitionId;
use crate::smr::partitioned::tests::letters::{FIRST, Letters, Step, copy, read, write};
use crate::vsr::Op;
use quorate_kernel::time::Span;

const A: PartitionId = PartitionId(0);
const B: PartitionId = PartitionId(1);

/// Two partitions that share no host, and nothing is ever stored but what must be.
fn unstored() -> World<Letters> {
    let settings = settings(&[&[1, 2, 3], &[4, 5, 6]], &[1, 3, 5]);
    world(7, 6, crate::smr::hosted::Settings { stored_every: u64::MAX, ..settings })
}

fn restart(world: &mut World<Letters>, hosts: &[usize]) {
    hosts.iter().for_each(|at| world.crash(*at));
    world.run(Span::millis(20));
    hosts.iter().for_each(|at| world.restart(*at));
}

#[test]
fn logs_keep_what_no_replica_has_stored() {
    let mut world = unstored();
    for number in 1..40 {
        world.done(0, command(&[write("a1", number), write("b1", number)]));
        world.done(3, command(&[write("b2", number)]));
    }
    world.run(Span::secs(2));
    restart(&mut world, &[0, 1, 2, 3, 4, 5]);
    let read = world.done(0, command(&["a1", "b1", "b2"].map(read)));
    assert_eq!(read, [39, 39, 39], "all of it was acknowledged");
}

#[test]
fn what_a_command_was_sent_is_there_after_a_restart() {
    let mut world = unstored();
    for number in 1..10 {
        world.done(0, command(&[write("a1", number)]));
        world.done(0, command(&[copy("a1", "b1")]));
    }
    let has_forgotten = |world: &mut World<Letters>| {
        (0..3).all(|at| world.replica(at, A).is_some_and(|it| it.outbox_count() == 0))
    };
    assert!(world.run_until(SOON, has_forgotten), "all has been released");
    // Nobody else has what the copies were of: it is another by now.
    world.done(0, command(&[write("a1", 77)]));
    restart(&mut world, &[3, 4, 5]);
    assert_eq!(world.done(0, command(&[read("b1")])), [9]);
    assert!(world.run_until(SOON, |world| world.are_alike()));
}

#[test]
fn what_is_stored_is_whole() {
    let mut world: World<Letters> = world(9, 3, settings(&[&[1, 2, 3], &[1, 2, 3]], &[1, 2, 3]));
    for number in 1..30 {
        world.done(0, command(&[write("a1", number), copy("a1", "b1")]));
        world.done(0, command(&[Step::Remove("a2".into()), write("b2", number)]));
        world.done(0, command(&[write("a2", number)]));
    }
    world.run(Span::secs(2));
    assert!((0..3).all(|at| world.base(at, A.ring()) > Op(20)), "the logs have not all of it");
    restart(&mut world, &[0, 1, 2]);
    let names = ["a first", "b first", "a1", "a2", "b1", "b2"];
    assert_eq!(world.done(0, command(&names.map(read))), [FIRST, FIRST, 29, 29, 29, 29]);
}

#[test]
fn what_is_received_is_released_when_it_is_durable() {
    let mut kept = 0;
    for seed in 0..8 {
        let settings = settings(&[&[1], &[2]], &[3]);
        let mut world: World<Letters> =
            world(seed, 3, crate::smr::hosted::Settings { stored_every: u64::MAX, ..settings });
        world.done(0, command(&[copy("a first", "b1")]));
        // From here on syncs take long.
        world.sync_max = Span::millis(400);
        world.done(0, command(&[write("a1", 5)]));
        let id = world.asks(0, command(&[copy("a1", "b1")])).expect("there is room");
        let keeps =
            |world: &World<Letters>| world.replica(0, A).map_or(0, |it| it.outbox_count()) > 0;
        assert!(world.run_to(SOON, keeps), "what is sent is kept");
        assert!(world.run_to(SOON, |world| !keeps(world)), "until it is released");
        world.crash(1);
        world.restart(1);
        world.told(id, SOON).expect("it is answered");
        kept += 1;
        assert_eq!(world.done(2, command(&[read("b1")])), [5]);
        let reads = world.replica(1, B).expect("it is there").objects();
        assert_eq!(reads.get(&b"b1"[..]), Some(&5));
    }
    assert_eq!(kept, 8);
}
