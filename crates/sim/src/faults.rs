//! Which faults the groups of a scenario can bear, and what is special about some.

use crate::fault::What;
use crate::host::{Host, Running};
use crate::machines::Machines;
use crate::memory;
use crate::operators::Operators;
use crate::plan::{Faults, Plan};
use crate::queue::HostIndex;
use crate::turns::Turns;
use crate::world::World;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::NodeId;
use quorate_kernel::probe;
use quorate_kernel::sighting::Disowned;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_store::memory::Crash;

impl Faults for World<'_> {
    fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    fn durability(&self) -> Durability {
        self.prepared.scenario.durability()
    }

    /// It must leave a majority that has forgotten nothing. Without such a majority acknowledged
    /// data is gone, which no protocol can mend: all of it with `memory`, which a loss of all hosts
    /// at once may show, and with `periodic` what was not synced yet.
    fn may_begin(&self, what: &What) -> bool {
        let hosts = &self.machines.hosts;
        if self.targets(what).iter().any(|host| !hosts[*host].has_joined) {
            return false;
        }
        let is_down = |host: HostIndex| hosts[host].running == Running::Down;
        match what {
            What::Kill { host } => {
                let is_memory = self.durability() == Durability::Memory;
                !is_down(*host) && (!is_memory || self.may_forget(&[*host]))
            }
            What::Power { hosts: targets } => {
                let is_sync = self.durability() == Durability::Sync;
                let is_memory = self.durability() == Durability::Memory;
                is_sync || self.is_blackout(targets) || self.may_forget(targets) || !is_memory
            }
            What::FailSync { host } => {
                let is_sync = self.durability() == Durability::Sync;
                !is_down(*host) && (is_sync || self.may_forget(&[*host]))
            }
            What::Wipe { host } => {
                let is_first = !hosts[*host].is_wiped && self.may_forget(&[*host]);
                is_first && self.may_lose(*host)
            }
            What::Pause { host } | What::Shutdown { host } => !is_down(*host),
            What::Restore { host } => !is_down(*host) && self.durability() == Durability::Sync,
            What::Remove { host } => {
                let is_any_lost = hosts.iter().any(|host| !host.lost.is_empty());
                hosts[*host].running == Running::Up && is_any_lost
            }
            _ => true,
        }
    }

    fn on_begin(&mut self, what: &What) {
        match what {
            What::Power { hosts } if self.is_blackout(hosts) => self.begin_epoch(),
            What::Power { hosts } => self.lose_unsynced(hosts),
            What::Wipe { host } => {
                let node = NodeId(self.rng.next());
                self.lose_disk(*host, node);
            }
            What::FailSync { host } => {
                let target = &mut self.machines.hosts[*host];
                target.is_sync_failing = true;
                target.disk.store().fail_next_sync();
            }
            What::Drain { host } => self.drain(*host, false),
            What::Remove { host } => self.remove_wiped(*host),
            What::Shutdown { host } => self.shut_down(*host),
            _ => {}
        }
    }

    fn on_end(&mut self, what: &What) {
        match what {
            What::FailSync { host } => self.end_failing_sync(*host),
            What::Drain { host } => self.drain(*host, true),
            What::Shutdown { .. } => self.start_again(),
            What::Restore { host } => self.put_back(*host),
            _ => {}
        }
    }
}

