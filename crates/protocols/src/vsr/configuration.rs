//! Who a group's members are in an epoch, and which of them is the primary of a view.

use super::number::{Epoch, Op, ViewNumber};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::rng::mix;
use serde::{Deserialize, Serialize};

/// The members of a group in one epoch. Nothing but a committed entry of the log makes the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its number.
    pub epoch: Epoch,
    /// Ascending; none in epoch 0.
    pub members: Arc<[NodeId]>,
    /// Where the entry stands that made it, the last one of the epoch before.
    pub since: Op,
    /// The members of the epoch before, ascending; none if they were the same, or nobody knows.
    pub before: Arc<[NodeId]>,
    /// The last epoch that began with what was left when something that had been acknowledged may
    /// have been lost; 0 if none did.
    pub life: Epoch,
}

/// Whether members are as a configuration lists them: ascending, not too many, at least one.
#[must_use]
pub fn are_members(members: &[NodeId]) -> bool {
    (1..=GROUP_MEMBERS_MAX).contains(&members.len())
        && members.windows(2).all(|pair| pair[0] < pair[1])
}

impl Configuration {
    /// The configuration of epoch 0.
    #[must_use]
    pub fn none() -> Configuration {
        let (members, before) = (Arc::from([]), Arc::from([]));
        Configuration { epoch: Epoch(0), members, since: Op(0), before, life: Epoch(0) }
    }

    /// The one that an entry with these members makes, which ends an epoch.
    #[must_use]
    pub fn after(ended: Epoch, members: &[NodeId], since: Op) -> Configuration {
        let (before, life) = (Arc::from([]), Epoch(0));
        Configuration { epoch: ended.next(), members: members.into(), since, before, life }
    }

    /// The same where that epoch had this configuration. Of an earlier one nothing follows: the
    /// entry that began the epoch was lost then, and one with the same members has ended it.
    #[must_use]
    pub(super) fn following(self, ended: &Configuration) -> Configuration {
        let is_next = ended.epoch.next() == self.epoch && ended.members != self.members;
        let before = if is_next { ended.members.clone() } else { Arc::from([]) };
        Configuration { before, life: ended.life, ..self }
    }

    /// The same where the log goes on with what is left of it.
    #[must_use]
    pub(super) fn of_what_is_left(self) -> Configuration {
        Configuration { life: self.epoch, ..self }
    }

    /// Whether a correct peer can tell of it.
    pub(super) fn is_well_formed(&self) -> bool {
        let may_be_before = self.before.is_empty() || are_members(&self.before);
        let may_be = match self.epoch {
            Epoch(0) => self.members.is_empty() && self.before.is_empty(),
            _ => are_members(&self.members),
        };
        may_be && may_be_before && self.life <= self.epoch
    }

    /// Whether a node was a member of the epoch before, and is none of this one.
    pub(super) fn has_removed(&self, node: NodeId) -> bool {
        self.before.binary_search(&node).is_ok() && !self.contains(node)
    }

    /// Whether so many members were removed that one of them has whatever this epoch began with:
    /// they meet every majority that can have committed its first entry.
    pub(super) fn is_handed_over(&self) -> bool {
        let removed = self.before.iter().filter(|node| self.has_removed(**node)).count();
        !self.before.is_empty() && removed >= meeting(self.before.len())
    }

    /// How many members are a majority.
    #[must_use]
    pub fn majority(&self) -> usize {
        majority(self.members.len())
    }

    /// How many members meet every majority: of so many logs one has what was committed.
    #[must_use]
    pub fn meeting(&self) -> usize {
        meeting(self.members.len())
    }

    /// Whether a node is a member.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.members.binary_search(&node).is_ok()
    }

    /// The primary of a view: the member of rank `view mod n` in an order that is hashed from group
    /// and node, so that several groups of the same hosts have different primaries.
    #[must_use]
    pub fn primary(&self, group: GroupId, view: ViewNumber) -> Option<NodeId> {
        if view.epoch != self.epoch || self.members.is_empty() {
            return None;
        }
        let rank = (view.view % self.members.len() as u64) as usize;
        Some(self.order(group)[rank])
    }

    /// How many views later than `view` a member is the primary; 0 if it is that of `view`.
    #[must_use]
    pub fn rank(&self, group: GroupId, view: ViewNumber, node: NodeId) -> u64 {
        let count = self.members.len() as u64;
        let place = self.order(group).iter().position(|member| *member == node);
        place.map_or(count, |place| (place as u64 + count - view.view % count) % count)
    }

    fn order(&self, group: GroupId) -> Vec<NodeId> {
        let mut order: Vec<NodeId> = self.members.to_vec();
        order.sort_unstable_by_key(|node| (mix(group.0 ^ mix(node.0)), *node));
        order
    }
}

