//! Snapshots that take long, and who is waited for meanwhile.

use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Message, SnapshotB};
use crate::epidemic::repair::behind::Heard;
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epidemic::tests::copies::asked;
use crate::epidemic::tests::joining::{asker, event, number, page};
use crate::epidemic::tests::world::{World, put};
use crate::epto::{Horizon, LogicalTime};
use crate::slices::position::Position;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Span;
use std::boxed::Box;
use std::cell::RefCell;
use std::format;
use std::rc::Rc;
use std::vec::Vec;

/// The members of a slice, which say to a joiner what a test makes them say.
struct Played {
    world: World,
    node: NodeId,
    /// Who was asked, and the number of the question.
    questions: Rc<RefCell<Vec<(NodeId, u64)>>>,
    rounds: u64,
}

impl Played {
    /// One of these starts again, with its disk or without.
    fn start(mut world: World, keeps_disk: bool) -> Played {
        world.settle();
        assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
        world.run(20);
        let node = world.up()[0];
        world.stop(node);
        if !keeps_disk {
            world.hosts.get_mut(&node).expect("it is there").disk.0.clear();
        }
        let questions: Rc<RefCell<Vec<(NodeId, u64)>>> = Rc::default();
        let heard = Rc::clone(&questions);
        world.cut = Some(Box::new(move |from, to, message| match message {
            Message::SnapshotA { number, .. } if from == node => {
                heard.borrow_mut().push((to, *number));
                true
            }
            _ => false,
        }));
        world.start(node);
        Played { world, node, questions, rounds: 0 }
    }

    fn members(&self) -> Vec<NodeId> {
        let members = self.world.state(self.node).slices.members();
        members.iter().map(|peer| peer.who.node).collect()
    }

    /// Runs so many rounds, or until the joiner is ready; returns whether it is. Each that is asked
    /// says what it is told to, but for its number.
    fn run(&mut self, rounds: u64, says: impl Fn(NodeId, u64) -> Option<SnapshotB>) -> bool {
        for _ in 0..rounds {
            self.world.run(1);
            self.rounds += 1;
            let asked = core::mem::take(&mut *self.questions.borrow_mut());
            for (donor, number) in asked {
                if let Some(page) = says(donor, self.rounds) {
                    let page = SnapshotB { number, ..page };
                    self.world.say(donor, self.node, Message::SnapshotB(page));
                }
            }
            if self.world.state(self.node).is_whole() {
                return true;
            }
        }
        false
    }

    /// A page of one that is not ready, and has come so much further than the node.
    fn unready(&self, time: u64, is_last: bool) -> SnapshotB {
        SnapshotB { is_ready: false, ..page(&self.world, self.node, 0, time, is_last) }
    }
}

/// A key in a range, with the record of it that is in a page.
fn record_in(range: Range) -> Record {
    let keys = (0..).map(|number| wire_key(format!("o{number}").as_bytes()));
    let key = keys.into_iter().find(|key| range.has(position(key))).expect("no end");
    let (version, value) = (Version::Ordered(event(3)), Some(Bytes::from_static(b"v")));
    Record { key, version, id: RequestId(9), value }
}

/// All have started, and nobody is ready. What siblings lack one other host has, which answers each
/// question; but it was asked too early first, and then two siblings send for long.
#[test]
fn who_has_what_siblings_lack_is_asked_while_they_send() {
    let mut played = Played::start(World::new(12, Level::Strong, 72), false);
    assert!(!played.run(25, |_, _| None), "it knows its slice by then");
    let (members, range) = (played.members(), played.world.state(played.node).range());
    let range = range.expect("it has a slice");
    assert!(members.len() >= 4, "two siblings send, and others are there");
    let (holder, [lower, upper]) = (members[0], [range.half(false), range.half(true)]);
    let record = record_in(upper);
    let lacks = |part| Vec::from([(part, Heard::Nothing)]);
    let all = SnapshotB {
        noted: lacks(lower),
        records: Vec::from([record.clone()]),
        ..played.unready(5, true)
    };
    let some = SnapshotB { noted: lacks(upper), ..played.unready(5, false) };
    let last = SnapshotB { noted: lacks(upper), ..played.unready(5, true) };
    // That is longer than it waits for who may have the rest.
    const LONG: u64 = 900;
    let is_whole = played.run(LONG + 200, |donor, round| match members.contains(&donor) {
        false => None,
        true if donor == holder => Some(all.clone()),
        true => Some(if round < LONG { some.clone() } else { last.clone() }),
    });
    assert!(is_whole && played.rounds >= LONG, "all have sent what they have");
    let state = played.world.state(played.node);
    assert!(state.store.held(&record.key, None).is_some(), "and it was taken");
    assert_eq!(state.doubt.count(), 0, "of each part somebody had all");
}

/// It has its old disk, another one has none newer, and the third one sends what was written since:
/// two of the three may have acknowledged that.
#[test]
fn who_has_an_old_disk_waits_for_a_newer_one_that_is_sent() {
    let mut played = Played::start(World::new(3, Level::Strong, 73), true);
    assert!(!played.run(25, |_, _| None));
    let members = played.members();
    let [old, new] = members[..] else { panic!("there are three") };
    let record = record_in(Range::ALL);
    let begins = played.unready(7, false);
    let ends = SnapshotB { records: Vec::from([record.clone()]), ..played.unready(7, true) };
    let other = played.unready(0, true);
    const LONG: u64 = 900;
    let is_whole = played.run(LONG + 200, |donor, round| match donor {
        _ if donor == old => Some(other.clone()),
        _ if donor == new && round < LONG => Some(begins.clone()),
        _ => Some(ends.clone()),
    });
    assert!(is_whole && played.rounds >= LONG, "the newer one was heard to the end");
    assert!(played.world.state(played.node).store.held(&record.key, None).is_some());
}

