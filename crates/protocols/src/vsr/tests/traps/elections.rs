//! View changes: which log is chosen, and what a vote rests on.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::{Epoch, Message, Status};

/// The log of a later view wins over a longer one of an earlier view. The latter's member has begun
/// the new view too, but its log is still of the earlier one.
#[test]
fn the_latest_normal_view_wins_over_the_longest_log() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[a]);
    for key in 0..5 {
        world.put(a, key);
    }
    world.run_until("the second leads", |world| world.serving() == Some(b));
    let request = world.put(b, 9);
    world.run_ms(20);
    assert!(world.is_told(request), "two have it");
    world.crash(b);
    world.mend();
    world.run_ms(3000);
    let serving = world.serving().expect("two of three serve");
    assert!(serving != b && world.replica(serving).status() == Status::Normal);
    world.compare();
    world.settle();
}

/// A vote says which log there is, and that earlier views are over. Both are durable before.
#[test]
fn a_vote_waits_for_the_sync() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[a]);
    world.holds.insert(c);
    world.run_ms(700);
    world.crash(c);
    world.holds.clear();
    // It has forgotten that it has voted, and goes on with the first primary.
    world.cut(&[b]);
    world.start(c);
    let request = world.put(a, 1);
    world.run_ms(150);
    assert!(world.is_told(request), "two have it");
    world.crash(a);
    world.mend();
    world.run_ms(3000);
    assert!(world.serving().is_some(), "two of three serve");
    world.compare();
    world.settle();
}

/// Two others want it to lead, and its own disk does not sync: a primary does not lead a view that
/// it could forget to have led.
#[test]
fn a_primary_leads_no_view_before_that_view_is_durable() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.holds.insert(b);
    world.lose(move |from, to, message| {
        // The first goes on voting: it does not hear that the view has started, nor of the next.
        let is_next = matches!(message, Message::StartViewChange { .. });
        let is_asking = matches!(message, Message::GetState { .. });
        ((from, to) == (b, a) && !is_asking) || ((from, to) == (c, a) && is_next)
    });
    world.crash(a);
    world.start(a);
    world.run_ms(700);
    let first = (world.serving() == Some(b)).then(|| world.put(b, 1));
    world.run_ms(100);
    world.crash(b);
    world.cut(&[c]);
    world.holds.clear();
    world.start(b);
    world.run_until("two others agree", |world| world.serving().is_some());
    let serving = world.serving().expect("somebody serves");
    assert!(world.replica(serving).view().view >= 1, "the first view is over");
    world.put(serving, 2);
    world.run_ms(100);
    world.settle();
    assert_eq!(first, None, "it did not lead");
}

/// Votes are kept by sender: one that comes three times is one of five.
#[test]
fn a_vote_counts_once() {
    let mut world = World::calm(5, 0, Level::Sync);
    let [_, b, c, _, _] = world.order()[..] else { panic!("five lead in turn") };
    world.run_ms(60);
    let view = world.replica(b).view().next();
    let normal = world.replica(c).view();
    let end = world.replica(c).log().end();
    let from = world.nodes[c].me;
    for _ in 0..3 {
        let (commit, lost) = (end, None);
        let vote = Message::DoViewChange { view, normal, end, commit, lost };
        world.turn(b, |replica, cx| replica.on_message(from, vote, cx));
    }
    world.lose(|_, _, _| true);
    world.run_ms(30);
    assert_eq!(world.replica(b).status(), Status::ViewChange, "two of five have voted");
    world.settle();
}

/// A primary that starts again does not go on with its view: others may have what it has lost.
#[test]
fn a_restarted_primary_begins_another_view() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    let view = world.replica(a).view();
    world.holds.insert(a);
    world.lose(move |from, to, message| {
        [from, to].contains(&c) || matches!(message, Message::PrepareOk { .. })
    });
    world.put(a, 1);
    world.run_ms(10);
    assert!(world.replica(b).log().end() > world.replica(c).log().end(), "one has it");
    world.crash(a);
    world.mend();
    world.start(a);
    assert!(world.replica(a).view() > view, "that view is over");
    if world.serving() == Some(a) {
        // It has lost the entry, and puts another one in its place.
        world.put(a, 2);
    }
    world.run_ms(20);
    world.settle();
}

/// A member that has more to execute than one turn should votes with a commit number beyond what it
/// has executed: the entry that ends the epoch too. The new primary, with less to execute, is in
/// the next epoch when its election ends.
#[test]
fn an_election_may_end_its_epoch() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    world.lose(move |_, to, message| to == a && matches!(message, Message::PrepareOk { .. }));
    let mut members = [a as u64 + 1, b as u64 + 1];
    members.sort_unstable();
    let wish = ids(&members);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is everywhere", |world| {
        [b, c].iter().all(|node| world.replica(*node).closing().is_some())
    });
    world.cut(&[a, b, c]);
    let (normal, end) = (world.replica(c).view(), world.replica(c).log().end());
    let (view, commit, lost) = (normal.next(), end, None);
    let from = world.nodes[c].me;
    let vote = Message::DoViewChange { view, normal, end, commit, lost };
    world.turn(b, |replica, cx| replica.on_message(from, vote, cx));
    world.run_ms(10);
    assert_eq!(world.replica(b).configuration().epoch, Epoch(2), "its own vote ends the election");
    world.settle();
}

/// Where views follow the membership nobody doubts a primary that is silent, or whose connections
/// have ended: the members wait until a majority of them knows that it was removed.
#[test]
fn a_group_that_goes_by_the_membership_waits_for_it() {
    let mut world = by_membership();
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    let request = world.put(a, 1);
    world.run_ms(60);
    assert!(world.is_told(request), "it serves as any other");
    world.crash(a);
    let gone = world.nodes[a].me.node;
    for node in [b, c] {
        world.turn(node, |replica, cx| replica.on_unlinked(gone, cx));
    }
    world.run_ms(10_000);
    assert_eq!(world.serving(), None, "neither silence nor an ended connection is a removal");
    world.turn(b, |replica, _| replica.note_removed(|node| node == gone));
    world.run_ms(1000);
    assert_eq!(world.serving(), None, "one of three knows");
    world.turn(c, |replica, _| replica.note_removed(|node| node == gone));
    world.run_until("another leads", |world| world.serving().is_some());
    world.compare();
    world.settle();
}

/// There, one that was removed leads no more though it is there and beats; nor does the next one,
/// if it was removed before.
#[test]
fn a_primary_that_the_membership_has_removed_leads_no_more() {
    let mut world = by_membership();
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    let removed = [a, b].map(|node| world.nodes[node].me.node);
    for node in [a, b, c] {
        world.turn(node, |replica, _| replica.note_removed(|node| removed.contains(&node)));
    }
    world.run_until("the third leads", |world| world.serving() == Some(c));
    world.compare();
    world.settle();
}

fn by_membership() -> World {
    let mut world = World::calm(3, 0, Level::Sync);
    for node in world.order() {
        let replica = world.nodes[node].replica.as_mut().expect("it is up");
        replica.settings.by_membership = true;
    }
    world.run_ms(60);
    world
}
