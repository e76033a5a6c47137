//! Seats that change: whom the primary of a group wishes for as its members.
//!
//! The ring says which hosts there are, and which of them leave. That is a rumour: it decides what
//! is wished, and nothing else. The members of a group are changed by an entry of its log, which a
//! majority of the present ones commits after the newcomer has copied what there is. One member is
//! replaced, added or removed at a time.
//!
//! A group is rebalanced when no group with a lower number is to be, as far as its primary knows:
//! so that not all of them move to a host that has just joined.

use crate::serializable::lane::{Context, Leads, Serializable};
use crate::vsr::{self, Epoch, Replica, Status};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::process::Recovery;
use quorate_kernel::ring::{Closing, Ring, RingHost, Standing};
use quorate_kernel::rng::mix;
use quorate_kernel::time::{Span, Time};

/// How long a member is suspected before another host takes its seat, as a rule.
pub const FAILED: Span = Span::secs(60);
/// How long a host that learns is not heard to, before what it has copied is dropped.
pub const UNWANTED: Span = Span::secs(60);

/// What is known of hosts, for seats.
#[derive(Debug, Default)]
pub struct Hosts {
    ring: Option<Arc<Ring>>,
    /// Since when hosts are suspected.
    suspected: BTreeMap<NodeId, Time>,
}

impl Hosts {
    /// The ring has changed.
    pub fn see(&mut self, ring: &Arc<Ring>, now: Time) {
        self.suspected.retain(|node, _| ring.host(*node).is_some_and(|host| host.is_suspected));
        for host in ring.hosts().iter().filter(|host| host.is_suspected) {
            self.suspected.entry(host.who.node).or_insert(now);
        }
        self.ring = Some(Arc::clone(ring));
    }

    /// Whether the cluster is being shut down.
    pub fn are_closing(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.closing != Closing::No)
    }

    /// How a host stands; one that is not known is there, as far as anybody knows.
    fn standing(&self, node: NodeId) -> Standing {
        let host = self.ring.as_ref().and_then(|ring| ring.host(node));
        host.map_or(Standing::Up, |host| host.standing)
    }

    /// Whether a host is gone for good: it has said so itself, or an operator has.
    pub fn has_left(&self, node: NodeId) -> bool {
        self.standing(node) == Standing::Left && !mutant!("lane_waits_for_who_has_left")
    }

    /// Whether a host may be given a seat.
    fn may_take(&self, node: NodeId) -> bool {
        let host = self.ring.as_ref().and_then(|ring| ring.host(node));
        let is_sound = |host: &RingHost| !host.is_suspected || mutant!("lane_seats_the_absent");
        host.is_some_and(|host| host.standing == Standing::Up && is_sound(host))
    }

    /// If so many members are suspected, or have left, that no majority of them is there: how many.
    pub fn suspected(&self, members: &[NodeId]) -> Option<usize> {
        let ring = self.ring.as_ref().filter(|_| !mutant!("lane_waits_in_silence"))?;
        let suspected = members.iter().filter(|node| ring.is_suspected(**node)).count();
        (members.len() - suspected < members.len() / 2 + 1).then_some(suspected)
    }

    /// How long a host is suspected.
    fn silent(&self, node: NodeId, now: Time) -> Option<Span> {
        self.suspected.get(&node).map(|since| now - *since)
    }

    /// The hosts that take part.
    fn present(&self) -> impl Iterator<Item = NodeId> {
        let hosts = self.ring.iter().flat_map(|ring| ring.hosts());
        hosts.filter(|host| host.standing == Standing::Up).map(|host| host.who.node)
    }
}

/// A choice of members.
struct Choice<'a> {
    hosts: &'a Hosts,
    group: GroupId,
    members: Arc<[NodeId]>,
    /// How many seats each host has, in all groups.
    seats: &'a BTreeMap<NodeId, usize>,
    /// How many members the group should have.
    size: usize,
    failed: Span,
    now: Time,
}

