//! Traps of what a joiner takes for all that there is.

use super::joining::{asker, event, number, page};
use super::world::{World, put};
use crate::epidemic::Level;
use crate::epidemic::keys::{LAST, wire_key};
use crate::epidemic::message::{Message, SnapshotB};
use crate::epidemic::repair::behind::Heard;
use crate::epidemic::repair::join::Standing;
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::{EventKey, Horizon, LogicalTime};
use crate::gossip::cyclon::Peer;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::Process;
use std::boxed::Box;
use std::format;
use std::vec::Vec;

fn is_asked(world: &World, node: NodeId, donor: NodeId) -> bool {
    let Standing::Joining(joining) = &world.state(node).standing else { return false };
    joining.asked(donor).is_some()
}

/// Runs until all of them were asked.
pub fn asked(world: &mut World, node: NodeId, donors: &[NodeId]) {
    for _ in 0..400 {
        if donors.iter().all(|donor| is_asked(world, node, *donor)) {
            return;
        }
        world.run(1);
    }
    panic!("all are asked in turn");
}

/// Runs until one was asked that is no member of its slice; which one.
pub fn neighbour_asked(world: &mut World, node: NodeId, members: &[NodeId]) -> NodeId {
    let is_other = |other: &NodeId| *other != node && !members.contains(other);
    let others: Vec<NodeId> = world.up().into_iter().filter(is_other).collect();
    for _ in 0..400 {
        if let Some(neighbour) = others.iter().find(|one| is_asked(world, node, **one)) {
            return *neighbour;
        }
        world.run(1);
    }
    panic!("some neighbour is asked");
}

/// Others that have nothing either are soon heard to the end; who has all needs longer.
#[test]
fn who_is_ready_is_waited_for_while_it_sends() {
    let (mut world, node, _) = asker(61);
    let members = world.state(node).slices.members();
    let members: Vec<NodeId> = members.iter().map(|peer| peer.who.node).collect();
    assert!(members.len() >= 3, "the slice has more than two others");
    // Before that nothing is taken of who is not ready.
    world.run(80);
    asked(&mut world, node, &members[..3]);
    for donor in &members[..2] {
        let number = number(&world, node, *donor);
        let empty = SnapshotB { is_ready: false, ..page(&world, node, number, 5, true) };
        world.say(*donor, node, Message::SnapshotB(empty));
    }
    for _ in 0..20 {
        let number = number(&world, node, members[2]);
        let first = page(&world, node, number, 5, false);
        world.say(members[2], node, Message::SnapshotB(first));
        world.run(1);
        assert!(!world.state(node).is_whole(), "who is ready was not heard to the end");
    }
    let number = number(&world, node, members[2]);
    let last = page(&world, node, number, 5, true);
    world.say(members[2], node, Message::SnapshotB(last));
    world.run(2);
    assert!(world.state(node).is_whole(), "one that was ready is enough after so long");
}

/// Who was away for longer than tombstones are kept drops what it has when it hears that; until
/// then nobody may take it from there.
#[test]
fn what_others_have_purged_is_not_taken_from_who_was_away() {
    let mut world = World::new(6, Level::Strong, 62);
    world.settle();
    let nodes = world.up();
    let (node, away) = (nodes[0], nodes[1]);
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotA { .. })));
    world.stop(node);
    world.start(node);
    for _ in 0..100 {
        if is_asked(&world, node, away) {
            break;
        }
        world.run(1);
    }
    let number = number(&world, node, away);
    let key = wire_key(b"deleted long ago");
    let version = Version::Ordered(event(2));
    let value = Some(Bytes::from_static(b"old"));
    let record = Record { key: key.clone(), version, id: RequestId(9), value };
    let horizon = Horizon { last: Some(event(3)), ..Horizon::default() };
    let usual = page(&world, node, number, 0, true);
    let records = Vec::from([record]);
    let old = SnapshotB { is_ready: false, horizon, records, ..usual };
    world.say(away, node, Message::SnapshotB(old));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// A node in a small world that has lost its disk and hears no snapshots, when it would take those
/// of who is not ready, too; and the others of its slice.
pub fn emptied(seed: u64) -> (World, NodeId, Vec<NodeId>) {
    emptied_with(seed, 40)
}

