//! Operations of clients on their way into the node, and those in hand there.

use crate::metrics::Kind;
use quorate_doors::Requests;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::limits::CLIENT_OPERATIONS_MAX;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::watch::Watch;
use quorate_node::pump::Input;
use slab::Slab;

/// How many keys there can be.
const KEYS: u64 = 1 << 32;
/// The tickets of others begin beyond this count.
const COUNT_MAX: u64 = 1 << 30;

/// An operation that was handed to the node.
#[derive(Clone, Copy)]
pub(super) struct InFlight {
    pub ticket: Ticket,
    pub client: usize,
    pub client_id: u64,
    pub number: u32,
    pub lane: LaneId,
    /// What is asked; none of a watch.
    pub kind: Option<Kind>,
    pub began: Time,
}

/// What an operation needs on its way to the node.
pub(super) struct Launch {
    pub in_flight: Slab<InFlight>,
    /// How many there have been.
    pub count: u64,
    /// How long a request may take whose session does not say.
    pub timeout: Span,
    /// How many of those in flight are watches.
    pub watches: usize,
    /// What the node is to be told of watches whose clients have gone.
    pub orphans: Vec<Input>,
}

impl Launch {
    /// Nothing is in hand.
    pub fn new(timeout: Span) -> Launch {
        Launch { in_flight: Slab::new(), count: 0, timeout, watches: 0, orphans: Vec::new() }
    }

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

    /// How many operations on the keyspace of a lane there are.
    pub fn in_hand(&self, lane: LaneId) -> u64 {
        let is_meant = |flight: &InFlight| flight.lane == lane && flight.kind.is_some();
        self.in_flight.iter().filter(|(_, flight)| is_meant(flight)).count() as u64
    }

    /// Whether nothing but watches is in hand.
    pub fn is_idle(&self) -> bool {
        self.in_flight.len() == self.watches
    }

    /// What is in hand for keyspaces that are not served.
    pub fn without(&self, is_served: impl Fn(LaneId) -> bool) -> Vec<InFlight> {
        let all = self.in_flight.iter().map(|(_, flight)| *flight);
        all.filter(|flight| flight.lane >= LaneId::KEYSPACES && !is_served(flight.lane)).collect()
    }

    /// Takes out what the last answer has come for, or looks at what has more to come; `None` if it
    /// has ended before.
    pub fn answered(&mut self, ticket: Ticket, is_last: bool) -> Option<InFlight> {
        let key = (ticket.0 % KEYS) as usize;
        let found = self.in_flight.get(key).filter(|flight| flight.ticket == ticket).copied()?;
        if is_last {
            self.in_flight.remove(key);
            self.watches -= usize::from(found.kind.is_none());
        }
        Some(found)
    }

    /// Ends the watches of a client that has gone.
    pub fn orphan(&mut self, client_id: u64) {
        let Launch { in_flight, watches, orphans, .. } = self;
        if *watches == 0 {
            return;
        }
        in_flight.retain(|_, flight| {
            let is_orphan = flight.client_id == client_id && flight.kind.is_none();
            if is_orphan {
                *watches -= 1;
                orphans.push(Input::Unwatch { lane: flight.lane, ticket: flight.ticket });
            }
            !is_orphan
        });
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

impl Starter<'_> {
    fn take_off(&mut self, number: u32, lane: LaneId, kind: Option<Kind>) -> Ticket {
        assert!(*self.in_hand < CLIENT_OPERATIONS_MAX, "a session bounds what it has in hand");
        *self.in_hand += 1;
        let Launch { in_flight, count, watches, .. } = &mut *self.launch;
        // An answer may still come for what ended early, when its key has been given to another.
        *count = (*count + 1) % COUNT_MAX;
        let ticket = Ticket(*count * KEYS + in_flight.vacant_key() as u64);
        let (client, client_id, began) = (self.client, self.client_id, self.now);
        *watches += usize::from(kind.is_none());
        in_flight.insert(InFlight { ticket, client, client_id, number, lane, kind, began });
        ticket
    }
}

impl Requests for Starter<'_> {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, within: Option<Span>) {
        let ticket = self.take_off(number, lane, Some(Kind::of(&operation)));
        let deadline = self.now + within.unwrap_or(self.launch.timeout);
        let request = Request { operation, deadline };
        self.inputs.push(Input::Request { lane, ticket, request });
    }

    fn watch(&mut self, number: u32, lane: LaneId, watch: Watch) {
        let ticket = self.take_off(number, lane, None);
        self.inputs.push(Input::Watch { lane, ticket, watch });
    }

    fn unwatch(&mut self, number: u32) {
        let is_meant = |flight: &InFlight| {
            flight.client_id == self.client_id && flight.number == number && flight.kind.is_none()
        };
        let all = &mut self.launch.in_flight;
        let Some((key, _)) = all.iter().find(|(_, flight)| is_meant(flight)) else { return };
        let InFlight { lane, ticket, .. } = all.remove(key);
        self.launch.watches -= 1;
        *self.in_hand -= 1;
        self.inputs.push(Input::Unwatch { lane, ticket });
    }
}