impl Choice<'_> {
    fn seats(&self, node: NodeId) -> usize {
        self.seats.get(&node).copied().unwrap_or_default()
    }

    fn order(&self, node: NodeId) -> u64 {
        mix(self.group.0 ^ mix(node.0))
    }

    /// The host that is given a seat: of those with less than their share any, all others by how
    /// many they have.
    fn newcomer(&self) -> Option<NodeId> {
        let all: usize = self.seats.values().sum();
        let share = all.div_ceil(self.hosts.present().count().max(1));
        let free = self.hosts.present().filter(|node| self.hosts.may_take(*node));
        let free = free.filter(|node| !self.members.contains(node));
        free.min_by_key(|node| {
            let seats = self.seats(*node);
            (if seats < share { 0 } else { seats }, self.order(*node), *node)
        })
    }

    /// The member with the most seats.
    fn fullest(&self) -> Option<NodeId> {
        let members = self.members.iter().copied();
        members.max_by_key(|node| (self.seats(*node), self.order(*node), *node))
    }

    /// The member that the group can do without: one that is suspected before all others.
    fn superfluous(&self) -> Option<NodeId> {
        let members = self.members.iter().copied();
        let is_suspected = |node: &NodeId| {
            self.hosts.suspected.contains_key(node) && !mutant!("lane_keeps_the_dead")
        };
        members.max_by_key(|node| (is_suspected(node), self.seats(*node), self.order(*node), *node))
    }

    fn with(&self, newcomer: Option<NodeId>, gone: Option<NodeId>) -> Vec<NodeId> {
        let stay = self.members.iter().copied().filter(|node| Some(*node) != gone);
        let mut members: Vec<NodeId> = stay.chain(newcomer).collect();
        members.sort_unstable();
        members
    }

    /// Who has to go: whoever leaves, and whoever has failed if another can take its seat.
    fn gone(&self) -> Option<NodeId> {
        let must = |node: &&NodeId| self.hosts.standing(**node) != Standing::Up;
        let leaves = self.members.iter().find(must);
        let has_failed = |node: &&NodeId| {
            let silent = self.hosts.silent(**node, self.now);
            silent.is_some_and(|silent| silent >= self.failed)
        };
        leaves.or_else(|| self.members.iter().find(has_failed)).copied()
    }

    /// What has to be done whatever else is.
    fn needed(&self) -> Option<Vec<NodeId>> {
        let has_too_many = self.members.len() > self.size;
        let newcomer = self.newcomer().filter(|_| !has_too_many);
        if let Some(gone) = self.gone() {
            let leaves = self.hosts.standing(gone) != Standing::Up;
            let may_shrink = (leaves || has_too_many) && self.members.len() > 1;
            let is_possible = newcomer.is_some() || may_shrink;
            return is_possible.then(|| self.with(newcomer, Some(gone)));
        }
        if self.members.len() < self.size {
            return newcomer.map(|_| self.with(newcomer, None));
        }
        // Hosts that the ring does not know are there: it is no reason to do with fewer members.
        let present = self.hosts.present().count();
        let size = if mutant!("lane_shrinks_for_a_rumour") { present } else { self.size };
        let gone = self.superfluous().filter(|_| self.members.len() > size.max(1));
        gone.map(|_| self.with(None, gone))
    }

    /// A seat that goes from a host with many to one with few.
    fn balanced(&self) -> Option<Vec<NodeId>> {
        let present = self.hosts.present().filter(|node| self.hosts.may_take(*node));
        let free = present.filter(|node| !self.members.contains(node));
        let few = free.min_by_key(|node| (self.seats(*node), self.order(*node), *node))?;
        let many = self.fullest()?;
        let is_uneven = self.seats(many) >= self.seats(few) + 2;
        is_uneven.then(|| self.with(Some(few), Some(many)))
    }
}

