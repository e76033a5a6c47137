//! What proposers and members say to each other. New variants are only appended.
//!
//! Every message names the view whose successor it is about; that view is the instance of the
//! consensus. The carrier knows who sent it, and may put those of several groups into one frame.

use super::ballot::{Ballot, ROUND_MAX};
use quorate_kernel::view::{Change, ViewId};
use serde::{Deserialize, Serialize};

/// A member's answer in phase 1 (P1B, CATS §4.1, Algorithm 2 lines 2 to 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise<V = Change> {
    /// Echoed: the view whose successor is to be decided.
    pub view: ViewId,
    /// Echoed: the ballot that was asked for.
    pub ballot: Ballot,
    /// Whether the sender promises to accept nothing lower. If so, the promise is durable.
    pub ok: bool,
    /// The view the sender has installed. If it is newer than `view`, its successor was decided.
    pub installed: ViewId,
    /// The highest ballot the sender has promised in this instance; a refused proposer goes above.
    pub promised: Ballot,
    /// What the sender has accepted last in this instance, if anything. Durable.
    pub accepted: Option<(Ballot, V)>,
}

/// A member's answer in phase 2 (P2B, CATS §4.1, Algorithm 2 lines 6 to 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Echoed: the view whose successor is to be decided.
    pub view: ViewId,
    /// Echoed: the ballot of the proposal.
    pub ballot: Ballot,
    /// Whether the sender has accepted the proposal. If so, that is durable.
    pub ok: bool,
    /// The view the sender has installed. If it is newer than `view`, its successor was decided.
    pub installed: ViewId,
    /// The highest ballot the sender has promised in this instance; a refused proposer goes above.
    pub promised: Ballot,
}

/// One message of the consensus on what follows a view, a [`Change`] or what else a group decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message<V = Change> {
    /// Proposer to the view's members, phase 1: promise me this ballot. It promises nothing.
    P1A {
        /// The view whose successor is to be decided.
        view: ViewId,
        /// The proposal's number.
        ballot: Ballot,
    },
    /// Member to proposer: the answer to a `P1A`.
    P1B(Promise<V>),
    /// Proposer to the view's members, phase 2: accept this change. The receiver may conclude that
    /// a majority has promised the ballot, and nothing else: the change is not decided.
    P2A {
        /// The view whose successor is to be decided.
        view: ViewId,
        /// The proposal's number.
        ballot: Ballot,
        /// The change proposed.
        change: V,
    },
    /// Member to proposer: the answer to a `P2A`.
    P2B(Accepted),
    /// Anybody who knows it to the members of the view, phase 3, and to a node that is behind:
    /// this change is decided. The receiver installs it after all that it lacks before it.
    P3A {
        /// The view that the change follows.
        view: ViewId,
        /// The decided change.
        change: V,
    },
    /// Member to the sender of a `P3A`, once its own step is durable, and also if it had installed
    /// the change long before: from now on the sender answers nothing for the old view.
    P3B {
        /// Echoed: the view that the change follows.
        view: ViewId,
        /// The view the sender has installed: of the same group, or of one it was split into.
        installed: ViewId,
    },
}

impl<V> Message<V> {
    /// The view whose successor the message is about.
    #[must_use]
    pub fn view(&self) -> ViewId {
        match self {
            Message::P1B(reply) => reply.view,
            Message::P2B(reply) => reply.view,
            Message::P1A { view, .. }
            | Message::P2A { view, .. }
            | Message::P3A { view, .. }
            | Message::P3B { view, .. } => *view,
        }
    }

    /// Whether a correct peer can have sent it. Whether a change fits the view only those can say
    /// who know the view; acceptor and proposer look.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        match self {
            Message::P1A { ballot, .. } | Message::P2A { ballot, .. } => is_ballot(ballot),
            Message::P1B(reply) => {
                let is_kept =
                    |(ballot, _): &(Ballot, V)| is_ballot(ballot) && *ballot <= reply.promised;
                is_answer(reply.ballot, reply.ok, reply.promised)
                    && (!reply.ok || reply.installed == reply.view)
                    && reply.accepted.as_ref().is_none_or(is_kept)
            }
            Message::P2B(reply) => {
                is_answer(reply.ballot, reply.ok, reply.promised)
                    && (!reply.ok || reply.installed == reply.view)
            }
            Message::P3A { .. } | Message::P3B { .. } => true,
        }
    }
}

fn is_ballot(ballot: &Ballot) -> bool {
    (1..=ROUND_MAX).contains(&ballot.round)
}

/// Consent names the very ballot that was asked for; a refusal may name none.
fn is_answer(ballot: Ballot, ok: bool, promised: Ballot) -> bool {
    is_ballot(&ballot) && promised.round <= ROUND_MAX && (!ok || promised == ballot)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ballot, replace, view};
    use super::*;

    fn promise() -> Promise {
        let id = view(3, &[1, 2, 3]).id;
        let accepted = Some((ballot(1, 2), replace(1, 4)));
        Promise {
            view: id,
            ballot: ballot(2, 1),
            ok: true,
            installed: id,
            promised: ballot(2, 1),
            accepted,
        }
    }

    #[test]
    fn a_correct_peer_s_messages_are_well_formed_and_name_their_view() {
        let id = view(3, &[1, 2, 3]).id;
        let newer = ViewId { version: 4, ..id };
        let (ballot, change) = (ballot(2, 1), replace(1, 4));
        let accepted =
            Accepted { view: id, ballot, ok: false, installed: newer, promised: Ballot::default() };
        for message in [
            Message::P1A { view: id, ballot },
            Message::P1B(promise()),
            Message::P1B(Promise { ok: false, installed: newer, ..promise() }),
            Message::P2A { view: id, ballot, change },
            Message::P2B(accepted),
            Message::P3A { view: id, change },
            Message::P3B { view: id, installed: newer },
        ] {
            assert!(message.is_well_formed(), "{message:?}");
            assert_eq!(message.view(), id);
            let bytes = postcard::to_allocvec(&message).expect("plain data");
            assert_eq!(postcard::from_bytes(&bytes), Ok(message));
        }
    }

    #[test]
    fn nonsense_is_not_well_formed() {
        let id = view(3, &[1, 2, 3]).id;
        let newer = ViewId { version: 4, ..id };
        let (none, huge) = (Ballot::default(), ballot(ROUND_MAX + 1, 1));
        let low = ballot(1, 1);
        let accepted = Accepted { view: id, ballot: low, ok: true, installed: id, promised: low };
        for message in [
            Message::P1A { view: id, ballot: none },
            Message::P1A { view: id, ballot: huge },
            Message::P2A { view: id, ballot: huge, change: replace(1, 4) },
            Message::P1B(Promise { ballot: none, ..promise() }),
            Message::P1B(Promise { promised: low, ..promise() }),
            Message::P1B(Promise { ok: false, promised: huge, ..promise() }),
            Message::P1B(Promise { installed: newer, ..promise() }),
            Message::P1B(Promise { accepted: Some((none, replace(1, 4))), ..promise() }),
            Message::P1B(Promise { accepted: Some((huge, replace(1, 4))), ..promise() }),
            Message::P2B(Accepted { promised: ballot(2, 2), ..accepted }),
            Message::P2B(Accepted { installed: newer, ..accepted }),
            Message::P2B(Accepted { ballot: none, ..accepted }),
        ] {
            assert!(!message.is_well_formed(), "{message:?}");
        }
    }
}
