//! One connection.

use super::super::budget::Charge;
use super::pace::Pace;
use super::starter::Starter;
use crate::pending::PendingRequests;
use bytes::BytesMut;
use mio::net::TcpStream;
use quorate_doors::{Clock, Session};
use quorate_kernel::time::Time;

/// A connection of a client, as the host keeps it.
pub(super) struct Client {
    pub stream: TcpStream,
    /// Never used again, unlike the slot.
    pub id: u64,
    /// The place of its door in the list.
    pub door: usize,
    pub session: Box<dyn Session>,
    /// How many of its operations have not ended.
    pub in_hand: usize,
    pub input: BytesMut,
    /// The socket may hold what was not read.
    pub is_readable: bool,
    /// It stands in the queue of those that are read in turn.
    pub is_queued: bool,
    pub is_dirty: bool,
    /// The client will send nothing more than what the socket holds.
    pub is_ending: bool,
    /// Everything it sent was read.
    pub has_ended: bool,
    /// When it was told its last reply, if it has not closed since.
    pub parting_since: Option<Time>,
    /// When it last took replies, or had none waiting.
    pub took_at: Time,
    /// When it last sent something.
    pub sent_at: Time,
    /// How it keeps up.
    pub pace: Pace,
    /// What of the budget it takes.
    pub charge: Charge,
}

impl Client {
    /// Has its session read what has come. A request of which the rest is missing has begun with
    /// what was left.
    pub fn feed(
        &mut self,
        input: &mut BytesMut,
        key: usize,
        clock: Clock,
        pending: &mut PendingRequests,
    ) {
        let (length, had_all) = (input.len(), self.session.output().is_empty());
        let (at, in_hand) = ((key, self.id), &mut self.in_hand);
        let mut starter = Starter { pending, client: at, in_hand, now: clock.now };
        self.session.feed(input, clock, &mut starter);
        if input.len() < length {
            self.pace.on_begun(clock.now);
        }
        if had_all {
            self.pace.on_told(clock.now);
        }
    }

    /// The same of what was held back; whether there was any.
    pub fn feed_again(&mut self, key: usize, clock: Clock, pending: &mut PendingRequests) -> bool {
        let goes_on = self.session.wants_feed(&self.input);
        if goes_on {
            let mut input = std::mem::take(&mut self.input);
            self.feed(&mut input, key, clock, pending);
            self.input = input;
        }
        goes_on
    }
}
