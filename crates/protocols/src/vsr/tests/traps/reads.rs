//! Reads without an entry.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::Message;

/// A primary that was deposed and does not know shows nothing.
#[test]
fn a_deposed_primary_answers_no_read() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[a]);
    world.run_until("the second leads", |world| world.serving() == Some(b));
    let request = world.put(b, 1);
    world.run_ms(20);
    assert!(world.is_told(request) && world.replica(a).is_serving(), "the first does not know");
    let client = usize::MAX;
    assert!(world.read(client, a, 1), "it takes the read");
    world.run_ms(100);
    assert_eq!(world.judge.reads, 0, "nobody confirms that it leads");
    assert!(world.read(client, b, 1));
    world.run_ms(20);
    assert_eq!(world.judge.reads, 1, "the second is confirmed");
    world.settle();
}

/// A new primary has entries that were acknowledged to clients, and does not know that they are
/// committed: it serves when it has executed them.
#[test]
fn a_new_primary_serves_when_it_has_executed_what_it_took_over() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    let request = world.put(a, 1);
    world.run_ms(3);
    assert!(world.is_told(request), "a majority has it");
    world.crash(a);
    world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
    world.run_until("the second leads", |world| world.replica(b).primary.is_some());
    world.run_ms(200);
    let is_current = |node: usize| world.replica(node).is_current(world.now);
    assert!((0..3).all(|node| node == a || !is_current(node)), "they lack the entry");
    world.run_ms(20);
    assert!(world.replica(b).applied() < world.replica(b).log().end(), "not yet committed again");
    assert!(!world.replica(b).is_serving() && !world.read(usize::MAX, b, 1), "it does not serve");
    world.mend();
    world.run_until("it serves", |world| world.serving() == Some(b));
    assert!(world.read(usize::MAX, b, 1));
    world.run_ms(200);
    assert_eq!(world.judge.reads, 1);
    let others = || (0..3).filter(|node| *node != a);
    assert!(others().all(|node| world.replica(node).is_current(world.now)), "they have it now");
    // What it begins with again is what it had, and is committed.
    let member = others().find(|node| *node != b).expect("there are three");
    world.crash(member);
    world.start(member);
    world.run_ms(200);
    assert!(world.replica(member).is_current(world.now), "it has heard how far that is");
    world.settle();
}

/// A deposed primary that must copy a later epoch's state leads no more, also where it does not
/// know that epoch yet. It hears late that a majority followed it: what it holds then is half a
/// copy, which is no state at all; and what it proposed is not what follows that.
#[test]
fn a_primary_that_copies_shows_nothing() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 30);
    // It hears no answer to the round of its read, and then nothing more.
    world.lose(move |_, to, message| to == a && matches!(message, Message::BeatOk { .. }));
    assert!(world.read(usize::MAX, a, 11), "it takes the read");
    world.run_ms(2);
    let (view, round) = (world.replica(a).view(), world.replica(a).reads.round());
    world.cut(&[a]);
    world.run_until("the second leads", |world| world.serving_of(&[b, c]).is_some());
    let serving = world.serving_of(&[b, c]).expect("one of two");
    let mut members = [b as u64 + 1, c as u64 + 1];
    members.sort_unstable();
    let wish = ids(&members);
    world.turn(serving, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("an epoch begins", |world| world.epoch == 2);
    world.run_until("its primary leads", |world| world.serving_of(&[b, c]).is_some());
    let serving = world.serving_of(&[b, c]).expect("one of two");
    world.put_many(serving, 30);
    world.run_ms(500);
    assert!(world.replica(a).is_serving(), "it does not know that it is deposed");
    world.lose(move |_, to, message| {
        let is_beat_ok = matches!(message, Message::BeatOk { .. });
        let is_page = matches!(message, Message::Checkpoint { page: 1.., .. });
        to == a && (is_beat_ok || is_page)
    });
    world.run_until("a copy is under way", |world| world.replica(a).head.is_installing);
    let from = world.nodes[b].me;
    let late = Message::BeatOk { view, round };
    world.turn(a, |replica, cx| replica.on_message(from, late, cx));
    assert_eq!(world.judge.reads, 0, "half a copy is not shown");
    assert!(!world.read(usize::MAX, a, 11), "nor is it read from now on");
    assert_eq!(world.replica(a).configuration().epoch.0, 1, "its epoch has not ended here");
    assert!(world.replica(a).primary.is_none(), "it leads no more");
    world.settle();
}

/// A primary that is cut off with a member says that it doubts itself, as long as the cut lasts.
#[test]
fn who_is_cut_off_with_its_primary_is_not_current_for_long() {
    let mut world = World::calm(5, 0, Level::Sync);
    let [a, b, c, ..] = world.order()[..] else { panic!("five lead in turn") };
    world.run_ms(200);
    assert!([a, b, c].iter().all(|node| world.replica(*node).is_current(world.now)));
    world.cut(&[a, b]);
    world.run_ms(1500);
    assert!([a, b].iter().all(|node| !world.replica(*node).is_current(world.now)));
    assert!(world.replica(c).is_current(world.now), "the others go on");
    world.settle();
}

/// A member hears how far entries are committed, and lacks them.
#[test]
fn who_lacks_what_is_committed_is_not_current() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(200);
    world.lose(move |_, to, message| {
        to == b && matches!(message, Message::Prepare { .. } | Message::NewState { .. })
    });
    world.put_many(a, 3);
    world.run_ms(600);
    assert!(!world.replica(b).is_current(world.now), "beats do not make it so");
    world.lose(|_, _, _| false);
    world.run_ms(300);
    assert!(world.replica(b).is_current(world.now));
    world.settle();
}
