//! How connections of clients end: told their last reply, or closed because they take none, or
//! do not finish what they have begun.

use super::super::budget::Budget;
use super::pace::AT_LEAST;
use super::starter::Starter;
use super::{Charge, Client, Clients, READ_BYTES, queue};
use crate::io::{self, Progress};
use crate::mark;
use crate::metrics::RejectReason;
use crate::pending::PendingRequests;
use bytes::BytesMut;
use quorate_doors::Shortage;
use quorate_kernel::limits::CLIENT_QUEUE_BYTES_MAX;
use quorate_kernel::time::{Span, Time};
use std::io::ErrorKind;
use std::net::Shutdown;

/// How long a client with a full queue of replies, or with any while there is no memory left for
/// others, may take none of them.
const SLOW_FOR: Span = Span::secs(60);
/// A client that has taken no replies for this long may be gone.
const TAKES_WITHIN: Span = Span::secs(1);
/// How long a client may stay that has not said who it is, where it must, as in ZooKeeper.
const SPEAKS_WITHIN: Span = Span::secs(10);
/// How long a client that was told its last reply may take to close. What it still sends is read
/// and dropped: closing before that would reset the connection, and it would lose the reply.
const PARTING_FOR: Span = Span::secs(5);
/// The same while the host stops, which such a client holds up.
const PARTING_FOR_AT_STOP: Span = Span::secs(1);
/// A client that has sent nothing for this long, and of which everything was read, has nothing
/// under way that a reset could take.
const QUIET_AFTER: Span = Span::secs(1);
/// After this without a reply a client keeps no room for the next one.
const IDLE_AFTER: Span = Span::secs(1);

/// Whether a client has sent what is not taken yet. Half a request is all that there is of it.
fn has_sent(client: &Client) -> bool {
    let is_half = || client.session.is_waiting_for_rest(&client.input);
    client.is_readable || !client.input.is_empty() && !is_half()
}

impl Clients {
    /// Reads once from a client that is parting, for nothing; an error once it has closed.
    pub(super) fn drop_input(&mut self, key: usize) -> std::io::Result<()> {
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        self.scratch.reserve(READ_BYTES);
        let progress = io::read(&client.stream, &mut self.scratch)?;
        self.scratch.clear();
        match progress {
            Progress::Closed => return Err(ErrorKind::UnexpectedEof.into()),
            Progress::Drained if !client.is_ending => {}
            Progress::Empty => client.is_ending = false,
            _ => queue(client, &mut self.readable, key),
        }
        Ok(())
    }

