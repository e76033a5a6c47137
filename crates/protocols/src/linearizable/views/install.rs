//! Decisions about views: each node installs them one after the other, never back and never over a
//! gap (CATS §4.1): its duty as a source of data belongs to each of them.

use crate::linearizable::group::{Generation, Group, Owed, Record, Status};
use crate::linearizable::keys::{DECISIONS_MAX, decided_key, state_bytes, state_value};
use crate::linearizable::message::Message;
use crate::linearizable::{Context, Linearizable};
use crate::reconfigure::Acceptor;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::limits::DECISIONS_IN_MESSAGE_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Change, View, ViewId};

impl Linearizable {
    /// This change was decided to follow a view: install it, or keep it until the ones before it
    /// are installed. Returns the view now installed, if the group is known here.
    pub(crate) fn on_decided(
        &mut self,
        from: Incarnation,
        follows: ViewId,
        change: Change,
        cx: &mut Context<'_>,
    ) -> Option<ViewId> {
        let group = self.group_mut(follows)?;
        if is_split(group) || group.is_learner() {
            // What follows a split is decided in its parts; a learner is no member yet.
            return Some(group.view.id);
        }
        let (installed, before) = (group.view.id.version, group.progress());
        if !group.queue.push(installed, follows.version, change) {
            cx.fx.refuse("two decisions follow one view");
            return Some(group.view.id);
        }
        self.install_queued(follows, cx);
        invariant!(before.is_behind(self.progress(follows)), "no group goes back (I1)");
        let group = self.group(follows)?;
        let view = group.view.id;
        let waits = group.queue.peek(view.version).is_some();
        let is_awaited = self.is_chosen_again(view, cx.me.node);
        invariant!(!waits || is_awaited, "what may be installed is installed");
        if group.queue.is_missing(view.version) {
            probe!("linearizable/install_queued");
            // A question promises nothing.
            cx.fx.send_early(from, Message::DecisionsA { view });
        }
        Some(view)
    }

    /// Installs what was decided, as far as it may.
    pub(crate) fn install_queued(&mut self, of: ViewId, cx: &mut Context<'_>) {
        loop {
            if self.is_chosen_again(of, cx.me.node) && !self.pass_through(of, cx) {
                // It comes when it is invited.
                return;
            }
            let Some(group) = self.group_mut(of) else { return };
            let Some(change) = group.queue.next(group.view.id.version) else { return };
            self.install(of, &change, cx);
        }
    }

    fn install(&mut self, of: ViewId, change: &Change, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(of) else { return };
        let old = Arc::clone(&group.view);
        let Some(views) = old.after(change) else {
            // No correct acceptor takes it.
            return cx.fx.refuse("a decided change does not fit its view");
        };
        let decided = decided_key(old.id.group, old.id.version);
        cx.fx.put_state(decided, state_bytes(change));
        if let Some(trimmed) = old.id.version.checked_sub(DECISIONS_MAX) {
            cx.fx.delete_state(decided_key(old.id.group, trimmed));
        }
        group.record.acceptor = Acceptor::default();
        group.running = None;
        group.wished = None;
        group.heard.clear();
        (group.outpaced, group.unheard) = (None, None);
        group.purge.interrupt();
        match &views[..] {
            [next] => self.enter_view(of, &old, next, change, cx),
            parts => self.split(of, parts, cx),
        }
        self.volatile.counters.installs += 1;
        for view in &views {
            self.learn(&Arc::new(view.clone()), cx);
        }
        self.tell_now(cx);
    }

    /// Goes from a view to the next one of the same group.
    fn enter_view(
        &mut self,
        of: ViewId,
        old: &Arc<View>,
        next: &View,
        change: &Change,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(of) else { return };
        assert_eq!(next.id.version, old.id.version + 1, "views are installed one after the other");
        group.record.view = next.clone();
        group.view = Arc::new(next.clone());
        group.leaver = change.leaver();
        let is_member = next.index_of(cx.me.node).is_some();
        let was_member = group.is_member();
        if was_member && !is_member {
            probe!("linearizable/retired");
            let was_ready = group.is_serving();
            let (forgot, lacking) = match &group.record.status {
                Status::Forgot => (true, None),
                Status::Busy { sources, since, forgot } => {
                    (*forgot, Some((sources.clone(), *since)))
                }
                _ => (false, None),
            };
            let goes_on = lacking.is_some() && !forgot;
            let slot = group.record.slot;
            let parts = Vec::new();
            group.record.status = Status::Retired { was_ready, forgot, lacking, parts };
            if !goes_on {
                group.transfer = None;
            }
            self.note_left(of.group, next.id.version, cx);
            self.note_ended(of.group, slot, next.id.version, cx);
        }
        let Some(group) = self.group_mut(of) else { return };
        // A newcomer that is gone again is owed its invitation all the same (`forget_debts`). What
        // a node that was out before decided owes, its members owe.
        if let Some(newcomer) = change.newcomer().filter(|_| was_member) {
            let (next, old) = (next.clone(), View::clone(old));
            if mutant!("newest_debt_only") {
                group.record.owed.clear();
            }
            group.record.owed.push(Owed { newcomer, next, old });
        }
        group.begin_gathering(change);
        group.have_all_gathered = false;
        group.ask_who_left_it_alone();
        Self::persist(group, cx);
        let refills = match &group.record.status {
            Status::Forgot | Status::Gathering | Status::Retired { forgot: true, .. } => true,
            // What a newcomer forgot a majority had before the view was changed (`may_change`).
            Status::Busy { since, forgot, .. } => {
                *since == next.id || *forgot && !mutant!("forgot_with_old_view")
            }
            _ => false,
        };
        let is_after_loss = group.transfer.as_ref().is_some_and(|it| !it.lost.is_empty());
        let is_told = !mutant!("loss_found_with_old_view");
        if refills || is_after_loss && is_told {
            // Its sources are the members of the view that it is in now: others may be gone. After
            // a loss all of them are heard ([`crate::linearizable::refill::epoch`]).
            self.begin_transfer(of, cx);
        } else if let Some(transfer) = group.transfer.as_mut().filter(|_| is_told) {
            // A newcomer goes on with those that it was to hear, who have what it lacks whatever
            // the view is now. If they are silent it turns to the members of this one (`drive`).
            transfer.ask_members(next.members(), cx.me.node);
        }
        self.invite_owed(of, cx);
    }

