//! Whose pages count, and for how much.

use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Message, Rest, SnapshotB};
use crate::epidemic::pending::What;
use crate::epidemic::repair::behind::Heard;
use crate::epidemic::replica::range::Range;
use crate::epidemic::tests::copies::{asked, emptied, old_copy};
use crate::epidemic::tests::joining::{asker, begin_anew, event, number, page};
use crate::epidemic::tests::world::{World, put};
use crate::epto::{Horizon, LogicalTime};
use crate::gossip::cyclon::Peer;
use crate::slices::position::Position;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::Outcome;
use std::boxed::Box;
use std::vec::Vec;

/// A member sends its last page twice. What came between its first page and that is in neither.
#[test]
fn a_page_that_comes_twice_tells_of_no_later_snapshot() {
    let (mut world, node, members) = emptied(72);
    let number_of = |world: &World| number(world, node, members[0]);
    let asked_first = number_of(&world);
    let first = page(&world, node, asked_first, 3, false);
    world.say(members[0], node, Message::SnapshotB(first));
    let asked_last = number_of(&world);
    for time in [5, 30] {
        let last = page(&world, node, asked_last, time, true);
        world.say(members[0], node, Message::SnapshotB(last));
    }
    let other = page(&world, node, number(&world, node, members[1]), 4, true);
    world.say(members[1], node, Message::SnapshotB(other));
    world.run(2);
    assert!(world.state(node).is_whole());
    assert_eq!(world.state(node).last, Some(event(4)), "nothing behind it is skipped");
}

/// Siblings that shall have the range too, and never had it or have begun to take it over, do not
/// know what is there. In the end that is all there is, and reads say that some may be missing.
#[test]
fn who_had_not_all_of_a_range_counts_only_where_nobody_else_comes_for_long() {
    for had in [Heard::Nothing, Heard::Taken(LogicalTime(1 << 40))] {
        let (mut world, node, members) = emptied(72);
        for (place, donor) in members.iter().enumerate() {
            let is_last = place + 1 == members.len();
            if is_last && had == Heard::Nothing {
                // It is never heard.
                wait_long(&mut world, node);
            } else {
                asked(&mut world, node, &[*donor]);
                let usual = page(&world, node, number(&world, node, *donor), 3, true);
                let noted = Vec::from([(Range::ALL, had)]);
                let empty = SnapshotB { is_ready: false, noted, ..usual };
                world.say(*donor, node, Message::SnapshotB(empty));
                world.run(2);
            }
            assert_eq!(world.state(node).is_whole(), is_last, "{had:?} is no copy");
        }
        let (first, last) = world.state(node).range().expect("it has a slice").leaves();
        assert_eq!(world.state(node).doubt.count(), u32::from(last.0 - first.0) + 1);
    }
}

/// Of those that stand in its slice one does not answer, and is known from the ring alone.
#[test]
fn who_is_in_the_ring_and_was_never_heard_may_have_what_nobody_has() {
    let (mut world, node, members) = emptied(72);
    let range = world.state(node).range().expect("it has a slice");
    let who = (1..).map(NodeId).find(|one| range.has(Position::of(*one)));
    let who = Incarnation { node: who.expect("no end"), start: Start(0) };
    world.with_host(node, |engine, _| {
        engine.state.hints.push(Peer { who, age: 0, address: "".into() });
    });
    for donor in &members {
        asked(&mut world, node, &[*donor]);
        let usual = page(&world, node, number(&world, node, *donor), 3, true);
        let noted = Vec::from([(Range::ALL, Heard::Nothing)]);
        world.say(*donor, node, Message::SnapshotB(SnapshotB { is_ready: false, noted, ..usual }));
        world.run(2);
    }
    assert!(!world.state(node).is_whole());
    wait_long(&mut world, node);
    assert!(world.state(node).is_whole());
}

/// As if many rounds had passed in which it has heard nothing.
fn wait_long(world: &mut World, node: NodeId) {
    world.with_host(node, |engine, _| engine.state.round += 2_000);
    world.run(2);
}

/// What a donor says of itself may be true no more when its last page comes.
#[test]
fn who_begins_to_drop_a_part_while_it_sends_it_has_not_all_of_it() {
    for is_dropped in [true, false] {
        let (mut world, node, members) = emptied(72);
        for donor in &members[..2] {
            for is_last in [false, true] {
                let usual = page(&world, node, number(&world, node, *donor), 3, is_last);
                let some = (Range::ALL, Heard::Taken(LogicalTime(1 << 40)));
                let noted = Vec::from_iter(Some(some).filter(|_| is_last && is_dropped));
                let page = SnapshotB { is_ready: false, noted, ..usual };
                world.say(*donor, node, Message::SnapshotB(page));
            }
        }
        world.run(2);
        assert_eq!(world.state(node).is_whole(), !is_dropped);
    }
}

