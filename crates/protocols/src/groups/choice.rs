//! Whom the primary of a group wishes for as its members.
//!
//! The members of a group are changed by an entry of its log, which a majority of the present ones
//! commits after the newcomer has copied what there is. One member is replaced, added or removed at
//! a time.

use super::frames::Leads;
use super::hosts::Hosts;
use crate::vsr::{Epoch, ViewNumber};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::ring::Standing;
use quorate_kernel::rng::mix;
use quorate_kernel::time::{Span, Time};

/// Who should be the members of a group, if not who is: what has to be done whatever else is, or a
/// seat that goes from a host with many to one with few.
///
/// `all` are the groups of the keyspace as they are known. A group is rebalanced when no group with
/// a lower number is to be, as far as is known: so that not all of them move to a host that has
/// just joined.
#[must_use]
pub fn wished(
    hosts: &Hosts,
    all: &[Leads],
    (group, size, failed): (GroupId, usize, Span),
    now: Time,
) -> Option<Vec<NodeId>> {
    let mut seats: BTreeMap<NodeId, usize> = BTreeMap::new();
    for node in all.iter().flat_map(|of| of.members.iter()) {
        *seats.entry(*node).or_default() += 1;
    }
    let choice = |of: &'_ Leads| {
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

/// Who founds a group that is added: hosts that are there, those with the fewest seats first. None
/// if none is known.
#[must_use]
pub fn founders_among(
    hosts: &Hosts,
    all: &[Leads],
    (group, size): (GroupId, usize),
) -> Option<Leads> {
    let seats = |node: NodeId| all.iter().filter(|of| of.members.contains(&node)).count();
    let order = |node: &NodeId| (seats(*node), mix(group.0 ^ mix(node.0)), *node);
    let mut free: Vec<NodeId> = hosts.present().filter(|node| hosts.may_take(*node)).collect();
    free.sort_unstable_by_key(order);
    free.truncate(size.max(1));
    free.sort_unstable();
    let view = ViewNumber::first(Epoch(1));
    let members = Arc::from(free);
    let leads = Leads { group, members, view, serves: false };
    (!leads.members.is_empty()).then_some(leads)
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

    /// Whether a member is suspected now, for however short a time.
    fn is_suspected(&self, node: NodeId) -> bool {
        self.hosts.suspected.contains_key(&node) && !mutant!("lane_keeps_the_dead")
    }

    /// The member that the group can do without: one that is suspected before all others.
    fn superfluous(&self) -> Option<NodeId> {
        let members = self.members.iter().copied();
        members.max_by_key(|node| {
            (self.is_suspected(*node), self.seats(*node), self.order(*node), *node)
        })
    }

    fn with(&self, newcomer: Option<NodeId>, gone: Option<NodeId>) -> Vec<NodeId> {
        let stay = self.members.iter().copied().filter(|node| Some(*node) != gone);
        let mut members: Vec<NodeId> = stay.chain(newcomer).collect();
        members.sort_unstable();
        members
    }

    /// Who has to go, of those who may: whoever leaves, and whoever has failed. The dead go first:
    /// without one that is there, the others may be no majority, and its change would wait for it.
    fn gone(&self, may_go: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let has_failed = |node| {
            let silent = self.hosts.silent(node, self.now);
            silent.is_some_and(|silent| silent >= self.failed)
        };
        let must = |node: &NodeId| self.leaves(*node) || has_failed(*node);
        let going = self.members.iter().copied().filter(must).filter(|node| may_go(*node));
        going.min_by_key(|node| {
            let is_up = self.hosts.standing(*node) != Standing::Left;
            let is_there = (is_up, !self.is_suspected(*node));
            (if mutant!("lane_keeps_the_departed") { (true, true) } else { is_there }, *node)
        })
    }

    /// Whether a member leaves, or has left.
    fn leaves(&self, node: NodeId) -> bool {
        self.hosts.standing(node) != Standing::Up
    }

    /// What has to be done whatever else is.
    fn needed(&self) -> Option<Vec<NodeId>> {
        let has_too_many = self.members.len() > self.size;
        let newcomer = self.newcomer().filter(|_| !has_too_many);
        // Who has failed keeps its seat if nobody can take it: it may come back.
        let may_shrink = |node| (has_too_many || self.leaves(node)) && self.members.len() > 1;
        let gone = self.gone(|node| newcomer.is_some() || may_shrink(node));
        if gone.is_some() {
            return Some(self.with(newcomer, gone));
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
