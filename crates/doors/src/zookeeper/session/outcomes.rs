//! What the engine says to a connection: outcomes of its requests, and what its session is told.

use super::{SESSION, Session, State};
use crate::door::{Requests, Session as _};
use crate::host::Clock;
use crate::zookeeper::answers::form::{self, Form};
use crate::zookeeper::requests::connect;
use crate::zookeeper::wire::codes::Code;
use quorate_kernel::limits::{CLIENT_QUEUE_BYTES_MAX, CLIENT_READ_BYTES_MAX};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::tree::{Changed, Failure, SessionEvent, Told, TreeReply, Zxid};
use quorate_kernel::watch::Event;

/// The most bytes that wait for a client to which events come: as much as it may have asked for,
/// and a queue.
const WAITING_BYTES_MAX: usize = CLIENT_READ_BYTES_MAX + CLIENT_QUEUE_BYTES_MAX;

impl Session {
    /// A request was done, or was not.
    pub(super) fn on_outcome(&mut self, number: u32, outcome: Outcome, clock: Clock) {
        let Some(waiting) = self.queue.waiting(number) else { return };
        let after = clock.now - waiting.asked;
        self.shared.counters.on_answered(after);
        let is_auth = waiting.form == Form::Auth;
        let Some((zxid, told)) = answer(outcome) else { return self.cut(number) };
        // Clients take a number for all that they have seen, and send who they are before they say
        // what they follow.
        let zxid = if is_auth { Zxid(0) } else { zxid };
        self.connection.on_answered(zxid, after, clock.wall);
        let told = told.map_err(|code| match code {
            // Clients know no other reason why they are not who they say.
            code if is_auth && code != Code::SESSION_EXPIRED => Code::AUTH_FAILED,
            code => code,
        });
        let Ok(frame) = waiting.form.answer(waiting.xid, zxid, &told) else {
            return self.cut(number);
        };
        if waiting.form.is_read() {
            self.expected = frame.len().max(self.expected - self.expected / 16);
        }
        if told == Err(Code::SESSION_EXPIRED) || is_auth && told.is_err() {
            // What was asked behind it can only come to the same.
            self.cut(number.wrapping_add(1));
        }
        self.shared.counters.on_told(zxid);
        self.on_sent();
        self.shared.counters.on_ended(1);
        self.queue.answer(number, frame, &mut self.output);
        self.connection.on_queued(self.queue.unanswered());
    }

    /// Gives up a request and all behind it; the connection is closed once those before were
    /// answered.
    fn cut(&mut self, number: u32) {
        self.is_draining = true;
        let before = self.queue.unanswered();
        self.queue.cut(number);
        self.shared.counters.on_ended(before - self.queue.unanswered());
    }

    /// The session is told something, or has ended.
    pub(super) fn on_told(&mut self, outcome: Outcome, out: &mut dyn Requests) {
        match outcome {
            Outcome::More(events) => events.into_iter().for_each(|event| match event {
                Event::Session(event) => self.on_event(event, out),
                Event::Current | Event::Keyspace { .. } | Event::Host { .. } => {}
            }),
            // What was asked is still answered.
            Outcome::Refused(Refusal::Stopping) if matches!(self.state, State::Open { .. }) => {
                self.is_draining = true;
            }
            Outcome::Refused(Refusal::NoSession) => self.on_expired(),
            _ => self.end(),
        }
    }

    fn on_event(&mut self, event: SessionEvent, out: &mut dyn Requests) {
        match (event, self.state) {
            (
                SessionEvent::Open { session, password, timeout_ms, .. },
                State::Connecting { lane, knows_read_only },
            ) => {
                self.state = State::Open { lane, session };
                self.connection.on_session(session, timeout_ms);
                self.send(connect::opened(session, &password, timeout_ms, knows_read_only));
            }
            (SessionEvent::Changed(changed), State::Open { .. }) if !self.is_closing() => {
                self.on_changed(&changed, out);
            }
            (SessionEvent::Expired, _) => self.on_expired(),
            _ => {}
        }
    }

    /// A client that does not take what it is told loses its connection, not its session: it
    /// connects again, and what it has missed is told when it follows again.
    fn on_changed(&mut self, changed: &Changed, out: &mut dyn Requests) {
        if self.output.len() + self.queue.held_bytes() >= WAITING_BYTES_MAX {
            out.unwatch(SESSION);
            self.is_leaving = false;
            return self.end();
        }
        self.shared.counters.on_told(changed.zxid);
        self.on_sent();
        self.queue.tell(&changed.path, form::event(changed), &mut self.output);
    }
}

/// What a client is told of an outcome; none if it cannot be told.
fn answer(outcome: Outcome) -> Option<(Zxid, Result<Told, Code>)> {
    match outcome {
        Outcome::Tree(reply) => match *reply {
            // Two hosts would disagree on where the client is if it could go on here.
            TreeReply { told: Err(Failure::SessionMoved), .. } => None,
            TreeReply { zxid, told } => Some((zxid, told.map_err(Code::from))),
        },
        Outcome::Refused(why) => Code::of_refusal(&why).map(|code| (Zxid(0), Err(code))),
        _ => None,
    }
}