/// What a node says to who asks for this range.
fn told(world: &mut World, node: NodeId, range: Range) -> SnapshotB {
    let other = world.up().into_iter().find(|one| *one != node).expect("there are others");
    let (number, after, ids_below) = (1, Rest::All, Rest::All);
    let question = Message::SnapshotA { number, range, after, ids_below };
    let mut answers = world.heard(|world| world.say(other, node, question));
    match answers.pop() {
        Some(Message::SnapshotB(page)) => page,
        other => panic!("{other:?}"),
    }
}

/// Whoever answers says whether it has had all that it is asked for, also after a start.
#[test]
fn who_never_had_a_range_says_so() {
    for level in [Level::Strong, Level::None] {
        let mut world = World::new(24, level, 58);
        world.settle();
        let what = if level == Level::None { What::PutVersion(1, "1".into()) } else { put("1") };
        assert!(matches!(world.done("x", what), Outcome::Written { .. }));
        world.run(20);
        let node = world.up()[0];
        let own = world.state(node).range().expect("it has a slice");
        let had = |page: &SnapshotB| {
            let noted = page.noted.iter().flat_map(|(part, heard)| {
                assert_eq!(*heard, Heard::Nothing);
                Range::ALL.without(part)
            });
            (page.noted.is_empty(), noted.count() > 0)
        };
        for is_started in [false, true] {
            if is_started {
                world.stop(node);
                world.start(node);
            }
            let page = told(&mut world, node, own);
            assert_eq!((had(&page).0, page.is_ready), (true, !is_started), "{level:?}");
            assert_eq!(had(&told(&mut world, node, Range::ALL)), (false, true), "{level:?}");
        }
    }
}

/// One page has come of many: the node has some of its range, and says that it has not all.
#[test]
fn who_has_taken_a_part_of_a_range_says_so_after_a_start_too() {
    let (mut world, node, donors) = asker(92);
    asked(&mut world, node, &donors);
    let (_, some) = old_copy(&world, node, donors[0], 3);
    let after = Rest::Behind(wire_key(b"k"));
    let some = SnapshotB { is_ready: true, after, ..some };
    world.say(donors[0], node, Message::SnapshotB(some));
    world.with_host(node, |engine, cx| {
        engine.state.set_last(engine.state.last.expect("it has come far"));
        engine.flush(cx);
    });
    let range = world.state(node).range().expect("it has a slice");
    for is_started in [false, true] {
        if is_started {
            world.stop(node);
            world.start(node);
        }
        let page = told(&mut world, node, range);
        assert_eq!(page.records.len(), 1);
        let [(part, Heard::Taken(_))] = page.noted[..] else { panic!("{:?}", page.noted) };
        assert!(part == range && !page.is_ready);
    }
}

/// There are no events that tell that something was written. Who takes over more has heard of it.
#[test]
fn without_an_order_who_never_had_a_range_is_no_copy_either() {
    let mut world = World::new(12, Level::None, 93);
    world.settle();
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotA { .. })));
    let node = world.up()[0];
    begin_anew(&mut world, node);
    world.run(110);
    let members = world.state(node).slices.members();
    let members: Vec<NodeId> = members.iter().map(|peer| peer.who.node).collect();
    for donor in &members[1..] {
        asked(&mut world, node, &[*donor]);
        let usual = page(&world, node, number(&world, node, *donor), 0, true);
        let (horizon, noted) = (Horizon::default(), Vec::from([(Range::ALL, Heard::Nothing)]));
        let empty = SnapshotB { is_ready: false, horizon, noted, ..usual };
        world.say(*donor, node, Message::SnapshotB(empty));
    }
    world.run(2);
    assert!(!world.state(node).is_whole());
    wait_long(&mut world, node);
    assert!(world.state(node).is_whole() && world.state(node).doubt.count() > 0);
}

/// It was refused what counts, or its clock has come from others since: it listens anew, and what
/// was on its way by then is in no page of before.
#[test]
fn who_listens_anew_counts_no_page_of_before() {
    let (mut world, node, members) = emptied(72);
    let first = page(&world, node, number(&world, node, members[0]), 3, true);
    world.say(members[0], node, Message::SnapshotB(first));
    world.with_host(node, |engine, _| engine.state.epto.leave_place(&mut Vec::new()));
    for _ in 0..400 {
        world.run(1);
        if world.state(node).epto.may_resume() {
            break;
        }
    }
    asked(&mut world, node, &members[1..2]);
    let other = page(&world, node, number(&world, node, members[1]), 3, true);
    world.say(members[1], node, Message::SnapshotB(other));
    world.run(2);
    assert!(!world.state(node).is_whole(), "one was heard since");
}
