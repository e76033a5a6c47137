//! How a node comes: it listens to the order, takes over a state, and is let in by its observers.

use super::super::configuration::Member;
use super::ledger::Report;
use super::message::{Message, Whole};
use super::node::{Action, LOG_MAX, Prime};
use super::repair::Doubt;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

/// After how many rounds it asks again.
const AGAIN_ROUNDS: u64 = 6;

impl Prime {
    /// Not a member, or without a place: asks for a state, and to be let in.
    pub(super) fn come(&mut self, out: &mut Vec<Action>) {
        if !self.round.is_multiple_of(AGAIN_ROUNDS) {
            return;
        }
        let known = self.ledger.as_ref().map(|ledger| ledger.configuration());
        let others = known.into_iter().flat_map(|view| view.ids());
        let me = self.me.node;
        let asked: Vec<NodeId> = self.contacts.iter().copied().chain(others).collect();
        let asked: Vec<NodeId> = asked.into_iter().filter(|node| *node != me).collect();
        let turn = usize::try_from(self.round / AGAIN_ROUNDS).unwrap_or(0);
        if !self.epto.has_place() && !asked.is_empty() {
            let to = Vec::from([asked[turn % asked.len()]]);
            out.push(Action::Send { to, message: Message::Fetch });
        }
        if let (Some(member), Some(ledger)) = (&self.joins, &self.ledger)
            && !ledger.configuration().contains(me)
        {
            let to: Vec<NodeId> = ledger.rings().observers_of(me).into_iter().collect();
            out.push(Action::Send { to, message: Message::Join(Arc::clone(member)) });
        }
    }

    /// The state of another, for a node without a place. Before it has listened for long enough it
    /// shows who the others are.
    pub(super) fn take_over(&mut self, whole: &Whole, out: &mut Vec<Action>) {
        if whole.ledger.configuration().has_left(self.me.node) {
            self.end(out);
            return;
        }
        if self.epto.resume_at(&whole.horizon).is_ok() {
            self.doubt = Doubt::default();
            self.log.clear();
            self.set_ledger(whole.ledger.clone());
            self.on_view(out);
        } else if self.ledger.is_none() {
            self.set_ledger(whole.ledger.clone());
        }
    }

    pub(super) fn on_join(&mut self, from: NodeId, member: &Arc<Member>, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody asks itself");
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
        let Some(ledger) = self.ledger.as_ref().filter(|_| self.epto.has_place()) else { return };
        let configuration = ledger.configuration();
        if configuration.has_left(from) {
            out.push(Action::Send { to: Vec::from([from]), message: Message::Gone });
            return;
        }
        let is_observer = ledger.rings().between(self.me.node, from) != 0;
        if member.id == from && is_observer && !configuration.contains(from) {
            self.say(Report::Joins(Arc::clone(member)), from);
        }
    }

    pub(super) fn on_gone(&mut self, from: NodeId, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody asks itself");
        self.end(out);
        invariant!(self.joins.is_none(), "it does not ask again");
    }

    /// It cannot come, or stay: not under this id. Who was removed while it stood still hears it
    /// when it asks for a state.
    pub(super) fn end(&mut self, out: &mut Vec<Action>) {
        let was_member = core::mem::take(&mut self.is_member) && !mutant!("prime_out_unheard");
        if self.joins.take().is_some() || was_member {
            probe!("prime/ended");
            self.is_out = true;
            out.push(Action::Out);
        }
    }
}
