//! Many instances of one protocol and nothing else: thousands of nodes, many times faster than in
//! real time.
//!
//! No node is around them: no disk, no clients, no catalog. Messages stay values, and one that goes
//! to many is shared by all of them; on request each goes through its bytes, as hosts do it, so
//! that those are counted too. Nothing here grows with the square of the nodes, and none is looked
//! for: the high half of a node id is its index.

use crate::delay::Delay;
use crate::queue::Queue;
use bytes::{Bytes, BytesMut};
use quorate_kernel::effects::{Effect, Effects, Note, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::{Context, Process, Recovery, Table, Timer as _};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::Body;
use std::rc::Rc;

/// Timers of one protocol, at most.
const TIMERS_MAX: usize = 8;
/// How far a node's index stands left in its id.
const ID_SHIFT: u32 = 32;

/// Nothing is ever read: nobody restarts.
struct NoTable;

impl Table for NoTable {
    fn get(&self, _class: Class, _key: &Bytes) -> Option<Bytes> {
        None
    }

    fn scan(&self, _class: Class, _from: &[u8], _each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {}
}

/// What nodes say to those around them.
#[derive(Debug)]
pub enum Said {
    /// To the other lanes of the node.
    Note(Note),
    /// To who asked.
    Answer(Ticket, Outcome),
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Messages, one for each that they go to.
    pub messages: u64,
    /// Bytes of distinct messages, if those are encoded.
    pub bytes: u64,
    /// What nodes were given: messages and timers.
    pub events: u64,
    /// What they would have stored.
    pub writes: u64,
}

/// A node.
struct Member<P> {
    process: P,
    rng: Rng,
    /// The deadline of each timer, by its code.
    timers: [Option<Time>; TIMERS_MAX],
    is_up: bool,
}

enum Event<M> {
    Message { from: u32, to: u32, message: Rc<M> },
    Timer { node: u32, code: u32 },
}

/// The nodes, and what is under way between them.
pub struct Light<P: Process> {
    lane: LaneId,
    members: Vec<Member<P>>,
    queue: Queue<Event<P::Message>>,
    now: Time,
    delay: Delay,
    rng: Rng,
    fx: Option<Effects<P>>,
    arena: BytesMut,
    must_encode: bool,
    /// What nodes have said since this was last emptied, and which.
    pub said: Vec<(usize, Said)>,
    /// What has happened.
    pub counts: Counts,
}

/// The id of a node.
#[must_use]
pub fn node_id(index: usize) -> NodeId {
    let index = index as u64 + 1;
    NodeId(index << ID_SHIFT | mix(index) >> ID_SHIFT)
}

fn index_of(node: NodeId) -> u32 {
    (node.0 >> ID_SHIFT) as u32 - 1
}

fn who(index: usize) -> Incarnation {
    Incarnation { node: node_id(index), start: Start(1) }
}

impl<P: Process> Light<P>
where
    P::Message: Clone,
{
    /// No nodes yet, and the time that messages take. With `must_encode` each message goes through
    /// its bytes.
    #[must_use]
    pub fn new(lane: LaneId, delay: Delay, rng: Rng, must_encode: bool) -> Light<P> {
        Light {
            lane,
            members: Vec::new(),
            queue: Queue::default(),
            now: Time(0),
            delay,
            rng,
            fx: Some(Effects::default()),
            arena: BytesMut::new(),
            must_encode,
            said: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Adds a node, which starts at once.
    pub fn add(&mut self, process: P) -> usize {
        let index = self.members.len();
        let rng = self.rng.fork(index as u64);
        self.members.push(Member { process, rng, timers: [None; TIMERS_MAX], is_up: true });
        self.step(index, |process, cx| process.start(Recovery::Intact, cx));
        index
    }

    /// Ends a node without a word.
    pub fn crash(&mut self, index: usize) {
        self.members[index].is_up = false;
    }

    /// Whether a node runs.
    #[must_use]
    pub fn is_up(&self, index: usize) -> bool {
        self.members[index].is_up
    }

    /// The protocol of a node.
    #[must_use]
    pub fn process(&self, index: usize) -> &P {
        &self.members[index].process
    }

    /// The time of the world.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets this much time pass.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some((at, event)) = self.queue.pop_by(end.0) {
            self.now = Time(at);
            self.counts.events += 1;
            self.happen(event);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event<P::Message>) {
        match event {
            Event::Message { from, to, message } => {
                let message = Rc::unwrap_or_clone(message);
                self.step(to as usize, |process, cx| {
                    process.on_message(who(from as usize), message, cx);
                });
            }
            Event::Timer { node, code } => {
                let deadline = &mut self.members[node as usize].timers[code as usize];
                if deadline.is_some_and(|at| at <= self.now) {
                    *deadline = None;
                    let timer = P::Timer::from_code(code).expect("it was armed");
                    self.step(node as usize, |process, cx| process.on_timer(timer, cx));
                }
            }
        }
    }

    /// One step of a node, if it runs.
    pub fn step(&mut self, index: usize, handler: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let member = &mut self.members[index];
        if !member.is_up {
            return;
        }
        let mut fx = self.fx.take().expect("no step runs inside another");
        let mut cx = Context {
            me: who(index),
            lane: self.lane,
            now: self.now,
            wall: WallTime(0),
            rng: &mut member.rng,
            table: &NoTable,
            fx: &mut fx,
        };
        handler(&mut member.process, &mut cx);
        for effect in fx.drain() {
            self.take(index, effect);
        }
        self.fx = Some(fx);
    }

    fn take(&mut self, from: usize, effect: Effect<P::Message, P::Timer>) {
        match effect {
            Effect::Send { to, message, .. } => {
                let message = if self.must_encode { self.through_bytes(&message) } else { message };
                let message = Rc::new(message);
                match to {
                    Recipients::One(to) => self.transmit(from, to.node, &message),
                    Recipients::Group(nodes) => {
                        nodes.iter().for_each(|to| self.transmit(from, *to, &message));
                    }
                }
            }
            Effect::Arm { timer, at } => {
                let code = timer.code();
                self.members[from].timers[code as usize] = Some(at);
                self.queue.push(at.0, Event::Timer { node: from as u32, code });
            }
            Effect::Disarm { timer } => {
                self.members[from].timers[timer.code() as usize] = None;
            }
            Effect::Write { .. } => self.counts.writes += 1,
            Effect::Announce(note) => self.said.push((from, Said::Note(note))),
            Effect::Answer { ticket, outcome, .. } => {
                self.said.push((from, Said::Answer(ticket, outcome)));
            }
        }
    }

    fn through_bytes(&mut self, message: &P::Message) -> P::Message {
        let body = Body::encode(message, &mut self.arena).expect("it fits");
        self.counts.bytes += body.frame_bytes() as u64;
        body.decode().expect("what was encoded is decoded")
    }

    fn transmit(&mut self, from: usize, to: NodeId, message: &Rc<P::Message>) {
        self.counts.messages += 1;
        let at = self.now + Span(self.delay.sample(&mut self.rng));
        let (from, to, message) = (from as u32, index_of(to), Rc::clone(message));
        self.queue.push(at.0, Event::Message { from, to, message });
    }
}

#[cfg(test)]
mod tests {
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
}
