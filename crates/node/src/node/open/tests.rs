//! Lanes that come and go, and what dropped ones have left.

use super::*;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::cell::RefCell;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::error::{Fatal, WireError};
use quorate_kernel::ids::{Incarnation, LogId, LogIndex, Lsn, NodeId, Ticket};
use quorate_kernel::keyspace::Settings;
use quorate_kernel::lane::Hosted;
use quorate_kernel::limits::SWEEP_BYTES_MAX;
use quorate_kernel::news::Topic;
use quorate_kernel::operation::{Control, Operation, Outcome, Refusal};
use quorate_kernel::process::{Context, Process, Recovery, Request, Timer};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Class, Durability, Durable, Reader, Write, store_key};
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::{Decoder, Encoder, Frame, Wire};

type Bytewise = Rc<RefCell<BTreeMap<Bytes, Bytes>>>;

/// What each scan has read, in bytes of values.
type Scanned = Rc<RefCell<Vec<usize>>>;

struct Store(Bytewise, Scanned);

impl Reader for Store {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        Ok(self.0.borrow().get(key).cloned())
    }

    fn scan(
        &self,
        low: &[u8],
        high: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        let range = Bytes::copy_from_slice(low)..Bytes::copy_from_slice(high);
        let map = self.0.borrow();
        let mut bytes = 0;
        let mut pairs = map.range(range).inspect(|(_, value)| bytes += value.len());
        while pairs.next().is_some_and(|(key, value)| each(key, value)) {}
        self.1.borrow_mut().push(bytes);
        Ok(())
    }
}

#[derive(Debug)]
struct Nothing;

