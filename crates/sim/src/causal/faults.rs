//! Faults, and the catalog that replaces hosts.

use super::World;
use super::rest::count;
use crate::fault::What;
use crate::host::{Host, LANE, Running};
use crate::membership::NOBODY;
use crate::plan::{Faults, Plan};
use crate::queue::{Event, HostIndex};
use crate::turns::Turns;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Tenure;
use quorate_kernel::operation::Control;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_node::pump::Input;

/// The longest time until a host hears from the catalog, if it does at all.
const NEWS_NS: u64 = 3_000_000_000;

impl Faults for World<'_> {
    fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    fn durability(&self) -> Durability {
        self.prepared.scenario.durability()
    }

    /// It must take no copy that may be the last one: what was acknowledged on `w` hosts bears the
    /// loss of one, and of the next when that was made up for. A loss of power takes little from a
    /// `periodic` host, which the judge knows.
    fn may_begin(&self, what: &What) -> bool {
        let is_up = |host: HostIndex| self.machines.hosts[host].running == Running::Up;
        let is_down = |host: HostIndex| self.machines.hosts[host].running == Running::Down;
        let durability = self.durability();
        match what {
            What::Kill { host } => {
                let is_borne = || self.is_whole() || self.has_left(*host);
                !is_down(*host) && (durability != Durability::Memory || is_borne())
            }
            What::Power { hosts } => {
                durability != Durability::Memory || (hosts.len() == 1 && self.is_whole())
            }
            What::Wipe { .. } => self.is_whole(),
            What::Drain { host } => is_up(*host) && self.have_joined() && self.spare().is_some(),
            What::Pause { host } => !is_down(*host),
            What::FailSync { .. }
            | What::Remove { .. }
            | What::Restore { .. }
            | What::Shutdown { .. } => false,
            _ => true,
        }
    }

    fn on_begin(&mut self, what: &What) {
        match what {
            What::Power { hosts } => self.doubt(hosts),
            What::Wipe { host } => self.wipe(*host),
            What::Drain { host } => self.hand_over(*host),
            _ => {}
        }
    }

    fn on_end(&mut self, _what: &What) {}
}

