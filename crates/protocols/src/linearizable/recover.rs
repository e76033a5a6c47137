//! From stored bytes back to state.

use super::group::{Group, Record, Status};
use super::keys::{
    Slot, Stored, decided_key, each_state, garbage_of, kept_of, left_of, state_bytes, state_value,
};
use super::state::{Durable, Volatile};
use super::{Context, Linearizable};
use crate::quorum::CrashVector;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Change, ViewId};

impl Linearizable {
    /// Loads the recorded state and answers at once: a crash is a partition (CATS §5). The views
    /// are the ones last recorded, however old. Only a lane that forgot refills first.
    pub(crate) fn recover(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        let crashes = CrashVector::load(cx.table).unwrap_or_default();
        let slot = Slot::load(cx.table);
        self.volatile = Volatile::new(crashes.clone());
        self.durable = Durable { slot: slot.unwrap_or_default(), crashes, ..Durable::default() };
        // Wherever the groups have gone since, the first views are where to begin to ask.
        for view in self.settings.first_views.clone() {
            self.volatile.routes.learn(&Arc::new(view));
        }
        each_state(cx.table, b"left", &mut |key, value| {
            self.durable.left.extend(left_of(key).map(|group| (group, state_value(value))));
        });
        each_state(cx.table, b"kept", &mut |key, value| {
            self.durable.ended.extend(kept_of(key).map(|slot| (slot, state_value::<u64>(value))));
        });
        each_state(cx.table, b"garbage", &mut |key, _| {
            self.durable.garbage.extend(garbage_of(key));
        });
        let mut records: Vec<Record> = Vec::new();
        each_state(cx.table, b"group", &mut |_, value| records.push(state_value(value)));
        if slot.is_none() {
            records = self.birth(cx);
        }
        if recovery == Recovery::Forgot && self.durable.crashes.raise(cx.me.node, cx.me.start) {
            // Whoever asks it from now on is told so by itself too.
            self.volatile.crashes.merge(&self.durable.crashes);
            cx.fx.put_state(CrashVector::key(), state_bytes(&self.durable.crashes));
        }
        for mut record in records {
            if recovery == Recovery::Forgot {
                forget(&mut record, cx.me.node);
            }
            self.volatile.routes.learn(&Arc::new(record.view.clone()));
            let is_learner = matches!(record.status, Status::Learner { .. });
            let view = record.view.id;
            if is_learner {
                // Whether it is still wanted is not known; it is asked again if so.
                self.durable.groups.insert(view.group, Group::new(record));
                self.let_go(view, cx);
            } else {
                self.take_up_again(record, recovery, cx);
            }
        }
        let views: Vec<ViewId> = self.durable.groups.values().map(|group| group.view.id).collect();
        for view in views {
            self.begin_transfer(view, cx);
        }
        // Slots that were given up may not be empty yet, and newcomers may wait for an invitation.
        let has_owed = self.durable.groups.values().any(|group| !group.record.owed.is_empty());
        if has_owed || !self.durable.garbage.is_empty() {
            self.tell_now(cx);
        }
    }

    /// Takes up a group that an earlier start has left.
    fn take_up_again(&mut self, record: Record, recovery: Recovery, cx: &mut Context<'_>) {
        let (view, slot) = (record.view.clone(), record.slot);
        let has_left = matches!(&record.status, Status::Retired { parts, .. } if parts.is_empty());
        self.take_up(record, cx);
        if let Some(group) = self.group_mut(view.id) {
            group.leaver = decided_before(view.id, cx).and_then(|change| change.leaver());
            group.recall_gathered(cx);
        }
        if recovery == Recovery::Forgot {
            self.give_up_kept(&view, cx);
        }
        // Older builds did not note it beside the slot.
        if has_left && let Some(version) = self.durable.left.get(&view.id.group).copied() {
            self.note_ended(view.id.group, slot, version, cx);
        }
    }

    /// The groups that this node is born with.
    fn birth(&mut self, cx: &mut Context<'_>) -> Vec<Record> {
        let slot = self.fresh_slot(cx);
        let mine = self.settings.first_views.iter();
        let mine = mine.filter(|view| view.index_of(cx.me.node).is_some());
        let records: Vec<Record> =
            mine.map(|view| Self::newborn(view.clone(), Status::Ready, slot)).collect();
        cx.fx.put_state(CrashVector::key(), state_bytes(&self.durable.crashes));
        records
    }
}

/// The change that led to a view, if it is known.
fn decided_before(view: ViewId, cx: &Context<'_>) -> Option<Change> {
    let before = decided_key(view.group, view.version.checked_sub(1)?);
    cx.table.get(Class::State, &before).map(|bytes| state_value(&bytes))
}

/// What a lane without its data must say of itself.
fn forget(record: &mut Record, me: NodeId) {
    // What one alone held nobody else holds. And where a loss was counted before, others may be
    // about to take what this node has listed since, and lost now (`refill::epoch`).
    let is_alone = record.view.members() == [me] && !mutant!("lone_member_keeps_epoch");
    let is_after_loss = record.epoch > 0 && !mutant!("forgets_within_epoch");
    record.epoch += u64::from(is_alone || is_after_loss);
    match &mut record.status {
        Status::Ready | Status::Gathering => record.status = Status::Forgot,
        Status::Busy { forgot, .. } => *forgot = !mutant!("newcomer_never_forgets"),
        Status::Retired { was_ready, forgot, lacking, parts } => {
            // After a split the parts get the data back.
            *forgot |= (*was_ready || lacking.is_some()) && parts.is_empty();
            *was_ready = false;
        }
        Status::Forgot | Status::Learner { .. } => {}
    }
}
