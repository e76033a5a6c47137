//! Replicas that lack what is gone.

use super::letters::command;
use super::world::{SOON, World, five};
use crate::multicast::RingId;
use crate::smr::partitioned::PartitionId;
use crate::smr::partitioned::tests::letters::{Letters, read, write};
use crate::vsr::Op;
use quorate_kernel::time::Span;

const B: PartitionId = PartitionId(1);

fn write_both(world: &mut World<Letters>, numbers: core::ops::Range<u64>) {
    for number in numbers {
        world.done(0, command(&[write("a1", number), write("b1", number)]));
        world.done(0, command(&[write("b2", number)]));
    }
}

#[test]
fn who_was_away_for_long_goes_on_from_a_copy() {
    let mut world: World<Letters> = five(11);
    write_both(&mut world, 1..4);
    let away = 3;
    world.crash(away);
    world.unlink(away);
    write_both(&mut world, 4..60);
    world.run(Span::secs(3));
    let bases = [0, 1, 4].map(|at| world.base(at, RingId::ALL));
    assert!(bases.iter().all(|base| *base > Op(30)), "what it lacks is gone: {bases:?}");
    world.restart(away);
    assert!(world.run_until(SOON, |world| world.are_alike()), "it has all of it");
    assert!(world.sent["Copy"] > 1, "a copy has several pages");
    // The copy is stored, and after a while what has come since.
    world.run(Span::secs(15));
    world.crash(away);
    world.run(Span::millis(100));
    world.restart(away);
    let copies = world.sent["Copy"];
    assert!(world.run_until(SOON, |world| world.are_alike()));
    assert_eq!(world.sent["Copy"], copies, "nothing is copied twice");
    // It is a majority with another one.
    world.crash(4);
    world.unlink(4);
    assert_eq!(world.done(2, command(&[read("b2"), read("b1")])), [59, 59]);
    let objects = world.replica(away, B).expect("it is up").objects();
    assert_eq!(objects.get(&b"b2"[..]), Some(&59));
}

#[test]
fn a_copy_that_stops_is_begun_anew() {
    let mut world: World<Letters> = five(12);
    write_both(&mut world, 1..4);
    world.crash(3);
    write_both(&mut world, 4..60);
    world.run(Span::secs(3));
    world.restart(3);
    world.take(|_, _, message| message.name() == "Copy");
    world.run_to_taken(1, SOON);
    let source = world.taken()[0].from.node.0 as usize - 1;
    world.crash(source);
    world.unlink(source);
    world.run(Span::secs(1));
    world.restart(source);
    assert!(world.run_until(SOON, |world| world.are_alike()), "another one, or another copy");
}
