//! Buckets that come back, and moves that go on whoever leads.

use super::moves::{BUCKET, at, commit_at, copied_once, end, home, placed, steps, sweep, want};
use super::*;
use crate::serializable::{Act, Raw, Said, Step, Version, bucket_of};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use std::vec::Vec;

#[test]
fn a_bucket_comes_back_onto_nothing_of_its_earlier_stay() {
    let mut world = placed();
    want(&mut world);
    // Nobody sweeps.
    for _ in 0..20 {
        while moves::step(&mut world) {}
        world.run_ms(100);
    }
    assert_eq!((home(&world), at(&world, ONE, "1x").1), (Some(TWO), Some("0".into())));
    commit_at(&mut world, TWO, tx(2, 1), "1x", Act::Delete);
    world.settle();
    sweep(&mut world, TWO, 1000);
    let back = Input::Want { bucket: BUCKET, home: (1, GroupId(2)) };
    world.handle_primary(ONE, back.clone());
    world.settle();
    assert_eq!(home(&world), Some(TWO), "it has to be cleared first");
    let has_begun = steps(&world, ONE).iter().any(|step| matches!(step, Step::Arriving { .. }));
    assert!(!has_begun, "a copy that would have to be given up is not begun");
    sweep(&mut world, ONE, 0);
    world.handle_primary(ONE, back);
    end(&mut world);
    assert_eq!((home(&world), at(&world, ONE, "1x")), (Some(ONE), (2, None)));
    assert_eq!(at(&world, ONE, "1y"), (1, Some("0".into())));
}

#[test]
fn a_page_of_an_earlier_copy_or_of_another_pass_is_not_taken() {
    let mut world = copied_once();
    let arrival = world.state(TWO).head.moves.arrival(BUCKET).cloned().expect("it is copied");
    let old = |id, since, released| Said::Page {
        stay: 0,
        id,
        since,
        cursor: Raw(Bytes::from_static(&[BUCKET])),
        items: Vec::new(),
        next: None,
        as_of: 1,
        floor: Version(0),
        purged: 0,
        released,
    };
    let before = steps(&world, TWO).len();
    for (id, since) in [(arrival.id + 1, arrival.since), (arrival.id, arrival.since + 1)] {
        let said = old(id, since, Some(1));
        let message = Message::Move { group: GroupId(1), bucket: BUCKET, said };
        world.handle_primary(TWO, Input::Message(message));
        world.commit(TWO, usize::MAX);
    }
    assert_eq!(steps(&world, TWO).len(), before);
    assert_eq!(home(&world), Some(ONE));
}

/// Primaries of both groups are lost after each step, with or without what they had proposed.
#[test]
fn a_move_goes_on_after_a_fail_over_at_each_step() {
    let mut most = 0;
    for (kept, which) in [(0, ONE), (0, TWO), (9, ONE), (9, TWO)] {
        for count in 0.. {
            let mut world = placed();
            want(&mut world);
            world.commit(TWO, usize::MAX);
            let has_ended = (0..count).any(|_| {
                let is_one = world.deliver(|_| true);
                let other = if which == ONE { TWO } else { ONE };
                world.commit(other, usize::MAX);
                // What is lost with its primary is proposed and not committed.
                let is_last = world.groups[which].tail.is_empty();
                world.commit(which, if is_last { 0 } else { 1 });
                !is_one
            });
            world.fail_over(which, 1, kept, true);
            commit_at(&mut world, ONE, tx(20, 1), "1x", put("1"));
            commit_all(&mut world);
            end(&mut world);
            let step = (count, kept, which);
            want(&mut world);
            end(&mut world);
            assert_eq!(home(&world), Some(TWO), "{step:?}: {:?}", world.trace);
            let has = at(&world, TWO, "1x");
            let is_it = has == (2, Some("1".into())) || has == (1, Some("0".into()));
            assert!(is_it, "{step:?}: {has:?}");
            assert_eq!(at(&world, TWO, "1y"), (1, Some("0".into())), "{step:?}");
            world.check_equal();
            world.check_quiet();
            if has_ended {
                most = most.max(count);
                break;
            }
        }
    }
    assert!(most >= 6, "there are steps: {most}");
}

#[test]
fn the_first_group_notes_once_who_founds_another() {
    let mut world = placed();
    let found = |members: &[u64]| Input::Found {
        group: GroupId(3),
        members: members.iter().copied().map(NodeId).collect(),
    };
    world.handle_primary(ONE, found(&[1, 2]));
    world.handle_primary(ONE, found(&[2, 3]));
    world.settle();
    world.handle_primary(ONE, found(&[3]));
    world.settle();
    let founded = &world.state(ONE).head.moves.founded;
    assert_eq!(founded[&GroupId(3)], [1, 2].map(NodeId));
    assert_eq!(steps(&world, ONE).len(), 1);
    world.copy(ONE, 0, 1, &mut |_| {});
    world.check_equal();
    assert_eq!(bucket_of(b"1x"), BUCKET);
}
