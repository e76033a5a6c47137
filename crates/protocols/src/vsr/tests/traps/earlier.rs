//! Logs of earlier views that are left when members of the latest one have lost more.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::{Kind, Message, Op, ViewNumber};
use quorate_kernel::ids::NodeId;
use std::vec::Vec;

/// A primary was cut off with the end of the epoch in its log. The others went on in a later view,
/// and one of them has left for good, the other has nothing any more. What the cut-off one knows to
/// be committed is all that is left. Its log counts, but not as the end of the epoch: it ends with
/// an entry that says that something is lost.
#[test]
fn the_log_of_an_earlier_view_does_not_end_the_epoch() {
    let mut world = World::calm(3, 0, Level::Periodic);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    world.run_ms(200);
    world.cut(&[a]);
    let name = |node: usize| NodeId(node as u64 + 1);
    let mut wish = [name(a), name(b)];
    wish.sort_unstable();
    world.put(a, 1);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is in its log", |world| world.replica(a).closing().is_some());
    let (commit, end) = (world.replica(a).commit(), world.replica(a).log().end());
    assert_eq!((commit, end), (Op(4), Op(6)), "a command, and the change");
    world.judge.may_lose();
    [b, c].into_iter().for_each(|node| world.crash(node));
    world.turn(a, |replica, _| replica.note_left(|node| node == name(b)));
    world.run_ms(3000);
    let first = world.replica(a).view();
    let view = |view| ViewNumber { view, ..first };
    let vote = Message::DoViewChange {
        view: view(3),
        normal: view(1),
        end: Op(0),
        commit: Op(0),
        lost: Some(view(2)),
    };
    let from = world.nodes[c].me;
    world.turn(a, |replica, cx| replica.on_message(from, vote, cx));
    world.run_until("it leads again", |world| world.replica(a).primary.is_some());
    assert_eq!(world.replica(a).view(), view(3));
    let log = world.replica(a).log();
    assert_eq!((log.end(), world.replica(a).closing()), (end, Some(end)));
    let last = log.get(log.end(), &world.nodes[a].disk);
    assert!(matches!(last.kind, Kind::Left(_)), "{last:?} does not say that something is lost");
}

/// The same, and the primary of the view that starts has that log too, end of the epoch and all: it
/// fetches nothing of it.
#[test]
fn the_log_of_an_earlier_view_does_not_end_the_epoch_where_it_is_there_already() {
    let mut world = World::calm(5, 0, Level::Periodic);
    let [a, b, c, d, e] = world.order()[..] else { panic!("five lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    world.run_ms(200);
    let are_apart = move |from, to| [a, b].contains(&from) != [a, b].contains(&to);
    world.lose(move |from, to, _| are_apart(from, to));
    let name = |node: usize| NodeId(node as u64 + 1);
    let mut wish = [name(a), name(b), name(c)];
    wish.sort_unstable();
    world.put(a, 1);
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("the change is in both", |world| world.replica(b).closing().is_some());
    assert_eq!((world.replica(b).commit(), world.replica(b).log().end()), (Op(4), Op(6)));
    world.judge.may_lose();
    [a, c, d, e].into_iter().for_each(|node| world.crash(node));
    let first = world.replica(b).view();
    let view = |view| ViewNumber { view, ..first };
    let names: Vec<_> = [a, c, d, e].iter().map(|node| (*node, world.nodes[*node].me)).collect();
    for (node, from) in names {
        // Those of a later view have lost more than the first knows to be committed.
        let (normal, end, commit, lost) = match node == a {
            true => (first, Op(6), Op(5), None),
            false => (view(2), Op(3), Op(0), Some(view(3))),
        };
        let vote = Message::DoViewChange { view: view(6), normal, end, commit, lost };
        world.turn(b, |replica, cx| replica.on_message(from, vote, cx));
    }
    world.run_until("it asks for the log", |world| world.replica(b).election.chosen.is_some());
    let asked = world.replica(b).asked.as_ref().expect("it asks").nonce;
    let last = world.replica(b).log().last();
    let told = Message::NewState {
        nonce: asked,
        asked: Op(7),
        view: view(6),
        is_whole: true,
        before: last,
        entries: Vec::new(),
        commit: Op(5),
        end: Op(6),
    };
    let from = world.nodes[a].me;
    world.turn(b, |replica, cx| replica.on_message(from, told, cx));
    assert!(world.replica(b).primary.is_some(), "it leads");
    let log = world.replica(b).log();
    assert_eq!((log.end(), world.replica(b).closing()), (Op(6), Some(Op(6))));
    let last = log.get(log.end(), &world.nodes[b].disk);
    assert!(matches!(last.kind, Kind::Left(_)), "{last:?} does not say that something is lost");
}
