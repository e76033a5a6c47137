//! Who takes part: one configuration, and what makes the next of it.

use super::change::Change;
use super::codec::{put, put_list, take, take_list};
use super::number::{Digest, Number, RollId};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{
    ADDRESS_BYTES_MAX, ROLL_LEFT_MAX, ROLL_MEMBERS_MAX, ROLL_METADATA_BYTES_MAX, ROLL_RINGS_MAX,
};
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// One who takes part, as all agreed when it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Who it is.
    pub id: NodeId,
    /// Where it was found then: a hint, never an identity.
    pub address: String,
    /// Whatever the cluster wants to know of it: a failure zone, a role.
    pub metadata: Vec<u8>,
}

impl Member {
    /// Whether its parts are within their limits.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        self.address.len() <= ADDRESS_BYTES_MAX && self.metadata.len() <= ROLL_METADATA_BYTES_MAX
    }
}

/// How members observe each other (paper: K, H and L, §4.2). Part of the configuration: all count
/// alike, or they would cut differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// How many rings there are, and so observers of each member (K).
    pub rings: u8,
    /// From so many reports on a subject is cut (H).
    pub high: u8,
    /// From so many reports on others wait for it (L).
    pub low: u8,
}

impl Shape {
    /// What the paper's evaluation and its implementation use; L is 3 there in places, 4 in others.
    pub const DEFAULT: Shape = Shape { rings: 10, high: 9, low: 4 };

    /// Whether `rings >= high >= low > 0`, with at least three rings and no more than there may be.
    #[must_use]
    pub const fn is_sound(self) -> bool {
        let is_ordered = self.rings >= self.high && self.high >= self.low && self.low > 0;
        is_ordered && self.rings >= 3 && self.rings as usize <= ROLL_RINGS_MAX
    }

    /// One bit for each ring.
    #[must_use]
    pub(super) fn all_rings(self) -> u16 {
        ((1_u32 << self.rings) - 1) as u16
    }
}

const _: () = assert!(Shape::DEFAULT.is_sound());

/// Who takes part. Nothing but a decided change makes the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Its number, and the digest of the chain up to here.
    pub id: RollId,
    /// How members observe each other.
    pub shape: Shape,
    /// Ascending by id.
    pub members: Vec<Arc<Member>>,
    /// The newest of those that are members no more, newest last: they never come back.
    pub left: Vec<NodeId>,
}

impl Default for Configuration {
    fn default() -> Self {
        let (members, left) = (Vec::new(), Vec::new());
        Configuration { id: RollId::default(), shape: Shape::DEFAULT, members, left }
    }
}

impl Configuration {
    /// The one that a cluster is born with; none if the founders are not different well-formed
    /// members, or too many, or the shape is not sound.
    #[must_use]
    pub fn founding(shape: Shape, founders: &[Member]) -> Option<Configuration> {
        let mut members: Vec<Arc<Member>> = founders.iter().cloned().map(Arc::new).collect();
        members.sort_by_key(|member| member.id);
        let id = RollId { number: Number(1), digest: Digest::default() };
        let mut founding = Configuration { id, shape, members, left: Vec::new() };
        founding.id.digest = Digest::of(&founding.encode());
        founding.is_well_formed().then_some(founding)
    }

