//! Copies of the state.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::{Message, Op, Status};
use bytes::Bytes;
use std::vec::Vec;

/// Three members, of which the last one lacks more than the logs of the others hold, and hears only
/// the first.
fn lagging() -> (World, [usize; 3]) {
    let mut world = World::calm(3, 0, Level::Sync);
    let order = world.order();
    let [a, b, c] = order[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    world.put_many(a, 30);
    world.run_ms(500);
    assert!(world.replica(a).log().base().op > world.replica(c).log().end(), "it must copy");
    world.lose(move |from, to, _| (from, to) == (b, c) || (from, to) == (c, b));
    (world, [a, b, c])
}

#[test]
fn half_a_copy_counts_for_nothing() {
    let (mut world, [_, b, c]) = lagging();
    world.run_until("a copy is under way", |world| world.replica(c).head.is_installing);
    world.run_ms(4);
    world.crash(c);
    world.cut(&[c]);
    world.start(c);
    let replica = world.replica(c);
    assert!(
        replica.head.is_installing && !replica.is_settled(),
        "it knows that it lacks the state"
    );
    let from = world.nodes[b].me;
    let (nonce, at, page, cursor, has_forgotten) = (1, Op(0), 0, Vec::new(), false);
    let question = Message::GetCheckpoint { nonce, at, page, cursor, has_forgotten };
    world.turn(c, |replica, cx| replica.on_message(from, question, cx));
    assert!(world.replica(c).copies.is_empty(), "it gives no copy of it");
    world.settle();
    assert!(world.replica(c).is_settled());
}

/// Three members whose logs keep so many bytes for who lags; the last one is away while much is
/// written, and the first leads.
fn away(bytes: usize) -> (World, [usize; 3]) {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    for node in [a, b, c] {
        world.crash(node);
        world.nodes[node].kept.bytes = bytes;
        world.start(node);
    }
    world.run_until("somebody serves", |world| world.serving().is_some());
    let order = world.order();
    let first = world.serving().expect("somebody serves");
    let at = order.iter().position(|node| *node == first).expect("a founder");
    let [a, b, c] = [0, 1, 2].map(|rank| order[(at + rank) % 3]);
    world.put_many(a, 30);
    world.run_ms(500);
    let length = world.replica(a).log().end().since(world.replica(a).log().base().op);
    assert!(length < 20, "while all are there logs are short: {length}");
    world.cut(&[c]);
    world.put_many(a, 30);
    world.run_ms(500);
    (world, [a, b, c])
}

/// Who was away gets the entries that it lacks, of a primary that was there all the time or of one
/// that followed until then, and copies nothing.
#[test]
fn entries_are_kept_for_a_member_that_is_away() {
    for fails_over in [false, true] {
        let (mut world, [a, b, c]) = away(1_000_000);
        if fails_over {
            world.crash(a);
        }
        world.mend();
        let end = world.replica(b).log().end();
        for _ in 0..2000 {
            world.run_ms(1);
            assert!(world.replica(c).install.is_none(), "nothing is copied");
        }
        assert!(world.replica(c).log().end() >= end, "it has what it lacked");
        if fails_over {
            world.start(a);
        }
        world.settle();
        world.run_ms(500);
        let length = world.replica(b).log().end().since(world.replica(b).log().base().op);
        assert!(length < 20, "then they are let go of: {length}");
    }
}

/// So many bytes and no more: who was away for longer copies the state.
#[test]
fn what_is_kept_for_a_member_that_is_away_is_bounded() {
    let (mut world, [a, b, c]) = away(300);
    for node in [a, b] {
        let length = world.replica(node).log().end().since(world.replica(node).log().base().op);
        assert!(length < 20, "{length} entries are kept");
    }
    world.mend();
    world.run_until("it copies", |world| world.replica(c).install.is_some());
    world.settle();
}

/// A page of another place than was asked for is not taken: what is between would be missed.
#[test]
fn a_page_is_taken_in_its_place_alone() {
    let (mut world, [a, _, c]) = lagging();
    let page_of = |world: &World| world.replica(c).install.as_ref().map(|install| install.page);
    world.run_until("the head has come", |world| page_of(world) == Some(1));
    world.lose(move |_, to, message| to == c && matches!(message, Message::Checkpoint { .. }));
    world.run_ms(5);
    let machine: &dyn crate::vsr::Machine = &world.nodes[a].machine;
    let disk = &world.nodes[a].disk;
    let page = |cursor| machine.page(Op(0), &cursor, 1, disk).expect("they are of any time");
    let first = page(Bytes::new());
    let second = page(first.next.expect("there is a second page"));
    let install = world.replica(c).install.as_ref().expect("it copies");
    let (at, configuration) = install.at.clone().expect("the head has come");
    let late = Message::Checkpoint {
        nonce: install.nonce,
        at,
        configuration,
        applied: at.op,
        page: 2,
        next: second.next.map(|next| next.to_vec()),
        body: second.items,
    };
    let from = world.nodes[a].me;
    world.turn(c, |replica, cx| replica.on_message(from, late, cx));
    assert_eq!(page_of(&world), Some(1), "it still waits for the first");
    world.settle();
}

/// While pages are read, entries are executed: the state is right when those were executed here
/// too.
#[test]
fn a_copy_is_right_when_the_newest_entry_in_it_was_executed() {
    let (mut world, [a, _, c]) = lagging();
    let has_begun = |world: &World| world.replica(c).head.is_installing;
    world.run_until("the head has come", has_begun);
    let request = world.put(a, 11);
    world.lose(move |_, to, message| to == c && matches!(message, Message::NewState { .. }));
    world.run_until("the copy is complete", |world| !world.replica(c).head.is_installing);
    assert!(world.is_told(request), "it was executed before the last page was read");
    assert!(!world.replica(c).is_settled(), "it has a later item than what was executed");
    world.settle();
    assert!(world.replica(c).is_settled());
}

/// A source that was started again has executed less than the head that it has given: its items are
/// older, and pages of them would lose what is between.
#[test]
fn a_source_that_is_behind_its_head_gives_no_page() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [b, a, c] = world.order()[..] else { panic!("three lead in turn") };
    keep_log(&mut world, a, 1000);
    world.run_ms(60);
    world.cut(&[c]);
    world.put_many(b, 30);
    world.run_ms(500);
    world.mend();
    world.run_until("it must copy", |world| world.replica(c).install.is_some());
    world.lose(move |from, to, _| [from, to].contains(&c) && [from, to].contains(&b));
    world.run_until("the head of the other has come", |world| {
        let install = world.replica(c).install.as_ref();
        install.is_some_and(|install| install.page == 1 && install.source == Some(ids(a)))
    });
    world.crash(a);
    world.cut(&[b]);
    world.start(a);
    assert!(world.replica(a).applied() < Op(5) && world.replica(a).log().end() >= Op(31));
    world.run_ms(400);
    assert!(world.replica(c).head.is_installing, "no page has come");
    world.settle();
}

