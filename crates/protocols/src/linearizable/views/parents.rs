//! Groups that were split, and when a node forgets them.
//!
//! The record of a group that was split, its parent's, stays for nodes that lag behind: whoever has
//! not installed the split asks for the decisions that lead to it. It goes when nobody can ask any
//! more. So each node that has one asks every host of the ring, those that are suspected too, and
//! waits until
//! - each member of the split view has installed the split, or has forgotten the group since;
//! - each other host knows nothing of the group, and is in none that the group came from: whoever
//!   had left it before, or copied it, is done, and nobody will come to it by an earlier split;
//! - nobody is owed an invitation to it, and the members of its parts have all data.
//!
//! A host that joins later cannot have been in the group. That this node was in it is kept as
//! for any group that was left: no late invitation leads back to it. So it is with every host that
//! says it knows nothing of the group.
//!
//! Data is not touched by that as long as a part has it: a parent and its parts share a slot.

use super::install::is_split;
use crate::linearizable::group::{Generation, Group, Standing, Status};
use crate::linearizable::keys::{Slot, decided_key, each_state, group_key};
use crate::linearizable::message::{Beat, Known, Message};
use crate::linearizable::{Context, Linearizable};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::ring::Standing as HostStanding;
use quorate_kernel::view::{Range, View, ViewId};

impl Linearizable {
    /// Forgets a group that was split if nobody can ask for it, or asks who can.
    pub(crate) fn maintain_parent(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
        let Some(group) = self.group(view) else { return false };
        if group.view.index_of(cx.me.node).is_none() {
            return self.release_after_split(view, cx);
        }
        let Some(unsettled) = self.unsettled(group, cx.me.node) else { return false };
        if unsettled.is_empty() {
            probe!("linearizable/parent_forgotten");
            self.note_left(view.group, view.version + 1, cx);
            self.let_go(view, cx);
            return false;
        }
        let pause = self.settings.pace.beat;
        let Some(group) = self.group_mut(view).filter(|group| cx.now >= group.touched + pause)
        else {
            return false;
        };
        group.touched = cx.now;
        let beat = group.beat();
        assert!(beat.asks && beat.standing == Standing::Split, "who was split is no member");
        for node in unsettled {
            let (view, generation) = (View::clone(&group.view), beat.known.generation);
            cx.fx.send(node, Message::Split { view, generation });
        }
        false
    }

    /// The hosts that may still ask for a group that was split; none if that cannot be known yet.
    fn unsettled(&self, group: &Group, me: NodeId) -> Option<Vec<NodeId>> {
        let ring = self.volatile.ring.as_ref()?;
        let Status::Retired { parts, .. } = &group.record.status else { return None };
        let members = group.view.members();
        let is_known = members.iter().all(|node| ring.host(*node).is_some());
        let is_complete = |part: &View| {
            let Some(part) = self.group(part.id).filter(|part| part.is_member()) else {
                return true;
            };
            let has_all = |node: &NodeId| {
                let heard = part.heard.get(node);
                let is_whole = heard.is_some_and(|heard| heard.standing == Standing::Ready);
                *node == me || is_whole
            };
            part.is_whole() && part.view.members().iter().all(has_all)
        };
        let is_waiting = !group.record.owed.is_empty() || !parts.iter().all(is_complete);
        if !is_known || is_waiting {
            return None;
        }
        let is_settled = |node: NodeId| {
            let Some(heard) = group.heard.get(&node) else { return false };
            let has_installed = heard.standing == Standing::Split && members.contains(&node);
            // Only who knows nothing of the group names the version after the split.
            let has_none = heard.standing == Standing::Outside;
            has_installed || has_none && heard.version > group.view.id.version
        };
        let hosts = ring.hosts().iter().filter(|host| host.standing != HostStanding::Left);
        let others = hosts.map(|host| host.who.node).filter(|node| *node != me);
        Some(others.filter(|node| !is_settled(*node)).collect())
    }

