//! Epochs: how often everything was lost in a group, so that nothing of before comes back.
//!
//! After a loss ([`super::amnesia`]) members go on with what is left. What was lost may still be on
//! its way: a coordinator outlives the members, and a put that took its timestamp before, or a get
//! that imposes what it read then, would stand above all that is acknowledged since. So would a
//! record that was asked for before and arrives after, and one that a host has copied ahead.
//!
//! Each node keeps the group's epoch with the group, durably; stamps, beats and answers say it.
//! 1. Who finds out a loss has heard from all members of its view, in its own epoch, and begins the
//!    next one: from those too that have come since it began to ask. In a group of one, who forgets
//!    does.
//! 2. Its questions say so. Whoever hears of a higher epoch comes to it, durably, before it
//!    answers. A transfer under way there begins anew: what was asked and said before counts no
//!    more.
//! 3. It goes on with what is left when all members of its view have listed what they hold since,
//!    each of them in that view, and none of them is beyond it; also who has left the group, since
//!    others take it for complete then. Hosts that are gone for good are not waited for. Or, as
//!    ever, when as many are complete as any refill needs: then nothing was lost with it.
//! 4. A write names the lowest epoch of the quorum that it rests on, and a comparison the epoch of
//!    who sends its records. No member takes what is of a lower epoch than its own.
//! 5. A newcomer comes to the highest epoch of those that invite it, and who jumps to a view to
//!    that of those that stand there. What was copied in a lower one is discarded, and a learner
//!    copies from nobody who is in another.
//! 6. Who forgets where a loss was counted before begins the next epoch, with its start. What it
//!    had listed, and another has asked for or is about to list, does not come to some alone.
//! 7. Who lacks data lists what it has kept of former memberships with the rest ([`super::held`]).
//!
//! Let a record be taken somewhere in a lower epoch than that in which somebody goes on with what
//! is left. If a member of its view took it, that was before the member listed (2, 4): it is part
//! of what is left, and whoever goes on has heard it (3, 7). Or the member has forgotten it before
//! it listed; then each that had asked it for the record does so in a lower epoch than that in
//! which it lists now (6), and has either the record by then, and lists it, or will not take it
//! (2). Nobody else takes it: the next views begin with members that were in the epoch before they
//! left this one (3), each newcomer is invited by a majority of those, and is in it too (5). So
//! what is taken after somebody has gone on was read from a quorum of its epoch, in which all that
//! is left was heard. A loss is counted above each epoch that a member was in when it was found out
//! (1); two that find out the same one at a time may begin the same epoch, and hear each other
//! before either goes on.
//!
//! Where nobody goes on so, because enough are complete again, a member may stay in a lower epoch
//! for a while. It refuses nothing that it should take, and comes to the higher one with the next
//! beats; until then writes that rest on it are refused by the others.
//!
//! So a read may count members of two epochs. Who answers from the lower one is complete there, and
//! nothing was lost between the two; or it came to the higher one after it had answered, so that
//! the read began before anybody went on in that one, and may show what was there then. What such a
//! read writes or imposes is of the lower epoch (4).
//!
//! A removed host is an exception to that as to everything: nobody hears what it holds, and it
//! invites nobody whom the others do not invite.

use super::transfer::Transfer;
use crate::linearizable::group::Group;
use crate::linearizable::message::Known;
use crate::linearizable::{Context, Linearizable};
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::view::{Range, ViewId};

impl Group {
    /// Whether this learner began to copy in a lower epoch.
    pub fn is_copied_before_loss(&self, known: &Known) -> bool {
        self.is_learner() && self.record.epoch < known.epoch && !mutant!("copy_outlives_loss")
    }
}

impl Transfer {
    /// Asks everybody for everything again. What was asked before is not taken any more, and what
    /// somebody said of itself confirms nothing.
    pub fn begin_anew(&mut self, round: u64, range: &Range) {
        (self.round, self.first_round) = (round, round);
        self.ask_again();
        self.told.clear();
        for source in &mut self.sources {
            (source.is_whole, source.has_gathered, source.lacks) = (false, false, None);
        }
        self.begin_intervals(range);
    }
}

impl Linearizable {
    /// Somebody is in this epoch: so is this node from now on. What a learner copied is of its own.
    pub(crate) fn come_to_epoch(&mut self, view: ViewId, epoch: u64, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view).filter(|group| !group.is_learner()) else { return };
        if group.record.epoch < epoch {
            probe!("linearizable/epoch_heard");
            group.record.epoch = epoch;
            Self::persist(group, cx);
            if !mutant!("transfer_outlives_loss") {
                self.begin_transfer_anew(view, cx);
            }
        }
    }

    /// Begins a transfer anew, if one is under way.
    pub(crate) fn begin_transfer_anew(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let round = self.volatile.round + 1;
        let Some(group) = self.group_mut(view) else { return };
        let range = group.view.range;
        let Some(transfer) = &mut group.transfer else { return };
        transfer.begin_anew(round, &range);
        self.volatile.round = round;
        self.ask_lists(view, cx);
    }
}
