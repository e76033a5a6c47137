//! What no correct peer says: it is refused or passed over, and stops no node.

use super::super::node::{Happened, Level};
use super::super::world::World;
use crate::vsr::state::Standing;
use crate::vsr::{Configuration, Entry, Epoch, Message, Op, Position, Status, ViewNumber};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use std::vec::Vec;

/// Three members in the order in which they lead, with some entries; no message arrives any more.
fn three(level: Level) -> (World, [usize; 3]) {
    let mut world = World::calm(3, 0, level);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.put_many(a, 3);
    world.run_ms(100);
    world.cut(&[a, b, c]);
    (world, [a, b, c])
}

/// Has a node hear a message as it comes off the wire; answers why it was refused, if it was.
fn tell(
    world: &mut World,
    node: usize,
    from: Incarnation,
    message: Message,
) -> Option<&'static str> {
    let tail = message.tail();
    let message = message.with_tail(tail).expect("it can be read");
    let now = world.now;
    let happened = world.nodes[node].turn(now, |replica, cx| replica.on_message(from, message, cx));
    happened.iter().find_map(|one| match one {
        Happened::Refused(why) => Some(*why),
        _ => None,
    })
}

fn command(view: ViewNumber) -> Entry {
    Entry::command(view, Bytes::from_static(b"\0\0\0"))
}

/// A view near the highest, once it is believed, is kept, and none can follow it: the group would
/// end. A member is never behind by so many.
#[test]
fn a_view_far_beyond_is_not_believed() {
    let (mut world, [a, b, c]) = three(Level::Sync);
    let at = world.replica(c).view();
    let end = world.replica(c).log().end();
    let last = world.replica(c).log().last();
    for number in u64::MAX - 2..=u64::MAX {
        let view = ViewNumber { view: number, ..at };
        let primary = world.replica(c).primary_of(view).expect("a member");
        let from = Incarnation { node: primary, start: Start(1) };
        let (round, commit, nonce, lost) = (0, end, 1, None);
        let messages = [
            Message::Beat { view, commit, end, round, held: Op(0) },
            Message::Prepare { view, from: end.next(), entries: Vec::new(), commit },
            Message::StartView { view, last, commit },
            Message::StartViewChange { at, view },
            Message::StartViewChange { at: ViewNumber { view: number - 1, ..at }, view },
            Message::Recovery { nonce, view },
            Message::DoViewChange { view, normal: at, end, commit, lost },
        ];
        for node in [a, b, c] {
            for message in messages.clone() {
                assert!(tell(&mut world, node, from, message.clone()).is_some(), "{message:?}");
            }
        }
    }
    assert!([a, b, c].iter().all(|node| world.replica(*node).view() == at));
    world.settle();
}

/// The same of epochs, which are counted up by entries and taken over with copies.
#[test]
fn an_epoch_far_beyond_is_not_believed() {
    let (mut world, [a, _, c]) = three(Level::Sync);
    let from = world.nodes[a].me;
    let last = ViewNumber { epoch: Epoch(u64::MAX), view: 0 };
    let entries = Vec::from([Entry::members(last, &[NodeId(1)])]);
    let nonce = ask(&mut world, [a, c]);
    let before = world.replica(c).log().last();
    let (asked, commit) = (before.op.next(), before.op.next());
    let (is_whole, end, view) = (false, commit, last);
    let message = Message::NewState { nonce, asked, view, is_whole, before, entries, commit, end };
    assert!(tell(&mut world, c, from, message).is_some());
    let epoch = Epoch(u64::MAX);
    assert!(tell(&mut world, c, from, Message::StartEpoch { epoch }).is_some());
    assert!(tell(&mut world, c, from, Message::EpochStarted { epoch }).is_some());
    world.settle();
}

/// Who is no member begins no view by having forgotten.
#[test]
fn a_stranger_that_has_forgotten_begins_no_view() {
    let (mut world, [_, _, c]) = three(Level::Memory);
    let (at, nonce) = (world.replica(c).view(), 1);
    let stranger = Incarnation { node: NodeId(77), start: Start(1) };
    let view = at.next();
    assert!(tell(&mut world, c, stranger, Message::Recovery { nonce, view }).is_some());
    assert_eq!(world.replica(c).view(), at);
    world.settle();
}