fn emptied_with(seed: u64, grace: u64) -> (World, NodeId, Vec<NodeId>) {
    let mut world = World::new(12, Level::Strong, seed);
    world.settle();
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotA { .. })));
    (world.settings.grace, world.settings.window) = (grace, 20);
    let node = world.up()[0];
    world.stop(node);
    world.hosts.get_mut(&node).expect("it is there").disk.0.clear();
    world.start(node);
    world.run(110);
    assert!(world.state(node).last.is_none() && !world.state(node).is_whole());
    let members = world.state(node).slices.members();
    let members: Vec<NodeId> = members.iter().map(|peer| peer.who.node).collect();
    assert!(members.len() >= 3, "the slice has more than two others");
    asked(&mut world, node, &members);
    (world, node, members)
}

/// All that a member has, which is not ready, and is so far: a key that was deleted long ago.
pub fn old_copy(world: &World, node: NodeId, donor: NodeId, time: u64) -> (Bytes, SnapshotB) {
    let keys = (0..1000).map(|number| wire_key(format!("o{number}").as_bytes()));
    let mut mine = keys.filter(|key| world.state(node).is_mine(position(key)));
    let key = mine.next().expect("it has a slice");
    let (version, value) = (Version::Ordered(event(2)), Some(Bytes::from_static(b"old")));
    let record = Record { key: key.clone(), version, id: RequestId(9), value };
    let usual = page(world, node, number(world, node, donor), time, true);
    (key, SnapshotB { is_ready: false, records: Vec::from([record]), ..usual })
}