impl Serializable {
    /// Who should be the members of a group that is led here, if not who is.
    fn wished(&self, group: GroupId, now: Time) -> Option<Vec<NodeId>> {
        let mut seats: BTreeMap<NodeId, usize> = BTreeMap::new();
        let all: Vec<Leads> = self.routes.all().collect();
        for node in all.iter().flat_map(|of| of.members.iter()) {
            *seats.entry(*node).or_default() += 1;
        }
        let choice = |of: &'_ Leads| {
            let (hosts, size, failed) = (&self.hosts, self.settings.replicas, self.settings.failed);
            let (group, members, seats) = (of.group, Arc::clone(&of.members), &seats);
            Choice { hosts, group, members, seats, size, failed, now }
        };
        let own = choice(all.iter().find(|of| of.group == group)?);
        if let Some(needed) = own.needed() {
            return Some(needed);
        }
        let is_uneven = |of: &Leads| {
            let choice = choice(of);
            choice.needed().is_none() && choice.balanced().is_some()
        };
        let mut before = all.iter().filter(|of| of.group < group);
        let is_first = !before.any(is_uneven) || mutant!("lane_balances_all_at_once");
        own.balanced().filter(|_| is_first)
    }

    /// The primary of a group wishes for the members that it should have.
    pub(super) fn tick_seats(&mut self, group: GroupId, cx: &mut Context<'_>) {
        if !self.groups.get(&group).is_some_and(|it| it.member.leads()) || self.hosts.are_closing()
        {
            return;
        }
        let Some(hosted) = self.groups.get(&group) else { return };
        // A newcomer that copies is not given up because another one would do as well.
        let present = hosted.replica.configuration().members.clone();
        let is_new = |node: &&NodeId| !present.contains(node);
        let is_sound = |wish: &Arc<[NodeId]>| {
            wish.iter().filter(is_new).all(|node| self.hosts.may_take(*node))
                && wish.iter().all(|node| self.hosts.standing(*node) == Standing::Up)
        };
        // What it was to grow to may be more than is wanted by now.
        let most = self.settings.replicas.max(present.len());
        let grows = |wish: &Arc<[NodeId]>| wish.len() <= most && wish.iter().any(|it| is_new(&it));
        let kept = hosted.wish.clone().filter(|wish| grows(wish) && is_sound(wish));
        let wish = kept.or_else(|| self.wished(group, cx.now).map(Arc::from));
        let members = wish.clone().unwrap_or(present);
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.wish = wish;
        }
        self.call(group, cx, |log, _| {
            // Whoever cannot now is asked again at the next tick.
            _ = log.wish(&members);
        });
    }

    /// Whether a member may yet bring about that another host becomes one.
    pub(crate) fn may_bring(&self, group: GroupId, node: NodeId, cx: &Context<'_>) -> bool {
        let Some(hosted) = self.groups.get(&group) else { return false };
        let coming = hosted.replica.coming(cx.table);
        let comes = |members: &Arc<[NodeId]>| members.contains(&node);
        let is_wished =
            hosted.wish.as_ref().is_some_and(comes) || coming.as_ref().is_some_and(comes);
        let is_member = hosted.replica.configuration().contains(node);
        !is_member && (is_wished || self.hosts.standing(node) == Standing::Up)
    }

    /// A message of a group's log has come: if its sender takes this node for one that is to copy
    /// the group, or for a member, the node begins to learn.
    pub(crate) fn hear_for(
        &mut self,
        group: GroupId,
        message: &vsr::Message,
        cx: &mut Context<'_>,
    ) {
        let counts_on = matches!(
            message,
            vsr::Message::Beat { .. }
                | vsr::Message::Prepare { .. }
                | vsr::Message::StartViewChange { .. }
                | vsr::Message::DoViewChange { .. }
                | vsr::Message::StartView { .. }
                | vsr::Message::StartEpoch { .. }
                | vsr::Message::Recovery { .. }
        );
        if !counts_on || self.shape.groups().all(|it| it != group) {
            return;
        }
        if !self.groups.contains_key(&group) {
            probe!("serializable/lane_learns");
            self.start_group(group, None, Recovery::Intact, cx);
        }
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.counted_on = cx.now;
            // The primary's beats reach members, and whom it wishes for. Others may not know yet
            // that this node is none.
            let epoch = hosted.replica.configuration().epoch;
            let is_wished =
                matches!(message, vsr::Message::Beat { view, .. } if view.epoch >= epoch);
            hosted.is_released &= !is_wished;
        }
    }

    /// A node that is no member looks whether it is still needed; one that has missed how all that
    /// it knew were replaced asks whoever leads now.
    pub(super) fn tick_outside(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get(&group) else { return };
        if hosted.replica.status() == Status::Learner && !hosted.replica.owes() {
            let is_free = hosted.is_released && !mutant!("lane_keeps_what_nobody_needs");
            if is_free || cx.now - hosted.counted_on >= UNWANTED {
                self.let_go(group, cx);
            }
            return;
        }
        let epoch = hosted.replica.configuration().epoch;
        let is_behind = |of: &Leads| of.view.epoch > epoch && epoch > Epoch(0);
        let leads = self.routes.leads(group).filter(is_behind);
        let node = leads.and_then(|_| self.routes.primary(group));
        if let Some(node) = node.filter(|_| !mutant!("lane_stays_behind")) {
            self.call(group, cx, |log, on| log.catch_up(node, on));
        }
    }

    /// The next members of a group have what this node keeps of it. It is dropped with the next
    /// tick: what is written in one turn of a handler is not read in it, so a group that was let go
    /// and is begun again by one frame would begin with what is about to be dropped.
    pub(crate) fn release(&mut self, group: GroupId, cx: &mut Context<'_>) {
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.is_released = true;
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
