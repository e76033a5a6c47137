//! What other threads ask for, on the core thread: what becomes of a call, and what was asked
//! before.
//!
//! Calls are taken only while the disk keeps up, as clients on the core thread are read. However
//! many come, only so many are in hand at once; one more is refused at once as overload.

use super::overflow::WAITING_MAX;
use super::queues::{Call, CallEnd, Called, Calls, ClientCall, Named, QUEUED_MAX};
use super::remembered::{Known, Remembered};
use super::watches;
use crate::core::MAINTAIN_EVERY;
use crate::keyspaces::Table;
use crate::pending::{Caller, PendingRequests, Sort, Waiter};
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::Time;
use quorate_kernel::tree::Act;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The most calls in hand.
const IN_HAND_MAX: usize = 8192;
/// The most beside them where a client says no more than that it is there: one of each session.
/// Where there is no room for anything else sessions are not to end for that, and where there are
/// many sessions others are not to find no room.
const HEARTBEATS_MAX: usize = 65_536;
/// The most calls taken in one turn, and the most for which there was no room in their queue.
const TAKEN_MAX: usize = 256;
const OVERFLOW_TAKEN_MAX: usize = 1024;

const _: () = assert!(QUEUED_MAX.is_multiple_of(TAKEN_MAX));
const _: () = assert!(WAITING_MAX.is_multiple_of(OVERFLOW_TAKEN_MAX));

/// What is to be done about a call.
enum Decision {
    Begin,
    /// The same request is in hand.
    Join(Ticket),
    Tell(CallEnd),
}

/// The core thread's side: hands operations and watches to the node.
pub(crate) struct Callers {
    receiver: Receiver<ClientCall>,
    /// Where calls come for which that had no room.
    overflow: Receiver<ClientCall>,
    calls: Arc<Calls>,
    remembered: Remembered,
    me: Incarnation,
    taken: Taken,
    overflow_taken: Taken,
    is_stopping: bool,
}

/// Up to when all was taken of a queue.
#[derive(Default)]
struct Taken {
    /// When some was taken, and more was left each time.
    full: VecDeque<Time>,
    upto: Time,
}

impl Taken {
    /// Some was taken. What can wait in the queue is taken in so many turns.
    fn note(&mut self, now: Time, is_empty: bool, turns_count: usize) {
        if is_empty {
            self.full.clear();
            return self.upto = now;
        }
        self.full.push_back(now);
        if self.full.len() >= turns_count
            && let Some(first) = self.full.pop_front()
        {
            // As many were taken since then as could wait.
            self.upto = first;
        }
    }
}

impl Callers {
    /// Nobody has called yet.
    pub fn new(
        (receiver, overflow): (Receiver<ClientCall>, Receiver<ClientCall>),
        calls: Arc<Calls>,
        me: Incarnation,
    ) -> Callers {
        Callers {
            receiver,
            overflow,
            calls,
            remembered: Remembered::default(),
            me,
            taken: Taken::default(),
            overflow_taken: Taken::default(),
            is_stopping: false,
        }
    }

    /// Takes some of the calls that have arrived.
    pub fn take(&mut self, now: Time, pending: &mut PendingRequests) {
        self.calls.on_look();
        let mut is_empty = false;
        for _ in 0..TAKEN_MAX {
            let Ok(asked) = self.receiver.try_recv() else {
                is_empty = true;
                break;
            };
            self.take_one(asked, now, pending);
        }
        self.taken.note(now, is_empty, QUEUED_MAX / TAKEN_MAX);
        is_empty = false;
        for _ in 0..OVERFLOW_TAKEN_MAX {
            let Ok(asked) = self.overflow.try_recv() else {
                is_empty = true;
                break;
            };
            self.calls.on_overflow_taken(&asked);
            self.take_one(asked, now, pending);
        }
        // Pings may wait, and sessions that go on.
        self.overflow_taken.note(now, is_empty, 2 * WAITING_MAX / OVERFLOW_TAKEN_MAX);
    }

    fn take_one(&mut self, asked: ClientCall, now: Time, pending: &mut PendingRequests) {
        match asked {
            ClientCall::Call(called) => self.begin(called, now, pending),
            ClientCall::Watch(watching) if self.is_stopping => {
                watches::end(&watching.to, Refusal::Stopping);
            }
            ClientCall::Watch(watching) => {
                pending.watch(watching.lane, watching.watch, Waiter::Watcher(watching.to));
            }
        }
    }

