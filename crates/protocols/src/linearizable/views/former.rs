//! What a node holds of memberships that have ended.
//!
//! Who has left a group is a source of what was complete in the views that it was a member of, for
//! the newcomers of those views and of the one that it left with: for nobody else. It may be chosen
//! again while they still need it (CATS says nothing of that). Then its new membership begins in a
//! slot of its own, as every one does, and the slot of the old one is kept and served beside it,
//! until every member holds everything. Without it two newcomers could wait for each other: one
//! that was replaced, and needs what was there before, and the one that came back in its place,
//! which had it. What was incomplete when it left is given up: it is of no use to anybody yet.
//!
//! Which slot answers follows from the view that the asker names, since memberships of one node do
//! not overlap. Whoever asks since version `v` heard of this node as a member of `v` or of the view
//! before, so of the memberships that ended at `v` or later the first one is meant, and if there is
//! none the present one. A membership that was decided but never began here holds nothing, so
//! nothing answers for it.

use crate::linearizable::group::{Generation, Group, Record, Status};
use crate::linearizable::keys::{Slot, kept_key, state_bytes};
use crate::linearizable::{Context, Linearizable};
use alloc::vec::Vec;
use core::iter;
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::view::{View, ViewId};

impl Linearizable {
    /// Notes, durably, that the membership whose data is in this slot ended with this version.
    pub(crate) fn note_ended(
        &mut self,
        group: GroupId,
        slot: Slot,
        version: u64,
        cx: &mut Context<'_>,
    ) {
        self.durable.ended.entry((group, slot)).or_insert_with(|| {
            cx.fx.put_state(kept_key(group, slot), state_bytes(&version));
            version
        });
    }

    /// This node begins anew in a group, in which removals of tombstones have come to this
    /// generation. What it held is kept for others if it is complete.
    pub(crate) fn set_aside(
        &mut self,
        before: &Record,
        generation: Generation,
        cx: &mut Context<'_>,
    ) {
        let (slot, id) = (before.slot, before.view.id);
        let is_complete = matches!(
            before.status,
            Status::Ready | Status::Gathering | Status::Retired { was_ready: true, .. }
        );
        let is_outlived = before.generation.enforces_less(generation);
        if is_outlived {
            self.give_up_kept(&before.view, cx);
        }
        if !is_complete || is_outlived {
            return self.give_slot_up(slot, &before.view, cx);
        }
        probe!("linearizable/kept_for_others");
        // If it missed that it left, it was a member of its last view for sure, and no longer.
        self.note_ended(id.group, slot, id.version + 1, cx);
    }

    /// Gives the data of a membership up.
    fn give_slot_up(&mut self, slot: Slot, view: &View, cx: &mut Context<'_>) {
        self.forget_ended(view.id.group, slot, cx);
        self.discard(slot, view, cx);
    }

    /// Forgets that the membership whose data is in this slot has ended.
    pub(crate) fn forget_ended(&mut self, group: GroupId, slot: Slot, cx: &mut Context<'_>) {
        if self.durable.ended.remove(&(group, slot)).is_some() {
            cx.fx.delete_state(kept_key(group, slot));
        }
    }

    /// Where the data stands that this node holds for those who ask since a view, and whether it is
    /// complete. Who is no source for them tells all that it holds.
    pub(crate) fn held_since(&self, since: ViewId) -> Option<(Vec<Slot>, bool)> {
        let group = self.group(since)?;
        let (own, is_source) = (group.record.slot, group.is_source());
        let ended = self.ended(since.group).filter(|(_, version)| *version >= since.version);
        let (slot, is_complete) = match ended.min_by_key(|(_, version)| *version) {
            Some((slot, _)) if slot != own => (slot, true),
            Some(_) => (own, is_source),
            None => {
                let is_over = self.durable.ended.contains_key(&(since.group, own));
                (own, is_source && !is_over)
            }
        };
        let tells_all = group.is_asked() && !is_complete && !mutant!("tells_own_slot_alone");
        let others = self.kept_slots(since.group).filter(|_| tells_all);
        Some((iter::once(slot).chain(others).collect(), is_complete))
    }

    /// The memberships in a group that have ended and are remembered: their slots, and the versions
    /// they ended with.
    fn ended(&self, group: GroupId) -> impl Iterator<Item = (Slot, u64)> + use<'_> {
        let all = (group, Slot(0))..=(group, Slot(u32::MAX));
        self.durable.ended.range(all).map(|((_, slot), version)| (*slot, *version))
    }

    /// The slots in a group that are kept beside the present one.
    pub(crate) fn kept_slots(&self, group: GroupId) -> impl Iterator<Item = Slot> + use<'_> {
        let own = self.durable.groups.get(&group).map(|group| group.record.slot);
        self.ended(group).map(|(slot, _)| slot).filter(move |slot| Some(*slot) != own)
    }

    /// Somebody is in this generation. Who lacks data takes part in no removal, and what it has
    /// kept may be older than tombstones that the others have removed. So may be what others have
    /// listed that did not know of that either: they are asked anew.
    pub(crate) fn come_to_generation(
        &mut self,
        view: ViewId,
        generation: Generation,
        cx: &mut Context<'_>,
    ) {
        let is_lasting = self.is_lasting() && !mutant!("leavers_hear_of_no_removal");
        // One that has left and is complete may be heard too after a loss, beside others.
        let is_told = |group: &&mut Group| {
            group.lacks_data() || is_lasting && group.is_asked() && !group.is_member()
        };
        let Some(group) = self.group_mut(view).filter(is_told) else { return };
        let before = group.known().generation;
        if before.enforces_less(generation) && !mutant!("kept_through_removals") {
            probe!("linearizable/kept_is_outlived");
            group.heard_generation = generation;
            if mutant!("leavers_come_of_age") {
                group.record.generation = generation;
                Self::persist(group, cx);
            }
            let view = View::clone(&group.view);
            self.give_up_kept(&view, cx);
            if !mutant!("transfer_outlives_removal") {
                self.begin_transfer_anew(view.id, cx);
            }
        }
    }

    /// A source lists what was complete in this generation. What a newcomer gets of it is as old as
    /// that, whatever those who invited it have heard since.
    pub(crate) fn take_age(&mut self, view: ViewId, generation: Generation, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        // It has taken part in no removal yet.
        let is_new = matches!(
            group.record.status,
            Status::Busy { .. } | Status::Retired { lacking: Some(_), .. }
        ) && !mutant!("leavers_come_of_age");
        if is_new && generation.enforces_less(group.record.generation) {
            probe!("linearizable/got_of_an_earlier_generation");
            group.heard_generation = group.progress().generation();
            group.record.generation = generation;
            Self::persist(group, cx);
        }
    }

    /// Gives up what is kept beside the present membership.
    pub(crate) fn give_up_kept(&mut self, view: &View, cx: &mut Context<'_>) {
        let kept: Vec<Slot> = self.kept_slots(view.id.group).collect();
        for slot in kept {
            probe!("linearizable/kept_no_longer");
            self.give_slot_up(slot, view, cx);
        }
    }

    /// Once every member of the present view holds everything, nobody needs what was before it.
    pub(crate) fn release_kept(&mut self, view: ViewId, cx: &mut Context<'_>) {
        if self.kept_slots(view.group).next().is_none() {
            return;
        }
        let Some(group) = self.group(view) else { return };
        let mut others = group.view.members().iter().filter(|node| **node != cx.me.node);
        if group.is_whole() && others.all(|node| group.is_settled(*node)) {
            let view = View::clone(&group.view);
            self.give_up_kept(&view, cx);
        }
    }
}
