//! The acceptor: a member's durable part in deciding what follows its installed view.

use super::ballot::Ballot;
use super::message::{Accepted, Promise};
use super::value::{Ground, Value};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::view::{Change, ViewId};
use serde::{Deserialize, Serialize};

/// What a member has promised and accepted in the instance that follows its installed view.
///
/// It is part of the group's durable record, beside the view, and written in one step with it: when
/// a view is installed, the acceptor begins anew with `Acceptor::default()`. A member that lost it
/// must not answer under its old name.
///
/// Every reply rests on the record as it stands. One that changed nothing, such as the answer to a
/// repeated question, must still not overtake the write of an earlier change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptor<V = Change> {
    /// The highest ballot promised; none if its round is 0 (the paper's `rts`).
    promised: Ballot,
    /// The proposal accepted last (the paper's `wts` and `rec`).
    accepted: Option<(Ballot, V)>,
}

impl<V> Default for Acceptor<V> {
    fn default() -> Acceptor<V> {
        Acceptor { promised: Ballot::default(), accepted: None }
    }
}

impl<V: Value> Acceptor<V> {
    /// Answers a `P1A`. `installed` is the view this node has installed and is a member of. The
    /// flag says whether the acceptor changed: then it must be durable before the reply leaves.
    pub fn on_prepare(
        &mut self,
        installed: &V::Ground,
        asked: ViewId,
        ballot: Ballot,
    ) -> (Promise<V>, bool) {
        let before = self.promised;
        let installed = installed.view().id;
        let is_open = installed == asked;
        // An equal ballot is the same proposer asking again (CATS §4.1, Algorithm 2 line 2).
        let ok = is_open && self.may_take(ballot);
        if ok {
            self.promised = ballot;
        }
        self.check();
        invariant!(self.promised >= before || mutant!("stale_promise"), "no promise goes back");
        invariant!(!ok || self.promised == ballot, "what is granted is promised");
        let reply = Promise {
            view: asked,
            ballot,
            ok,
            installed,
            promised: if is_open { self.promised } else { Ballot::default() },
            accepted: self.accepted.clone().filter(|_| ok),
        };
        let is_kept = mutant!("promise_of_one_round") && self.promised.round == before.round;
        (reply, self.promised != before && !is_kept)
    }

    /// Answers a `P2A`. `installed` is the view this node has installed and is a member of. The
    /// flag says whether the acceptor changed: then it must be durable before the reply leaves.
    ///
    /// A value that does not fit is refused, whatever its ballot: no correct proposer
    /// sends one, and nobody could install it.
    pub fn on_accept(
        &mut self,
        installed: &V::Ground,
        asked: ViewId,
        ballot: Ballot,
        value: V,
    ) -> (Accepted, bool) {
        let before = self.promised;
        let id = installed.view().id;
        let is_open = id == asked;
        // The paper accepts only above the promise (Algorithm 2 line 7), but line 3 has raised the
        // promise to this very ballot: nothing would ever be accepted.
        let is_new = ballot != self.promised || !mutant!("accept_needs_greater");
        let ok = is_open && self.may_take(ballot) && is_new && value.fits(installed);
        let mut is_changed = false;
        if ok {
            let accepted = Some((ballot, value));
            is_changed = self.accepted != accepted || self.promised != ballot;
            self.promised = ballot;
            self.accepted = accepted;
        }
        self.check();
        invariant!(self.promised >= before || mutant!("stale_promise"), "no promise goes back");
        invariant!(!ok || self.promised == ballot, "what is accepted is promised");
        let reply = Accepted {
            view: asked,
            ballot,
            ok,
            installed: id,
            promised: if is_open { self.promised } else { Ballot::default() },
        };
        (reply, is_changed)
    }

    /// The highest ballot promised; its round is 0 if there is none.
    #[must_use]
    pub fn promised(&self) -> Ballot {
        self.promised
    }

    /// The proposal accepted last.
    #[must_use]
    pub fn accepted(&self) -> Option<&(Ballot, V)> {
        self.accepted.as_ref()
    }

    /// Asserts that what is accepted was promised (I5).
    pub fn check(&self) {
        if let Some((ballot, _)) = &self.accepted {
            invariant!(ballot.is_some(), "a proposal without a ballot was accepted");
            invariant!(*ballot <= self.promised, "{ballot:?} was accepted, but never promised");
        }
    }

    fn may_take(&self, ballot: Ballot) -> bool {
        mutant!("stale_promise") || ballot >= self.promised
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ballot, replace, view};
    use super::*;

