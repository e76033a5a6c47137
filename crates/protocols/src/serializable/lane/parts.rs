//! Who holds what, and what is shown of it.

use super::places::homes::Homes;
use super::{Context, Message, Serializable};
use crate::groups::{self, Known, Leads, StandQuestion, Stands, is_ready, remembers, stands};
use crate::vsr::Epoch;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::operation::Outcome;
use quorate_kernel::part::{Holds, Part};
use quorate_kernel::process::Inspect;
use quorate_kernel::time::Time;
use quorate_kernel::view::Range;

impl Serializable {
    /// The groups as this node knows them. Of others it can say who the members are, not what they
    /// have.
    pub(super) fn known_parts(&self) -> Vec<Part> {
        if self.routes.all().next().is_none() {
            return Vec::from([Part::unknown()]);
        }
        let part = |leads: Leads| {
            let hosted = self.groups.get(&leads.group).filter(|hosted| is_ready(&hosted.replica));
            let holds = |node| match hosted.is_some_and(|hosted| node == hosted.me) {
                true => Holds::Confirmed,
                false => Holds::Some,
            };
            self.part(leads.group, leads.view.epoch, &leads.members, &holds)
        };
        self.routes.all().map(part).collect()
    }

    /// A group in an epoch, with what is here of it.
    pub(super) fn part(
        &self,
        group: GroupId,
        epoch: Epoch,
        members: &[NodeId],
        holds: &dyn Fn(NodeId) -> Holds,
    ) -> Part {
        let hosted = self.groups.get(&group).map(|it| (&it.replica, it.member.leads()));
        let range = self.homes.range(group).unwrap_or(Range { low: u64::MAX - 1, high: u64::MAX });
        let of = (group, epoch, range);
        groups::part(of, members, holds, hosted, self.ticked)
    }

    /// Shows the state.
    pub(super) fn show(&self, into: &mut dyn Inspect) {
        let groups = || self.groups.values();
        let owes = groups().any(|hosted| !remembers(&hosted.replica));
        into.field("ready", &!owes);
        into.field("groups", &self.groups.len());
        into.field("groups_led", &groups().filter(|it| it.member.leads()).count());
        into.field("groups_lacking_data", &groups().filter(|it| !is_ready(&it.replica)).count());
        into.field("asked", &groups().map(|it| it.questions.len()).sum::<usize>());
        into.field("transactions", &groups().map(|it| it.member.in_hand()).sum::<usize>());
        into.field("operations", &self.clients.len());
        into.field("conflicts", &self.counters.conflicts);
        into.field("retries", &self.counters.retries);
        into.field("expired", &self.counters.expired);
        into.field("losses", &self.counters.losses);
        let all = groups().map(|it| it.state.head.moves.buckets.len()).sum::<usize>();
        let arriving = groups().filter(|it| it.member.leads()).flat_map(|it| {
            let moved = it.state.head.moves.buckets.values();
            moved.filter(|moved| moved.arrival.is_some() || moved.is_kept)
        });
        let under_way = self.homes.away().count().max(arriving.count());
        into.field("buckets_to_move", &under_way);
        into.field("buckets_moved", &(all + self.homes.moved()));
        for (group, hosted) in &self.groups {
            groups::show_log(*group, &hosted.replica, self.ticked, into);
        }
    }
}

impl Serializable {
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

    /// Somebody wants to know how this node stands in a group.
    pub(super) fn on_stand(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        leaver: Option<NodeId>,
        cx: &mut Context<'_>,
    ) {
        if !Homes::may_be(group) {
            return cx.fx.refuse("a group of the keyspace is asked for");
        }
        if !self.homes.knows(group) {
            // It is asked again, and by then it may be known.
            return;
        }
        let brings = leaver.is_some_and(|node| self.may_bring(group, node, cx));
        let replica = self.groups.get(&group).map(|it| &it.replica);
        invariant!(self.routes.leads(group).is_some(), "every group has a route");
        let stands = stands(&self.routes, group, replica, brings);
        invariant!(replica.is_some() || !stands.is_whole, "who has nothing is not whole");
        // What is durable here already says so, or what a majority has; nobody counts on more.
        cx.fx.send(from, Message::Stands { question, group, stands });
    }

    /// A node says how it stands in a group.
    pub(super) fn on_stands(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        stands: Stands,
        cx: &mut Context<'_>,
    ) {
        if !Homes::may_be(group) {
            return cx.fx.refuse("a group of the keyspace is told of");
        }
        invariant!(stands.epoch.0 > 0, "a frame that says otherwise is not read");
        invariant!(!stands.members.is_empty(), "nor one without members");
        if let Err(why) = self.examining.hear(from.node, (question, group), stands) {
            return cx.fx.refuse(why);
        }
        self.settle_examined(cx);
    }

    /// Time has passed: questions are asked again, answered with what is known, or given up.
    pub(super) fn tick_examined(&mut self, cx: &mut Context<'_>) {
        let mut examining = core::mem::take(&mut self.examining);
        let asked = self.with_known(|known| examining.tick(known, cx.now));
        self.examining = examining;
        for StandQuestion { node, question, group, leaver } in asked {
            // A question promises nothing.
            cx.fx.send_early(node, Message::Stand { question, group, leaver });
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
        let has_any = !self.settings.founders.is_empty();
        let groups: Vec<GroupId> = self.homes.groups().filter(|_| has_any).collect();
        let part = |group, epoch, members: &[NodeId], holds: &dyn Fn(NodeId) -> Holds| {
            self.part(group, epoch, members, holds)
        };
        call(&Known { routes: &self.routes, groups: &groups, part: &part })
    }
}
