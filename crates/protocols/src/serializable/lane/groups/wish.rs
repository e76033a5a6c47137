//! Seats that change: the glue between the groups here and [`crate::groups`].

use crate::groups::{Leads, Outside, counts_on, wished};
use crate::serializable::lane::{Context, Serializable};
use crate::vsr::{self, Replica};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::process::Recovery;

impl Serializable {
    /// The primary of a group wishes for the members that it should have.
    pub(super) fn tick_seats(&mut self, group: GroupId, cx: &mut Context<'_>) {
        if !self.groups.get(&group).is_some_and(|it| it.member.leads()) || self.hosts.are_closing()
        {
            return;
        }
        let Some(hosted) = self.groups.get(&group) else { return };
        let present = hosted.replica.configuration();
        let kept = hosted.seat.kept(&self.hosts, present, self.settings.replicas);
        let present = present.members.clone();
        let wish = kept.or_else(|| {
            let all: Vec<Leads> = self.routes.all().collect();
            let (size, failed) = (self.settings.replicas, self.settings.failed);
            wished(&self.hosts, &all, (group, size, failed), cx.now).map(Arc::from)
        });
        let members = wish.clone().unwrap_or(present);
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.seat.wish(wish);
        }
        self.call(group, cx, |log, _| {
            // Whoever cannot now is asked again at the next tick.
            _ = log.wish(&members);
        });
    }

    /// Whether a member may yet bring about that another host becomes one.
    pub(crate) fn may_bring(&self, group: GroupId, node: NodeId, cx: &Context<'_>) -> bool {
        let hosted = self.groups.get(&group);
        hosted.is_some_and(|it| it.seat.may_bring(&it.replica, &self.hosts, node, cx.table))
    }

    /// A message of a group's log has come: if its sender takes this node for one that is to copy
    /// the group, or for a member, the node begins to learn.
    pub(crate) fn hear_for(
        &mut self,
        group: GroupId,
        message: &vsr::Message,
        cx: &mut Context<'_>,
    ) {
        if !counts_on(message) || !self.homes.knows(group) {
            return;
        }
        if !self.groups.contains_key(&group) {
            probe!("serializable/lane_learns");
            self.start_group(group, None, Recovery::Intact, cx);
        }
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.seat.hear(message, &hosted.replica, cx.now);
        }
    }

    /// A node that is no member looks whether it is still needed; one that has missed how all that
    /// it knew were replaced asks whoever leads now.
    pub(super) fn tick_outside(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get(&group) else { return };
        let (leads, primary) = (self.routes.leads(group), self.routes.primary(group));
        match hosted.seat.outside(&hosted.replica, leads.as_ref(), primary, cx.now) {
            Outside::LetGo => self.let_go(group, cx),
            Outside::CatchUp(node) => self.call(group, cx, |log, on| log.catch_up(node, on)),
            Outside::Stay => {}
        }
    }

    /// The next members of a group have what this node keeps of it.
    pub(crate) fn release(&mut self, group: GroupId, cx: &mut Context<'_>) {
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.seat.release();
        }
        if mutant!("lane_lets_go_amid_a_frame") {
            self.let_go(group, cx);
        }
    }

    /// Nobody needs any more what is here of a group.
    fn let_go(&mut self, group: GroupId, cx: &mut Context<'_>) {
        probe!("serializable/lane_lets_go");
        self.call(group, cx, Replica::let_go);
        self.groups.remove(&group);
        self.touched.remove(&group);
        self.late.remove(&group);
        self.resumed.remove(&group);
    }
}
