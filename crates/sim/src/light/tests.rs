use super::*;
use crate::delay::Distribution;
use quorate_kernel::error::WireError;
use quorate_kernel::process::{Request, Timer};
use quorate_kernel::wire::{Decoder, Encoder, Wire};

const NODES: usize = 10_000;
const FANOUT: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Round;

impl Timer for Round {
    fn code(self) -> u32 {
        0
    }

    fn from_code(_: u32) -> Option<Round> {
        Some(Round)
    }
}

#[derive(Clone, Debug)]
struct Rumour;

impl Wire for Rumour {
    fn encode(&self, _out: &mut Encoder<'_>) {}

    fn decode(_input: &Decoder) -> Result<Rumour, WireError> {
        Ok(Rumour)
    }
}

/// Tells what it has heard to a few, ten times.
#[derive(Default)]
struct Gossip {
    has_heard: bool,
    rounds: u32,
}

impl Process for Gossip {
    type Message = Rumour;
    type Timer = Round;

    fn start(&mut self, _: Recovery, _: &mut Context<'_, Gossip>) {}

    fn on_message(&mut self, _: Incarnation, _: Rumour, cx: &mut Context<'_, Gossip>) {
        if !std::mem::replace(&mut self.has_heard, true) {
            cx.fx.arm(Round, cx.now + Span::millis(100));
        }
    }

    fn on_request(&mut self, _: Ticket, _: Request, _: &mut Context<'_, Gossip>) {}

    fn on_timer(&mut self, _: Round, cx: &mut Context<'_, Gossip>) {
        let mut other = || node_id(cx.rng.below(NODES as u64) as usize);
        let others: std::sync::Arc<[NodeId]> = (0..FANOUT).map(|_| other()).collect();
        cx.fx.send_early(&others, Rumour);
        self.rounds += 1;
        if self.rounds < 10 {
            cx.fx.arm(Round, cx.now + Span::millis(100));
        }
    }
}

#[test]
fn ten_thousand_nodes_hear_a_rumour() {
    let delay = Delay::new(&Distribution::Exponential { mean_us: 1000 });
    let mut light = Light::new(LaneId(1), delay, Rng::new(7), false);
    for _ in 0..NODES {
        light.add(Gossip::default());
    }
    light.crash(NODES - 1);
    light.step(0, |process, cx| process.on_message(who(1), Rumour, cx));
    light.run(Span::secs(4));
    let deaf = (0..NODES).filter(|node| !light.process(*node).has_heard).count();
    assert_eq!(deaf, 1, "all but the one that is gone");
    assert_eq!(light.counts.messages, (NODES as u64 - 1) * 10 * FANOUT as u64);
}

/// A network that loses everything.
struct Void;

impl Around<Gossip> for Void {
    type Plan = ();

    fn end(&mut self, step: Step<'_, Gossip>) -> Time {
        step.begun
    }

    fn loses(&mut self, _: usize, _: usize, _: &Rumour) -> bool {
        true
    }
}

#[test]
fn what_a_node_says_to_itself_is_not_lost() {
    let delay = Delay::new(&Distribution::Constant { us: 1000 });
    let mut light = Light::within(Void, LaneId(1), delay, Rng::new(7));
    for _ in 0..2 {
        light.add(Gossip::default());
    }
    light.step(0, |_, cx| cx.fx.send_early(&[node_id(0), node_id(1)].into(), Rumour));
    light.run(Span::millis(50));
    assert!(light.process(0).has_heard && !light.process(1).has_heard);
    assert_eq!((light.len(), light.is_empty()), (2, false));
}
