//! Ballots: the numbers of proposals, and where a node draws them.

use quorate_kernel::ids::Incarnation;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use serde::{Deserialize, Serialize};

/// How long a proposer waits for replies before it asks again, less the random part.
pub const PROPOSAL_RETRY: Span = Span::millis(100);
/// The longest wait between two attempts.
pub const PROPOSAL_RETRY_MAX: Span = Span::secs(5);
/// The highest round a message may name. Nobody gets there, and it leaves room to go above.
pub const ROUND_MAX: u64 = 1 << 48;

/// The number of a proposal: rounds first, ties broken by the proposer.
///
/// No two proposals share one: it carries the proposer's start, and [`Rounds`] gives each round of
/// a start away once. An acceptor may therefore treat an equal ballot as a repeated message.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ballot {
    /// Rises with each attempt; 0 stands for no ballot at all.
    pub round: u64,
    /// Who proposes.
    pub proposer: Incarnation,
}

impl Ballot {
    /// Whether this is the ballot of a proposal, and not the absence of one.
    #[must_use]
    pub fn is_some(&self) -> bool {
        self.round > 0
    }
}

/// Where one start of a node draws its ballots: one for all its groups, made once per start.
///
/// It is volatile. A later start may draw the same rounds again, but its ballots differ. Within a
/// start it must outlive every proposer: two proposals under one ballot could both be decided.
#[derive(Clone, Debug)]
pub struct Rounds {
    me: Incarnation,
    last: u64,
}

impl Rounds {
    /// A source for this start of a node.
    #[must_use]
    pub fn new(me: Incarnation) -> Rounds {
        Rounds { me, last: 0 }
    }

    /// A ballot above all drawn before and above this round, which a refusal has named.
    pub fn next(&mut self, above: u64) -> Ballot {
        self.last = self.last.max(above.min(ROUND_MAX)) + 1;
        Ballot { round: self.last, proposer: self.me }
    }
}

/// How long to wait after this many attempts in vain: 100 to 200 ms, doubled with each, at most
/// about 5 s. Half of the wait is random, or two proposers could refuse each other for ever
/// (CATS §4.1, Lemma 4 assumes that they do not).
pub fn backoff(attempts: u32, rng: &mut Rng) -> Span {
    let doubled = PROPOSAL_RETRY.0.saturating_mul(1 << attempts.min(16));
    let half = doubled.min(PROPOSAL_RETRY_MAX.0 / 2);
    Span(half + rng.below(half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::{NodeId, Start};
    use std::collections::BTreeSet;

    fn incarnation(node: u64, start: u32) -> Incarnation {
        Incarnation { node: NodeId(node), start: Start(start) }
    }

    #[test]
    fn no_two_ballots_are_equal() {
        let mut drawn = BTreeSet::new();
        for (node, start) in [(1, 1), (1, 2), (2, 1)] {
            let mut rounds = Rounds::new(incarnation(node, start));
            for above in [0, 0, 7, 3, 0, 7, 8, 9] {
                let ballot = rounds.next(above);
                assert!(ballot.round > above && ballot.is_some());
                assert!(drawn.insert(ballot), "{ballot:?} was drawn twice");
            }
        }
        assert!(!Ballot::default().is_some());
        assert!(drawn.iter().all(|ballot| *ballot > Ballot::default()));
    }

    #[test]
    fn a_later_start_wins_a_tie_and_a_higher_round_wins_over_all() {
        let of = |round, node, start| Ballot { round, proposer: incarnation(node, start) };
        assert!(
            of(1, 1, 2) > of(1, 1, 1) && of(1, 2, 1) > of(1, 1, 9) && of(2, 1, 1) > of(1, 9, 9)
        );
    }

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut rng = Rng::new(1);
        for attempts in 0..80 {
            let low = PROPOSAL_RETRY_MAX.0 / 2;
            let low =
                PROPOSAL_RETRY.0.checked_shl(attempts.min(20)).map_or(low, |all| all.min(low));
            let waits: BTreeSet<u64> = (0..20).map(|_| backoff(attempts, &mut rng).0).collect();
            assert!(waits.iter().all(|wait| (low..2 * low).contains(wait)));
            assert!(waits.len() > 1, "the wait is random");
        }
    }
}