impl World<'_> {
    /// Whether every host is up and says that it is ready, and nobody copies for the first time or
    /// hands over. Whether who has forgotten still copies is for the host to say.
    fn is_whole(&self) -> bool {
        let mut hosts = self.machines.hosts.iter();
        self.is_any_borne()
            && !self.is_moving
            && hosts.all(|host| count(host, LANE, "leaving") == 0)
            && self.is_known()
    }

    /// Whether a host is lost without harm that every other one can make up for.
    fn is_any_borne(&self) -> bool {
        let is_ready = |host: &Host| host.running == Running::Up && !host.has_forgotten;
        self.section.w > 1 && self.machines.hosts.iter().all(is_ready)
    }

    /// Whether a host has nothing any more but what it has still to hand over.
    fn has_left(&self, host: HostIndex) -> bool {
        let node = self.machines.hosts[host].node_id;
        self.is_any_borne()
            && self.map.positions_of(node).next().is_none()
            && count(&self.machines.hosts[host], LANE, "leaving") > 0
    }

    /// Notes that all have copied what they were given, if so, and who has handed over all it had.
    /// The latter changes the record, so that has a new number: of two with the same a host keeps
    /// the first.
    pub(super) fn note_moved(&mut self) {
        self.is_moving &= !self.have_joined();
        let placed = self.placed;
        let hosts = &self.machines.hosts;
        let is_over = |tenure: &Tenure| {
            let mut its = hosts.iter().filter(|host| host.node_id == tenure.node);
            its.any(|host| {
                host.running == Running::Up
                    && count(host, LANE, "map") >= placed
                    && count(host, LANE, "leaving") == 0
            })
        };
        let before = self.former.len();
        self.former.retain(|tenure| !is_over(tenure));
        if self.former.len() < before {
            self.map.version += 1;
            self.spread();
        }
    }

    /// Somebody has handed over. All wait for that news before they close what is gone; who copies
    /// from former holders, before it joins.
    fn spread(&mut self) {
        let is_for_all = self.plan.is_healed || self.shape.replicas == 1;
        for host in 0..self.machines.hosts.len() {
            if is_for_all {
                self.machines.after(NEWS_NS / 10, Event::Join(host));
            } else if self.rng.chance_ppm(500_000) {
                self.machines.after(self.rng.below(NEWS_NS), Event::Join(host));
            }
        }
    }

    /// Hosts have lost power, and so what they wrote after their last syncs. What was acknowledged
    /// since may be gone, unless a copy is certain to be elsewhere. Anything else must be there.
    fn doubt(&mut self, hosts: &[HostIndex]) {
        let mut others = self.machines.hosts.iter().enumerate();
        let has_copies = |host: &Host| host.running == Running::Up && !host.has_forgotten;
        let is_elsewhere = hosts.len() < usize::from(self.section.w)
            && !self.is_moving
            && others.all(|(index, host)| hosts.contains(&index) || has_copies(host));
        let lost = hosts.iter().map(|host| self.machines.hosts[*host].disk.survives_until());
        let since = lost.min().filter(|_| self.durability().every().is_some() && !is_elsewhere);
        if let Some(since) = since {
            self.clients.doubt(since);
        }
    }

    /// Whether every host that holds something holds it by the newest map that moved anything.
    pub(super) fn is_known(&self) -> bool {
        self.machines.hosts.iter().all(|host| {
            let held = self.map.positions_of(host.node_id).count() as u64;
            held == count(host, LANE, "replicas")
                && (held == 0 || count(host, LANE, "map") >= self.placed)
        })
    }

    /// Whether all who hold something by the newest such map have copied it. A catalog must wait
    /// for that: if all replicas of a key went to newcomers at once, these would copy from each
    /// other, and the former ones hand over only what they believe somebody lacks.
    fn have_joined(&self) -> bool {
        self.machines.hosts.iter().all(|host| {
            let held = self.map.positions_of(host.node_id).count() as u64;
            let has_it = count(host, LANE, "replicas") == held && count(host, LANE, "joining") == 0;
            held == 0 || (has_it && count(host, LANE, "map") >= self.placed)
        })
    }

    /// A host that is up and holds nothing.
    fn spare(&self) -> Option<HostIndex> {
        let holds = |node: NodeId| self.map.positions_of(node).next().is_some();
        self.machines.hosts.iter().position(|host| {
            let is_idle = count(host, LANE, "leaving") == 0 && !self.map.is_gone(host.node_id);
            host.running == Running::Up && !holds(host.node_id) && is_idle
        })
    }

    /// A host's disk is lost. It comes back as another node, which the catalog puts in the place
    /// of the former one.
    fn wipe(&mut self, host: HostIndex) {
        let (out, into) = (self.machines.hosts[host].node_id, NodeId(self.rng.next()));
        self.lose_disk(host, into);
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
        let held = self.map.positions_of(out).filter_map(|at| {
            let since = self.map.place(at)?.since;
            Some(Tenure { position: u32::from(at.0), since, node: out })
        });
        self.former.extend(held);
        self.former.retain(|tenure| !(gone && tenure.node == out));
        self.is_moving = true;
        self.map = self.map.replaced(out, into, gone);
        self.replaced += 1;
        let version = self.map.version;
        self.placed = version;
        self.machines.line(format_args!("** map {version}: {out} is replaced by {into}"));
        self.machines.after(0, Event::Join(first));
        for host in 0..self.machines.hosts.len() {
            if host != first && self.rng.chance_ppm(500_000) {
                self.machines.after(self.rng.below(NEWS_NS), Event::Join(host));
            }
        }
    }

    /// The catalog tells a host the newest map.
    pub(super) fn place(&mut self, host: HostIndex) {
        let mut map = postcard::to_allocvec(&self.map).expect("plain data always serializes");
        map.extend(postcard::to_allocvec(&self.former).expect("plain data always serializes"));
        let control = Control::Place { map: map.into() };
        let deadline = Time(u64::MAX);
        self.arrive(host, Input::Control { lane: LANE, ticket: NOBODY, control, deadline });
    }

    /// Another host is replaced, as often as the scenario says.
    pub(super) fn churn(&mut self) {
        if self.plan.is_healed {
            return;
        }
        self.machines.after(self.section.churn_ms * 1_000_000, Event::Watch);
        self.note_moved();
        let hosts = self.machines.hosts.iter().enumerate();
        let holds = |host: &Host| self.map.positions_of(host.node_id).next().is_some();
        let holders: Vec<HostIndex> =
            hosts.filter(|(_, host)| holds(host)).map(|(index, _)| index).collect();
        if self.is_whole() && !holders.is_empty() {
            let host = holders[self.rng.below(holders.len() as u64) as usize];
            self.wipe(host);
            self.release(host);
        }
    }

    /// All faults end.
    pub(super) fn heal(&mut self) {
        self.plan.is_healed = true;
        self.machines.event(90, 0);
        self.machines.line(format_args!("** heal"));
        self.machines.net.heal(&vec![true; self.machines.hosts.len()]);
        for host in 0..self.machines.hosts.len() {
            self.revive(host);
            self.machines.after(0, Event::Join(host));
        }
    }
}
