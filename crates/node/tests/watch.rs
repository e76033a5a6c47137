//! An operation that is answered more than once: what a lane tells waits for the disk like any
//! other answer, in order, and ends on either side.

use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::{Context, Process, Recovery, Request, Timer};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Durability, Durable, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::watch::{Event, Watch};
use quorate_kernel::wire::{Decoder, Encoder, Frame, Wire};
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use std::sync::Arc;

const LANE: LaneId = LaneId(16);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Never {}

/// The lane tells itself that a request is done.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Done(u64);

impl Wire for Done {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&self.0);
    }

    fn decode(input: &Decoder) -> Result<Done, WireError> {
        input.head().map(Done)
    }
}

impl Timer for Never {
    fn code(self) -> u32 {
        match self {}
    }

    fn from_code(_: u32) -> Option<Never> {
        None
    }
}

/// The key whose put ends the watch once the lane has told itself that it is done.
const LAST: &[u8] = b"last";

/// Tells its one watcher of each put, and ends the watch at a delete.
#[derive(Default)]
struct Teller {
    watcher: Option<Ticket>,
}

impl Process for Teller {
    type Message = Done;
    type Timer = Never;

    fn start(&mut self, _: Recovery, _: &mut Context<'_, Teller>) {}

    fn on_message(&mut self, _: Incarnation, done: Done, cx: &mut Context<'_, Teller>) {
        if let Some(watcher) = self.watcher.take() {
            cx.fx.answer(watcher, Outcome::Refused(Refusal::Overloaded));
        }
        cx.fx.answer(Ticket(done.0), Outcome::written());
    }

    fn on_timer(&mut self, timer: Never, _: &mut Context<'_, Teller>) {
        match timer {}
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Teller>) {
        match request.operation {
            Operation::Put { key, value, .. } => {
                let is_last = key == LAST;
                cx.fx.put(key, value);
                if is_last {
                    cx.fx.send(cx.me, Done(ticket.0));
                }
                if let Some(watcher) = self.watcher {
                    cx.fx.answer(watcher, Outcome::More(vec![Event::Current]));
                }
                if !is_last {
                    cx.fx.answer(ticket, Outcome::written());
                }
            }
            _ => {
                if let Some(watcher) = self.watcher.take() {
                    cx.fx.answer(watcher, Outcome::Refused(Refusal::Overloaded));
                }
                cx.fx.answer(ticket, Outcome::deleted(true));
            }
        }
    }

    fn on_watch(&mut self, ticket: Ticket, _: Watch, _: &mut Context<'_, Teller>) {
        self.watcher = Some(ticket);
    }

    fn on_unwatch(&mut self, ticket: Ticket, _: &mut Context<'_, Teller>) {
        assert_eq!(self.watcher.take(), Some(ticket));
    }
}

#[derive(Default)]
struct Outside {
    answers: Vec<(u64, Outcome)>,
    committed: u64,
}

impl Host for Outside {
    fn transmit(&mut self, _: &Frame) {}
    fn ring(&mut self, _: &Arc<Ring>) {}

    fn answer(&mut self, ticket: Ticket, outcome: Outcome) {
        self.answers.push((ticket.0, outcome));
    }

    fn commit(&mut self, batch: Batch) {
        self.committed = batch.lsn.0;
    }
}

struct World {
    node: Node,
    outside: Outside,
    now: u64,
}

impl World {
    fn new() -> World {
        let lane = LaneSpec {
            lane: LANE,
            durability: Durability::Sync,
            recovery: Recovery::Intact,
            process: Box::new(Hosted::new(Teller::default())),
        };
        let me = Incarnation { node: NodeId(1), start: Start(1) };
        let node = Node::new(me, 1, Lsn(0), Box::new(Nothing), vec![lane]);
        World { node, outside: Outside::default(), now: 0 }
    }

    fn turn(&mut self, input: Input) -> Vec<(u64, Outcome)> {
        self.now += 1;
        let mut inputs = vec![input];
        turn(&mut self.node, Time(self.now), WallTime(0), &mut inputs, &mut self.outside)
            .expect("the store works");
        std::mem::take(&mut self.outside.answers)
    }

    fn ask(&mut self, ticket: u64, operation: Operation) -> Vec<(u64, Outcome)> {
        let request = Request { operation, deadline: Time(u64::MAX) };
        self.turn(Input::Request { lane: LANE, ticket: Ticket(ticket), request })
    }

    fn put(&mut self, ticket: u64) -> Vec<(u64, Outcome)> {
        self.ask(ticket, Operation::put(Bytes::from_static(b"k"), Bytes::from_static(b"v")))
    }

    fn synced(&mut self) -> Vec<(u64, Outcome)> {
        let lsn = Lsn(self.outside.committed);
        self.turn(Input::Durable(Durable { written: lsn, synced: lsn }))
    }

    fn watch(&mut self, lane: LaneId, ticket: u64) -> Vec<(u64, Outcome)> {
        self.turn(Input::Watch { lane, ticket: Ticket(ticket), watch: Watch::Cluster })
    }
}

#[test]
fn a_watch_is_answered_often_each_time_when_it_is_durable_until_the_lane_ends_it() {
    let mut world = World::new();
    assert_eq!(world.watch(LANE, 1), []);
    let more = || (1, Outcome::More(vec![Event::Current]));
    assert_eq!(world.put(2), [], "nothing is on the disk");
    assert_eq!(world.put(3), []);
    let told = [more(), (2, Outcome::written()), more(), (3, Outcome::written())];
    assert_eq!(world.synced(), told);
    assert!(!more().1.is_last());
    let ended = world.ask(4, Operation::delete(Bytes::new()));
    assert_eq!(ended, [(1, Outcome::Refused(Refusal::Overloaded)), (4, Outcome::deleted(true))]);
    assert!(ended[0].1.is_last());
    world.put(5);
    assert_eq!(world.synced(), [(5, Outcome::written())]);
}

/// What a lane tells itself is delivered when it is durable. What it answers then comes after what
/// it had asked for before.
#[test]
fn no_answer_overtakes_one_that_was_held_with_a_message_to_the_lane_itself() {
    let mut world = World::new();
    assert_eq!(world.watch(LANE, 1), []);
    assert_eq!(world.ask(2, Operation::put(LAST.into(), Bytes::new())), []);
    let more = (1, Outcome::More(vec![Event::Current]));
    let ended = (1, Outcome::Refused(Refusal::Overloaded));
    assert_eq!(world.synced(), [more, ended, (2, Outcome::written())]);
}

#[test]
fn a_client_ends_its_watch_and_a_lane_that_is_not_there_refuses_it() {
    let mut world = World::new();
    assert_eq!(world.watch(LANE, 1), []);
    assert_eq!(world.turn(Input::Unwatch { lane: LANE, ticket: Ticket(1) }), []);
    world.put(2);
    assert_eq!(world.synced(), [(2, Outcome::written())]);
    let nowhere = LaneId(99);
    assert_eq!(world.watch(nowhere, 3), [(3, Outcome::Refused(Refusal::NotOpen))]);
    assert_eq!(world.turn(Input::Unwatch { lane: nowhere, ticket: Ticket(3) }), []);
}
