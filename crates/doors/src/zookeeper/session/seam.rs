//! A connection as the host sees it: what it is given, and what it says of itself.

use super::{SESSION, Session, State, UNREAD};
use crate::door::{self, Requests, Shortage};
use crate::host::{Clock, Serving};
use crate::zookeeper::wire::frames::{self, Next};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::BytesMut;
use quorate_kernel::limits::{
    CLIENT_OPERATIONS_MAX, CLIENT_PENDING_BYTES_MAX, CLIENT_QUEUE_BYTES_MAX, CLIENT_READ_BYTES_MAX,
};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rope::Rope;
use quorate_kernel::tree::{Act, Ask};

/// The most requests in hand: the session is an operation too, and so is the ping for a client that
/// is not read.
const REQUESTS_MAX: usize = CLIENT_OPERATIONS_MAX - 2;

impl door::Session for Session {
    fn feed(&mut self, input: &mut BytesMut, clock: Clock, out: &mut dyn Requests) {
        self.leftover = 0;
        self.connection.on_bytes(clock.wall);
        while self.wants_input() {
            match frames::next(input, matches!(self.state, State::Fresh)) {
                Next::Word(word) => self.on_word(word),
                Next::Frame(frame) => self.on_frame(&frame, clock.now, out),
                Next::Nothing => {
                    self.leftover = input.len();
                    break;
                }
                Next::Broken => self.is_draining = true,
            }
        }
        if self.is_draining {
            input.clear();
        }
    }

    fn complete(&mut self, number: u32, outcome: Outcome, clock: Clock, out: &mut dyn Requests) {
        match number {
            SESSION => self.on_told(outcome, out),
            // If there is no session any more, that is told as all else of it.
            UNREAD => self.is_kept = false,
            _ => self.on_outcome(number, outcome, clock),
        }
    }

    fn output(&mut self) -> &mut Rope {
        &mut self.output
    }

    fn wants_input(&self) -> bool {
        !self.is_draining
            && matches!(self.state, State::Fresh | State::Open { .. })
            && self.queue.len() < REQUESTS_MAX
            && self.queue.asked_bytes() < CLIENT_PENDING_BYTES_MAX
            && self.output.len() < CLIENT_QUEUE_BYTES_MAX
            && (self.queue.is_empty() || self.bytes_coming() <= CLIENT_READ_BYTES_MAX)
    }

    fn wants_feed(&self, input: &BytesMut) -> bool {
        input.len() > self.leftover && self.wants_input()
    }

    fn begun_bytes(&self, input: &BytesMut) -> usize {
        frames::begun_bytes(input)
    }

    fn held_bytes(&self) -> usize {
        self.queue.asked_bytes() + self.queue.held_bytes() + self.output.len()
    }

    fn is_waiting_for_rest(&self, input: &BytesMut) -> bool {
        !input.is_empty() && input.len() == self.leftover && self.wants_input()
    }

    fn has_spoken(&self) -> bool {
        !matches!(self.state, State::Fresh)
    }

    fn on_unread(&mut self, out: &mut dyn Requests) {
        if let State::Open { lane, session } = self.state
            && !self.is_draining
            && !core::mem::replace(&mut self.is_kept, true)
        {
            let ask = Box::new(Ask { session: Some(session), opening: None, act: Act::Ping });
            out.start(UNREAD, lane, Operation::Tree(ask), None);
        }
    }

    /// There are no words for it on the wire.
    fn refuse(&mut self, _: &Shortage) {
        self.is_draining = true;
    }

    fn set_serving(&mut self, serving: &Arc<Serving>) {
        self.serving = Arc::clone(serving);
    }

    fn finish(&mut self) {
        self.is_draining = true;
    }

    fn is_closing(&self) -> bool {
        self.is_draining && self.queue.is_empty() && !matches!(self.state, State::Connecting { .. })
    }
}

impl Session {
    /// How many bytes wait for the client or will, as far as can be foreseen.
    fn bytes_coming(&self) -> usize {
        let held = self.output.len() + self.queue.held_bytes();
        held + self.queue.reads() * self.expected
    }
}