    /// Goes from a group to its two parts, which have the same members and the same data.
    fn split(&mut self, of: ViewId, parts: &[View], cx: &mut Context<'_>) {
        probe!("linearizable/split");
        let Some(group) = self.group_mut(of) else { return };
        let was_member = group.is_member();
        let before = group.record.clone();
        // Of a node that left before the split nobody expects a part; it may still be a source.
        let was_ready = group.is_source();
        let (forgot, lacking, parts_here) = (false, None, parts.to_vec());
        group.record.status = Status::Retired { was_ready, forgot, lacking, parts: parts_here };
        // A newcomer that never came is invited to the view before the split, and goes on from it.
        group.transfer = None;
        Self::persist(group, cx);
        if !was_member {
            return;
        }
        // All members were complete, or the group would not have been split.
        self.give_up_kept(&before.view, cx);
        for part in parts {
            match self.group(part.id).map(|known| known.record.clone()) {
                Some(Record { status: Status::Learner { .. }, slot, view, .. }) => {
                    self.discard(slot, &view, cx);
                }
                // It has come to this part by another way; a node never goes back (I1).
                Some(_) => continue,
                None => {}
            }
            // A member that lacked data hears it from those who are in the part.
            let status = match &before.status {
                Status::Busy { sources, forgot, .. } => {
                    let (sources, forgot) = (sources.clone(), *forgot);
                    Status::Busy { sources, since: part.id, forgot }
                }
                other => other.clone(),
            };
            let record = Record {
                view: part.clone(),
                status,
                slot: before.slot,
                acceptor: Acceptor::default(),
                lost: before.lost.clone(),
                generation: match mutant!("part_without_generation") {
                    true => Generation::default(),
                    false => before.generation,
                },
                owed: Vec::new(),
                epoch: if mutant!("part_without_epoch") { 0 } else { before.epoch },
            };
            self.take_up(record, cx);
            self.begin_transfer(part.id, cx);
        }
    }

    /// A node that is behind asks for what follows the view it has installed.
    pub(crate) fn on_decisions_asked(
        &mut self,
        from: Incarnation,
        view: ViewId,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group(view) else {
            return self.tell_who_goes_on(from, view, cx);
        };
        let upto = group.view.id.version + u64::from(is_split(group));
        invariant!(group.is_one(), "the shared view is the installed one");
        invariant!(upto == group.installed().id.version, "a split makes the next version");
        let mut changes = Vec::new();
        let versions = (view.version..upto).take(DECISIONS_IN_MESSAGE_MAX);
        for version in versions {
            let stored = cx.table.get(Class::State, &decided_key(view.group, version));
            let Some(bytes) = stored else { break };
            changes.push(state_value::<Change>(&bytes));
        }
        // What was decided is so, whether this node's copy of it is durable or not; the asker may
        // conclude nothing about this node.
        if !changes.is_empty() {
            cx.fx.send_early(from, Message::DecisionsB { view, changes });
        } else if view.version < upto {
            // What follows that view is forgotten here.
            let view = View::clone(&group.view);
            cx.fx.send_early(from, Message::LocateB { view });
        }
    }

    /// The decisions that were asked for.
    pub(crate) fn on_decisions(
        &mut self,
        from: Incarnation,
        view: ViewId,
        changes: Vec<Change>,
        cx: &mut Context<'_>,
    ) {
        let before = self.progress(view);
        for (version, change) in (view.version..u64::MAX).zip(changes) {
            self.on_decided(from, ViewId { group: view.group, version }, change, cx);
        }
        invariant!(before.is_behind(self.progress(view)), "no group goes back (I1)");
        let group = self.group(view);
        let is_kept = group.is_none_or(|group| self.has_slot(group));
        invariant!(is_kept, "a slot is handed out once");
    }

    /// A view that this node is born with, or becomes a member of.
    pub(crate) fn newborn(
        view: View,
        status: Status,
        slot: crate::linearizable::keys::Slot,
    ) -> Record {
        Record {
            view,
            status,
            slot,
            acceptor: Acceptor::default(),
            lost: Vec::new(),
            generation: Generation::default(),
            owed: Vec::new(),
            epoch: 0,
        }
    }
}

/// Whether a group has gone on in its parts.
pub(crate) fn is_split(group: &Group) -> bool {
    matches!(&group.record.status, Status::Retired { parts, .. } if !parts.is_empty())
}
