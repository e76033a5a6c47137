//! Changes of members.

use super::super::node::{GROUP, Level};
use super::super::world::{World, ids};
use crate::vsr::{Configuration, Epoch, Message, Op, Status, ViewNumber};

/// What the membership says is a wish. A primary that reaches nobody does not become a group of its
/// own.
#[test]
fn a_minority_changes_no_members() {
    let mut world = World::calm(3, 1, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[a]);
    let alone = ids(&[a as u64 + 1]);
    world.turn(a, |replica, _| replica.wish(&alone).expect("it believes that it leads"));
    world.run_ms(2000);
    assert_eq!(world.replica(a).configuration().epoch, Epoch(1), "nobody has agreed");
    assert_eq!(world.serving().map(|node| node == a), Some(false));
    let request = world.put(b, 1);
    world.run_ms(20);
    assert!(world.is_told(request) || world.serving() != Some(b));
    world.settle();
}

/// A newcomer copies before it is made a member: one that does not answer would count against the
/// majority.
#[test]
fn a_newcomer_that_has_copied_nothing_becomes_no_member() {
    let mut world = World::calm(3, 1, Level::Sync);
    let [a, _, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[3]);
    let wish = ids(&[1, 2, 3, 4]);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_ms(1000);
    assert_eq!(world.epoch, 1, "it waits for the newcomer");
    world.put_many(a, 2);
    world.mend();
    world.run_ms(1000);
    assert_eq!((world.epoch, world.replica(3).status()), (2, Status::Normal));
    world.settle();
}

/// The first primary of an epoch leads when that it is in it is durable: it could forget, and lead
/// the same view again.
#[test]
fn an_epoch_is_led_when_it_is_durable() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    let mut members = [a as u64 + 1, b as u64 + 1];
    members.sort_unstable();
    let wish = ids(&members);
    let next = Configuration::after(Epoch(1), &wish, Op(0));
    let leader = next.primary(GROUP, ViewNumber::first(Epoch(2))).expect("it has members");
    let first = leader.0 as usize - 1;
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.holds.insert(first);
    world.run_until("the epoch begins", |world| {
        world.replica(first).configuration().epoch == Epoch(2)
    });
    world.run_ms(100);
    assert!(world.replica(first).primary.is_none(), "its disk has not synced");
    world.holds.clear();
    world.crash(first);
    world.start(first);
    world.settle();
}

/// All members are replaced, and the new one has not heard that its epoch has begun: those who were
/// removed tell it, and have what it lacks.
#[test]
fn who_was_removed_serves_until_a_majority_has_taken_over() {
    let mut world = World::calm(3, 1, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 5);
    let wish = ids(&[4]);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is proposed", |world| world.replica(a).closing().is_some());
    world.cut(&[3]);
    world.run_until("they are removed", |world| {
        [a, b, c].iter().all(|node| world.replica(*node).owes())
    });
    assert_eq!(world.replica(3).configuration().epoch, Epoch(1), "it does not know");
    world.mend();
    world.run_until("the new one leads", |world| world.serving() == Some(3));
    world.run_ms(200);
    assert!(![a, b, c].iter().any(|node| world.replica(*node).owes()), "they are let go");
    world.settle();
}

/// A command behind the entry that ends an epoch would be executed by two groups.
#[test]
fn nothing_is_proposed_behind_a_change_of_members() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    let mut members = [a as u64 + 1, b as u64 + 1];
    members.sort_unstable();
    let wish = ids(&members);
    world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is proposed", |world| world.replica(a).closing().is_some());
    let command = world.client_comes(1);
    assert!(!world.write(a, command), "it is closing");
    world.settle();
}
