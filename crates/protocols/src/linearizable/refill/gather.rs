//! Why a group that has shrunk to an even size gathers before it shrinks again, and whom a member
//! that forgets meanwhile must hear.
//!
//! A put is complete when a majority of a view holds it. What later views need is that those who
//! hold it meet every majority: in a view of n members, n/2 + 1 of them if n is odd, n/2 if n is
//! even. For what a view itself completes that is so. For what was complete before, each change
//! must keep it so:
//! - `Grow` and `Replace` bring a newcomer that has heard from a majority and so holds it too.
//! - `Shrink` from 2k + 1 to 2k members may take a holder away: k + 1 become k, which is enough.
//! - `Shrink` from 2k to 2k - 1 may take another: k become k - 1, and k are needed.
//!
//! The paper has no `Shrink`. So where the first kind has led to an even view, its members gather:
//! each hears what others hold until, itself counted, a majority was heard, and from then on holds
//! all that was complete before the view. One of an even number leaves only when at least half as
//! many of those that stay have done so, or came to the view by growth, which leaves one holder to
//! spare. Who proposes looks after that, and nothing is decided that nobody proposed.
//!
//! Who gathers serves as before; it tells its peers, so that tombstones are not removed meanwhile.
//! Who has left keeps what it holds until all have gathered, and is a source for them.
//!
//! A member that forgets before that (a `memory` keyspace, or a loss of power in a `periodic` one)
//! refills from members of which k may hold nothing of what was complete before: of the 2k that
//! stay and the one that left, no more than k do not hold it. So it hears k + 1 of them, itself not
//! counted, or one that has gathered, which holds all of that; and besides, as in every refill, so
//! many of the view's members that they meet its majorities. This is so in every even view: where a
//! member was replaced since, the newcomer holds everything or is no source, so that they are still
//! no more than k, and where the group has grown, every member that says that it is ready stands
//! for what one that has gathered does, since then k - 1 at most hold nothing.
//!
//! The view after an even one is proposed when a majority of its members, k + 1, is ready. So no
//! more than k - 1 sources may hold nothing of what was complete before, and what the even view
//! itself completed is missing at no more than k - 1. A newcomer of the next view, who acknowledged
//! nothing in the even one, has thus heard enough with k of its members, not k + 1: when k have
//! left it, nothing more becomes complete there (the paper, §4.1, asks for a majority). In a group
//! of two that grows this is the difference between one source and both: a member that forgets
//! meanwhile waits for the newcomer.
//!
//! Who forgets may be among the k that had gathered before one of an even number left, as it may
//! forget while that is decided. Then k - 1 of the 2k - 2 others hold what was complete, and in a
//! refill it hears k of these, which is enough but for k = 1: it is alone, and the one that left is
//! the only one to hold anything. It keeps that until it is told that the other has it, so the one
//! that is alone hears it first.
//!
//! Tombstones are removed when all members have gathered, and who has left may have missed the
//! deletes. So who forgets must not ask it after that. Others cannot tell: they may be in a later
//! view when they list, and the generations say nothing, for a removal that was announced before
//! the view goes on in it, and some may have come to its second step before, and lead others there.
//! But a removal (`replicate::purge`) has every member list its tombstones before the second step,
//! and asks for that only when each has answered in this very view, as one that has gathered. So
//! each member notes, durably and before it lists, that all have gathered. Before a tombstone is
//! removed all of them know: any of them holds everything, and who has left is not asked. The same
//! is noted when all have said so.

use super::told::{Reach, Source};
use super::transfer::Transfer;
use crate::linearizable::Context;
use crate::linearizable::group::{Group, Standing, Status};
use crate::linearizable::keys::{gathered_key, state_bytes, state_value};
use crate::linearizable::views::conditions::{all_are_complete, recent};
use alloc::vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;
use quorate_kernel::view::{Change, View};

/// Whether a view has an even number of members.
pub(crate) fn is_even(view: &View) -> bool {
    view.members().len().is_multiple_of(2)
}

/// How many members of a view a node must hear that lacks data since the next one began. Half of an
/// even view is enough for who was not in it.
pub(crate) fn enough(members: &[NodeId], me: NodeId) -> usize {
    let was_in_it = usize::from(members.contains(&me));
    (members.len() + was_in_it).div_ceil(2)
}

impl Group {
    /// Whether nothing of its data is moving to this member.
    pub fn is_whole(&self) -> bool {
        self.record.status == Status::Ready
    }

    /// A member whose data is complete has entered a view by this change.
    pub fn begin_gathering(&mut self, change: &Change) {
        if !self.is_serving() {
            return;
        }
        let has_shrunk = matches!(change, Change::Shrink { .. });
        let gathers = is_even(&self.view) && (has_shrunk || !self.is_whole());
        self.record.status = if gathers { Status::Gathering } else { Status::Ready };
        if !gathers {
            self.transfer = None;
        }
    }

