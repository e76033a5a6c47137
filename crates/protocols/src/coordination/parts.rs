//! Who holds what, and what is shown of it.

use super::{Context, Coordination, GROUP, Message};
use crate::coordination::tree::{exceeded, nodes};
use crate::groups::{self, Known, StandQuestion, Stands, is_ready, remembers, stands};
use crate::vsr::Epoch;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::operation::Outcome;
use quorate_kernel::part::{Holds, Part};
use quorate_kernel::process::Inspect;
use quorate_kernel::time::Time;
use quorate_kernel::view::Range;

impl Coordination {
    /// The group as this node knows it. If it is none here, this node can say who the members are,
    /// not what they have.
    pub(super) fn known_parts(&self) -> Vec<Part> {
        let Some(leads) = self.routes.leads(GROUP) else {
            return Vec::from([Part::unknown()]);
        };
        let hosted = self.hosted.as_ref().filter(|hosted| is_ready(&hosted.replica));
        let holds = |node| match hosted.is_some_and(|hosted| node == hosted.me) {
            true => Holds::Confirmed,
            false => Holds::Some,
        };
        Vec::from([self.part(leads.view.epoch, &leads.members, &holds)])
    }

    fn part(&self, epoch: Epoch, members: &[NodeId], holds: &dyn Fn(NodeId) -> Holds) -> Part {
        let hosted = self.hosted.as_ref().map(|it| (&it.replica, it.leads()));
        groups::part((GROUP, epoch, Range::ALL), members, holds, hosted, self.ticked)
    }

    /// Shows the state.
    pub(super) fn show(&self, into: &mut dyn Inspect) {
        let hosted = self.hosted.as_ref();
        let lacks = hosted.is_some_and(|it| !is_ready(&it.replica));
        let (commands, questions) = self.gateway.waiting();
        let asked = hosted.and_then(|it| it.primary.as_ref()).map_or(0, |it| it.questions());
        into.field("ready", &hosted.is_none_or(|it| remembers(&it.replica)));
        into.field("groups", &usize::from(hosted.is_some()));
        into.field("groups_led", &usize::from(hosted.is_some_and(|it| it.leads())));
        into.field("groups_lacking_data", &usize::from(lacks));
        if let Some(hosted) = hosted {
            into.field("nodes", &nodes(hosted.machine.objects()));
            into.field("quotas_exceeded", &exceeded(hosted.machine.objects()));
        }
        into.field("objects", &hosted.map_or(0, |it| it.machine.objects().len()));
        into.field("asked", &asked);
        into.field("operations", &(commands + questions));
        into.field("sessions", &self.gateway.sessions());
        into.field("reads_here", &self.answered_here());
        into.field("watches", &self.gateway.followed());
        let (watchers, watched) = self.gateway.followers();
        into.field("watchers", &watchers);
        into.field("watched_nodes", &watched);
        into.field("losses", &self.losses);
        if let Some(hosted) = hosted {
            groups::show_log(GROUP, &hosted.replica, self.ticked, into);
        }
    }

    /// An operator asks who holds what.
    pub(super) fn examine(
        &mut self,
        ticket: Ticket,
        asked: (u64, Option<NodeId>),
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        if let Err(refusal) = self.examining.begin(ticket, asked, (cx.now, deadline)) {
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(refusal));
        }
        self.tick_examined(cx);
    }

    /// Somebody wants to know how this node stands in the group.
    pub(super) fn on_stand(
        &mut self,
        from: Incarnation,
        question: u64,
        leaver: Option<NodeId>,
        cx: &mut Context<'_>,
    ) {
        if self.settings.founders.is_empty() {
            return cx.fx.refuse("a group that was founded is asked for");
        }
        let hosted = self.hosted.as_ref();
        let brings = leaver.zip(hosted).is_some_and(|(node, hosted)| {
            hosted.seat.may_bring(&hosted.replica, &self.hosts, node, cx.table)
        });
        invariant!(self.routes.leads(GROUP).is_some(), "a group that was founded has a route");
        let stands = stands(&self.routes, GROUP, hosted.map(|it| &it.replica), brings);
        invariant!(hosted.is_some() || !stands.is_whole, "who has nothing is not whole");
        // What is durable here already says so, or what a majority has; nobody counts on more.
        cx.fx.send(from, Message::Stands { question, stands });
    }

    /// A node says how it stands in the group.
    pub(super) fn on_stands(
        &mut self,
        from: Incarnation,
        question: u64,
        stands: Stands,
        cx: &mut Context<'_>,
    ) {
        invariant!(stands.epoch.0 > 0, "a frame that says otherwise is not read");
        invariant!(!stands.members.is_empty(), "nor one without members");
        match self.examining.hear(from.node, (question, GROUP), stands) {
            Ok(()) => self.settle_examined(cx),
            Err(why) => cx.fx.refuse(why),
        }
    }

    /// Time has passed: questions are asked again, answered with what is known, or given up.
    pub(super) fn tick_examined(&mut self, cx: &mut Context<'_>) {
        let mut examining = core::mem::take(&mut self.examining);
        let asked = self.with_known(|known| examining.tick(known, cx.now));
        self.examining = examining;
        for StandQuestion { node, question, leaver, .. } in asked {
            // A question promises nothing.
            cx.fx.send_early(node, Message::Stand { question, leaver });
        }
        self.settle_examined(cx);
    }

    fn settle_examined(&mut self, cx: &mut Context<'_>) {
        let mut examining = core::mem::take(&mut self.examining);
        let settled = self.with_known(|known| examining.settle(known, cx.now));
        self.examining = examining;
        for (ticket, outcome) in settled {
            // It tells what others have said, and promises nothing.
            cx.fx.answer_early(ticket, outcome);
        }
    }

    fn with_known<T>(&self, call: impl FnOnce(&Known<'_>) -> T) -> T {
        let groups = if self.settings.founders.is_empty() { &[][..] } else { &[GROUP] };
        let part = |_: GroupId, epoch, members: &[NodeId], holds: &dyn Fn(NodeId) -> Holds| {
            self.part(epoch, members, holds)
        };
        call(&Known { routes: &self.routes, groups, part: &part })
    }
}
