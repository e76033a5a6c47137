//! Operations of RESP clients on their way into the node, and those in hand there.

use super::keyspaces;
use crate::metrics::Kind;
use quorate_doors::resp::{self, Requests};
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_node::pump::Input;
use slab::Slab;
use std::sync::Arc;

/// An operation that was handed to the node.
pub(super) struct InFlight {
    pub client: usize,
    pub client_id: u64,
    pub number: u32,
    pub keyspace: usize,
    pub kind: Kind,
    pub began: Time,
}

/// What an operation needs on its way to the node.
pub(super) struct Launch {
    pub in_flight: Slab<InFlight>,
    pub timeout: Span,
    pub door: Arc<resp::Shared>,
}

impl Launch {
    pub fn starter<'a>(
        &'a mut self,
        client: usize,
        client_id: u64,
        now: Time,
        inputs: &'a mut Vec<Input>,
    ) -> Starter<'a> {
        let deadline = now + self.timeout;
        let in_flight = &mut self.in_flight;
        Starter { in_flight, inputs, client, client_id, now, deadline }
    }
}

/// Turns the operations a session starts into inputs of the node.
pub(super) struct Starter<'a> {
    in_flight: &'a mut Slab<InFlight>,
    inputs: &'a mut Vec<Input>,
    client: usize,
    client_id: u64,
    now: Time,
    deadline: Time,
}

impl Requests for Starter<'_> {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation) {
        let ticket = self.in_flight.insert(InFlight {
            client: self.client,
            client_id: self.client_id,
            number,
            keyspace: keyspaces::number(lane),
            kind: Kind::of(&operation),
            began: self.now,
        });
        let request = Request { operation, deadline: self.deadline };
        self.inputs.push(Input::Request { lane, ticket: Ticket(ticket as u64), request });
    }
}
