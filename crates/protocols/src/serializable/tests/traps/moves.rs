//! Buckets that move between groups, step by step.

use super::*;
use crate::serializable::lane::Shape;
use crate::serializable::{
    Act, Cause, Commit, Entry, Outcome, Rank, Raw, Refused, Request, Step, TxId, Version,
};
use crate::vsr::Op;
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

/// The bucket of `1x` and its like.
pub const BUCKET: u8 = b'1';
/// One that is of the second group in the beginning.
const OTHER: u8 = 200;

/// A world where two groups share the buckets, with `1x` and `1y` put once.
pub fn placed() -> World {
    let mut world = World::new(2);
    for its in world.groups.iter_mut().flat_map(|group| &mut group.replicas) {
        its.state.founding = Some(Shape::new(2));
    }
    world.commit_tx(tx(1, 9), &[], &[("1x", put("0")), ("1y", put("0"))]);
    world.settle();
    assert_eq!(world.value("1x"), (1, Some("0".into())));
    world
}

/// A share of a transaction of some groups.
pub fn share(id: TxId, groups: &[u64], acts: &[(Raw, Act)]) -> Commit {
    Commit {
        rank: Rank { priority: id.counter, tx: id },
        mark: 0,
        groups: groups.iter().copied().map(GroupId).collect(),
        reads: BTreeMap::new(),
        acts: acts.to_vec(),
        goes_on: false,
        value_max: 1000,
    }
}

/// A client commits a change of one key at one group.
pub fn commit_at(world: &mut World, at: usize, id: TxId, name: &str, act: Act) -> Ticket {
    let commit = share(id, &[at as u64 + 1], &[(key(name), act)]);
    world.ask(at, Request::Commit(commit))
}

pub fn other_key() -> Raw {
    Raw(Bytes::from_static(&[OTHER, b'k']))
}

/// The second group should have the bucket.
pub fn want(world: &mut World) {
    let home = (0, GroupId(1));
    world.handle_primary(TWO, Input::Want { bucket: BUCKET, home });
}

/// A group looks at all its keys: what it does not need goes, tombstones up to an entry too.
pub fn sweep(world: &mut World, at: usize, purge: u64) {
    let input = Input::Sweep { from: Bytes::new(), purge: Op(purge) };
    world.handle_primary(at, input);
    world.commit(at, usize::MAX);
}

/// Where the bucket is: at one group at most.
pub fn home(world: &World) -> Option<usize> {
    let here: Vec<usize> =
        [ONE, TWO].into_iter().filter(|at| world.state(*at).is_here(BUCKET)).collect();
    assert!(here.len() < 2, "a bucket is of one group at a time");
    here.first().copied()
}

/// What a key of the bucket has at a group, though that may not serve it.
pub fn at(world: &World, group: usize, name: &str) -> (u64, Option<String>) {
    let its = &world.groups[group].replicas[world.groups[group].primary];
    let item = its.state.item(&key(name), &its.disk);
    let text = |raw: &Raw| String::from_utf8_lossy(raw).into_owned();
    (item.version.0, item.content.map(|(value, _)| text(&value)))
}

pub fn steps(world: &World, at: usize) -> Vec<Step> {
    let entries = world.groups[at].log.iter().map(|it| Entry::of(it).expect("it is an entry"));
    let step = |entry| match entry {
        Entry::Move(step) => Some(step),
        _ => None,
    };
    entries.filter_map(step).collect()
}

/// One message is delivered, and all is committed that follows at once.
pub fn step(world: &mut World) -> bool {
    let is_one = world.deliver(|_| true);
    commit_all(world);
    home(world);
    is_one
}

/// The first pass has ended, and the second group is about to ask for the bucket.
pub fn copied_once() -> World {
    let mut world = placed();
    copy_once(&mut world);
    world
}

/// The same of a world where nothing moves yet.
pub fn copy_once(world: &mut World) {
    want(world);
    commit_all(world);
    let has_passed =
        |world: &World| steps(world, TWO).iter().any(|step| matches!(step, Step::Passed { .. }));
    while !has_passed(world) {
        assert!(step(world), "{:?}", world.trace);
    }
    assert_eq!(home(world), Some(ONE));
}

