//! The proposer: one attempt to have a change follow a view, through all three phases.

use super::ballot::{Ballot, Rounds};
use super::message::{Accepted, Message, Promise};
use super::step::Step;
use super::value::{Ground, Value};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::iter;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::view::{Change, View, ViewId};

/// Where a proposer is.
#[derive(Clone, Debug, PartialEq)]
enum Phase<V> {
    /// Phase 1: gathering promises, and with them the proposal accepted under the highest ballot.
    Prepare(Option<(Ballot, V)>),
    /// Phase 2: gathering acceptances of this change.
    Accept(V),
    /// Phase 3: the change is decided; gathering installations.
    Install(V),
    /// A majority has installed it.
    Done(V),
}

/// One node's attempt to have a change follow a view. Volatile: after a restart another attempt
/// finds and completes what this one left behind.
#[derive(Clone, Debug)]
pub struct Proposer<V: Value = Change> {
    ground: Arc<V::Ground>,
    want: V,
    ballot: Ballot,
    phase: Phase<V>,
    /// The members that consented in the open phase. By sender: a set of replies would merge equal
    /// ones, and all replies of a calm run are equal.
    consents: BTreeSet<NodeId>,
    /// The highest round that refusals of the present ballot named; `None` without a refusal.
    refused: Option<u64>,
}

impl<V: Value> Proposer<V> {
    /// Begins with phase 1; the message is for all members. `None` if what is wanted does not fit.
    #[must_use]
    pub fn begin(
        rounds: &mut Rounds,
        ground: Arc<V::Ground>,
        want: V,
    ) -> Option<(Proposer<V>, Message<V>)> {
        if !want.fits(&ground) {
            return None;
        }
        let proposer = Proposer {
            ground,
            want,
            ballot: rounds.next(0),
            phase: Phase::Prepare(None),
            consents: BTreeSet::new(),
            refused: None,
        };
        let message = proposer.question();
        Some((proposer, message))
    }

    /// Takes a `P1B`.
    pub fn on_promise(&mut self, from: Incarnation, reply: &Promise<V>) -> Step<V> {
        let Phase::Prepare(found) = &self.phase else { return Step::Nothing };
        if !self.is_for_me(from, reply.view) {
            return Step::Nothing;
        }
        if !reply.ok {
            return self.on_refusal(reply.ballot, reply.installed, reply.promised);
        }
        let is_sound = reply.accepted.as_ref().is_none_or(|(_, value)| value.fits(&self.ground));
        if reply.ballot != self.ballot || reply.installed != self.id() || !is_sound {
            return Step::Nothing;
        }
        invariant!(self.is_short(), "a phase whose majority is there is over");
        // What may have been decided under a lower ballot was accepted by a member of every
        // majority, and the highest ballot among them carries it (CATS §4.1, Algorithm 1 line 8).
        let found = found.iter().chain(&reply.accepted).max_by_key(|(ballot, _)| *ballot).cloned();
        self.phase = Phase::Prepare(found.clone());
        if !self.consent(from) {
            return Step::Nothing;
        }
        let found = found.filter(|_| !mutant!("decide_without_quorum_value"));
        let value = found.map_or_else(|| self.want.clone(), |(_, value)| value);
        if value != self.want {
            probe!("reconfigure/adopted");
        }
        invariant!(value.fits(&self.ground), "what does not fit is not proposed");
        self.phase = Phase::Accept(value);
        Step::Send(self.question())
    }

    /// Takes a `P2B`.
    pub fn on_accepted(&mut self, from: Incarnation, reply: &Accepted) -> Step<V> {
        let Phase::Accept(value) = self.phase.clone() else { return Step::Nothing };
        if !self.is_for_me(from, reply.view) {
            return Step::Nothing;
        }
        if !reply.ok {
            return self.on_refusal(reply.ballot, reply.installed, reply.promised);
        }
        invariant!(self.is_short(), "a phase whose majority is there is over");
        let is_consent = reply.ballot == self.ballot && reply.installed == self.id();
        if !is_consent || !self.consent(from) {
            return Step::Nothing;
        }
        invariant!(value.fits(&self.ground), "what does not fit is not decided");
        // A minority's refusal has no say any more: a decision is only ever repeated.
        self.refused = None;
        self.phase = Phase::Install(value.clone());
        Step::Decided(value)
    }

