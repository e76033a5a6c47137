//! How far others have come, and how old that makes what a joiner takes: times that are far ahead,
//! of one node whose disk may be damaged, and ranges that a node never had.

use super::copies::{asked, emptied, neighbour_asked, old_copy};
use super::joining::{asker, event, number, page};
use super::world::{World, put};
use crate::epidemic::Level;
use crate::epidemic::keys::{LAST, wire_key};
use crate::epidemic::message::{Found, Message, SnapshotB};
use crate::epidemic::repair::behind::Heard;
use crate::epidemic::replica::range::{Range, position};
use crate::epto::{EventKey, Horizon, LogicalTime, Sequence};
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use quorate_kernel::operation::Outcome;
use quorate_kernel::plain::PlainData;
use std::boxed::Box;
use std::format;
use std::vec::Vec;

/// These are ready and send all that they have: the node is ready then, and its clock not far.
fn joins_near(mut world: World, node: NodeId, donors: &[NodeId]) {
    for donor in donors {
        let usual = page(&world, node, number(&world, node, *donor), 3, true);
        world.say(*donor, node, Message::SnapshotB(usual));
    }
    world.run(2);
    assert!(world.state(node).is_whole());
    assert!(world.state(node).epto.clock() < LogicalTime(EPTO_CLOCK_JUMP_MAX));
}

/// One page of one node, whose disk may be damaged, moves no clock far where others are ready.
#[test]
fn what_one_says_moves_no_clock_where_others_are_ready() {
    let (mut world, node, members) = emptied(71);
    let first = page(&world, node, number(&world, node, members[0]), 1 << 61, false);
    world.say(members[0], node, Message::SnapshotB(SnapshotB { is_ready: false, ..first }));
    joins_near(world, node, &members[1..3]);
}

/// Also if that one is ready, once others were heard: what no ball may say no page may.
#[test]
fn what_no_ball_may_say_no_page_may() {
    let (mut world, node, members) = emptied(71);
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    assert!(world.state(node).epto.has_clock());
    asked(&mut world, node, &members[..3]);
    let far = page(&world, node, number(&world, node, members[0]), 1 << 61, true);
    world.say(members[0], node, Message::SnapshotB(far));
    joins_near(world, node, &members[1..3]);
}

