//! Requests on their way into the node and in hand there, from whatever door they came: who waits
//! for each.
//!
//! A ticket names a place in the table and counts how often any was taken: an answer may still
//! come for what ended early, when its place has been given to another.

use super::calls::queues::{CallEnd, Happened};
use super::calls::remembered::Name;
use super::keyspaces::{Table, number};
use super::operators::requests::OperatorReply;
use crate::metrics::{Ending, KeyspaceCells, Kind};
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::operation::{Control, Operation, Outcome, Refusal};
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::watch::Watch;
use quorate_node::pump::Input;
use slab::Slab;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How many bits of a ticket name the place.
const PLACE_BITS: u32 = 32;

/// A request of a session at a door of the core thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionRequest {
    /// The slot of its client.
    pub client: usize,
    /// The client's id, which is never used again.
    pub client_id: u64,
    /// What the session calls the request.
    pub number: u32,
}

/// Callers on other threads that wait for one operation.
#[derive(Debug)]
pub(super) struct Caller {
    /// Each sent the same request.
    pub replies: Vec<oneshot::Sender<CallEnd>>,
    /// By which it is known when it is sent again.
    pub name: Option<Name>,
    /// Whether a client says no more than that it is there.
    pub is_heartbeat: bool,
}

/// Who waits for a request's answer.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A session, for an operation.
    Session(SessionRequest),
    /// A session that watches.
    Follower(SessionRequest),
    /// Another thread, for an operation.
    Caller(Caller),
    /// Another thread that watches.
    Watcher(mpsc::Sender<Happened>),
    /// The one who sent an order to the cluster, at an admin door.
    Operator(oneshot::Sender<OperatorReply>),
}

/// The sorts of waiters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sort {
    Session,
    Follower,
    Caller,
    /// A caller that says no more than that it is there.
    Heartbeat,
    Watcher,
    Operator,
}

impl Waiter {
    fn sort(&self) -> Sort {
        match self {
            Waiter::Session(_) => Sort::Session,
            Waiter::Follower(_) => Sort::Follower,
            Waiter::Caller(caller) if caller.is_heartbeat => Sort::Heartbeat,
            Waiter::Caller(_) => Sort::Caller,
            Waiter::Watcher(_) => Sort::Watcher,
            Waiter::Operator(_) => Sort::Operator,
        }
    }
}

/// A request that was handed to the node.
#[derive(Debug)]
pub(super) struct Pending {
    pub ticket: Ticket,
    pub lane: LaneId,
    /// None of a watch and of an operator.
    operation: Option<InHand>,
    pub waiter: Waiter,
}

/// What is known of an operation that is in hand.
#[derive(Clone, Copy, Debug)]
struct InHand {
    kind: Kind,
    /// Whether it can change something: a transaction and a call on a tree may only read.
    is_write: bool,
    /// When it was asked.
    began: Time,
}

impl Pending {
    /// The session that watches, if one does.
    pub fn follower(&self) -> Option<SessionRequest> {
        match self.waiter {
            Waiter::Follower(asked) => Some(asked),
            _ => None,
        }
    }

    /// What becomes of it when its keyspace is dropped: the lane is gone and will not answer. A
    /// write may have taken effect before.
    pub fn ended_by_drop(&self) -> Outcome {
        Outcome::Refused(match self.operation {
            Some(InHand { is_write: true, .. }) => Refusal::OutcomeUnknown,
            Some(InHand { is_write: false, .. }) | None => Refusal::NotOpen,
        })
    }
}

/// All of them, and the inputs that the node's next turn takes.
pub(super) struct PendingRequests {
    pub inputs: Vec<Input>,
    all: Slab<Pending>,
    /// How many there are of each sort.
    counts: [usize; 6],
    /// How often a place was taken.
    taken: u32,
    /// When the clock stood at zero.
    epoch: Instant,
    /// How long a request may take that does not say.
    timeout: Span,
    /// Those of the keyspaces that are served, by their numbers.
    cells: Vec<Option<Arc<KeyspaceCells>>>,
}

impl PendingRequests {
    /// Nothing is in hand.
    pub fn new(epoch: Instant, timeout: Span) -> PendingRequests {
        let (inputs, all, cells) = (Vec::new(), Slab::new(), Vec::new());
        PendingRequests { inputs, all, counts: [0; 6], taken: 0, epoch, timeout, cells }
    }

    /// Keyspaces came or went.
    pub fn set_keyspaces(&mut self, table: &Table) {
        self.cells.clear();
        for served in &table.served {
            let number = number(served.keyspace().lane);
            self.cells.resize(number + 1, None);
            self.cells[number] = Some(Arc::clone(&served.cells));
        }
    }