/// Who has nothing cannot tell by itself how old that is which another has.
#[test]
fn who_has_nothing_takes_nothing_of_who_lags_behind_others() {
    let (mut world, node, members) = emptied(71);
    let far = world.settings.grace + 10;
    let usual = page(&world, node, number(&world, node, members[0]), far, true);
    world.say(members[0], node, Message::SnapshotB(SnapshotB { is_ready: false, ..usual }));
    let (key, old) = old_copy(&world, node, members[1], 3);
    world.say(members[1], node, Message::SnapshotB(old));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// It may have had the range before.
#[test]
fn nor_of_a_neighbour_that_is_no_member() {
    let far = 50;
    // It was away, or has given the range up long ago.
    takes_nothing_of_a_neighbour(far, (3, None));
    takes_nothing_of_a_neighbour(far, (far, Some(LogicalTime(3))));
}

fn takes_nothing_of_a_neighbour(far: u64, (reached, behind): (u64, Option<LogicalTime>)) {
    let (mut world, node, members) = emptied(72);
    assert!(far - 3 > world.settings.grace);
    let neighbour = neighbour_asked(&mut world, node, &members);
    let furthest = page(&world, node, number(&world, node, members[0]), far, false);
    world.say(members[0], node, Message::SnapshotB(SnapshotB { is_ready: false, ..furthest }));
    let (key, old) = old_copy(&world, node, neighbour, reached);
    let noted = behind.map(|until| (Range::ALL, Heard::Own(until))).into_iter().collect();
    world.say(neighbour, node, Message::SnapshotB(SnapshotB { noted, ..old }));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// Nobody has said before how far the others are.
#[test]
fn what_was_taken_of_who_lags_is_dropped_when_others_are_heard() {
    let (mut world, node, members) = emptied(74);
    let far = world.settings.grace + 10;
    let (key, old) = old_copy(&world, node, members[1], 3);
    world.say(members[1], node, Message::SnapshotB(old));
    assert!(world.state(node).store.held(&key, None).is_some(), "it may be all there is");
    let usual = page(&world, node, number(&world, node, members[0]), far, true);
    world.say(members[0], node, Message::SnapshotB(usual));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// A join may begin anew in between, as when the number of slices changes.
#[test]
fn what_was_taken_of_who_lags_is_known_for_that_when_the_join_begins_anew() {
    let (mut world, node, members) = emptied(73);
    let far = world.settings.grace + 10;
    let (key, old) = old_copy(&world, node, members[1], 3);
    world.say(members[1], node, Message::SnapshotB(old));
    let host = world.hosts.get_mut(&node).expect("it is there");
    let Standing::Joining(joining) = &mut host.engine.state.standing else { panic!("it joins") };
    joining.restart();
    world.run(2);
    asked(&mut world, node, &members[..1]);
    let usual = page(&world, node, number(&world, node, members[0]), far, true);
    world.say(members[0], node, Message::SnapshotB(usual));
    assert_eq!(world.state(node).store.held(&key, None), None);
}

/// What it writes would be older than what another has that is heard again later.
#[test]
fn who_takes_over_counts_on_from_the_furthest_that_was_heard() {
    // Also if that is farther than what a client may have seen.
    for far in [40, EPTO_CLOCK_JUMP_MAX / 2 + 100] {
        let (mut world, node, members) = emptied_with(71, far);
        let first = page(&world, node, number(&world, node, members[0]), far, false);
        world.say(members[0], node, Message::SnapshotB(SnapshotB { is_ready: false, ..first }));
        for donor in &members[1..3] {
            let usual = page(&world, node, number(&world, node, *donor), 3, true);
            world.say(*donor, node, Message::SnapshotB(SnapshotB { is_ready: false, ..usual }));
        }
        world.run(2);
        assert!(!world.state(node).is_whole(), "it may send what nobody else has");
        // As if many rounds had passed in which it is asked, and says nothing.
        world.with_host(node, |engine, _| engine.state.round += 2_000);
        world.run(4);
        assert!(world.state(node).is_whole());
        assert!(world.state(node).epto.clock() >= LogicalTime(far));
    }
}

/// What a node had itself, with its tombstones, is younger than what it took of another.
#[test]
fn what_a_node_had_itself_is_not_dropped_with_what_is_older() {
    keeps_its_own(false);
    // It has given the range up, and is to take it over again.
    keeps_its_own(true);
}

fn keeps_its_own(is_taken_back: bool) {
    let (mut world, node, _) = asker(77);
    let names = (0..1000).map(|number| format!("o{number}"));
    let mut mine =
        names.filter(|name| world.state(node).is_mine(position(&wire_key(name.as_bytes()))));
    let (other, name) = (mine.next(), mine.next().expect("it has a slice"));
    assert!(other.is_some_and(|other| other != name));
    world.cut = None;
    world.settle();
    assert!(matches!(world.done(&name, put("1")), Outcome::Written { .. }));
    world.run(20);
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::SnapshotA { .. })));
    world.stop(node);
    (world.settings.grace, world.settings.window) = (40, 20);
    world.start(node);
    world.run(110);
    let members = world.state(node).slices.members();
    let members: Vec<NodeId> = members.iter().map(|peer| peer.who.node).collect();
    asked(&mut world, node, &members[..2]);
    let own = wire_key(name.as_bytes());
    assert!(world.state(node).store.held(&own, None).is_some());
    if is_taken_back {
        world.with_host(node, |engine, cx| {
            let (range, last) = (engine.state.range().expect("it has a slice"), engine.state.last);
            let (state, since) = (&mut engine.state, last.expect("it has come so far").time);
            state.behind.give_up(&range, since, &mut state.writes);
            engine.flush(cx);
        });
    }
    let (key, old) = old_copy(&world, node, members[0], 0);
    let horizon = Horizon::default();
    world.say(members[0], node, Message::SnapshotB(SnapshotB { horizon, ..old }));
    assert!(world.state(node).store.held(&key, None).is_some());
    let young = page(&world, node, number(&world, node, members[1]), 40, false);
    world.say(members[1], node, Message::SnapshotB(SnapshotB { is_ready: false, ..young }));
    assert!(world.state(node).store.held(&own, None).is_some());
}

/// A neighbour of another slice has purged nothing of what the members have.
#[test]
fn a_neighbour_that_is_far_makes_no_member_one_that_lags() {
    let (mut world, node, members) = emptied(72);
    let neighbour = neighbour_asked(&mut world, node, &members);
    let far = world.settings.grace + 10;
    let usual = page(&world, node, number(&world, node, neighbour), far, true);
    world.say(neighbour, node, Message::SnapshotB(SnapshotB { is_ready: false, ..usual }));
    let (key, only) = old_copy(&world, node, members[0], 3);
    world.say(members[0], node, Message::SnapshotB(only));
    assert!(world.state(node).store.held(&key, None).is_some());
}

