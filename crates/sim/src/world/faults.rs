//! Which faults a world can bear, and what is special about some.

use super::World;
use crate::fault::What;
use crate::host::Running;
use crate::memory;
use crate::queue::HostIndex;
use crate::workload::Ground;
use quorate_kernel::engine::Placement;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::probe;
use quorate_kernel::sighting::Disowned;
use quorate_kernel::storage::Durability;
use quorate_store::memory::Crash;
use std::sync::Arc;

impl World<'_> {
    /// Whether some keyspace is in memory alone, so that data goes with the process.
    pub(super) fn is_any_in_memory(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.keyspace.durability == Durability::Memory)
    }

    /// Whether all that is acknowledged is synced.
    pub(super) fn are_all_synced(&self) -> bool {
        self.tenants.iter().all(|tenant| tenant.keyspace.durability == Durability::Sync)
    }

    /// Whether a fault makes sense now, and leaves what no protocol can do without: to the system
    /// group a majority, and to each keyspace what its promise rests on.
    pub(super) fn may_begin(&self, what: &What) -> bool {
        let hosts = &self.machines.hosts;
        let targets = what.targets();
        if targets.iter().any(|host| !hosts[*host].has_joined) {
            return false;
        }
        let is_down = |host: &HostIndex| hosts[*host].running == Running::Down;
        let makes_sense = match what {
            What::Power { .. } => true,
            // One at a time, as an operator does.
            What::Retire { host, .. } => self.retiring.is_none() && !is_down(host),
            What::Wipe { .. } => self.bears_system_group(targets[0]),
            What::Remove { host } => {
                hosts[*host].running == Running::Up && self.lost().next().is_some()
            }
            _ => !targets.iter().any(is_down),
        };
        makes_sense && self.bear_keyspaces(what)
    }

    fn bear_keyspaces(&self, what: &What) -> bool {
        let does_harm = match what {
            What::Wipe { .. } | What::Restore { .. } => true,
            What::Kill { .. } | What::Power { .. } | What::FailSync { .. } => {
                !self.are_all_synced()
            }
            _ => false,
        };
        if !does_harm {
            return true;
        }
        let unsettled = self.unsettled();
        self.tenants.iter().all(|tenant| {
            let known = self.known(tenant.lane());
            let hosts = &self.machines.hosts;
            let ground = tenant.ground(hosts, known.as_deref(), unsettled.as_deref());
            let has_lost_lately = self.plan.has_lost_lately(self.machines.now);
            tenant.clients.work.bears(what, &Ground { has_lost_lately, ..ground })
        })
    }

    /// Whether a majority of the system group keeps its disks. Soon after one was lost no other is:
    /// a decree may be under way that makes either node a member.
    fn bears_system_group(&self, host: HostIndex) -> bool {
        let Some(told) = self.newest_told() else { return false };
        let is_there = |node: &NodeId| self.machines.hosts.iter().any(|it| it.node_id == *node);
        let lost = told.members.iter().filter(|node| !is_there(node)).count();
        let is_member = told.members.contains(&self.machines.hosts[host].node_id);
        let lost = lost + usize::from(is_member);
        let is_sure = !self.plan.has_lost_lately(self.machines.now);
        is_sure && 2 * lost < told.members.len()
    }

    /// The newest that any host was told of the catalog.
    pub(super) fn newest_told(&self) -> Option<&Arc<Keyspaces>> {
        let told = self.machines.hosts.iter().filter_map(|host| host.told.as_ref());
        told.max_by_key(|told| told.version)
    }

    /// What else a fault that begins does.
    pub(super) fn on_begin(&mut self, what: &What) {
        match what {
            What::Power { hosts } => self.on_power_loss(hosts),
            What::Wipe { host } => {
                self.show_chain(false);
                let node = NodeId(self.rng.next());
                self.lose_disk(*host, node);
            }
            What::FailSync { host } => {
                let target = &mut self.machines.hosts[*host];
                target.is_sync_failing = true;
                target.disk.store().fail_next_sync();
            }
            What::Drain { host } => self.drain(*host, false),
            What::Retire { host, other } => self.begin_retirement(*host, *other),
            What::Remove { host } => self.remove_wiped(*host),
            What::Shutdown { host } => self.shut_down(*host),
            _ => {}
        }
        self.lose_more(what);
    }

    /// What else ends with a fault. Returns whether it was one after all.
    pub(super) fn on_end(&mut self, what: &What) -> bool {
        match what {
            What::FailSync { host } => self.end_failing_sync(*host),
            What::Drain { host } => self.drain(*host, true),
            What::Retire { host, .. } => self.end_retirement(*host),
            What::Shutdown { .. } => self.start_again(),
            What::Restore { host } => return self.put_back(*host),
            _ => {}
        }
        true
    }

    /// Hosts lose all that they hold of some keyspaces: with a disk of each, with a process or the
    /// power of what is in memory alone, with an old copy of what was not synced. Who is asked
    /// before the hosts are down knows exactly what they held.
    pub(super) fn lose_copies(&mut self, what: &What) {
        if matches!(what, What::Power { hosts } if hosts.len() == self.machines.hosts.len()) {
            self.note_changes_of_members();
        }
        let loses = |durability: Durability| match what {
            What::Wipe { .. } => true,
            What::Restore { .. } => durability != Durability::Sync,
            What::Kill { .. } | What::Power { .. } => durability == Durability::Memory,
            _ => false,
        };
        let is_power = matches!(what, What::Power { .. });
        let is_only = |tenant: &super::Tenant<'_>| {
            let durability = tenant.keyspace.durability;
            let loses_end = is_power && durability.every().is_some();
            tenant.keyspace.copies == 1 && (loses(durability) || loses_end)
        };
        if !self.tenants.iter().any(is_only) {
            return;
        }
        let (hosts, unsettled) = (what.targets(), self.unsettled());
        let lanes: Vec<_> = self.tenants.iter().map(super::Tenant::lane).collect();
        let known: Vec<_> = lanes.into_iter().map(|lane| self.known(lane)).collect();
        for (tenant, known) in self.tenants.iter_mut().zip(known) {
            if !is_only(tenant) {
                continue;
            }
            let placement = tenant.keyspace.engine.map(|engine| engine.placement);
            let scene = &mut self.machines.scene();
            let ground = tenant.ground(scene.hosts, known.as_deref(), unsettled.as_deref());
            if matches!(what, What::Wipe { .. }) && placement == Some(Placement::Groups) {
                // The only member of a group is gone with what it knew of the group: the keyspace
                // refuses its part of the ring until it is made again, and loses nothing before.
                // A host that has no only copy is no loss.
                if ground.may_lose_copies(&hosts) {
                    tenant.is_beyond_help = true;
                }
                continue;
            }
            let work = &mut tenant.clients.work;
            let begins_anew = match loses(ground.durability) {
                true => work.on_lost_copies(&hosts, &ground, scene),
                false => work.on_power(&hosts, &ground, scene),
            };
            if begins_anew {
                tenant.clients.on_renewal(scene);
            }
        }
    }

    /// Hosts have lost power. All at one moment lose everything that was never written, which is
    /// what `memory` promises; frames do not outlive all machines, so nothing of it comes back.
    fn on_power_loss(&mut self, hosts: &[HostIndex]) {
        let is_all = hosts.len() == self.machines.hosts.len();
        if is_all && self.is_any_in_memory() {
            self.phase("everything in memory is lost");
            self.machines.queue.lose_frames();
        }
        for tenant in &mut self.tenants {
            if is_all && tenant.keyspace.durability == Durability::Memory {
                tenant.clients.on_blackout();
            }
        }
        self.on_loss(hosts);
    }

    /// Hosts have lost what they had not synced.
    fn on_loss(&mut self, hosts: &[HostIndex]) {
        let lanes: Vec<_> = self.tenants.iter().map(super::Tenant::lane).collect();
        let known: Vec<_> = lanes.into_iter().map(|lane| self.known(lane)).collect();
        for (tenant, known) in self.tenants.iter_mut().zip(known) {
            let scene = &mut self.machines.scene();
            let ground = tenant.ground(scene.hosts, known.as_deref(), None);
            tenant.clients.work.on_loss(hosts, &ground, scene);
        }
    }

    /// A host loses its disk and is given the copy that was made of it. The others say what they
    /// have seen of its node, and if that is more than the copy has, it comes back as another.
    /// Returns whether there was a copy of its present start.
    fn put_back(&mut self, host: HostIndex) -> bool {
        let is_up = self.machines.hosts[host].running == Running::Up;
        if !is_up || !self.may_begin(&What::Wipe { host }) {
            return false;
        }
        self.show_chain(false);
        // A copy was made while the process ran, so it counts for no more than what was synced.
        self.take_down(host, Crash::ProcessKill, !self.are_all_synced());
        let has_copy = self.machines.hosts[host].put_back();
        if !has_copy {
            self.lose_copies(&What::Kill { host });
        } else if let Err(disowned) = self.judge_copy(host) {
            probe!("restored/disowned");
            self.machines.line(format_args!("n{} is refused: {disowned}", host + 1));
            self.lose_copies(&What::Wipe { host });
            let node = NodeId(self.rng.next());
            self.come_back_as(host, node);
        } else {
            probe!("restored/accepted");
            self.lose_copies(&What::Restore { host });
        }
        self.release(host);
        has_copy
    }

    /// Whether a directory that was put back has all that the others have seen of its node.
    fn judge_copy(&self, host: HostIndex) -> Result<(), Disowned> {
        let target = &self.machines.hosts[host];
        let others = self.machines.hosts.iter();
        let seen = others.filter_map(|other| other.memory.seen(target.node_id).copied());
        let under_way = memory::under_way(&self.machines.queue, target.node_id);
        let (next, store) = (target.me().start.next(), target.disk.store());
        seen.chain(under_way).try_for_each(|seen| target.memory.judge(next, store, &seen))
    }

    /// A host's disk failed: if a fault asked for it the host stops, as it must.
    pub(super) fn on_failed_sync(&mut self, host: HostIndex, fatal: &Fatal) {
        if !self.machines.hosts[host].is_sync_failing {
            return self.machines.condemn("fatal", format!("n{}: {fatal}", host + 1));
        }
        self.machines.hosts[host].is_stopped_by_disk = true;
        self.take_down(host, Crash::ProcessKill, !self.are_all_synced());
        self.on_loss(&[host]);
    }

    /// Gives a host a disk that syncs again. If no sync was due while it failed, the process is
    /// killed and started again, because a disk like this one is replaced.
    fn end_failing_sync(&mut self, host: HostIndex) {
        if self.machines.hosts[host].is_stopped_by_disk {
            self.machines.hosts[host].is_stopped_by_disk = false;
            return self.release(host);
        }
        if self.stop_failing(host) {
            self.start_host(host);
        }
    }

    /// Kills a process whose next sync would fail; returns whether it was one.
    fn stop_failing(&mut self, host: HostIndex) -> bool {
        let target = &self.machines.hosts[host];
        let is_failing = target.is_sync_failing && target.running != Running::Down;
        if is_failing {
            self.stop_host(host, Crash::ProcessKill, self.is_any_in_memory());
        }
        is_failing
    }

    /// All faults end, for every host or for a majority of the members.
    pub(super) fn heal(&mut self) {
        self.plan.is_healed = true;
        let core = self.draw_core();
        let code = core.iter().fold(0, |code, is_in| code << 1 | u64::from(*is_in));
        self.phase("heal");
        self.machines.trace.note(code);
        self.machines.net.heal(&core);
        self.is_whole = core.iter().all(|is_in| *is_in);
        // Who is drained shall be taken back.
        self.retiring = None;
        for host in self.plan.drained().into_iter().filter(|host| core[*host]) {
            self.drain(host, true);
        }
        let is_usable = |host: HostIndex| core[host] && self.machines.hosts[host].has_joined;
        let usable: Vec<bool> = (0..self.machines.hosts.len()).map(is_usable).collect();
        if self.plan.active().any(|what| matches!(what, What::Shutdown { .. })) {
            self.start_again();
        }
        for host in (0..core.len()).filter(|host| core[*host]) {
            self.stop_failing(host);
            self.revive(host);
        }
        for tenant in &mut self.tenants {
            tenant.clients.restrict(&usable, &mut self.machines.scene());
        }
    }

    /// Which hosts heal: all, or in some seeds no more than a majority needs, where every host
    /// holds everything. What forgot its data may need every other member, so there all of them
    /// heal.
    fn draw_core(&mut self) -> Vec<bool> {
        let mut core = vec![true; self.machines.hosts.len()];
        let scenario = &self.prepared.scenario;
        let is_one_group = |tenant: &super::Tenant<'_>| {
            let engine = tenant.keyspace.engine;
            let is_of_groups = engine.is_none_or(|it| it.placement == Placement::Groups);
            is_of_groups && (engine.is_none() || tenant.keyspace.replicas == scenario.hosts)
        };
        let is_fixed = scenario.spares == 0 && self.tenants.iter().all(is_one_group);
        let may_shrink = self.are_all_synced() && is_fixed;
        if !may_shrink || !self.rng.chance_ppm(scenario.liveness.core_ppm) {
            return core;
        }
        let hosts = &self.machines.hosts;
        let mut intact: Vec<HostIndex> =
            (0..hosts.len()).filter(|host| !hosts[*host].is_wiped).collect();
        let majority = hosts.len() / 2 + 1;
        while intact.len() > majority {
            let left_out = intact.swap_remove(self.rng.below(intact.len() as u64) as usize);
            core[left_out] = false;
        }
        core
    }
}
