//! Operations of clients on their way into the node, and those in hand there.

use super::keyspaces;
use crate::metrics::Kind;
use quorate_doors::Requests;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::limits::CLIENT_OPERATIONS_MAX;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_node::pump::Input;
use slab::Slab;

/// How many keys there can be.
const KEYS: u64 = 1 << 32;
/// The tickets of others begin beyond this count.
const COUNT_MAX: u64 = 1 << 30;

/// An operation that was handed to the node.
pub(super) struct InFlight {
    pub ticket: Ticket,
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
    /// How many there have been.
    pub count: u64,
    /// How long a request may take whose session does not say.
    pub timeout: Span,
}

impl Launch {
    /// Takes what the session of a client starts; `in_hand` counts what has not ended of it.
    pub fn starter<'a>(
        &'a mut self,
        (client, client_id): (usize, u64),
        in_hand: &'a mut usize,
        now: Time,
        inputs: &'a mut Vec<Input>,
    ) -> Starter<'a> {
        Starter { launch: self, inputs, client, client_id, in_hand, now }
    }

    /// How many operations on a keyspace there are.
    pub fn in_hand(&self, keyspace: usize) -> u64 {
        self.in_flight.iter().filter(|(_, flight)| flight.keyspace == keyspace).count() as u64
    }

    /// The operations on keyspaces that are not served.
    pub fn without(&self, is_served: impl Fn(usize) -> bool) -> Vec<(Ticket, Kind)> {
        let all = self.in_flight.iter().map(|(_, flight)| flight);
        let gone = all.filter(|flight| !is_served(flight.keyspace));
        gone.map(|flight| (flight.ticket, flight.kind)).collect()
    }

    /// Takes what has ended; `None` if that was taken before.
    pub fn end(&mut self, ticket: Ticket) -> Option<InFlight> {
        let key = (ticket.0 % KEYS) as usize;
        self.in_flight.get(key).is_some_and(|flight| flight.ticket == ticket).then_some(())?;
        self.in_flight.try_remove(key)
    }
}

/// Turns the operations a session starts into inputs of the node.
pub(super) struct Starter<'a> {
    launch: &'a mut Launch,
    inputs: &'a mut Vec<Input>,
    client: usize,
    client_id: u64,
    in_hand: &'a mut usize,
    now: Time,
}

impl Requests for Starter<'_> {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, within: Option<Span>) {
        assert!(*self.in_hand < CLIENT_OPERATIONS_MAX, "a session bounds what it has in hand");
        *self.in_hand += 1;
        let Launch { in_flight, count, timeout } = &mut *self.launch;
        // An answer may still come for what ended early, when its key has been given to another.
        *count = (*count + 1) % COUNT_MAX;
        let ticket = Ticket(*count * KEYS + in_flight.vacant_key() as u64);
        in_flight.insert(InFlight {
            ticket,
            client: self.client,
            client_id: self.client_id,
            number,
            keyspace: keyspaces::number(lane),
            kind: Kind::of(&operation),
            began: self.now,
        });
        let deadline = self.now + within.unwrap_or(*timeout);
        let request = Request { operation, deadline };
        self.inputs.push(Input::Request { lane, ticket, request });
    }
}
