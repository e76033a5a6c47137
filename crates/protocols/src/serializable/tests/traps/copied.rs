//! Copies of buckets that are made while the bucket changes.

use super::moves::{at, commit_at, copy_once, end, home, placed, sweep};
use super::*;
use crate::serializable::{Act, Expiry, Version};
use quorate_kernel::time::Span;

/// What is purged may have a version that is not above the floor, as it had one before that rose.
#[test]
fn what_has_expired_while_a_bucket_is_copied_does_not_come_back() {
    let mut world = placed();
    let ends = Act::Put { value: key("1"), expiry: Expiry::At(1000) };
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
    world.now = world.now + Span::secs(2);
    sweep(&mut world, ONE, 0);
    sweep(&mut world, ONE, 1000);
    assert_eq!(world.state(ONE).head.floor, Version(4), "it has not risen");
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert_eq!(at(&world, TWO, "1x"), (4, None));
    assert_eq!(at(&world, TWO, "1y"), (1, Some("0".into())));
}