/// Has a member ask another for entries; answers the question's name.
fn ask(world: &mut World, [source, node]: [usize; 2]) -> u64 {
    let from = world.nodes[source].me;
    let (view, commit) = (world.replica(node).view(), world.replica(node).commit());
    let end = Op(world.replica(node).log().end().0 + 20);
    world.run_ms(150);
    assert_eq!(
        tell(world, node, from, Message::Beat { view, commit, end, round: 0, held: Op(0) }),
        None
    );
    world.replica(node).asked.as_ref().expect("it lacks entries").nonce
}

/// Entries that do not fit what is committed here, or the log that they are told of.
#[test]
fn entries_that_fit_no_log_are_not_taken() {
    let (mut world, [a, _, c]) = three(Level::Sync);
    let (from, view) = (world.nodes[a].me, world.replica(c).view());
    let last = world.replica(c).log().last();
    let earlier = world.replica(c).log().view_at(Op(1)).expect("nothing was let go");
    let before = Position { op: Op(1), view: earlier };
    let later = ViewNumber { view: view.view + 5, ..view };
    let count = last.op.since(before.op) as usize + 3;
    let members = || Entry::members(view, &[NodeId(1)]);
    let cases = [
        // Of an earlier view than what is committed here at their places.
        (before, std::vec![command(earlier); count]),
        // Of a later view than the log's.
        (last, std::vec![command(later); 3]),
        // Behind the end of the epoch.
        (last, Vec::from([command(view), members(), command(ViewNumber::first(Epoch(2)))])),
        (last, Vec::from([members(), Entry::members(ViewNumber::first(Epoch(9)), &[NodeId(2)])])),
    ];
    for (before, entries) in cases {
        let nonce = ask(&mut world, [a, c]);
        let (asked, commit) = (before.op.next(), Op(0));
        let end = Op(before.op.0 + entries.len() as u64);
        let is_whole = true;
        let message =
            Message::NewState { nonce, asked, view, is_whole, before, entries, commit, end };
        let shown = std::format!("{message:?}");
        tell(&mut world, c, from, message);
        assert_eq!(world.replica(c).log().last(), last, "{shown}");
    }
    world.settle();
}

/// What the machine cannot read is not put into the log: one member would do nothing in the place
/// of what another, of a later version, does.
#[test]
fn what_the_machine_cannot_read_is_not_taken() {
    let (mut world, [a, _, c]) = three(Level::Sync);
    let (from, view) = (world.nodes[a].me, world.replica(c).view());
    let (last, commit) = (world.replica(c).log().last(), world.replica(c).commit());
    let unknown = || Entry::command(view, Bytes::from_static(b"?"));
    let entries = Vec::from([command(view), unknown()]);
    let prepare = Message::Prepare { view, from: last.op.next(), entries, commit };
    let why = Some("the machine can read every command of the log");
    assert_eq!(tell(&mut world, c, from, prepare), why);
    let nonce = ask(&mut world, [a, c]);
    let (asked, end, entries) = (last.op.next(), last.op.next(), Vec::from([unknown()]));
    let (before, is_whole) = (last, true);
    let told = Message::NewState { nonce, asked, view, is_whole, before, entries, commit, end };
    assert_eq!(tell(&mut world, c, from, told), why);
    assert_eq!(world.replica(c).log().last(), last);
    world.settle();
}

/// The same while the log of a view is gathered: nothing may follow the end of the epoch, in one
/// message or over several.
#[test]
fn entries_behind_the_end_of_an_epoch_are_not_gathered() {
    let (mut world, [_, b, c]) = three(Level::Sync);
    let view = world.replica(c).view().next();
    let (from, before) = (world.nodes[b].me, world.replica(c).log().last());
    let last = Position { op: Op(before.op.0 + 9), view };
    let start = Message::StartView { view, last, commit: Op(0) };
    assert_eq!(tell(&mut world, c, from, start), None);
    assert_eq!(world.replica(c).status(), Status::ViewChange);
    let (asked, commit, is_whole) = (before.op.next(), Op(0), true);
    let end = Op(before.op.0 + 2);
    let nonce = |world: &World| world.replica(c).asked.as_ref().expect("it asks").nonce;
    let entries = Vec::from([Entry::members(view, &[NodeId(1)])]);
    let message = Message::NewState {
        nonce: nonce(&world),
        asked,
        view,
        is_whole,
        before,
        entries,
        commit,
        end,
    };
    assert_eq!(tell(&mut world, c, from, message), None);
    let before = Position { op: before.op.next(), view };
    let (asked, entries) = (before.op.next(), Vec::from([command(view)]));
    let message = Message::NewState {
        nonce: nonce(&world),
        asked,
        view,
        is_whole,
        before,
        entries,
        commit,
        end,
    };
    assert!(tell(&mut world, c, from, message).is_some());
    assert!(world.replica(c).stage.is_none(), "what came before is of no use");
    world.settle();
}