fn majority(members: usize) -> usize {
    members / 2 + 1
}

fn meeting(members: usize) -> usize {
    members + 1 - majority(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(count: u64) -> Configuration {
        let members: Vec<NodeId> = (1..=count).map(NodeId).collect();
        Configuration::after(Epoch(0), &members, Op(1))
    }

    #[test]
    fn every_member_is_primary_in_turn_and_groups_differ() {
        for count in 1..=7 {
            let configuration = of(count);
            let at = |group, view| {
                configuration.primary(GroupId(group), ViewNumber { epoch: Epoch(1), view })
            };
            let round: BTreeSet<_> = (0..count).map(|view| at(7, view)).collect();
            assert_eq!(round.len() as u64, count);
            assert_eq!(at(7, 0), at(7, count));
            for view in 0..count {
                let number = ViewNumber { epoch: Epoch(1), view };
                for (distance, later) in (view..view + count).enumerate() {
                    let node = at(7, later).expect("it has members");
                    assert_eq!(configuration.rank(GroupId(7), number, node), distance as u64);
                }
            }
        }
        let firsts: BTreeSet<_> = (0..64)
            .map(|group| of(3).primary(GroupId(group), ViewNumber::first(Epoch(1))))
            .collect();
        assert_eq!(firsts.len(), 3, "primaries are spread over the hosts");
    }

    #[test]
    fn so_many_members_meet_every_majority_and_no_fewer() {
        for count in 1..=7 {
            let configuration = of(count);
            let (majority, meeting) = (configuration.majority(), configuration.meeting());
            assert!(majority + majority > count as usize && meeting <= majority);
            assert_eq!(meeting + majority, count as usize + 1);
        }
    }

    #[test]
    fn an_epoch_is_handed_over_by_so_many_that_they_meet_every_majority() {
        let cases: [(u64, &[u64], bool); 6] = [
            (3, &[1, 2, 4], false),
            (3, &[1, 4, 5], true),
            (4, &[1, 2, 3], false),
            (4, &[1, 2, 5], true),
            (1, &[2], true),
            (2, &[1], true),
        ];
        for (count, next, is_handed_over) in cases {
            let members: Vec<NodeId> = next.iter().copied().map(NodeId).collect();
            let next = Configuration::after(Epoch(1), &members, Op(9)).following(&of(count));
            assert_eq!(next.is_handed_over(), is_handed_over, "{count} to {members:?}");
            let removed: Vec<u64> =
                (1..=9).filter(|node| next.has_removed(NodeId(*node))).collect();
            let expected = (1..=count).filter(|node| !next.contains(NodeId(*node)));
            assert_eq!(removed, expected.collect::<Vec<_>>());
        }
        let later = Configuration::after(Epoch(2), &[NodeId(9)], Op(9)).following(&of(3));
        assert!(later.before.is_empty(), "the epoch between was lost");
    }

    #[test]
    fn what_was_lost_last_is_known_in_all_later_epochs() {
        let next = |ended: &Configuration| {
            Configuration::after(ended.epoch, &[NodeId(1)], Op(9)).following(ended)
        };
        let second = next(&of(3));
        assert_eq!((second.epoch, second.life), (Epoch(2), Epoch(0)));
        let third = next(&second).of_what_is_left();
        let fourth = next(&third);
        assert_eq!([&third, &fourth].map(|it| (it.epoch.0, it.life.0)), [(3, 3), (4, 3)]);
        assert_eq!(next(&fourth).of_what_is_left().life, Epoch(5));
    }

    #[test]
    fn only_ascending_members_within_the_limit_are_members() {
        let nodes = |ids: &[u64]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        assert!(are_members(&nodes(&[1])) && are_members(&nodes(&[1, 2, 9])));
        for wrong in [&[][..], &[2, 1], &[1, 1], &[1, 2, 3, 4, 5, 6, 7, 8]] {
            assert!(!are_members(&nodes(wrong)), "{wrong:?}");
        }
    }
}