/// A member keeps its log up to so many entries: it stores nothing of its state before.
fn keep_log(world: &mut World, node: usize, entries: u64) {
    world.crash(node);
    world.nodes[node].kept.entries = entries;
    world.start(node);
}

fn ids(node: usize) -> quorate_kernel::ids::NodeId {
    quorate_kernel::ids::NodeId(node as u64 + 1)
}

/// A member has all that the log of another has let go of, and does not know that it is committed:
/// it keeps its state, because a majority without it may lack that.
#[test]
fn what_is_here_is_not_dropped_for_a_copy() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, c, b] = world.order()[..] else { panic!("three lead in turn") };
    keep_log(&mut world, c, 1000);
    world.run_ms(60);
    world.put_many(a, 30);
    world.cut(&[a]);
    world.run_until("the second leads", |world| world.serving() == Some(c));
    world.put_many(c, 1);
    world.lose(|_, _, _| true);
    for key in 0..6 {
        world.put(c, key);
    }
    world.run_ms(5);
    world.crash(c);
    world.cut(&[c]);
    world.start(c);
    world.run_until("the third leads", |world| world.serving() == Some(b));
    world.put_many(b, 2);
    world.run_ms(300);
    let (base, end) = (world.replica(b).log().base().op, world.replica(c).log().end());
    assert!(world.replica(c).commit() < base && base < end, "{base:?} {end:?}");
    world.mend();
    for _ in 0..500 {
        world.run_ms(1);
        assert!(world.replica(c).install.is_none(), "nothing is copied");
    }
    assert_eq!(world.replica(c).status(), Status::Normal);
    world.settle();
}

