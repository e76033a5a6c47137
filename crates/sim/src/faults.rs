//! Makes faults happen to the world, and ends them.

use crate::fault::What;
use crate::host::Running;
use crate::queue::{Event, HostIndex};
use crate::world::{Fate, World};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::NodeId;
use quorate_kernel::storage::Durability;
use quorate_store::memory::Crash;

impl World<'_> {
    /// A fault of the plan begins, unless it may not.
    pub(crate) fn begin_fault(&mut self, index: usize) {
        let fault = self.plan[index].clone();
        let is_allowed = !self.is_healed && self.may_begin(&fault.what);
        self.trace.event(self.now, 91, (index as u64) << 1 | u64::from(is_allowed));
        let note = if is_allowed { "" } else { " (skipped)" };
        self.trace.line(self.now, format_args!("-- {}{note}", fault.what));
        if !is_allowed {
            self.fates[index] = Fate::Skipped;
            return;
        }
        self.fates[index] = Fate::Active;
        self.queue.push(self.now + fault.for_us * 1000, Event::FaultEnds(index));
        let is_memory = self.durability() == Durability::Memory;
        let is_lazy = self.durability() != Durability::Sync;
        match fault.what {
            What::Kill { host } => self.take_down(host, Crash::ProcessKill, is_memory),
            What::Power { hosts } => {
                hosts.iter().for_each(|host| self.take_down(*host, Crash::PowerLoss, is_lazy));
                if self.is_blackout(&hosts) {
                    self.begin_epoch();
                }
            }
            What::Wipe { host } => {
                self.take_down(host, Crash::PowerLoss, true);
                let node = NodeId(self.rng.next());
                self.hosts[host].wipe(node);
                self.directory.push((node, host));
            }
            What::Pause { host } => {
                self.hosts[host].pauses += 1;
                self.hosts[host].running = Running::Paused;
            }
            What::FailSync { host } => {
                self.hosts[host].is_sync_failing = true;
                self.hosts[host].disk.store().fail_next_sync();
            }
            What::Drain { host } => self.drain(host, false),
            What::Remove { host } => self.remove_wiped(host),
            What::SlowDisk { host, factor } => self.hosts[host].disk.slow_down(factor),
            What::ClockJump { host, by_ms } => self.hosts[host].clock.jump(by_ms),
            What::Delay { from, to } => self.net.hold_next(from, to, fault.for_us * 1000),
            What::Loss { ppm } => self.net.change_loss(i64::from(ppm)),
            What::Duplicate { ppm } => self.net.change_duplication(i64::from(ppm)),
            what => self.links(&what).into_iter().for_each(|(from, to)| self.net.cut(from, to)),
        }
    }

    /// A fault of the plan ends.
    pub(crate) fn end_fault(&mut self, index: usize) {
        self.trace.event(self.now, 92, index as u64);
        if self.is_healed || self.fates[index] != Fate::Active {
            return;
        }
        self.fates[index] = Fate::Ended;
        let what = self.plan[index].what.clone();
        self.trace.line(self.now, format_args!("++ {what}"));
        match what {
            What::Kill { host } | What::Wipe { host } => self.release(host),
            What::Power { hosts } => hosts.iter().for_each(|host| self.release(*host)),
            What::Pause { host } => {
                self.hosts[host].pauses -= 1;
                if self.hosts[host].pauses == 0 {
                    self.resume(host);
                }
            }
            What::FailSync { host } => self.end_failing_sync(host),
            What::Drain { host } => self.drain(host, true),
            What::SlowDisk { host, .. } => self.hosts[host].disk.slow_down(1),
            What::ClockJump { .. } | What::Delay { .. } | What::Remove { .. } => {}
            What::Loss { ppm } => self.net.change_loss(-i64::from(ppm)),
            What::Duplicate { ppm } => self.net.change_duplication(-i64::from(ppm)),
            what => self.links(&what).into_iter().for_each(|(from, to)| self.net.mend(from, to)),
        }
    }

    /// The links that a fault cuts.
    fn links(&self, what: &What) -> Vec<(HostIndex, HostIndex)> {
        match what {
            What::OneWay { from, to } => vec![(*from, *to)],
            What::Partial { one, other } => vec![(*one, *other), (*other, *one)],
            What::Partition { side } => {
                let hosts = 0..self.hosts.len();
                let pairs = hosts.clone().flat_map(|from| hosts.clone().map(move |to| (from, to)));
                pairs.filter(|(from, to)| side.contains(from) != side.contains(to)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn durability(&self) -> Durability {
        self.prepared.scenario.durability()
    }

    /// Whether a fault makes sense now, and leaves a majority that has forgotten nothing. Without
    /// such a majority acknowledged data is gone, which no protocol can mend.
    fn may_begin(&self, what: &What) -> bool {
        let is_down = |host: HostIndex| {
            self.hosts[host].running == Running::Down && self.hosts[host].has_joined
        };
        if self.targets(what).iter().any(|host| !self.hosts[*host].has_joined) {
            return false;
        }
        match what {
            What::Kill { host } => {
                let is_memory = self.durability() == Durability::Memory;
                !is_down(*host) && (!is_memory || self.may_forget(&[*host]))
            }
            What::Power { hosts } => {
                let is_sync = self.durability() == Durability::Sync;
                is_sync || self.is_blackout(hosts) || self.may_forget(hosts)
            }
            What::FailSync { host } => {
                let is_sync = self.durability() == Durability::Sync;
                !is_down(*host) && (is_sync || self.may_forget(&[*host]))
            }
            What::Wipe { host } => {
                let is_first = !self.hosts[*host].is_wiped && self.may_forget(&[*host]);
                is_first && self.may_lose(*host)
            }
            What::Pause { host } => !is_down(*host),
            What::Remove { host } => {
                self.hosts[*host].running == Running::Up
                    && self.hosts.iter().any(|host| !host.lost.is_empty())
            }
            _ => true,
        }
    }

    /// The hosts whose processes or directories a fault concerns.
    fn targets(&self, what: &What) -> Vec<HostIndex> {
        match what {
            What::Kill { host }
            | What::Pause { host }
            | What::FailSync { host }
            | What::Drain { host }
            | What::Remove { host }
            | What::Wipe { host } => vec![*host],
            What::Power { hosts } => hosts.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether a loss of power takes everything that was ever written: all hosts at one moment, and
    /// nothing on their disks. That is what `memory` promises, so no judge may ask for it any more.
    fn is_blackout(&self, targets: &[HostIndex]) -> bool {
        self.durability() == Durability::Memory && targets.len() == self.hosts.len()
    }

    /// Begins a history of its own, from nothing. Frames do not outlive all machines, so what was
    /// under way cannot come back either.
    fn begin_epoch(&mut self) {
        self.phase("everything is lost");
        self.queue.lose_frames();
        self.workload.begin_epoch();
    }

    fn may_forget(&self, targets: &[HostIndex]) -> bool {
        let forgets = |host: &HostIndex| {
            let host_state = &self.hosts[*host];
            // A host whose next sync fails will have forgotten when it is back.
            let is_failing = host_state.is_sync_failing && self.durability() != Durability::Sync;
            targets.contains(host) || host_state.has_forgotten || host_state.is_wiped || is_failing
        };
        let count = (0..self.hosts.len()).filter(forgets).count();
        let replicas = usize::from(self.prepared.scenario.replicas());
        count <= replicas - (replicas / 2 + 1)
    }

    fn take_down(&mut self, host: HostIndex, crash: Crash, is_lossy: bool) {
        self.hosts[host].downs += 1;
        self.stop_host(host, crash, is_lossy);
    }

    fn stop_host(&mut self, host: HostIndex, crash: Crash, is_lossy: bool) {
        self.hosts[host].stop(crash, is_lossy);
        self.trace.line(self.now, format_args!("n{} is gone", host + 1));
        self.workload.on_host_stopped(host, self.now, &mut self.queue, &mut self.trace);
    }

    /// One fault less keeps a host down.
    fn release(&mut self, host: HostIndex) {
        self.hosts[host].downs -= 1;
        if self.hosts[host].downs == 0 {
            self.start_host(host);
        }
    }

    fn resume(&mut self, host: HostIndex) {
        if self.hosts[host].running != Running::Paused {
            return;
        }
        self.hosts[host].resume();
        let life = self.hosts[host].life;
        for event in std::mem::take(&mut self.hosts[host].stalled) {
            self.disk_event(host, life, event);
        }
        self.turn(host);
    }

    /// A host's disk failed: if a fault asked for it the host stops, as it must.
    pub(crate) fn on_disk_failure(&mut self, host: HostIndex, fatal: &Fatal) {
        if !self.hosts[host].is_sync_failing {
            return self.condemn("fatal", format!("n{}: {fatal}", host + 1));
        }
        self.hosts[host].is_stopped_by_disk = true;
        self.take_down(host, Crash::ProcessKill, self.durability() != Durability::Sync);
    }

    /// Gives a host a disk that syncs again. If no sync was due while it failed, the process is
    /// killed and started again, because a disk like this one is replaced.
    fn end_failing_sync(&mut self, host: HostIndex) {
        if self.hosts[host].is_stopped_by_disk {
            self.hosts[host].is_stopped_by_disk = false;
            return self.release(host);
        }
        if self.hosts[host].is_sync_failing && self.hosts[host].running != Running::Down {
            let is_memory = self.durability() == Durability::Memory;
            self.stop_host(host, Crash::ProcessKill, is_memory);
            self.start_host(host);
        }
    }

    /// All faults end, for every host or for a majority of the members.
    pub(crate) fn heal(&mut self) {
        self.is_healed = true;
        let core = self.draw_core();
        let code = core.iter().fold(0, |code, is_in| code << 1 | u64::from(*is_in));
        self.phase("heal");
        self.trace.note(code);
        self.net.heal(&core);
        self.is_whole = core.iter().all(|is_in| *is_in);
        // Who is drained shall be taken back.
        for (index, fault) in self.plan.clone().iter().enumerate() {
            if let What::Drain { host } = fault.what
                && self.fates[index] == Fate::Active
                && core[host]
            {
                self.drain(host, true);
            }
        }
        let is_usable = |host: HostIndex| core[host] && self.hosts[host].has_joined;
        let usable: Vec<bool> = (0..self.hosts.len()).map(is_usable).collect();
        for host in (0..self.hosts.len()).filter(|host| core[*host]) {
            self.hosts[host].downs = 0;
            self.hosts[host].pauses = 0;
            self.hosts[host].disk.slow_down(1);
            self.end_failing_sync_for_good(host);
            if self.hosts[host].running == Running::Down && self.hosts[host].has_joined {
                self.start_host(host);
            }
            self.resume(host);
        }
        self.workload.restrict(&usable, self.now, &mut self.queue, &mut self.trace);
    }

    fn end_failing_sync_for_good(&mut self, host: HostIndex) {
        if self.hosts[host].is_sync_failing && self.hosts[host].running != Running::Down {
            let is_memory = self.durability() == Durability::Memory;
            self.stop_host(host, Crash::ProcessKill, is_memory);
        }
    }

    /// Which hosts heal: all, or in some seeds no more than a majority needs. What forgot its data
    /// may need every other member, so there all of them heal.
    fn draw_core(&mut self) -> Vec<bool> {
        let mut core = vec![true; self.hosts.len()];
        let scenario = &self.prepared.scenario;
        let is_fixed = scenario.spares == 0 && scenario.is_one_group();
        let may_shrink = self.durability() == Durability::Sync && is_fixed;
        if !may_shrink || !self.rng.chance_ppm(scenario.liveness.core_ppm) {
            return core;
        }
        let mut intact: Vec<HostIndex> =
            (0..self.hosts.len()).filter(|host| !self.hosts[*host].is_wiped).collect();
        let majority = usize::from(scenario.replicas()) / 2 + 1;
        while intact.len() > majority {
            let left_out = intact.swap_remove(self.rng.below(intact.len() as u64) as usize);
            core[left_out] = false;
        }
        core
    }
}
