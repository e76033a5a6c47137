//! Bounds: numbers that no correct peer tells, whatever became of its disk or its frames.
//!
//! Views, epochs and places are counted up one by one, are kept durably, and the highest one of all
//! has none behind it. One message with a number near that would end the group for good, if it were
//! believed. So a replica takes over no number that is far beyond what it knows itself, and none
//! that contradicts another one of the same message. What fits may still be wrong: a peer that lies
//! with care is not defended against, but stops no node.

use super::message::Message;
use super::number::{Epoch, Op, ViewNumber};
use super::state::Replica;
use quorate_kernel::limits::{VSR_BEHIND_MAX, VSR_OPS_MAX};
use quorate_kernel::mutant;

impl Replica {
    /// Why a message is none of a correct peer, if its numbers say so.
    pub(super) fn refuses(&self, message: &Message) -> Option<&'static str> {
        let (mut are_near, mut are_places) = (true, true);
        let mut view = |view: ViewNumber| are_near &= self.is_near(view);
        let mut place = |op: Op| are_places &= op.0 <= VSR_OPS_MAX;
        each_number(message, &mut view, &mut place);
        if !are_near {
            return Some("no view or epoch is so far beyond what others know");
        }
        if !are_places {
            return Some("no log is so long");
        }
        (!is_consistent(message)).then_some("a message's numbers fit each other")
    }

    /// Whether a view can have been reached while this node did not hear of any.
    fn is_near(&self, view: ViewNumber) -> bool {
        let known = if view.epoch == self.epoch() { self.head.view.view } else { 0 };
        let is_behind = view.epoch < self.epoch();
        let beyond = view.view.saturating_sub(known);
        let epochs = view.epoch.0.saturating_sub(self.epoch().0);
        is_behind
            || mutant!("believes_any_number")
            || (beyond <= VSR_BEHIND_MAX && epochs <= VSR_BEHIND_MAX)
    }
}

/// Shows all views and places in a message.
fn each_number(message: &Message, view_is: &mut dyn FnMut(ViewNumber), op_is: &mut dyn FnMut(Op)) {
    let mut show = |views: &[ViewNumber], ops: &[Op]| {
        views.iter().for_each(|view| view_is(*view));
        ops.iter().for_each(|op| op_is(*op));
    };
    let of = |epoch: Epoch| ViewNumber::first(epoch);
    match message {
        Message::Prepare { view, from, commit, .. } => show(&[*view], &[*from, *commit]),
        Message::PrepareOk { view, end } => show(&[*view], &[*end]),
        Message::Beat { view, commit, end, held, .. } => {
            show(&[*view], &[*commit, *end, *held]);
        }
        Message::BeatOk { view, .. } => show(&[*view], &[]),
        Message::StartViewChange { at, view } => show(&[*at, *view], &[]),
        Message::DoViewChange { view, normal, end, commit, lost } => {
            show(&[*view, *normal, lost.unwrap_or_default()], &[*end, *commit]);
        }
        Message::DoViewChangeWithoutEnd { view, normal, end, commit, lost } => {
            show(&[*view, *normal, *lost], &[*end, *commit]);
        }
        Message::StartView { view, last, commit } => {
            show(&[*view, last.view], &[last.op, *commit]);
        }
        Message::GetState { view, from, .. } => show(&[*view], &[*from]),
        Message::NewState { view, before, commit, end, .. } => {
            show(&[*view, before.view], &[before.op, *commit, *end]);
        }
        Message::GetCheckpoint { at, .. } => show(&[], &[*at]),
        Message::Checkpoint { at, configuration, applied, .. } => {
            show(&[at.view, of(configuration.epoch)], &[at.op, configuration.since, *applied]);
        }
        Message::Recovery { view, .. } | Message::RecoveryResponse { view, .. } => {
            show(&[*view], &[]);
        }
        Message::StartEpoch { epoch } | Message::EpochStarted { epoch } => {
            show(&[of(*epoch)], &[]);
        }
        Message::Learned { end } => show(&[], &[*end]),
        Message::EpochWithoutLog { configuration, .. } => {
            show(&[of(configuration.epoch)], &[configuration.since]);
        }
    }
    if let Message::Prepare { entries, .. } | Message::NewState { entries, .. } = message {
        entries.iter().for_each(|entry| view_is(entry.view));
    }
}

/// Whether the numbers of a message can be of one replica at one moment.
fn is_consistent(message: &Message) -> bool {
    match message {
        Message::Prepare { from, .. } => *from > Op(0),
        Message::Beat { commit, end, held, .. } => held <= commit && commit <= end,
        Message::StartViewChange { at, view } => at.epoch == view.epoch && at < view,
        Message::DoViewChange { view, normal, end, commit, lost } => {
            normal <= view && commit <= end && lost.is_none_or(|since| since <= *view)
        }
        Message::DoViewChangeWithoutEnd { view, normal, end, commit, lost } => {
            normal <= view && commit <= end && lost <= view
        }
        Message::StartView { view, last, .. } => last.view <= *view,
        Message::NewState { before, entries, commit, end, .. } => {
            commit <= end && before.op.0 + entries.len() as u64 <= end.0
        }
        Message::Checkpoint { at, configuration, applied, page, .. } => {
            // The head is of the members that its last entry is of; they may change before a page.
            let is_last = at.op == configuration.since;
            let epoch = if is_last { at.view.epoch.next() } else { at.view.epoch };
            let is_of_epoch = configuration.since <= at.op && configuration.epoch == epoch;
            at.op > Op(0) && at.op <= *applied && (*page > 0 || is_of_epoch)
        }
        _ => true,
    }
}
