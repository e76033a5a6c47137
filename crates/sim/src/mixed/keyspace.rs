//! When the keyspace of siblings is created, and what hosts were told of it.

use super::World;
use super::section::SIBLINGS;
use crate::host::{Host, Running};
use crate::operators::PATIENCE;
use crate::queue::HostIndex;
use crate::turns::Turns;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::operation::Control;
use std::sync::Arc;

impl World<'_> {
    /// The keyspace of siblings is created when it is time, by whichever host can.
    pub(super) fn create(&mut self) {
        let section = self.section;
        let is_time = self.machines.now >= section.created_ms * 1_000_000;
        if section.created_ms == 0 || !is_time || self.siblings_keyspace().is_some() {
            return;
        }
        let up: Vec<HostIndex> = self.up().collect();
        if !up.is_empty() {
            let host = up[self.rng.below(up.len() as u64) as usize];
            self.machines.line(format_args!("** n{} creates the keyspace", host + 1));
            let order = section.creation(self.prepared.scenario.replicas());
            self.operate(host, LaneId::CATALOG, Control::Keyspace(order), PATIENCE);
        }
    }

    /// The nodes whose disks were lost.
    pub(super) fn lost(&self) -> impl Iterator<Item = NodeId> {
        self.machines.hosts.iter().flat_map(|host| host.lost.iter().copied())
    }

    /// The hosts that run.
    pub(super) fn up(&self) -> impl Iterator<Item = HostIndex> {
        let hosts = self.machines.hosts.iter().enumerate();
        hosts.filter(|(_, host)| host.running == Running::Up).map(|(index, _)| index)
    }

    /// The newest that any host was told of the keyspace of siblings.
    pub(super) fn siblings_keyspace(&self) -> Option<Arc<Keyspace>> {
        let known = self.machines.hosts.iter().filter_map(siblings_at);
        known.max_by_key(|keyspace| keyspace.changed).map(Arc::clone)
    }
}

/// What a host was told of the keyspace of siblings.
pub(super) fn siblings_at(host: &Host) -> Option<&Arc<Keyspace>> {
    let mut told = host.told.iter().flat_map(|told| &told.list);
    told.find(|(keyspace, _)| keyspace.lane == SIBLINGS).map(|(keyspace, _)| keyspace)
}