/// It has been heard, and nothing of it was taken: that is no second copy.
#[test]
fn who_lags_counts_only_where_nobody_else_is_left() {
    let (mut world, node, members) = emptied(72);
    let far = world.settings.grace + 10;
    let usual = page(&world, node, number(&world, node, members[0]), far, true);
    world.say(members[0], node, Message::SnapshotB(SnapshotB { is_ready: false, ..usual }));
    for (place, donor) in members.iter().enumerate().skip(1) {
        let (_, old) = old_copy(&world, node, *donor, 3);
        world.say(*donor, node, Message::SnapshotB(old));
        world.run(2);
        let is_last = place + 1 == members.len();
        assert_eq!(world.state(node).is_whole(), is_last, "{place} of {}", members.len());
    }
}

/// Who is ready has all that there is.
#[test]
fn nothing_is_taken_of_who_is_not_ready_while_another_sends_who_is() {
    let (mut world, node, members) = emptied(73);
    let first = page(&world, node, number(&world, node, members[0]), 5, false);
    world.say(members[0], node, Message::SnapshotB(first));
    let (key, old) = old_copy(&world, node, members[1], 5);
    world.say(members[1], node, Message::SnapshotB(old));
    assert_eq!(world.state(node).store.held(&key, None), None);
    // When nothing more has come for long that is all there is.
    world.run(80);
    asked(&mut world, node, &members[1..2]);
    let (key, old) = old_copy(&world, node, members[1], 5);
    world.say(members[1], node, Message::SnapshotB(old));
    assert!(world.state(node).store.held(&key, None).is_some(), "nobody else has it");
}

/// What a join has brought so far says nothing of how old it is.
#[test]
fn copies_of_a_join_that_broke_off_are_dropped() {
    let mut world = World::new(4, Level::Strong, 63);
    world.settle();
    for number in 0..5 {
        world.done(&format!("k{number}"), put("1"));
    }
    world.run(20);
    let node = world.up()[0];
    let stored = |world: &World| world.state(node).store.len();
    assert!(stored(&world) > 0 && Range::ALL.has(position(&wire_key(b"k0"))));
    world.stop(node);
    world.start(node);
    assert!(stored(&world) > 0, "who knows how far it was keeps what it has");
    world.stop(node);
    world.hosts.get_mut(&node).expect("it is there").disk.0.remove(&LAST);
    world.start(node);
    assert_eq!(stored(&world), 0);
    world.settle();
    world.run(40);
    assert!(stored(&world) > 0, "others have it all");
    let last: Option<EventKey> = world.state(node).last;
    assert!(last.is_some());
}

/// Whoever starts hosts one after the other waits for each before the next.
#[test]
fn who_hears_nobody_keeps_nobody_waiting_and_who_hears_others_is_not_ready_at_once() {
    let mut world = World::new(4, Level::Strong, 64);
    world.settle();
    let parts = |world: &World, node: NodeId| world.hosts[&node].engine.parts().len();
    let node = world.up()[0];
    assert_eq!(parts(&world, node), 0);
    world.stop(node);
    world.cut = Some(Box::new(move |from, to, _| from == node || to == node));
    world.start(node);
    for _ in 0..100 {
        world.run(1);
        assert_eq!(parts(&world, node), 0, "there is nothing to wait for");
    }
    assert!(!world.state(node).is_whole(), "and yet it answers nothing");
    world.cut = None;
    world.settle();
    assert_eq!(parts(&world, node), 0);
    let (world, node, _) = asker(65);
    assert_eq!(parts(&world, node), 1, "it takes over what it shall answer for");
}

/// Two of three have all that was acknowledged.
#[test]
fn who_has_started_with_what_it_had_does_not_wait_for_who_is_cut_off() {
    let mut world = World::new(3, Level::Strong, 67);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(40);
    let [one, other, away] = world.up()[..] else { panic!("there are three") };
    [one, other].into_iter().for_each(|node| world.stop(node));
    world.cut = Some(Box::new(move |from, to, _| [from, to].contains(&away)));
    [one, other].into_iter().for_each(|node| world.start(node));
    let told = Peer { who: world.me(away), age: 0, address: "".into() };
    for _ in 0..100 {
        world.run(4);
        // They are told again and again that it is there.
        for node in [one, other] {
            let host = world.hosts.get_mut(&node).expect("it is there");
            host.engine.state.slices.on_members(core::slice::from_ref(&told));
        }
    }
    for node in [one, other] {
        assert_eq!(world.state(node).slices.members().len(), 2, "both others are known");
        assert!(world.state(node).is_whole(), "it waits for who is cut off");
        assert!(world.state(node).store.held(&wire_key(b"x"), None).is_some());
    }
}
