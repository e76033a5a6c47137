//! A process with its types erased: bytes, codes and shared words in, the same out.

use crate::effects::{Effect, Effects, Note, Recipients, Release};
use crate::error::WireError;
use crate::ids::{Incarnation, LaneId, Ticket};
use crate::news::{News, Topic};
use crate::operation::{Control, Outcome};
use crate::part::Part;
use crate::process::{Context, Inspect, Process, Recovery, Request, Table, Timer};
use crate::rng::Rng;
use crate::storage::{Class, Durability, ValueHead};
use crate::time::{Time, WallTime};
use crate::watch::Watch;
use crate::wire::{Body, Decoder};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::fmt::{self, Debug, Write};

/// How much room is taken at a time for the heads of messages.
const ARENA_BYTES: usize = 32 * 1024;

/// What a lane asked for in one call, in order.
pub enum Raised {
    /// Write or delete a key of the lane.
    Write {
        /// Protocol state or data.
        class: Class,
        /// The key within the class.
        key: Bytes,
        /// The value, or `None` to delete.
        value: Option<Bytes>,
    },
    /// Send a message to other nodes; a group's copy to the sender itself is raised as `Local`.
    Frame {
        /// Who shall receive it.
        to: Recipients,
        /// The encoded message.
        body: Body,
        /// When it may leave.
        release: Release,
    },
    /// Deliver a message the lane sent to itself: hand `slot` to [`Lane::on_local`].
    Local {
        /// Which of the lane's messages to itself.
        slot: u32,
        /// When it may be delivered.
        release: Release,
    },
    /// Answer a client.
    Answer {
        /// Which request.
        ticket: Ticket,
        /// What became of it.
        outcome: Outcome,
        /// When it may leave.
        release: Release,
    },
    /// Set (`Some`) or take back (`None`) the deadline of a timer.
    Timer {
        /// Which timer.
        code: u32,
        /// The deadline.
        at: Option<Time>,
    },
    /// Tell the node something.
    Note(Note),
    /// A message was too long to be sent: its name, and how long it is. It is as if it were lost.
    Unsent(String),
}

/// One lane to be put on a node.
pub struct LaneSpec {
    /// Its number, the same on every node.
    pub lane: LaneId,
    /// How durable its data is.
    pub durability: Durability,
    /// What the directory still knows of it.
    pub recovery: Recovery,
    /// The protocol.
    pub process: Box<dyn Lane>,
}

/// What the node lends a lane for one call.
pub struct Env<'a> {
    /// Who this node is.
    pub me: Incarnation,
    /// Which lane is called.
    pub lane: LaneId,
    /// Monotonic time.
    pub now: Time,
    /// The wall clock.
    pub wall: WallTime,
    /// The lane's stream of randomness.
    pub rng: &'a mut Rng,
    /// The lane's bytes, and where its effects go.
    pub out: &'a mut dyn Outlet,
}

/// What a lane reads in one call, and where what it asks for goes.
pub trait Outlet: Table {
    /// Takes one thing after the other, in the order in which the lane asked for them.
    fn take(&mut self, raised: Raised);
}

/// Keeps what a lane asks for, for whoever calls it on its own.
pub struct Kept<'a> {
    /// The lane's bytes.
    pub table: &'a dyn Table,
    /// What it has asked for.
    pub raised: Vec<Raised>,
}

impl Table for Kept<'_> {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        self.table.get(class, key)
    }

    fn head(&self, key: &Bytes) -> Option<ValueHead> {
        self.table.head(key)
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        self.table.scan(class, from, each);
    }
}

impl Outlet for Kept<'_> {
    fn take(&mut self, raised: Raised) {
        self.raised.push(raised);
    }
}

