//! Traps of joining, and of ranges that come and go.

use super::world::{World, put, value};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Message, Page, Rest, SnapshotB};
use crate::epidemic::pending::What;
use crate::epidemic::repair::behind::Heard;
use crate::epidemic::repair::join::Standing;
use crate::epidemic::replica::range::{Range, leaf, position};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epidemic::state::Former;
use crate::epto::{EventKey, Horizon, LogicalTime};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Time;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::format;
use std::rc::Rc;
use std::vec::Vec;

pub fn event(time: u64) -> EventKey {
    let source = Incarnation { node: NodeId(7), start: Start(1) };
    EventKey { time: LogicalTime(time), source }
}

/// A node that has begun to take over its range, from nobody yet, though it has its place.
pub fn begin_anew(world: &mut World, node: NodeId) {
    world.with_host(node, |engine, cx| {
        let last = engine.state.last;
        engine.drop_all(cx);
        engine.state.last = last;
        (engine.state.ready, engine.state.standing) = (None, Standing::joining(false, last));
    });
}

/// What was asked for a snapshot of whom, by its number, as the node knows it.
pub fn page(world: &World, node: NodeId, number: u64, time: u64, is_last: bool) -> SnapshotB {
    let last = world.state(node).last.map(|last| last.time.0);
    let horizon = Horizon { last: Some(event(last.unwrap_or(0) + time)), ..Horizon::default() };
    let after = if is_last { Rest::Nothing } else { Rest::Behind(wire_key(b"k")) };
    SnapshotB {
        number,
        is_ready: true,
        horizon,
        noted: Vec::new(),
        records: Vec::new(),
        forgotten: None,
        ids: Vec::new(),
        after,
        ids_below: Rest::Nothing,
    }
}

/// A node in a small world whose questions for snapshots are lost, and two members of its slice.
pub fn asker(seed: u64) -> (World, NodeId, [NodeId; 2]) {
    let mut world = World::new(12, Level::Strong, seed);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotA { .. })));
    let node = world.up()[0];
    begin_anew(&mut world, node);
    world.run(2);
    let members: Vec<NodeId> = {
        let members = world.state(node).slices.members();
        members.iter().map(|peer| peer.who.node).collect()
    };
    (world, node, [members[0], members[1]])
}

/// The numbers of the questions that were asked last.
pub fn number(world: &World, node: NodeId, donor: NodeId) -> u64 {
    let Standing::Joining(joining) = &world.state(node).standing else { panic!("it joins") };
    joining.asked(donor).expect("it was asked")
}

/// Runs until both were asked.
fn both_asked(world: &mut World, node: NodeId, donors: [NodeId; 2]) {
    for _ in 0..400 {
        let Standing::Joining(joining) = &world.state(node).standing else { panic!("it joins") };
        if donors.iter().all(|donor| joining.asked(*donor).is_some()) {
            return;
        }
        world.run(1);
    }
    panic!("both are asked in turn");
}

/// What came before it was ready is not what it has since.
#[test]
fn a_donor_that_becomes_ready_begins_anew() {
    let (mut world, node, donors) = asker(51);
    // Before that nothing is taken of who is not ready.
    world.run(80);
    both_asked(&mut world, node, donors);
    for donor in donors {
        let asked = number(&world, node, donor);
        let first = SnapshotB { is_ready: false, ..page(&world, node, asked, 5, false) };
        world.say(donor, node, Message::SnapshotB(first));
    }
    for donor in donors {
        let second = page(&world, node, number(&world, node, donor), 9, true);
        world.say(donor, node, Message::SnapshotB(second));
    }
    world.run(2);
    assert!(!world.state(node).is_whole(), "half of what it took over is of one not ready");
    world.cut = None;
    world.settle();
    let x = value(&world.done("x", What::Get));
    assert_eq!(x, Some(Bytes::from_static(b"1")));
}

/// The answer to an earlier question comes after the answer to a later one: with the horizon of
/// that the node would believe that it has what came between.
#[test]
fn a_page_of_an_earlier_question_is_dropped() {
    let (mut world, node, donors) = asker(52);
    both_asked(&mut world, node, donors);
    let earlier = donors.map(|donor| number(&world, node, donor));
    for (donor, number) in donors.into_iter().zip(earlier) {
        let first = page(&world, node, number, 900, false);
        world.say(donor, node, Message::SnapshotB(first));
        let late = page(&world, node, number, 5, true);
        world.say(donor, node, Message::SnapshotB(late));
    }
    world.run(2);
    assert!(!world.state(node).is_whole(), "another page was asked for since");
}

