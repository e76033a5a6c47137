//! What becomes of operations that wait: questions are repeated, views looked for, and those that
//! cannot end are given up.

use super::coordinator::{Intent, Operation, Phase};
use crate::linearizable::views::conditions::suspected;
use crate::linearizable::{Context, Linearizable};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::ring::Ring;
use quorate_kernel::time::Span;
use quorate_kernel::view::View;

/// How long an operation waits for members of which most are suspected: a suspicion may be wrong,
/// and who is there answers within a moment. Longer than that nobody should wait for a refusal.
const GRACE: Span = Span::millis(100);

impl Linearizable {
    /// If so many members of a view are suspected that no quorum is left: the refusal that says so.
    /// It is better told soon than after a deadline.
    fn is_out_of_reach(&self, view: &View) -> Option<Refusal> {
        let ring: &Ring = self.volatile.ring.as_ref()?;
        let (suspected, members) = (suspected(view, ring), view.members().len());
        (members - suspected < view.majority()).then(|| {
            let (suspected, members) = (suspected as u8, members as u8);
            Refusal::Minority { view: view.id.version, suspected, members }
        })
    }

    /// How long an operation that begins may wait until it is looked after. Where its view is out
    /// of reach, newer ones are asked for at once: there is no more time than that.
    pub(crate) fn first_wait(
        &mut self,
        operation: &Operation,
        usual: Span,
        cx: &mut Context<'_>,
    ) -> Span {
        if !self.volatile.has_suspects || self.is_out_of_reach(&operation.view).is_none() {
            return usual;
        }
        self.seek_news(operation.token(), cx);
        usual.min(GRACE)
    }

    /// Suspicions have changed: operations that may be out of reach now are looked after soon,
    /// however long they would have waited before they asked again.
    pub(crate) fn hurry(&mut self, cx: &mut Context<'_>) {
        let ring: Option<&Ring> = self.volatile.ring.as_deref();
        self.volatile.has_suspects = ring
            .is_some_and(|ring| ring.hosts().iter().any(|host| ring.is_suspected(host.who.node)));
        if !self.volatile.has_suspects {
            return;
        }
        let is_lost = |one: &Operation| {
            one.alarm > cx.now + GRACE && self.is_out_of_reach(&one.view).is_some()
        };
        let operations = self.volatile.operations.by_id.iter();
        let mut lost: Vec<u64> =
            operations.filter(|(_, one)| is_lost(one)).map(|(id, _)| *id).collect();
        lost.sort_unstable();
        lost.into_iter().for_each(|id| self.wake_after(id, GRACE, cx));
    }

    /// The timer of all operations fired.
    pub(crate) fn on_alarm(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.volatile.operations.next_due(cx) {
            let deadline = self.volatile.operations.get_mut(id).map(|operation| operation.deadline);
            if deadline.is_some_and(|deadline| cx.now >= deadline) {
                self.expire(id, cx);
            } else {
                self.repeat(id, cx);
            }
        }
    }

    /// Goes on with an operation that waits for nothing but time; returns whether it was one.
    fn lose_patience(&mut self, id: u64, cx: &mut Context<'_>) -> bool {
        let Some(operation) = self.volatile.operations.get_mut(id) else { return true };
        let (span, left) = (operation.retry, operation.deadline - cx.now);
        let has_waited = match &mut operation.phase {
            Phase::Read(reading) => reading.lose_patience(),
            Phase::Page(paging) => paging.lose_patience(),
            Phase::Write { .. } | Phase::Examine(_) => false,
            Phase::Settle(_) => {
                self.wake_after(id, left, cx);
                return true;
            }
        };
        if has_waited {
            self.wake_after(id, span, cx);
            self.advance_read(id, cx);
            self.advance_page(id, cx);
        }
        has_waited
    }

    fn repeat(&mut self, id: u64, cx: &mut Context<'_>) {
        if self.lose_patience(id, cx) {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        if let Phase::Read(reading) = &mut operation.phase
            && let Some(asked) = reading.widen()
        {
            probe!("linearizable/widen_when_late");
            let (view, crashes) = (&operation.view, &self.volatile.crashes);
            for node in asked.iter().filter(|node| !reading.has_answer_of(view, crashes, **node)) {
                self.volatile.preference.note_late(*node, cx.now);
            }
        }
        if operation.is_repeated && self.end_examination(id, cx) {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        let span = operation.retry;
        let was_repeated = core::mem::replace(&mut operation.is_repeated, true);
        operation.retry = Span((span.0 * 2).min(super::rtt::RETRY_MAX.0));
        self.volatile.counters.retries += 1;
        probe!("linearizable/retry");
        let (view, token) = (Arc::clone(&operation.view), operation.token());
        if let Some(id) = self.retarget(id, cx) {
            return self.wake_after(id, span, cx);
        }
        let refusal = self.is_out_of_reach(&view);
        if was_repeated || refusal.is_some() {
            // Its members may all have been replaced meanwhile.
            self.seek_news(token, cx);
        }
        // A write that is on its way may yet be acknowledged: only its deadline ends the wait. What
        // a get imposes was there before it.
        let patience = |operation: &mut Operation| {
            let is_write = matches!(operation.phase, Phase::Write { .. });
            let is_open = !is_write || matches!(operation.ask, Intent::Get);
            is_open.then(|| operation.since + GRACE - cx.now)
        };
        let patience = self.volatile.operations.get_mut(id).and_then(patience);
        let span = match (refusal, patience) {
            (Some(refusal), Some(Span(0))) => {
                self.volatile.counters.failed_fast += 1;
                probe!("linearizable/failed_fast");
                return self.give_up(id, refusal, cx);
            }
            (Some(_), Some(patience)) => span.min(patience),
            _ => span,
        };
        self.ask_missing(id, cx);
        self.wake_after(id, span, cx);
    }

    /// Ends an operation that reached no quorum.
    fn give_up(&mut self, id: u64, refusal: Refusal, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        let refusal = match (&operation.phase, &operation.ask) {
            (Phase::Write { .. }, Intent::Put(_) | Intent::Delete) => Refusal::OutcomeUnknown,
            _ => refusal,
        };
        self.finish(id, Outcome::Refused(refusal), cx);
    }

    fn expire(&mut self, id: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        let needed = operation.view.majority() as u8;
        let no_quorum = |reached: usize| Refusal::NoQuorum { reached: reached as u8, needed };
        let refusal = match &operation.phase {
            Phase::Read(reading) => {
                no_quorum(reading.answered(&operation.view, &self.volatile.crashes))
            }
            Phase::Page(paging) => no_quorum(paging.replies.len()),
            Phase::Examine(examining) => no_quorum(examining.replies.len()),
            // Of some key that it read.
            Phase::Settle(_) => no_quorum(0),
            // A get imposes a value that was there before it: it has changed nothing.
            Phase::Write { acks, .. } => no_quorum(acks.len()),
        };
        self.volatile.counters.expired += 1;
        probe!("linearizable/expired");
        self.give_up(id, refusal, cx);
    }
}
