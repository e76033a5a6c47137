//! Doubt about the own view: how it arises, and how it ends in a view that a majority went through.

use super::super::number::{Number, RollId};
use super::ledger::Ledger;
use super::message::{Message, Whole};
use super::node::{Action, LOG_MAX, Prime};
use crate::epto::EventKey;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

/// After how many rounds all members are asked again.
pub(super) const ASK_ROUNDS: u64 = 8;
/// After how many rounds of doubt it is told that it goes on.
const LONG_ROUNDS: u64 = 2 * ASK_ROUNDS;
/// For how many rounds more than an event takes others may be ahead.
const AHEAD_ROUNDS: u64 = 8;

/// What a node knows of its doubt.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubt {
    /// Since which round.
    since: Option<u64>,
    asked_at: Option<u64>,
    /// What the others went through.
    views: BTreeMap<NodeId, (Vec<RollId>, Option<EventKey>)>,
    /// Which view a majority went through, and who was asked for its state.
    agreed: Option<(RollId, NodeId)>,
    /// In which own view this node is, and since when somebody is in a later one.
    ahead: Option<(Number, u64)>,
}

impl Doubt {
    pub fn begin(&mut self, round: u64) {
        if !mutant!("prime_never_doubts") {
            self.since.get_or_insert(round);
        }
    }

    pub fn is_open(&self) -> bool {
        self.since.is_some()
    }

    pub fn is_long(&self, round: u64) -> bool {
        self.lasts(round) >= LONG_ROUNDS
    }

    /// For how many rounds it has been open.
    pub fn lasts(&self, round: u64) -> u64 {
        self.since.map_or(0, |since| round - since)
    }

    /// The newest view that so many went through, and the one of them that is furthest.
    fn agreed(&self, own: &Ledger, majority: usize) -> Option<(RollId, NodeId)> {
        let mut votes: BTreeMap<RollId, usize> = BTreeMap::new();
        let chains = self.views.values().flat_map(|(chain, _)| chain.iter().copied());
        chains.chain(own.chain()).for_each(|view| *votes.entry(view).or_default() += 1);
        let (view, _) = votes.into_iter().rev().find(|(_, count)| *count >= majority)?;
        let has = self.views.iter().filter(|(_, (chain, _))| chain.contains(&view));
        let (node, _) = has.max_by_key(|(node, (_, last))| (*last, **node))?;
        Some((view, *node))
    }
}

impl Prime {
    /// Some node is in this view.
    pub(super) fn hear_of(&mut self, view: RollId) {
        let Some(ledger) = &self.ledger else { return };
        if ledger.differs(view) {
            self.doubt.begin(self.round);
        }
        let own = ledger.configuration().id.number;
        if view.number <= own {
            return;
        }
        // It may just have been delivered there first.
        let parameters = self.epto.parameters();
        let takes = u64::from(parameters.ttl + parameters.hold_rounds) + AHEAD_ROUNDS;
        let ahead = self.doubt.ahead.filter(|(number, _)| *number == own);
        let (_, since) = *self.doubt.ahead.insert(ahead.unwrap_or((own, self.round)));
        if self.round > since + takes {
            self.doubt.begin(self.round);
        }
    }

    /// Asks all members, as long as there is doubt.
    pub(super) fn repair(&mut self, out: &mut Vec<Action>) {
        let is_due = self.doubt.asked_at.is_none_or(|at| self.round >= at + ASK_ROUNDS);
        let Some(ledger) = self.ledger.as_ref().filter(|_| self.doubt.is_open() && is_due) else {
            return;
        };
        probe!("prime/doubts");
        let others = ledger.configuration().ids().filter(|node| *node != self.me.node);
        let to: Vec<NodeId> = others.collect();
        self.doubt.asked_at = Some(self.round);
        (self.doubt.agreed, self.doubt.views) = (None, BTreeMap::new());
        if to.is_empty() {
            (self.doubt, self.sides.sure) = (Doubt::default(), self.known().map(|view| view.id));
        } else {
            out.push(Action::Send { to, message: Message::Ask });
        }
    }

    pub(super) fn on_ask(&mut self, from: NodeId, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody asks itself");
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
        let Some(ledger) = &self.ledger else { return };
        let message = match self.epto.has_place() {
            true => Message::Views { chain: ledger.chain().collect(), last: ledger.last() },
            false if self.is_member => {
                Message::Rests { view: ledger.configuration().id, last: ledger.last() }
            }
            false => return,
        };
        out.push(Action::Send { to: Vec::from([from]), message });
    }

    pub(super) fn on_views(
        &mut self,
        from: NodeId,
        chain: Vec<RollId>,
        last: Option<EventKey>,
        out: &mut Vec<Action>,
    ) {
        invariant!(from != self.me.node, "nobody asks itself");
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
        if !self.epto.has_place() {
            return self.on_wakeful(from, out);
        }
        let Some(ledger) = &self.ledger else { return };
        let is_asked = self.doubt.is_open() && self.doubt.agreed.is_none();
        if !is_asked || !ledger.configuration().contains(from) {
            return;
        }
        self.doubt.views.insert(from, (chain, last));
        self.doubt.agreed = self.doubt.agreed(ledger, ledger.configuration().majority());
        if let Some((view, holder)) = self.doubt.agreed {
            self.sides.sure = Some(view);
            out.push(Action::Send { to: Vec::from([holder]), message: Message::Fetch });
        }
    }

    pub(super) fn on_fetch(&mut self, from: NodeId, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody asks itself");
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
        let (Some(ledger), Some(horizon)) = (&self.ledger, self.epto.horizon()) else { return };
        let whole = Arc::new(Whole { ledger: ledger.clone(), horizon });
        let message = Message::Whole(Some(whole));
        out.push(Action::Send { to: Vec::from([from]), message });
    }

    /// A state has come: of one that went through a view of a majority, or for one that comes.
    pub(super) fn on_whole(&mut self, from: NodeId, whole: &Whole, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody asks itself");
        if !self.epto.has_place() {
            self.take_over(whole, out);
        } else if self.sides.is_of(from, whole) {
            self.start_over(whole, out);
        } else if let Some((view, holder)) = self.doubt.agreed
            && holder == from
            && whole.ledger.chain().any(|one| one == view)
        {
            self.adopt(whole, out);
        }
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
    }

    /// Goes on from another's state, with what was delivered here behind it.
    fn adopt(&mut self, whole: &Whole, out: &mut Vec<Action>) {
        let ledger = &whole.ledger;
        // Reports that it has not taken in yet must all be in the log.
        let is_within = |last: EventKey| self.log.front().is_some_and(|(key, _)| *key <= last);
        let own = self.ledger.as_ref().and_then(Ledger::last);
        if ledger.last() < own && !ledger.last().is_some_and(is_within) {
            let (other, me) = (ledger.configuration(), self.me.node);
            // One that is behind may not know yet that this node is a member: it is asked again.
            if other.contains(me) || other.has_left(me) {
                self.start_over(whole, out);
            }
            return;
        }
        probe!("prime/repaired");
        let mut ledger = ledger.clone();
        for (key, report) in &self.log {
            if ledger.last().is_none_or(|last| *key > last) {
                ledger.apply(*key, report);
            }
        }
        let before = self.ledger.as_ref().map(|it| it.configuration().id);
        let is_other = before != Some(ledger.configuration().id);
        self.doubt = Doubt::default();
        self.set_ledger(ledger);
        if is_other {
            self.on_view(out);
        }
    }
}
