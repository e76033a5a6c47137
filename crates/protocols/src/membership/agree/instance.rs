//! What a member has heard of the agreement on the next change. Nothing of it is stored: what must
//! not be forgotten is the acceptor's.

use super::super::change::Change;
use super::super::number::{Digest, Round};
use super::choose::Promise;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use quorate_kernel::ids::NodeId;
use quorate_kernel::time::Time;

/// The newest vote of each member, and how many there are of each kind.
#[derive(Debug, Default)]
pub struct Tally {
    votes: BTreeMap<NodeId, (Round, Digest)>,
    counts: BTreeMap<(Round, Digest), usize>,
}

impl Tally {
    /// Counts a vote, one of each member: a later round's in place of an earlier one's. Answers how
    /// many votes are like it.
    pub fn count(&mut self, from: NodeId, round: Round, digest: Digest) -> usize {
        let known = self.votes.get(&from).copied();
        if known.is_none_or(|(before, _)| before < round) {
            if let Some(before) = self.votes.insert(from, (round, digest)) {
                let count = self.counts.get_mut(&before).expect("it was counted");
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&before);
                }
            }
            *self.counts.entry((round, digest)).or_default() += 1;
        }
        self.counts.get(&(round, digest)).copied().unwrap_or_default()
    }

    /// Whose votes were for a value.
    pub fn voters(&self, digest: Digest) -> impl Iterator<Item = NodeId> + '_ {
        self.votes.iter().filter(move |(_, vote)| vote.1 == digest).map(|(node, _)| *node)
    }

    /// How many members' votes were heard.
    #[must_use]
    pub fn len(&self) -> usize {
        self.votes.len()
    }
}

/// A classic round that this member coordinates.
#[derive(Debug)]
pub struct Coordinator {
    pub round: Round,
    /// One of each member that has promised.
    pub promises: BTreeMap<NodeId, Promise>,
    /// How many have come, those that came twice counted twice.
    pub promises_came: usize,
    /// The value; chosen once.
    pub chosen: Option<Arc<Change>>,
    /// When those who have not answered are asked again.
    pub again_at: Time,
}

/// The agreement on the change that follows one configuration, as far as this member has heard.
#[derive(Debug, Default)]
pub struct Instance {
    /// What this member proposes.
    pub wish: Option<Arc<Change>>,
    pub fast: Tally,
    pub classic: Tally,
    /// What was decided and is not here.
    pub decided: Option<Digest>,
    /// When it was asked for, and how often.
    pub asked: Option<(Time, usize)>,
    pub coordinator: Option<Coordinator>,
    /// The highest round that was heard of.
    pub highest: Round,
    /// Since when there is something to decide.
    pub since: Option<Time>,
    /// When this member begins a classic round, unless all is decided.
    pub begins_at: Time,
    /// How many rounds it has waited for.
    pub attempts: u64,
    /// Who takes part, by what was heard since this member's last round began, and before.
    pub heard: BTreeSet<NodeId>,
    pub heard_before: BTreeSet<NodeId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_one_vote_the_latest() {
        let mut tally = Tally::default();
        let round = |number| Round { number, coordinator: NodeId(1) };
        let (one, other) = (Digest(1), Digest(2));
        assert_eq!(tally.count(NodeId(1), round(2), one), 1);
        assert_eq!(tally.count(NodeId(1), round(2), one), 1, "it came twice");
        assert_eq!(tally.count(NodeId(1), round(2), other), 0, "it has voted");
        assert_eq!(tally.count(NodeId(2), round(2), one), 2);
        assert_eq!(tally.count(NodeId(1), round(3), one), 1, "rounds are counted apart");
        assert_eq!(tally.count(NodeId(3), round(2), one), 2);
        assert_eq!(tally.count(NodeId(1), round(2), one), 2, "an earlier round's comes late");
        assert_eq!((tally.len(), tally.voters(one).count()), (3, 3));
    }
}