    /// Tells a client that nothing more will come; false if there is no point in waiting for it.
    pub(super) fn part(&mut self, key: usize, now: Time) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let is_quiet = !client.is_readable && now - client.sent_at > QUIET_AFTER;
        let is_done = client.has_ended || self.is_stopping && is_quiet;
        if is_done || client.stream.shutdown(Shutdown::Write).is_err() {
            return false;
        }
        client.parting_since.get_or_insert(now);
        client.input = BytesMut::new();
        self.doors[client.door].budget.change(&mut client.charge, Charge::default());
        // The poller does not repeat itself for what was left in the socket.
        queue(client, &mut self.readable, key);
        true
    }

    /// Looks after all clients: closes those that keep others waiting.
    pub fn maintain(&mut self, now: Time, pending: &mut PendingRequests) {
        self.close_slow(now, pending);
        self.close_late(now, pending);
        self.close_silent(now, pending);
        self.refuse_unfinished(now);
        for key in self
            .keys(|client| has_sent(client) && !client.is_queued && client.parting_since.is_none())
        {
            self.tell_unread(key, now, pending);
        }
        for (key, client) in &mut self.clients {
            if now - client.took_at > IDLE_AFTER {
                client.session.output().release();
            }
            // What had to wait for memory is read again.
            let is_waiting = client.is_readable && client.session.wants_input();
            let is_spent = || self.doors[client.door].budget.is_spent();
            if is_waiting && !is_spent() {
                queue(client, &mut self.readable, key);
            }
        }
    }

    /// A client has sent something, and its session does not take it yet. As long as it takes what
    /// it is told, and has not closed, it is not silent.
    pub(super) fn tell_unread(&mut self, key: usize, now: Time, pending: &mut PendingRequests) {
        let Some(client) = self.clients.get_mut(key).filter(|it| !it.is_ending) else { return };
        let takes = client.session.output().is_empty() || now - client.took_at <= TAKES_WITHIN;
        if !takes {
            return;
        }
        let (at, in_hand) = ((key, client.id), &mut client.in_hand);
        client.session.on_unread(&mut Starter { pending, client: at, in_hand, now });
    }

    /// Closes clients that have taken no replies for long, or few while others wait for memory.
    fn close_slow(&mut self, now: Time, pending: &mut PendingRequests) {
        let most: Vec<usize> = self.doors.iter().map(|door| queue_max(&door.budget)).collect();
        let is_spent: Vec<bool> = self.doors.iter().map(|door| door.budget.is_spent()).collect();
        for key in self.keys(|client| {
            let waits = client.session.output().len();
            let takes_none = now - client.took_at > SLOW_FOR && waits >= most[client.door];
            // Others get no room as long: a few bytes now and then are not enough.
            let takes_little = waits > 0 && client.pace.takes_late(waits, now);
            takes_none || is_spent[client.door] && takes_little
        }) {
            self.shared.reject(RejectReason::SlowClient);
            tracing::info!(event = "slow_client", "a client took its replies too slowly; closed");
            self.close(key, pending);
        }
    }

    /// Closes clients that were told their last reply and do not close.
    fn close_late(&mut self, now: Time, pending: &mut PendingRequests) {
        let most = if self.is_stopping { PARTING_FOR_AT_STOP } else { PARTING_FOR };
        for key in self.keys(|client| client.parting_since.is_some_and(|since| now - since > most))
        {
            self.close(key, pending);
        }
    }

    /// Closes clients that have never said who they are.
    fn close_silent(&mut self, now: Time, pending: &mut PendingRequests) {
        for key in self.keys(|client| {
            // What it has sent was read.
            let is_silent = client.input.is_empty() && !client.is_readable;
            is_silent
                && !client.session.has_spoken()
                && !client.session.is_closing()
                && now - client.sent_at > SPEAKS_WITHIN
        }) {
            self.shared.reject(RejectReason::Unfinished);
            self.close(key, pending);
        }
    }

    /// Tells clients that have begun a command and send nothing more of it, or too little, that it
    /// was not executed. What they have sent was read: nothing of it is their host's delay.
    fn refuse_unfinished(&mut self, now: Time) {
        for key in self.keys(|client| {
            let bytes = client.session.begun_bytes(&client.input);
            let stands_still = now - client.sent_at > AT_LEAST;
            let is_slow = stands_still || client.pace.sends_late(bytes, now);
            is_slow && !client.is_readable && client.session.is_waiting_for_rest(&client.input)
        }) {
            self.shared.reject(RejectReason::Unfinished);
            let client = &mut self.clients[key];
            client.session.refuse(&Shortage::Unfinished { since: AT_LEAST });
            client.input = BytesMut::new();
            mark(&mut client.is_dirty, &mut self.dirty, key);
        }
    }

    fn keys(&mut self, is_one: impl Fn(&mut super::Client) -> bool) -> Vec<usize> {
        let all = self.clients.iter_mut();
        all.filter_map(|(key, client)| is_one(client).then_some(key)).collect()
    }

    /// Forgets a client; its socket closes.
    pub(super) fn close(&mut self, key: usize, pending: &mut PendingRequests) {
        if let Some(mut client) = self.clients.try_remove(key) {
            let door = &mut self.doors[client.door];
            door.budget.change(&mut client.charge, Charge::default());
            door.left();
            if client.in_hand > 0 {
                let id = client.id;
                pending.unwatch(|one| one.follower().is_some_and(|asked| asked.client_id == id));
            }
        }
    }
}

/// How many bytes of answers a client may leave untaken: none for long once others need the room.
fn queue_max(budget: &Budget) -> usize {
    if budget.is_spent() { 1 } else { CLIENT_QUEUE_BYTES_MAX }
}
