//! Copies of buckets that are made while the bucket changes.

use super::moves::{
    at, commit_at, copied_once, copy_once, end, home, placed, step, steps, sweep, want,
};
use super::*;
use crate::serializable::{Act, Expiry, Step, Version};
use quorate_kernel::time::Span;

/// The copy is given up and made again, and all the while one of them serves the bucket.
fn again(world: &mut World) {
    let is_given_up =
        |world: &World| steps(world, TWO).iter().any(|step| matches!(step, Step::Abandon { .. }));
    while !is_given_up(world) {
        assert!(step(world), "{:?}", world.trace);
        assert_eq!(home(world), Some(ONE), "it is served");
    }
    commit_all(world);
    assert_eq!(at(world, TWO, "1y").1, None, "what has come is cleared at once");
    want(world);
    end(world);
    assert_eq!(home(world), Some(TWO));
}

#[test]
fn a_bucket_is_served_until_it_is_copied_again_after_a_purge() {
    let mut world = copied_once();
    commit_at(&mut world, ONE, tx(2, 1), "1x", Act::Delete);
    commit_all(&mut world);
    sweep(&mut world, ONE, 1000);
    assert_eq!(at(&world, TWO, "1y").1, Some("0".into()));
    again(&mut world);
    assert_eq!(at(&world, TWO, "1x"), (2, None));
}

/// What is purged may have a version that is not above the floor, as it had one before that rose.
#[test]
fn what_has_expired_while_a_bucket_is_copied_does_not_come_back() {
    let mut world = placed();
    let ends = Act::Put { value: key("1"), expiry: Expiry::At(1_001_000) };
    commit_at(&mut world, ONE, tx(2, 1), "1x", ends);
    for counter in 3..6 {
        commit_at(&mut world, ONE, tx(counter, 1), "2f", put("f"));
        world.settle();
    }
    commit_at(&mut world, ONE, tx(6, 1), "2f", Act::Delete);
    world.settle();
    sweep(&mut world, ONE, 1000);
    assert_eq!(world.state(ONE).head.floor, Version(4), "another bucket was purged");
    copy_once(&mut world);
    assert_eq!(at(&world, ONE, "1x"), (2, Some("1".into())), "it is alive");
    world.now = world.now + Span::secs(2);
    sweep(&mut world, ONE, 0);
    sweep(&mut world, ONE, 1000);
    assert_eq!(world.state(ONE).head.floor, Version(4), "it has not risen");
    again(&mut world);
    assert_eq!(at(&world, TWO, "1x"), (4, None));
    assert_eq!(at(&world, TWO, "1y"), (1, Some("0".into())));
}
