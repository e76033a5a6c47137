//! Whose pages count, and for how much.

use crate::epidemic::Level;
use crate::epidemic::message::{Message, Rest, SnapshotB};
use crate::epidemic::replica::range::Range;
use crate::epidemic::tests::copies::{asked, emptied};
use crate::epidemic::tests::joining::{event, number, page};
use crate::epidemic::tests::world::World;
use std::vec::Vec;

/// A member sends its last page twice. What came between its first page and that is in neither.
#[test]
fn a_page_that_comes_twice_tells_of_no_later_snapshot() {
    let (mut world, node, members) = emptied(72);
    let number_of = |world: &World| number(world, node, members[0]);
    let asked_first = number_of(&world);
    let first = page(&world, node, asked_first, 3, false);
    world.say(members[0], node, Message::SnapshotB(first));
    for time in [5, 30] {
        let last = page(&world, node, asked_first, time, true);
        world.say(members[0], node, Message::SnapshotB(last));
    }
    let other = page(&world, node, number(&world, node, members[1]), 4, true);
    world.say(members[1], node, Message::SnapshotB(other));
    world.run(2);
    assert!(world.state(node).is_whole());
    assert_eq!(world.state(node).last, Some(event(4)), "nothing behind it is skipped");
}

/// Siblings that shall have the range too, and never had it, do not know that nothing is there.
#[test]
fn who_never_had_a_range_counts_only_where_nobody_else_is_left() {
    let (mut world, node, members) = emptied(72);
    for (place, donor) in members.iter().enumerate() {
        asked(&mut world, node, &[*donor]);
        let usual = page(&world, node, number(&world, node, *donor), 3, true);
        let empty = SnapshotB { is_ready: false, lacks: true, ..usual };
        world.say(*donor, node, Message::SnapshotB(empty));
        world.run(2);
        let is_last = place + 1 == members.len();
        assert_eq!(world.state(node).is_whole(), is_last, "{place} of {}", members.len());
    }
}

/// Whoever answers says whether it has had all that it is asked for.
#[test]
fn who_never_had_a_range_says_so() {
    let mut world = World::new(24, Level::Strong, 58);
    world.settle();
    let (node, other) = (world.up()[0], world.up()[1]);
    let own = world.state(node).range().expect("it has a slice");
    for (range, is_told) in [(own, false), (Range::ALL, true)] {
        let (number, after, ids_below) = (1, Rest::All, Rest::All);
        let question = Message::SnapshotA { number, range, after, ids_below };
        let answers = world.heard(|world| world.say(other, node, question));
        let [Message::SnapshotB(page)] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((page.lacks, page.is_ready), (is_told, !is_told));
    }
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