/// Each of the two lists of a snapshot comes once, whichever is longer.
#[test]
fn a_list_that_has_ended_does_not_begin_anew() {
    let mut world = World::new(12, Level::Strong, 53);
    world.settle();
    let (node, key) = (world.up()[0], wire_key(b"x"));
    for number in 0..600_u64 {
        let done = crate::epidemic::replica::seen::Done {
            event: event(1 + number),
            position: position(&key),
            existed: false,
        };
        let node = world.holders(&key)[0];
        world.with_host(node, |engine, cx| {
            engine.merge(Vec::new(), Vec::from([(RequestId(u128::from(number)), done)]));
            engine.flush(cx);
        });
    }
    let holder = world.holders(&key)[0];
    let range = world.state(holder).range().expect("it has a slice");
    let asked = |world: &mut World, after, ids_below| {
        let question = Message::SnapshotA { number: 3, range, after, ids_below };
        let other = world.up().into_iter().find(|one| *one != holder).unwrap_or(node);
        let answers = world.heard(|world| world.say(other, holder, question));
        let page = answers.into_iter().find_map(|message| match message {
            Message::SnapshotB(page) => Some(page),
            _ => None,
        });
        page.expect("it answers")
    };
    let first = asked(&mut world, Rest::All, Rest::All);
    assert!(first.after.is_nothing() && !first.ids_below.is_nothing(), "names alone are left");
    let second = asked(&mut world, first.after.clone(), first.ids_below);
    assert!(second.records.is_empty() && second.after.is_nothing());
    assert_eq!(first.ids.len() + second.ids.len(), 600);
}

/// Its hints are others who do not answer: what it lacks they may have.
#[test]
fn who_starts_cut_off_is_not_ready_with_nothing() {
    let mut world = World::new(12, Level::Strong, 54);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    let node = world.add();
    world.cut = Some(Box::new(move |from, to, _| from == node || to == node));
    world.start(node);
    for _ in 0..400 {
        world.run(1);
        assert!(!world.state(node).is_whole(), "it has heard nobody");
    }
    world.cut = None;
    world.settle();
    let x = value(&world.done("x", What::Get));
    assert_eq!(x, Some(Bytes::from_static(b"1")));
}

/// It was told of nobody, so it took itself for the first. Others show that it is not.
#[test]
fn who_began_alone_joins_when_it_hears_of_others() {
    let mut world = World::new(12, Level::Strong, 55);
    world.settle();
    for number in 0..20 {
        world.done(&format!("k{number}"), put("1"));
    }
    let node = world.add();
    world.cut = Some(Box::new(move |from, to, _| from == node || to == node));
    world.start(node);
    let hints =
        world.hosts.get_mut(&node).map(|host| core::mem::take(&mut host.engine.state.hints));
    world.run(200);
    assert!(world.state(node).is_whole(), "nobody else is there");
    let joins = world.state(node).counters.joins;
    world.cut = None;
    world.hosts.get_mut(&node).expect("it is there").engine.hint(hints.unwrap_or_default());
    world.run(200);
    world.settle();
    assert!(world.state(node).counters.joins > joins, "it has taken over what others have");
}

/// x = 1 was done before the range came here, and is sent again; x = 2 of another client has come
/// between.
#[test]
fn a_request_is_known_where_a_range_is_taken_over() {
    let mut world = World::new(12, Level::Strong, 56);
    world.settle();
    let (nodes, key, id) = (world.up(), wire_key(b"x"), RequestId(77));
    let first = world.ask_as(nodes[0], id, "x", put("1"));
    assert!(matches!(world.wait(first), Outcome::Written { .. }));
    assert!(matches!(world.done("x", put("2")), Outcome::Written { .. }));
    world.run(20);
    let node = world.holders(&key)[0];
    begin_anew(&mut world, node);
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotB(_))));
    let again = world.ask_as(nodes[1], id, "x", put("1"));
    assert!(matches!(world.wait(again), Outcome::Written { .. }));
    world.run(20);
    world.cut = None;
    world.settle();
    world.run(60);
    assert!(world.state(node).is_whole());
    assert_eq!(value(&world.done("x", What::Get)), Some(Bytes::from_static(b"2")));
}

/// What a node has of other slices: a key, and where it stands.
pub fn of_others(world: &World, node: NodeId) -> Bytes {
    let state = world.state(node);
    let keys = (0..1000).map(|number| wire_key(format!("o{number}").as_bytes()));
    let mut others = keys.filter(|key| !state.is_mine(position(key)));
    others.next().expect("it has not all slices")
}

pub fn put_at(world: &mut World, node: NodeId, key: &Bytes, time: u64) {
    let (version, id) = (Version::Ordered(event(time)), RequestId(9));
    let value = Some(Bytes::from_static(b"old"));
    let record = Record { key: key.clone(), version, id, value };
    world.with_host(node, |engine, cx| {
        engine.state.store.begin();
        engine.state.store.put(record, &mut engine.state.writes);
        engine.flush(cx);
    });
}

pub fn give_up(world: &mut World, node: NodeId) {
    world.with_host(node, |engine, cx| {
        engine.give_up_found(Vec::new(), LogicalTime(3));
        engine.flush(cx);
    });
}

/// A world with a node that has given up a key of others.
pub fn given_up() -> (World, NodeId, Bytes) {
    let mut world = World::new(24, Level::Strong, 59);
    world.settle();
    let node = world.up()[0];
    let key = of_others(&world, node);
    put_at(&mut world, node, &key, 3);
    give_up(&mut world, node);
    (world, node, key)
}

