//! What this member observes, and what it makes of what all have observed.

use crate::membership::action::Context;
use crate::membership::message::{Alert, Body};
use crate::membership::number::RollId;
use crate::membership::roll::Roll;
use crate::membership::timer::STALL;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::time::Span;
use quorate_kernel::{invariant, mutant, probe};

impl Roll {
    /// Probes the subjects, and reports those that do not answer.
    pub(crate) fn tick_edges(&mut self, late: Option<Span>, cx: &mut Context<'_>) {
        let is_stalled = late.is_some_and(|late| late > STALL);
        if is_stalled && !mutant!("roll_blames_all_after_a_stall") {
            // It was paused, not the others: their answers may have come and gone meanwhile.
            probe!("roll/stalled");
            self.edges.start_anew(cx.now);
        }
        for (subject, nonce) in self.edges.probe(cx.now) {
            // Early: it asks, and promises nothing.
            self.tell(subject, Body::Probe { nonce }, Release::Early, cx);
        }
        let failing: Vec<NodeId> = self.edges.failing().collect();
        failing.into_iter().for_each(|subject| self.report(subject, cx));
    }

    /// Reports a member; no more than once in a configuration.
    pub(crate) fn report(&mut self, subject: NodeId, cx: &Context<'_>) {
        let rings = self.rings.between(self.me, subject);
        if rings != 0 && !self.outbox.has(subject) {
            self.outbox.raise(Alert { subject, rings, member: None }, cx.now);
        }
    }

    /// Tells what was found; joins in where others wait for this member's word; proposes.
    pub(crate) fn tick_alerts(&mut self, cx: &mut Context<'_>) {
        let shape = self.configuration().shape;
        let lingering: Vec<_> = self
            .cut
            .lingering(shape, cx.now)
            .map(|(subject, member)| (subject, member.cloned()))
            .collect();
        for (subject, member) in lingering {
            let rings = self.rings.between(self.me, subject);
            if rings != 0 && !self.outbox.has(subject) {
                probe!("roll/reinforces");
                self.outbox.raise(Alert { subject, rings, member }, cx.now);
            }
        }
        for alerts in self.outbox.take(cx.now) {
            // Early: what was found is told again after a restart if it is found again, and
            // nothing that is decided rests on it.
            self.tell_all(Body::Alerts { alerts }, Release::Early, cx);
        }
        self.consider(cx);
    }

    /// Proposes what all reports amount to, once.
    pub(super) fn consider(&mut self, cx: &mut Context<'_>) {
        self.cut.imply(&self.rings, self.head.configuration.shape, cx.now);
        if self.instance.wish.is_some() {
            return;
        }
        if let Some(change) = self.cut.proposal(&self.head.configuration) {
            self.propose(change, cx);
        }
    }

    /// An observer has found something.
    pub(crate) fn on_alerts(&mut self, from: Incarnation, alerts: &[Alert], cx: &mut Context<'_>) {
        invariant!(self.is_member(), "who is out counts no alerts");
        for alert in alerts {
            let configuration = &self.head.configuration;
            let subject = alert.subject;
            // It is no member, and was none, if it wants to join; a member if it shall leave.
            let is_member = configuration.contains(subject);
            let is_apt = match &alert.member {
                Some(_) => !is_member && !configuration.has_left(subject),
                None => is_member,
            };
            let edges = self.rings.between(from.node, subject);
            if !is_apt || alert.rings & !edges != 0 {
                cx.refuse("an alert on what its sender does not observe");
                continue;
            }
            self.cut.count(subject, alert.rings, alert.member.as_ref(), cx.now);
            let counted = self.cut.rings(subject);
            invariant!(counted & !configuration.shape.all_rings() == 0, "one report in each ring");
        }
        self.consider(cx);
    }

    /// An observer asks whether this node is there. Whoever takes part answers, in whatever
    /// configuration.
    pub(crate) fn on_probe(
        &mut self,
        from: Incarnation,
        roll: RollId,
        nonce: u64,
        cx: &mut Context<'_>,
    ) {
        let (before, is_behind) = (self.roll(), roll.number < self.roll().number);
        if self.is_member() && is_behind && !self.configuration().contains(from.node) {
            // It was removed, and does not know it.
            return self.tell(from.node, Body::Kicked, Release::State, cx);
        }
        if self.is_member() || self.joining.is_some() {
            // Not early: a node whose disk stands still is not well.
            self.tell(from.node, Body::ProbeAck { nonce }, Release::Lane, cx);
        }
        invariant!(self.roll() == before, "a probe makes no configuration");
        invariant!(self.instance.coordinator.is_none() || self.is_member(), "nor a round");
    }

    /// A subject has answered.
    pub(crate) fn on_probe_ack(&mut self, from: Incarnation, nonce: u64) {
        let before = self.edges.len();
        self.edges.answered(from.node, nonce);
        invariant!(self.edges.len() == before, "an answer makes no subject");
        invariant!(before == 0 || self.is_member(), "only members observe");
    }
}
