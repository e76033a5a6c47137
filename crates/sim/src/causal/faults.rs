//! Faults, and the catalog that replaces hosts.

use super::World;
use super::rest::count;
use crate::fault::What;
use crate::host::{LANE, Running};
use crate::membership::NOBODY;
use crate::queue::{Event, HostIndex};
use crate::turns::Turns;
use crate::world::Fate;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Control;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_node::pump::Input;
use quorate_store::memory::Crash;

/// The longest time until a host hears from the catalog, if it does at all.
const NEWS_NS: u64 = 3_000_000_000;

impl World<'_> {
    /// A fault of the plan begins, unless it may not.
    pub(super) fn begin_fault(&mut self, index: usize) {
        let fault = self.plan[index].clone();
        let is_allowed = !self.is_healed && self.may_begin(&fault.what);
        self.machines.trace.event(
            self.machines.now,
            91,
            (index as u64) << 1 | u64::from(is_allowed),
        );
        let note = if is_allowed { "" } else { " (skipped)" };
        self.machines.trace.line(self.machines.now, format_args!("-- {}{note}", fault.what));
        if !is_allowed {
            self.fates[index] = Fate::Skipped;
            return;
        }
        self.fates[index] = Fate::Active;
        self.machines.queue.push(self.machines.now + fault.for_us * 1000, Event::FaultEnds(index));
        let is_memory = self.durability() == Durability::Memory;
        match fault.what {
            What::Kill { host } => self.take_down(host, Crash::ProcessKill, is_memory),
            What::Power { hosts } => {
                let is_lazy = self.durability() != Durability::Sync;
                hosts.iter().for_each(|host| self.take_down(*host, Crash::PowerLoss, is_lazy));
            }
            What::Wipe { host } => self.wipe(host),
            What::Drain { host } => self.hand_over(host),
            What::Pause { host } => {
                self.machines.hosts[host].pauses += 1;
                self.machines.hosts[host].running = Running::Paused;
            }
            What::SlowDisk { host, factor } => self.machines.hosts[host].disk.slow_down(factor),
            What::ClockJump { host, by_ms } => self.machines.hosts[host].clock.jump(by_ms),
            What::Delay { from, to } => self.machines.net.hold_next(from, to, fault.for_us * 1000),
            What::Loss { ppm } => self.machines.net.change_loss(i64::from(ppm)),
            What::Duplicate { ppm } => self.machines.net.change_duplication(i64::from(ppm)),
            what => {
                let links = what.links(self.machines.hosts.len());
                links.into_iter().for_each(|(from, to)| self.machines.net.cut(from, to));
            }
        }
    }

    /// A fault of the plan ends.
    pub(super) fn end_fault(&mut self, index: usize) {
        self.machines.trace.event(self.machines.now, 92, index as u64);
        if self.is_healed || self.fates[index] != Fate::Active {
            return;
        }
        self.fates[index] = Fate::Ended;
        let what = self.plan[index].what.clone();
        self.machines.trace.line(self.machines.now, format_args!("++ {what}"));
        match what {
            What::Kill { host } | What::Wipe { host } => self.release(host),
            What::Power { hosts } => hosts.iter().for_each(|host| self.release(*host)),
            What::Pause { host } => {
                self.machines.hosts[host].pauses -= 1;
                if self.machines.hosts[host].pauses == 0 {
                    self.resume(host);
                }
            }
            What::SlowDisk { host, .. } => self.machines.hosts[host].disk.slow_down(1),
            What::ClockJump { .. } | What::Delay { .. } | What::Drain { .. } => {}
            What::Loss { ppm } => self.machines.net.change_loss(-i64::from(ppm)),
            What::Duplicate { ppm } => self.machines.net.change_duplication(-i64::from(ppm)),
            what => {
                let links = what.links(self.machines.hosts.len());
                links.into_iter().for_each(|(from, to)| self.machines.net.mend(from, to));
            }
        }
    }

    fn durability(&self) -> Durability {
        self.prepared.scenario.durability()
    }

    /// Whether a fault makes sense now, and takes no copy that may be the last one: what was
    /// acknowledged on `w` hosts bears the loss of one, and of the next when that was made up for.
    fn may_begin(&self, what: &What) -> bool {
        let is_up = |host: HostIndex| self.machines.hosts[host].running == Running::Up;
        let is_down = |host: HostIndex| self.machines.hosts[host].running == Running::Down;
        let durability = self.durability();
        match what {
            What::Kill { host } => {
                !is_down(*host) && (durability != Durability::Memory || self.is_whole())
            }
            What::Power { hosts } => {
                let is_sync = durability == Durability::Sync;
                is_sync || (hosts.len() == 1 && self.is_whole())
            }
            What::Wipe { .. } => self.is_whole(),
            What::Drain { host } => is_up(*host) && self.have_joined() && self.spare().is_some(),
            What::Pause { host } => !is_down(*host),
            What::FailSync { .. } | What::Remove { .. } => false,
            _ => true,
        }
    }

    /// Whether every host is up, and nobody copies, hands over, or has forgotten.
    fn is_whole(&self) -> bool {
        self.section.w > 1
            && self.machines.hosts.iter().all(|host| {
                host.running == Running::Up
                    && !host.has_forgotten
                    && count(host, "joining") + count(host, "leaving") == 0
            })
            && self.is_known()
    }

    /// Whether every host that holds something holds it by the newest map.
    pub(super) fn is_known(&self) -> bool {
        self.machines.hosts.iter().all(|host| {
            let held = self.map.positions_of(host.node_id).count() as u64;
            held == count(host, "replicas") && (held == 0 || count(host, "map") == self.map.version)
        })
    }

    /// Whether all who hold something by the newest map have copied it. A catalog must wait for
    /// that: if all replicas of a key went to newcomers at once, these would copy from each other,
    /// and the former ones hand over only what they believe somebody lacks.
    fn have_joined(&self) -> bool {
        self.machines.hosts.iter().all(|host| {
            let held = self.map.positions_of(host.node_id).count() as u64;
            let has_it = count(host, "replicas") == held && count(host, "joining") == 0;
            held == 0 || (has_it && count(host, "map") == self.map.version)
        })
    }

    /// A host that is up and holds nothing.
    fn spare(&self) -> Option<HostIndex> {
        let holds = |node: NodeId| self.map.positions_of(node).next().is_some();
        (0..self.machines.hosts.len()).find(|host| {
            let host = &self.machines.hosts[*host];
            let is_idle = count(host, "leaving") == 0 && !self.map.is_gone(host.node_id);
            host.running == Running::Up && !holds(host.node_id) && is_idle
        })
    }

    /// A host's disk is lost. It comes back as another node, which the catalog puts in the place
    /// of the former one.
    fn wipe(&mut self, host: HostIndex) {
        self.take_down(host, Crash::PowerLoss, true);
        let (out, into) = (self.machines.hosts[host].node_id, NodeId(self.rng.next()));
        self.machines.hosts[host].wipe(into);
        self.machines.directory.push((into, host));
        self.decree(out, into, true, host);
    }

    /// A spare gets all that a host holds; the host goes on until it hears of that.
    fn hand_over(&mut self, host: HostIndex) {
        let Some(spare) = self.spare() else { return };
        let (out, into) = (self.machines.hosts[host].node_id, self.machines.hosts[spare].node_id);
        if self.map.positions_of(out).next().is_some() {
            self.decree(out, into, false, spare);
        }
    }

    fn decree(&mut self, out: NodeId, into: NodeId, gone: bool, first: HostIndex) {
        self.map = self.map.replaced(out, into, gone);
        self.replaced += 1;
        let version = self.map.version;
        self.machines
            .trace
            .line(self.machines.now, format_args!("** map {version}: {out} is replaced by {into}"));
        self.machines.queue.push(self.machines.now, Event::Join(first));
        for host in 0..self.machines.hosts.len() {
            if host != first && self.rng.chance_ppm(500_000) {
                self.machines
                    .queue
                    .push(self.machines.now + self.rng.below(NEWS_NS), Event::Join(host));
            }
        }
    }

    /// The catalog tells a host the newest map.
    pub(super) fn place(&mut self, host: HostIndex) {
        let map = postcard::to_allocvec(&self.map).expect("plain data always serializes");
        let control = Control::Place { map: map.into() };
        let deadline = Time(u64::MAX);
        self.arrive(host, Input::Control { lane: LANE, ticket: NOBODY, control, deadline });
    }

    /// Another host is replaced, as often as the scenario says.
    pub(super) fn churn(&mut self) {
        if self.is_healed {
            return;
        }
        self.machines
            .queue
            .push(self.machines.now + self.section.churn_ms * 1_000_000, Event::Watch);
        let holders: Vec<HostIndex> = (0..self.machines.hosts.len())
            .filter(|host| {
                self.map.positions_of(self.machines.hosts[*host].node_id).next().is_some()
            })
            .collect();
        if self.is_whole() && !holders.is_empty() {
            let host = holders[self.rng.below(holders.len() as u64) as usize];
            self.wipe(host);
            self.release(host);
        }
    }

    fn take_down(&mut self, host: HostIndex, crash: Crash, is_lossy: bool) {
        self.machines.hosts[host].downs += 1;
        self.stop_host(host, crash, is_lossy);
    }

    /// One fault less keeps a host down.
    fn release(&mut self, host: HostIndex) {
        self.machines.hosts[host].downs -= 1;
        if self.machines.hosts[host].downs == 0 {
            self.start_host(host);
        }
    }

    fn resume(&mut self, host: HostIndex) {
        if self.machines.hosts[host].running != Running::Paused {
            return;
        }
        self.machines.hosts[host].resume();
        let life = self.machines.hosts[host].life;
        for event in std::mem::take(&mut self.machines.hosts[host].stalled) {
            self.on_disk(host, life, event);
        }
        self.turn(host);
    }

    /// All faults end.
    pub(super) fn heal(&mut self) {
        self.is_healed = true;
        self.machines.trace.event(self.machines.now, 90, 0);
        self.machines.trace.line(self.machines.now, format_args!("** heal"));
        self.machines.net.heal(&vec![true; self.machines.hosts.len()]);
        for host in 0..self.machines.hosts.len() {
            self.machines.hosts[host].downs = 0;
            self.machines.hosts[host].pauses = 0;
            self.machines.hosts[host].disk.slow_down(1);
            if self.machines.hosts[host].running == Running::Down {
                self.start_host(host);
            }
            self.resume(host);
            self.machines.queue.push(self.machines.now, Event::Join(host));
        }
    }
}
