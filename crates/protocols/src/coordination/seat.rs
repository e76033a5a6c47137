//! Members that change: the glue between the group here and [`crate::groups`].

use super::tree::may_change_members;
use super::{Context, Coordination, GROUP, Message};
use crate::groups::{Leads, Outside, counts_on, wished};
use crate::vsr::{self, Replica};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::probe;
use quorate_kernel::process::Recovery;

impl Coordination {
    /// The primary wishes for the members that the group should have.
    pub(super) fn tick_seat(&mut self, cx: &mut Context<'_>) {
        let Some(hosted) = self.hosted.as_mut().filter(|it| it.leads()) else { return };
        if self.hosts.are_closing() {
            return;
        }
        let present = hosted.replica.configuration();
        if !may_change_members(present.epoch.0) {
            return;
        }
        let kept = hosted.seat.kept(&self.hosts, present, self.settings.replicas);
        let present = present.members.clone();
        let wish = kept.or_else(|| {
            let all: Vec<Leads> = self.routes.all().collect();
            let (size, failed) = (self.settings.replicas, self.settings.failed);
            wished(&self.hosts, &all, (GROUP, size, failed), cx.now).map(Arc::from)
        });
        let members = wish.clone().unwrap_or(present);
        hosted.seat.wish(wish);
        self.call(cx, |log, _| {
            // Whoever cannot now is asked again at the next tick.
            _ = log.wish(&members);
        });
    }

    /// Messages of the group's log have come.
    pub(super) fn on_log(
        &mut self,
        from: Incarnation,
        parts: Vec<(quorate_kernel::ids::GroupId, vsr::Message)>,
        cx: &mut Context<'_>,
    ) {
        for (group, message) in parts {
            if group != GROUP || self.settings.founders.is_empty() {
                cx.fx.refuse("a tree has one group");
                continue;
            }
            if counts_on(&message) {
                if self.hosted.is_none() {
                    probe!("coordination/learns");
                    self.start_group(None, Recovery::Intact, cx);
                }
                if let Some(hosted) = &mut self.hosted {
                    hosted.seat.hear(&message, &hosted.replica, cx.now);
                }
            }
            invariant!(
                self.hosted.is_none() || self.routes.leads(GROUP).is_some(),
                "a group that is here has a route"
            );
            self.call(cx, |log, on| log.on_message(from, message, on));
        }
        invariant!(self.hosted.is_none() || !self.settings.founders.is_empty(), "it was founded");
    }

    /// A node that is no member looks whether it is still needed.
    pub(super) fn tick_outside(&mut self, cx: &mut Context<'_>) {
        let Some(hosted) = &self.hosted else { return };
        let (leads, primary) = (self.routes.leads(GROUP), self.routes.primary(GROUP));
        match hosted.seat.outside(&hosted.replica, leads.as_ref(), primary, cx.now) {
            Outside::LetGo => {
                probe!("coordination/lets_go");
                self.call(cx, Replica::let_go);
                self.hosted = None;
            }
            Outside::CatchUp(node) => self.call(cx, |log, on| log.catch_up(node, on)),
            Outside::Stay => {}
        }
    }

    /// The link to a host was reset.
    pub(super) fn unlinked(&mut self, peer: NodeId, cx: &mut Context<'_>) {
        self.gateway.unlinked(peer);
        self.call(cx, |log, on| log.on_unlinked(peer, on));
    }

    /// Sends what the gateway here has to ask.
    pub(super) fn ask_primary(&mut self, cx: &mut Context<'_>) {
        let Some(primary) = self.routes.primary(GROUP) else { return };
        for ask in self.gateway.asks(primary, cx.now) {
            // A question promises nothing, nor does a command that is not executed.
            cx.fx.send_early(primary, Message::Ask(ask));
        }
    }
}
