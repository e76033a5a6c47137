//! What keeps transfers going: lists and records are asked for as far as what has arrived allows.

use super::gather::enough;
use super::transfer::REPEAT;
use crate::linearizable::group::{Group, Standing, Status};
use crate::linearizable::message::Message;
use crate::linearizable::replicate::replica::newest;
use crate::linearizable::timer::Timer;
use crate::linearizable::views::conditions::recent;
use crate::linearizable::{Context, Linearizable};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::TRANSFER_LISTED_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;
use quorate_kernel::view::ViewId;

impl Linearizable {
    /// Asks every source of a group's transfer for its next list, if there is room for it.
    pub(crate) fn ask_lists(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        let epoch = group.record.epoch;
        let Some(transfer) = &mut group.transfer else { return };
        let (round, since, forgot) = (transfer.round, transfer.since, transfer.forgot);
        if transfer.interval.is_none() {
            return;
        }
        let gathered = transfer.gathered.as_ref();
        for source in &mut transfer.sources {
            let has_room = source.listed.len() < TRANSFER_LISTED_MAX;
            let from = source.next.as_ref().filter(|_| has_room && source.asked != source.next);
            let Some(from) = from else { continue };
            // What a quorum has listed without it, it need not list.
            let from = gathered.map_or(from, |gathered| from.max(gathered)).clone();
            (source.next, source.asked) = (Some(from.clone()), Some(from.clone()));
            // What it says of this node is protocol state.
            let question = Message::ListA { round, since, epoch, forgot, from };
            cx.fx.send_after_state(source.node, question);
        }
    }

    /// Asks every source again, in a new round: what they said of themselves must be confirmed.
    pub(crate) fn ask_all_anew(&mut self, view: ViewId, cx: &mut Context<'_>) {
        if let Some(group) = self.group_mut(view)
            && let Some(transfer) = &mut group.transfer
        {
            transfer.sources.iter_mut().for_each(|source| source.asked = None);
        }
        self.ask_lists(view, cx);
    }

    /// Goes on with a transfer as far as what was listed and fetched allows.
    pub(crate) fn advance_transfer(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let list_keys = self.settings.pace.list_keys;
        while let Some(group) = self.group_mut(view) {
            let slot = group.record.slot;
            let Some(transfer) = &mut group.transfer else { return };
            if transfer.is_done() {
                return self.end_transfer(view, cx);
            }
            if transfer.gathered.is_none() && transfer.pulls.is_empty() {
                transfer.next_interval();
                continue;
            }
            let Some(reach) = transfer.reach(list_keys) else { return self.ask_records(view, cx) };
            let (reach, is_cut) = self.take_kept(view, reach, cx);
            let Some(group) = self.group_mut(view) else { return };
            let Some(transfer) = &mut group.transfer else { return };
            let mut pulls = transfer.gather(reach.as_ref());
            pulls.retain(|key, pull| {
                // Unless a newer one was accepted meanwhile.
                pull.head.ts > newest(&slot.stored(key), cx).ts
            });
            if let Some(group) = self.group_mut(view)
                && let Some(transfer) = &mut group.transfer
            {
                transfer.pull(pulls);
                transfer.gathered = reach;
            }
            if is_cut {
                return self.ask_records(view, cx);
            }
        }
    }

    /// Goes on with a transfer, and asks for what comes next.
    pub(crate) fn go_on(&mut self, view: ViewId, cx: &mut Context<'_>) {
        self.advance_transfer(view, cx);
        self.ask_lists(view, cx);
        if self.group(view).is_some_and(|group| group.transfer.is_some()) {
            self.look_after_transfers(cx.now + REPEAT, cx);
        }
    }

    /// Makes sure that transfers are looked after at this time at the latest.
    pub(crate) fn look_after_transfers(&mut self, at: Time, cx: &mut Context<'_>) {
        if self.volatile.transfers_at.is_none_or(|armed| at < armed) {
            self.volatile.transfers_at = Some(at);
            cx.fx.arm(Timer::Transfer, at);
        }
    }

    /// The group whose transfer asks for this, and its slot.
    pub(crate) fn transfer_of(
        &self,
        since: ViewId,
    ) -> Option<(ViewId, crate::linearizable::keys::Slot)> {
        let is_asking = |group: &&Group| group.transfer.as_ref().is_some_and(|t| t.since == since);
        let group = self.durable.groups.values().find(is_asking)?;
        Some((group.view.id, group.record.slot))
    }

    /// The groups whose data moves to this node.
    pub(crate) fn moving(&self) -> Vec<ViewId> {
        let moving = self.durable.groups.values().filter(|group| group.transfer.is_some());
        moving.map(|group| group.view.id).collect()
    }

    /// Transfers made no progress for a while, or may fetch more.
    pub(crate) fn on_transfer_timer(&mut self, cx: &mut Context<'_>) {
        self.volatile.transfers_at = None;
        for view in &self.moving() {
            if let Some(group) = self.group_mut(*view)
                && let Some(transfer) = &mut group.transfer
                && transfer.is_stuck(cx.now)
                && let Some(window) = transfer.window()
            {
                probe!("linearizable/transfer_begins_window_anew");
                transfer.begin_window(&window);
                self.hear_present_members(*view, cx);
            }
            // Hosts may have left for good meanwhile.
            self.compare_words(*view, cx);
            self.go_on(*view, cx);
        }
    }

    /// A newcomer waits in vain, and the view has changed since it came. Those that it is to hear,
    /// members of the view before, may have died, and others that hold everything be in their
    /// places. Once these are as many as a newcomer hears that counts as one of them, it hears them
    /// instead: one of so many complete members holds what was complete before the present view
    /// ([`crate::linearizable::views::outpaced`]). What it has acknowledged itself it holds too; so
    /// one that has forgotten that does not.
    fn hear_present_members(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let me = cx.me.node;
        let Some(group) = self.group_mut(view) else { return };
        let present = group.view.members().to_vec();
        let has_all = |node: &&NodeId| {
            let heard = recent(group, **node, cx.now);
            heard.is_some_and(|it| (it.version, it.standing) == (view.version, Standing::Ready))
        };
        let is_enough = present.iter().filter(has_all).count() >= enough(&present, me);
        let Status::Busy { sources, since, forgot: false } = &mut group.record.status else {
            return;
        };
        if *since != view && is_enough && !mutant!("hears_former_members_alone") {
            probe!("linearizable/hears_present_members");
            (*sources, *since) = (present, view);
            Self::persist(group, cx);
            self.begin_transfer(view, cx);
        }
    }
}
