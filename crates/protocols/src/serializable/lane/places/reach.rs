//! Groups that seem to be out of reach: most of their members are suspected.
//!
//! A suspicion is a rumour, so it refuses only what can have changed nothing.

use crate::serializable::lane::clients::in_hand::Phase;
use crate::serializable::lane::{Context, Serializable};
use quorate_kernel::operation::Refusal;
use quorate_kernel::time::Span;

/// How long an operation waits for a group of which most members are suspected: a suspicion may be
/// wrong, and who is there answers within a moment. Longer nobody should wait for a refusal.
pub const GRACE: Span = Span::millis(100);

impl Serializable {
    /// If most members of a group that is asked are suspected: the refusal that says so.
    pub(crate) fn out_of_reach(&self, phase: &Phase) -> Option<Refusal> {
        if matches!(phase, Phase::Recalling(_)) {
            // Nothing is done by it, and a host may know what the group would tell.
            return None;
        }
        phase.groups().into_iter().find_map(|group| {
            let leads = self.routes.leads(group)?;
            let suspected = self.hosts.suspected(&leads.members)?;
            let count = |count| u8::try_from(count).unwrap_or(u8::MAX);
            let (suspected, members) = (count(suspected), count(leads.members.len()));
            Some(Refusal::Minority { view: leads.view.epoch.0, suspected, members })
        })
    }

    /// An operation of which nothing can have been done is refused, if a group that it waits for is
    /// out of reach; whether it was.
    pub(crate) fn refuse_out_of_reach(&mut self, question: u64, cx: &mut Context<'_>) -> bool {
        let Some(doing) = self.clients.get(question) else { return false };
        let is_open = doing.ticket.is_none() || doing.phase.open().is_some();
        if is_open && !doing.is_held {
            return false;
        }
        let Some(refusal) = self.out_of_reach(&doing.phase) else { return false };
        let Some(mut doing) = self.clients.remove(question) else { return false };
        if let Some(tx) = doing.phase.open() {
            // Nobody was asked for it.
            self.clients.names.close(tx);
        }
        // Nothing was done.
        doing.refuse(refusal, cx);
        true
    }
}
