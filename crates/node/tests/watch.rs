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

impl Wire for Never {
    fn encode(&self, _: &mut Encoder<'_>) {
        match *self {}
    }

    fn decode(_: &Decoder) -> Result<Never, WireError> {
        Err(WireError::Checksum)
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

/// Tells its one watcher of each put, and ends the watch at a delete.
#[derive(Default)]
struct Teller {
    watcher: Option<Ticket>,
}

impl Process for Teller {
    type Message = Never;
    type Timer = Never;

    fn start(&mut self, _: Recovery, _: &mut Context<'_, Teller>) {}

    fn on_message(&mut self, _: Incarnation, message: Never, _: &mut Context<'_, Teller>) {
        match message {}
    }

    fn on_timer(&mut self, timer: Never, _: &mut Context<'_, Teller>) {
        match timer {}
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Teller>) {
        match request.operation {
            Operation::Put { key, value, .. } => {
                cx.fx.put(key, value);
                if let Some(watcher) = self.watcher {
                    cx.fx.answer(watcher, Outcome::More(vec![Event::Current]));
                }
                cx.fx.answer(ticket, Outcome::written());
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
