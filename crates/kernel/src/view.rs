//! An immutable membership snapshot of one replication group.

use crate::ids::{GroupId, NodeId};
use crate::limits::GROUP_MEMBERS_MAX;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Identity of a view. Views are compared by it, never by their member sets: a group that changes
/// from {A,B,C} to {A,B,D} and back is in a third view, not in its first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ViewId {
    /// The group.
    pub group: GroupId,
    /// Rises by one with each reconfiguration.
    pub version: u64,
}

/// A part of the hash space, as the half-open interval from `low` up to and including `high`;
/// `low == high` is the whole space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Positions up to and including this one belong to the predecessor.
    pub low: u64,
    /// The last position of the range.
    pub high: u64,
}

impl Range {
    /// The whole hash space.
    pub const ALL: Range = Range { low: u64::MAX, high: u64::MAX };

    /// Whether the position lies in the range, which may wrap around the end of the space.
    #[must_use]
    pub fn contains(&self, position: u64) -> bool {
        if self.low < self.high {
            self.low < position && position <= self.high
        } else {
            self.low == self.high || position > self.low || position <= self.high
        }
    }
}

/// A versioned membership of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Which view this is.
    pub id: ViewId,
    /// The part of the hash space the group serves.
    pub range: Range,
    members: Arc<[NodeId]>,
}

impl View {
    /// A view of these members, which are sorted; 1 to [`GROUP_MEMBERS_MAX`] of them, all distinct.
    #[must_use]
    pub fn new(id: ViewId, range: Range, mut members: Vec<NodeId>) -> View {
        members.sort_unstable();
        assert!(
            !members.is_empty() && members.len() <= GROUP_MEMBERS_MAX,
            "a view has 1..=7 members"
        );
        assert!(members.windows(2).all(|pair| pair[0] < pair[1]), "a view's members are distinct");
        View { id, range, members: members.into() }
    }

    /// The members in ascending order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// The members as a group to send to.
    #[must_use]
    pub fn group(&self) -> &Arc<[NodeId]> {
        &self.members
    }

    /// The position of a member in the sorted list.
    #[must_use]
    pub fn index_of(&self, node: NodeId) -> Option<usize> {
        self.members.binary_search(&node).ok()
    }

    /// How many members a majority needs.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Whether what was decoded obeys the rules that [`View::new`] asserts.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        !self.members.is_empty()
            && self.members.len() <= GROUP_MEMBERS_MAX
            && self.members.windows(2).all(|pair| pair[0] < pair[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn ranges_wrap_and_cover() {
        assert!(Range::ALL.contains(0) && Range::ALL.contains(u64::MAX));
        let plain = Range { low: 10, high: 20 };
        assert!(!plain.contains(10) && plain.contains(11) && plain.contains(20));
        assert!(!plain.contains(21));
        let wrapped = Range { low: 20, high: 10 };
        assert!(wrapped.contains(21) && wrapped.contains(0) && wrapped.contains(10));
        assert!(!wrapped.contains(11) && !wrapped.contains(20));
    }

    #[test]
    fn majorities() {
        for (members, majority) in [(1, 1), (2, 2), (3, 2), (5, 3), (7, 4)] {
            let view = View::new(
                ViewId::default(),
                Range::ALL,
                (0..members).map(NodeId).collect::<Vec<_>>(),
            );
            assert_eq!(view.majority(), majority);
            assert_eq!(view.index_of(NodeId(members)), None);
            assert!(view.is_well_formed());
        }
        let view = View::new(ViewId::default(), Range::ALL, vec![NodeId(9), NodeId(3)]);
        assert_eq!(view.members(), [NodeId(3), NodeId(9)]);
    }
}
