//! What is known of hosts, for seats: rumours, and the roll where one is kept. Both decide what is
//! wished and nothing else.
//!
//! Who has failed the roll says: a host that is not on it. Rumours say it where there is no roll,
//! or where it stands still, so that a roll without a majority keeps no group from being made up.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::ring::{Closing, Ring, RingHost, Standing};
use quorate_kernel::roll::Roll;
use quorate_kernel::time::{Span, Time};

/// How long a member is suspected, or not on the roll, before another host takes its seat, as a
/// rule.
pub const FAILED: Span = Span::secs(60);

/// What is known of hosts, for seats.
#[derive(Debug, Default)]
pub struct Hosts {
    ring: Option<Arc<Ring>>,
    /// Since when hosts are suspected.
    pub(super) suspected: BTreeMap<NodeId, Time>,
    roll: Option<Arc<Roll>>,
    /// Since when hosts are off the roll that were on it, without the time in which it stood still.
    off: BTreeMap<NodeId, Time>,
    /// Since when it stands still.
    still: Option<Time>,
}

impl Hosts {
    /// The ring has changed.
    pub fn see(&mut self, ring: &Arc<Ring>, now: Time) {
        self.suspected.retain(|node, _| ring.host(*node).is_some_and(|host| host.is_suspected));
        for host in ring.hosts().iter().filter(|host| host.is_suspected) {
            self.suspected.entry(host.who.node).or_insert(now);
        }
        self.ring = Some(Arc::clone(ring));
        self.off.retain(|node, _| ring.host(*node).is_some());
    }

    /// The roll has changed. Who was never on it is none of its business: another build may run
    /// there, or one that keeps no roll.
    pub fn follow(&mut self, roll: &Arc<Roll>, now: Time) {
        if let Some(before) = self.roll.replace(Arc::clone(roll)) {
            for node in before.nodes.iter().filter(|node| !roll.contains(**node)) {
                self.off.entry(*node).or_insert(now);
            }
        }
        self.off.retain(|node, _| !roll.contains(*node));
        if !roll.goes_on {
            self.still.get_or_insert(now);
        } else if let Some(still) = self.still.take() {
            // Nobody could come meanwhile; the time before counts, also if it stands still often.
            let stood = if mutant!("a_standstill_forgives") { now - Time(0) } else { now - still };
            self.off.values_mut().for_each(|since| *since = (*since + stood).min(now));
        }
    }

    /// The roll, if it says who is there now.
    fn current(&self) -> Option<&Roll> {
        let ignores = mutant!("lane_goes_by_rumours_alone");
        self.roll.as_deref().filter(|roll| roll.goes_on && !ignores)
    }

    /// Whether the cluster is being shut down.
    pub fn are_closing(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.closing != Closing::No)
    }

    /// How a host stands; one that is not known is there, as far as anybody knows.
    pub(super) fn standing(&self, node: NodeId) -> Standing {
        let host = self.ring.as_ref().and_then(|ring| ring.host(node));
        host.map_or(Standing::Up, |host| host.standing)
    }

    /// Whether a host is gone for good: it has said so itself, or an operator has.
    pub fn has_left(&self, node: NodeId) -> bool {
        self.standing(node) == Standing::Left && !mutant!("lane_waits_for_who_has_left")
    }

    /// Whether the roll has removed a host.
    pub fn is_removed(&self, node: NodeId) -> bool {
        self.current().is_some() && self.off.contains_key(&node)
    }

    /// Whether a host may be given a seat.
    pub(super) fn may_take(&self, node: NodeId) -> bool {
        let host = self.ring.as_ref().and_then(|ring| ring.host(node));
        let is_sound = |host: &RingHost| !host.is_suspected || mutant!("lane_seats_the_absent");
        let is_there = host.is_some_and(|host| host.standing == Standing::Up && is_sound(host));
        is_there && !self.is_removed(node)
    }

    /// If so many members are suspected, or have left, that no majority of them is there: how many.
    pub fn suspected(&self, members: &[NodeId]) -> Option<usize> {
        let ring = self.ring.as_ref().filter(|_| !mutant!("lane_waits_in_silence"))?;
        let suspected = members.iter().filter(|node| ring.is_suspected(**node)).count();
        (members.len() - suspected < members.len() / 2 + 1).then_some(suspected)
    }

    /// The hosts that have not left.
    pub fn there(&self) -> impl Iterator<Item = NodeId> {
        let hosts = self.ring.iter().flat_map(|ring| ring.hosts());
        hosts.filter(|host| host.standing != Standing::Left).map(|host| host.who.node)
    }

    /// How long a host is thought to have failed.
    pub(super) fn silent(&self, node: NodeId, now: Time) -> Option<Span> {
        let suspected = self.suspected.get(&node).copied();
        let since = match self.current() {
            Some(roll) if roll.contains(node) => None,
            Some(_) => self.off.get(&node).copied().or(suspected),
            // What was rumoured before the roll stood still was not believed.
            None => suspected.map(|since| since.max(self.still.unwrap_or_default())),
        };
        since.map(|since| now - since)
    }

    /// The hosts that take part.
    pub(super) fn present(&self) -> impl Iterator<Item = NodeId> {
        let hosts = self.ring.iter().flat_map(|ring| ring.hosts());
        hosts.filter(|host| host.standing == Standing::Up).map(|host| host.who.node)
    }
}

#[cfg(test)]
mod tests;