/// A process as the node sees it.
pub trait Lane {
    /// Runs once, before anything else.
    fn start(&mut self, recovery: Recovery, env: &mut Env<'_>);

    /// A message of a peer.
    ///
    /// # Errors
    /// The bytes are no message of this lane; nothing was changed.
    fn on_frame(
        &mut self,
        from: Incarnation,
        message: &Decoder,
        env: &mut Env<'_>,
    ) -> Result<(), WireError>;

    /// A message to itself that the gate let through.
    fn on_local(&mut self, slot: u32, env: &mut Env<'_>);

    /// A client asks.
    fn on_request(&mut self, ticket: Ticket, request: Request, env: &mut Env<'_>);

    /// An operator asks.
    fn on_control(&mut self, ticket: Ticket, control: Control, deadline: Time, env: &mut Env<'_>);

    /// A client follows something.
    fn on_watch(&mut self, ticket: Ticket, watch: Watch, env: &mut Env<'_>);

    /// A watch has ended on the client's side.
    fn on_unwatch(&mut self, ticket: Ticket, env: &mut Env<'_>);

    /// A timer fired.
    fn on_timer(&mut self, code: u32, env: &mut Env<'_>);

    /// Whether it wants to be told of a topic.
    fn hears(&self, topic: Topic) -> bool;

    /// The node has news of a topic that it hears.
    fn on_news(&mut self, news: News<'_>, env: &mut Env<'_>);

    /// The parts of its data that this node knows. It can serve clients if it owes nothing.
    fn parts(&self) -> Vec<Part>;

    /// Shows its state, its parts not among it.
    fn inspect(&self, into: &mut dyn Inspect);

    /// Asserts everything that must hold between two inputs.
    fn check(&self);
}

/// The one adapter: decode, call the process, encode what it asked for. Engines hand out
/// `Box<dyn Lane>` and nothing else, so no caller ever names their types.
pub struct Hosted<P: Process> {
    process: P,
    fx: Effects<P>,
    locals: Vec<Option<P::Message>>,
    free: Vec<u32>,
    arena: BytesMut,
}

impl<P: Process> Hosted<P> {
    /// Hosts a process.
    pub fn new(process: P) -> Hosted<P> {
        let fx = Effects::default();
        Hosted { process, fx, locals: Vec::new(), free: Vec::new(), arena: BytesMut::new() }
    }

    fn call(&mut self, env: &mut Env<'_>, handler: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let mut cx = Context {
            me: env.me,
            lane: env.lane,
            now: env.now,
            wall: env.wall,
            rng: env.rng,
            table: &*env.out,
            fx: &mut self.fx,
        };
        handler(&mut self.process, &mut cx);
        let mut list = core::mem::take(&mut self.fx.list);
        for effect in list.drain(..) {
            self.raise(effect, env);
        }
        self.fx.list = list;
    }

    fn raise(&mut self, effect: Effect<P::Message, P::Timer>, env: &mut Env<'_>) {
        let raised = match effect {
            Effect::Write { class, key, value } => Raised::Write { class, key, value },
            Effect::Send { to, message, release } => return self.send(to, message, release, env),
            Effect::Answer { ticket, outcome, release } => {
                Raised::Answer { ticket, outcome, release }
            }
            Effect::Arm { timer, at } => Raised::Timer { code: timer.code(), at: Some(at) },
            Effect::Disarm { timer } => Raised::Timer { code: timer.code(), at: None },
            Effect::Announce(note) => Raised::Note(note),
        };
        env.out.take(raised);
    }

    fn send(&mut self, to: Recipients, message: P::Message, release: Release, env: &mut Env<'_>) {
        let (to_self, to_others) = match &to {
            Recipients::One(one) => (one.node == env.me.node, one.node != env.me.node),
            Recipients::Group(nodes) => {
                let to_self = nodes.contains(&env.me.node);
                (to_self, nodes.len() > usize::from(to_self))
            }
        };
        if to_others {
            if self.arena.capacity() < 1024 {
                self.arena.reserve(ARENA_BYTES);
            }
            env.out.take(match Body::encode(&message, &mut self.arena) {
                Ok(body) => Raised::Frame { to, body, release: release.clone() },
                // Who waits for an answer asks again or gives up, as after a loss.
                Err(why) => Raised::Unsent(format!("{}: {why}", name_of(&message))),
            });
        }
        if to_self {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.locals.push(None);
                u32::try_from(self.locals.len() - 1).expect("fewer than 2^32 local messages wait")
            });
            self.locals[slot as usize] = Some(message);
            env.out.take(Raised::Local { slot, release });
        }
    }
}

/// The name of a message: the first word of what it shows of itself. It may be very long.
fn name_of(message: &impl Debug) -> String {
    struct Name(String);
    impl fmt::Write for Name {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let word = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or("");
            self.0.push_str(word);
            // The rest is not asked for.
            if word.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
        }
    }
    let mut name = Name(String::new());
    // It fails where the name ends.
    let _ = write!(name, "{message:?}");
    name.0
}

impl<P: Process> Lane for Hosted<P> {
    fn start(&mut self, recovery: Recovery, env: &mut Env<'_>) {
        self.call(env, |process, cx| process.start(recovery, cx));
    }

    fn on_frame(
        &mut self,
        from: Incarnation,
        message: &Decoder,
        env: &mut Env<'_>,
    ) -> Result<(), WireError> {
        let message = message.message()?;
        self.call(env, |process, cx| process.on_message(from, message, cx));
        Ok(())
    }

    fn on_local(&mut self, slot: u32, env: &mut Env<'_>) {
        let message = self.locals[slot as usize].take().expect("a slot is delivered once");
        self.free.push(slot);
        let me = env.me;
        self.call(env, |process, cx| process.on_message(me, message, cx));
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, env: &mut Env<'_>) {
        self.call(env, |process, cx| process.on_request(ticket, request, cx));
    }

    fn on_control(&mut self, ticket: Ticket, control: Control, deadline: Time, env: &mut Env<'_>) {
        self.call(env, |process, cx| process.on_control(ticket, control, deadline, cx));
    }

    fn on_watch(&mut self, ticket: Ticket, watch: Watch, env: &mut Env<'_>) {
        self.call(env, |process, cx| process.on_watch(ticket, watch, cx));
    }

    fn on_unwatch(&mut self, ticket: Ticket, env: &mut Env<'_>) {
        self.call(env, |process, cx| process.on_unwatch(ticket, cx));
    }

    fn on_timer(&mut self, code: u32, env: &mut Env<'_>) {
        let timer = P::Timer::from_code(code).expect("a timer that was armed has a code");
        self.call(env, |process, cx| process.on_timer(timer, cx));
    }

    fn hears(&self, topic: Topic) -> bool {
        P::HEARS.contains(&topic)
    }

    fn on_news(&mut self, news: News<'_>, env: &mut Env<'_>) {
        self.call(env, |process, cx| process.on_news(news, cx));
    }

    fn parts(&self) -> Vec<Part> {
        self.process.parts()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.process.inspect(into);
    }

    fn check(&self) {
        self.process.check();
    }
}