/// That it is ready is true, however far it is: who is not has less.
#[test]
fn who_is_ready_is_waited_for_though_nobody_believes_how_far_it_is() {
    let (mut world, node, donors) = asker(81);
    // Before that nothing is taken of who is not ready.
    world.run(80);
    asked(&mut world, node, &donors);
    let far = page(&world, node, number(&world, node, donors[0]), 1 << 61, false);
    world.say(donors[0], node, Message::SnapshotB(far));
    let (key, old) = old_copy(&world, node, donors[1], 3);
    world.say(donors[1], node, Message::SnapshotB(old));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// All members of a slice were away, and its neighbours have gone on. Who takes their place in the
/// order makes others drop what they have: all that was acknowledged must be there by then.
#[test]
fn who_is_to_make_others_drop_has_heard_all_but_few() {
    let (mut world, node, members) = emptied(72);
    let copies = usize::from(world.settings.acks);
    assert!(members.len() >= copies + 2, "two are heard, and as many are left as have a write");
    let neighbour = neighbour_asked(&mut world, node, &members);
    let far = page(&world, node, number(&world, node, neighbour), world.settings.grace + 10, true);
    world.say(neighbour, node, Message::SnapshotB(SnapshotB { is_ready: false, ..far }));
    for (place, donor) in members.iter().enumerate() {
        let usual = page(&world, node, number(&world, node, *donor), 3, true);
        world.say(*donor, node, Message::SnapshotB(SnapshotB { is_ready: false, ..usual }));
        world.run(2);
        let unheard = members.len() - (place + 1);
        assert_eq!(world.state(node).is_whole(), place >= 1 && unheard < copies, "{unheard} left");
        if world.state(node).is_whole() {
            return;
        }
    }
}

/// It has a place in the order, but none of the tombstones of a range that is new to it. So what it
/// takes is as old as who it takes it of.
#[test]
fn what_a_node_takes_of_a_range_that_it_never_had_may_be_old() {
    // That one who is ready was young when it sent it does not help: it may be long ago by the end.
    for is_ready in [false, true] {
        takes_what_may_be_old(is_ready);
    }
}

fn takes_what_may_be_old(is_ready: bool) {
    let (mut world, node, donors) = asker(82);
    world.run(80);
    asked(&mut world, node, &donors);
    world.with_host(node, |engine, _| engine.settings.grace = 40);
    let (key, old) = old_copy(&world, node, donors[0], 3);
    world.say(donors[0], node, Message::SnapshotB(SnapshotB { is_ready, ..old }));
    assert!(world.state(node).store.held(&key, None).is_some(), "it may be all there is");
    let ready = page(&world, node, number(&world, node, donors[1]), 50, true);
    world.say(donors[1], node, Message::SnapshotB(ready));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// Its slice may be larger after a start.
#[test]
fn what_a_node_never_had_is_known_for_that_after_a_start() {
    let mut world = World::new(8, Level::Strong, 83);
    world.settle();
    // So that nothing is here of what it gives up when slices become more.
    let more: Vec<NodeId> = (0..16).map(|_| world.add()).collect();
    more.into_iter().for_each(|node| world.start(node));
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    let node = world.up()[0];
    let range = world.state(node).range().expect("it has a slice");
    let others = Range::ALL.without(&range);
    assert!(!others.is_empty(), "there are several slices");
    world.stop(node);
    world.start(node);
    let state = world.state(node);
    assert!(state.last.is_some());
    let heard: Vec<Heard> = others
        .iter()
        .flat_map(|other| state.behind.within(other))
        .map(|(_, heard)| heard)
        .collect();
    assert!(!heard.is_empty() && heard.iter().all(|heard| *heard == Heard::Nothing));
    state.behind.check(Some(range));
}

/// A list of nothing is not stored: whoever answered for all has no less than all of it.
#[test]
fn who_had_all_there_is_has_it_after_a_start() {
    let mut world = World::new(4, Level::Strong, 85);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    let node = world.up()[0];
    assert_eq!(world.state(node).range(), Some(Range::ALL));
    world.stop(node);
    world.start(node);
    assert_eq!(world.state(node).behind.within(&Range::ALL).next(), None);
}

/// It may never come to where others are.
#[test]
fn who_is_never_believed_is_not_waited_for_for_ever() {
    let (mut world, node, donors) = asker(81);
    asked(&mut world, node, &donors);
    for _ in 0..400 {
        let far = page(&world, node, number(&world, node, donors[0]), 1 << 61, false);
        world.say(donors[0], node, Message::SnapshotB(far));
        let (key, old) = old_copy(&world, node, donors[1], 3);
        world.say(donors[1], node, Message::SnapshotB(old));
        if world.state(node).store.held(&key, None).is_some() {
            return;
        }
        world.run(1);
    }
    panic!("it waits for ever");
}

/// A node stood still while its key was deleted, and the tombstone purged. Nothing is broadcast, so
/// its clock is where it was, and nobody is believed at first.
#[test]
fn who_was_away_hears_it_of_pages_where_nothing_is_broadcast() {
    let (mut world, node, donors) = asker(86);
    let mut names = (0..1000).map(|number| format!("o{number}"));
    let is_mine = |name: &str| world.state(node).is_mine(position(&wire_key(name.as_bytes())));
    let name = names.find(|name| is_mine(name)).expect("it has a slice");
    let key = wire_key(name.as_bytes());
    world.cut = None;
    world.settle();
    assert!(matches!(world.done(&name, put("1")), Outcome::Written { .. }));
    world.run(20);
    assert!(world.state(node).store.held(&key, None).is_some());
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotA { .. })));
    world.with_host(node, |engine, cx| {
        let mut actions = Vec::new();
        engine.state.epto.leave_place(&mut actions);
        engine.on_actions(actions, cx);
    });
    asked(&mut world, node, &donors);
    for _ in 0..400 {
        for donor in donors {
            let number = number(&world, node, donor);
            let far = page(&world, node, number, 1 << 23, false);
            let clock = far.horizon.last.expect("it has come far").time;
            // One is no member that is ready: it has a place in the order, as its clock says.
            let is_ready = donor == donors[0];
            let horizon = Horizon { clock, ..far.horizon };
            world.say(donor, node, Message::SnapshotB(SnapshotB { is_ready, horizon, ..far }));
            assert!(!world.state(node).is_whole(), "what it has is old");
            if world.state(node).store.held(&key, None).is_none() {
                return;
            }
        }
        world.run(1);
    }
    panic!("it never hears how far others are");
}

/// All that are left have begun anew, behind one that was ready once.
#[test]
fn who_was_furthest_counts_only_as_long_as_it_is_heard() {
    let (mut world, node, donors) = asker(87);
    asked(&mut world, node, &donors);
    world.with_host(node, |engine, _| engine.settings.grace = 40);
    let far = page(&world, node, number(&world, node, donors[0]), 100, false);
    world.say(donors[0], node, Message::SnapshotB(far));
    for _ in 0..400 {
        let near = page(&world, node, number(&world, node, donors[1]), 3, true);
        world.say(donors[1], node, Message::SnapshotB(near));
        world.run(1);
        if world.state(node).is_whole() {
            return;
        }
    }
    panic!("it waits for ever");
}

/// It stood still, answers what had come, and does not know yet how long that was.
#[test]
fn nothing_is_taken_of_who_is_ready_and_lags_behind_others_that_are() {
    let (mut world, node, donors) = asker(87);
    asked(&mut world, node, &donors);
    world.with_host(node, |engine, _| engine.settings.grace = 40);
    let young = page(&world, node, number(&world, node, donors[0]), 50, true);
    world.say(donors[0], node, Message::SnapshotB(young));
    let (key, old) = old_copy(&world, node, donors[1], 3);
    world.say(donors[1], node, Message::SnapshotB(SnapshotB { is_ready: true, ..old }));
    assert_eq!(world.state(node).store.held(&key, None), None);
    world.run(2);
    assert!(!world.state(node).is_whole(), "one alone was heard");
}

