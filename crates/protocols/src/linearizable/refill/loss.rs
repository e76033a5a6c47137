//! After a loss that left nobody to ask ([`super::amnesia`]): whom a member refill hears, and whose
//! lists count.
//!
//! As many as in any refill must have lost it too, or be complete. Beyond those it hears every
//! member of its view ([`super::epoch`]). Who has left is passed over if it was not there, and
//! stood for by one that holds all that was complete before the view. Once as many are complete as
//! any refill needs, these are enough.
//!
//! A loss is a list of those that were there, each with the start in which it lacked data at that
//! moment, or with start 0 if it was complete, beside hosts that are gone. It is kept with the
//! group, and told to the others, who could not find it out any more.

use super::told::{Reach, Source};
use super::transfer::Transfer;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::Cursor;

/// One that was complete at the moment of a loss.
pub(crate) fn complete(node: NodeId) -> Incarnation {
    Incarnation { node, start: Start(0) }
}

/// Whether one lacked data at the moment of a loss, in an earlier start than this.
fn lacked_before(lost: &[Incarnation], from: Incarnation) -> bool {
    let is_earlier = |who: &Incarnation| who.start > Start(0) && who.start < from.start;
    lost.iter().any(|who| who.node == from.node && is_earlier(who))
}

impl Transfer {
    /// Whether it goes on after a loss with as many as in any refill, not with all.
    fn is_refill_after_loss(&self) -> bool {
        self.is_member_refill && !self.hears_all && !self.lost.is_empty()
    }

    /// Whether what a source lists counts in a quorum.
    pub fn counts(&self, source: &Source) -> bool {
        let is_refill = self.is_member_refill && !self.hears_all;
        source.is_whole || is_refill && (self.lost.is_empty() || self.has_lost(source))
    }

    /// Whether the loss concerned a source in the start of which it speaks, if it does.
    fn has_lost(&self, source: &Source) -> bool {
        let node = source.node;
        source.lacks.is_none_or(|start| self.lost.contains(&Incarnation { node, start }))
    }

    /// Takes in that one lists that lacks data. After a loss it is heard if it lacked data then, or
    /// was not there: who came since counts for nobody. One that has forgotten once more is heard
    /// where as many count as in any refill, and is none of them. Returns whether it is heard.
    pub fn hears_lacking(&mut self, from: Incarnation) -> bool {
        let was_there = self.lost.iter().any(|who| who.node == from.node);
        let is_again = self.is_refill_after_loss() && lacked_before(&self.lost, from);
        let is_heard = !self.lost.is_empty() && !was_there || self.lost.contains(&from) || is_again;
        let is_late = |source: &Source| source.is_whole && !is_again;
        let source = self.source(from).filter(|source| is_heard && !is_late(source));
        let Some(source) = source else { return false };
        if source.lacks.replace(from.start) != Some(from.start) {
            (source.is_whole, source.has_gathered) = (false, false);
            self.ask_again();
        }
        true
    }

    /// How far those have listed that must be heard after a loss.
    pub fn heard_of_lost(&self, gathered: &Cursor) -> Option<Reach<'_>> {
        let is_member = |node| self.quorums.iter().any(|(nodes, _)| nodes.contains(&node));
        let has_left = |node| self.or_whole.iter().any(|(nodes, _)| nodes.contains(&node));
        let was_there = |node| self.lost.iter().any(|who| who.node == node);
        let members = self.reachable().filter(|source| is_member(source.node));
        let members = members.map(|source| Reach::of(source.next.as_ref()));
        let leavers = self.reachable().filter(|source| {
            !is_member(source.node) && has_left(source.node) && was_there(source.node)
        });
        let whole = self.whole(gathered);
        let leavers = leavers.map(|source| Reach::of(source.next.as_ref()).max(whole));
        members.chain(leavers).min().filter(|_| self.is_refill_after_loss())
    }
}

#[cfg(test)]
mod tests {
    use super::complete;
    use crate::linearizable::message::Bounds;
    use crate::linearizable::refill::transfer::Transfer;
    use alloc::vec;
    use alloc::vec::Vec;
    use bytes::Bytes;
    use quorate_kernel::ids::{Incarnation, NodeId, Start};
    use quorate_kernel::limits::LIST_KEYS_MAX;
    use quorate_kernel::operation::Cursor;
    use quorate_kernel::view::{Range, ViewId};

    /// Of six, since the group became smaller, one is gone and three forgot. Who has left is
    /// complete, and has told a part: it is heard to the end, or one that has gathered.
    #[test]
    fn who_left_and_is_complete_is_heard_or_one_that_has_gathered() {
        let nodes = |list: &[u64]| list.iter().copied().map(NodeId).collect::<Vec<_>>();
        for gathered in [false, true] {
            let quorums = vec![(nodes(&[2, 3, 4, 5, 6]), 3)];
            let transfer = Transfer::new(1, ViewId::default(), &Range::ALL, quorums, true);
            let mut transfer = transfer.or_whole(nodes(&[2, 3, 4, 5, 6, 7]), 4);
            transfer.is_member_refill = true;
            let start = Start(2);
            for source in &mut transfer.sources {
                source.is_gone = source.node == NodeId(6);
                source.is_whole = [4, 5, 7].contains(&source.node.0);
                source.lacks = [2, 3].contains(&source.node.0).then_some(start);
            }
            let lacked = [1, 2, 3].map(|node| Incarnation { node: NodeId(node), start });
            let were_complete = [4, 5, 7].map(|node| complete(NodeId(node)));
            let lost: Vec<_> = lacked.into_iter().chain(were_complete).collect();
            transfer.hear_last_left(&lost, NodeId(1));
            assert!(!transfer.hears_all);
            let mut list = |from, is_whole, begin, next: Option<u64>| {
                let bounds = Bounds { from: Cursor::at(begin), next: next.map(Cursor::at) };
                assert!(transfer.list((NodeId(from), is_whole), bounds, Bytes::new()));
                transfer.reach(LIST_KEYS_MAX).map(|reach| reach.map(|cursor| cursor.token))
            };
            assert_eq!(list(7, false, 0, Some(10)), None);
            assert_eq!(list(2, false, 0, None), None);
            assert_eq!(list(3, false, 0, None), None);
            assert_eq!(list(4, gathered, 0, None), None, "a member is heard itself");
            let so_far = if gathered { None } else { Some(10) };
            assert_eq!(list(5, false, 0, None), Some(so_far));
            assert_eq!(list(7, false, 10, None), Some(None));
        }
    }
}
