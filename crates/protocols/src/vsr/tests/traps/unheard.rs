//! Losses of everything while some have begun the epoch that an earlier one has made, and others
//! have not heard of it.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::{Message, Op};
use quorate_kernel::time::Span;
use std::cell::RefCell;
use std::rc::Rc;
use std::vec::Vec;

fn epoch(world: &World, node: usize) -> u64 {
    world.replica(node).configuration().epoch.0
}

fn leads(world: &World, node: usize) -> bool {
    world.replica(node).primary.is_some()
}

/// Three members of an epoch lose everything, and have what ends it in their logs; who leads has
/// executed it, and nobody has heard of that. Answers who leads; its disk does not sync what it has
/// executed if it is to be held.
fn one_begins(world: &mut World, is_held: bool) -> usize {
    let before = epoch(world, 0);
    world.end_unheard();
    let first = (0..3).find(|node| leads(world, *node)).expect("somebody leads");
    if is_held {
        world.holds.insert(first);
    }
    world.run_ms(3);
    let tells = |message: &Message| match message {
        Message::Beat { commit, .. }
        | Message::Prepare { commit, .. }
        | Message::StartView { commit, .. }
        | Message::NewState { commit, .. } => commit.0 > 0,
        Message::StartEpoch { .. } => true,
        _ => false,
    };
    world.lose(move |from, to, message| from == first && to < 3 && tells(message));
    world.run_until("one has begun", |world| epoch(world, first) > before);
    let others = (0..3).filter(|node| *node != first);
    others.for_each(|node| assert_eq!(epoch(world, node), before, "it has not heard of it"));
    first
}