/// It was asked for before the node began to join.
#[test]
fn an_answer_is_as_old_as_what_it_brings_into_a_range_that_is_taken_over() {
    let (mut world, node, donors) = asker(84);
    asked(&mut world, node, &donors);
    let (key, SnapshotB { records, .. }) = old_copy(&world, node, donors[0], 3);
    let (ids, wanted) = (Vec::new(), Vec::new());
    let of_event = Found {
        source: world.me(donors[0]),
        sequence: Sequence(1),
        range: Some(Range::ALL),
        heard: LogicalTime(3),
        records: records.clone(),
        left: Vec::new(),
        ids: Vec::new(),
    };
    world.with_host(node, |engine, _| engine.settings.grace = 40);
    let heard = LogicalTime(3);
    let records = Message::Records { page: None, heard, records, ids, wanted };
    for (answer, time) in [(records, 50), (Message::MissingB(Vec::from([of_event])), 100)] {
        world.say(donors[0], node, answer);
        assert!(world.state(node).store.held(&key, None).is_some());
        asked(&mut world, node, &donors);
        let ready = page(&world, node, number(&world, node, donors[1]), time, true);
        world.say(donors[1], node, Message::SnapshotB(ready));
        assert_eq!(world.state(node).store.held(&key, None), None);
    }
}

/// It would never be too old again.
#[test]
fn nobody_has_heard_more_than_this_node_could_know() {
    let (mut world, node, donors) = asker(84);
    asked(&mut world, node, &donors);
    let (_, SnapshotB { records, .. }) = old_copy(&world, node, donors[0], 3);
    let (heard, ids, wanted) = (LogicalTime(u64::MAX), Vec::new(), Vec::new());
    let answer = Message::Records { page: None, heard, records, ids, wanted };
    world.say(donors[0], node, answer);
    let range = world.state(node).range().expect("it has a slice");
    let last = world.state(node).last.map(|last| last.time);
    assert!(last.is_some() && world.state(node).behind.until(&range) == last);
}

/// A disk says that its node had come far, and nobody else has: others that are ready would refuse
/// all that it says if it went on from there.
#[test]
fn who_is_too_far_ahead_says_so_and_takes_no_place() {
    // Whether others are heard, by which it has a clock, or all are silent.
    for is_silent in [true, false] {
        let mut world = World::new(4, Level::Strong, 88);
        world.settle();
        assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
        world.run(20);
        let node = world.up()[0];
        world.stop(node);
        let far = event(1 << 40).to_bytes();
        world.hosts.get_mut(&node).expect("it is there").disk.0.insert(LAST, far);
        world.start(node);
        let others: Vec<NodeId> = world.up().into_iter().filter(|one| *one != node).collect();
        for number in 0..150 {
            if !is_silent {
                world.ask(others[number % 3], &format!("y{number}"), put("1"));
            }
            world.run(1);
            assert!(!world.state(node).is_whole() && !world.state(node).epto.has_place());
        }
        assert!(world.state(node).ahead > EPTO_CLOCK_JUMP_MAX, "it says why it waits");
        assert!(world.state(node).store.held(&wire_key(b"x"), None).is_some(), "all is kept");
        for other in others {
            let state = world.state(other);
            assert!(state.is_whole() && state.epto.clock() < LogicalTime(EPTO_CLOCK_JUMP_MAX));
        }
        // Its operator believes the others.
        world.stop(node);
        world.hosts.get_mut(&node).expect("it is there").disk.0.clear();
        world.start(node);
        world.settle();
        assert_eq!(world.state(node).ahead, 0);
    }
}

/// After a division one side has come further than tombstones are kept. Who says the same for long
/// does not stand still.
#[test]
fn who_is_further_than_all_that_are_ready_joins_in_the_end() {
    let (mut world, node, donors) = asker(89);
    asked(&mut world, node, &donors);
    let reached = world.state(node).last.expect("it has come far");
    let last = EventKey { time: LogicalTime(reached.time.0 + 100), ..reached };
    world.with_host(node, |engine, _| {
        engine.settings.grace = 40;
        engine.state.last = Some(last);
    });
    let says = |world: &mut World, donor: NodeId| {
        let page = page(world, node, number(world, node, donor), 0, true);
        let horizon = Horizon { last: Some(reached), ..Horizon::default() };
        world.say(donor, node, Message::SnapshotB(SnapshotB { horizon, ..page }));
    };
    donors.iter().for_each(|donor| says(&mut world, *donor));
    world.run(2);
    assert!(!world.state(node).is_whole(), "they may have stood still");
    for _ in 0..200 {
        asked(&mut world, node, &donors);
        donors.iter().for_each(|donor| says(&mut world, *donor));
        world.run(1);
        if world.state(node).is_whole() {
            return;
        }
    }
    panic!("it waits for ever");
}
