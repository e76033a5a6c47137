//! How a transaction ended whose client was told that nobody knows yet.
//!
//! The client has a token, and asks with it at any host. That one asks the group that decides,
//! which remembers how the transaction ended until the host that has asked for it says that it
//! knows; and that host, which remembers it longer. Whoever knows first is believed: an end is
//! never changed. A transaction that nobody has decided, and that is not under way, ends by the
//! question (see [`Request::Outcome`](crate::serializable::Request)).

use super::in_hand::{Doing, Phase};
use super::items::Sheet;
use crate::sealed::Sealer;
use crate::serializable::lane::message::Message;
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::{self, ActError, Cause, Client, Done, Results, Token, TxId};
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Incarnation, LaneId, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::receipt::TokenError;
use quorate_kernel::refusal::Ended;
use quorate_kernel::time::Time;

/// How many ends a host remembers: of those alone whose clients were told that nobody knows.
const ENDED_MAX: usize = 16_384;
const BODY_BYTES: usize = 32;

/// A transaction whose end is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// What its group is asked with.
    pub token: Token,
    /// The host that has asked for it.
    pub host: NodeId,
    /// Whether its group has said that it does not know.
    pub group_forgot: bool,
    /// The same of the host.
    pub host_forgot: bool,
}

impl Recalled {
    /// ```text
    /// counter 8 | client 8 | group that decides 8 | host 8
    /// ```
    fn body(self) -> [u8; BODY_BYTES] {
        let Token { tx, coordinator } = self.token;
        let mut body = [0; BODY_BYTES];
        let words = [tx.counter, tx.client.0, coordinator.0, self.host.0];
        for (place, word) in body.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        body
    }

    fn of_body(body: &[u8; BODY_BYTES]) -> Recalled {
        let word = |at: usize| {
            let bytes = body[8 * at..].first_chunk().expect("there are four words");
            u64::from_be_bytes(*bytes)
        };
        let tx = TxId { counter: word(0), client: Client(word(1)) };
        let token = Token { tx, coordinator: GroupId(word(2)) };
        Recalled { token, host: NodeId(word(3)), group_forgot: false, host_forgot: false }
    }

    /// What a client is given to ask with.
    pub fn seal(self, sealer: &Sealer, lane: LaneId) -> Bytes {
        sealer.seal(lane, &self.body())
    }

    fn open(sealer: &Sealer, lane: LaneId, token: &[u8]) -> Result<Recalled, TokenError> {
        sealer.open(lane, token).map(|body| Recalled::of_body(&body))
    }
}

/// The ends that this start of a host has learnt after its clients were told that nobody knows.
#[derive(Debug, Default)]
pub struct Ends {
    of: BTreeMap<TxId, Ended>,
    /// The same, the oldest first.
    order: VecDeque<TxId>,
}

impl Ends {
    /// It is known how a transaction ended.
    pub fn note(&mut self, tx: TxId, outcome: &serializable::Outcome) {
        let Some(ended) = ending(outcome).filter(|_| !mutant!("lane_ends_unnoted")) else {
            return;
        };
        if self.of.insert(tx, ended).is_none() {
            self.order.push_back(tx);
        }
        if self.order.len() > ENDED_MAX {
            let oldest = self.order.pop_front();
            oldest.and_then(|oldest| self.of.remove(&oldest));
        }
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        invariant!(self.of.len() == self.order.len(), "each end is remembered once");
        invariant!(self.order.len() <= ENDED_MAX, "what is remembered is bounded");
    }
}

/// How a transaction ended, if it says so for all groups.
fn ending(outcome: &serializable::Outcome) -> Option<Ended> {
    match outcome {
        serializable::Outcome::Committed(results) => Some(of_results(results)),
        // Other groups may have done their shares.
        serializable::Outcome::Aborted(Cause::Lost) => None,
        serializable::Outcome::Aborted(_) => Some(Ended::Aborted),
        serializable::Outcome::Forgotten { .. } if mutant!("lane_recall_guesses") => {
            Some(Ended::Aborted)
        }
        serializable::Outcome::Running | serializable::Outcome::Forgotten { .. } => None,
    }
}