    /// A peer asks how this node stands in a group that was split there.
    pub(crate) fn on_split(
        &mut self,
        from: Incarnation,
        (view, generation): (View, Generation),
        cx: &mut Context<'_>,
    ) {
        let (id, standing) = (view.id, Standing::Split);
        if self.group(id).is_some_and(Group::is_learner) {
            // Nobody will come to the group any more: what was copied ahead is of no use.
            self.let_go(id, cx);
        }
        if self.group(id).is_some() {
            let known = Known { generation, epoch: 0 };
            let beat = Beat { view: id, standing, known, asks: true };
            return self.on_beats(from, vec![beat], cx);
        }
        if let Some(whole) = self.whole_of(&view).filter(|_| !mutant!("part_forgotten")) {
            // It would come to the group by splits that it has not heard of.
            probe!("linearizable/parent_awaited");
            // A question promises nothing.
            return cx.fx.send_early(from, Message::DecisionsA { view: whole });
        }
        let Some(version) = id.version.checked_add(1) else { return };
        // From now on it may be that nobody can tell what became of the group: an invitation that
        // comes late must not lead there. Who asks owes none.
        if self.durable.left.get(&id.group).is_none_or(|left| *left < version) {
            self.note_left(id.group, version, cx);
        }
        let left = self.durable.left.get(&id.group);
        invariant!(left.is_some_and(|left| *left >= version), "who says that it has left noted it");
        invariant!(self.group(id).is_none(), "who says that it is outside knows no such group");
        tell_outside(from, ViewId { version, ..id }, generation, cx);
    }

    /// The group that this node takes itself for a member of, and that a view's group came from.
    fn whole_of(&self, view: &View) -> Option<ViewId> {
        let mut groups = self.durable.groups.values();
        let is_whole = |group: &&Group| {
            let mine = &group.view;
            let is_met =
                mine.range.contains(view.range.high) || view.range.contains(mine.range.high);
            group.is_member() && is_met && mine.id.version < view.id.version
        };
        groups.find(is_whole).map(|group| group.view.id)
    }

    /// A group that was split after this node had left it: the parts' members tell so.
    fn release_after_split(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
        let Some(group) = self.group(view) else { return false };
        let host = |node| self.volatile.ring.as_ref().and_then(|ring| ring.host(node));
        let has_moved = |node: &NodeId| {
            let heard = group.heard.get(node);
            let is_gone = host(*node).is_some_and(|host| host.standing == HostStanding::Left);
            is_gone || heard.is_some_and(|heard| heard.standing == Standing::Split)
        };
        if group.view.members().iter().all(has_moved) {
            self.let_go(view, cx);
            return false;
        }
        let (members, beat) = (group.view.group().clone(), group.beat());
        let (range, owed) = (group.view.range, group.record.owed.first());
        let expected = owed.and_then(|owed| self.volatile.routes.expects(&range, owed.newcomer));
        cx.fx.send(&members, Message::Beats(vec![beat]));
        if let Some(token) = expected {
            // In no part itself, it does not hear who is.
            self.seek_news(token, cx);
        }
        true
    }

    /// Forgets a group and gives up the data that no other group has in its slot.
    pub(crate) fn let_go(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group(view) else { return };
        let record = group.record.clone();
        self.give_up_kept(&record.view, cx);
        self.durable.groups.remove(&view.group);
        self.forget_ended(view.group, record.slot, cx);
        let pieces = match &record.status {
            Status::Retired { parts, .. } if !parts.is_empty() => &parts[..],
            _ => core::slice::from_ref(&record.view),
        };
        for piece in pieces {
            if !self.is_in_use(record.slot, &piece.range) {
                self.discard(record.slot, piece, cx);
            }
        }
        cx.fx.delete_state(group_key(view.group));
        let mut decided = Vec::new();
        let prefix = decided_key(view.group, 0);
        let prefix = prefix.slice(..prefix.len() - 8);
        each_state(cx.table, &prefix, &mut |key, _| decided.push(Bytes::copy_from_slice(key)));
        decided.into_iter().for_each(|key| cx.fx.delete_state(key));
    }

    /// Whether some group has data of a range in a slot; those that were split have it in a part.
    fn is_in_use(&self, slot: Slot, range: &Range) -> bool {
        let has_some = |group: &Group| {
            let mine = &group.view.range;
            let is_met = mine.contains(range.high) || range.contains(mine.high);
            // What a membership that ended left in it may still be kept for others.
            let has_ended = self.durable.ended.contains_key(&(group.view.id.group, slot));
            (group.record.slot == slot || has_ended) && is_met && !is_split(group)
        };
        self.durable.groups.values().any(has_some)
    }

    /// How many groups this node takes part in; those that were split go on in their parts.
    pub(crate) fn group_count(&self) -> usize {
        self.durable.groups.values().filter(|group| !is_split(group)).count()
    }
}

/// Tells a peer that this node is no member of a view's group, nor will be by any view up to it.
pub(crate) fn tell_outside(
    to: Incarnation,
    view: ViewId,
    generation: Generation,
    cx: &mut Context<'_>,
) {
    let known = Known { generation, epoch: 0 };
    let beat = Beat { view, standing: Standing::Outside, known, asks: false };
    cx.fx.send(to, Message::Beats(vec![beat]));
}