    /// A moment as lanes have it.
    pub fn time(&self, at: Instant) -> Time {
        let nanos = at.saturating_duration_since(self.epoch).as_nanos();
        Time(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// When a request that is made now must have been answered if it does not say.
    pub fn deadline(&self, now: Time) -> Time {
        now + self.timeout
    }

    /// The ticket that the next request gets.
    pub fn next_ticket(&self) -> Ticket {
        let taken = u64::from(self.taken.wrapping_add(1));
        Ticket((taken << PLACE_BITS) | self.all.vacant_key() as u64)
    }

    fn insert(&mut self, lane: LaneId, operation: Option<InHand>, waiter: Waiter) -> Ticket {
        let ticket = self.next_ticket();
        self.taken = self.taken.wrapping_add(1);
        self.counts[waiter.sort() as usize] += 1;
        self.all.insert(Pending { ticket, lane, operation, waiter });
        ticket
    }

    fn remove(&mut self, place: usize) -> Pending {
        let pending = self.all.remove(place);
        self.counts[pending.waiter.sort() as usize] -= 1;
        pending
    }

    /// Hands an operation to the node.
    pub fn request(
        &mut self,
        lane: LaneId,
        operation: Operation,
        (began, deadline): (Time, Time),
        waiter: Waiter,
    ) {
        let (kind, is_write) = (Kind::of(&operation), operation.is_write());
        let ticket = self.insert(lane, Some(InHand { kind, is_write, began }), waiter);
        let request = Request { operation, deadline };
        self.inputs.push(Input::Request { lane, ticket, request });
    }

    /// Begins a watch.
    pub fn watch(&mut self, lane: LaneId, watch: Watch, waiter: Waiter) {
        let ticket = self.insert(lane, None, waiter);
        self.inputs.push(Input::Watch { lane, ticket, watch });
    }

    /// Hands what an operator asks to the node.
    pub fn control(&mut self, lane: LaneId, control: Control, deadline: Time, waiter: Waiter) {
        let ticket = self.insert(lane, None, waiter);
        self.inputs.push(Input::Control { lane, ticket, control, deadline });
    }

    /// The request of a ticket, unless it has ended.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Pending> {
        self.all.get_mut(place(ticket)).filter(|pending| pending.ticket == ticket)
    }

    /// Who is to be told what a lane has answered, unless it has ended before: nobody is then.
    pub fn answered(&mut self, ticket: Ticket, outcome: &Outcome, now: Time) -> Option<Waiter> {
        let pending = self.get_mut(ticket)?;
        if !outcome.is_last() {
            return match &pending.waiter {
                Waiter::Follower(asked) => Some(Waiter::Follower(*asked)),
                Waiter::Watcher(to) => Some(Waiter::Watcher(to.clone())),
                // A lane has one answer for what is no watch.
                _ => None,
            };
        }
        let Pending { lane, operation, waiter, .. } = self.remove(place(ticket));
        if let Some(InHand { kind, began, .. }) = operation
            && let Some(cells) = self.cells.get(number(lane)).and_then(Option::as_ref)
        {
            let took = Duration::from_nanos((now - began).0);
            cells.answered(kind, Ending::of(outcome), took);
        }
        Some(waiter)
    }

    /// Ends the watches that are meant, and tells their lanes; who was told of them.
    pub fn unwatch(&mut self, is_meant: impl Fn(&Pending) -> bool) -> Vec<Waiter> {
        let watches = self.count(Sort::Follower) + self.count(Sort::Watcher);
        if watches == 0 {
            return Vec::new();
        }
        let is_watch = |waiter: &Waiter| matches!(waiter.sort(), Sort::Follower | Sort::Watcher);
        let ended = self.take_out(|pending| is_watch(&pending.waiter) && is_meant(pending));
        let told = ended.into_iter().map(|Pending { lane, ticket, waiter, .. }| {
            self.inputs.push(Input::Unwatch { lane, ticket });
            waiter
        });
        told.collect()
    }

    /// Takes out what is in hand for keyspaces that went.
    pub fn take_dropped(&mut self) -> Vec<Pending> {
        let cells = std::mem::take(&mut self.cells);
        let is_served = |lane| cells.get(number(lane)).is_some_and(Option::is_some);
        let is_gone = |lane| lane >= LaneId::KEYSPACES && !is_served(lane);
        let gone = self.take_out(|pending| is_gone(pending.lane));
        self.cells = cells;
        gone
    }

    fn take_out(&mut self, is_meant: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let all = self.all.iter().filter(|(_, pending)| is_meant(pending));
        let places: Vec<usize> = all.map(|(place, _)| place).collect();
        places.into_iter().map(|place| self.remove(place)).collect()
    }

    /// How many there are of a sort.
    pub fn count(&self, sort: Sort) -> usize {
        self.counts[sort as usize]
    }

    /// How many operations there are that clients wait for, at whatever door. Watches do not end by
    /// themselves.
    pub fn awaited(&self) -> usize {
        self.count(Sort::Session) + self.called()
    }

    /// How many operations there are that other threads wait for.
    pub fn called(&self) -> usize {
        self.count(Sort::Caller) + self.count(Sort::Heartbeat)
    }

    /// How many operations on the keyspace of a lane there are.
    pub fn in_hand(&self, lane: LaneId) -> u64 {
        let is_meant = |pending: &Pending| pending.lane == lane && pending.operation.is_some();
        self.all.iter().filter(|(_, pending)| is_meant(pending)).count() as u64
    }
}

fn place(ticket: Ticket) -> usize {
    (ticket.0 % (1 << PLACE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn none_pending() -> PendingRequests {
        PendingRequests::new(Instant::now(), Span::secs(5))
    }

    /// Hands what an operator asks to a lane; its ticket, and where it is answered.
    fn asked(
        pending: &mut PendingRequests,
        lane: LaneId,
    ) -> (Ticket, oneshot::Receiver<OperatorReply>) {
        let (reply, told) = oneshot::channel();
        pending.control(
            lane,
            Control::Examine { from: 7, leaver: None },
            Time(9),
            Waiter::Operator(reply),
        );
        let Some(Input::Control { ticket, .. }) = pending.inputs.pop() else {
            panic!("it is handed over")
        };
        (ticket, told)
    }

    #[test]
    fn a_request_is_answered_once_and_its_place_goes_to_another_with_another_ticket() {
        let mut pending = none_pending();
        let (first, _told) = asked(&mut pending, LaneId::OVERLAY);
        assert!(pending.answered(Ticket(u64::MAX), &Outcome::Noted, Time(9)).is_none());
        let more = Outcome::More(Vec::new());
        assert!(pending.answered(first, &more, Time(9)).is_none(), "it is no watch");
        let waiter = pending.answered(first, &Outcome::Noted, Time(9));
        assert!(matches!(waiter, Some(Waiter::Operator(_))));
        let (second, _told) = asked(&mut pending, LaneId::OVERLAY);
        assert_eq!(place(first), place(second));
        assert!(pending.answered(first, &Outcome::Noted, Time(9)).is_none());
        assert_eq!(pending.count(Sort::Operator), 1);
    }

    #[test]
    fn the_watches_of_a_client_end_and_its_operations_do_not() {
        let mut pending = none_pending();
        let asked = |client_id| SessionRequest { client: 1, client_id, number: 0 };
        let get = Operation::get(bytes::Bytes::from_static(b"k"));
        let times = (Time(0), Time(9));
        pending.request(LaneId::KEYSPACES, get, times, Waiter::Session(asked(5)));
        for client_id in [5, 6] {
            let watch = Watch::Cluster;
            pending.watch(LaneId::EVENTS, watch, Waiter::Follower(asked(client_id)));
        }
        let is_meant = |client: &SessionRequest| client.client_id == 5;
        let meant = |one: &Pending| match &one.waiter {
            Waiter::Session(client) | Waiter::Follower(client) => is_meant(client),
            _ => false,
        };
        assert_eq!(pending.unwatch(meant).len(), 1);
        let last = pending.inputs.pop();
        assert!(matches!(last, Some(Input::Unwatch { lane: LaneId::EVENTS, .. })), "{last:?}");
        assert_eq!((pending.count(Sort::Session), pending.count(Sort::Follower)), (1, 1));
        assert_eq!(pending.in_hand(LaneId::KEYSPACES), 1);
    }

    #[test]
    fn clients_of_every_door_wait_for_their_operations() {
        let mut pending = none_pending();
        let asked = SessionRequest { client: 1, client_id: 5, number: 0 };
        let caller = Caller { replies: Vec::new(), name: None, is_heartbeat: false };
        let waiters = [Waiter::Session(asked), Waiter::Caller(caller)];
        for (count, waiter) in waiters.into_iter().enumerate() {
            assert_eq!(pending.awaited(), count);
            let get = Operation::get(bytes::Bytes::from_static(b"k"));
            pending.request(LaneId::KEYSPACES, get, (Time(0), Time(9)), waiter);
        }
        assert_eq!(pending.awaited(), 2);
        pending.watch(LaneId::EVENTS, Watch::Cluster, Waiter::Follower(asked));
        assert_eq!(pending.awaited(), 2, "nobody knows when a watch ends");
    }

    #[test]
    fn what_is_in_hand_for_a_dropped_keyspace_is_taken_out_at_the_drop() {
        let mut pending = none_pending();
        let lane = |number: u32| LaneId(LaneId::KEYSPACES.0 + number);
        let kept = samples::served("kept", "linearizable", &[], lane(1));
        pending.set_keyspaces(&Table { served: vec![Arc::new(kept)], ..Table::default() });
        let lanes = [lane(0), lane(1), LaneId::CATALOG];
        let [(late, _), ..] = lanes.map(|lane| asked(&mut pending, lane));
        let dropped = pending.take_dropped();
        assert_eq!(dropped.iter().map(|one| one.ticket).collect::<Vec<_>>(), [late]);
        assert_eq!(dropped[0].ended_by_drop(), Outcome::Refused(Refusal::NotOpen));
        assert_eq!(pending.count(Sort::Operator), 2, "these lanes will answer");
        // What the lane had said before comes for nobody, also if something else is asked by now.
        let (next, _told) = asked(&mut pending, lane(1));
        assert_eq!(place(next), place(late));
        assert!(pending.answered(late, &Outcome::Noted, Time(9)).is_none());
    }
}
