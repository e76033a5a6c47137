//! Members that forgot what they had acknowledged, and groups in which all did.
//!
//! A member that forgot refills from so many others that they meet every majority it was part of.
//! Each source first notes, durably, that the asker forgot in this start; from then on
//! acknowledgements of the asker's earlier starts do not count ([`crate::quorum`]).
//!
//! If *every* other member forgot too, nothing is left to refill from: everything was lost, as
//! `memory` promises for a restart of all hosts at once. One round of answers cannot show that,
//! because members forget and refill one after the other; so a second round asks each again. A
//! member that had forgot in both answers, in one start, had forgot at the moment between the
//! rounds, and so had all. What these incarnations hold is then everything that is left, so they
//! count as sources for each other although they forgot; who finds this out tells the others which
//! incarnations it concerns. They must still hear from as many others as in any refill: each of
//! those then knows that the asker forgot, and its earlier acknowledgements no longer count.

use super::told::Source;
use super::transfer::Transfer;
use super::{Context, Linearizable};
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::probe;
use quorate_kernel::view::ViewId;

impl Transfer {
    /// Takes in that a source forgot too; returns whether a confirming round must begin.
    pub fn note_forgot(&mut self, from: Incarnation, round: u64) -> bool {
        let Some(source) = self.sources.iter_mut().find(|source| source.node == from.node) else {
            return false;
        };
        if source.forgot == Some(from.start) {
            source.confirmed |= self.confirming.is_some_and(|first| round >= first);
        } else {
            // A first word, or a later start: what was concluded before must be asked again.
            source.forgot = Some(from.start);
            self.confirming = None;
            self.sources.iter_mut().for_each(|source| source.confirmed = false);
        }
        let all_forgot = self.staying().all(|source| source.forgot.is_some());
        if all_forgot && self.confirming.is_none() {
            self.round += 1;
            self.confirming = Some(self.round);
            return true;
        }
        false
    }

    /// The sources that are members; one that has left need not have forgotten as well.
    fn staying(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| !source.has_left)
    }

    /// If every other member had forgot at one moment: in which incarnations.
    fn everything_lost(&self) -> Option<Vec<Incarnation>> {
        let confirmed = |source: &Source| {
            let start = source.forgot.filter(|_| source.confirmed)?;
            Some(Incarnation { node: source.node, start })
        };
        if self.forgot { self.staying().map(confirmed).collect() } else { None }
    }
}

impl Linearizable {
    /// A source told in which incarnations everything was lost.
    pub(super) fn on_told_of_loss(
        &mut self,
        view: ViewId,
        lost: Vec<Incarnation>,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group(view) else { return };
        let has_forgot = group.transfer.as_ref().is_some_and(|transfer| transfer.forgot);
        if has_forgot && lost.contains(&cx.me) && !group.record.lost.contains(&cx.me) {
            probe!("linearizable/told_of_loss");
            self.note_loss(view, lost, cx);
        }
    }

    /// A source that forgot answered in a round.
    pub(super) fn on_source_forgot(
        &mut self,
        view: ViewId,
        from: Incarnation,
        round: u64,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let Some(transfer) = group.transfer.as_mut().filter(|transfer| transfer.forgot) else {
            return;
        };
        let must_confirm = transfer.note_forgot(from, round);
        let lost = transfer.everything_lost();
        if must_confirm {
            self.ask_all_anew(view, cx);
        }
        let is_known = self.group(view).is_some_and(|group| group.record.lost.contains(&cx.me));
        if let Some(mut lost) = lost.filter(|_| !is_known) {
            probe!("linearizable/everything_lost");
            lost.push(cx.me);
            self.note_loss(view, lost, cx);
        }
    }

    /// Every member had forgot at one moment, in these incarnations.
    fn note_loss(&mut self, view: ViewId, lost: Vec<Incarnation>, cx: &mut Context<'_>) {
        if let Some(group) = self.group_mut(view) {
            group.record.lost = lost;
            Self::persist(group, cx);
        }
        self.ask_all_anew(view, cx);
    }
}
