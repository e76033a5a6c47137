//! Copies of buckets that are made while the bucket changes.

use super::moves::{
    BUCKET, at, commit_at, copied_once, copy_once, end, home, other_key, placed, share, step,
    steps, sweep, want,
};
use super::*;
use crate::serializable::lane::Shape;
use crate::serializable::moves::places::{Look, first_key};
use crate::serializable::tests::node::Group;
use crate::serializable::tests::world::Disk;
use crate::serializable::{Act, Entry, Expiry, Refused, Request, Said, State, Step, Version};
use quorate_kernel::time::Span;
use std::string::ToString;
use std::vec::Vec;

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

#[test]
fn few_buckets_of_a_group_are_copied_at_a_time() {
    let mut world = placed();
    for bucket in 0..20 {
        let home = (0, GroupId(1));
        world.handle_primary(TWO, Input::Want { bucket, home });
    }
    commit_all(&mut world);
    assert_eq!(world.state(TWO).head.moves.buckets.len(), 4);
}

/// Nobody knows for how long keys are held where the group that decides is gone.
#[test]
fn buckets_that_wait_to_be_handed_over_hold_up_no_others() {
    let mut world = placed();
    // The second group never hears of it: the first one waits for its vote.
    let acts = ["1x", "2x", "3x", "4x"].map(|name| (key(name), put("1")));
    world.ask(ONE, Request::Commit(share(tx(2, 1), &[1, 2], &acts)));
    commit_all(&mut world);
    let want = |world: &mut World, bucket| {
        world.handle_primary(TWO, Input::Want { bucket, home: (0, GroupId(1)) });
        commit_all(world);
        while step(world) {}
    };
    for bucket in b'1'..=b'5' {
        want(&mut world, bucket);
    }
    let is_here = |bucket| world.state(TWO).is_here(bucket);
    assert!((b'1'..=b'4').all(|bucket| !is_here(bucket)), "they are held");
    assert!(is_here(b'5'), "nobody holds a key of it");
}

/// The first group waits for the vote of the second, which has not heard of the transaction, on a
/// key in each of these buckets.
fn hold(world: &mut World, buckets: core::ops::RangeInclusive<u8>) {
    let acts: Vec<_> = buckets.map(|it| (key_of(it, 'x'), put("1"))).collect();
    world.ask(ONE, Request::Commit(share(tx(2, 1), &[1, 2], &acts)));
    commit_all(world);
}

fn key_of(bucket: u8, then: char) -> crate::serializable::Raw {
    key(&std::format!("{}{then}", char::from(bucket)))
}

fn want_all(world: &mut World, buckets: core::ops::RangeInclusive<u8>) {
    for bucket in buckets {
        world.handle_primary(TWO, Input::Want { bucket, home: (0, GroupId(1)) });
        commit_all(world);
        while step(world) {}
    }
}

#[test]
fn of_buckets_that_wait_few_are_closed_and_few_are_handed_over_at_a_time() {
    let mut world = placed();
    hold(&mut world, b'1'..=b'9');
    want_all(&mut world, b'1'..=b'9');
    let mut begin =
        |it: u64| commit_at(&mut world, ONE, tx(2 + it, 1), &std::format!("{it}z"), put("1"));
    let begun: Vec<_> = (1..=9).map(&mut begin).collect();
    commit_all(&mut world);
    let waiting = begun.iter().filter(|ticket| !world.is_committed(**ticket)).count();
    assert_eq!(waiting, 4, "the buckets of the others are open");
    let both = share(tx(2, 1), &[1, 2], &[(other_key(), put("1"))]);
    world.ask(TWO, Request::Commit(both));
    commit_all(&mut world);
    for _ in 0..100 {
        while step(&mut world) {
            assert!(unserved(&world) <= 4, "the others are served");
        }
        world.run_ms(100);
    }
    let state = world.state(TWO);
    assert!((b'1'..=b'9').all(|bucket| state.is_here(bucket)), "each has its turn");
}

fn unserved(world: &World) -> usize {
    world.state(ONE).head.moves.buckets.values().filter(|it| it.is_kept).count()
}