    /// Whether calls are left that [`Callers::take`] had no turn for.
    pub fn has_more(&self) -> bool {
        !self.taken.full.is_empty() || !self.overflow_taken.full.is_empty()
    }

    /// All that was called for by then was taken, or turned away.
    pub fn taken_upto(&self) -> Time {
        self.taken.upto.min(self.overflow_taken.upto)
    }

    fn begin(&mut self, called: Called, now: Time, pending: &mut PendingRequests) {
        let Called { call, at, reply } = called;
        // Whoever asked may have gone, here and below.
        if reply.is_closed() {
            return;
        }
        match self.consider(&call, pending) {
            Decision::Begin => {}
            Decision::Join(ticket) => {
                let first = pending.get_mut(ticket).expect("it has not ended");
                let Waiter::Caller(first) = &mut first.waiter else {
                    panic!("only callers' requests are remembered")
                };
                return first.replies.push(reply);
            }
            Decision::Tell(told) => return drop(reply.send(told)),
        }
        let lane = call.keyspace.keyspace().lane;
        let name = call.named.map(|named| (lane, named.id));
        let is_heartbeat = is_heartbeat(&call.operation);
        let waiter = Waiter::Caller(Caller { replies: vec![reply], name, is_heartbeat });
        let times = (pending.time(at).min(now), pending.time(call.deadline));
        pending.request(lane, call.operation, times, waiter);
    }

    fn consider(&mut self, call: &Call, pending: &PendingRequests) -> Decision {
        let refused = |refusal| {
            let outcome = Outcome::Refused(refusal);
            Decision::Tell(CallEnd::Ended { outcome, is_repeated: false })
        };
        let known = match call.named {
            Some(Named { repeat: Some((first, _)), .. }) if first != self.me => {
                return Decision::Tell(CallEnd::Elsewhere);
            }
            _ if self.is_stopping => return refused(Refusal::Stopping),
            _ if !has_room(&call.operation, pending) => return refused(Refusal::Overloaded),
            Some(Named { id, digest, repeat }) => {
                let (name, ticket) = ((call.keyspace.keyspace().lane, id), pending.next_ticket());
                let age = repeat.map(|(_, age)| age);
                self.remembered.arrive(name, digest, ticket, age, MAINTAIN_EVERY)
            }
            None => Known::New,
        };
        match known {
            Known::New => Decision::Begin,
            // It has not ended, so it is still there.
            Known::InHand(ticket) => Decision::Join(ticket),
            Known::Done(outcome) => Decision::Tell(CallEnd::Ended { outcome, is_repeated: true }),
            Known::Reused => Decision::Tell(CallEnd::Reused),
            Known::Forgotten => Decision::Tell(CallEnd::Forgotten),
        }
    }

    /// Tells callers how their operation has ended.
    pub fn end(&mut self, caller: Caller, outcome: &Outcome) {
        if let Some(name) = caller.name {
            self.remembered.end(name, outcome);
        }
        for (index, reply) in caller.replies.into_iter().enumerate() {
            let told = CallEnd::Ended { outcome: outcome.clone(), is_repeated: index > 0 };
            drop(reply.send(told));
        }
    }

    /// Keyspaces came or went.
    pub fn set_keyspaces(&mut self, table: &Table) {
        self.calls.set_keyspaces(table.served.iter().cloned().collect());
    }

    /// A tick has passed.
    pub fn tick(&mut self, pending: &mut PendingRequests) {
        watches::maintain(pending);
        self.remembered.tick();
    }

    /// Takes no further calls.
    pub fn finish(&mut self, pending: &mut PendingRequests) {
        self.is_stopping = true;
        watches::finish(pending);
    }
}

/// Whether an operation finds room.
fn has_room(operation: &Operation, pending: &PendingRequests) -> bool {
    match is_heartbeat(operation) {
        true => pending.count(Sort::Heartbeat) < HEARTBEATS_MAX,
        false => pending.count(Sort::Caller) < IN_HAND_MAX,
    }
}

/// Whether a client says no more than that it is there.
fn is_heartbeat(operation: &Operation) -> bool {
    matches!(operation, Operation::Tree(ask) if ask.act == Act::Ping)
}

#[cfg(test)]
mod tests;