    #[test]
    fn a_promise_shuts_out_lower_ballots_and_a_repeated_question_is_answered_alike() {
        let view = view(3, &[1, 2, 3]);
        let mut acceptor = <Acceptor>::default();
        let (first, changed) = acceptor.on_prepare(&view, view.id, ballot(2, 2));
        assert!(first.ok && changed && first.accepted.is_none());
        let (again, changed) = acceptor.on_prepare(&view, view.id, ballot(2, 2));
        assert_eq!((again, changed), (first, false));
        for lower in [ballot(2, 1), ballot(1, 9)] {
            let (refusal, changed) = acceptor.on_prepare(&view, view.id, lower);
            assert_eq!((refusal.ok, refusal.promised, changed), (false, ballot(2, 2), false));
            let (refusal, changed) = acceptor.on_accept(&view, view.id, lower, replace(1, 4));
            assert_eq!((refusal.ok, refusal.promised, changed), (false, ballot(2, 2), false));
        }
        assert_eq!(acceptor.accepted(), None);
    }

    /// Ballots of one round differ by their proposers: the higher one shuts the lower one out, also
    /// after a restart, or two proposers reach majorities with two values.
    #[test]
    fn a_promise_to_a_higher_proposer_of_the_same_round_is_stored() {
        let view = view(3, &[1, 2, 3]);
        let mut acceptor = <Acceptor>::default();
        assert!(acceptor.on_prepare(&view, view.id, ballot(2, 1)).1);
        let (reply, changed) = acceptor.on_prepare(&view, view.id, ballot(2, 2));
        assert!(reply.ok && changed, "it must be durable before the reply leaves");
        assert_eq!((reply.promised, acceptor.promised()), (ballot(2, 2), ballot(2, 2)));
        let (refusal, _) = acceptor.on_accept(&view, view.id, ballot(2, 1), replace(1, 4));
        assert_eq!((refusal.ok, acceptor.accepted()), (false, None));
        assert!(!acceptor.on_prepare(&view, view.id, ballot(2, 1)).0.ok);
    }

    /// T1: after phase 1 the promise equals the proposal's ballot.
    #[test]
    fn the_promised_ballot_itself_is_accepted() {
        let view = view(3, &[1, 2, 3]);
        let mut acceptor = <Acceptor>::default();
        acceptor.on_prepare(&view, view.id, ballot(1, 1));
        let (reply, changed) = acceptor.on_accept(&view, view.id, ballot(1, 1), replace(1, 4));
        assert!(reply.ok && changed && reply.promised == ballot(1, 1));
        let (again, changed) = acceptor.on_accept(&view, view.id, ballot(1, 1), replace(1, 4));
        assert_eq!((again, changed), (reply, false), "a repeated message");
        let (promise, _) = acceptor.on_prepare(&view, view.id, ballot(2, 2));
        assert_eq!(promise.accepted, Some((ballot(1, 1), replace(1, 4))));
    }

    #[test]
    fn what_is_accepted_without_a_promise_is_promised() {
        let view = view(3, &[1, 2, 3]);
        let mut acceptor = <Acceptor>::default();
        acceptor.on_prepare(&view, view.id, ballot(1, 1));
        assert!(acceptor.on_accept(&view, view.id, ballot(5, 2), replace(1, 4)).0.ok);
        assert_eq!(acceptor.promised(), ballot(5, 2));
        assert!(!acceptor.on_prepare(&view, view.id, ballot(4, 1)).0.ok);
    }

    #[test]
    fn only_the_installed_view_is_open() {
        let view = view(3, &[1, 2, 3]);
        let mut acceptor = <Acceptor>::default();
        acceptor.on_accept(&view, view.id, ballot(1, 1), replace(1, 4));
        let kept = acceptor;
        for version in [2, 4] {
            let asked = ViewId { version, ..view.id };
            let (promise, changed) = acceptor.on_prepare(&view, asked, ballot(9, 1));
            assert!(!promise.ok && !changed && promise.installed == view.id);
            assert_eq!((promise.accepted, promise.promised), (None, Ballot::default()));
            let (reply, changed) = acceptor.on_accept(&view, asked, ballot(9, 1), replace(1, 5));
            assert!(!reply.ok && !changed && reply.installed == view.id && reply.view == asked);
        }
        assert_eq!(acceptor, kept);
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused() {
        let view = view(3, &[1, 2, 3]);
        let mut acceptor = <Acceptor>::default();
        for change in [replace(4, 5), replace(1, 2)] {
            let (reply, changed) = acceptor.on_accept(&view, view.id, ballot(1, 1), change);
            assert!(!reply.ok && !changed);
        }
        assert_eq!(acceptor, Acceptor::default());
    }
}