/// Four are closed as somebody holds keys of them, and four others are handed over meanwhile.
#[test]
fn what_was_closed_is_handed_over_when_what_was_before_is_served() {
    let mut world = placed();
    hold(&mut world, b'1'..=b'4');
    want_all(&mut world, b'1'..=b'4');
    for (count, it) in (b'5'..=b'8').enumerate() {
        world.handle_primary(TWO, Input::Want { bucket: it, home: (0, GroupId(1)) });
        commit_all(&mut world);
        let is_its = |one: &Message| matches!(one, Message::Move { bucket, .. } if *bucket == it);
        while unserved(&world) <= count {
            assert!(world.deliver(|one| is_its(&one.message)), "{:?}", world.trace);
            commit_all(&mut world);
        }
    }
    world.ask(TWO, Request::Commit(share(tx(2, 1), &[1, 2], &[(other_key(), put("1"))])));
    commit_all(&mut world);
    while world.deliver(|one| !matches!(one.message, Message::Move { .. })) {
        commit_all(&mut world);
        assert_eq!(unserved(&world), 4, "nobody serves these yet");
    }
    end(&mut world);
    assert!((b'1'..=b'8').all(|bucket| world.state(TWO).is_here(bucket)));
}

#[test]
fn what_waits_to_be_handed_over_keeps_its_tombstones() {
    let mut world = placed();
    hold(&mut world, b'1'..=b'1');
    commit_at(&mut world, ONE, tx(3, 1), "1y", Act::Delete);
    world.commit(ONE, usize::MAX);
    want(&mut world);
    commit_all(&mut world);
    while step(&mut world) {}
    let purges = |world: &World| {
        let entries = world.groups[ONE].log.iter().map(|it| Entry::of(it).expect("it is an entry"));
        entries.filter(|entry| matches!(entry, Entry::Purge { .. })).count()
    };
    sweep(&mut world, ONE, 1000);
    assert_eq!(purges(&world), 0, "it would be copied anew");
    sweep(&mut world, ONE, 1000);
    world.run_ms(30_000);
    end(&mut world);
    assert_eq!((home(&world), at(&world, TWO, "1y")), (Some(TWO), (2, None)));
    assert_eq!(purges(&world), 0);
}

/// A group that has dropped many keys of a bucket, and not stored that, does not look at all of
/// them at once.
#[test]
fn what_is_left_of_a_bucket_is_looked_for_within_a_bound() {
    let (disk, count) = (Disk::default(), 2 * 16 * 64);
    let mut state = State::new(GroupId(1));
    let name = |number: usize| key(&std::format!("1{number:08}"));
    for number in 0..count {
        state.items.drop_key(name(number));
        let is_bound = number >= 16 * 64;
        let look = state.look_for(BUCKET, first_key(BUCKET), &disk);
        let upto = Look::Upto(name(16 * 64));
        assert_eq!(look, if is_bound { upto } else { Look::Nothing }, "{number}");
    }
    assert_eq!(state.look_for(BUCKET, name(16 * 64), &disk), Look::Nothing, "it goes on there");
    let next = BUCKET + 1;
    assert_eq!(state.look_for(next, first_key(next), &disk), Look::Nothing);
}

/// Keys with so many bytes are put, about 1000 at a time.
fn put_many(world: &mut World, round: u64, count: u64) {
    let value = "v".repeat(1000);
    for number in 0..count {
        let id = tx(1000 + round * 1000 + number, 3);
        commit_at(world, ONE, id, &std::format!("1m{number:04}"), put(&value));
        world.commit(ONE, usize::MAX);
    }
}

/// A group gives many keys away, and logs little else: what it has dropped stays in memory. When
/// the bucket comes back it looks through all of that, in several ticks.
#[test]
fn a_bucket_comes_back_past_many_keys_that_were_dropped() {
    let mut world = placed();
    put_many(&mut world, 0, 1100);
    want(&mut world);
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert!(world.state(ONE).items.dirty_count() > 1100, "nothing is stored");
    for _ in 0..3 {
        // What is left is cleared first.
        world.handle_primary(ONE, Input::Want { bucket: BUCKET, home: (1, GroupId(2)) });
        end(&mut world);
    }
    assert_eq!((home(&world), at(&world, ONE, "1m1099").0), (Some(ONE), 1));
}

fn passes(world: &World) -> usize {
    steps(world, TWO).iter().filter(|step| matches!(step, Step::Passed { .. })).count()
}

/// All is copied; whenever a pass has ended, so many keys are changed. How many were made.
fn copy_all(changed: u64) -> usize {
    let mut world = placed();
    put_many(&mut world, 0, 80);
    want(&mut world);
    commit_all(&mut world);
    let mut before = 0;
    while step(&mut world) {
        let count = passes(&world);
        if count > before && home(&world) == Some(ONE) {
            put_many(&mut world, count as u64, changed);
            commit_all(&mut world);
        }
        before = count;
        assert!(count < 20, "it comes to an end");
    }
    assert_eq!(home(&world), Some(TWO));
    before
}

#[test]
fn a_bucket_is_handed_over_when_little_of_it_changes() {
    assert_eq!([copy_all(0), copy_all(1), copy_all(80)], [2, 2, 8]);
}

