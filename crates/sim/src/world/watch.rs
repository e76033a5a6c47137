//! What must hold of all hosts together at any time, and what has not come to rest.

use super::World;
use super::operators::changes::known_at;
use crate::groups::{self, Groups};
use crate::host::{Host, Running, count};
use crate::queue::HostIndex;
use quorate_kernel::engine::Placement;
use quorate_kernel::ids::LaneId;
use std::collections::BTreeMap;

impl World<'_> {
    /// The lanes of keyspaces that are placed so.
    fn lanes(&self, placement: Placement) -> Vec<LaneId> {
        let is_so = |engine: &quorate_kernel::engine::Engine| engine.placement == placement;
        let tenants = self.tenants.iter();
        let placed = tenants.filter(|tenant| tenant.keyspace.engine.is_some_and(is_so));
        placed.map(|tenant| tenant.lane()).collect()
    }

    /// What the hosts that run say of the groups of a lane.
    pub(super) fn said(&self, lane: LaneId) -> Vec<(HostIndex, Groups)> {
        let hosts = self.machines.hosts.iter().enumerate();
        hosts.filter_map(|(index, host)| Some((index, Groups::of(host, lane)?))).collect()
    }

    /// Notes what a host that is about to end says of its groups.
    pub(super) fn note_said(&mut self, host: HostIndex) {
        for lane in self.lanes(Placement::Groups) {
            let target = &mut self.machines.hosts[host];
            if let Some(groups) = Groups::of(target, lane) {
                target.said.insert(lane, groups);
            }
        }
    }

    /// Looks whether hosts contradict each other.
    pub(super) fn watch(&mut self) {
        for lane in self.lanes(Placement::Groups) {
            let mut said = self.said(lane);
            groups::without_ranges(&mut said);
            if let Some(message) = groups::differing(&said).or_else(|| groups::rivals(&said)) {
                self.machines.condemn("views", message);
            }
            let version = said.iter().map(|(_, groups)| groups.number("view")).max();
            self.views = self.views.max(version.unwrap_or(0));
            for (host, groups) in said {
                self.machines.hosts[host].said.insert(lane, groups);
            }
        }
        let mut lanes = self.tenants.iter().map(|tenant| tenant.lane());
        if let Some(message) = lanes.find_map(|lane| differing(&self.machines.hosts, lane)) {
            self.machines.condemn("catalog", message);
        }
        self.show_chain(false);
        self.watch_roll();
        self.unbalanced();
        self.note_change();
        if self.machines.hosts.iter().any(|host| host.is_wiped) && self.unsettled().is_none() {
            // All is made up for: another may lose its disk.
            self.machines.hosts.iter_mut().for_each(|host| host.is_wiped = false);
        }
        // What was refused while hosts failed is done before anything is demanded: until then
        // nobody goes on after a loss that concerns who is gone.
        if self.plan.is_healed && self.is_whole && self.unsettled().is_some() {
            let up = self.up().next();
            up.into_iter().for_each(|host| self.remove_wiped(host));
        }
    }

    /// Shows the workloads what hosts have stored; `anew` all of it.
    pub(super) fn show_chain(&mut self, anew: bool) {
        for tenant in &mut self.tenants {
            tenant.clients.work.watch(&self.machines.hosts, anew);
        }
    }

    /// What is moving, or not yet known to all that take part; also a lost disk that was not made
    /// up for.
    pub(super) fn unsettled(&self) -> Option<String> {
        let of_groups = || self.lanes(Placement::Groups).into_iter();
        let of_partitions = || self.lanes(Placement::Partitions).into_iter();
        self.uninformed()
            .or_else(|| of_groups().find_map(|lane| self.ungrouped(lane)))
            .or_else(|| of_partitions().find_map(|lane| self.unplaced(lane)))
    }

    /// Who does not know the catalog as others do.
    fn uninformed(&self) -> Option<String> {
        let mut first = None;
        let hosts = self.machines.hosts.iter().enumerate();
        for (index, host) in hosts.filter(|(_, host)| host.has_joined) {
            let Some(told) = host.told.as_ref().filter(|_| host.running == Running::Up) else {
                return Some(format!("n{} knows no catalog", index + 1));
            };
            let (first, mine) = (first.get_or_insert(told.version), told.version);
            if *first != mine {
                return Some(format!("n{} is at decree {mine}, others at {first}", index + 1));
            }
            if let Some(lost) = self.lost().find(|node| told.members.contains(node)) {
                return Some(format!("{lost} is in the system group, and its disk was lost"));
            }
        }
        None
    }

    /// What of the groups of a lane is not as the ring wants it.
    fn ungrouped(&self, lane: LaneId) -> Option<String> {
        let mut said = self.said(lane);
        // What has moved serves all there is if nothing is left to move.
        let have_moved = groups::without_ranges(&mut said);
        for (host, groups) in &said {
            if let Some(what) = groups.unsettled() {
                return Some(format!("n{} has {what}", host + 1));
            }
            let members = groups.rows.iter().filter(|row| row.is_member);
            let mut nodes = members.flat_map(|row| &row.members);
            if nodes.any(|node| self.lost().any(|lost| lost == *node)) {
                return Some(format!("n{} has a group with a member that was lost", host + 1));
            }
        }
        (!have_moved && !groups::covers(&said))
            .then(|| "no group serves a part of the ring".to_owned())
    }

    /// What of the partitions of a lane is not as the catalog wants it.
    fn unplaced(&self, lane: LaneId) -> Option<String> {
        let Some(keyspace) = self.known(lane) else {
            return Some(format!("there is no keyspace of lane {}", lane.0));
        };
        if self.machines.net.is_late(self.machines.now) {
            // A write that it carries would be done after all.
            return Some("a delayed frame is on its way".to_owned());
        }
        let is_lost = |node| self.lost().any(|lost| lost == node);
        if let Some(at) =
            keyspace.partitions.iter().position(|place| !place.is_settled || is_lost(place.node))
        {
            return Some(format!("partition {at} is not settled: {:?}", keyspace.partitions[at]));
        }
        if let Some(former) = keyspace.former.first() {
            return Some(format!("a former replica was not handed over: {former:?}"));
        }
        let hosts = self.machines.hosts.iter().enumerate();
        for (index, host) in hosts.filter(|(_, host)| host.has_joined) {
            let held = keyspace.partitions.iter().filter(|place| place.node == host.node_id);
            let (held, has) = (held.count() as u64, count(host, lane, "replicas"));
            let [joining, leaving] = ["joining", "leaving"].map(|name| count(host, lane, name));
            if held != has || joining + leaving > 0 {
                let what = format!("{has} of {held} replicas, {joining} join, {leaving} leave");
                return Some(format!("n{} has {what}", index + 1));
            }
        }
        None
    }
}

/// Two hosts have the same decrees and know another keyspace by them.
fn differing(hosts: &[Host], lane: LaneId) -> Option<String> {
    let mut known = BTreeMap::new();
    for (index, host) in hosts.iter().enumerate() {
        let Some(keyspace) = known_at(host, lane) else { continue };
        let (first, other) = *known.entry(keyspace.changed).or_insert((index, keyspace));
        if keyspace != other {
            let (one, two) = (first + 1, index + 1);
            return Some(format!("n{one} knows {other:?}, and n{two} {keyspace:?}"));
        }
    }
    None
}
