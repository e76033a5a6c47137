//! What a connection holds in memory, for hosts that bound what all of them hold together.

use super::{Answer, Session};
use alloc::string::String;
use bytes::BytesMut;

impl Session {
    /// How many bytes the command takes of which `input` holds the beginning, as far as it has
    /// announced.
    #[must_use]
    pub fn begun_bytes(&self, input: &BytesMut) -> usize {
        if input.is_empty() { 0 } else { input.len().max(self.parser.announced()) }
    }

    /// How many bytes it keeps of commands that are not answered and of replies.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.pending_bytes + self.held + self.output.len()
    }

    /// Whether it waits for the rest of a command of which `input` holds the beginning.
    #[must_use]
    pub fn is_waiting_for_rest(&self, input: &BytesMut) -> bool {
        !input.is_empty() && input.len() == self.leftover && self.wants_input()
    }

    /// Answers the command that is arriving with an error in place of reading it. Where the next
    /// one begins is not known then, so the connection closes when those before were answered.
    pub fn refuse(&mut self, error: String) {
        self.queue_answer(Answer::Error(error), 0, false);
        self.is_draining = true;
    }
}
