//! What a member has promised and voted for in one configuration. Durable before anything that
//! rests on it leaves.

use super::super::change::Change;
use super::super::number::Round;
use alloc::sync::Arc;

/// The acceptor of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptor {
    /// It takes part in no earlier round (rnd).
    pub promised: Round,
    /// The last vote, and its round (vval, vrnd).
    pub voted: Option<(Round, Arc<Change>)>,
}

impl Acceptor {
    /// Votes in the fast round; false if it has voted, or has promised to a classic round not to.
    /// A vote that is not registered here must not be told: the coordinator that was promised
    /// chooses as if it will never be.
    pub fn vote_fast(&mut self, value: &Arc<Change>) -> bool {
        if self.voted.is_some() || self.promised > Round::FAST {
            return false;
        }
        self.promised = Round::FAST;
        self.voted = Some((Round::FAST, Arc::clone(value)));
        true
    }

    /// Promises to take part in no round before this one; false if it takes part in a later one.
    pub fn promise(&mut self, round: Round) -> bool {
        let may = round >= self.promised;
        if may {
            self.promised = round;
        }
        may
    }

    /// Votes in a classic round; false if it takes part in a later one.
    pub fn vote(&mut self, round: Round, value: &Arc<Change>) -> bool {
        let may = round >= self.promised;
        if may {
            self.promised = round;
            self.voted = Some((round, Arc::clone(value)));
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use quorate_kernel::ids::NodeId;

    fn value(node: u64) -> Arc<Change> {
        Arc::new(Change::new(Vec::new(), [NodeId(node)].into()))
    }

    fn classic(number: u64) -> Round {
        Round { number, coordinator: NodeId(1) }
    }

    #[test]
    fn one_vote_in_the_fast_round_and_none_after_a_promise() {
        let mut acceptor = Acceptor::default();
        assert!(acceptor.vote_fast(&value(1)) && !acceptor.vote_fast(&value(2)));
        assert_eq!(acceptor.voted, Some((Round::FAST, value(1))));
        let mut promised = Acceptor::default();
        assert!(promised.promise(classic(2)) && !promised.vote_fast(&value(1)));
        assert_eq!(promised.voted, None);
    }

    #[test]
    fn no_earlier_round_is_promised_or_voted_in() {
        let mut acceptor = Acceptor::default();
        assert!(acceptor.promise(classic(3)) && acceptor.promise(classic(3)));
        assert!(!acceptor.promise(classic(2)) && !acceptor.vote(classic(2), &value(1)));
        assert!(acceptor.vote(classic(3), &value(1)) && acceptor.vote(classic(5), &value(1)));
        assert!(!acceptor.promise(classic(4)));
        assert_eq!(acceptor.promised, classic(5));
    }
}
