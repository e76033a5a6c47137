//! Losses of everything while some have begun the epoch that an earlier one has made, and others
//! have not heard of it.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::Message;
use quorate_kernel::ids::NodeId;

fn name(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

fn epoch(world: &World, node: usize) -> u64 {
    world.replica(node).configuration().epoch.0
}

/// Three members of an epoch lose everything, and have what ends it in their logs; who leads has
/// executed it, and nobody has heard of that. Answers who leads; its disk does not sync what it has
/// executed if it is to be held.
fn one_begins(world: &mut World, is_held: bool) -> usize {
    let before = epoch(world, 0);
    world.judge.may_lose();
    (0..3).for_each(|node| world.crash(node));
    (0..3).for_each(|node| world.start(node));
    world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
    let ends = |world: &World| (0..3).all(|node| world.replica(node).closing().is_some());
    world.run_until("all have the end", ends);
    let leads = (0..3).find(|node| world.replica(*node).primary.is_some()).expect("somebody leads");
    if is_held {
        world.holds.insert(leads);
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
    world.lose(move |from, to, message| from == leads && to < 3 && tells(message));
    world.run_until("one has begun", |world| epoch(world, leads) > before);
    let others = (0..3).filter(|node| *node != leads);
    others.for_each(|node| assert_eq!(epoch(world, node), before, "it has not heard of it"));
    leads
}

/// One has begun the epoch, durably; then all forget again, also how it began. The others cannot
/// learn that from anybody, and need not: they have nothing of the one before.
#[test]
fn who_has_nothing_follows_who_has_lost_how_its_epoch_began() {
    let mut world = World::calm(3, 0, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    world.run_ms(100);
    let leads = one_begins(&mut world, false);
    world.run_ms(5);
    (0..3).for_each(|node| world.crash(node));
    world.mend();
    (0..3).for_each(|node| world.start(node));
    assert_eq!(epoch(&world, leads), 2, "it keeps that");
    world.run_until("they go on", |world| world.serving().is_some());
    assert_eq!(world.epoch, 3, "what began with the second loss");
    world.settle();
}

/// Two have begun the epoch, and written in it; the third has not heard of it. It and one of the two
/// lose everything then. What the other one has is whole, and comes first, however late it is heard:
/// with it the third is a member that has lost nothing.
#[test]
fn who_has_nothing_follows_nobody_while_another_has_the_log() {
    let mut world = World::calm(3, 0, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    world.run_ms(100);
    world.judge.may_lose();
    (0..3).for_each(|node| world.crash(node));
    (0..3).for_each(|node| world.start(node));
    let leads = |world: &World, node: usize| world.replica(node).primary.is_some();
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

/// One has begun the epoch, and that is not durable when all forget again: they decide anew how it
/// begins. A server that was removed has asked meanwhile, and was told nothing of the one that is
/// lost: it can come back.
#[test]
fn an_epoch_that_may_be_lost_is_told_to_nobody() {
    let mut world = World::calm(3, 1, Level::Memory);
    world.run_ms(60);
    let wish = |world: &mut World, members: &[u64]| {
        let members = ids(members);
        let serving = world.serving().expect("somebody serves");
        world.turn(serving, |replica, _| replica.wish(&members).expect("it leads"));
        world.run_ms(1000);
        assert_eq!(world.members, members, "the wish has come true");
    };
    wish(&mut world, &[1, 2, 3, 4]);
    wish(&mut world, &[1, 2, 3]);
    let leads = one_begins(&mut world, true);
    world.turn(3, |replica, cx| replica.catch_up(name(leads), cx));
    world.run_ms(10);
    (0..3).for_each(|node| world.crash(node));
    world.mend();
    (0..3).for_each(|node| world.start(node));
    world.run_until("they go on", |world| world.serving().is_some());
    let serving = world.serving().expect("somebody serves");
    world.put_many(serving, 2);
    wish(&mut world, &[1, 2, 3, 4]);
    world.settle();
}