impl Wire for Nothing {
    fn encode(&self, _out: &mut Encoder<'_>) {}

    fn decode(_input: &Decoder) -> Result<Nothing, WireError> {
        Ok(Nothing)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tick;

impl Timer for Tick {
    fn code(self) -> u32 {
        0
    }

    fn from_code(_code: u32) -> Option<Tick> {
        Some(Tick)
    }
}

/// The version of a keyspace that this build cannot serve.
const UNREADABLE: u64 = 0;

/// What lanes were told, in order.
type Heard = Rc<RefCell<Vec<String>>>;

/// A lane that stores what it is asked to put, or as the catalog announces what it is given.
struct Lane {
    heard: Heard,
    keyspaces: Option<Arc<Keyspaces>>,
}

impl Process for Lane {
    type Message = Nothing;
    type Timer = Tick;
    const HEARS: &'static [Topic] = &[Topic::Keyspace];

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_, Lane>) {
        self.heard.borrow_mut().push(alloc::format!("{} starts {recovery:?}", cx.lane.0));
        cx.fx.arm(Tick, cx.now + Span::secs(1));
    }

    fn on_message(&mut self, _: Incarnation, _: Nothing, _: &mut Context<'_, Lane>) {}

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Lane>) {
        if let Operation::Put { key, value, .. } = request.operation {
            cx.fx.put(key, value);
        }
        if let Some(keyspaces) = &self.keyspaces {
            cx.fx.announce_keyspaces(Arc::clone(keyspaces));
        }
        cx.fx.answer(ticket, Outcome::written());
    }

    fn on_timer(&mut self, _: Tick, cx: &mut Context<'_, Lane>) {
        self.heard.borrow_mut().push(alloc::format!("{} ticks", cx.lane.0));
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_, Lane>) {
        let News::Keyspace(keyspace) = news else { panic!("it hears nothing else") };
        let changed = keyspace.changed;
        self.heard.borrow_mut().push(alloc::format!("{} is at {changed}", cx.lane.0));
    }
}

#[derive(Default)]
struct Outside {
    batches: Vec<Batch>,
    answers: Vec<Outcome>,
    keyspaces: usize,
}

impl Host for Outside {
    fn transmit(&mut self, _frame: &Frame) {}

    fn answer(&mut self, _ticket: Ticket, outcome: Outcome) {
        self.answers.push(outcome);
    }

    fn commit(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    fn keyspaces(&mut self, _keyspaces: &Arc<Keyspaces>) {
        self.keyspaces += 1;
    }

    fn ring(&mut self, _ring: &Arc<Ring>) {}
}

struct World {
    node: Node,
    store: Bytewise,
    scanned: Scanned,
    outside: Outside,
    heard: Heard,
}

fn spec(lane: LaneId, process: Lane, recovery: Recovery) -> LaneSpec {
    let (durability, process) = (Durability::Sync, Box::new(Hosted::new(process)));
    LaneSpec { lane, durability, recovery, process }
}

/// A node whose catalog says this when it is asked anything.
fn world(keyspaces: Keyspaces) -> World {
    let (store, heard) = (Bytewise::default(), Heard::default());
    let me = Incarnation { node: NodeId(1), start: Start(2) };
    let lane = Lane { heard: Rc::clone(&heard), keyspaces: Some(Arc::new(keyspaces)) };
    let lanes = Vec::from([spec(LaneId::CATALOG, lane, Recovery::Intact)]);
    let scanned = Scanned::default();
    let reader = Box::new(Store(Rc::clone(&store), Rc::clone(&scanned)));
    let told = Rc::clone(&heard);
    let opener: Opener = Box::new(move |keyspace, since| {
        if keyspace.changed == UNREADABLE {
            return None;
        }
        let recovery = if since == Start(2) { Recovery::Intact } else { Recovery::Forgot };
        let lane = Lane { heard: Rc::clone(&told), keyspaces: None };
        Some(spec(keyspace.lane, lane, recovery))
    });
    let node = Node::new(me, 7, Lsn(0), reader, lanes).with_opener(opener);
    World { node, store, scanned, outside: Outside::default(), heard }
}

impl World {
    /// One turn that asks a lane to put something; then all is written and synced.
    fn put(&mut self, lane: LaneId, key: &'static str) {
        self.node.begin(self.node.now, WallTime(0));
        let operation = Operation::put(key.into(), Bytes::from_static(b"v"));
        let request = Request { operation, deadline: Time(u64::MAX) };
        self.node.request(lane, Ticket(1), request, &mut self.outside);
        self.end();
    }

    /// Ends the turn, and as many more as there are batches to be written.
    fn end(&mut self) {
        self.node.end(&mut self.outside).expect("the store does not fail");
        while let Some(batch) = self.outside.batches.pop() {
            for Write { key, value } in batch.writes {
                if let Some((_, Place::Log(_))) = entries::store_place(&key) {
                    // The log is given up as a whole.
                    self.store.borrow_mut().retain(|entry, _| !entry.starts_with(&key));
                    continue;
                }
                match value {
                    Some(value) => drop(self.store.borrow_mut().insert(key, value)),
                    None => drop(self.store.borrow_mut().remove(&key)),
                }
            }
            let durable = Durable { written: batch.lsn, synced: batch.lsn };
            self.node.durable(durable, &mut self.outside);
            self.node.end(&mut self.outside).expect("the store does not fail");
        }
        self.node.check();
    }

    fn heard(&self) -> Vec<String> {
        core::mem::take(&mut *self.heard.borrow_mut())
    }
}

fn keyspace(lane: u32, changed: u64) -> Arc<Keyspace> {
    let keyspace = Keyspace::new("k", LaneId(lane), "e", Settings::new(), 1);
    Arc::new(Keyspace { changed, ..keyspace })
}

fn say(world: &mut World, list: &[(u32, u64, u32)], dropped: &[u32]) {
    let list = list.iter().map(|(lane, at, since)| (keyspace(*lane, *at), Start(*since)));
    let dropped = dropped.iter().copied().map(LaneId).collect();
    let list = list.collect();
    let keyspaces = Keyspaces { version: 1, list, dropped, ..Keyspaces::default() };
    world.node.on_keyspaces(&Arc::new(keyspaces), &mut world.outside);
    world.end();
}

#[test]
fn lanes_open_change_and_end_as_the_catalog_says_once_that_is_durable() {
    let list = Vec::from([(keyspace(16, 3), Start(1)), (keyspace(18, 4), Start(2))]);
    let mut world = world(Keyspaces { version: 4, list, ..Keyspaces::default() });
    world.put(LaneId(16), "early");
    assert_eq!(world.outside.answers.pop(), Some(Outcome::Refused(Refusal::NotOpen)));
    world.put(LaneId::CATALOG, "x");
    let opened =
        ["16 starts Forgot", "16 is at 3", "18 starts Intact", "18 is at 4"].map(String::from);
    assert_eq!(world.heard(), opened);
    assert_eq!(world.outside.keyspaces, 1);
    say(&mut world, &[(16, 3, 1), (18, 5, 2)], &[]);
    assert_eq!(world.heard(), ["18 is at 5"].map(String::from), "the other one is as it was");
    world.put(LaneId(16), "a");
    assert_eq!(world.outside.answers.pop(), Some(Outcome::written()));
    say(&mut world, &[(18, 5, 2)], &[16]);
    world.put(LaneId(16), "b");
    assert_eq!(world.outside.answers.pop(), Some(Outcome::Refused(Refusal::NotOpen)));
    world.node.begin(Time(0) + Span::secs(2), WallTime(0));
    world.node.fire(&mut world.outside);
    assert_eq!(world.heard(), ["18 ticks"].map(String::from), "a dropped lane has no timers");
}

#[test]
fn a_lane_that_places_nothing_has_no_parts_and_owes_nothing() {
    let (mut world, lane) = (world(Keyspaces::default()), LaneId::CATALOG);
    let World { node, outside, .. } = &mut world;
    node.control(lane, Ticket(3), Control::Examine { from: 0, leaver: None }, Time(9), outside);
    assert!(outside.answers == [Outcome::parts(Vec::new())] && node.is_ready(lane));
}

#[test]
fn what_a_dropped_lane_has_left_is_deleted_in_pieces_also_what_was_on_its_way() {
    let mut world = world(Keyspaces::default());
    say(&mut world, &[(16, 1, 2), (17, 1, 2)], &[]);
    for lane in [15, 16, 17] {
        for key in 0..2500_u32 {
            let key = store_key(LaneId(lane), Class::Data, &key.to_be_bytes());
            world.store.borrow_mut().insert(key, Bytes::from_static(b"v"));
        }
        let state = store_key(LaneId(lane), Class::State, b"group");
        world.store.borrow_mut().insert(state, Bytes::from_static(b"v"));
        for (log, index) in [(0, 7), (0, 8), (3, 1), (u64::MAX, 5)] {
            let entry = entries::key(LogId(log), LogIndex(index));
            let entry = store_key(LaneId(lane), Class::Log, &entry);
            world.store.borrow_mut().insert(entry, Bytes::from_static(b"v"));
        }
    }
    // A write of the lane is in the very turn that drops it.
    world.node.begin(Time(0), WallTime(0));
    let operation = Operation::put("late".into(), Bytes::from_static(b"v"));
    let request = Request { operation, deadline: Time(u64::MAX) };
    world.node.request(LaneId(16), Ticket(2), request, &mut world.outside);
    say(&mut world, &[(17, 1, 2)], &[16]);
    let count = |lane: u32| {
        let store = world.store.borrow();
        store.keys().filter(|key| key[..4] == lane.to_be_bytes()).count()
    };
    assert_eq!((count(15), count(16), count(17)), (2505, 0, 2505));
    assert!(!world.node.has_to_sweep());
}

#[test]
fn large_values_that_a_dropped_lane_has_left_are_deleted_a_few_at_a_time() {
    let mut world = world(Keyspaces::default());
    say(&mut world, &[(16, 1, 2)], &[]);
    for key in 0..20_u32 {
        let key = store_key(LaneId(16), Class::Data, &key.to_be_bytes());
        let value = Bytes::from(alloc::vec![0; SWEEP_BYTES_MAX / 4]);
        world.store.borrow_mut().insert(key, value);
    }
    say(&mut world, &[], &[16]);
    assert!(world.store.borrow().is_empty());
    assert_eq!(world.scanned.borrow().iter().max(), Some(&SWEEP_BYTES_MAX));
}

#[test]
fn a_keyspace_that_becomes_readable_after_newer_ones_waits_for_the_next_start() {
    let mut world = world(Keyspaces::default());
    say(&mut world, &[(16, UNREADABLE, 2), (17, 1, 2)], &[]);
    assert_eq!(world.heard(), ["17 starts Intact", "17 is at 1"].map(String::from));
    say(&mut world, &[(16, 2, 2), (17, 1, 2)], &[]);
    assert!(world.heard().is_empty(), "nothing new is opened");
    assert!(!world.node.has_lane(LaneId(16)) && world.node.has_lane(LaneId(17)));
    world.put(LaneId(16), "early");
    assert_eq!(world.outside.answers.pop(), Some(Outcome::Refused(Refusal::NotOpen)));
    say(&mut world, &[(16, 2, 2), (17, 1, 2), (18, 3, 2)], &[]);
    assert_eq!(world.heard(), ["18 starts Intact", "18 is at 3"].map(String::from));
}

#[test]
fn a_keyspace_that_finds_no_slot_waits_for_the_next_start() {
    let mut world = world(Keyspaces::default());
    let most = SLOTS_MAX as u32;
    let list: Vec<(u32, u64, u32)> = (16..16 + most).map(|lane| (lane, 1, 2)).collect();
    say(&mut world, &list, &[]);
    let last = LaneId(16 + most - 1);
    assert!(world.node.has_lane(LaneId(last.0 - 1)), "the catalog takes one");
    assert!(!world.node.has_lane(last));
}

#[test]
fn the_newest_batch_is_the_one_that_holds_all_writes() {
    let mut world = world(Keyspaces::default());
    assert_eq!(world.node.newest(), Lsn(0));
    let operation = Operation::put("a".into(), Bytes::from_static(b"v"));
    let request = Request { operation, deadline: Time(u64::MAX) };
    world.node.request(LaneId::CATALOG, Ticket(1), request, &mut world.outside);
    assert_eq!(world.node.newest(), Lsn(1), "it has not left");
    world.node.end(&mut world.outside).expect("the store does not fail");
    assert_eq!((world.node.newest(), world.node.progress().written), (Lsn(1), Lsn(0)));
}
