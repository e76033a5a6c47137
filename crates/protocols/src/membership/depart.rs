//! Leaving by one's own wish, and being sent away by an operator's: the node's observers report it
//! at once.
//!
//! Neither is stored: one that is restarted before it is out is told again.

use super::action::{Context, Denied};
use super::message::Body;
use super::roll::Roll;
use super::timer::ORDER_AGAIN;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::ROLL_KICKS_MAX;

impl Roll {
    /// This node wants to be a member no more. It takes part until the others have agreed.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn leave(&mut self, cx: &mut Context<'_>) -> Result<(), Denied> {
        if !self.is_member() {
            return Err(Denied::NotMember);
        }
        if self.configuration().members.len() == 1 {
            return Err(Denied::Last);
        }
        self.is_leaving = true;
        self.orders_at = cx.now;
        self.tick_orders(cx);
        Ok(())
    }

    /// A member shall be removed, whether it answers or not. It is told; what it holds, it keeps.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn kick(&mut self, node: NodeId, cx: &mut Context<'_>) -> Result<(), Denied> {
        if !self.is_member() {
            return Err(Denied::NotMember);
        }
        if !self.configuration().contains(node) {
            return Err(Denied::Unknown(node));
        }
        if node == self.me {
            return self.leave(cx);
        }
        if self.kicks.contains(&node) {
            // It is told again in its time.
            return Ok(());
        }
        if self.kicks.len() >= ROLL_KICKS_MAX {
            return Err(Denied::Busy);
        }
        if self.kicks.is_empty() && !self.is_leaving {
            self.orders_at = cx.now + ORDER_AGAIN;
        }
        self.kicks.insert(node);
        self.order(node, cx);
        Ok(())
    }

    /// Tells the observers of a node that it shall go.
    fn order(&self, node: NodeId, cx: &mut Context<'_>) {
        for observer in self.rings.observers_of(node) {
            // Early: a wish, told again until it is fulfilled.
            self.tell(observer, Body::Depart { node }, Release::Early, cx);
        }
    }

    /// Tells the observers of those that shall go, until they are gone.
    pub(super) fn tick_orders(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.orders_at || (self.kicks.is_empty() && !self.is_leaving) {
            return;
        }
        self.orders_at = cx.now + ORDER_AGAIN;
        let own = self.is_leaving.then_some(self.me);
        let going: Vec<NodeId> = self.kicks.iter().copied().chain(own).collect();
        for node in going {
            self.order(node, cx);
        }
    }

    /// A member shall go: its observers say so, as if it did not answer.
    pub(super) fn on_depart(&mut self, from: Incarnation, node: NodeId, cx: &mut Context<'_>) {
        invariant!(self.is_member(), "who is out reports nobody");
        if self.rings.between(self.me, node) == 0 || !self.configuration().contains(node) {
            return cx.refuse("a departure of a node that is not observed here");
        }
        invariant!(self.configuration().contains(from.node), "members send members away");
        self.report(node, cx);
    }
}