/// One of three has begun the epoch, durably; then all have ended. Answers which one.
fn begun_and_lost() -> (World, usize) {
    let mut world = World::calm(3, 0, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    world.run_ms(100);
    let first = one_begins(&mut world, false);
    world.run_ms(5);
    (0..3).for_each(|node| world.crash(node));
    world.mend();
    (world, first)
}

/// One has begun the epoch, durably; then all forget again, also how it began. The others cannot
/// learn that from anybody, and need not: they have nothing of the one before.
#[test]
fn who_has_nothing_follows_who_has_lost_how_its_epoch_began() {
    let (mut world, first) = begun_and_lost();
    (0..3).for_each(|node| world.start(node));
    assert_eq!(epoch(&world, first), 2, "it keeps that");
    world.run_until("they go on", |world| world.serving().is_some());
    assert_eq!(world.epoch, 3, "what began with the second loss");
    world.settle();
}

/// The same of five, of whom two have heard nothing of it, and have not lost anything again: they
/// have voted, and have nothing. Each of them hears so from the other.
#[test]
fn two_who_have_nothing_tell_each_other() {
    let mut world = World::calm(5, 0, Level::Memory);
    world.run_ms(60);
    world.judge.may_lose();
    world.restart_all(5);
    world.lose(|_, _, message| matches!(message, Message::StartView { .. }));
    world.run_until("all have voted", |world| (0..5).any(|node| leads(world, node)));
    let far: Vec<usize> = (0..5).filter(|node| !leads(&world, *node)).take(2).collect();
    world.cut(&far);
    world.run_until("three go on", |world| world.serving().is_some());
    assert!(far.iter().all(|node| world.replica(*node).log().end() == Op(0)));
    let near: Vec<usize> = (0..5).filter(|node| !far.contains(node)).collect();
    near.iter().for_each(|node| world.crash(*node));
    world.mend();
    near.iter().for_each(|node| world.start(*node));
    world.run_until("they go on", |world| world.epoch == 3 && world.serving().is_some());
    world.settle();
}

/// Two have begun the epoch, and written in it; the third has not heard of it. It and one of the
/// two lose everything then. What the other one has is whole, and comes first, however late it is
/// heard: with it the third is a member that has lost nothing.
#[test]
fn who_has_nothing_follows_nobody_while_another_has_the_log() {
    let mut world = World::calm(3, 0, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    world.run_ms(100);
    world.judge.may_lose();
    world.restart_all(3);
    world.run_until("all have voted", |world| (0..3).any(|node| leads(world, node)));
    let late = (0..3).find(|node| !leads(&world, *node)).expect("two follow");
    world.cut(&[late]);
    world.run_until("two go on", |world| world.serving().is_some());
    let first = world.serving().expect("somebody serves");
    let whole = (0..3).find(|node| ![first, late].contains(node)).expect("there are three");
    let request = world.put(first, 7);
    world.run_ms(50);
    assert!(world.is_told(request), "two have it");
    assert_eq!((epoch(&world, whole), epoch(&world, late)), (2, 1));
    let told = world.told["lost"];
    [first, late].into_iter().for_each(|node| world.crash(node));
    world.lose(move |from, to, _| from == whole && to == late);
    [first, late].into_iter().for_each(|node| world.start(node));
    world.run_ms(500);
    world.settle();
    let serving = world.serving().expect("somebody serves");
    assert!(world.nodes[serving].machine.items.contains_key(&7), "nothing is lost");
    assert_eq!((world.told["lost"], epoch(&world, late)), (told, 2));
}

/// Two have begun the epoch, and their logs have let go of how; the third copies their state when
/// they lose everything. It has neither their log nor its own, and hears so though it copies.
#[test]
fn who_copies_what_is_lost_follows_too() {
    let mut world = World::calm(3, 0, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    world.run_ms(100);
    world.judge.may_lose();
    world.restart_all(3);
    world.run_until("all have voted", |world| (0..3).any(|node| leads(world, node)));
    let late = (0..3).find(|node| !leads(&world, *node)).expect("two follow");
    world.cut(&[late]);
    world.run_until("two go on", |world| world.serving().is_some());
    let first = world.serving().expect("somebody serves");
    let others: Vec<usize> = (0..3).filter(|node| *node != late).collect();
    for _ in 0..4 {
        world.put_many(first, 30);
        world.run_ms(200);
    }
    let begins_later = |node: &usize| world.replica(*node).log().base().op > Op(1);
    assert!(others.iter().all(begins_later), "their logs begin later");
    world.mend();
    let is_piece = |message: &Message| matches!(message, Message::Checkpoint { .. });
    world.lose(move |_, to, message| to == late && is_piece(message));
    world.run_until("it copies", |world| world.replica(late).install.is_some());
    world.judge.may_lose();
    others.iter().for_each(|node| world.crash(*node));
    world.mend();
    others.iter().for_each(|node| world.start(*node));
    world.run_until("they go on", |world| world.epoch == 3 && world.serving().is_some());
    world.settle();
}

/// One has begun the epoch, and that is not durable when all forget again: they decide anew how it
/// begins. A server that was removed has asked meanwhile, and was told nothing of the one that is
/// lost: it can come back.
#[test]
fn an_epoch_that_may_be_lost_is_told_to_nobody() {
    let mut world = World::calm(3, 1, Level::Memory);
    world.run_ms(60);
    world.wish(&[1, 2, 3, 4]);
    world.wish(&[1, 2, 3]);
    let first = one_begins(&mut world, true);
    let told = world.nodes[first].me.node;
    world.turn(3, |replica, cx| replica.catch_up(told, cx));
    world.run_ms(10);
    (0..3).for_each(|node| world.crash(node));
    world.mend();
    (0..3).for_each(|node| world.start(node));
    world.run_until("they go on", |world| world.serving().is_some());
    let serving = world.serving().expect("somebody serves");
    world.put_many(serving, 2);
    world.wish(&[1, 2, 3, 4]);
    world.settle();
}

/// As in the first test, up to where the others are told: what one of them is told comes long after
/// its question, when its sender may have got the log back.
#[test]
fn a_telling_is_no_newer_than_its_question_and_ends_when_its_sender_is_whole() {
    let (mut world, first) = begun_and_lost();
    let late = (0..3).find(|node| *node != first).expect("there are three");
    let told = Rc::new(RefCell::new(None));
    let kept = Rc::clone(&told);
    world.lose(move |from, to, message| {
        let is_telling = matches!(message, Message::EpochWithoutLog { .. });
        if is_telling && (from, to) == (first, late) {
            kept.borrow_mut().get_or_insert_with(|| message.clone());
        }
        is_telling || kept.borrow().is_some()
    });
    (0..3).for_each(|node| world.start(node));
    world.run_until("it is told", |_| told.borrow().is_some());
    let (from, telling) = (world.nodes[first].me, told.take().expect("it was told"));
    let hear = |world: &mut World, message: &Message| {
        let message = message.clone();
        world.turn(late, |replica, cx| replica.on_message(from, message, cx));
        world.replica(late).recovery.without_log.contains_key(&from.node)
    };
    let asked = world.replica(late).asked.expect("it has asked");
    assert!(hear(&mut world, &telling), "it is counted at once");
    let view = world.replica(first).view();
    let beat = Message::Beat { view, commit: Op(0), end: Op(0), round: 0, held: Op(0) };
    assert!(!hear(&mut world, &beat), "who has a log says so");
    world.turn(late, |replica, _| replica.asked = Some(asked));
    world.now = world.now + Span::secs(2);
    assert!(!hear(&mut world, &telling), "it is as old as the question");
}
