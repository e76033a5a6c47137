//! A lane is told that the turn ends when the turn touched it, so that one message carries all that
//! the turn brought; and that a connection to a peer has ended.

use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Request, Timer};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Durability, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::wire::{Decoder, Encoder, Frame, Wire};
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use std::sync::Arc;

const LANE: LaneId = LaneId(7);

/// So many requests, of one turn.
#[derive(Debug)]
struct Batched(u64);

impl Wire for Batched {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&self.0);
    }

    fn decode(input: &Decoder) -> Result<Batched, WireError> {
        input.head().map(Batched)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Never;

impl Timer for Never {
    fn code(self) -> u32 {
        0
    }

    fn from_code(_code: u32) -> Option<Never> {
        Some(Never)
    }
}

/// Sends one message a turn to itself and a peer, and answers all requests when it has its own.
#[derive(Default)]
struct Batcher {
    asked: Vec<Ticket>,
    sent: Vec<Ticket>,
    is_back: bool,
}

impl Process for Batcher {
    type Message = Batched;
    type Timer = Never;
    const HEARS: &'static [Topic] = &[Topic::TurnEnd, Topic::Unlinked, Topic::Unread];

    fn start(&mut self, _recovery: Recovery, _cx: &mut Context<'_, Batcher>) {}

    fn on_message(&mut self, from: Incarnation, batch: Batched, cx: &mut Context<'_, Batcher>) {
        assert_eq!(batch.0 as usize, self.sent.len());
        self.is_back = from == cx.me;
    }

    fn on_request(&mut self, ticket: Ticket, _: Request, _: &mut Context<'_, Batcher>) {
        self.asked.push(ticket);
    }

    fn on_timer(&mut self, _: Never, _: &mut Context<'_, Batcher>) {}

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_, Batcher>) {
        if let News::Unlinked(peer) = news {
            self.asked.push(Ticket(peer.0));
            return;
        }
        if let News::Unread(since) = news {
            self.asked.push(Ticket(since.0));
            return;
        }
        assert!(matches!(news, News::TurnEnd), "{news:?}");
        if std::mem::take(&mut self.is_back) {
            for ticket in self.sent.drain(..) {
                // Nothing is stored.
                cx.fx.answer_early(ticket, Outcome::written());
            }
        }
        if !self.asked.is_empty() {
            self.sent.append(&mut self.asked);
            let to: Arc<[NodeId]> = [cx.me.node, NodeId(2)].into();
            // Nothing is promised.
            cx.fx.send_early(&to, Batched(self.sent.len() as u64));
        }
    }
}

#[derive(Default)]
struct Outside {
    frames: usize,
    answered: Vec<Ticket>,
}

impl Host for Outside {
    fn transmit(&mut self, _frame: &Frame) {
        self.frames += 1;
    }

    fn answer(&mut self, ticket: Ticket, _outcome: Outcome) {
        self.answered.push(ticket);
    }

    fn ring(&mut self, _ring: &Arc<Ring>) {}
    fn commit(&mut self, _batch: Batch) {}
}

#[test]
fn one_message_carries_all_of_a_turn() {
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let spec = LaneSpec {
        lane: LANE,
        durability: Durability::Sync,
        recovery: Recovery::Intact,
        process: Box::new(Hosted::new(Batcher::default())),
    };
    let mut node = Node::new(me, 1, Lsn(0), Box::new(Nothing), vec![spec]);
    let mut outside = Outside::default();
    node.begin(Time(0), WallTime(0));
    node.start(&mut outside);
    let ask = |ticket| {
        let operation = Operation::get("k".into());
        let request = Request { operation, deadline: Time(u64::MAX) };
        Input::Request { lane: LANE, ticket: Ticket(ticket), request }
    };
    let mut step = |at, mut inputs: Vec<Input>| {
        turn(&mut node, Time(at), WallTime(0), &mut inputs, &mut outside).expect("no disk");
        node.check();
        let Outside { frames, answered } = std::mem::take(&mut outside);
        (frames, answered)
    };
    let all = vec![Ticket(1), Ticket(2), Ticket(3)];
    assert_eq!(step(1, vec![ask(1), ask(2), ask(3)]), (1, all), "its own copy came back in it");
    assert_eq!(step(2, Vec::new()), (0, Vec::new()), "nothing touched it");
    let unlinked = Input::Unlinked(NodeId(2));
    assert_eq!(step(3, vec![unlinked]), (1, vec![Ticket(2)]), "news touch it");
    assert_eq!(step(9, vec![Input::Unread(Time(4))]), (1, vec![Ticket(4)]));
}
