//! Consistent quorums (CATS §4, Definition 1) as pure functions, and crash vectors, which keep them
//! consistent when a member may forget what it acknowledged.
//!
//! A reply counts for a view only if its sender is a member of that very view and stamped it. A
//! member that lost its data takes part again under a higher start; what its earlier start had
//! acknowledged must no longer count. Each node therefore keeps a **crash vector**: the start in
//! which each member began anew. Replies carry it, and a reply of an earlier start than the vector
//! names is not counted (E. Michael et al., "Recovering Shared Objects Without Stable Storage",
//! DISC 2017, §4).

use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::view::View;
use serde::{Deserialize, Serialize};

/// For each node that ever forgot its data: the start in which it did so last; in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashVector(Vec<(NodeId, Start)>);

impl CrashVector {
    /// Whether no node ever forgot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The start in which a node forgot; 0 if it never did.
    #[must_use]
    pub fn of(&self, node: NodeId) -> Start {
        self.place(node).map_or(Start(0), |place| self.0[place].1)
    }

    /// Where the entry of a node is, or belongs.
    fn place(&self, node: NodeId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&node, |(known, _)| *known)
    }

    /// What it says of these nodes.
    #[must_use]
    pub fn about(&self, nodes: &[NodeId]) -> CrashVector {
        let mut about = CrashVector::default();
        if !self.is_empty() {
            for node in nodes {
                about.raise(*node, self.of(*node));
            }
        }
        about
    }

    /// Raises the entry of a node; returns whether that changed anything.
    pub fn raise(&mut self, node: NodeId, start: Start) -> bool {
        if self.of(node) >= start {
            return false;
        }
        match self.place(node) {
            Ok(place) => self.0[place].1 = start,
            Err(place) => self.0.insert(place, (node, start)),
        }
        true
    }

    /// Takes the higher entry of both for each node.
    pub fn merge(&mut self, other: &CrashVector) {
        for (node, start) in &other.0 {
            self.raise(*node, *start);
        }
    }

    /// Whether a reply of this incarnation still stands for what its node holds.
    #[must_use]
    pub fn admits(&self, from: Incarnation) -> bool {
        mutant!("forgets_ignored") || from.start >= self.of(from.node)
    }
}

/// How many replies have room without an allocation: those of a group of the usual size. With room
/// for the largest group operations would be large, and they are moved several times.
const INLINE_MEMBERS: usize = 3;

/// A member's reply, and the start in which it gave it.
type Slot<T> = Option<(Start, T)>;

/// The replies of one phase of one operation, at most one of each member of one view.
#[derive(Clone, Debug)]
pub struct Replies<T> {
    few: [Slot<T>; INLINE_MEMBERS],
    /// Those of the members after them; empty until one of these replies.
    more: Vec<Slot<T>>,
}

impl<T> Default for Replies<T> {
    fn default() -> Replies<T> {
        Replies { few: [const { None }; INLINE_MEMBERS], more: Vec::new() }
    }
}

impl<T> Replies<T> {
    fn slots(&self) -> impl Iterator<Item = &Slot<T>> {
        self.few.iter().chain(&self.more)
    }

    /// Keeps the reply of a member, in place of an earlier one of it. Returns false, and keeps
    /// nothing, if the sender is no member of the view: a removed node never counts.
    pub fn keep(&mut self, view: &View, from: Incarnation, reply: T) -> bool {
        let Some(index) = view.index_of(from.node) else { return false };
        assert!(index < GROUP_MEMBERS_MAX, "a view has at most {GROUP_MEMBERS_MAX} members");
        let slot = match self.few.get_mut(index) {
            Some(slot) => slot,
            None => {
                let beyond = index - INLINE_MEMBERS;
                if self.more.len() <= beyond {
                    self.more.resize_with(view.members().len() - INLINE_MEMBERS, || None);
                }
                &mut self.more[beyond]
            }
        };
        *slot = Some((from.start, reply));
        true
    }

    /// The reply of a member, if it counts.
    #[must_use]
    pub fn of(&self, view: &View, crashes: &CrashVector, node: NodeId) -> Option<&T> {
        let index = view.index_of(node)?;
        let slot = self.few.get(index).or_else(|| self.more.get(index - INLINE_MEMBERS));
        let (start, reply) = slot?.as_ref()?;
        crashes.admits(Incarnation { node, start: *start }).then_some(reply)
    }

    /// The replies that count: those whose sender has not forgotten since.
    pub fn counted<'a>(
        &'a self,
        view: &'a View,
        crashes: &'a CrashVector,
    ) -> impl Iterator<Item = (Incarnation, &'a T)> + 'a {
        let members = view.members().iter().zip(self.slots());
        members.filter_map(|(&node, slot)| {
            let (start, reply) = slot.as_ref()?;
            let from = Incarnation { node, start: *start };
            crashes.admits(from).then_some((from, reply))
        })
    }

    /// How many members have answered, counted or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots().flatten().count()
    }

    /// Whether nobody has answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How many of the other members a node that forgot must refill from: so many that they meet every
