//! Letting nodes in, on the side of the members: one names the observers, and these report.

use super::action::Context;
use super::configuration::Member;
use super::message::{Alert, Body, Refusal};
use super::number::RollId;
use super::roll::Roll;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::{ROLL_JOINERS_MAX, ROLL_MEMBERS_MAX};

impl Roll {
    /// What one that wants to join is told if it is a member already, or cannot become one.
    fn answer_of(&self, joiner: NodeId) -> Option<Body> {
        if self.configuration().contains(joiner) {
            // It was let in, and has not heard it, or was restarted before it had.
            Some(Body::Here)
        } else if self.configuration().has_left(joiner) {
            Some(Body::Refused(Refusal::Gone))
        } else if self.configuration().members.len() >= ROLL_MEMBERS_MAX {
            Some(Body::Refused(Refusal::Full))
        } else {
            None
        }
    }

    /// Somebody wants to join, and asks who will observe it.
    pub(super) fn on_pre_join(&mut self, from: Incarnation, cx: &mut Context<'_>) {
        if !self.is_member() || from.node == self.me || !self.may_answer() {
            return;
        }
        let configuration = self.configuration();
        invariant!(configuration.contains(self.me), "only members let others in");
        let body = self.answer_of(from.node).unwrap_or_else(|| {
            let observers: Vec<Arc<Member>> = self
                .rings
                .observers(from.node)
                .filter_map(|(_, observer)| configuration.member(observer).cloned())
                .collect();
            invariant!(observers.len() == usize::from(configuration.shape.rings), "one a ring");
            Body::Observers { observers }
        });
        self.tell(from.node, body, Release::State, cx);
    }

    /// Somebody wants to join, and this member is to report it.
    pub(super) fn on_join(
        &mut self,
        from: Incarnation,
        roll: RollId,
        (member, rings): (Arc<Member>, u16),
        cx: &mut Context<'_>,
    ) {
        if !self.is_member() || from.node == self.me {
            return;
        }
        if member.id != from.node {
            return cx.refuse("a join of another node than its sender");
        }
        if let Some(body) = self.answer_of(from.node) {
            return self.tell(from.node, body, Release::State, cx);
        }
        if roll != self.roll() {
            if roll.number < self.roll().number {
                self.tell(from.node, Body::Outside, Release::State, cx);
            }
            return;
        }
        // Both compute the same observers, in the same rings, or one of them is wrong.
        if rings != self.rings.between(self.me, from.node) {
            return cx.refuse("a join in rings where its observer is another");
        }
        if self.guests.len() >= ROLL_JOINERS_MAX && !self.guests.contains(&from.node) {
            return;
        }
        self.guests.insert(from.node);
        invariant!(self.guests.len() <= ROLL_JOINERS_MAX, "few wait to be let in");
        if !self.outbox.has(from.node) {
            self.outbox.raise(Alert { subject: from.node, rings, member: Some(member) }, cx.now);
        }
        invariant!(self.outbox.has(from.node), "it is reported");
    }
}
