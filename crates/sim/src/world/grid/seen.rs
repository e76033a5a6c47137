//! What is seen of the change of a cell, and the cells that a run has met.

use super::{Change, LEAVES, Met};
use crate::groups::Row;
use crate::host::{Host, Running};
use crate::keyspace::Word;
use crate::world::{Tenant, World};
use quorate_kernel::engine::Placement;
use quorate_kernel::ids::NodeId;
use quorate_kernel::part::{Part, PartName};
use std::collections::BTreeSet;

/// What was seen of the change of a cell, by keyspace.
#[derive(Debug, Default)]
pub(in crate::world) struct Seen {
    /// The nodes that held something.
    held: BTreeSet<NodeId>,
    /// How many parts there were first.
    parts: Option<usize>,
    has_joined: bool,
    has_left: bool,
    is_altered: bool,
    is_split: bool,
    is_regrouped: bool,
}

/// How the data of a keyspace lies now, by its placement.
#[derive(Default)]
struct Layout {
    /// The nodes that hold something and are ready.
    holders: BTreeSet<NodeId>,
    /// All nodes that shall hold something.
    named: BTreeSet<NodeId>,
    parts: usize,
    /// The most members of a part.
    members: usize,
}

impl World<'_> {
    fn layout(&self, index: usize) -> Layout {
        let tenant = &self.tenants[index];
        let placement = tenant.keyspace.engine.map(|engine| engine.placement);
        let mut layout = Layout::default();
        if placement == Some(Placement::Groups) {
            let said = self.said(tenant.lane());
            let rows = said.iter().flat_map(|(_, groups)| &groups.rows);
            let rows: Vec<&Row> = rows.filter(|row| row.is_member).collect();
            let ready: Vec<&&Row> = rows.iter().filter(|row| row.is_ready).collect();
            let is_holder = |row: &Row| row.is_ready;
            let holders = said.iter().filter(|(_, groups)| groups.rows.iter().any(is_holder));
            let node = |host: usize| self.machines.hosts[host].node_id;
            layout.holders = holders.map(|(host, _)| node(*host)).collect();
            layout.named = rows.iter().flat_map(|row| row.members.iter().copied()).collect();
            layout.parts = ready.iter().map(|row| row.view.group).collect::<BTreeSet<_>>().len();
            layout.members = ready.iter().map(|row| row.members.len()).max().unwrap_or(0);
        } else if placement == Some(Placement::Everywhere) {
            let is_there = |host: &&Host| host.running == Running::Up && host.is_ready();
            let there = self.machines.hosts.iter().filter(is_there);
            layout.holders = there.map(|host| host.node_id).collect();
            layout.named.clone_from(&layout.holders);
        } else if let Some(keyspace) = self.known(tenant.lane()) {
            let partitions = keyspace.partitions.iter();
            layout.named = partitions.clone().map(|place| place.node).collect();
            let settled = partitions.filter(|place| place.is_settled);
            layout.holders = settled.map(|place| place.node).collect();
            (layout.parts, layout.members) = (keyspace.partitions.len(), keyspace.replicas());
        }
        layout
    }

    /// Whether hosts that have joined serve a keyspace that has no seat for each host, as one of a
    /// single group: then it is by design that they hold nothing. Asked when all has come to rest.
    fn have_joined_without_seats(&self, index: usize) -> bool {
        let layout = self.layout(index);
        let lane = self.tenants[index].lane();
        let has_few = layout.parts > 0 && layout.parts * layout.members < self.machines.hosts.len();
        let mut joined = self.machines.hosts[self.prepared.scenario.members()..].iter();
        let knows_all = |host: &Host| {
            let parts = host.parts(lane);
            let is_known = |part: &Part| part.name != PartName::Unknown && !part.owes;
            host.is_ready() && !parts.is_empty() && parts.iter().all(is_known)
        };
        has_few && joined.all(knows_all)
    }

    /// Looks what of the change of the cell has taken place.
    pub(in crate::world) fn note_change(&mut self) {
        let scenario = &self.prepared.scenario;
        if scenario.cell.is_none() {
            return;
        }
        self.seen.resize_with(self.tenants.len(), Seen::default);
        let leaves = &self.machines.hosts[LEAVES];
        let is_leaving = leaves.running == Running::Up && self.plan.drained().contains(&LEAVES);
        let (leaving, first) = (leaves.node_id, leaves.first_node());
        let joined = &self.machines.hosts[scenario.members()..];
        let joined: Vec<NodeId> = joined.iter().map(|host| host.node_id).collect();
        for index in 0..self.tenants.len() {
            let layout = self.layout(index);
            let last = scenario.keyspaces[index].last_settings();
            let is_set = |name: &str, to: usize| last.get(name) == Some(&Word::Number(to as u64));
            let seen = &mut self.seen[index];
            let parts = *seen.parts.get_or_insert(layout.parts);
            seen.is_split |= layout.parts > parts;
            seen.has_joined |= joined.iter().all(|node| layout.holders.contains(node));
            let is_out = is_leaving && !layout.named.is_empty() && !layout.named.contains(&first);
            seen.has_left |= is_out && leaving == first && seen.held.contains(&first);
            seen.is_altered |= is_set("replicas", layout.members);
            seen.is_regrouped |= is_set("groups", layout.parts);
            seen.held.extend(layout.holders);
        }
    }

    /// The cells that this run has met.
    pub(in crate::world) fn met(&self) -> Vec<Met> {
        let Some(cell) = &self.prepared.scenario.cell else { return Vec::new() };
        let hosts = self.prepared.scenario.hosts;
        let directed = self.prepared.scenario.faults.cycle.iter();
        let directed = directed.filter(|fault| fault.what.kind(hosts) == cell.fault).count();
        let is_over = self.is_over && self.machines.violation.is_none();
        if !is_over || self.plan.applied_of(cell.fault, hosts) <= directed {
            return Vec::new();
        }
        let leaves = &self.machines.hosts[LEAVES];
        let first = leaves.first_node();
        let is_lost = leaves.lost.contains(&first);
        let took_place = |(index, tenant): &(usize, &Tenant<'_>)| {
            let Some(seen) = self.seen.get(*index) else { return false };
            let has_joined = || seen.has_joined || self.have_joined_without_seats(*index);
            match cell.change {
                Change::None => true,
                Change::Join => has_joined(),
                Change::Drain => seen.has_left,
                Change::Replace => seen.has_left && has_joined(),
                // The run has come to rest, so that nobody names it any more.
                Change::Remove => is_lost && seen.held.contains(&first),
                Change::Alter => seen.is_altered,
                Change::Split => seen.has_joined && seen.is_split,
                Change::Regroup => seen.is_regrouped,
                Change::Renew => tenant.lane() != tenant.keyspace.lane,
            }
        };
        let tenants = self.tenants.iter().enumerate().filter(took_place);
        let engines = tenants.filter_map(|(_, tenant)| tenant.keyspace.engine);
        engines.map(|engine| Met { engine: engine.name.to_owned(), cell: cell.clone() }).collect()
    }
}
