//! Members that forget, alone and together.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::{Message, Op, Status};
use quorate_kernel::ids::NodeId;

/// A member that has forgotten has no vote: with it a minority would be a majority, and what it has
/// acknowledged would be gone.
#[test]
fn who_has_forgotten_has_no_vote() {
    let mut world = World::calm(3, 0, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    let request = world.put(a, 1);
    world.run_ms(20);
    assert!(world.is_told(request), "two have it");
    world.crash(b);
    world.cut(&[a]);
    world.start(b);
    world.run_ms(2000);
    assert_eq!(world.replica(b).status(), Status::Recovering, "it waits for the primary");
    assert_eq!(world.serving(), Some(a), "nobody else leads");
    world.settle();
}

/// The primary has all that anybody has acknowledged in its view: two others may forget at once.
#[test]
fn the_primary_alone_brings_the_others_back() {
    let mut world = World::calm(3, 0, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 20);
    world.run_ms(200);
    [b, c].into_iter().for_each(|node| world.crash(node));
    [b, c].into_iter().for_each(|node| world.start(node));
    world.run_ms(1000);
    assert_eq!(world.serving(), Some(a));
    assert_eq!(world.replica(b).status(), Status::Normal);
    assert_eq!(world.told.get("lost"), None);
    world.settle();
}

/// Two of three forgot, the primary among them. What both had acknowledged may not be with the
/// third: the group stands still, and says for whom it waits. If the third forgets too, the promise
/// of `memory` is over, and they begin anew.
#[test]
fn two_of_three_wait_for_the_whole_one_and_say_so() {
    let mut world = World::calm(3, 0, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    world.put_many(a, 3);
    [a, b].into_iter().for_each(|node| world.crash(node));
    world.mend();
    [a, b].into_iter().for_each(|node| world.start(node));
    world.run_ms(3000);
    assert_eq!(world.serving(), None);
    assert_eq!(world.told.get("lost"), None, "the third may have what they lack, or not");
    let now = world.now;
    let name = |node: usize| NodeId(node as u64 + 1);
    let mut forgot = [name(a), name(b)];
    forgot.sort_unstable();
    assert_eq!(world.replica(c).waits_for(now), forgot);
    assert_eq!(world.replica(a).waits_for(now), [name(b)]);
    world.judge.may_lose();
    world.crash(c);
    world.start(c);
    world.run_ms(2000);
    assert_eq!(world.told["lost"], 3, "all know it");
    assert_eq!(world.epoch, 2, "and an epoch has begun");
    world.settle();
}

/// Two of four meet every majority: with two that forgot they go on, and nothing is lost.
#[test]
fn two_of_four_have_everything() {
    let mut world = World::calm(4, 0, Level::Memory);
    let [a, b, c, d] = world.order()[..] else { panic!("four lead in turn") };
    world.run_ms(60);
    world.cut(&[d]);
    world.put_many(a, 3);
    [a, b].into_iter().for_each(|node| world.crash(node));
    world.mend();
    [a, b].into_iter().for_each(|node| world.start(node));
    world.run_until("they go on", |world| world.serving().is_some());
    assert_eq!(world.told.get("lost"), None, "the third has it all");
    assert!(world.replica(c).log().end() >= Op(4));
    world.settle();
}

/// After all lost power, each has what its disk had synced. They go on with the most that is left:
/// nobody's vote may be missing.
#[test]
fn what_one_disk_still_has_is_kept() {
    let mut world = World::calm(3, 0, Level::Periodic);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.holds.insert(a);
    world.cut(&[b]);
    let request = world.put(a, 1);
    world.run_ms(100);
    assert!(world.is_told(request), "two have it, one of them on its disk");
    [a, b, c].into_iter().for_each(|node| world.crash(node));
    world.holds.clear();
    world.lose(move |from, to, message| {
        [from, to].contains(&c) && matches!(message, Message::DoViewChange { .. })
    });
    [a, b, c].into_iter().for_each(|node| world.start(node));
    world.run_ms(2000);
    assert_eq!(world.serving(), None, "one vote is missing");
    assert!(world.told["lost"] >= 2);
    world.mend();
    world.run_until("they go on", |world| world.serving().is_some());
    world.settle();
}

/// A server that was removed still has what all members have lost. When it is to come back, it
/// drops that: places are counted anew.
#[test]
fn who_has_what_was_lost_begins_anew() {
    let mut world = World::calm(3, 1, Level::Memory);
    world.run_ms(60);
    world.wish(&[1, 2, 3, 4]);
    let serving = world.serving().expect("somebody serves");
    world.put_many(serving, 20);
    world.wish(&[1, 2, 3]);
    assert!(world.replica(3).commit() > Op(20), "it was removed, and has everything");
    world.judge.may_lose();
    world.restart_all(3);
    world.run_until("they begin anew", |world| world.serving().is_some());
    let serving = world.serving().expect("somebody serves");
    world.put_many(serving, 2);
    world.wish(&[1, 2, 3, 4]);
    world.run_ms(500);
    assert_eq!(world.replica(3).status(), Status::Normal, "it takes part again");
    world.settle();
}

/// All members forgot while an entry that ends the epoch was in their logs: the next epoch may have
/// begun where nobody asks. They wait until they hear of it.
#[test]
fn a_change_that_was_lost_may_have_happened() {
    let mut world = World::calm(3, 1, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    let wish = ids(&[4]);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is proposed", |world| world.replica(a).closing().is_some());
    world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
    world.run_ms(20);
    [a, b, c].into_iter().for_each(|node| world.crash(node));
    world.cut(&[3]);
    [a, b, c].into_iter().for_each(|node| world.start(node));
    world.run_ms(1000);
    assert_eq!((world.serving(), world.told.get("lost")), (None, None), "they wait");
}

/// All lost everything, and again before the entry that says so was executed. It leaves the members
/// as they are, so nobody else can have gone on.
#[test]
fn two_losses_one_after_the_other_are_one() {
    let mut world = World::calm(3, 0, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    world.run_ms(100);
    world.end_unheard();
    assert_eq!(world.epoch, 1, "nobody has executed it");
    (0..3).for_each(|node| world.crash(node));
    world.mend();
    (0..3).for_each(|node| world.start(node));
    world.run_until("they go on", |world| world.serving().is_some());
    assert_eq!(world.epoch, 2, "what began with both losses");
    world.settle();
}

/// A copy may end with the entry that ends the epoch, and its head is written before the next one
/// begins: the entry cannot be read any more.
#[test]
fn the_head_is_written_though_a_copy_has_the_end_of_the_epoch() {
    let mut world = World::calm(3, 1, Level::Memory);
    let leader = world.order()[0];
    world.run_ms(60);
    world.put_many(leader, 3);
    let wish = ids(&[1, 2, 4]);
    world.turn(leader, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is proposed", |world| world.replica(leader).closing().is_some());
    world.turn(leader, |replica, cx| {
        let end = replica.closing().expect("it is proposed");
        (replica.commit, replica.applied) = (end, end);
        replica.log.trim(end, cx.out);
        replica.save(cx);
        assert!(replica.head.is_closing);
    });
}

/// A newcomer copied a page with an entry that all members then lost: its state is of no use.
#[test]
fn what_a_page_brought_is_lost_with_its_members() {
    let mut world = World::calm(3, 1, Level::Periodic);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 30);
    world.run_ms(500);
    let wish = ids(&[1, 2, 3, 4]);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the head has come", |world| world.replica(3).head.is_installing);
    world.holds.extend([a, b, c]);
    let request = world.put(a, 11);
    world.lose(|_, to, message| to == 3 && matches!(message, Message::NewState { .. }));
    world.run_until("the copy is complete", |world| !world.replica(3).head.is_installing);
    assert!(world.is_told(request), "it was done");
    let op = world.nodes[3].machine.items[&11].op;
    assert!(op > world.replica(3).applied(), "the copy has it");
    world.judge.may_lose();
    [a, b, c].into_iter().for_each(|node| world.crash(node));
    world.mend();
    [a, b, c].into_iter().for_each(|node| world.start(node));
    world.run_until("they go on", |world| world.serving().is_some());
    let serving = world.serving().expect("somebody serves");
    assert!(world.nodes[serving].machine.items[&11].op < op, "it is lost");
    world.put_many(serving, 1);
    world.turn(serving, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_ms(1000);
    assert_eq!(world.members, wish, "the newcomer is a member");
    world.settle();
}

/// A member that is about to fetch the log from its primary does not cling to it when that has
/// forgotten too: the third alone is no majority, and they go on with what all three have left.
#[test]
fn a_source_that_has_forgotten_is_no_source() {
    let mut world = World::calm(3, 0, Level::Periodic);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 5);
    world.run_ms(100);
    world.crash(b);
    world.lose(move |_, to, message| to == b && matches!(message, Message::NewState { .. }));
    world.start(b);
    world.run_until("it has a source", |world| world.replica(b).recovery.source.is_some());
    world.judge.may_lose();
    world.crash(a);
    world.start(a);
    world.mend();
    world.run_ms(3000);
    let standing = [a, b, c].map(|node| world.replica(node).status());
    assert_eq!(standing, [Status::Normal; 3], "all are up");
    world.settle();
}

/// Who fetches the log is not yet heard as one that has it: its primary says for whom it waits.
#[test]
fn who_has_forgotten_and_asks_for_entries_is_waited_for() {
    let mut world = World::calm(3, 0, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    [b, c].into_iter().for_each(|node| world.crash(node));
    world.start(b);
    world.lose(move |_, to, message| to == b && matches!(message, Message::NewState { .. }));
    world.run_until("it asks its source", |world| world.replica(b).recovery.source.is_some());
    world.run_ms(1000);
    let name = |node: usize| NodeId(node as u64 + 1);
    let mut others = [name(b), name(c)];
    others.sort_unstable();
    assert_eq!(world.replica(a).waits_for(world.now), others);
    world.settle();
}

/// A member that copies has dropped its state, and its disk has the only log of what was
/// acknowledged: that is kept, for others have the state before it.
#[test]
fn a_log_outlives_the_copy_that_was_to_follow_it() {
    let mut world = World::calm(3, 0, Level::Periodic);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 2);
    world.run_ms(200);
    world.holds.extend([a, b]);
    let request = world.put(a, 9);
    world.run_ms(70);
    assert!(world.is_told(request) && world.replica(c).log().end() == Op(4), "its disk has it");
    world.cut(&[c]);
    (0..20).for_each(|_| _ = world.put(a, 1));
    world.run_ms(600);
    assert!(world.replica(a).log().base().op > Op(4), "it must copy");
    world.lose(move |from, to, message| {
        let is_page = matches!(message, Message::Checkpoint { page: 1.., .. });
        [from, to].contains(&b) || (to == c && is_page)
    });
    world.run_until("the head has come", |world| world.replica(c).head.is_installing);
    world.run_ms(100);
    world.judge.may_lose();
    [a, b, c].into_iter().for_each(|node| world.crash(node));
    world.mend();
    [a, b, c].into_iter().for_each(|node| world.start(node));
    assert!(world.replica(a).log().end() < Op(4), "other disks do not");
    world.run_until("they go on", |world| world.serving().is_some());
    let serving = world.serving().expect("somebody serves");
    assert_eq!(world.nodes[serving].machine.items[&9].op, Op(4), "it is kept");
    world.settle();
}

/// Entries that were asked for before all members forgot arrive after it, at a member that has
/// asked the same of the same one again: they are lost, and the answer is to a question of an
/// earlier start.
#[test]
fn an_answer_from_before_a_loss_is_none() {
    let mut world = World::calm(3, 0, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    world.run_ms(100);
    world.crash(c);
    world.lose(move |_, to, message| to == c && matches!(message, Message::NewState { .. }));
    world.start(c);
    world.run_until("it asks", |world| world.replica(c).asked.is_some());
    let question = *world.replica(c).asked.as_ref().expect("it asks");
    assert_eq!(question.source, NodeId(a as u64 + 1));
    let (old, end) = (world.nodes[a].me, world.replica(a).log().end());
    let disk = &world.nodes[a].disk;
    let entries = (1..=end.0).map(|op| world.replica(a).log().get(Op(op), disk)).collect();
    let late = Message::NewState {
        nonce: question.nonce,
        asked: Op(1),
        view: world.replica(a).view(),
        is_whole: true,
        before: crate::vsr::Position::default(),
        entries,
        commit: end,
        end,
    };
    world.judge.may_lose();
    [a, b, c].into_iter().for_each(|node| world.crash(node));
    world.lose(move |_, to, message| {
        let has_entries = matches!(message, Message::NewState { .. } | Message::Prepare { .. });
        to == c && (has_entries || matches!(message, Message::StartView { .. }))
    });
    [a, b, c].into_iter().for_each(|node| world.start(node));
    world.run_until("the first leads again", |world| world.serving() == Some(a));
    world.put_many(a, 2);
    let asks_again = |world: &World| {
        let asked = world.replica(c).asked.as_ref();
        asked.is_some_and(|asked| asked.source == question.source)
    };
    world.run_until("it asks the same again", asks_again);
    assert_eq!(world.replica(c).log().end(), Op(0), "from the same place");
    world.turn(c, |replica, cx| replica.on_message(old, late, cx));
    assert_eq!(world.replica(c).log().end(), Op(0), "it is no answer");
    world.settle();
}