#[test]
fn an_earlier_copy_does_not_make_its_source_hand_the_bucket_over() {
    let mut world = placed();
    put_many(&mut world, 0, 300);
    want(&mut world);
    commit_all(&mut world);
    while !steps(&world, TWO).iter().any(|step| matches!(step, Step::Arrived { .. })) {
        assert!(step(&mut world));
    }
    assert_eq!(passes(&world), 0, "there are more pages");
    let id = world.state(TWO).head.moves.arrival(BUCKET).expect("it is copied").id;
    for (id, then) in [(id - 1, Some(ONE)), (id, None)] {
        let said = Said::Pull { id, since: 0, cursor: key("1"), stay: 0, releases: Some(0) };
        let message = Message::Move { group: GroupId(2), bucket: BUCKET, said };
        world.handle_primary(ONE, Input::Message(message));
        commit_all(&mut world);
        assert_eq!(home(&world), then);
    }
    while step(&mut world) {}
    assert_eq!(home(&world), Some(TWO), "the pass is made again of what is at rest");
    assert_eq!(at(&world, TWO, "1m0299").0, 1);
}

/// While hosts do not agree on how many groups there should be, no bucket goes to and fro.
#[test]
fn a_bucket_is_handed_over_to_the_group_that_it_should_be_of() {
    let mut world = copied_once();
    let (one, two) = (Shape::new(1), Shape::new(200));
    assert_eq!((one.of_bucket(BUCKET), two.of_bucket(BUCKET)), (GroupId(1), GroupId(39)));
    world.handle_primary(ONE, Input::Wanted(one));
    // Another member of the source's group knows the same when it leads later.
    world.handle_primary(ONE, Input::Serving);
    while step(&mut world) {}
    world.run_ms(5000);
    assert_eq!(home(&world), Some(ONE));
    let is_copied = |world: &World| world.state(TWO).head.moves.arrival(BUCKET).is_some();
    assert!(is_copied(&world), "the second group does not know");
    world.handle_primary(TWO, Input::Wanted(two));
    world.run_ms(5000);
    assert!(!is_copied(&world), "it does not go on for ever");
    let told = world.ask(TWO, Request::Read { keys: [key("1x")].into() });
    world.settle();
    assert_eq!(world.answer(told), Some(&Reply::Refused(Refused::Moved)), "nobody waits for it");
    // They agree on another number.
    let both = Shape::new(6);
    assert_eq!(both.of_bucket(BUCKET), GroupId(2));
    (ONE..=TWO).for_each(|at| world.handle_primary(at, Input::Wanted(both)));
    want(&mut world);
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
}

/// A group goes on without so many of its last entries, and counts their places anew.
fn lose(world: &mut World, at: usize, count: usize) {
    let group = &mut world.groups[at];
    let log = group.log[..group.log.len() - count].to_vec();
    let (life, founding) = (group.life + 1, group.replicas[0].state.founding);
    *group = Group { log, life, ..Group::new(group.id) };
    for its in &mut group.replicas {
        its.state.founding = founding;
    }
    world.serve(at);
}

#[test]
fn what_is_written_after_a_loss_of_the_source_is_copied() {
    let mut world = placed();
    for counter in 2..6 {
        commit_at(&mut world, ONE, tx(counter, 1), "1x", put(&counter.to_string()));
        world.settle();
    }
    copy_once(&mut world);
    let copied = world.groups[ONE].log.len();
    lose(&mut world, ONE, 3);
    let left = at(&world, ONE, "1x");
    assert_ne!(left, at(&world, TWO, "1x"), "the copy has what is lost");
    commit_at(&mut world, ONE, tx(9, 1), "1z", put("new"));
    commit_all(&mut world);
    assert!(world.groups[ONE].log.len() <= copied, "it stands where something else stood");
    again(&mut world);
    assert_eq!(at(&world, TWO, "1z").1, Some("new".into()));
    assert_eq!(at(&world, TWO, "1x"), left);
}

/// The names of its copies begin anew.
#[test]
fn a_target_that_has_lost_its_log_copies_all_the_same() {
    let mut world = placed();
    for counter in 2..6 {
        let other = share(tx(counter, 1), &[2], &[(other_key(), put("1"))]);
        world.ask(TWO, Request::Commit(other));
        world.settle();
    }
    copy_once(&mut world);
    let all = world.groups[TWO].log.len();
    lose(&mut world, TWO, all);
    world.net.clear();
    want(&mut world);
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert_eq!(at(&world, TWO, "1y").1, Some("0".into()));
}
