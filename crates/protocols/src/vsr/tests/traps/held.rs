//! New members that forget, and who was removed: those may still have everything.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::{Epoch, Message};
use quorate_kernel::ids::NodeId;

/// Whether somebody who was removed asks if the next epoch has begun.
fn is_question(message: &Message) -> bool {
    matches!(message, Message::StartEpoch { .. })
}

/// Three members with data, in the order in which they lead. The first wishes for others in the
/// place of all, and some of what is said from then on is lost.
fn replacing(
    spares: u64,
    wish: &[u64],
    loses: impl Fn(usize, usize, &Message) -> bool + 'static,
) -> (World, [usize; 3]) {
    let mut world = World::calm(3, spares, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 20);
    world.lose(loses);
    let wish = ids(wish);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    (world, [a, b, c])
}

/// The only member of a new epoch forgets before anybody who was removed knows that it had begun:
/// they still have everything, and it does not begin empty.
#[test]
fn who_was_removed_still_has_what_a_new_member_forgets() {
    let (mut world, [a, b, c]) = replacing(1, &[4], |_, _, message| is_question(message));
    world.run_until("the old ones owe", |world| {
        [a, b, c].iter().all(|node| world.replica(*node).owes())
    });
    world.run_until("the new one leads", |world| world.serving() == Some(3));
    world.crash(3);
    world.start(3);
    world.run_ms(1000);
    assert_eq!(world.serving(), None, "it waits for them");
    world.mend();
    world.run_until("it leads again", |world| world.serving() == Some(3));
    world.settle();
    assert!(![a, b, c].iter().any(|node| world.replica(*node).owes()), "they are let go");
}

/// The same of three, of which one had said that it was in the epoch.
#[test]
fn new_members_that_all_forget_wait_for_who_was_removed() {
    let (mut world, [a, b, c]) =
        replacing(3, &[4, 5, 6], |_, to, message| to != 3 && is_question(message));
    world.run_until("a new one leads", |world| world.serving_of(&[3, 4, 5]).is_some());
    world.run_ms(200);
    assert!([a, b, c].iter().all(|node| world.replica(*node).owes()), "one is no majority");
    world.lose(|_, _, message| is_question(message));
    (3..6).for_each(|node| world.crash(node));
    (3..6).for_each(|node| world.start(node));
    world.run_ms(1000);
    assert_eq!(world.serving(), None, "they wait for who was removed");
    world.settle();
}

/// Two of three new members lag, and copy from the third, which is in the epoch. They have told
/// nobody who was removed either: when all forget, they wait for those.
#[test]
fn who_has_copied_from_a_new_member_waits_too() {
    let mut world = World::calm(3, 3, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 20);
    world.cut(&[4, 5]);
    let wish = ids(&[4, 5, 6]);
    world.turn(a, |replica, _| {
        replica.wish(&wish).expect("it leads");
        // They had copied, and have forgotten since.
        let commit = replica.commit;
        let primary = replica.primary.as_mut().expect("it leads");
        primary.learned.extend([(NodeId(5), commit), (NodeId(6), commit)]);
    });
    let has_begun = |world: &World, node: usize| world.replica(node).configuration().epoch.0 == 2;
    world.run_until("the epoch begins", |world| [a, b, c, 3].iter().all(|n| has_begun(world, *n)));
    // From now on the removed and the new do not hear each other.
    world.lose(|from, to, _| (from < 3) != (to < 3));
    world.run_until("all have begun it", |world| (3..6).all(|node| has_begun(world, node)));
    world.run_until("one leads", |world| world.serving_of(&[3, 4, 5]).is_some());
    assert!([a, b, c].iter().all(|node| world.replica(*node).owes()), "nobody has told them");
    (3..6).for_each(|node| assert!(world.replica(node).head.is_held, "{node} has told nobody"));
    (3..6).for_each(|node| world.crash(node));
    (3..6).for_each(|node| world.start(node));
    world.run_ms(1000);
    assert_eq!(world.serving_of(&[3, 4, 5]), None, "they wait for who was removed");
    world.settle();
}

/// A new member holds until somebody who was removed by its epoch asks in that epoch. A question
/// of an earlier one is late, or of who was removed before; who was never a member lacks it.
#[test]
fn a_late_question_lets_nobody_go() {
    let (mut world, [a, b, c]) = replacing(2, &[4], |_, _, message| is_question(message));
    world.run_until("the new one leads", |world| world.serving() == Some(3));
    assert!([a, b, c].iter().all(|node| world.replica(*node).owes()), "nobody has told them");
    let mut asks = |from: usize, epoch: u64| {
        let (from, epoch) = (world.nodes[from].me, Epoch(epoch));
        world.turn(3, |replica, cx| {
            replica.on_message(from, Message::StartEpoch { epoch }, cx);
        });
        world.replica(3).head.is_held
    };
    assert!(asks(a, 1), "it is of the epoch before");
    assert!(asks(4, 2), "it was never a member");
    assert!(!asks(a, 2), "it was removed");
    world.settle();
}