/// majority that the node was part of, in a member other than the node itself.
#[must_use]
pub fn refill_quorum(view: &View) -> usize {
    view.members().len() - view.majority() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quorate_kernel::view::{Range, ViewId};

    fn view(members: u64) -> View {
        View::new(ViewId::default(), Range::ALL, (1..=members).map(NodeId).collect())
    }

    fn incarnation(node: u64, start: u32) -> Incarnation {
        Incarnation { node: NodeId(node), start: Start(start) }
    }

    #[test]
    fn equal_replies_of_different_senders_are_two() {
        let (view, crashes) = (view(3), CrashVector::default());
        let mut replies = Replies::default();
        assert!(replies.keep(&view, incarnation(1, 1), "same"));
        assert!(replies.keep(&view, incarnation(2, 1), "same"));
        assert!(replies.keep(&view, incarnation(2, 1), "same"));
        assert!(!replies.keep(&view, incarnation(9, 1), "same"), "no member");
        assert_eq!(replies.counted(&view, &crashes).count(), 2);
        assert_eq!(replies.of(&view, &crashes, NodeId(2)), Some(&"same"));
    }

    #[test]
    fn a_reply_from_before_the_sender_forgot_does_not_count() {
        let view = view(3);
        let mut replies = Replies::default();
        replies.keep(&view, incarnation(1, 5), ());
        replies.keep(&view, incarnation(2, 1), ());
        let mut crashes = CrashVector::default();
        assert!(crashes.raise(NodeId(1), Start(6)) && !crashes.raise(NodeId(1), Start(5)));
        let counted: Vec<_> = replies.counted(&view, &crashes).map(|(from, ())| from).collect();
        assert_eq!(counted, [incarnation(2, 1)]);
        assert_eq!(replies.of(&view, &crashes, NodeId(1)), None);
        let mut other = CrashVector::default();
        other.raise(NodeId(2), Start(3));
        crashes.merge(&other);
        assert_eq!((crashes.of(NodeId(1)), crashes.of(NodeId(2))), (Start(6), Start(3)));
    }

    /// More members than there is room for inline, and their replies in any order.
    #[test]
    fn every_member_of_the_largest_group_counts_once() {
        let (view, crashes) = (view(GROUP_MEMBERS_MAX as u64), CrashVector::default());
        for first in 1..=GROUP_MEMBERS_MAX as u64 {
            let mut replies = Replies::default();
            assert_eq!(replies.of(&view, &crashes, NodeId(first)), None);
            let order = (first..=GROUP_MEMBERS_MAX as u64).chain(1..first);
            for (count, node) in order.enumerate() {
                assert_eq!(replies.len(), count);
                assert!(replies.keep(&view, incarnation(node, 1), node));
                assert_eq!(replies.of(&view, &crashes, NodeId(node)), Some(&node));
            }
            let counted =
                replies.counted(&view, &crashes).map(|(from, reply)| (from.node.0, *reply));
            assert!(counted.eq((1..=GROUP_MEMBERS_MAX as u64).map(|node| (node, node))));
        }
    }

    #[test]
    fn a_refill_meets_every_write_without_the_node_itself() {
        for members in 1..=7 {
            let view = view(members);
            let others = members as usize - 1;
            let of_a_write = view.majority() - 1;
            assert!(refill_quorum(&view) + of_a_write > others);
        }
        assert_eq!(refill_quorum(&view(3)), 2);
        assert_eq!(refill_quorum(&view(5)), 3);
    }

    #[test]
    fn a_later_reply_of_a_member_replaces_its_earlier_one() {
        let view = view(3);
        let mut replies = Replies::default();
        assert!(replies.is_empty());
        replies.keep(&view, incarnation(3, 1), "before");
        replies.keep(&view, incarnation(3, 2), "after");
        let mut crashes = CrashVector::default();
        assert_eq!(replies.of(&view, &crashes, NodeId(3)), Some(&"after"));
        // It answered in the start in which it forgot: that answer stands.
        crashes.raise(NodeId(3), Start(2));
        assert_eq!(replies.of(&view, &crashes, NodeId(3)), Some(&"after"));
        assert_eq!((replies.len(), replies.of(&view, &crashes, NodeId(1))), (1, None));
    }

    #[test]
    fn the_order_of_the_members_does_not_matter() {
        let id = ViewId::default();
        let view = View::new(id, Range::ALL, [9, 3, 5].map(NodeId).into());
        let mut replies = Replies::default();
        for node in [9, 5] {
            assert!(replies.keep(&view, incarnation(node, 1), node));
        }
        let crashes = CrashVector::default();
        let counted = replies.counted(&view, &crashes);
        assert!(counted.map(|(from, reply)| (from.node.0, *reply)).eq([(5, 5), (9, 9)]));
    }

    proptest! {
        #[test]
        fn crash_vectors_merge_in_any_order(
            a: Vec<(u8, u32)>,
            b: Vec<(u8, u32)>,
            c: Vec<(u8, u32)>,
        ) {
            let vector = |list: &[(u8, u32)]| {
                let mut vector = CrashVector::default();
                for (node, start) in list {
                    vector.raise(NodeId(u64::from(node % 5)), Start(*start));
                }
                vector
            };
            let merge = |parts: [&CrashVector; 3]| {
                let mut merged = CrashVector::default();
                parts.into_iter().for_each(|part| merged.merge(part));
                merged
            };
            let (a, b, c) = (vector(&a), vector(&b), vector(&c));
            let merged = merge([&a, &b, &c]);
            prop_assert_eq!(&merge([&c, &a, &b]), &merged);
            prop_assert_eq!(&merge([&merged, &b, &merged]), &merged);
            prop_assert!(merged.0.is_sorted());
            let about = merged.about(&[NodeId(3), NodeId(1)]);
            prop_assert_eq!([1, 3].map(|node| about.of(NodeId(node))),
                [1, 3].map(|node| merged.of(NodeId(node))));
            prop_assert!(about.0.len() <= 2);
            for node in (0..5).map(NodeId) {
                let highest = [&a, &b, &c].map(|part| part.of(node)).into_iter().max();
                prop_assert_eq!(Some(merged.of(node)), highest);
                let start = merged.of(node);
                let is_admitted = |start| merged.admits(Incarnation { node, start });
                prop_assert!(is_admitted(start));
                let before = start.0.checked_sub(1).map(Start);
                prop_assert!(before.is_none_or(|before| !is_admitted(before)));
            }
        }
    }
}