/// A change that cannot be done leaves the others be: it may be the only one.
fn of_results(results: &[(GroupId, Results)]) -> Ended {
    let is_done = |told: &Result<Done, ActError>| {
        !matches!(told, Err(_) | Ok(Done::Expiry { changed: false }))
    };
    let all = || results.iter().flat_map(|(_, of_group)| of_group);
    let (done, count) = (all().filter(|told| is_done(told)).count(), all().count());
    if done == count || mutant!("lane_ends_as_committed") {
        Ended::Committed
    } else if done == 0 {
        Ended::Aborted
    } else {
        Ended::Partial
    }
}

impl Serializable {
    /// The refusal of a transaction whose end is asked for from now on.
    pub(super) fn outcome_open(&self, token: Token, cx: &Context<'_>) -> Refusal {
        let host = cx.me.node;
        let recalled = Recalled { token, host, group_forgot: false, host_forgot: false };
        Refusal::OutcomeOpen { token: recalled.seal(&self.settings.sealer, cx.lane) }
    }

    /// A client asks how a transaction ended.
    pub(super) fn begin_recall(
        &mut self,
        ticket: Ticket,
        deadline: Time,
        token: &[u8],
        cx: &mut Context<'_>,
    ) {
        let recalled = Recalled::open(&self.settings.sealer, cx.lane, token);
        let recalled = recalled.map_err(Refusal::Token).and_then(|recalled| {
            // Who leads a group that is not known yet may be heard of, and the host may know.
            let refusal = self.cannot_begin().filter(|refusal| *refusal != Refusal::NoRoute);
            refusal.map_or(Ok(recalled), Err)
        });
        match recalled {
            Ok(recalled) => {
                let mut doing = Doing::new(ticket, deadline, Sheet::default());
                doing.phase = Phase::Recalling(recalled);
                self.go_on(doing, cx);
            }
            // Nothing was done.
            Err(refusal) => cx.fx.answer_early(ticket, Outcome::Refused(refusal)),
        }
    }

    /// Asks the host that has asked for a transaction how it ended, or looks here; whether that is
    /// answered.
    pub(super) fn recall(&mut self, question: u64, cx: &mut Context<'_>) -> bool {
        let Some(Doing { phase: Phase::Recalling(recalled), .. }) = self.clients.get_mut(question)
        else {
            return false;
        };
        let (tx, host) = (recalled.token.tx, recalled.host);
        if host != cx.me.node {
            // Who has left answers nobody any more.
            recalled.host_forgot |= self.hosts.has_left(host);
            if recalled.host_forgot {
                return self.give_up_recall(question, cx);
            }
            // A question promises nothing.
            cx.fx.send_early(host, Message::Recall { question, tx });
            return false;
        }
        match self.remembered(tx) {
            Remembered::Asking => false,
            Remembered::Ended(ended) => self.end_recall(question, ended, cx),
        }
    }

    /// Another host asks how a transaction ended that was asked for here.
    pub(crate) fn on_recall(
        &self,
        from: Incarnation,
        question: u64,
        tx: TxId,
        cx: &mut Context<'_>,
    ) {
        invariant!(from.node != cx.me.node, "this host looks itself");
        let Remembered::Ended(ended) = self.remembered(tx) else { return };
        let is_over = !self.clients.names.open.contains(&(tx.client, tx.counter));
        invariant!(is_over, "what is asked for is answered when it is known");
        // It rests on what a majority has said, or on nothing.
        cx.fx.send_early(from.node, Message::Recalled { question, tx, ended });
    }

    /// The host that has asked for a transaction tells how it ended, if it knows.
    pub(crate) fn on_recalled(
        &mut self,
        from: Incarnation,
        question: u64,
        (tx, ended): (TxId, Option<Ended>),
        cx: &mut Context<'_>,
    ) {
        let Some(Doing { phase: Phase::Recalling(recalled), ticket, .. }) =
            self.clients.get(question)
        else {
            return;
        };
        invariant!(ticket.is_some(), "somebody waits for it");
        // An earlier start of this host may have asked another host, or for another transaction,
        // under this number.
        let is_other = recalled.host != from.node || recalled.token.tx != tx;
        if is_other && !mutant!("lane_recall_believes_anybody") {
            return;
        }
        invariant!(recalled.host != cx.me.node, "this host looks itself");
        self.end_recall(question, ended, cx);
    }

