//! The plan of a run: makes its faults happen to a world, and ends them.

use super::World;
use crate::fault::{Fault, Kind, What};
use crate::host::Running;
use crate::queue::{Event, HostIndex, Queue};
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_store::memory::Crash;

/// What happened to a fault of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It has not begun.
    Waiting,
    /// It may not begin: more would be forgotten than the group can bear, or the host is not there.
    Skipped,
    /// It has begun.
    Active,
    /// It has ended.
    Ended,
}

/// How long after it fell silent a host may still be taken for one that is there, and chosen for a
/// group: the change may be under way when it is lost.
const CHOSEN_WITHIN_NS: u64 = 5_000_000_000;

/// The faults of a run and what happened to each.
pub(super) struct Plan {
    faults: Vec<Fault>,
    fates: Vec<Fate>,
    /// When a disk was lost last.
    lost_at: Option<u64>,
    /// Whether all faults have ended, for good.
    pub is_healed: bool,
}

impl Plan {
    pub fn new(faults: Vec<Fault>) -> Plan {
        let fates = vec![Fate::Waiting; faults.len()];
        Plan { faults, fates, lost_at: None, is_healed: false }
    }

    /// Queues the beginning of every fault.
    pub fn enqueue(&self, queue: &mut Queue) {
        for (index, fault) in self.faults.iter().enumerate() {
            queue.push(fault.at_us * 1000, Event::FaultBegins(index));
        }
    }

    /// Whether a disk was lost so lately that a group may still be given its host for a member.
    pub fn has_lost_lately(&self, now: u64) -> bool {
        self.lost_at.is_some_and(|at| now < at + CHOSEN_WITHIN_NS)
    }

    /// How many faults have begun.
    pub fn applied(&self) -> u64 {
        let is_applied = |fate: &&Fate| matches!(fate, Fate::Active | Fate::Ended);
        self.fates.iter().filter(is_applied).count() as u64
    }

    /// How many faults of a kind have begun in a world of this many hosts; of copies, how many
    /// were put back.
    pub fn applied_of(&self, kind: Kind, hosts: usize) -> usize {
        let is_applied = |(fault, fate): &(&Fault, &Fate)| {
            let is_over = **fate == Fate::Ended;
            fault.what.kind(hosts) == kind
                && (is_over || (**fate == Fate::Active && kind != Kind::Restore))
        };
        self.faults.iter().zip(&self.fates).filter(is_applied).count()
    }

    /// The hosts that are being drained.
    pub fn drained(&self) -> Vec<HostIndex> {
        let drained = self.active().filter_map(|what| match what {
            What::Drain { host } | What::Retire { host, .. } => Some(*host),
            _ => None,
        });
        drained.collect()
    }

    /// Another fault follows from one of the plan.
    pub fn add(&mut self, fault: Fault, queue: &mut Queue) {
        queue.push(fault.at_us * 1000, Event::FaultBegins(self.faults.len()));
        self.faults.push(fault);
        self.fates.push(Fate::Waiting);
    }

    /// The faults that have begun and not ended.
    pub fn active(&self) -> impl Iterator<Item = &What> {
        let is_active = |(_, fate): &(&Fault, &Fate)| **fate == Fate::Active;
        self.faults.iter().zip(&self.fates).filter(is_active).map(|(fault, _)| &fault.what)
    }
}

