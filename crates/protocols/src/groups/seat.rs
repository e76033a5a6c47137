//! The seat of a host in a group: whom its primary wishes for, and whether anybody counts on the
//! host.

use super::frames::Leads;
use super::hosts::Hosts;
use crate::vsr::{self, Configuration, Replica, Status};
use alloc::sync::Arc;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::ring::Standing;
use quorate_kernel::time::{Span, Time};

/// How long a host that learns is not heard to, before what it has copied is dropped.
pub const UNWANTED: Span = Span::secs(60);

/// What a host keeps of its seat in a group. Volatile.
#[derive(Debug)]
pub struct Seat {
    /// Who should be the members, if this node leads and others should.
    wish: Option<Arc<[NodeId]>>,
    /// When somebody has last counted on this node to copy, or to take part.
    counted_on: Time,
    /// Whether the next members have said that they have what this node keeps, and nobody has
    /// wished for it since.
    is_released: bool,
}

/// What a host that may be none of a group's members does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Nobody needs what it has: it drops that.
    LetGo,
    /// It has missed how the members were replaced: it asks who leads now.
    CatchUp(NodeId),
    /// Nothing.
    Stay,
}

impl Seat {
    /// A group begins here.
    #[must_use]
    pub fn new(now: Time) -> Seat {
        Seat { wish: None, counted_on: now, is_released: false }
    }

    /// This node leads no more.
    pub fn depose(&mut self) {
        if !mutant!("lane_wish_outlives_view") {
            self.wish = None;
        }
    }

    /// The wish of before, if it is still one: a newcomer that copies is not given up because
    /// another one would do as well.
    #[must_use]
    pub fn kept(
        &self,
        hosts: &Hosts,
        present: &Configuration,
        replicas: usize,
    ) -> Option<Arc<[NodeId]>> {
        let is_new = |node: &&NodeId| !present.contains(**node);
        let is_sound = |wish: &Arc<[NodeId]>| {
            wish.iter().filter(is_new).all(|node| hosts.may_take(*node))
                && wish.iter().all(|node| hosts.standing(*node) == Standing::Up)
        };
        // It may be more than is wanted by now.
        let is_few = |wish: &Arc<[NodeId]>| {
            wish.len() <= replicas || mutant!("lane_replaces_who_is_superfluous")
        };
        let grows = |wish: &Arc<[NodeId]>| is_few(wish) && wish.iter().any(|it| is_new(&it));
        self.wish.clone().filter(|wish| grows(wish) && is_sound(wish))
    }

    /// Who is wished for.
    #[cfg(test)]
    pub(crate) fn wished(&self) -> Option<Arc<[NodeId]>> {
        self.wish.clone()
    }

    /// What is wished for from now on.
    pub fn wish(&mut self, wish: Option<Arc<[NodeId]>>) {
        self.wish = wish;
    }

    /// Whether a member may yet bring about that another host becomes one.
    #[must_use]
    pub fn may_bring(
        &self,
        replica: &Replica,
        hosts: &Hosts,
        node: NodeId,
        table: &dyn Table,
    ) -> bool {
        let coming = replica.coming(table);
        let comes = |members: &Arc<[NodeId]>| members.contains(&node);
        let is_wished = self.wish.as_ref().is_some_and(comes) || coming.as_ref().is_some_and(comes);
        let is_member = replica.configuration().contains(node);
        !is_member && (is_wished || hosts.standing(node) == Standing::Up)
    }

    /// A message of the group's log has come that counts on this node ([`counts_on`]).
    pub fn hear(&mut self, message: &vsr::Message, replica: &Replica, now: Time) {
        self.counted_on = now;
        // The primary's beats reach members, and whom it wishes for. Others may not know yet that
        // this node is none.
        let epoch = replica.configuration().epoch;
        let is_wished = matches!(message, vsr::Message::Beat { view, .. } if view.epoch >= epoch);
        self.is_released &= !is_wished;
    }

    /// The next members have what this node keeps. It is dropped with the next tick: what is
    /// written in one turn of a handler is not read in it, so a group that was let go and is begun
    /// again by one frame would begin with what is about to be dropped.
    pub fn release(&mut self) {
        self.is_released = true;
    }

    /// What a node that is no member does; `leads` is what is known of the group, and who is asked.
    #[must_use]
    pub fn outside(
        &self,
        replica: &Replica,
        leads: Option<&Leads>,
        primary: Option<NodeId>,
        now: Time,
    ) -> Outside {
        if replica.status() == Status::Learner && !replica.owes() {
            let is_free = self.is_released && !mutant!("lane_keeps_what_nobody_needs");
            let is_over = is_free || now - self.counted_on >= UNWANTED;
            return if is_over { Outside::LetGo } else { Outside::Stay };
        }
        let epoch = replica.configuration().epoch;
        let is_behind = leads.is_some_and(|of| of.view.epoch > epoch && epoch > vsr::Epoch(0));
        match primary.filter(|_| is_behind && !mutant!("lane_stays_behind")) {
            Some(node) => Outside::CatchUp(node),
            None => Outside::Stay,
        }
    }
}

/// Whether the sender of a message takes its receiver for one that is to copy the group, or for a
/// member: the receiver begins to learn.
#[must_use]
pub fn counts_on(message: &vsr::Message) -> bool {
    matches!(
        message,
        vsr::Message::Beat { .. }
            | vsr::Message::Prepare { .. }
            | vsr::Message::StartViewChange { .. }
            | vsr::Message::DoViewChange { .. }
            | vsr::Message::DoViewChangeWithoutEnd { .. }
            | vsr::Message::StartView { .. }
            | vsr::Message::StartEpoch { .. }
            | vsr::Message::Recovery { .. }
    )
}