    /// The group that decides tells how a transaction ended.
    pub(super) fn recalled_by_group(
        &mut self,
        question: u64,
        outcome: &serializable::Outcome,
        cx: &mut Context<'_>,
    ) {
        match ending(outcome) {
            Some(ended) => _ = self.end_recall(question, Some(ended), cx),
            None if matches!(outcome, serializable::Outcome::Running) => {}
            None => {
                if let Some(Doing { phase: Phase::Recalling(recalled), .. }) =
                    self.clients.get_mut(question)
                {
                    recalled.group_forgot = true;
                }
                // The host may know by now.
                if !self.recall(question, cx) {
                    self.give_up_recall(question, cx);
                }
            }
        }
    }

    /// The host tells how it ended, or that it does not know; whether the client is answered.
    fn end_recall(&mut self, question: u64, ended: Option<Ended>, cx: &mut Context<'_>) -> bool {
        let Some(ended) = ended else {
            if let Some(Doing { phase: Phase::Recalling(recalled), .. }) =
                self.clients.get_mut(question)
            {
                recalled.host_forgot = true;
            }
            return self.give_up_recall(question, cx);
        };
        if let Some(Doing { ticket: Some(ticket), .. }) = self.clients.remove(question) {
            // A majority has said so: nothing waits for this node's disk.
            cx.fx.answer_early(ticket, Outcome::Ended(ended));
        }
        true
    }

    /// If nobody knows any more the client is told so; whether it was.
    fn give_up_recall(&mut self, question: u64, cx: &mut Context<'_>) -> bool {
        let doing = self.clients.get(question);
        let is_forgotten = doing.is_some_and(|doing| {
            matches!(&doing.phase, Phase::Recalling(it) if it.group_forgot && it.host_forgot)
        });
        if is_forgotten && let Some(mut doing) = self.clients.remove(question) {
            doing.refuse(Refusal::OutcomeForgotten, cx);
        }
        is_forgotten
    }

    fn remembered(&self, tx: TxId) -> Remembered {
        if self.clients.names.open.contains(&(tx.client, tx.counter)) {
            return Remembered::Asking;
        }
        Remembered::Ended(self.clients.ended.of.get(&tx).copied())
    }
}

/// What a host remembers of a transaction.
enum Remembered {
    /// It does not know yet how it ended.
    Asking,
    /// That; nothing if it does not know any more, or never did.
    Ended(Option<Ended>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_brings_back_what_it_was_made_of() {
        let tx = TxId { counter: 1 << 60, client: Client(7) };
        let token = Token { tx, coordinator: GroupId(9) };
        let recalled = Recalled { token, host: NodeId(3), group_forgot: false, host_forgot: false };
        let sealer = Sealer::new([5; 32], b"end");
        let sealed = recalled.seal(&sealer, LaneId(4));
        assert_eq!(Recalled::open(&sealer, LaneId(4), &sealed), Ok(recalled));
        assert_eq!(Recalled::open(&sealer, LaneId(5), &sealed), Err(TokenError::Forged));
    }

    #[test]
    fn the_oldest_ends_are_forgotten_first() {
        let mut ended = Ends::default();
        let tx = |counter| TxId { counter, client: Client(1) };
        for counter in 0..=ENDED_MAX as u64 {
            ended.note(tx(counter), &serializable::Outcome::Committed(Default::default()));
            ended.check();
        }
        assert_eq!(ended.of.get(&tx(0)), None);
        assert_eq!(ended.of.get(&tx(1)), Some(&Ended::Committed));
        for unclear in [
            serializable::Outcome::Running,
            serializable::Outcome::Forgotten { lowest: 1 },
            serializable::Outcome::Aborted(Cause::Lost),
        ] {
            ended.note(tx(u64::MAX), &unclear);
        }
        assert_eq!(ended.of.get(&tx(u64::MAX)), None);
    }
}
