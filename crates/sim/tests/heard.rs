//! What a host sends on any lane is a sign of life for the overlay's detector.

use bytes::BytesMut;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::Recovery;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::storage::{Batch, Durability};
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::{Body, Frame};
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use quorate_protocols::detector::{PERIOD, TIMEOUT_MIN, UNANSWERED_MAX};
use quorate_protocols::overlay;
use quorate_protocols::overlay::message::Message;
use quorate_store::memory::MemoryStore;
use std::sync::Arc;

const PEER: Incarnation = Incarnation { node: NodeId(2), start: Start(1) };

/// Nothing that is sent arrives anywhere, so no ping is ever answered.
#[derive(Default)]
struct Deaf(Arc<Ring>);

impl Host for Deaf {
    fn transmit(&mut self, _frame: &Frame) {}
    fn answer(&mut self, _ticket: Ticket, _outcome: Outcome) {}
    fn commit(&mut self, _batch: Batch) {}
    fn ring(&mut self, ring: &Arc<Ring>) {
        self.0 = Arc::clone(ring);
    }
}

fn ring_host(who: Incarnation) -> RingHost {
    RingHost {
        who,
        address: format!("host-{}:7000", who.node.0),
        zone: "".into(),
        standing: Standing::Up,
        tokens: vec![who.node.0],
        is_suspected: false,
        doors: Vec::new(),
    }
}

fn node(me: Incarnation) -> Node {
    let settings = overlay::Settings {
        address: String::from("host-1:7000"),
        zone: String::new(),
        doors: Vec::new(),
        tokens: vec![me.node.0],
        hosts: vec![ring_host(me), ring_host(PEER)],
        balance: None,
    };
    let spec = LaneSpec {
        lane: LaneId::OVERLAY,
        durability: Durability::Sync,
        recovery: Recovery::Intact,
        process: overlay::lane(settings),
    };
    Node::new(me, 1, Lsn(0), Box::new(MemoryStore::new()), vec![spec])
}

/// When the peer is first suspected if frames come from it at these times, on a lane that is not
/// the overlay's.
fn suspected(frames: impl Iterator<Item = Time>) -> Option<Span> {
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let (mut node, mut host) = (node(me), Deaf::default());
    let body = Body::encode(&Message::Digest { sum: 0 }, &mut BytesMut::new()).expect("it fits");
    let frame = Frame { lane: LaneId(7), source: PEER, target: me, body }.to_bytes();
    node.begin(Time(0), WallTime(0));
    node.start(&mut host);
    let mut frames = frames.peekable();
    for step in 0..300 {
        let now = Time(0) + Span::millis(100 * step);
        let mut inputs = Vec::new();
        while frames.next_if(|at| *at <= now).is_some() {
            inputs.push(Input::Frame(frame.clone()));
        }
        turn(&mut node, now, WallTime(0), &mut inputs, &mut host).expect("the store works");
        if host.0.is_suspected(PEER.node) {
            return Some(now - Time(0));
        }
    }
    None
}

#[test]
fn a_host_whose_answers_are_late_is_not_suspected_while_it_sends() {
    let silent = suspected(core::iter::empty()).expect("silence is suspected");
    assert!(silent.0 <= (PERIOD.0 + TIMEOUT_MIN.0 + 2 * PERIOD.0));
    let until = Span::secs(4);
    let every = |step: u64| Time(0) + Span::millis(300 * step);
    let sends_a_while = (0..).map(every).take_while(|at| *at - Time(0) <= until);
    let later = suspected(sends_a_while).expect("it fell silent");
    assert!(later.0 >= until.0 + TIMEOUT_MIN.0, "{later:?}");
    let never_answers = suspected((0..100).map(every)).expect("it may not hear");
    assert!(never_answers.0 >= UNANSWERED_MAX.0 + TIMEOUT_MIN.0, "{never_answers:?}");
    assert!(never_answers.0 <= UNANSWERED_MAX.0 + silent.0 + PERIOD.0, "{never_answers:?}");
}
