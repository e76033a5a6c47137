//! Whom phase 1 asks first: this node, if it is a member, and those that follow it in the order of
//! ids, as many as a majority needs, without those that were late a moment ago. Which majority
//! answers makes no difference to what is right; the rest is asked as soon as the first is late,
//! lacks data or disagrees.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::GROUPS_MAX;
use quorate_kernel::ring::Ring;
use quorate_kernel::rng::mix;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::View;

/// How long a member that was late is not asked first.
const LATE_FOR: Span = Span::secs(1);

/// What is known of members' haste.
#[derive(Debug, Default)]
pub(crate) struct Preference {
    late: Vec<(NodeId, Time)>,
    /// The choices for the newest view of each group, until somebody is late or no longer.
    chosen: BTreeMap<GroupId, (u64, Arc<[NodeId]>)>,
}

impl Preference {
    /// The members to ask first; everybody if too many are late.
    pub fn first(
        &mut self,
        view: &View,
        ring: Option<&Ring>,
        me: NodeId,
        now: Time,
    ) -> &Arc<[NodeId]> {
        if !self.late.is_empty() {
            let before = self.late.len();
            self.late.retain(|(_, until)| *until > now);
            if before != self.late.len() {
                self.chosen.clear();
            }
        }
        let known = self.chosen.get(&view.id.group);
        if known.is_none_or(|(version, _)| *version != view.id.version) {
            if self.chosen.len() >= GROUPS_MAX {
                self.chosen.clear();
            }
            let choice = (view.id.version, self.choose(view, ring, me));
            self.chosen.insert(view.id.group, choice);
        }
        &self.chosen.get(&view.id.group).expect("it is known, or was just chosen").1
    }

    /// Suspicions have changed.
    pub fn forget(&mut self) {
        self.chosen.clear();
    }

    fn choose(&self, view: &View, ring: Option<&Ring>, me: NodeId) -> Arc<[NodeId]> {
        // A coordinator that is no member begins where its id says, so that many spread.
        let anywhere = || (mix(me.0) % view.members().len() as u64) as usize;
        let index = view.index_of(me).unwrap_or_else(anywhere);
        let (before, from_me) = view.members().split_at(index);
        let is_late = |node: NodeId| {
            let is_suspected = ring.is_some_and(|ring| ring.is_suspected(node));
            is_suspected || self.late.iter().any(|(late, _)| *late == node)
        };
        let in_order = from_me.iter().chain(before).copied();
        let first: Vec<NodeId> =
            in_order.filter(|node| !is_late(*node)).take(view.majority()).collect();
        if first.len() < view.majority() { Arc::clone(view.group()) } else { first.into() }
    }

    /// A member that was asked first kept an operation waiting.
    pub fn note_late(&mut self, node: NodeId, now: Time) {
        self.late.retain(|(late, _)| *late != node);
        self.late.push((node, now + LATE_FOR));
        self.chosen.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::view::{Range, ViewId};

    #[test]
    fn a_late_member_is_spared_for_a_while() {
        let members = (1..=3).map(NodeId).collect();
        let view = View::new(ViewId::default(), Range::ALL, members);
        let mut preference = Preference::default();
        let first = |preference: &mut Preference, me, now| -> Vec<u64> {
            preference.first(&view, None, NodeId(me), Time(now)).iter().map(|node| node.0).collect()
        };
        assert_eq!(first(&mut preference, 3, 0), [3, 1]);
        preference.note_late(NodeId(1), Time(0));
        assert_eq!(first(&mut preference, 3, 1), [3, 2]);
        preference.note_late(NodeId(2), Time(1));
        assert_eq!(first(&mut preference, 3, 2), [1, 2, 3]);
        assert_eq!(first(&mut preference, 3, LATE_FOR.0), [3, 1]);
        for outside in 10..20 {
            let chosen = first(&mut Preference::default(), outside, 0);
            assert_eq!(chosen.len(), 2, "a coordinator that is no member asks a majority too");
        }
    }
}
