//! Many instances of one protocol and nothing else: thousands of nodes, many times faster than in
//! real time.
//!
//! No node is around them: no disk, no clients, no catalog, but for what a measurement puts around
//! them itself ([`Around`]). Messages stay values, and one that goes to many is shared by all of
//! them; on request each goes through its bytes, as hosts do it, so that those are counted too.
//! Nothing here grows with the square of the nodes, and none is looked for: the high bits of a node
//! id are its index.

mod around;
#[cfg(test)]
mod tests;

use crate::delay::Delay;
use crate::queue::Queue;
pub use around::{Around, Nothing, Step};
use bytes::BytesMut;
use quorate_kernel::effects::{Effect, Effects, Note, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::{Context, Process, Recovery, Timer as _};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::wire::Body;
use std::rc::Rc;

/// Timers of one protocol, at most.
const TIMERS_MAX: usize = 8;
/// How far a node's index stands left in its id: ids are as long as those that are drawn in life.
const ID_SHIFT: u32 = 48;
/// How many nodes there can be, those that have crashed included: one less than indexes, as no id
/// is 0.
pub const NODES_MAX: usize = (1 << (u64::BITS - ID_SHIFT)) - 1;

/// What has just happened.
#[derive(Debug)]
pub enum Happened<T> {
    /// This node got a message.
    Message(usize),
    /// A timer of this node fired.
    Timer(usize),
    /// What was planned is due.
    Planned(T),
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

enum Event<M, T> {
    Message { from: u32, to: u32, message: Rc<M> },
    Timer { node: u32, code: u32 },
    Planned(T),
}

/// The nodes, and what is under way between them.
pub struct Light<P: Process, A: Around<P> = Nothing> {
    lane: LaneId,
    members: Vec<Member<P>>,
    /// What stands around them.
    pub around: A,
    queue: Queue<Event<P::Message, A::Plan>>,
    now: Time,
    delay: Delay,
    rng: Rng,
    fx: Option<Effects<P>>,
    arena: BytesMut,
    must_encode: bool,
    /// What nodes have said since this was last emptied: which, and when.
    pub said: Vec<(usize, Time, Said)>,
    /// What has happened.
    pub counts: Counts,
}

/// The id of a node. There are 2^16 − 1 at most.
#[must_use]
pub fn node_id(index: usize) -> NodeId {
    assert!(index < NODES_MAX, "so many indexes there are");
    let index = index as u64 + 1;
    NodeId(index << ID_SHIFT | mix(index) >> ID_SHIFT)
}

/// The index of a node.
#[must_use]
pub fn index_of(node: NodeId) -> usize {
    (node.0 >> ID_SHIFT) as usize - 1
}

fn who(index: usize) -> Incarnation {
    Incarnation { node: node_id(index), start: Start(1) }
}

impl<P: Process> Light<P>
where
    P::Message: Clone,
{
    /// No nodes yet, with nothing around them, and the time that messages take. With `must_encode`
    /// each message goes through its bytes.
    #[must_use]
    pub fn new(lane: LaneId, delay: Delay, rng: Rng, must_encode: bool) -> Light<P> {
        let mut light = Light::within(Nothing, lane, delay, rng);
        light.must_encode = must_encode;
        light
    }
}

impl<P: Process, A: Around<P>> Light<P, A>
where
    P::Message: Clone,
{
    /// No nodes yet, what stands around them, and the time that messages take.
    #[must_use]
    pub fn within(around: A, lane: LaneId, delay: Delay, rng: Rng) -> Light<P, A> {
        Light {
            lane,
            members: Vec::new(),
            around,
            queue: Queue::default(),
            now: Time(0),
            delay,
            rng,
            fx: Some(Effects::default()),
            arena: BytesMut::new(),
            must_encode: false,
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

    /// How many nodes were ever added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
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

    /// The protocol of a node, and what stands around it.
    pub fn look(&mut self, index: usize) -> (&P, &mut A) {
        (&self.members[index].process, &mut self.around)
    }

    /// Plans what is to happen.
    pub fn plan(&mut self, at: Time, plan: A::Plan) {
        self.queue.push(at.0, Event::Planned(plan));
    }

    /// The time of the world.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets this much time pass.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.next(end).is_some() {}
    }

    /// Lets the next thing happen, if anything does until then; otherwise it is that time.
    pub fn next(&mut self, end: Time) -> Option<Happened<A::Plan>> {
        while let Some((at, event)) = self.queue.pop_by(end.0) {
            self.now = Time(at);
            self.counts.events += 1;
            let happened = self.happen(event);
            if happened.is_some() {
                return happened;
            }
        }
        self.now = end;
        None
    }

    /// What an event comes to; nothing of a timer that was armed anew.
    fn happen(&mut self, event: Event<P::Message, A::Plan>) -> Option<Happened<A::Plan>> {
        match event {
            Event::Message { from, to, message } => {
                let message = Rc::unwrap_or_clone(message);
                self.step(to as usize, |process, cx| {
                    process.on_message(who(from as usize), message, cx);
                });
                Some(Happened::Message(to as usize))
            }
            Event::Timer { node, code } => {
                let deadline = &mut self.members[node as usize].timers[code as usize];
                deadline.take_if(|at| *at <= self.now)?;
                let timer = P::Timer::from_code(code).expect("it was armed");
                self.step(node as usize, |process, cx| process.on_timer(timer, cx));
                Some(Happened::Timer(node as usize))
            }
            Event::Planned(plan) => Some(Happened::Planned(plan)),
        }
    }

    /// One step of a node, if it is there and runs.
    pub fn step(&mut self, index: usize, handler: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let Some(member) = self.members.get_mut(index).filter(|member| member.is_up) else {
            return;
        };
        let mut fx = self.fx.take().expect("no step runs inside another");
        let begun = self.around.begin(index, self.now);
        let mut cx = Context {
            me: who(index),
            lane: self.lane,
            now: begun,
            wall: WallTime(0),
            rng: &mut member.rng,
            table: self.around.table(index),
            fx: &mut fx,
        };
        handler(&mut member.process, &mut cx);
        let step = Step { node: index, process: &member.process, begun, asked: fx.as_slice() };
        let at = self.around.end(step);
        for effect in fx.drain() {
            self.take(index, at, effect);
        }
        self.fx = Some(fx);
    }

    fn take(&mut self, from: usize, at: Time, effect: Effect<P::Message, P::Timer>) {
        match effect {
            Effect::Send { to, message, .. } => {
                let message = if self.must_encode { self.through_bytes(&message) } else { message };
                let message = Rc::new(message);
                match to {
                    Recipients::One(to) => self.transmit(from, at, to.node, &message),
                    Recipients::Group(nodes) => {
                        nodes.iter().for_each(|to| self.transmit(from, at, *to, &message));
                    }
                }
            }
            Effect::Arm { timer, at: deadline } => {
                let code = timer.code();
                self.members[from].timers[code as usize] = Some(deadline);
                self.queue.push(deadline.0, Event::Timer { node: from as u32, code });
            }
            Effect::Disarm { timer } => {
                self.members[from].timers[timer.code() as usize] = None;
            }
            Effect::Write { .. } => self.counts.writes += 1,
            Effect::Announce(note) => self.said.push((from, at, Said::Note(note))),
            Effect::Answer { ticket, outcome, .. } => {
                self.said.push((from, at, Said::Answer(ticket, outcome)));
            }
        }
    }

    fn through_bytes(&mut self, message: &P::Message) -> P::Message {
        let body = Body::encode(message, &mut self.arena).expect("it fits");
        self.counts.bytes += body.frame_bytes() as u64;
        body.decode().expect("what was encoded is decoded")
    }

    /// What a node says to itself takes no time, and is not lost.
    fn transmit(&mut self, from: usize, at: Time, to: NodeId, message: &Rc<P::Message>) {
        self.counts.messages += 1;
        let (to, message) = (index_of(to), Rc::clone(message));
        if from != to && self.around.loses(from, to, &message) {
            return;
        }
        let way = if from == to { 0 } else { self.delay.sample(&mut self.rng) };
        let (from, to) = (from as u32, to as u32);
        self.queue.push(at.0 + way, Event::Message { from, to, message });
    }
}
