//! An answer over several keys leaves when the newest write of each of them is durable, and waits
//! for no other.

mod common;

use common::{Never, Silence};
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Request};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Durability, Durable, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::transaction::Item;
use quorate_kernel::wire::Frame;
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use std::sync::Arc;

const LANE: LaneId = LaneId(7);

/// Stores what is put, and answers transactions when their keys are durable.
struct Store;

impl Process for Store {
    type Message = Silence;
    type Timer = Never;

    fn start(&mut self, _recovery: Recovery, _cx: &mut Context<'_, Store>) {}

    fn on_message(&mut self, _: Incarnation, _: Silence, _: &mut Context<'_, Store>) {}

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Store>) {
        let keys = request.operation.keys().cloned().collect();
        if let Operation::Put { key, value, .. } = request.operation {
            cx.fx.put(key, value);
        } else {
            cx.fx.answer_after_keys(ticket, Outcome::Transacted(Vec::new()), keys);
        }
    }

    fn on_timer(&mut self, _: Never, _: &mut Context<'_, Store>) {}
}

#[derive(Default)]
struct Outside(Vec<u64>);

impl Host for Outside {
    fn transmit(&mut self, _frame: &Frame) {}

    fn answer(&mut self, ticket: Ticket, _outcome: Outcome) {
        self.0.push(ticket.0);
    }

    fn ring(&mut self, _ring: &Arc<Ring>) {}
    fn commit(&mut self, _batch: Batch) {}
}

fn ask(ticket: u64, operation: Operation) -> Input {
    let request = Request { operation, deadline: Time(u64::MAX) };
    Input::Request { lane: LANE, ticket: Ticket(ticket), request }
}

fn put(key: &'static str) -> Input {
    ask(0, Operation::put(key.into(), "v".into()))
}

fn read(ticket: u64, keys: &[&'static str]) -> Input {
    let items = keys.iter().map(|key| Item::Get { key: (*key).into() }).collect();
    ask(ticket, Operation::Transact { items, name: None })
}

#[test]
fn an_answer_over_several_keys_waits_for_each_of_them_and_no_other() {
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let spec = LaneSpec {
        lane: LANE,
        durability: Durability::Sync,
        recovery: Recovery::Intact,
        process: Box::new(Hosted::new(Store)),
    };
    let mut node = Node::new(me, 1, Lsn(0), Box::new(Nothing), vec![spec]);
    let mut outside = Outside::default();
    node.begin(Time(0), WallTime(0));
    node.start(&mut outside);
    let mut at = 0;
    let mut step = |mut inputs: Vec<Input>| {
        at += 1;
        turn(&mut node, Time(at), WallTime(0), &mut inputs, &mut outside).expect("no disk");
        std::mem::take(&mut outside.0)
    };
    let synced = |lsn| Input::Durable(Durable { written: Lsn(lsn), synced: Lsn(lsn) });
    let none: [u64; 0] = [];
    assert_eq!(step(vec![put("a")]), none);
    assert_eq!(step(vec![put("b")]), none);
    assert_eq!(step(vec![put("c")]), none);
    let all = [read(1, &["a", "x"]), read(2, &["b", "a"]), read(3, &["c", "a"]), read(4, &["x"])];
    assert_eq!(step(all.into()), [4], "nobody writes it");
    assert_eq!(step(vec![synced(1)]), [1]);
    assert_eq!(step(vec![synced(2)]), [2], "b is its newest");
    assert_eq!(step(vec![synced(3)]), [3], "the order of its keys does not matter");
}