    /// Whether a correct peer can tell of it.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let members = &self.members;
        self.id.number > Number(0)
            && self.shape.is_sound()
            && (1..=ROLL_MEMBERS_MAX).contains(&members.len())
            && self.left.len() <= ROLL_LEFT_MAX
            && members.windows(2).all(|pair| pair[0].id < pair[1].id)
            && members.iter().all(|member| member.is_well_formed())
            && !self.left.iter().any(|gone| self.contains(*gone))
    }

    /// A member, if it is one.
    #[must_use]
    pub fn member(&self, node: NodeId) -> Option<&Arc<Member>> {
        let place = self.members.binary_search_by_key(&node, |member| member.id).ok()?;
        Some(&self.members[place])
    }

    /// Whether a node takes part.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.member(node).is_some()
    }

    /// Whether a node is among the newest that were members and are no more.
    #[must_use]
    pub fn has_left(&self, node: NodeId) -> bool {
        self.left.contains(&node) && !mutant!("roll_id_joins_twice")
    }

    /// The ids of all members, ascending.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.members.iter().map(|member| member.id)
    }

    /// How many members decide in a classic round.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// How many members may be missing in the fast round (F).
    #[must_use]
    pub fn spare(&self) -> usize {
        self.members.len().saturating_sub(1) / 4
    }

    /// How many members decide in the fast round (N − F).
    #[must_use]
    pub fn fast_quorum(&self) -> usize {
        if mutant!("roll_fast_quorum_is_majority") {
            return self.majority();
        }
        self.members.len() - self.spare()
    }

    /// Whether a change may follow: who joins is new, who leaves is a member, somebody stays, and
    /// all is within its limits.
    #[must_use]
    pub fn may_follow(&self, change: &Change) -> bool {
        let is_new = |member: &Arc<Member>| !self.contains(member.id) && !self.has_left(member.id);
        let staying = self.members.len().saturating_sub(change.leaves.len());
        change.is_well_formed()
            && change.joins.iter().all(is_new)
            && change.leaves.iter().all(|node| self.contains(*node))
            && staying > 0
            && staying + change.joins.len() <= ROLL_MEMBERS_MAX
    }

    /// The configuration that a change makes. Of those who left, all keep the same newest ones.
    #[must_use]
    pub fn after(&self, change: &Change) -> Configuration {
        assert!(self.may_follow(change), "only a change that may follow is decided");
        let stays = |member: &&Arc<Member>| change.leaves.binary_search(&member.id).is_err();
        let mut members: Vec<Arc<Member>> = self.members.iter().filter(stays).cloned().collect();
        members.extend(change.joins.iter().cloned());
        members.sort_by_key(|member| member.id);
        let mut left = self.left.clone();
        left.extend(&change.leaves);
        left.drain(..left.len().saturating_sub(ROLL_LEFT_MAX));
        let mut chain = Vec::from(self.id.digest.0.to_be_bytes());
        chain.extend(change.encode());
        let id = RollId { number: self.id.number.next(), digest: Digest::of(&chain) };
        Configuration { id, shape: self.shape, members, left }
    }

    /// Its bytes, in messages and in the store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, &(self.id, self.shape));
        put_list(&mut out, &self.members);
        put_list(&mut out, &self.left);
        out
    }

    /// Reads one; none if the bytes are not one that is well formed.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Configuration> {
        let (id, shape) = take(&mut bytes)?;
        let members = take_list(&mut bytes, ROLL_MEMBERS_MAX)?;
        let left = take_list(&mut bytes, ROLL_LEFT_MAX)?;
        let read = Configuration { id, shape, members, left };
        (bytes.is_empty() && read.is_well_formed()).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    pub fn member(id: u64) -> Member {
        Member { id: NodeId(id), address: format!("host{id}:1"), metadata: Vec::from([id as u8]) }
    }

    fn of(ids: core::ops::RangeInclusive<u64>) -> Configuration {
        let founders: Vec<Member> = ids.map(member).collect();
        Configuration::founding(Shape::DEFAULT, &founders).expect("they are different")
    }

    fn change(joins: &[u64], leaves: &[u64]) -> Change {
        let joins = joins.iter().map(|id| Arc::new(member(*id))).collect();
        Change::new(joins, leaves.iter().copied().map(NodeId).collect())
    }

    /// Lamport, "Fast Paxos", §2.2: two fast quorums and a classic one have a member in common.
    #[test]
    fn quorums_meet_as_the_rule_for_choosing_values_needs() {
        for count in 1..=40 {
            let one = of(1..=count);
            let (n, majority) = (count as usize, one.majority());
            assert!(2 * majority > n, "two majorities of {n} meet");
            assert!(2 * one.fast_quorum() + majority > 2 * n, "fast quorums of {n} meet in each");
            assert!(majority > 2 * one.spare(), "one value at most can have been decided");
        }
        let counts: Vec<usize> = (1..=9).map(|count| of(1..=count).fast_quorum()).collect();
        assert_eq!(counts, [1, 2, 3, 4, 4, 5, 6, 7, 7]);
    }

    #[test]
    fn the_relations_of_k_h_and_l_are_checked() {
        let of = |rings, high, low| Shape { rings, high, low }.is_sound();
        assert!(of(10, 9, 4) && of(3, 3, 3) && of(16, 1, 1));
        for (rings, high, low) in [(10, 11, 4), (10, 4, 9), (10, 9, 0), (2, 2, 1), (17, 9, 4)] {
            assert!(!of(rings, high, low), "{rings} {high} {low}");
        }
        assert_eq!(Shape::DEFAULT.all_rings(), 0x3ff);
    }

    #[test]
    fn changes_make_one_chain_and_nobody_comes_twice() {
        let first = of(1..=3);
        let next = first.after(&change(&[4, 9], &[2]));
        assert_eq!(next.ids().map(|id| id.0).collect::<Vec<_>>(), [1, 3, 4, 9]);
        assert_eq!((next.id.number, &next.left[..]), (Number(2), &[NodeId(2)][..]));
        assert!(!next.may_follow(&change(&[2], &[])), "it was a member");
        assert!(!next.may_follow(&change(&[3], &[])), "it is a member");
        assert!(!next.may_follow(&change(&[], &[5])), "it is none");
        assert!(!next.may_follow(&change(&[], &[])), "nothing changes");
        assert!(!next.may_follow(&change(&[7], &[1, 3, 4, 9])), "nobody stays");
        let other = first.after(&change(&[4], &[2])).after(&change(&[9], &[]));
        assert_eq!(other.members, next.members);
        assert_ne!(other.id.digest, next.id.digest, "another chain");
        assert_eq!(Configuration::decode(&next.encode()), Some(next));
    }

    /// Who left is forgotten by a rule that all agree on: the newest are kept.
    #[test]
    fn of_those_that_left_the_newest_are_remembered() {
        let mut one = of(1..=2);
        for id in 3..3 + ROLL_LEFT_MAX as u64 + 5 {
            one = one.after(&change(&[id], &[id - 1]));
        }
        assert_eq!(one.left.len(), ROLL_LEFT_MAX);
        assert!(!one.left.contains(&NodeId(6)) && one.left.contains(&NodeId(7)));
        assert!(one.is_well_formed());
    }

    #[test]
    fn founders_that_make_no_sense_are_none() {
        let founding = |founders: &[Member]| Configuration::founding(Shape::DEFAULT, founders);
        assert!(founding(&[]).is_none() && founding(&[member(1), member(1)]).is_none());
        let mut long = member(1);
        long.metadata = std::vec![0; ROLL_METADATA_BYTES_MAX + 1];
        assert!(founding(&[long]).is_none());
        let shape = Shape { rings: 10, high: 4, low: 9 };
        assert!(Configuration::founding(shape, &[member(1)]).is_none());
    }
}
