//! An immutable membership snapshot of one replication group.

use crate::ids::{GroupId, NodeId};
use crate::limits::GROUP_MEMBERS_MAX;
use crate::rng::mix;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Identity of a view. Views are compared by it, never by their member sets: a group that changes
/// from {A,B,C} to {A,B,D} and back is in a third view, not in its first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ViewId {
    /// Whose view it is.
    pub group: GroupId,
    /// Rises by one with each reconfiguration.
    pub version: u64,
}

/// A part of the hash space, as the half-open interval from `low` up to and including `high`;
/// `low == high` is the whole space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    /// Tokens up to and including this one belong to the predecessor.
    pub low: u64,
    /// The last token of the range.
    pub high: u64,
}

impl Range {
    /// The whole hash space.
    pub const ALL: Range = Range { low: u64::MAX, high: u64::MAX };

    /// Whether the token lies in the range, which may wrap around the end of the space.
    #[must_use]
    pub fn contains(&self, token: u64) -> bool {
        if self.low < self.high {
            self.low < token && token <= self.high
        } else {
            self.low == self.high || token > self.low || token <= self.high
        }
    }

    /// Where the range next to this one begins, going up from one of its tokens; none at the
    /// end of the space.
    #[must_use]
    pub fn after(&self, token: u64) -> Option<u64> {
        assert!(self.contains(token), "one of its tokens");
        // A range that wraps holds the end of the space above `low`.
        if token <= self.high { self.high.checked_add(1) } else { None }
    }
}

/// What can follow a view: one member changes, or the range is cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Change {
    /// One member leaves and another node takes its place.
    Replace {
        /// Who leaves.
        out: NodeId,
        /// Who comes.
        into: NodeId,
    },
    /// A node joins.
    Grow {
        /// Who comes.
        into: NodeId,
    },
    /// A member leaves.
    Shrink {
        /// Who leaves.
        out: NodeId,
    },
    /// The range is cut after this token; the members stay.
    Split {
        /// The last token of the left part.
        at: u64,
    },
}

impl Change {
    /// The node that comes, if one comes.
    #[must_use]
    pub fn newcomer(&self) -> Option<NodeId> {
        match self {
            Change::Replace { into, .. } | Change::Grow { into } => Some(*into),
            Change::Shrink { .. } | Change::Split { .. } => None,
        }
    }

    /// The node that leaves, if one leaves.
    #[must_use]
    pub fn leaver(&self) -> Option<NodeId> {
        match self {
            Change::Replace { out, .. } | Change::Shrink { out } => Some(*out),
            Change::Grow { .. } | Change::Split { .. } => None,
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

    /// The index of a member in the sorted list.
    #[must_use]
    pub fn index_of(&self, node: NodeId) -> Option<usize> {
        self.members.binary_search(&node).ok()
    }

    /// How many members a majority needs.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// The view, or after a split the two views, that a change makes of this one; `None` if the
    /// change does not fit it.
    ///
    /// Each part of a split is a group of its own, whose name follows from the parent's view. Its
    /// version goes on from the parent's, so that of two views that cover a token the one with
    /// the higher version is the newer, whatever their groups.
    #[must_use]
    pub fn after(&self, change: &Change) -> Option<Vec<View>> {
        let is_member = |node: &NodeId| self.index_of(*node).is_some();
        let mut members = self.members.to_vec();
        match change {
            Change::Replace { out, into } if is_member(out) && !is_member(into) => {
                members.retain(|member| member != out);
                members.push(*into);
            }
            Change::Grow { into } if !is_member(into) && members.len() < GROUP_MEMBERS_MAX => {
                members.push(*into);
            }
            Change::Shrink { out } if is_member(out) && members.len() > 1 => {
                members.retain(|member| member != out);
            }
            Change::Split { at } if self.range.contains(*at) && *at != self.range.high => {
                let halves = [
                    Range { low: self.range.low, high: *at },
                    Range { low: *at, high: self.range.high },
                ];
                let name = mix(mix(self.id.group.0 ^ 0x5b11) ^ self.id.version);
                let child = |(side, range)| {
                    let group = GroupId(mix(name.wrapping_add(side)));
                    let id = ViewId { group, version: self.id.version + 1 };
                    View { id, range, members: Arc::clone(&self.members) }
                };
                return Some((0..).zip(halves).map(child).collect());
            }
            _ => return None,
        }
        let id = ViewId { group: self.id.group, version: self.id.version + 1 };
        Some(Vec::from([View::new(id, self.range, members)]))
    }

    /// The change of members that leads from this view to the next, if one does.
    #[must_use]
    pub fn change_to(&self, next: &View) -> Option<Change> {
        let out = self.members.iter().copied().find(|node| next.index_of(*node).is_none());
        let into = next.members.iter().copied().find(|node| self.index_of(*node).is_none());
        let change = match (out, into) {
            (Some(out), Some(into)) => Change::Replace { out, into },
            (Some(out), None) => Change::Shrink { out },
            (None, Some(into)) => Change::Grow { into },
            (None, None) => return None,
        };
        let [after] = <[View; 1]>::try_from(self.after(&change)?).ok()?;
        (after == *next).then_some(change)
    }

    /// Whether what was decoded obeys the rules that [`View::new`] asserts.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        // No group gets this far, and versions must have room above them.
        self.id.version < 1 << 62
            && !self.members.is_empty()
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
    fn a_walk_over_ranges_ends_where_the_space_does() {
        let (plain, wrapped) = (Range { low: 10, high: 20 }, Range { low: 20, high: 10 });
        assert_eq!(
            (wrapped.after(0), plain.after(11), wrapped.after(21)),
            (Some(11), Some(21), None)
        );
        assert_eq!(Range { low: 20, high: u64::MAX }.after(21), None);
        assert_eq!(Range::ALL.after(0), None);
        let from_seven = Range { low: 7, high: 7 };
        assert_eq!((from_seven.after(0), from_seven.after(8)), (Some(8), None));
    }

    #[test]
    fn a_change_makes_the_next_view_or_does_not_fit() {
        let range = Range { low: 10, high: 20 };
        let view = View::new(ViewId::default(), range, [1, 2, 3].map(NodeId).into());
        let (two, four) = (NodeId(2), NodeId(4));
        let next = view.after(&Change::Replace { out: two, into: four }).expect("it fits");
        assert_eq!(next[0].members(), [1, 3, 4].map(NodeId));
        assert_eq!((next[0].id.version, next[0].range), (1, range));
        assert!(view.after(&Change::Replace { out: four, into: two }).is_none());
        assert!(view.after(&Change::Grow { into: two }).is_none());
        assert_eq!(view.after(&Change::Grow { into: four }).map(|v| v[0].members().len()), Some(4));
        assert_eq!(view.after(&Change::Shrink { out: two }).map(|v| v[0].members().len()), Some(2));
        let halves = view.after(&Change::Split { at: 15 }).expect("it fits");
        assert_eq!((halves[0].range.high, halves[1].range.low), (15, 15));
        assert!(halves[0].id.group != halves[1].id.group && halves[0].members() == view.members());
        assert!(view.after(&Change::Split { at: 20 }).is_none(), "nothing would be right of it");
        assert!(view.after(&Change::Split { at: 10 }).is_none(), "nothing would be left of it");
        let all = View::new(ViewId::default(), Range::ALL, [1].map(NodeId).into());
        let halves = all.after(&Change::Split { at: 7 }).expect("it fits");
        for token in [0, 7, 8, u64::MAX] {
            assert!(halves[0].range.contains(token) != halves[1].range.contains(token));
        }
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
