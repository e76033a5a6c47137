//! What a connection follows: begun and ended with its replies in order, told between them.

use super::Session;
use crate::door::Requests;
use crate::events::json;
use crate::resp::commands::CHANNEL;
use crate::resp::error;
use crate::resp::reply::{Encoder, Protocol};
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::LaneId;
use quorate_kernel::limits::CLIENT_QUEUE_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::watch::{Event, Watch};

/// Events that wait for the replies of earlier commands.
#[derive(Debug, Default)]
pub(super) struct Untold {
    texts: Vec<String>,
    bytes: usize,
}

impl Untold {
    /// How many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The number of the watch; those of operations are lower.
pub(super) const NUMBER: u32 = u32::MAX;

impl Session {
    /// Begins or ends the watch as the client has asked, once the replies before were written:
    /// nothing is told to a client that has not read yet that it follows.
    pub(super) fn follow(&mut self, out: &mut dyn Requests) {
        let is_wanted = self.client.is_following;
        if is_wanted == self.follows || is_wanted && !self.pending.is_empty() || self.is_draining {
            return;
        }
        self.follows = is_wanted;
        if is_wanted {
            out.watch(NUMBER, LaneId::EVENTS, Watch::Cluster);
        } else {
            self.untold = Untold::default();
            out.unwatch(NUMBER);
        }
    }

    /// The watch has an answer, or has ended.
    pub(super) fn on_happened(&mut self, outcome: Outcome, out: &mut dyn Requests) {
        if !self.follows {
            return;
        }
        match outcome {
            Outcome::More(events) => {
                // What the client has not taken is all that waits for it: beyond, it is told that
                // it has lost something, and must begin anew.
                if self.output.len() + self.untold.bytes >= CLIENT_QUEUE_BYTES_MAX {
                    out.unwatch(NUMBER);
                    return self.end_watch(&Refusal::TooSlow);
                }
                events.iter().for_each(|event| self.tell(event));
            }
            Outcome::Refused(why) => self.end_watch(&why),
            _ => self.end_watch(&Refusal::Unsupported),
        }
    }

    fn tell(&mut self, event: &Event) {
        let text = json(event);
        self.untold.bytes += text.len();
        self.untold.texts.push(text);
        self.tell_waiting();
    }

    /// Tells what has happened, if it cannot be taken for the reply to a command: in version 2 it
    /// looks like one, so there the replies of all that was read before come first.
    pub(super) fn tell_waiting(&mut self) {
        let is_apart = |of: Protocol| of == Protocol::Resp3;
        let mut waiting = self.pending.iter();
        let may_tell = self.pending.is_empty()
            || is_apart(self.client.protocol) && waiting.all(|it| is_apart(it.protocol));
        if !may_tell && !mutant!("event_looks_like_a_reply") {
            return;
        }
        let untold = core::mem::take(&mut self.untold);
        let mut encoder = Encoder::new(&mut self.output, self.client.protocol);
        for text in untold.texts {
            encoder.push(3);
            encoder.bulk(b"message");
            encoder.bulk(CHANNEL.as_bytes());
            encoder.bulk(text.as_bytes());
        }
    }

    /// Says why nothing more will be told. The connection closes: a client that only listens would
    /// not notice otherwise.
    pub(super) fn end_watch(&mut self, why: &Refusal) {
        (self.follows, self.client.is_following) = (false, false);
        self.end_with(error::refusal(why));
    }
}