/// All goes on until nothing moves any more.
pub fn end(world: &mut World) {
    for _ in 0..60 {
        while step(world) {}
        world.run_ms(100);
        sweep(world, ONE, 0);
        sweep(world, TWO, 0);
    }
    let is_idle = |at: usize| {
        let mut moved = world.state(at).head.moves.buckets.values();
        moved.all(|it| it.arrival.is_none() && !it.is_kept)
    };
    assert!(is_idle(ONE) && is_idle(TWO), "{:?}", world.trace);
}

#[test]
fn a_bucket_moves_with_values_versions_and_tombstones() {
    let mut world = placed();
    commit_at(&mut world, ONE, tx(2, 1), "1x", put("1"));
    commit_at(&mut world, ONE, tx(3, 1), "1y", Act::Delete);
    world.settle();
    want(&mut world);
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert_eq!(at(&world, TWO, "1x"), (2, Some("1".into())));
    assert_eq!(at(&world, TWO, "1y"), (2, None), "its version goes on");
    assert_eq!(at(&world, ONE, "1x").1, None, "nothing is kept");
    let told = commit_at(&mut world, TWO, tx(4, 1), "1x", put("2"));
    world.settle();
    assert!(world.is_committed(told));
    assert_eq!(at(&world, TWO, "1x"), (3, Some("2".into())));
    world.copy(TWO, 0, 1, &mut |_| {});
    world.check_equal();
    world.check_quiet();
}

#[test]
fn what_changes_while_a_bucket_is_copied_comes_with_it() {
    let mut world = copied_once();
    let told = commit_at(&mut world, ONE, tx(2, 1), "1x", put("1"));
    let other = commit_at(&mut world, ONE, tx(3, 1), "1z", put("1"));
    commit_all(&mut world);
    assert!(world.is_committed(told) && world.is_committed(other), "it is served meanwhile");
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert_eq!(at(&world, TWO, "1x"), (2, Some("1".into())));
    assert_eq!(at(&world, TWO, "1z"), (1, Some("1".into())));
}

#[test]
fn a_bucket_is_of_one_group_at_a_time() {
    let mut world = placed();
    want(&mut world);
    commit_all(&mut world);
    let mut homes = Vec::from([home(&world)]);
    while step(&mut world) {
        homes.push(home(&world));
        homes.dedup();
    }
    assert_eq!(homes, [Some(ONE), None, Some(TWO)]);
}

#[test]
fn a_bucket_is_not_handed_over_while_a_key_is_held() {
    let mut world = copied_once();
    // The second group never hears of it: the first one waits for its vote.
    let commit = share(tx(2, 1), &[1, 2], &[(key("1x"), put("1"))]);
    let held = world.ask(ONE, Request::Commit(commit));
    commit_all(&mut world);
    assert!(world.state(ONE).locks.is_held(&key("1x")), "it has voted");
    while step(&mut world) {}
    assert_eq!(home(&world), Some(ONE));
    let told = commit_at(&mut world, ONE, tx(3, 2), "1y", put("1"));
    world.settle();
    assert_eq!(world.told(told), None, "nothing is begun meanwhile");
    end(&mut world);
    assert_eq!(world.told(held), Some(&Outcome::Aborted(Cause::Timeout)));
    assert_eq!(home(&world), Some(TWO), "it is free then");
    assert!(world.told(told).is_some(), "whoever has waited is told");
}

/// The one that decides is gone: the key stays held, and all others of the bucket are served.
#[test]
fn a_bucket_that_cannot_be_handed_over_is_served_again() {
    let mut world = placed();
    let commit = share(tx(2, 1), &[1, 2], &[(other_key(), put("1"))]);
    world.ask(TWO, Request::Commit(commit));
    commit_all(&mut world);
    let is_move = |message: &Message| matches!(message, Message::Move { .. });
    let home = (0, GroupId(2));
    world.handle_primary(ONE, Input::Want { bucket: OTHER, home });
    let mut is_closed = false;
    for _ in 0..30 {
        commit_all(&mut world);
        world.net.retain(|it| is_move(&it.message));
        while world.deliver(|_| true) {
            commit_all(&mut world);
            world.net.retain(|it| is_move(&it.message));
        }
        world.now = world.now + quorate_kernel::time::Span::millis(50);
        let says = |step: &Step| matches!(step, Step::Passed { .. });
        is_closed |= steps(&world, ONE).iter().any(says);
        (ONE..=TWO).for_each(|at| world.handle_primary(at, Input::Tick));
    }
    assert!(is_closed && world.state(TWO).is_here(OTHER), "it is held");
    let free = Raw(Bytes::from_static(&[OTHER, b'f']));
    let told = world.ask(TWO, Request::Commit(share(tx(3, 2), &[2], &[(free, put("1"))])));
    commit_all(&mut world);
    assert!(world.is_committed(told), "{:?}", world.told(told));
}