impl World<'_> {
    /// A fault of the plan begins, unless it may not.
    pub(super) fn begin_fault(&mut self, index: usize) {
        let Fault { what, for_us, .. } = self.plan.faults[index].clone();
        let is_allowed = !self.plan.is_healed && self.may_begin(&what);
        let machines = &mut self.machines;
        machines.event(91, (index as u64) << 1 | u64::from(is_allowed));
        let note = if is_allowed { "" } else { " (skipped)" };
        machines.line(format_args!("-- {what}{note}"));
        if !is_allowed {
            self.plan.fates[index] = Fate::Skipped;
            return;
        }
        machines.after(for_us * 1000, Event::FaultEnds(index));
        self.plan.fates[index] = Fate::Active;
        if !matches!(what, What::Restore { .. }) {
            // Of that the copy is made now, and put back in the end.
            self.lose_copies(&what);
        }
        let (is_memory, is_lazy) = (self.is_any_in_memory(), !self.are_all_synced());
        let machines = &mut self.machines;
        match &what {
            What::Kill { host } => self.take_down(*host, Crash::ProcessKill, is_memory),
            What::Power { hosts } => {
                hosts.iter().for_each(|host| self.take_down(*host, Crash::PowerLoss, is_lazy));
            }
            What::Pause { host } => {
                machines.hosts[*host].pauses += 1;
                machines.hosts[*host].running = Running::Paused;
            }
            What::SlowDisk { host, factor } => machines.hosts[*host].disk.slow_down(*factor),
            What::Restore { host } => machines.hosts[*host].keep_copy(),
            What::ClockJump { host, by_ms } => machines.hosts[*host].clock.jump(*by_ms),
            What::Delay { from, to } => machines.net.hold_next(*from, *to, for_us * 1000),
            What::Loss { ppm } => machines.net.change_loss(i64::from(*ppm)),
            What::Duplicate { ppm } => machines.net.change_duplication(i64::from(*ppm)),
            What::OneWay { .. } | What::Partial { .. } | What::Partition { .. } => {
                let links = what.links(machines.hosts.len());
                links.into_iter().for_each(|(from, to)| machines.net.cut(from, to));
            }
            // See [`World::on_begin`].
            What::FailSync { .. }
            | What::Wipe { .. }
            | What::Drain { .. }
            | What::Retire { .. }
            | What::Remove { .. }
            | What::Shutdown { .. } => {}
        }
        self.on_begin(&what);
    }

    /// A fault of the plan ends.
    pub(super) fn end_fault(&mut self, index: usize) {
        self.machines.event(92, index as u64);
        let plan = &mut self.plan;
        if plan.is_healed || plan.fates[index] != Fate::Active {
            return;
        }
        plan.fates[index] = Fate::Ended;
        let what = plan.faults[index].what.clone();
        let machines = &mut self.machines;
        machines.line(format_args!("++ {what}"));
        match &what {
            What::Kill { host } | What::Wipe { host } => self.release(*host),
            What::Power { hosts } => hosts.iter().for_each(|host| self.release(*host)),
            What::Pause { host } => {
                machines.hosts[*host].pauses -= 1;
                if machines.hosts[*host].pauses == 0 {
                    self.resume(*host);
                }
            }
            What::SlowDisk { host, .. } => machines.hosts[*host].disk.slow_down(1),
            What::Loss { ppm } => machines.net.change_loss(-i64::from(*ppm)),
            What::Duplicate { ppm } => machines.net.change_duplication(-i64::from(*ppm)),
            What::OneWay { .. } | What::Partial { .. } | What::Partition { .. } => {
                let links = what.links(machines.hosts.len());
                links.into_iter().for_each(|(from, to)| machines.net.mend(from, to));
            }
            What::ClockJump { .. }
            | What::Delay { .. }
            | What::FailSync { .. }
            | What::Drain { .. }
            | What::Retire { .. }
            | What::Remove { .. }
            | What::Restore { .. }
            | What::Shutdown { .. } => {}
        }
        if !self.on_end(&what) {
            self.plan.fates[index] = Fate::Skipped;
        }
    }

    /// One fault more keeps a host down.
    pub(super) fn take_down(&mut self, host: HostIndex, crash: Crash, is_lossy: bool) {
        self.machines.hosts[host].downs += 1;
        self.stop_host(host, crash, is_lossy);
    }

    /// One fault less keeps a host down.
    pub(super) fn release(&mut self, host: HostIndex) {
        let target = &mut self.machines.hosts[host];
        target.downs -= 1;
        if target.downs == 0 {
            self.start_host(host);
        }
    }

    /// A host loses its disk with everything on it. It comes back as another node.
    pub(super) fn lose_disk(&mut self, host: HostIndex, node: NodeId) {
        self.take_down(host, Crash::PowerLoss, true);
        self.come_back_as(host, node);
    }

    /// Only where it is planted: where there is one copy of each key, another host loses as much as
    /// one that fails, and no judge is told.
    pub(super) fn lose_more(&mut self, what: &What) {
        let (host, crash, is_disk) = match what {
            What::Wipe { host } if mutant!("disk_takes_another") => (*host, Crash::PowerLoss, true),
            What::Kill { host } if mutant!("process_takes_another") => {
                (*host, Crash::ProcessKill, false)
            }
            What::Power { hosts } if hosts.len() == 1 && mutant!("power_takes_another") => {
                (hosts[0], Crash::PowerLoss, false)
            }
            _ => return,
        };
        let mut keyspaces = self.tenants.iter().map(|tenant| tenant.keyspace);
        let has_one = keyspaces.all(|it| it.engine.is_none() || it.copies == 1);
        let other = (host + 1) % self.machines.hosts.len();
        if has_one && self.machines.hosts[other].running == Running::Up {
            let is_lossy = is_disk || !self.are_all_synced();
            self.take_down(other, crash, is_lossy);
            if is_disk {
                self.machines.hosts[other].disk.wipe();
            }
            self.release(other);
        }
    }

    /// Only where it is planted: all hosts that run but one lose what is in memory.
    pub(super) fn forget_most(&mut self) {
        let up: Vec<HostIndex> = self.up().skip(1).collect();
        for host in up {
            self.take_down(host, Crash::ProcessKill, true);
            self.release(host);
        }
    }

    /// A host that is down comes back as another node, with an empty disk.
    pub(super) fn come_back_as(&mut self, host: HostIndex, node: NodeId) {
        let machines = &mut self.machines;
        machines.hosts[host].wipe(node);
        machines.directory.insert(node, host);
        self.plan.lost_at = Some(machines.now);
    }

    /// Continues a host's process if it is stopped.
    pub(super) fn resume(&mut self, host: HostIndex) {
        let target = &mut self.machines.hosts[host];
        if target.running != Running::Paused {
            return;
        }
        target.resume();
        let life = target.life;
        for event in std::mem::take(&mut target.stalled) {
            self.on_disk(host, life, event);
        }
        self.turn(host);
    }

    /// Nothing keeps a host down, stopped or slow any more.
    pub(super) fn revive(&mut self, host: HostIndex) {
        let target = &mut self.machines.hosts[host];
        (target.downs, target.pauses) = (0, 0);
        target.disk.slow_down(1);
        if target.running == Running::Down && target.has_joined {
            self.start_host(host);
        }
        self.resume(host);
    }
}
