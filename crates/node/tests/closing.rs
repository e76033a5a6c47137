//! A node that is told that its cluster shuts down begins nothing more for clients, whatever the
//! engine of the keyspace that they ask.

mod common;

use common::{Never, Silence};
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::{Context, Process, Recovery, Request};
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::storage::{Batch, Durability, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::wire::Frame;
use quorate_node::host::Host;
use quorate_node::node::Node;
use std::sync::Arc;

/// A keyspace's lane that knows of no ring and does what it is asked; and the overlay, which says
/// by a key how far a shutdown is.
struct Willing;

impl Process for Willing {
    type Message = Silence;
    type Timer = Never;

    fn start(&mut self, _: Recovery, _: &mut Context<'_, Willing>) {}
    fn on_message(&mut self, _: Incarnation, _: Silence, _: &mut Context<'_, Willing>) {}
    fn on_timer(&mut self, _: Never, _: &mut Context<'_, Willing>) {}

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Willing>) {
        if cx.lane == LaneId::OVERLAY {
            let is_finishing = request.operation.key().is_some_and(|key| &key[..] == b"finish");
            let mut ring = Ring::new(1, Vec::new());
            ring.closing = if is_finishing { Closing::Finishing } else { Closing::No };
            cx.fx.announce_ring(Arc::new(ring));
        }
        cx.fx.answer(ticket, Outcome::written());
    }
}

#[derive(Default)]
struct Outside(Vec<Outcome>);

impl Host for Outside {
    fn transmit(&mut self, _frame: &Frame) {}
    fn answer(&mut self, _ticket: Ticket, outcome: Outcome) {
        self.0.push(outcome);
    }
    fn commit(&mut self, _batch: Batch) {}
    fn ring(&mut self, _ring: &Arc<Ring>) {}
}

#[test]
fn no_keyspace_begins_anything_while_the_cluster_shuts_down() {
    let lanes = [LaneId::OVERLAY, LaneId::KEYSPACES].map(|lane| {
        let (process, recovery) = (Box::new(Hosted::new(Willing)), Recovery::Intact);
        LaneSpec { lane, durability: Durability::Sync, recovery, process }
    });
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let mut node = Node::new(me, 7, Lsn(0), Box::new(Nothing), Vec::from(lanes));
    let mut ask = |lane: LaneId, what: &'static str| {
        let mut outside = Outside::default();
        node.begin(Time(0), WallTime(0));
        let operation = Operation::put(what.into(), what.into());
        node.request(lane, Ticket(1), Request { operation, deadline: Time(9) }, &mut outside);
        node.end(&mut outside).expect("no disk");
        outside.0.pop()
    };
    assert_eq!(ask(LaneId::KEYSPACES, "k"), Some(Outcome::written()));
    assert_eq!(ask(LaneId::OVERLAY, "go on"), Some(Outcome::written()));
    assert_eq!(ask(LaneId::KEYSPACES, "k"), Some(Outcome::written()));
    assert_eq!(ask(LaneId::OVERLAY, "finish"), Some(Outcome::written()));
    assert_eq!(ask(LaneId::KEYSPACES, "k"), Some(Outcome::Refused(Refusal::Stopping)));
}