/// Each page takes longer than a question is waited for: it is asked again, and goes on.
#[test]
fn a_page_that_is_late_is_no_reason_to_begin_anew() {
    let (mut world, node, donors) = asker(52);
    for is_last in [false, true] {
        asked(&mut world, node, &donors);
        let numbers = donors.map(|donor| number(&world, node, donor));
        // By then they were asked again, or others were.
        world.run(40);
        for (donor, number) in donors.into_iter().zip(numbers) {
            let late = page(&world, node, number, 5, is_last);
            world.say(donor, node, Message::SnapshotB(late));
        }
    }
    world.run(2);
    assert!(world.state(node).is_whole(), "both have sent all");
}

/// Its last event never came there, and there is no other one. What it may lack is in doubt until
/// another one was compared with.
#[test]
fn who_is_ready_and_never_comes_as_far_is_waited_for_for_long_and_not_for_ever() {
    let (mut world, node, donors) = asker(89);
    let reached = world.state(node).last.expect("it has come far");
    let last = Some(event(reached.time.0 - 1));
    for round in 0..1000 {
        asked(&mut world, node, &donors);
        for donor in donors {
            let usual = page(&world, node, number(&world, node, donor), 0, true);
            let horizon = Horizon { last, ..Horizon::default() };
            world.say(donor, node, Message::SnapshotB(SnapshotB { horizon, ..usual }));
        }
        world.run(1);
        if world.state(node).is_whole() {
            assert!(round > 40, "the next event may come soon");
            let (first, last) = world.state(node).range().expect("it has a slice").leaves();
            assert_eq!(world.state(node).doubt.count(), u32::from(last.0 - first.0) + 1);
            world.cut = None;
            world.run(100);
            assert_eq!(world.state(node).doubt.count(), 0, "others were compared with");
            return;
        }
    }
    panic!("it waits for ever");
}

/// Pages take long, and there is much to send. Answers the node with the highest position.
fn many(seed: u64) -> (World, NodeId, Vec<Bytes>) {
    let mut world = World::new(4, Level::Strong, seed);
    world.settings.events = Some(192);
    let nodes = world.up();
    nodes.iter().for_each(|node| world.start(*node));
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    let value = Bytes::from(std::vec![1; 60 * 1024]);
    let keys = (0..80).map(|number| wire_key(format!("o{number}").as_bytes()));
    let keys: Vec<Bytes> = keys.collect();
    for (node, key) in nodes.iter().flat_map(|node| keys.iter().map(move |key| (*node, key))) {
        let (version, id) = (Version::Ordered(event(2)), RequestId(9));
        let record = Record { key: key.clone(), version, id, value: Some(value.clone()) };
        world.with_host(node, |engine, cx| {
            engine.state.store.put(record, &mut engine.state.writes);
            engine.flush(cx);
        });
    }
    let round = world.settings.round;
    world.late = Some(Box::new(move |message| match message {
        Message::SnapshotB(_) => round,
        _ => Span(0),
    }));
    let highest = nodes.into_iter().max_by_key(|node| Position::of(*node));
    (world, highest.expect("there are four"), keys)
}

/// A round in which each of the others has an event.
fn busy_round(world: &mut World, node: NodeId, number: u64) {
    for other in world.up().into_iter().filter(|one| *one != node) {
        for key in 0..2 {
            world.ask(other, &format!("{key}"), put(&format!("{number}")));
        }
    }
    world.run(1);
}

/// More events come while it takes over all of its slice than may wait without a place.
#[test]
fn who_has_no_place_takes_one_though_many_events_come_all_the_time() {
    for (is_emptied, is_started) in [(false, false), (true, false), (false, true)] {
        let (mut world, node, keys) = many(74);
        world.stop(node);
        if is_emptied {
            world.hosts.get_mut(&node).expect("it is there").disk.0.clear();
        }
        world.start(node);
        let mut was_part = false;
        for number in 0..1200 {
            busy_round(&mut world, node, number);
            let state = world.state(node);
            let is_part = state.ready.is_some() && !state.is_whole();
            if is_part && !was_part {
                let holds_own = |ready: Range| ready.has(Position::of(node));
                assert!(state.ready.is_some_and(holds_own), "its slice may be cut meanwhile");
            }
            if is_part && !was_part && is_started {
                // What it has of the rest counts as what it had when it stopped, at the latest.
                let ready = state.ready.expect("a part of it is taken over");
                let rest = Range::ALL.without(&ready);
                let last = state.last.expect("it has come far").time;
                world.stop(node);
                world.start(node);
                let noted = rest.iter().flat_map(|rest| world.state(node).behind.within(rest));
                let noted: Vec<Heard> = noted.map(|(_, heard)| heard).collect();
                let is_own = |one: &Heard| matches!(one, Heard::Own(time) if *time <= last);
                assert!(!noted.is_empty() && noted.iter().all(is_own), "{noted:?}");
            }
            was_part |= is_part;
            if world.state(node).is_whole() {
                break;
            }
        }
        assert!(world.state(node).is_whole(), "it never has a place");
        assert!(was_part, "it has taken over a part first");
        world.run(100);
        let state = world.state(node);
        assert!(keys.iter().all(|key| state.store.held(key, None).is_some()));
        assert_eq!(state.doubt.count(), 0);
        let of = |other: NodeId| {
            let held = |key: &str| world.state(other).store.held(&wire_key(key.as_bytes()), None);
            ["0", "1"].map(|key| held(key).map(|held| held.version))
        };
        assert!(world.up().iter().all(|other| of(*other) == of(node)), "all have the same");
        assert!(state.last.is_some_and(|last| last.time > LogicalTime(100)));
    }
}