    /// A member that forgot is the only one in this view. What it had acknowledged is held by the
    /// one that left, if by anybody: it begins as one that has to hear it.
    pub fn ask_who_left_it_alone(&mut self) {
        let is_alone = self.view.members().len() == 1 && !mutant!("forgets_alone");
        if let Some(leaver) = self.leaver.filter(|_| is_alone)
            && self.record.status == Status::Forgot
        {
            probe!("linearizable/left_alone");
            let (sources, since) = (vec![leaver], self.view.id);
            self.record.status = Status::Busy { sources, since, forgot: true };
        }
    }

    /// Looks whether all members have said that they hold everything in this view.
    pub fn note_gathered(&mut self, cx: &mut Context<'_>) {
        let is_of_use = self.leaver.is_some() && self.is_whole();
        if is_of_use && all_are_complete(self, &self.view, cx.me.node) {
            self.note_all_gathered(cx);
        }
    }

    /// Notes, durably, that all members have held everything in this view: nobody needs who left.
    pub fn note_all_gathered(&mut self, cx: &mut Context<'_>) {
        if is_even(&self.view) && !self.have_all_gathered {
            self.have_all_gathered = true;
            let view = self.view.id;
            cx.fx.put_state(gathered_key(view.group), state_bytes(&view.version));
        }
    }

    /// What was noted of the present view.
    pub fn recall_gathered(&mut self, cx: &Context<'_>) {
        let noted = cx.table.get(Class::State, &gathered_key(self.view.id.group));
        let version = noted.map(|bytes| state_value::<u64>(&bytes));
        self.have_all_gathered = version == Some(self.view.id.version);
    }
}

impl Transfer {
    /// How far one that is whole has listed, from what was gathered on.
    pub fn whole(&self, gathered: &Cursor) -> Reach<'_> {
        let is_meant = |from: &Cursor| from <= gathered;
        let is_whole = |source: &&Source| source.whole_from.as_ref().is_some_and(is_meant);
        let whole = self.sources.iter().filter(is_whole);
        whole.map(|source| Reach::of(source.next.as_ref())).max().unwrap_or(Reach::Nothing)
    }
}

/// Whether a change loses nothing: if one of an even number leaves, enough of those that stay hold
/// everything.
pub(crate) fn may_follow(
    group: &Group,
    view: &View,
    change: &Change,
    me: NodeId,
    now: Time,
) -> bool {
    let Change::Shrink { out } = change else { return true };
    if !is_even(view) {
        return true;
    }
    let is_whole = |node: NodeId| {
        let heard = recent(group, node, now).filter(|heard| heard.version == view.id.version);
        let is_ready = heard.is_some_and(|heard| heard.standing == Standing::Ready);
        if node == me { group.is_whole() } else { is_ready }
    };
    let staying = view.members().iter().filter(|node| *node != out);
    staying.filter(|node| is_whole(**node)).count() >= view.members().len() / 2
}

#[cfg(test)]
mod tests {
    use super::super::transfer::Transfer;
    use crate::linearizable::message::Bounds;
    use alloc::vec;
    use alloc::vec::Vec;
    use bytes::Bytes;
    use quorate_kernel::ids::NodeId;
    use quorate_kernel::limits::LIST_KEYS_MAX;
    use quorate_kernel::operation::Cursor;
    use quorate_kernel::view::{Range, ViewId};

    /// A source that has gathered stands for the others only with what it lists since then.
    #[test]
    fn what_was_listed_before_a_source_had_gathered_does_not_count_for_the_others() {
        let nodes = |list: &[u64]| list.iter().copied().map(NodeId).collect::<Vec<_>>();
        let quorums = vec![(nodes(&[2, 4, 5]), 2)];
        let transfer = Transfer::new(1, ViewId::default(), &Range::ALL, quorums, true);
        let mut transfer = transfer.or_whole(nodes(&[2, 4, 5, 3]), 3);
        // None of them lacks data.
        transfer.sources.iter_mut().for_each(|source| source.is_whole = true);
        let mut list = |from, is_whole, begin, next: Option<u64>| {
            let bounds = Bounds { from: Cursor::at(begin), next: next.map(Cursor::at) };
            assert!(transfer.list((NodeId(from), is_whole), bounds, Bytes::new()));
            transfer.reach(LIST_KEYS_MAX).map(|reach| reach.map(|cursor| cursor.token))
        };
        assert_eq!(list(4, false, 0, Some(10)), None);
        assert_eq!(list(5, false, 0, Some(20)), None, "two that gather, and nobody else");
        assert_eq!(list(4, true, 10, None), None, "it had listed a part before");
        assert_eq!(list(3, false, 0, Some(15)), Some(Some(15)), "the one that left is the third");
        transfer.begin_window(&Cursor::at(15));
        let mut list = |from, is_whole| {
            let bounds = Bounds { from: Cursor::at(15), next: None };
            assert!(transfer.list((NodeId(from), is_whole), bounds, Bytes::new()));
            transfer.reach(LIST_KEYS_MAX)
        };
        assert_eq!(list(4, true), None, "a majority must be met all the same");
        assert_eq!(list(5, false), Some(None));
    }
}
