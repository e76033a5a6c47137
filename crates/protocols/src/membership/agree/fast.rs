//! The fast round: every member votes for the change that it has found. Mostly all find the same.

use super::super::action::Context;
use super::super::change::Change;
use super::super::message::Body;
use super::super::number::{Digest, Round};
use super::super::roll::Roll;
use alloc::sync::Arc;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::{invariant, mutant, probe};

impl Roll {
    /// This member has found a change. It proposes one in each configuration.
    pub(in super::super) fn propose(&mut self, change: Change, cx: &mut Context<'_>) {
        invariant!(self.instance.wish.is_none(), "one proposal in each configuration");
        invariant!(self.configuration().may_follow(&change), "what is proposed may follow");
        let value = Arc::new(change);
        self.instance.wish = Some(Arc::clone(&value));
        self.has_something_to_decide(cx);
        let is_registered = self.acceptor.vote_fast(&value);
        if is_registered {
            self.save_acceptor(cx);
        } else {
            probe!("roll/promised_before_it_proposed");
        }
        // Who has promised to a classic round must not vote in the fast one: the coordinator may
        // have chosen already, and this vote could complete a fast quorum for something else.
        if is_registered || mutant!("roll_votes_after_promise") {
            let early = mutant!("roll_votes_before_sync");
            let release = if early { Release::Early } else { Release::State };
            self.tell_all(Body::FastVote { digest: value.digest() }, release, cx);
        }
    }

    /// A member has voted in the fast round.
    pub(in super::super) fn on_fast_vote(
        &mut self,
        from: Incarnation,
        digest: Digest,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.configuration().contains(self.me), "who is out hears no votes");
        self.hear(from.node, cx);
        let count = self.instance.fast.count(from.node, Round::FAST, digest);
        invariant!(self.instance.fast.len() <= self.configuration().members.len(), "one of each");
        if count >= self.configuration().fast_quorum() {
            self.decide(digest, cx);
        }
    }

    /// Enough members have voted for a change: it is decided.
    pub(in super::super) fn decide(&mut self, digest: Digest, cx: &mut Context<'_>) {
        if self.instance.decided.is_some_and(|known| known != digest) {
            // Members that vote as they should never get here.
            return cx.refuse("a second decision in one configuration");
        }
        match self.value_of(digest) {
            Some(value) => self.install(&value, cx),
            None => {
                probe!("roll/decided_what_is_not_here");
                self.instance.decided = Some(digest);
            }
        }
    }

    /// A change by its digest, if it is here.
    pub(in super::super) fn value_of(&self, digest: Digest) -> Option<Arc<Change>> {
        let voted = self.acceptor.voted.as_ref().map(|(_, value)| value);
        let chosen = self.instance.coordinator.as_ref().and_then(|one| one.chosen.as_ref());
        let known = [voted, self.instance.wish.as_ref(), chosen].into_iter().flatten();
        let mut found = known.filter(|value| value.digest() == digest);
        found.next().cloned()
    }

    /// A member takes part in the agreement.
    pub(super) fn hear(&mut self, from: NodeId, cx: &Context<'_>) {
        self.instance.heard.insert(from);
        self.has_something_to_decide(cx);
    }
}