    /// Takes a `P3B`. Here, and only here, a member counts that the change has removed: it can no
    /// longer answer for the old view, and that is what the phase is about.
    pub fn on_installed(&mut self, from: Incarnation, view: ViewId, installed: ViewId) -> Step<V> {
        if !self.is_for_me(from, view) || !self.is_past(installed) {
            return Step::Nothing;
        }
        let Some(value) = self.decided().cloned() else { return self.outpaced(installed) };
        invariant!(self.refused.is_none(), "what is decided is not proposed anew");
        invariant!(self.is_short(), "a phase whose majority is there is over");
        if matches!(self.phase, Phase::Done(_)) || !self.consent(from) {
            return Step::Nothing;
        }
        self.phase = Phase::Done(value);
        Step::Installed
    }

    /// What to send to all members when the wait is over: the open phase's question again, or a
    /// new phase 1 under a higher ballot if the present one was refused.
    pub fn retry(&mut self, rounds: &mut Rounds) -> Message<V> {
        if let Some(round) = self.refused.take() {
            self.ballot = rounds.next(round);
            self.phase = Phase::Prepare(None);
            self.consents.clear();
        }
        self.question()
    }

    /// The view whose successor is being decided.
    #[must_use]
    pub fn view(&self) -> &View {
        self.ground.view()
    }

    /// What the proposal follows.
    #[must_use]
    pub fn ground(&self) -> &Arc<V::Ground> {
        &self.ground
    }

    /// What the caller asked for.
    #[must_use]
    pub fn want(&self) -> &V {
        &self.want
    }

    /// What may come of it: what was asked for, and what was found to be proposed already.
    pub fn possible(&self) -> impl Iterator<Item = &V> {
        let found = match &self.phase {
            Phase::Prepare(found) => found.as_ref().map(|(_, value)| value),
            Phase::Accept(value) | Phase::Install(value) | Phase::Done(value) => Some(value),
        };
        iter::once(&self.want).chain(found)
    }

    /// What was decided, once it is.
    #[must_use]
    pub fn decided(&self) -> Option<&V> {
        match &self.phase {
            Phase::Install(value) | Phase::Done(value) => Some(value),
            Phase::Prepare(_) | Phase::Accept(_) => None,
        }
    }

    /// The question of the open phase; once all is done, the decision.
    fn question(&self) -> Message<V> {
        let (view, ballot) = (self.id(), self.ballot);
        match &self.phase {
            Phase::Prepare(_) => Message::P1A { view, ballot },
            Phase::Accept(value) => Message::P2A { view, ballot, change: value.clone() },
            Phase::Install(value) | Phase::Done(value) => {
                Message::P3A { view, change: value.clone() }
            }
        }
    }

    fn id(&self) -> ViewId {
        self.ground.view().id
    }

    /// Whether a reply is about this view, from one of its members. A node that left the group
    /// may hold the same view and must not count (against CATS §4, Lemma 2).
    fn is_for_me(&self, from: Incarnation, view: ViewId) -> bool {
        view == self.id() && self.view().index_of(from.node).is_some()
    }

    /// Whether a view comes after this one. Versions go on across a split, so the groups need not
    /// be the same: who answers about this view names this one or one that descends from it.
    fn is_past(&self, installed: ViewId) -> bool {
        installed.version > self.id().version
    }

    /// Whether the open phase lacks consents.
    fn is_short(&self) -> bool {
        self.consents.len() < self.view().majority()
    }

    /// Counts a member's consent; true if that closes the phase.
    fn consent(&mut self, from: Incarnation) -> bool {
        self.consents.insert(from.node);
        let is_closed = self.consents.len() >= self.view().majority();
        if is_closed {
            self.consents.clear();
        }
        is_closed
    }

    fn on_refusal(&mut self, ballot: Ballot, installed: ViewId, promised: Ballot) -> Step<V> {
        if self.is_past(installed) {
            return self.outpaced(installed);
        }
        if ballot != self.ballot || installed != self.id() {
            // An earlier attempt was refused, or the member is behind and first fetches what it
            // lacks.
            return Step::Nothing;
        }
        let is_first = self.refused.is_none();
        let round = self.refused.unwrap_or(0).max(promised.round);
        invariant!(self.refused <= Some(round), "the highest round that refused stays known");
        self.refused = Some(round);
        invariant!(self.ballot.is_some(), "who was refused had asked");
        probe!("reconfigure/refused");
        if is_first { Step::Refused { round } } else { Step::Nothing }
    }

    fn outpaced(&self, installed: ViewId) -> Step<V> {
        probe!("reconfigure/outpaced");
        Step::Outpaced { installed }
    }
}

#[cfg(test)]
mod tests;
