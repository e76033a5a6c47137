//! The proposer: one attempt to have a change follow a view, through all three phases.

use super::ballot::{Ballot, Rounds};
use super::message::{Accepted, Message, Promise};
use super::step::Step;
use super::value::{Ground, Value};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use quorate_kernel::ids::{Incarnation, NodeId};
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
        let is_consent = reply.ballot == self.ballot && reply.installed == self.id();
        if !is_consent || !self.consent(from) {
            return Step::Nothing;
        }
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
        self.refused = Some(round);
        probe!("reconfigure/refused");
        if is_first { Step::Refused { round } } else { Step::Nothing }
    }

    fn outpaced(&self, installed: ViewId) -> Step<V> {
        probe!("reconfigure/outpaced");
        Step::Outpaced { installed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ballot, incarnation, replace, view};
    use super::*;
    use quorate_kernel::ids::Start;

    fn begin(members: &[u64], want: Change) -> (Rounds, Proposer) {
        let mut rounds = Rounds::new(incarnation(1));
        let begun = Proposer::begin(&mut rounds, view(3, members), want);
        let (proposer, message) = begun.expect("the change fits");
        assert_eq!(message, Message::P1A { view: proposer.id(), ballot: ballot(1, 1) });
        (rounds, proposer)
    }

    fn promise(proposer: &Proposer, accepted: Option<(Ballot, Change)>) -> Promise {
        let (view, ballot) = (proposer.id(), proposer.ballot);
        Promise { view, ballot, ok: true, installed: view, promised: ballot, accepted }
    }

    fn accepted(proposer: &Proposer) -> Accepted {
        let (view, ballot) = (proposer.id(), proposer.ballot);
        Accepted { view, ballot, ok: true, installed: view, promised: ballot }
    }

    fn newer(proposer: &Proposer) -> ViewId {
        ViewId { version: 4, ..proposer.id() }
    }

    #[test]
    fn a_calm_run_goes_through_three_phases() {
        let want = replace(3, 4);
        let (mut rounds, mut proposer) = begin(&[1, 2, 3], want);
        let (view, ballot) = (proposer.id(), proposer.ballot);
        let (yes, from) = (promise(&proposer, None), incarnation);
        assert_eq!(proposer.on_promise(from(1), &yes), Step::Nothing);
        let question = Message::P2A { view, ballot, change: want };
        assert_eq!(proposer.on_promise(from(2), &yes), Step::Send(question));
        assert_eq!(proposer.on_promise(from(3), &yes), Step::Nothing, "the phase is over");
        assert_eq!(proposer.retry(&mut rounds), question);
        let yes = accepted(&proposer);
        assert_eq!(proposer.on_accepted(from(3), &yes), Step::Nothing);
        assert_eq!(proposer.decided(), None);
        assert_eq!(proposer.on_accepted(from(1), &yes), Step::Decided(want));
        assert_eq!(proposer.retry(&mut rounds), Message::P3A { view, change: want });
        let newer = newer(&proposer);
        assert_eq!(proposer.on_installed(from(2), view, view), Step::Nothing, "not installed");
        assert_eq!(proposer.on_installed(from(2), view, newer), Step::Nothing);
        assert_eq!(proposer.on_installed(from(1), view, newer), Step::Installed);
        assert_eq!(proposer.on_installed(from(3), view, newer), Step::Nothing);
        assert_eq!((proposer.decided(), proposer.want()), (Some(&want), &want));
    }

    #[test]
    fn a_change_that_does_not_fit_is_not_proposed() {
        let mut rounds = Rounds::new(incarnation(1));
        assert!(Proposer::begin(&mut rounds, view(3, &[1, 2, 3]), replace(4, 5)).is_none());
        assert_eq!(rounds.next(0).round, 1, "no round was used up");
    }

    #[test]
    fn the_change_accepted_under_the_highest_ballot_is_adopted() {
        let (_, mut proposer) = begin(&[1, 2, 3, 4, 5], replace(3, 6));
        let old = [(1, replace(2, 7)), (2, replace(1, 8))];
        for (node, accepted) in [(1, Some(old[1])), (2, Some(old[0]))] {
            let accepted =
                accepted.map(|(node, change)| (Ballot { round: 1, ..ballot(0, node) }, change));
            let reply = promise(&proposer, accepted);
            assert_eq!(proposer.on_promise(incarnation(node), &reply), Step::Nothing);
        }
        let reply = promise(&proposer, None);
        let step = proposer.on_promise(incarnation(3), &reply);
        let (view, ballot) = (proposer.id(), proposer.ballot);
        assert_eq!(step, Step::Send(Message::P2A { view, ballot, change: old[1].1 }));
    }

    #[test]
    fn a_refusal_leads_to_a_higher_round_and_old_replies_are_void() {
        let (mut rounds, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
        let old = promise(&proposer, None);
        assert_eq!(proposer.on_promise(incarnation(1), &old), Step::Nothing);
        let refusal = |round| Promise { ok: false, promised: ballot(round, 2), ..old };
        let step = proposer.on_promise(incarnation(2), &refusal(6));
        assert_eq!(step, Step::Refused { round: 6 });
        assert_eq!(proposer.on_promise(incarnation(3), &refusal(9)), Step::Nothing);
        let view = proposer.id();
        assert_eq!(proposer.retry(&mut rounds), Message::P1A { view, ballot: ballot(10, 1) });
        for node in [1, 2, 3] {
            assert_eq!(proposer.on_promise(incarnation(node), &old), Step::Nothing);
            assert_eq!(proposer.on_promise(incarnation(node), &refusal(9)), Step::Nothing);
        }
        let repeated = Message::P1A { view, ballot: ballot(10, 1) };
        assert_eq!(proposer.retry(&mut rounds), repeated, "nobody refused this one");
        let yes = promise(&proposer, None);
        let step = proposer.on_promise(incarnation(3), &yes);
        assert_eq!(step, Step::Nothing, "the first ballot's promise does not count for this one");
        assert!(matches!(proposer.on_promise(incarnation(1), &yes), Step::Send(_)));
    }

    #[test]
    fn what_was_accepted_under_another_ballot_or_in_another_view_does_not_count() {
        let (mut rounds, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
        let yes = promise(&proposer, None);
        let elsewhere = Promise { installed: newer(&proposer), ..yes };
        for node in [1, 2, 3] {
            assert_eq!(proposer.on_promise(incarnation(node), &elsewhere), Step::Nothing);
        }
        proposer.on_promise(incarnation(1), &yes);
        proposer.on_promise(incarnation(2), &yes);
        let old = accepted(&proposer);
        let no = Accepted { ok: false, promised: ballot(2, 2), ..old };
        assert_eq!(proposer.on_accepted(incarnation(2), &no), Step::Refused { round: 2 });
        proposer.retry(&mut rounds);
        assert_eq!(proposer.on_accepted(incarnation(1), &old), Step::Nothing, "phase 1 again");
        let found = promise(&proposer, Some((ballot(2, 2), replace(1, 5))));
        proposer.on_promise(incarnation(2), &found);
        assert!(matches!(proposer.on_promise(incarnation(3), &found), Step::Send(_)));
        let yes = accepted(&proposer);
        let elsewhere = Accepted { installed: newer(&proposer), ..yes };
        assert_eq!(proposer.on_accepted(incarnation(2), &yes), Step::Nothing);
        for reply in [old, elsewhere] {
            assert_eq!(proposer.on_accepted(incarnation(1), &reply), Step::Nothing);
        }
        let step = proposer.on_accepted(incarnation(3), &yes);
        assert_eq!(step, Step::Decided(replace(1, 5)));
    }

    #[test]
    fn a_minority_that_refuses_stops_nothing() {
        let want = replace(3, 4);
        let (mut rounds, mut proposer) = begin(&[1, 2, 3], want);
        let yes = promise(&proposer, None);
        let no = Promise { ok: false, promised: ballot(6, 2), ..yes };
        assert_eq!(proposer.on_promise(incarnation(2), &no), Step::Refused { round: 6 });
        proposer.on_promise(incarnation(1), &yes);
        assert!(matches!(proposer.on_promise(incarnation(3), &yes), Step::Send(_)));
        let yes = accepted(&proposer);
        proposer.on_accepted(incarnation(1), &yes);
        assert_eq!(proposer.on_accepted(incarnation(3), &yes), Step::Decided(want));
        let decision = Message::P3A { view: proposer.id(), change: want };
        assert_eq!(proposer.retry(&mut rounds), decision, "and not a new round");
    }

    #[test]
    fn who_has_left_the_view_outpaces_the_proposer() {
        let (_, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
        let installed = newer(&proposer);
        let no = Promise { ok: false, installed, ..promise(&proposer, None) };
        assert_eq!(proposer.on_promise(incarnation(2), &no), Step::Outpaced { installed });
        let view = proposer.id();
        let step = proposer.on_installed(incarnation(2), view, installed);
        assert_eq!(step, Step::Outpaced { installed });
        let behind = ViewId { version: 2, ..view };
        let no = Promise { installed: behind, promised: Ballot::default(), ..no };
        assert_eq!(proposer.on_promise(incarnation(2), &no), Step::Nothing, "it is behind");
    }

    #[test]
    fn one_member_is_one_voice_whatever_its_start() {
        let (_, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
        let yes = promise(&proposer, None);
        for start in 1..4 {
            let from = Incarnation { start: Start(start), ..incarnation(2) };
            assert_eq!(proposer.on_promise(from, &yes), Step::Nothing);
        }
    }

    #[test]
    fn a_promise_with_a_change_that_does_not_fit_is_ignored() {
        let (_, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
        let bad = promise(&proposer, Some((Ballot { round: 1, ..ballot(0, 1) }, replace(8, 9))));
        let good = promise(&proposer, None);
        assert_eq!(proposer.on_promise(incarnation(1), &bad), Step::Nothing);
        assert_eq!(proposer.on_promise(incarnation(2), &good), Step::Nothing);
        assert!(matches!(proposer.on_promise(incarnation(3), &good), Step::Send(_)));
    }
}