/// All members of an epoch forget, and copy what those have who were removed: they go on when the
/// copies are complete. One that came later would take the place of what they go on with.
#[test]
fn nobody_goes_on_amid_a_copy() {
    let (mut world, [a, b, c]) = replacing(3, &[4, 5, 6], |_, to, message| {
        to < 3 && matches!(message, Message::EpochStarted { .. })
    });
    world.run_until("a new one leads", |world| world.serving_of(&[3, 4, 5]).is_some());
    world.run_ms(200);
    assert!([a, b, c].iter().all(|node| world.replica(*node).owes()), "nobody has told them");
    (3..6).for_each(|node| world.crash(node));
    let is_page = |message: &Message| matches!(message, Message::Checkpoint { page: 1.., .. });
    let is_told = |message: &Message| {
        matches!(message, Message::EpochStarted { .. } | Message::RecoveryResponse { .. })
    };
    world.lose(move |_, _, message| is_page(message) || is_told(message));
    (3..6).for_each(|node| world.start(node));
    world.run_until("all copy", |world| (3..6).all(|node| world.replica(node).head.is_installing));
    world.lose(move |_, _, message| is_page(message));
    world.run_ms(300);
    assert_eq!(world.told.get("lost"), None, "they wait for the copies");
    world.mend();
    world.run_until("they go on", |world| world.serving_of(&[3, 4, 5]).is_some());
    world.settle();
}

/// Few were removed: none of them need have what the others have committed and forgotten, and
/// nobody waits for them.
#[test]
fn nobody_waits_for_few_who_were_removed() {
    let mut world = World::calm(3, 1, Level::Memory);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 5);
    let mut members = [a as u64 + 1, b as u64 + 1, 4];
    members.sort_unstable();
    let wish = ids(&members);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("it is proposed", |world| world.replica(a).closing().is_some());
    world.cut(&[c]);
    let has_begun = |world: &World, node: usize| world.replica(node).configuration().epoch.0 == 2;
    world.run_until("the epoch begins", |world| [a, b, 3].iter().all(|n| has_begun(world, *n)));
    world.run_ms(100);
    assert!(!has_begun(&world, c), "who was removed does not know");
    world.judge.may_lose();
    [a, b, 3].into_iter().for_each(|node| world.crash(node));
    [a, b, 3].into_iter().for_each(|node| world.start(node));
    world.mend();
    world.run_until("they go on", |world| world.serving().is_some());
    world.settle();
}

/// A new member lags behind the others of its epoch, and has dropped its state for a copy. Until
/// that is complete it tells nobody who was removed that it has what the epoch began with: they
/// would drop it, and what one other member has would be all that is left.
#[test]
fn who_copies_lets_nobody_go() {
    let (mut world, [a, b, c]) = replacing(3, &[4, 5, 6], |_, _, message| is_question(message));
    let has_begun = |world: &World, node: usize| world.replica(node).configuration().epoch.0 == 2;
    world.run_until("all have begun", |world| (0..6).all(|node| has_begun(world, node)));
    world.run_until("one leads", |world| world.serving_of(&[3, 4, 5]).is_some());
    let serving = world.serving_of(&[3, 4, 5]).expect("one of three");
    let lags = (3..6).find(|node| *node != serving).expect("one of the others");
    world.lose(move |from, to, message| is_question(message) || from == lags || to == lags);
    world.put_many(serving, 40);
    world.run_ms(100);
    let is_page = |message: &Message| matches!(message, Message::Checkpoint { page: 1.., .. });
    world.lose(move |_, _, message| is_question(message) || is_page(message));
    world.run_until("it copies", |world| world.replica(lags).head.is_installing);
    let (from, epoch) = (world.nodes[a].me, Epoch(2));
    world.turn(lags, |replica, cx| replica.on_message(from, Message::StartEpoch { epoch }, cx));
    assert!(world.replica(lags).head.is_held, "it has told nobody");
    world.run_ms(100);
    let told = NodeId(lags as u64 + 1);
    assert!(!world.replica(a).started.contains(&told), "who was removed does not count on it");
    world.settle();
    assert!(![a, b, c].iter().any(|node| world.replica(*node).owes()), "then they are let go");
}
