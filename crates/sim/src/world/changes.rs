//! What operators do to keyspaces: they create some later, and alter them.

use super::World;
use super::operators::PATIENCE;
use crate::host::Host;
use crate::keyspace::{ChangeSection, words};
use crate::queue::HostIndex;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Keyspace, KeyspaceOrder};
use quorate_kernel::operation::Control;
use std::sync::Arc;

impl World<'_> {
    /// What is due is ordered of whichever host can, until it is known to be done.
    pub(super) fn change_keyspaces(&mut self) {
        for index in 0..self.tenants.len() {
            if let Some(order) = self.due(index) {
                let up: Vec<HostIndex> = self.up().collect();
                if !up.is_empty() {
                    let host = up[self.rng.below(up.len() as u64) as usize];
                    self.machines.line(format_args!("** n{}: {order:?}", host + 1));
                    self.operate(host, LaneId::CATALOG, Control::Keyspace(order), PATIENCE);
                }
            }
        }
    }

    /// What of a keyspace is to be ordered now.
    fn due(&self, index: usize) -> Option<KeyspaceOrder> {
        let section = &self.prepared.scenario.keyspaces[index];
        let is_time = |at_ms: u64| self.machines.now >= at_ms * 1_000_000;
        if section.engine.is_none() || !is_time(section.created_ms) {
            return None;
        }
        let Some(known) = self.known(self.tenants[index].lane()) else {
            // What the cluster is born with is known before anything is due.
            return section
                .creation()
                .filter(|_| section.created_ms > 0)
                .map(KeyspaceOrder::Create);
        };
        let is_due = |change: &&ChangeSection| is_time(change.at_ms);
        let change = section.changes.iter().take_while(is_due).last()?;
        let settings = words(&change.settings);
        let is_done = settings.iter().all(|(name, word)| known.setting(name) == word);
        let name = section.name.clone();
        (!is_done).then_some(KeyspaceOrder::Alter { name, settings })
    }

    /// The newest that any host was told of the keyspace of a lane.
    pub(super) fn known(&self, lane: LaneId) -> Option<Arc<Keyspace>> {
        let known = self.machines.hosts.iter().filter_map(|host| known_at(host, lane));
        known.max_by_key(|keyspace| keyspace.changed).map(Arc::clone)
    }
}

/// What a host was told of the keyspace of a lane.
pub(super) fn known_at(host: &Host, lane: LaneId) -> Option<&Arc<Keyspace>> {
    let mut told = host.told.iter().flat_map(|told| &told.list);
    told.find(|(keyspace, _)| keyspace.lane == lane).map(|(keyspace, _)| keyspace)
}