impl World<'_> {
    /// The hosts whose processes or directories a fault concerns.
    fn targets(&self, what: &What) -> Vec<HostIndex> {
        match what {
            What::Kill { host }
            | What::Pause { host }
            | What::FailSync { host }
            | What::Drain { host }
            | What::Remove { host }
            | What::Shutdown { host }
            | What::Restore { host }
            | What::Wipe { host } => vec![*host],
            What::Power { hosts } => hosts.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether a loss of power takes everything that was ever written: all hosts at one moment, and
    /// nothing on their disks. That is what `memory` promises, so no judge may ask for it any more.
    fn is_blackout(&self, targets: &[HostIndex]) -> bool {
        self.durability() == Durability::Memory && targets.len() == self.machines.hosts.len()
    }

    /// Begins a history of its own, from nothing. Frames do not outlive all machines, so what was
    /// under way cannot come back either.
    fn begin_epoch(&mut self) {
        self.phase("everything is lost");
        self.machines.queue.lose_frames();
        self.workload.begin_epoch();
    }

    /// With `periodic` these hosts may have lost what they had not synced. A write is gone if a
    /// majority lost it: then it was acknowledged when the last of them had lost something already,
    /// and one of these was among them. For what was older nothing is excused.
    fn lose_unsynced(&mut self, targets: &[HostIndex]) {
        if !matches!(self.durability(), Durability::Periodic { .. }) {
            return;
        }
        let hosts = &self.machines.hosts;
        let forgetful = hosts.iter().filter(|host| host.has_forgotten);
        let mut first: Vec<u64> = forgetful.map(|host| host.lost_since.0).collect();
        first.sort_unstable();
        let majority = usize::from(self.prepared.scenario.replicas()) / 2 + 1;
        let last = targets.iter().map(|host| hosts[*host].lost_since.1).min();
        if let (Some(first), Some(last)) = (first.get(majority - 1), last) {
            let since = (*first).max(last);
            self.phase("what was not synced is lost");
            self.machines.trace.note(since);
            self.workload.lose(Time(since));
        }
    }

    fn may_forget(&self, targets: &[HostIndex]) -> bool {
        let forgets = |(index, host): &(HostIndex, &Host)| {
            // A host whose next sync fails will have forgotten when it is back.
            let is_failing = host.is_sync_failing && self.durability() != Durability::Sync;
            targets.contains(index) || host.has_forgotten || host.is_wiped || is_failing
        };
        let count = self.machines.hosts.iter().enumerate().filter(forgets).count();
        let replicas = usize::from(self.prepared.scenario.replicas());
        count <= replicas - (replicas / 2 + 1)
    }

    /// A host loses its disk and is given the copy that was made of it. The others say what they
    /// have seen of its node, and if that is more than the copy has, it comes back as another.
    fn put_back(&mut self, host: HostIndex) {
        let is_up = self.machines.hosts[host].running == Running::Up;
        if !is_up || !self.may_begin(&What::Wipe { host }) {
            return;
        }
        self.take_down(host, Crash::ProcessKill, false);
        if self.machines.hosts[host].put_back() {
            if let Err(disowned) = self.judge_copy(host) {
                probe!("restored/disowned");
                self.machines.line(format_args!("n{} is refused: {disowned}", host + 1));
                let node = NodeId(self.rng.next());
                self.come_back_as(host, node);
            } else {
                probe!("restored/accepted");
            }
        }
        self.release(host);
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
    pub(crate) fn on_failed_sync(&mut self, host: HostIndex, fatal: &Fatal) {
        if !self.machines.hosts[host].is_sync_failing {
            return self.machines.condemn("fatal", format!("n{}: {fatal}", host + 1));
        }
        self.machines.hosts[host].is_stopped_by_disk = true;
        self.take_down(host, Crash::ProcessKill, self.durability() != Durability::Sync);
        self.lose_unsynced(&[host]);
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
            let is_memory = self.durability() == Durability::Memory;
            self.stop_host(host, Crash::ProcessKill, is_memory);
        }
        is_failing
    }

    /// All faults end, for every host or for a majority of the members.
    pub(crate) fn heal(&mut self) {
        self.plan.is_healed = true;
        let core = self.draw_core();
        let code = core.iter().fold(0, |code, is_in| code << 1 | u64::from(*is_in));
        self.phase("heal");
        self.machines.trace.note(code);
        self.machines.net.heal(&core);
        self.is_whole = core.iter().all(|is_in| *is_in);
        // Who is drained shall be taken back.
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
        let Machines { now, queue, trace, .. } = &mut self.machines;
        self.workload.restrict(&usable, *now, queue, trace);
    }

    /// Which hosts heal: all, or in some seeds no more than a majority needs. What forgot its data
    /// may need every other member, so there all of them heal.
    fn draw_core(&mut self) -> Vec<bool> {
        let mut core = vec![true; self.machines.hosts.len()];
        let scenario = &self.prepared.scenario;
        let is_fixed = scenario.spares == 0 && scenario.is_one_group();
        let may_shrink = self.durability() == Durability::Sync && is_fixed;
        if !may_shrink || !self.rng.chance_ppm(scenario.liveness.core_ppm) {
            return core;
        }
        let hosts = &self.machines.hosts;
        let mut intact: Vec<HostIndex> =
            (0..hosts.len()).filter(|host| !hosts[*host].is_wiped).collect();
        let majority = usize::from(scenario.replicas()) / 2 + 1;
        while intact.len() > majority {
            let left_out = intact.swap_remove(self.rng.below(intact.len() as u64) as usize);
            core[left_out] = false;
        }
        core
    }
}