/// Counted from the last event of the disk it would be young again, and be handed over after the
/// tombstones of its keys were purged.
#[test]
fn what_was_given_up_is_as_old_after_a_start() {
    let (mut world, node, key) = given_up();
    for number in 0..8 {
        world.done(&format!("y{number}"), put("1"));
    }
    world.run(20);
    assert!(world.state(node).last.is_some_and(|last| last.time > LogicalTime(3)));
    world.stop(node);
    world.start(node);
    world.settle();
    let former = world.state(node).former.iter().find(|one| one.range.has(position(&key)));
    assert_eq!(former.map(|former| former.since), Some(LogicalTime(3)));
}

/// A part that this node had, and has again, may be from before the tombstones of others.
#[test]
fn what_is_behind_for_too_long_is_not_merged_with_what_a_donor_sends() {
    let (mut world, node, donors) = asker(60);
    let range = world.state(node).range().expect("it has a slice");
    let keys = (0..1000).map(|number| wire_key(format!("o{number}").as_bytes()));
    let mut mine = keys.filter(|key| range.has(position(key)));
    let key = mine.next().expect("some are its own");
    put_at(&mut world, node, &key, 3);
    world.with_host(node, |engine, cx| {
        engine.settings.grace = 40;
        let state = &mut engine.state;
        state.behind.end(&range, &mut state.writes);
        state.behind.note(&range, Heard::Own(LogicalTime(3)), &mut state.writes);
        engine.flush(cx);
    });
    both_asked(&mut world, node, donors);
    let number = number(&world, node, donors[0]);
    let page = page(&world, node, number, 50, true);
    world.say(donors[0], node, Message::SnapshotB(page));
    assert_eq!(world.state(node).store.held(&key, None), None);
    let noted: Vec<_> = world.state(node).behind.within(&range).collect();
    assert_eq!(noted, [(range, Heard::Nothing)]);
}

/// Beside a range that is known to be given up there is another one.
#[test]
fn nothing_of_other_slices_is_forgotten() {
    let mut world = World::new(24, Level::Strong, 57);
    world.settle();
    let node = world.up()[0];
    let key = of_others(&world, node);
    put_at(&mut world, node, &key, 3);
    let near = leaf(position(&key));
    let range = world.state(node).range().expect("it has a slice");
    let other = Range::ALL.without(&range)[0];
    let of_leaf = Range::of_leaf(near);
    world.with_host(node, |engine, cx| {
        for part in other.without(&of_leaf) {
            let (since, open) = (LogicalTime(0), BTreeMap::new());
            let former = Former { range: part, until: u64::MAX, since, members: Vec::new(), open };
            engine.state.former.push(former);
        }
        engine.give_up_found(Vec::new(), LogicalTime(3));
        engine.flush(cx);
    });
    let is_known = world.state(node).former.iter().any(|one| one.range.has(position(&key)));
    assert!(is_known, "what is beside a former range is handed over too");
}

/// It was deleted where its slice is now, and the tombstone is purged.
#[test]
fn what_was_given_up_long_ago_is_not_brought_back() {
    let mut world = World::new(24, Level::Strong, 58);
    (world.settings.grace, world.settings.window, world.settings.keep_rounds) = (40, 20, 10);
    let nodes = world.up();
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    for number in 0..70 {
        let node = world.any();
        world.ask(node, &format!("y{number}"), put("1"));
        world.run(2);
    }
    world.run(40);
    let node = nodes[0];
    let key = of_others(&world, node);
    put_at(&mut world, node, &key, 3);
    give_up(&mut world, node);
    world.run(100);
    let has = |node: &NodeId| world.state(*node).store.held(&key, None).is_some();
    let back = nodes.iter().filter(|node| has(node)).count();
    assert_eq!(back, 0, "{back} nodes have what is older than any tombstone");
    assert!(world.now > Time(0));
}

/// The end of a leaf was listed when the range was given up before, and is answered late.
#[test]
fn an_answer_to_an_earlier_question_hands_no_leaf_over() {
    let (mut world, node, key) = given_up();
    let other = world.up()[1];
    let listed = Rc::new(RefCell::new(None));
    let heard = Rc::clone(&listed);
    world.cut = Some(Box::new(move |from, _, message| match message {
        Message::Listed { page, .. } if from == node => {
            heard.replace(Some(page.clone()));
            true
        }
        _ => false,
    }));
    world.run(10);
    let page = listed.borrow().clone().expect("it is to be handed over");
    assert_eq!(page.leaf, leaf(position(&key)));
    let answer = |page| Message::Records {
        page: Some(page),
        heard: LogicalTime(9),
        records: Vec::new(),
        ids: Vec::new(),
        wanted: Vec::new(),
    };
    let has_page = |one: &Former| one.open.contains_key(&page.leaf);
    let is_open = |world: &World| world.state(node).former.iter().any(has_page);
    world.say(other, node, answer(Page { number: 0, ..page.clone() }));
    assert!(is_open(&world), "nobody has said that it has the key");
    world.say(other, node, answer(page.clone()));
    assert!(!is_open(&world), "it is in good hands");
}