/// A PREPARE is appended whole or not at all.
#[test]
fn a_prepare_with_one_wrong_entry_is_not_appended() {
    let (mut world, [a, _, c]) = three(Level::Sync);
    let (from, view) = (world.nodes[a].me, world.replica(c).view());
    let end = world.replica(c).log().end();
    let wrong = [command(view.next()), Entry::members(view.next(), &[NodeId(1)])];
    for wrong in wrong {
        let entries = Vec::from([command(view), wrong]);
        let message = Message::Prepare { view, from: end.next(), entries, commit: end };
        assert!(tell(&mut world, c, from, message).is_some());
        assert_eq!(world.replica(c).log().end(), end, "nothing was changed");
    }
    world.settle();
}

/// A round that was not sent cannot be confirmed, nor can more be acknowledged or learned than is
/// in the log.
#[test]
fn confirmations_are_of_what_was_sent() {
    let (mut world, [a, b, _]) = three(Level::Sync);
    let (from, view) = (world.nodes[b].me, world.replica(a).view());
    let end = world.replica(a).log().end().next();
    assert!(tell(&mut world, a, from, Message::BeatOk { view, round: 9 }).is_some());
    assert!(tell(&mut world, a, from, Message::PrepareOk { view, end }).is_some());
    world.settle();
}

/// The head of a copy: what it says of itself must fit, and what is committed here.
#[test]
fn a_copy_that_fits_nothing_is_not_begun() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    world.put_many(a, 30);
    world.run_ms(500);
    world.lose(move |from, to, message| {
        [from, to].contains(&b) || (to == c && matches!(message, Message::Checkpoint { .. }))
    });
    world.run_until("it must copy", |world| world.replica(c).install.is_some());
    world.cut(&[a, b, c]);
    let from = world.nodes[a].me;
    let replica = world.replica(c);
    let (view, end) = (replica.view(), replica.log().end());
    let configuration = replica.configuration().clone();
    let epoch = Epoch(configuration.epoch.0 + 1);
    let at = |op, view| Position { op: Op(op), view };
    let of = |epoch, since| Configuration { epoch, since: Op(since), ..configuration.clone() };
    let far = ViewNumber { view: u64::MAX, ..view };
    let cases = [
        (at(u64::MAX, view), configuration.clone(), u64::MAX),
        (at(40, far), configuration.clone(), 40),
        // It holds less than its own head, or begins behind it.
        (at(40, view), configuration.clone(), 39),
        (at(40, view), of(epoch, 41), 40),
        // The entry is of no view of these members.
        (at(40, ViewNumber::first(Epoch(9))), configuration.clone(), 40),
        (at(40, view), of(Epoch(u64::MAX), 40), 40),
        (at(0, ViewNumber::default()), configuration.clone(), 0),
    ];
    for (at, configuration, applied) in cases {
        let install = world.replica(c).install.as_ref().expect("it copies");
        let (nonce, page) = (install.nonce, install.page);
        let (applied, body) = (Op(applied), Bytes::new());
        let (next, shown) = (None, std::format!("{at:?} {configuration:?} {applied:?}"));
        let head = Message::Checkpoint { nonce, at, configuration, applied, page, next, body };
        tell(&mut world, c, from, head);
        assert!(!world.replica(c).head.is_installing, "{shown}");
        assert_eq!(world.replica(c).log().end(), end, "{shown}");
    }
    world.settle();
}

/// Standing beside an impossible view is no standing.
#[test]
fn an_answer_to_who_has_forgotten_is_checked_too() {
    let (mut world, [_, _, c]) = three(Level::Memory);
    world.crash(c);
    world.start(c);
    let replica = world.replica(c);
    let (nonce, at) = (replica.recovery.nonce, replica.view());
    let from = |node: NodeId| Incarnation { node, start: Start(1) };
    let standing = Standing::Normal;
    for number in u64::MAX - 2..=u64::MAX {
        let view = ViewNumber { view: number, ..at };
        let primary = world.replica(c).primary_of(view).expect("a member");
        let answer = Message::RecoveryResponse { nonce, view, standing };
        assert!(tell(&mut world, c, from(primary), answer).is_some());
    }
    assert_eq!((world.replica(c).view(), world.replica(c).status()), (at, Status::Recovering));
    world.settle();
}
