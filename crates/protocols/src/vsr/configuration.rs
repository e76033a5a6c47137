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
        Configuration { epoch: Epoch(0), members: Arc::from([]), since: Op(0) }
    }

    /// The one that an entry with these members makes, which ends an epoch.
    #[must_use]
    pub fn after(ended: Epoch, members: &[NodeId], since: Op) -> Configuration {
        Configuration { epoch: ended.next(), members: members.into(), since }
    }

    /// Whether a correct peer can tell of it.
    pub(super) fn is_well_formed(&self) -> bool {
        if self.epoch == Epoch(0) { self.members.is_empty() } else { are_members(&self.members) }
    }

    /// How many members are a majority.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// How many members meet every majority: of so many logs one has what was committed.
    #[must_use]
    pub fn meeting(&self) -> usize {
        self.members.len() + 1 - self.majority()
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
    fn only_ascending_members_within_the_limit_are_members() {
        let nodes = |ids: &[u64]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        assert!(are_members(&nodes(&[1])) && are_members(&nodes(&[1, 2, 9])));
        for wrong in [&[][..], &[2, 1], &[1, 1], &[1, 2, 3, 4, 5, 6, 7, 8]] {
            assert!(!are_members(&nodes(wrong)), "{wrong:?}");
        }
    }
}
