//! While the disk hangs, what waits for it is counted: writes, and the answers that rest on them.
//! The host takes no more then.

mod common;

use common::{Never, Silence};
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::limits::UNSYNCED_BYTES_MAX;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Request};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Class, Durability, Durable, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::wire::Frame;
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use std::sync::Arc;

const LANE: LaneId = LaneId(7);

/// Stores what is put, and answers and sends what is read once that is durable.
struct Store;

impl Process for Store {
    type Message = Silence;
    type Timer = Never;

    fn start(&mut self, _recovery: Recovery, _cx: &mut Context<'_, Store>) {}

    fn on_message(&mut self, _: Incarnation, _: Silence, _: &mut Context<'_, Store>) {}

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Store>) {
        match request.operation {
            Operation::Put { key, value, .. } => cx.fx.put(key, value),
            Operation::Get { key, .. } => {
                let value = cx.table.get(Class::Data, &key);
                cx.fx.answer_after_key(ticket, Outcome::value(value), key);
            }
            other => panic!("nothing else is asked: {other:?}"),
        }
    }

    fn on_timer(&mut self, _: Never, _: &mut Context<'_, Store>) {}
}

#[derive(Default)]
struct Outside {
    answered: usize,
    batches: Vec<Batch>,
}

impl Host for Outside {
    fn transmit(&mut self, _frame: &Frame) {}

    fn answer(&mut self, _ticket: Ticket, _outcome: Outcome) {
        self.answered += 1;
    }

    fn ring(&mut self, _ring: &Arc<Ring>) {}

    fn commit(&mut self, batch: Batch) {
        self.batches.push(batch);
    }
}

fn ask(operation: Operation) -> Input {
    let request = Request { operation, deadline: Time(u64::MAX) };
    Input::Request { lane: LANE, ticket: Ticket(1), request }
}

#[test]
fn a_disk_that_hangs_bounds_what_waits_for_it_answers_included() {
    let spec = LaneSpec {
        lane: LANE,
        durability: Durability::Sync,
        recovery: Recovery::Intact,
        process: Box::new(Hosted::new(Store)),
    };
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let mut node = Node::new(me, 1, Lsn(0), Box::new(Nothing), vec![spec]);
    let mut outside = Outside::default();
    let mut step = |node: &mut Node, input| {
        turn(node, Time(1), WallTime(0), &mut vec![input], &mut outside).expect("no disk fails");
        (outside.answered, outside.batches.last().map_or(Lsn(0), |batch| batch.lsn))
    };
    let length = 1 << 20;
    let value = vec![7; length].into();
    let (_, written) = step(&mut node, ask(Operation::put("k".into(), value)));
    assert!(node.keeps_up(), "a write alone is not too much");
    // The batch is handed over, and nothing is heard of it.
    let mut asked = 0;
    while node.keeps_up() && asked < 1000 {
        assert_eq!(step(&mut node, ask(Operation::get("k".into()))).0, 0);
        asked += 1;
    }
    assert!(asked < UNSYNCED_BYTES_MAX / length, "{asked} answers wait, each with its value");
    assert!(asked > UNSYNCED_BYTES_MAX / length - 3, "{asked} answers were taken to be more");
    // What is written and not synced keeps them as well.
    let durable = Durable { written, synced: Lsn(0) };
    assert_eq!(step(&mut node, Input::Durable(durable)).0, 0);
    assert!(node.waiting_bytes() > asked * length);
    let durable = Durable { written, synced: written };
    assert_eq!(step(&mut node, Input::Durable(durable)).0, asked);
    assert_eq!((node.waiting_bytes(), node.keeps_up()), (0, true), "all has left");
}
