//! One connection: bytes in, operations out, outcomes in, bytes out.
//!
//! It begins with one frame that asks for a session, or with a four-letter word. The session is a
//! watch of the engine, which says which session it is and then what happens to what it follows.
//! From then on every request is an operation, and all that may be are in hand at once.
//!
//! What a client cannot be told in a code it is told by the end of its connection: the outcome of a
//! request is not known, the service cannot be reached, the session is at another host. What was
//! answered before is written, and nothing of what was asked behind it is: its client knows that it
//! does not know. A session outlives its connection until it has been silent for too long.

mod outcomes;
mod seam;

use super::connections::Connection;
use super::shared::{Shared, tree};
use super::words;
use crate::door::{Connected, Requests};
use crate::host::Serving;
use crate::zookeeper::answers::follows::Follows;
use crate::zookeeper::answers::form::Form;
use crate::zookeeper::answers::queue::{Queue, Waiting};
use crate::zookeeper::requests::connect::{self, ConnectRequest};
use crate::zookeeper::requests::request::{Plan, Request};
use crate::zookeeper::wire::codes::Code;
use crate::zookeeper::wire::jute::Frame;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use quorate_kernel::ids::LaneId;
use quorate_kernel::mutant;
use quorate_kernel::operation::Operation;
use quorate_kernel::rope::Rope;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Act, Ask, SessionId, Told, Zxid};
use quorate_kernel::watch::Watch;

/// The number of the watch that the session is; those of requests are lower.
const SESSION: u32 = u32::MAX;
/// The number of the ping for a client that is not read.
const UNREAD: u32 = u32::MAX - 1;
/// How long an answer to a read is taken to be before any has come.
const ANSWER_BYTES_EXPECTED: usize = 16 * 1024;

/// How far a connection is.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing has come.
    Fresh,
    /// A session was asked for.
    Connecting { lane: LaneId, knows_read_only: bool },
    /// There is one.
    Open { lane: LaneId, session: SessionId },
    /// There is none, and none will be.
    Over,
}

/// One connection of a client.
pub(super) struct Session {
    shared: Rc<Shared>,
    serving: Arc<Serving>,
    connection: Rc<Connection>,
    state: State,
    queue: Queue,
    /// How long the next answer to a read is taken to be.
    expected: usize,
    output: Rope,
    /// How many bytes of input were left when no whole frame was among them.
    leftover: usize,
    /// A ping for a client that is not read is in hand.
    is_kept: bool,
    /// Nothing more is read.
    is_draining: bool,
    /// The client has asked that its session end.
    is_leaving: bool,
}

impl Session {
    /// A new connection.
    pub fn new(connected: Connected, shared: Rc<Shared>, serving: Arc<Serving>) -> Session {
        let connection = shared.connections.open(connected.peer);
        Session {
            shared,
            serving,
            connection,
            state: State::Fresh,
            queue: Queue::default(),
            expected: ANSWER_BYTES_EXPECTED,
            output: Rope::default(),
            leftover: 0,
            is_kept: false,
            is_draining: false,
            is_leaving: false,
        }
    }

    /// A frame or a word was read.
    fn on_received(&self) {
        self.shared.counters.on_received();
        self.connection.on_received();
    }

    /// A frame was written, or waits for earlier ones.
    fn on_sent(&self) {
        self.shared.counters.on_sent();
        self.connection.on_sent();
    }

    fn on_word(&mut self, word: [u8; 4]) {
        self.on_received();
        self.end();
        if let Some(text) = words::answer(word, &self.shared, &self.serving, &self.connection) {
            self.output.push_slice(text.as_bytes());
        }
    }

    fn on_frame(&mut self, frame: &[u8], now: Time, out: &mut dyn Requests) {
        self.on_received();
        match self.state {
            State::Fresh => self.on_connect(frame, out),
            State::Open { lane, session } => match Request::read(frame) {
                Ok(request) => self.on_request(request, (lane, session), (frame.len(), now), out),
                Err(_) => self.is_draining = true,
            },
            State::Connecting { .. } | State::Over => {
                unreachable!("no frame is taken while a session is not open")
            }
        }
    }

    /// Asks for the session, or goes on with it.
    fn on_connect(&mut self, frame: &[u8], out: &mut dyn Requests) {
        let Ok(request) = ConnectRequest::read(frame, self.connection.peer()) else {
            return self.end();
        };
        let Some(served) = tree(&self.serving) else { return self.end() };
        let (lane, knows_read_only) = (served.keyspace.lane, request.knows_read_only);
        self.state = State::Connecting { lane, knows_read_only };
        if request.is_stranger {
            return self.on_expired();
        }
        out.watch(SESSION, lane, Watch::Session(request.connect));
    }

    fn on_request(
        &mut self,
        request: Request,
        (lane, session): (LaneId, SessionId),
        (bytes, asked): (usize, Time),
        out: &mut dyn Requests,
    ) {
        let Request { xid, plan, form } = request;
        match plan {
            Plan::Ask(act) => {
                self.is_leaving |= act == Act::Close;
                self.is_draining |= self.is_leaving;
                self.shared.counters.on_asked();
                self.connection.on_asked(xid, &act);
                let follows = Follows::of(&act);
                let number = self.queue.push(Waiting { xid, form, follows, bytes, asked });
                self.connection.on_queued(self.queue.unanswered());
                let ask = Box::new(Ask { session: Some(session), opening: None, act });
                out.start(number, lane, Operation::Tree(ask), None);
            }
            Plan::Answer(told) => self.answer_now(xid, &form, &told, bytes),
        }
    }

    /// Answers what was not asked of the engine. The answer rests on no change, so it tells none:
    /// clients pass over a zxid of 0.
    fn answer_now(&mut self, xid: i32, form: &Form, told: &Result<Told, Code>, bytes: usize) {
        self.is_draining |= *form == Form::Auth;
        let answer = form.answer(xid, Zxid(0), told);
        let frame = answer.expect("what a request is known to be is told in its own form");
        self.on_sent();
        self.queue.push_answered(frame, bytes, &mut self.output);
    }

    /// The client is told that it has no session any more, if it waits to hear which one it has;
    /// otherwise by the end of the connection, and when it asks for it again.
    fn on_expired(&mut self) {
        if let State::Connecting { knows_read_only, .. } = self.state {
            self.send(connect::expired(knows_read_only));
        }
        self.end();
    }

    fn send(&mut self, frame: Frame) {
        self.on_sent();
        frame.send(&mut self.output);
    }

    /// The connection is closed once what was written is taken; all that was asked is given up.
    /// But a client that ends its session is told so, although the session ends by that.
    fn end(&mut self) {
        self.is_draining = true;
        self.state = State::Over;
        if !self.is_leaving || mutant!("zookeeper_leaves_unanswered") {
            self.give_up_all();
        }
    }

    fn give_up_all(&mut self) {
        let before = self.queue.unanswered();
        self.queue.clear();
        self.shared.counters.on_ended(before);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.connections.close(self.connection.id());
        self.give_up_all();
    }
}
