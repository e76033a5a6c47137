//! The votes on a transaction, at the group that decides.

use crate::serializable::execute::act::Results;
use crate::serializable::execute::head;
use crate::serializable::message::Cause;
use crate::serializable::number::VoteSeq;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::time::Time;

/// The votes on a transaction that this group decides.
#[derive(Debug)]
pub struct Round {
    /// All its groups.
    pub groups: Vec<GroupId>,
    /// What the others have said last.
    pub votes: BTreeMap<GroupId, (VoteSeq, Result<Results, Cause>)>,
    /// How many votes have come; the paper counts them (Algorithm 2, line 10), this does not.
    pub came: usize,
    /// When it was heard of first.
    pub since: Time,
}

impl Round {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let of = |vote: &Result<Results, Cause>| {
            vote.as_ref().map_or_else(head::of_cause, head::of_results) + 64
        };
        self.undone_bytes() + self.votes.values().map(|(_, vote)| of(vote)).sum::<usize>()
    }

    /// About how many bytes of a head it takes if it ends for lack of votes.
    pub fn undone_bytes(&self) -> usize {
        head::of_groups(&self.groups)
    }
}
