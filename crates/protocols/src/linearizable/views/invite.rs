//! How a node becomes a member: it learns, is invited, and installs its first view.
//!
//! Each member of the old view that has installed the next one invites the newcomer (CATS: P4A). An
//! invitation says that its sender has left the old view; the newcomer installs the next one when
//! so many of the old members have said so that the others are no majority. So no proposer is
//! needed for it, and until then the newcomer neither votes nor acknowledges: the old view's
//! members may still complete operations there (CATS §4.1, Lemma 2 case 2). The paper waits for a
//! majority. Of an even number one less is enough, and as many is what a newcomer hears
//! (`refill::gather`): in a group of two it is the difference between one of them and both.

use super::parents::tell_outside;
use crate::linearizable::group::{Generation, Group, Owed, Standing, Status};
use crate::linearizable::keys::Slot;
use crate::linearizable::message::{Beat, Known, Message};
use crate::linearizable::{Context, Linearizable};
use crate::quorum::refill_quorum;
use crate::reconfigure::InstallQueue;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::GROUPS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::view::{Change, View, ViewId};

/// Invitations that are not from enough members yet.
#[derive(Debug, Default)]
pub(crate) struct Invitations(BTreeMap<GroupId, Invitation>);

#[derive(Debug)]
struct Invitation {
    next: View,
    from: BTreeSet<NodeId>,
    /// What they know together.
    known: Known,
}

impl Linearizable {
    /// Invites the newcomers that this node owes an invitation.
    pub(crate) fn invite_owed(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        group.touched = cx.now;
        for owed in &group.record.owed {
            let (next, old) = (owed.next.clone(), owed.old.clone());
            let message = Message::Invite { next, old, known: group.known() };
            // It rests on the installed view alone.
            cx.fx.send_after_state(owed.newcomer, message);
        }
    }

    /// A member of the old view says that it has left it.
    pub(crate) fn on_invite(
        &mut self,
        from: Incarnation,
        (next, old): (View, View),
        known: &Known,
        cx: &mut Context<'_>,
    ) {
        let is_for_me = next.index_of(cx.me.node).is_some() && old.index_of(cx.me.node).is_none();
        if !is_for_me || old.index_of(from.node).is_none() {
            return;
        }
        let left = self.durable.left.get(&next.id.group).copied();
        if let Some(version) = left.filter(|left| *left >= next.id.version) {
            // It was a member then, or before, and is none any more, or it never will be one.
            probe!("linearizable/invited_too_late");
            if self.group(next.id).is_none() {
                let view = ViewId { version, ..next.id };
                tell_outside(from, view, Generation::default(), cx);
            }
            return self.tell_now(cx);
        }
        let here = self.group(next.id).map(|group| (group.view.id.version, group.is_member()));
        if here.is_some_and(|(version, is_member)| version >= next.id.version && is_member) {
            // It has been installed; who invites has not heard of it.
            return self.tell_now(cx);
        }
        if let Some(group) = self.group(next.id)
            && super::install::is_split(group)
        {
            let beat = Beat { asks: false, ..group.beat() };
            return cx.fx.send(from, Message::Beats(vec![beat]));
        }
        if self.must_catch_up(from, &next, cx) {
            return;
        }
        let invitations = &mut self.volatile.invitations.0;
        invariant!(invitations.len() <= GROUPS_MAX, "invitations that wait are bounded");
        if invitations.len() >= GROUPS_MAX {
            invitations.clear();
        }
        let first =
            || Invitation { next: next.clone(), from: BTreeSet::new(), known: Known::default() };
        let entry = invitations.entry(next.id.group).or_insert_with(first);
        if entry.next.id.version < next.id.version {
            *entry = first();
        } else if entry.next.id.version > next.id.version {
            return;
        }
        entry.from.insert(from.node);
        entry.known = entry.known.max(*known);
        let needed = match &old {
            _ if mutant!("newcomer_before_majority") => 1,
            _ if mutant!("newcomer_after_majority") => old.majority(),
            old => refill_quorum(old),
        };
        if entry.from.len() >= needed
            && let Some(invitation) = invitations.remove(&next.id.group)
        {
            self.become_member(invitation, &old, cx);
            let version = self.group(next.id).map(|group| group.view.id.version);
            let has_come = version.is_some_and(|version| version >= next.id.version);
            invariant!(has_come, "who is invited by enough comes");
        }
    }

