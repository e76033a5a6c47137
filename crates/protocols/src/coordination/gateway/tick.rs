//! What time brings to a gateway: deadlines, silent clients, and a silent primary.

use super::hear::answer_with;
use super::stream::GivenUp;
use super::{Asking, Gateway, Origin};
use crate::coordination::tree::Command;
use crate::coordination::{Context, Coordination, GROUP};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::SessionId;

/// How long ago a majority may have heard of this host, for it to say who is silent, and to answer
/// what sessions read.
pub(super) const SURE: Span = Span::secs(2);
/// The most that one tick counts of the silence of clients.
const COUNTED_MAX: Span = Span::millis(250);

impl Gateway {
    /// All that clients had sent by `read` was heard. A host that reads nobody for a while, or is
    /// halted, does not let that count: what clients say meanwhile waits, and some of it may have
    /// been turned away. So they are given what was left of their time before.
    pub fn count(&mut self, read: Time, now: Time) {
        invariant!(read <= now, "nothing was heard that is not sent yet");
        let passed = read - self.judged;
        self.judged = self.judged.max(read);
        if passed <= COUNTED_MAX {
            return;
        }
        probe!("coordination/time_does_not_count");
        let skipped = Span(passed.0 - COUNTED_MAX.0);
        for session in self.sessions.values_mut() {
            session.heard = (session.heard + skipped).min(now);
        }
        invariant!(self.sessions.values().all(|it| it.heard <= now), "no client is heard later");
    }
}

impl Coordination {
    /// Time has passed.
    pub(crate) fn tick_gateway(&mut self, cx: &mut Context<'_>) {
        self.end_late(cx);
        self.gateway.expected.tick(cx.now);
        if let Some(silent) = self.gateway.stream.tick(cx.now) {
            self.routes.is_silent(GROUP, silent);
        }
        self.end_unsure(cx);
        self.end_waiting(cx);
        self.expire_silent(cx);
    }

    /// Operations whose deadline has passed are answered: nobody knows what becomes of commands.
    fn end_late(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let is_late = |origin: &Origin| match origin {
            Origin::Operation(asking) => asking.waiting.deadline <= now,
            _ => false,
        };
        let needed = u8::try_from(self.routes.majority(GROUP)).unwrap_or(u8::MAX);
        // First those that wait behind others: none begins when it is late, and what a client has
        // asked behind a write that is not done is not done either.
        let late = || Refusal::NoQuorum { reached: 0, needed };
        let mut cut = Vec::new();
        for (client, connection) in &mut self.gateway.connections {
            let mut is_cut = false;
            connection.queue.retain(|(waiting, act)| {
                let is_late = waiting.deadline <= now;
                is_cut |= is_late && act.is_write() && !mutant!("tree_goes_on_behind_a_refusal");
                let stays = !is_late && !is_cut;
                if !stays {
                    // Nothing was done.
                    cx.fx.answer_early(waiting.ticket, Outcome::Refused(late()));
                }
                stays
            });
            cut.extend(is_cut.then_some(*client));
        }
        for client in cut {
            self.cut(client, late(), cx);
        }
        let mut ended = BTreeSet::new();
        for (origin, given_up) in self.gateway.stream.give_up(is_late) {
            self.gateway.begun -= usize::from(origin.begins());
            let Origin::Operation(Asking { waiting, client, .. }) = origin else { continue };
            let refusal = match given_up {
                GivenUp::Command => Refusal::OutcomeUnknown,
                GivenUp::Ahead | GivenUp::Question(_) => late(),
            };
            answer_with(waiting, Outcome::Refused(refusal), cx);
            self.end_if_over(client, cx);
            if let (Some(client), GivenUp::Question(number)) = (client, given_up) {
                self.gateway.end_question(client, number);
                ended.insert(client);
            }
        }
        // Behind all of them: what is given up goes ahead of nothing.
        ended.into_iter().for_each(|client| self.go_on(client, cx));
    }

    /// Clients are told in time that this host may be cut off: before their sessions can have
    /// expired elsewhere, they look for another host.
    fn end_unsure(&mut self, cx: &mut Context<'_>) {
        let since = cx.now - self.gateway.stream.confirmed;
        let is_unsure = |timeout: Span| since >= Span(timeout.0 / 3 * 2);
        let sessions = self.gateway.sessions.values();
        let unsure: Vec<Ticket> = sessions
            .filter(|session| is_unsure(session.timeout))
            .filter_map(|session| session.connection)
            .collect();
        for ticket in unsure.into_iter().filter(|_| !mutant!("tree_stays_unsure")) {
            probe!("coordination/unsure");
            self.end_connection(ticket, Refusal::NoRoute, cx);
        }
    }

    /// Clients that have said nothing for too long lose their sessions.
    fn expire_silent(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let judged = self.gateway.judged;
        if now - self.gateway.stream.confirmed >= SURE {
            // Its clients are sent away: that nothing is heard of them is no wonder.
            self.gateway.was_unsure = !mutant!("tree_ends_sessions_unsure");
        } else if core::mem::take(&mut self.gateway.was_unsure) {
            self.gateway.sessions.values_mut().for_each(|session| session.heard = now);
        }
        if self.gateway.was_unsure {
            return;
        }
        let sessions = self.gateway.sessions.iter();
        let silent: Vec<(SessionId, u64)> = sessions
            .filter(|(_, it)| !it.is_expiring && judged - it.heard >= it.timeout)
            .map(|(session, it)| (*session, it.attached))
            .collect();
        for (session, attached) in silent {
            let command = Command::Expire { session, attached };
            if self.command(command, Some(Origin::Expire(session, attached)), cx).is_err() {
                return;
            }
            if let Some(known) = self.gateway.sessions.get_mut(&session) {
                known.is_expiring = true;
            }
        }
    }
}
