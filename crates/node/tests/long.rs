//! Messages with long heads: they arrive whole where their kind may have them, and are otherwise
//! counted with their names and not sent; nothing ends because of one.

use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::limits::{HEADER_BYTES_MAX, HEADER_BYTES_USUAL};
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

/// A list of bytes in a head that may have so many.
#[derive(Debug)]
enum Message<const MOST: usize> {
    List(Vec<u8>),
}

impl<const MOST: usize> Wire for Message<MOST> {
    const HEAD_BYTES_MAX: usize = MOST;

    fn encode(&self, out: &mut Encoder<'_>) {
        let Message::List(list) = self;
        list.iter().for_each(|byte| out.head(byte));
    }

    fn decode(input: &Decoder) -> Result<Message<MOST>, WireError> {
        input.items().collect::<Result<_, _>>().map(Message::List)
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

/// Sends a list that is as long as the value that it is asked to put, and answers with the length
/// of one that arrives.
struct Lister<const MOST: usize>;

impl<const MOST: usize> Process for Lister<MOST> {
    type Message = Message<MOST>;
    type Timer = Never;

    fn start(&mut self, _recovery: Recovery, _cx: &mut Context<'_, Self>) {}

    fn on_message(&mut self, _: Incarnation, list: Message<MOST>, cx: &mut Context<'_, Self>) {
        let Message::List(list) = list;
        cx.fx.answer(Ticket(list.len() as u64), Outcome::written());
    }

    fn on_request(&mut self, _: Ticket, request: Request, cx: &mut Context<'_, Self>) {
        let Operation::Put { value, .. } = request.operation else { panic!("nothing else") };
        cx.fx.send(NodeId(2), Message::List(value.to_vec()));
    }

    fn on_timer(&mut self, _: Never, _: &mut Context<'_, Self>) {}
}

#[derive(Default)]
struct Outside {
    frames: Vec<Frame>,
    answered: Vec<Ticket>,
}

impl Host for Outside {
    fn transmit(&mut self, frame: &Frame) {
        self.frames.push(frame.clone());
    }

    fn answer(&mut self, ticket: Ticket, _outcome: Outcome) {
        self.answered.push(ticket);
    }

    fn ring(&mut self, _ring: &Arc<Ring>) {}
    fn commit(&mut self, _batch: Batch) {}
}

fn node<const MOST: usize>(id: u64) -> Node {
    let spec = LaneSpec {
        lane: LANE,
        durability: Durability::Sync,
        recovery: Recovery::Intact,
        process: Box::new(Hosted::new(Lister::<MOST>)),
    };
    let me = Incarnation { node: NodeId(id), start: Start(1) };
    Node::new(me, 1, Lsn(0), Box::new(Nothing), vec![spec])
}

fn step(node: &mut Node, input: Input) -> Outside {
    let mut outside = Outside::default();
    turn(node, Time(1), WallTime(0), &mut vec![input], &mut outside).expect("no disk");
    outside
}

fn put(length: usize) -> Input {
    let operation = Operation::put("k".into(), vec![7; length].into());
    let request = Request { operation, deadline: Time(u64::MAX) };
    Input::Request { lane: LANE, ticket: Ticket(0), request }
}

#[test]
fn a_long_head_arrives_whole_where_its_kind_may_have_it() {
    let (mut from, mut to) = (node::<HEADER_BYTES_MAX>(1), node::<HEADER_BYTES_MAX>(2));
    for length in [1, HEADER_BYTES_USUAL + 1, HEADER_BYTES_MAX] {
        let sent = step(&mut from, put(length)).frames.remove(0).to_bytes();
        let told = step(&mut to, Input::Frame(sent)).answered;
        assert_eq!(told, [Ticket(length as u64)]);
    }
    from.check();
    assert_eq!(to.dropped(), from.dropped(), "nothing was");
}

#[test]
fn what_is_too_long_is_counted_by_its_name_and_not_sent() {
    let mut from = node::<HEADER_BYTES_USUAL>(1);
    assert!(step(&mut from, put(HEADER_BYTES_USUAL + 1)).frames.is_empty());
    let dropped = from.dropped();
    let why = "List: head of a message of 65536 bytes is over the limit of 65535";
    assert_eq!((dropped.unsent, dropped.unsent_last.as_deref()), (1, Some(why)));
    assert_eq!(step(&mut from, put(HEADER_BYTES_USUAL)).frames.len(), 1, "it goes on");
}

#[test]
fn a_peer_cannot_send_a_lane_more_than_its_kind_may_have() {
    let (mut from, mut to) = (node::<HEADER_BYTES_MAX>(1), node::<HEADER_BYTES_USUAL>(2));
    let sent = step(&mut from, put(HEADER_BYTES_USUAL + 1)).frames.remove(0).to_bytes();
    assert!(step(&mut to, Input::Frame(sent)).answered.is_empty());
    assert_eq!(to.dropped().malformed, 1);
}
