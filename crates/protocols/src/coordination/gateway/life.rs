//! When what a gateway has asked and told does not count any more.

use super::hear::answer_with;
use super::{Asking, Origin};
use crate::coordination::{Context, Coordination};
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::invariant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;

impl Coordination {
    /// The primary counts in another life of the tree. If it is a later one, something that was
    /// told here may be lost: clients come again, and their sessions are judged anew.
    pub(super) fn begin_life(&mut self, life: u64, done: u64, cx: &mut Context<'_>) {
        let known = self.gateway.stream.life();
        if known.is_some_and(|known| life < known) {
            // Who says so does not know yet that it leads no more.
            return;
        }
        if known.is_some() || done > 0 {
            probe!("coordination/another_life");
            self.give_up_all(&Refusal::NoRoute, cx);
            self.gateway.sessions.clear();
        }
        self.gateway.seen = 0;
        self.gateway.stream.begin_life(life, done);
        self.gateway.here.begin_life();
        invariant!(self.gateway.stream.is_in_order(), "what is left of it was asked");
    }

    /// Nothing that this start of the node asks is done any more.
    pub(super) fn end_all(&mut self, cx: &mut Context<'_>) {
        self.give_up_all(&Refusal::Stopping, cx);
    }

    /// What a client follows may have changed unseen, and its session may have ended, or moved, as
    /// may one that it waits for: it comes again, and looks.
    pub(super) fn end_connections(&mut self, refusal: &Refusal, cx: &mut Context<'_>) {
        let all: Vec<Ticket> = self.gateway.connections.keys().copied().collect();
        for ticket in all {
            self.end_connection(ticket, refusal.clone(), cx);
        }
    }

    /// Nobody waits any more: operations are answered, and connections end.
    fn give_up_all(&mut self, refusal: &Refusal, cx: &mut Context<'_>) {
        for (origin, _) in self.gateway.stream.give_up(|_| true) {
            if let Origin::Operation(Asking { waiting, .. }) = origin {
                answer_with(waiting, Outcome::Refused(Refusal::OutcomeUnknown), cx);
            }
        }
        self.gateway.begun = 0;
        self.end_connections(refusal, cx);
    }
}