    /// Whether this node has yet to hear what became of another membership whose range meets this
    /// view's: the group was split, or the view is one from before a split. A part must not be
    /// joined before the split is installed, which begins the parts at their first versions.
    fn must_catch_up(&mut self, from: Incarnation, view: &View, cx: &mut Context<'_>) -> bool {
        let meets = |group: &&Group| {
            let mine = &group.view;
            let is_met =
                mine.range.contains(view.range.high) || view.range.contains(mine.range.high);
            group.is_member() && mine.id.group != view.id.group && is_met
        };
        let Some(mine) = self.durable.groups.values().find(meets).map(|group| group.view.id) else {
            return false;
        };
        if mine.version > view.id.version {
            // Of two views of a token the one with the higher version is the newer: this node
            // has come there by another way, and who asks need not go on.
            let (standing, known, asks) = (Standing::Split, Known::default(), false);
            let beat = Beat { view: view.id, standing, known, asks };
            cx.fx.send(from, Message::Beats(vec![beat]));
            return true;
        }
        probe!("linearizable/invited_while_behind");
        // A question promises nothing.
        cx.fx.send_early(from, Message::DecisionsA { view: mine });
        true
    }

    fn become_member(&mut self, invitation: Invitation, old: &View, cx: &mut Context<'_>) {
        probe!("linearizable/new_member");
        let is_of_use = self.has_copy_for(&invitation, old);
        let Invitation { next, known, .. } = invitation;
        let id = next.id;
        let before = self.group(id).map(|group| group.record.clone());
        let slot = match before.filter(|_| is_of_use) {
            Some(copied) => copied.slot,
            None => {
                if let Some(record) = self.group(id).map(|group| group.record.clone()) {
                    self.set_aside(&record, known.generation, cx);
                }
                self.fresh_slot(cx)
            }
        };
        self.begin_membership(next, old, slot, known, cx);
        self.begin_transfer(id, cx);
        self.install_queued(id, cx);
        self.tell_now(cx);
    }

    /// Whether what was copied ahead is of use to a new member. It is not if tombstones were
    /// removed since, as it may hold what they had deleted. Nor if everything was lost since: what
    /// is in the copy would come back, with higher timestamps, beside what was acknowledged
    /// meanwhile. Those that invite know of that (`refill::epoch`). What an earlier membership
    /// left is of no use.
    fn has_copy_for(&self, invitation: &Invitation, old: &View) -> bool {
        let id = invitation.next.id;
        let Some(group) = self.group(id).filter(|group| group.is_learner()) else { return false };
        if group.is_copied_before_loss(&invitation.known) {
            probe!("linearizable/copy_before_loss");
            return false;
        }
        group.record.generation.number == invitation.known.generation.number
            && self.is_copy_of(id, old)
    }

    /// Begins as a member that has everything to hear yet. It owes others what it owed before.
    fn begin_membership(
        &mut self,
        next: View,
        old: &View,
        slot: Slot,
        known: Known,
        cx: &mut Context<'_>,
    ) {
        let id = next.id;
        let status = Status::Busy { sources: old.members().to_vec(), since: id, forgot: false };
        let view = Arc::new(next.clone());
        let mut record = Self::newborn(next, status, slot);
        (record.generation, record.epoch) = (known.generation, known.epoch);
        let mut queue = InstallQueue::default();
        if let Some(before) = self.group_mut(id) {
            queue = core::mem::take(&mut before.queue);
            if !mutant!("returner_owes_nothing") {
                record.owed = core::mem::take(&mut before.record.owed);
            }
            record.epoch = record.epoch.max(before.record.epoch);
        }
        let is_owed = |owed: &Owed| {
            owed.newcomer != cx.me.node && record.view.index_of(owed.newcomer).is_some()
        };
        record.owed.retain(is_owed);
        self.take_up(record, cx);
        if let Some(group) = self.group_mut(id) {
            group.queue = queue;
        }
        self.learn(&view, cx);
    }

    /// Whether this node has left a group, and the next view that was decided has it again. It
    /// installs that view when it is invited, and not before: the view's members vote.
    pub(crate) fn is_chosen_again(&self, view: ViewId, me: NodeId) -> bool {
        let Some(group) = self.group(view) else { return false };
        let next = group.queue.peek(group.view.id.version).and_then(Change::newcomer);
        let has_left = matches!(group.record.status, Status::Retired { .. });
        has_left && next == Some(me)
    }

