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

/// Who is no member, and knows who is, hears the primary alone: it copies, and waits for nobody.
#[test]
fn who_learns_waits_for_no_member() {
    let mut world = World::calm(3, 1, Level::Sync);
    let [a, _, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    for members in [&[1, 2, 3, 4][..], &[1, 2, 3]] {
        let wish = ids(members);
        let leads = world.serving().unwrap_or(a);
        world.turn(leads, |replica, _| replica.wish(&wish).expect("it leads"));
        world.run_until("the wish has come true", |world| world.members == wish);
        world.run_until("somebody serves", |world| world.serving().is_some());
    }
    world.run_ms(1000);
    assert_eq!(world.replica(3).status(), Status::Learner);
    assert!(!world.replica(3).configuration().members.is_empty());
    assert_eq!(world.replica(3).waits_for(world.now), []);
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

/// A member that still copies the state is heard, and is no majority with one other: the next
/// epoch would stand still.
#[test]
fn who_copies_is_not_counted_on() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    world.put_many(a, 30);
    // The next view is idle: its primary has heard nothing of who was away.
    world.crash(a);
    world.start(a);
    world.run_until("another leads", |world| world.serving() == Some(b));
    world.run_ms(500);
    world.mend();
    world.lose(|_, _, message| matches!(message, Message::Checkpoint { .. }));
    world.run_until("it copies", |world| world.replica(c).install.is_some());
    world.run_ms(500);
    let mut wish = ids(&[b as u64 + 1, c as u64 + 1]);
    wish.sort_unstable();
    world.turn(b, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_ms(1000);
    assert!(world.replica(b).is_heard(world.nodes[c].me.node, world.now), "it asks for the state");
    assert!(world.replica(b).closing().is_none() && world.epoch == 1, "that is not put in the log");
    world.put_many(b, 2);
    world.mend();
    world.run_until("the wish has come true", |world| world.members == wish);
    world.settle();
}

/// Nobody acknowledges where nothing is proposed, and what was acknowledged at first was lost: who
/// is there is counted on all the same.
#[test]
fn an_idle_group_goes_on_without_a_dead_member() {
    for leads_anew in [false, true] {
        for has_newcomer in [false, true] {
            let mut world = World::calm(3, 1, Level::Sync);
            let order = world.order();
            world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
            world.run_ms(60);
            let dead = if leads_anew { order[0] } else { order[2] };
            world.crash(dead);
            world.run_ms(2000);
            world.mend();
            let leads = world.serving().expect("somebody serves");
            let mut wish = ids(&[1, 2, 3, 4]);
            wish.retain(|node| node.0 != dead as u64 + 1 && (has_newcomer || node.0 < 4));
            world.turn(leads, |replica, _| replica.wish(&wish).expect("it leads"));
            world.run_until("the wish has come true", |world| world.members == wish);
            world.settle();
        }
    }
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

/// A member that lags is removed, and hears of it by a copy: it is let go like the others.
#[test]
fn who_hears_by_a_copy_that_it_was_removed_is_let_go() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    let mut members = [a as u64 + 1, b as u64 + 1];
    members.sort_unstable();
    let wish = ids(&members);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("an epoch begins", |world| world.epoch == 2);
    world.run_until("its primary leads", |world| world.serving_of(&[a, b]).is_some());
    let serving = world.serving_of(&[a, b]).expect("one of two");
    world.run_ms(100);
    let serving = world.serving().unwrap_or(serving);
    world.put_many(serving, 30);
    world.run_ms(500);
    world.mend();
    world.run_until("it copies", |world| world.replica(c).install.is_some());
    world.run_until("it is no member", |world| world.replica(c).status() == Status::Learner);
    world.run_until("it is let go", |world| world.told.contains_key("released"));
    world.settle();
}

/// A newcomer that loses what it has copied says so: what it has told last counts.
#[test]
fn what_a_newcomer_has_told_last_counts() {
    let mut world = World::calm(3, 1, Level::Sync);
    let [a, _, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    (0..1200).for_each(|_| _ = world.put(a, 1));
    world.run_ms(100);
    world.cut(&[3]);
    let wish = ids(&[1, 2, 3, 4]);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    let from = world.nodes[3].me;
    let commit = world.replica(a).commit();
    assert!(commit.0 > 1200, "all are committed");
    for end in [commit, Op(0)] {
        world.turn(a, |replica, cx| replica.on_message(from, Message::Learned { end }, cx));
    }
    world.run_ms(500);
    assert_eq!(world.epoch, 1, "it lacks too much to be a member");
    world.settle();
}

/// Who was removed and copies that a later epoch has begun is let go with that.
#[test]
fn who_owes_is_let_go_by_a_later_epoch() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.lose(move |_, to, message| to == a && matches!(message, Message::EpochStarted { .. }));
    let mut members = [b as u64 + 1, c as u64 + 1];
    members.sort_unstable();
    let wish = ids(&members);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("it is removed", |world| world.replica(a).owes());
    world.run_until("the next lead", |world| world.serving_of(&[b, c]).is_some());
    let serving = world.serving_of(&[b, c]).expect("one of two");
    let last = ids(&[serving as u64 + 1]);
    world.turn(serving, |replica, _| replica.wish(&last).expect("it leads"));
    world.run_until("another epoch begins", |world| world.epoch == 3);
    let from = world.nodes[serving].me;
    let epoch = Epoch(3);
    world.turn(a, |replica, cx| replica.on_message(from, Message::StartEpoch { epoch }, cx));
    world.run_until("it has heard", |world| world.replica(a).configuration().epoch == epoch);
    let released = world.told.get("released").copied();
    assert!(!world.replica(a).owes() && released.is_some(), "it is told that it owes nothing");
    world.settle();
}