#[test]
fn who_asks_the_old_group_is_told_so_and_does_nothing() {
    let mut world = placed();
    want(&mut world);
    end(&mut world);
    let told = commit_at(&mut world, ONE, tx(2, 1), "1x", put("1"));
    let read = world.ask(ONE, Request::Read { keys: Vec::from([key("1x")]) });
    let reads = BTreeMap::from([(key("1x"), Version(1))]);
    let check = world.ask(ONE, Request::Check { reads });
    world.settle();
    assert_eq!(world.told(told), Some(&Outcome::Aborted(Cause::Moved)));
    for ticket in [read, check] {
        assert_eq!(world.answer(ticket), Some(&Reply::Refused(Refused::Moved)));
    }
    assert_eq!(at(&world, TWO, "1x"), (1, Some("0".into())));
    // It stays so though the bucket comes back.
    world.handle_primary(ONE, Input::Want { bucket: BUCKET, home: (1, GroupId(2)) });
    end(&mut world);
    assert_eq!(home(&world), Some(ONE));
    let again = commit_at(&mut world, ONE, tx(2, 1), "1x", put("1"));
    world.settle();
    assert_eq!(world.told(again), Some(&Outcome::Aborted(Cause::Moved)));
    assert_eq!(at(&world, ONE, "1x"), (1, Some("0".into())));
}

#[test]
fn who_asks_the_next_group_too_early_is_told_to_ask_again() {
    let mut world = copied_once();
    let told = commit_at(&mut world, TWO, tx(2, 1), "1x", put("1"));
    assert_eq!(world.answer(told), Some(&Reply::Refused(Refused::Moving)));
    end(&mut world);
    let again = commit_at(&mut world, TWO, tx(2, 1), "1x", put("1"));
    world.settle();
    assert!(world.is_committed(again), "nothing was said of that name");
}

#[test]
fn what_had_ended_before_a_move_is_answered_after_it() {
    let mut world = placed();
    let told = commit_at(&mut world, ONE, tx(2, 1), "1x", Act::Append(key("1")));
    world.settle();
    assert!(world.is_committed(told));
    want(&mut world);
    end(&mut world);
    let again = commit_at(&mut world, ONE, tx(2, 1), "1x", Act::Append(key("1")));
    world.settle();
    assert_eq!(world.told(again), world.told(told), "its answer was lost");
    assert_eq!(at(&world, TWO, "1x"), (2, Some("01".into())), "it was done once");
}

#[test]
fn what_is_purged_while_a_bucket_is_copied_does_not_come_back() {
    let mut world = copied_once();
    commit_at(&mut world, ONE, tx(2, 1), "1x", Act::Delete);
    commit_all(&mut world);
    sweep(&mut world, ONE, 1000);
    assert_eq!(world.state(ONE).head.floor, Version(2), "it was purged");
    while step(&mut world) {}
    want(&mut world);
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert_eq!(at(&world, TWO, "1x"), (2, None));
    assert_eq!(at(&world, TWO, "1y"), (1, Some("0".into())));
}

#[test]
fn an_absent_key_has_no_lower_version_after_a_move() {
    let mut world = placed();
    commit_at(&mut world, ONE, tx(2, 1), "1x", Act::Delete);
    world.settle();
    sweep(&mut world, ONE, 1000);
    want(&mut world);
    end(&mut world);
    assert_eq!(home(&world), Some(TWO));
    assert_eq!(at(&world, TWO, "1x"), (2, None));
}

#[test]
fn what_is_kept_for_the_next_group_is_not_cleared() {
    let mut world = copied_once();
    commit_at(&mut world, ONE, tx(2, 1), "1x", put("1"));
    commit_all(&mut world);
    while home(&world) == Some(ONE) {
        assert!(step(&mut world));
    }
    sweep(&mut world, ONE, 0);
    end(&mut world);
    assert_eq!(at(&world, TWO, "1x"), (2, Some("1".into())));
}