/// Who copies from members that are gone for good knows no others, and is told of one by a beat:
/// after some attempts it takes that one.
#[test]
fn a_copy_leaves_members_that_are_gone() {
    let mut world = World::calm(3, 2, Level::Sync);
    world.run_ms(60);
    let wish = |world: &mut World, members: &[u64]| {
        let serving = world.serving().expect("somebody serves");
        let wish = super::super::world::ids(members);
        world.turn(serving, |replica, _| replica.wish(&wish).expect("it leads"));
        world.run_until("the wish has come true", |world| world.members == wish);
        world.run_until("somebody serves", |world| world.serving().is_some());
    };
    let puts = |world: &mut World| {
        let serving = world.serving().expect("somebody serves");
        world.put_many(serving, 30);
        world.run_ms(500);
    };
    wish(&mut world, &[1, 2, 3, 4]);
    wish(&mut world, &[1, 2, 3]);
    world.run_ms(300);
    world.cut(&[3]);
    puts(&mut world);
    // It is to be a member again, and copies, and no page comes.
    world.lose(|_, to, message| to == 3 && matches!(message, Message::Checkpoint { .. }));
    let serving = world.serving().expect("somebody serves");
    let again = super::super::world::ids(&[1, 2, 3, 4]);
    world.turn(serving, |replica, _| replica.wish(&again).expect("it leads"));
    world.run_until("it copies", |world| world.replica(3).install.is_some());
    world.cut(&[3]);
    wish(&mut world, &[5]);
    puts(&mut world);
    (0..3).for_each(|node| world.crash(node));
    (0..3).for_each(|node| world.nodes[node].is_wiped = true);
    world.mend();
    assert_eq!(world.replica(3).configuration().epoch, crate::vsr::Epoch(3), "it knows the three");
    let both = super::super::world::ids(&[4, 5]);
    world.turn(4, |replica, _| replica.wish(&both).expect("it leads"));
    world.run_until("it is a member", |world| world.members == both);
    world.settle();
}

/// A source that was started again knows the members by an entry that it has not executed again: a
/// head of before does not fit them, and no correct peer would believe it.
#[test]
fn a_source_that_is_behind_its_members_gives_no_head() {
    let mut world = World::calm(3, 1, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    keep_log(&mut world, c, 5000);
    world.run_ms(60);
    for _ in 0..30 {
        for key in 0..40 {
            world.put(a, key % 12);
        }
        world.run_ms(5);
    }
    let mut members = [a as u64 + 1, b as u64 + 1, c as u64 + 1, 4];
    members.sort_unstable();
    let wish = super::super::world::ids(&members);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("an epoch begins", |world| world.replica(c).configuration().epoch.0 == 2);
    world.run_ms(100);
    world.crash(c);
    world.cut(&[c]);
    world.start(c);
    let replica = world.replica(c);
    let since = replica.configuration().since;
    assert!(replica.is_settled() && replica.applied() < since, "{since:?} is not executed yet");
    let from = world.nodes[b].me;
    let (nonce, at, page, cursor, has_forgotten) = (1, Op(0), 0, Vec::new(), false);
    let question = Message::GetCheckpoint { nonce, at, page, cursor, has_forgotten };
    world.turn(c, |replica, cx| replica.on_message(from, question, cx));
    assert!(world.replica(c).copies.is_empty(), "it gives no head");
    world.run_ms(100);
    assert!(world.replica(c).applied() >= since, "it goes on executing");
    world.settle();
}

/// A copy is begun of who is ahead; another source lags too, and has nothing newer. What was
/// committed meanwhile is executed then, and who has been chosen to lead serves.
#[test]
fn a_copy_that_is_dropped_holds_nobody_up() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 5);
    world.run_ms(200);
    world.crash(a);
    world.turn(b, |replica, cx| {
        let nonce = replica.next_nonce(cx);
        replica.install = Some(crate::vsr::state::Install::new(nonce));
        replica.install_from(ids(c), cx);
    });
    world.lose(|_, _, message| matches!(message, Message::Checkpoint { .. }));
    world.run_until("the second leads", |world| world.replica(b).primary.is_some());
    assert!(!world.replica(b).is_serving(), "a copy is under way");
    world.mend();
    world.run_until("it serves", |world| world.serving() == Some(b));
    world.settle();
}

/// It was let go, and is counted on again before it has started once more: what it asked before may
/// be answered yet.
#[test]
fn who_learns_again_in_one_start_names_its_questions_anew() {
    let mut world = World::calm(3, 0, Level::Sync);
    world.run_ms(500);
    let learner = world.order()[2];
    world.turn(learner, |replica, cx| {
        let before = [replica.next_nonce(cx), replica.next_nonce(cx)];
        let (group, me, settings) = (replica.group, replica.me, replica.settings);
        let mut again = crate::vsr::Replica::new(group, me, settings);
        again.start(None, quorate_kernel::process::Recovery::Intact, cx);
        assert!(again.next_nonce(cx) > before[1]);
    });
}
