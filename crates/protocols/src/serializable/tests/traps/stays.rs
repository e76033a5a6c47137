//! Copies of buckets from a source that has had the bucket before, or does not have it any more.

use super::moves::{
    BUCKET, at, commit_at, copied_once, end, home, placed, step, steps, sweep, want,
};
use super::*;
use crate::serializable::lane::Shape;
use crate::serializable::moves::places::first_key;
use crate::serializable::{Act, Cause, Outcome, Refused, Said, Step, Version};
use std::vec::Vec;

/// A bucket has been at the second group and is back, and is copied to it once more.
fn copied_back() -> World {
    let mut world = placed();
    want(&mut world);
    end(&mut world);
    world.handle_primary(ONE, Input::Want { bucket: BUCKET, home: (1, GroupId(2)) });
    end(&mut world);
    assert_eq!((home(&world), world.state(ONE).home(BUCKET)), (Some(ONE), (2, GroupId(1))));
    world.handle_primary(TWO, Input::Want { bucket: BUCKET, home: (2, GroupId(1)) });
    commit_all(&mut world);
    let passed = steps(&world, TWO).len();
    let has_passed = |world: &World| {
        steps(world, TWO)[passed..].iter().any(|step| matches!(step, Step::Passed { .. }))
    };
    while !has_passed(&world) {
        assert!(step(&mut world), "{:?}", world.trace);
    }
    world
}

/// The second group is shown a page, the first one of its pass, as if the first group had sent it.
fn show(world: &mut World, stay: u64, released: Option<u64>) {
    let arrival = world.state(TWO).head.moves.arrival(BUCKET).expect("it is copied").clone();
    let said = Said::Page {
        id: arrival.id,
        since: arrival.since,
        cursor: first_key(BUCKET),
        items: Vec::new(),
        next: None,
        as_of: 1_000_000,
        stay,
        floor: Version::default(),
        purged: arrival.purged.unwrap_or_default(),
        released,
    };
    let message = Message::Move { group: GroupId(1), bucket: BUCKET, said };
    world.handle_primary(TWO, Input::Message(message));
    commit_all(world);
}

/// The primary of the group that a bucket comes from was cut off long ago, and shows it as it was
/// when it handed it over another time.
#[test]
fn a_page_of_an_earlier_stay_is_not_taken() {
    let mut world = copied_back();
    let before = steps(&world, TWO).len();
    show(&mut world, 0, Some(1));
    assert_eq!((steps(&world, TWO).len(), home(&world)), (before, Some(ONE)));
    end(&mut world);
    assert_eq!((home(&world), at(&world, TWO, "1x")), (Some(TWO), (1, Some("0".into()))));
}

/// The bucket was at another group meanwhile, and what was purged there left no mark at this one.
#[test]
fn a_copy_is_begun_anew_of_a_later_stay() {
    let mut world = copied_once();
    show(&mut world, 2, None);
    let last = steps(&world, TWO).pop();
    assert!(matches!(last, Some(Step::Abandon { version: 2, .. })), "{last:?}");
}

/// The copy is given up to be made anew, and the bucket is wanted elsewhere before it is.
#[test]
fn nobody_waits_for_a_bucket_that_is_wanted_elsewhere() {
    let mut world = copied_once();
    show(&mut world, 2, None);
    let last = steps(&world, TWO).pop();
    assert!(matches!(last, Some(Step::Abandon { is_awaited: true, .. })), "{last:?}");
    let told = commit_at(&mut world, TWO, tx(2, 1), "1x", put("1"));
    assert_eq!(world.answer(told), Some(&Reply::Refused(Refused::Moving)), "it is to come here");
    world.handle_primary(TWO, Input::Wanted(Shape::new(200)));
    let told = commit_at(&mut world, TWO, tx(2, 1), "1x", put("1"));
    world.settle();
    assert_eq!(world.told(told), Some(&Outcome::Aborted(Cause::Moved)));
}

/// Whoever asks for the bucket as it was in another stay gets no bucket by it.
#[test]
fn nothing_is_handed_over_to_who_copies_another_stay() {
    for stay in [1, 0] {
        let mut world = copied_once();
        let arrival = world.state(TWO).head.moves.arrival(BUCKET).expect("it is copied").clone();
        let (id, since, cursor) = (arrival.id, arrival.since, first_key(BUCKET));
        let said = Said::Pull { id, since, cursor, stay, releases: arrival.purged };
        let message = Message::Move { group: GroupId(2), bucket: BUCKET, said };
        world.handle_primary(ONE, Input::Message(message));
        commit_all(&mut world);
        assert_eq!(home(&world), (stay == 1).then_some(ONE));
    }
}

/// What has come of a first pass, and then a purge, and then another primary of the target, who
/// does not know when the pass began.
#[test]
fn a_first_pass_is_begun_anew_by_another_primary() {
    let mut world = placed();
    for number in 0..300 {
        let name = std::format!("1m{number:04}");
        commit_at(&mut world, ONE, tx(1000 + number, 3), &name, put(&"v".repeat(1000)));
        world.commit(ONE, usize::MAX);
    }
    want(&mut world);
    commit_all(&mut world);
    while !steps(&world, TWO).iter().any(|step| matches!(step, Step::Arrived { .. })) {
        assert!(step(&mut world));
    }
    assert_eq!(at(&world, TWO, "1m0000").1.map(|text| text.len()), Some(1000));
    assert!(!steps(&world, TWO).iter().any(|step| matches!(step, Step::Passed { .. })));
    commit_at(&mut world, ONE, tx(2, 1), "1m0000", Act::Delete);
    commit_all(&mut world);
    sweep(&mut world, ONE, 1000);
    world.fail_over(TWO, 1, 9, true);
    while !steps(&world, TWO).iter().any(|step| matches!(step, Step::Abandon { .. })) {
        assert!(step(&mut world), "{:?}", world.trace);
    }
    // What has come is cleared, some keys at a time, before it is copied again.
    for _ in 0..4 {
        want(&mut world);
        end(&mut world);
    }
    assert_eq!((home(&world), at(&world, TWO, "1m0000").1), (Some(TWO), None));
    assert_eq!(at(&world, TWO, "1m0299").0, 1);
}
