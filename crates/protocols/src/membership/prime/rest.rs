//! Nobody has a place: all were started again at once, or stood still together.
//!
//! Each member has its view all the same. If a majority of the newest view's members says that it
//! has no place, the one that was furthest takes its own back, and the others follow.

use super::super::number::RollId;
use super::message::Message;
use super::node::{Action, LOG_MAX, Prime};
use super::repair::{ASK_ROUNDS, Doubt};
use crate::epto::{EventKey, Horizon, LogicalTime};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

/// What a member without a place knows of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    asked_at: Option<u64>,
    /// Where those were that have no place either.
    others: BTreeMap<NodeId, (RollId, Option<EventKey>)>,
    /// Whether somebody has one.
    is_anybody_up: bool,
}

impl Prime {
    /// A member without a place asks the others whether they have one.
    pub(super) fn rest(&mut self, out: &mut Vec<Action>) {
        let is_due = self.rest.asked_at.is_none_or(|at| self.round >= at + ASK_ROUNDS);
        if self.epto.has_place() || !self.is_member || !self.epto.may_resume() || !is_due {
            return;
        }
        let Some(view) = self.known().cloned() else { return };
        // All have had their time to answer.
        if self.is_furthest() && !mutant!("prime_rests_for_good") {
            self.take_back(out);
            return;
        }
        self.rest = Rest { asked_at: Some(self.round), ..Rest::default() };
        let others: Vec<NodeId> = view.ids().filter(|node| *node != self.me.node).collect();
        if !others.is_empty() {
            out.push(Action::Send { to: others, message: Message::Ask });
        }
    }

    /// Whether nobody has a place, as a majority of the members says, and none of them was further.
    fn is_furthest(&self) -> bool {
        let Some(ledger) = self.ledger.as_ref().filter(|_| self.rest.asked_at.is_some()) else {
            return false;
        };
        let own = (ledger.configuration().id, ledger.last(), self.me.node);
        let others = self.rest.others.iter().map(|(node, (view, last))| (*view, *last, *node));
        let count = self.rest.others.len() + 1;
        let is_majority = count >= ledger.configuration().majority();
        is_majority && !self.rest.is_anybody_up && others.max().is_none_or(|other| other < own)
    }

    fn take_back(&mut self, out: &mut Vec<Action>) {
        let Some(ledger) = &self.ledger else { return };
        let last = ledger.last();
        let clock = last.map_or(LogicalTime(0), |key| key.time);
        let horizon = Horizon { last, clock, sources: Vec::new(), is_complete: false };
        if self.epto.resume_at(&horizon).is_ok() {
            probe!("prime/takes_its_place_back");
            (self.rest, self.doubt) = (Rest::default(), Doubt::default());
            self.log.clear();
            self.on_view(out);
        }
    }

    /// A member has no place either.
    pub(super) fn on_rests(&mut self, from: NodeId, view: RollId, last: Option<EventKey>) {
        invariant!(from != self.me.node, "nobody asks itself");
        let is_asked = self.rest.asked_at.is_some() && !self.epto.has_place();
        if is_asked && self.known().is_some_and(|known| known.contains(from)) {
            self.rest.others.insert(from, (view, last));
        }
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
    }

    /// Somebody has a place: it is asked for its state.
    pub(super) fn on_wakeful(&mut self, from: NodeId, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody asks itself");
        self.rest.is_anybody_up = true;
        if self.epto.may_resume() {
            out.push(Action::Send { to: Vec::from([from]), message: Message::Fetch });
        }
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
    }
}
