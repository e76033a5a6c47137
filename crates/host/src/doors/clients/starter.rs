//! What sessions start: their operations and watches become inputs of the node.

use crate::pending::{PendingRequests, SessionRequest, Waiter};
use quorate_doors::Requests;
use quorate_kernel::ids::LaneId;
use quorate_kernel::limits::CLIENT_OPERATIONS_MAX;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::watch::Watch;

/// Takes what the session of a client starts.
pub(super) struct Starter<'a> {
    pub pending: &'a mut PendingRequests,
    /// The client's slot and its id.
    pub client: (usize, u64),
    /// How many of its requests have not ended.
    pub in_hand: &'a mut usize,
    pub now: Time,
}

impl Starter<'_> {
    fn asked(&mut self, number: u32) -> SessionRequest {
        assert!(*self.in_hand < CLIENT_OPERATIONS_MAX, "a session bounds what it has in hand");
        *self.in_hand += 1;
        let (client, client_id) = self.client;
        SessionRequest { client, client_id, number }
    }
}

impl Requests for Starter<'_> {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, within: Option<Span>) {
        let waiter = Waiter::Session(self.asked(number));
        let deadline = within.map_or_else(|| self.pending.deadline(self.now), |it| self.now + it);
        self.pending.request(lane, operation, (self.now, deadline), waiter);
    }

    fn watch(&mut self, number: u32, lane: LaneId, watch: Watch) {
        let waiter = Waiter::Follower(self.asked(number));
        self.pending.watch(lane, watch, waiter);
    }

    fn unwatch(&mut self, number: u32) {
        let (client, client_id) = self.client;
        let meant = SessionRequest { client, client_id, number };
        *self.in_hand -= self.pending.unwatch(|one| one.follower() == Some(meant)).len();
    }
}
