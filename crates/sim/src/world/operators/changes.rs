//! What operators do to keyspaces: they create some later, alter them, and drop them to make them
//! again.

use super::hosts::PATIENCE;
use crate::groups::{self, Groups};
use crate::host::Host;
use crate::keyspace::{ChangeSection, words};
use crate::queue::HostIndex;
use crate::world::World;
use crate::world::tenants::LostAll;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, KeyspaceOrder};
use quorate_kernel::mutant;
use quorate_kernel::operation::Control;
use quorate_kernel::probe;
use quorate_kernel::storage::Durability;
use std::collections::BTreeSet;
use std::sync::Arc;

impl World<'_> {
    /// What is due is ordered of whichever host can, until it is known to be done.
    pub(crate) fn change_keyspaces(&mut self) {
        self.give_up();
        for index in 0..self.tenants.len() {
            self.adopt(index);
            let Some(order) = self.due(index) else { continue };
            let up: Vec<HostIndex> = self.up().collect();
            if up.is_empty() {
                continue;
            }
            let host = up[self.rng.below(up.len() as u64) as usize];
            // Nobody makes a keyspace of one replica again while a node that is gone for good
            // would be given a part of it.
            let is_alone = self.tenants[index].keyspace.replicas == 1;
            let may_alter = matches!(order, KeyspaceOrder::Alter { .. });
            if is_alone && !may_alter && self.is_any_lost_there() {
                self.remove_wiped(host);
                continue;
            }
            self.machines.line(format_args!("** n{}: {order:?}", host + 1));
            self.operate(host, LaneId::CATALOG, Control::Keyspace(order), PATIENCE);
        }
    }

    /// A keyspace in memory of which nothing is left, and that stands still although all hosts run,
    /// because its members were changing when they forgot, is made again. Where they were not, or
    /// nothing changes members, that is never taken for an answer.
    fn give_up(&mut self) {
        let cell = self.prepared.scenario.cell.as_ref();
        let may_change = cell.is_some_and(|cell| cell.change.is_of_members());
        let do_all_run = self.up().count() == self.machines.hosts.len();
        for index in 0..self.tenants.len() {
            self.note_recovery(index);
            let said = self.said(self.tenants[index].lane());
            let Some(lost) = self.tenants[index].lost_all.as_mut() else { continue };
            let still = match may_change && do_all_run {
                true => groups::standing_still(&said),
                false => BTreeSet::new(),
            };
            if lost.excuses(self.machines.now, still) {
                probe!("world/stands_still");
                self.tenants[index].is_beyond_help = true;
            }
        }
    }

    /// If all of a keyspace is served, a loss of everything is over: what stands still later does
    /// so for another reason.
    fn note_recovery(&mut self, index: usize) {
        let tenant = &self.tenants[index];
        if tenant.lost_all.is_none() || !groups::serve_all(&self.said(tenant.lane())) {
            return;
        }
        let has_several = tenant.keyspace.replicas > 1;
        let lost = self.tenants[index].lost_all.take();
        let is_excuse = lost.is_some_and(|lost| lost.were_members_changing);
        if mutant!("most_forget_when_recovered") && is_excuse && has_several {
            self.forget_most();
        }
    }

    /// Whether the members of groups of a lane are changing; those of who is down as it said last.
    fn are_members_changing(&self, lane: LaneId) -> bool {
        let hosts = self.machines.hosts.iter().enumerate();
        let said = hosts.map(|(index, host)| (index, Groups::last_of(host, lane)));
        let mut said: Vec<(HostIndex, Groups)> = said.collect();
        groups::without_ranges(&mut said);
        let drained = self.plan.drained().into_iter();
        let drained = drained.map(|host| self.machines.hosts[host].node_id);
        let going: Vec<NodeId> = drained.chain(self.lost()).collect();
        let replicas = self.known(lane).map(|keyspace| keyspace.replicas());
        groups::members_change(&said, replicas, &going)
    }

    /// All that is in memory alone is lost at this moment. What was not served since it was lost
    /// before, for a reason, has that reason still.
    pub(crate) fn note_changes_of_members(&mut self) {
        for index in 0..self.tenants.len() {
            if self.tenants[index].keyspace.durability != Durability::Memory {
                continue;
            }
            self.note_recovery(index);
            let tenant = &self.tenants[index];
            let before = tenant.lost_all.as_ref().is_some_and(|lost| lost.were_members_changing);
            let were_members_changing = before || self.are_members_changing(tenant.lane());
            let lost = LostAll::new(self.machines.now, were_members_changing);
            self.tenants[index].lost_all = Some(lost);
        }
    }

    /// What of a keyspace is to be ordered now.
    fn due(&self, index: usize) -> Option<KeyspaceOrder> {
        let section = &self.prepared.scenario.keyspaces[index];
        let is_time = |at_ms: u64| self.machines.now >= at_ms * 1_000_000;
        if section.engine.is_none() || !is_time(section.created_ms) {
            return None;
        }
        let tenant = &self.tenants[index];
        let is_renewed = tenant.lane() != tenant.keyspace.lane;
        let is_dropped = self.newest_told().is_some_and(|told| {
            told.version > 0 && !told.list.iter().any(|(known, _)| known.name == section.name)
        });
        let Some(known) = self.known(tenant.lane()).filter(|_| !is_dropped) else {
            // What the cluster is born with is known before anything is due.
            let is_missing = section.created_ms > 0 || section.renewed_ms > 0;
            let is_missing = is_missing || is_renewed || tenant.is_beyond_help;
            return section.creation().filter(|_| is_missing).map(KeyspaceOrder::Create);
        };
        let is_to_end = section.renewed_ms > 0 && is_time(section.renewed_ms) && !is_renewed;
        if is_to_end || tenant.is_beyond_help {
            return Some(KeyspaceOrder::Drop { name: section.name.clone() });
        }
        let is_due = |change: &&ChangeSection| is_time(change.at_ms);
        let change = section.changes.iter().take_while(is_due).last()?;
        let settings = words(&change.settings);
        let is_done = settings.iter().all(|(name, word)| known.setting(name) == word);
        let name = section.name.clone();
        (!is_done).then_some(KeyspaceOrder::Alter { name, settings })
    }

    /// The clients of a keyspace that was made again go over to it.
    fn adopt(&mut self, index: usize) {
        let tenant = &self.tenants[index];
        let Some(engine) = tenant.keyspace.engine else { return };
        let Some(told) = self.newest_told() else { return };
        let of_name = |(known, _): &&(Arc<Keyspace>, _)| known.name == tenant.keyspace.name;
        let Some((known, _)) = told.list.iter().find(of_name) else { return };
        let (lane, is_known) = (known.lane, known.engine == engine.name);
        if is_known && lane > tenant.lane() {
            self.machines.line(format_args!("** a keyspace was made again: lane {}", lane.0));
            // Another disk may have been lost meanwhile.
            let is_any_lost = self.is_any_lost_there();
            let tenant = &mut self.tenants[index];
            (tenant.lane, tenant.lost_all) = (lane, None);
            tenant.is_beyond_help &= is_any_lost;
            tenant.clients.on_renewal(&mut self.machines.scene());
        }
    }

    /// The newest that any host was told of the keyspace of a lane.
    pub(crate) fn known(&self, lane: LaneId) -> Option<Arc<Keyspace>> {
        let known = self.machines.hosts.iter().filter_map(|host| known_at(host, lane));
        known.max_by_key(|keyspace| keyspace.changed).map(Arc::clone)
    }
}

/// What a host was told of the keyspace of a lane.
pub(crate) fn known_at(host: &Host, lane: LaneId) -> Option<&Arc<Keyspace>> {
    let mut told = host.told.iter().flat_map(|told| &told.list);
    told.find(|(keyspace, _)| keyspace.lane == lane).map(|(keyspace, _)| keyspace)
}
