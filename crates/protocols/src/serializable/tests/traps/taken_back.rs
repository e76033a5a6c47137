//! Votes that were taken back, and that nobody asks for any more.

use super::*;
use quorate_kernel::time::Span;

/// A vote of the second group is taken back, whose key an older transaction takes. The group that
/// decides both has lost all its data, so it knows of neither.
fn taken_back() -> World {
    let mut world = two_with_a_vote_taken_back();
    assert!(world.state(TWO).head.taken_back.contains_key(&tx(7, 1)));
    world.commit(TWO, usize::MAX);
    assert!(world.state(TWO).share(tx(6, 2)).is_some(), "the older one holds the key");
    lose_all(&mut world, ONE);
    world.net.clear();
    world
}

/// Time passes in the second group alone.
fn wait(world: &mut World, ms: u64) {
    for _ in 0..ms / 100 {
        world.now = world.now + Span::millis(100);
        world.handle_primary(TWO, Input::Tick);
        world.commit(TWO, usize::MAX);
        world.net.clear();
    }
}

#[test]
fn what_waits_for_too_long_after_its_vote_was_taken_back_votes_no() {
    let mut world = taken_back();
    wait(&mut world, 4100);
    let head = &world.state(TWO).head;
    assert!(head.taken_back.is_empty(), "nobody decides what it waits for");
    assert!(head.pending[&tx(7, 1)].vote.is_err(), "it is logged that it is not ready");
    world.run_ms(5000);
    world.check_quiet();
    assert_eq!(world.value("2x").0, 1, "nobody has asked for either again");
    world.check_equal();
}

#[test]
fn a_later_primary_votes_no_too() {
    let mut world = taken_back();
    world.fail_over(TWO, 1, 0, true);
    wait(&mut world, 3000);
    assert!(world.state(TWO).head.taken_back.contains_key(&tx(7, 1)), "its client may ask again");
    wait(&mut world, 1200);
    assert!(world.state(TWO).head.taken_back.is_empty(), "nobody asks");
    world.run_ms(5000);
    world.check_quiet();
    world.check_equal();
}

/// Its client asks again in time: it votes as any other, when the key is free.
#[test]
fn who_asks_again_at_a_later_primary_votes_again() {
    let mut world = taken_back();
    world.fail_over(TWO, 1, 0, true);
    wait(&mut world, 1000);
    world.run_ms(2600);
    assert!(world.state(TWO).locks.keys().is_empty(), "the older one was aborted");
    let acts = [("1y", put("y")), ("2x", put("y"))];
    let ticket = world.commit_tx(tx(7, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
    assert_eq!(world.value("2x"), (2, Some("y".into())));
    world.run_ms(2000);
    world.check_quiet();
    world.check_equal();
}