    /// Goes through a membership that is over: this node was chosen again, and replaced before it
    /// came. Nobody will invite it, but who replaced it counts on it as on every member of the view
    /// before, so it must hear what it would have heard (CATS §4.1, the data chain). That it was
    /// replaced is as good as an invitation: a majority of that view decided so, this node was none
    /// of them, and all others had left the view before. Returns whether that is so.
    pub(crate) fn pass_through(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
        let me = cx.me.node;
        let Some(group) = self.group(view) else { return false };
        let (old, before) = (View::clone(&group.view), group.record.clone());
        let known = group.known();
        let mut views = Vec::new();
        let mut last = old.clone();
        while let Some(change) = group.queue.peek(last.id.version) {
            let Some([next]) = last.after(change).and_then(|next| <[View; 1]>::try_from(next).ok())
            else {
                return false;
            };
            last = next.clone();
            views.push(next);
            if views.len() > 1 && last.index_of(me).is_none() {
                break;
            }
        }
        let Some(next) = views.into_iter().next().filter(|_| last.index_of(me).is_none()) else {
            return false;
        };
        probe!("linearizable/passed_through");
        self.set_aside(&before, known.generation, cx);
        let slot = self.fresh_slot(cx);
        let id = next.id;
        self.begin_membership(next, &old, slot, known, cx);
        self.begin_transfer(id, cx);
        true
    }

    /// A proposer wants this node as a member, and that it copies the data first. A host knows best
    /// that it leaves itself: one that was told to leave takes nothing from a proposer that has not
    /// heard of it, or it would have something again after its drain was said to be done
    /// ([`crate::linearizable::coordinate::examine`]).
    ///
    /// An invitation it follows all the same. That it becomes a member is decided then, and a
    /// member that never comes would be a lost one: the group could not change before it is
    /// suspected, and had a replica less. It comes, and is replaced like any member that leaves;
    /// until then its drain is not done.
    pub(crate) fn on_learn(
        &mut self,
        from: Incarnation,
        view: View,
        known: Known,
        cx: &mut Context<'_>,
    ) {
        if view.index_of(cx.me.node).is_some() {
            return;
        }
        if self.is_leaving(cx.me.node) && !mutant!("leaver_learns") {
            // Who asks has not heard of it. It asks in vain, and chooses another when it has: it
            // proposes no newcomer that does not answer.
            return;
        }
        if self.group(view.id).is_none() && self.group_count() >= GROUPS_MAX {
            // Who asks goes on asking; what it waits for is shown here.
            probe!("linearizable/learning_refused");
            self.volatile.counters.groups_refused += 1;
            return;
        }
        if self.must_catch_up(from, &view, cx) {
            return;
        }
        let id = view.id;
        if let Some(group) = self.group(id) {
            invariant!(group.is_one(), "the shared view is the installed one");
            let is_stale = group.view.id.version < id.version;
            let is_lost = group.is_copied_before_loss(&known);
            match &group.record.status {
                // What it copied of an older view is kept; what is newer comes with the membership.
                Status::Learner { .. } if !is_lost && (!is_stale || self.is_copy_of(id, &view)) => {
                    if let Some(group) = self.group_mut(id) {
                        group.touched = cx.now;
                        // The asker may be new since this node began to copy.
                        let beat = Beat { asks: false, ..group.beat() };
                        cx.fx.send(from, Message::Beats(vec![beat]));
                    }
                    return;
                }
                // It missed that it left.
                Status::Ready
                | Status::Gathering
                | Status::Busy { .. }
                | Status::Retired { .. }
                    if is_stale =>
                {
                    return self.outpaced(from, &view, cx);
                }
                // It still holds data for others.
                Status::Retired { .. }
                | Status::Ready
                | Status::Gathering
                | Status::Busy { .. }
                | Status::Forgot => return,
                Status::Learner { .. } => {
                    let record = group.record.clone();
                    self.discard(record.slot, &record.view, cx);
                }
            }
        }
        self.begin_learning(view, known, cx);
        let group = self.group(id);
        let moves = group.is_some_and(|group| group.is_learner() && group.moves_what_it_lacks());
        invariant!(moves, "who learns copies what it lacks");
    }

    /// Begins to copy what a view's members hold, into a slot of its own.
    fn begin_learning(&mut self, view: View, known: Known, cx: &mut Context<'_>) {
        probe!("linearizable/learner");
        let (id, slot) = (view.id, self.fresh_slot(cx));
        let status = Status::Learner { sources: view.members().to_vec(), is_done: false };
        let mut record = Self::newborn(view, status, slot);
        (record.generation, record.epoch) = (known.generation, known.epoch);
        self.take_up(record, cx);
        if let Some(group) = self.group_mut(id) {
            group.touched = cx.now;
        }
        self.begin_transfer(id, cx);
        self.maintain_at(cx.now + self.settings.pace.maintain, cx);
    }

    /// Whether what a learner copied is of a view that shares a majority of either's members with
    /// this one, so that it need not begin anew: it knows what a majority holds, and as many as it
    /// has to hear from are still there.
    fn is_copy_of(&self, id: ViewId, view: &View) -> bool {
        let Some(group) = self.group(id) else { return false };
        let shared = group.view.members().iter().filter(|node| view.index_of(**node).is_some());
        shared.count() >= view.majority().max(group.view.majority())
    }
}
