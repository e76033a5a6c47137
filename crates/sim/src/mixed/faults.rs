//! Which faults both keyspaces and the system group bear, and what is special about some.

use super::World;
use crate::fault::What;
use crate::host::{Host, Running};
use crate::operators::Operators;
use crate::plan::{Faults, Plan};
use crate::queue::HostIndex;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::storage::Durability;

impl Faults for World<'_> {
    fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// That of the keyspace of siblings: registers are `sync`, as the catalog is.
    fn durability(&self) -> Durability {
        self.section.durability()
    }

    /// A disk may be lost while all is whole and what a former one held was made up for; so may
    /// what is in memory alone. A loss of power takes little from a `periodic` host, as the judge
    /// knows.
    fn may_begin(&self, what: &What) -> bool {
        let hosts = &self.machines.hosts;
        let is_memory = self.durability() == Durability::Memory;
        let is_down = |host: HostIndex| hosts[host].running == Running::Down;
        let has_joined = |host: HostIndex| hosts[host].has_joined;
        match what {
            What::Kill { host } => !is_down(*host) && (!is_memory || self.is_any_borne()),
            What::Pause { host } | What::Drain { host } => !is_down(*host),
            What::Power { hosts } => {
                let is_borne = || hosts.len() == 1 && self.is_any_borne();
                hosts.iter().all(|host| has_joined(*host)) && (!is_memory || is_borne())
            }
            What::Wipe { host } => {
                self.section.w > 1
                    && has_joined(*host)
                    && !self.plan.has_lost_lately(self.machines.now)
                    && self.is_any_borne()
            }
            What::Remove { host } => !is_down(*host) && self.lost().next().is_some(),
            What::FailSync { .. } | What::Restore { .. } | What::Shutdown { .. } => false,
            _ => true,
        }
    }

    fn on_begin(&mut self, what: &What) {
        match what {
            What::Power { hosts } => self.doubt(hosts),
            What::Wipe { host } => {
                let node = NodeId(self.rng.next());
                self.lose_disk(*host, node);
            }
            What::Drain { host } => self.drain(*host, false),
            What::Remove { host } => self.remove_wiped(*host),
            _ => {}
        }
    }

    fn on_end(&mut self, what: &What) {
        if let What::Drain { host } = what {
            self.drain(*host, true);
        }
    }
}

impl World<'_> {
    /// Whether what one host alone loses is at others.
    fn is_any_borne(&self) -> bool {
        let mut hosts = self.machines.hosts.iter();
        self.section.w > 1 && hosts.all(|host| !host.has_forgotten) && self.unsettled().is_none()
    }

    /// Hosts have lost power, and so what they wrote after their last syncs. What was acknowledged
    /// of siblings since may be gone, unless a copy is certain to be elsewhere.
    fn doubt(&mut self, hosts: &[HostIndex]) {
        let mut others = self.machines.hosts.iter().enumerate();
        let has_copies = |host: &Host| host.running == Running::Up && !host.has_forgotten;
        let is_at_rest = |keyspace: &Keyspace| {
            keyspace.former.is_empty() && keyspace.positions.iter().all(|place| place.is_settled)
        };
        let is_elsewhere = hosts.len() < usize::from(self.section.w)
            && self.siblings_keyspace().is_some_and(|keyspace| is_at_rest(&keyspace))
            && others.all(|(index, host)| {
                hosts.contains(&index) || !host.has_joined || has_copies(host)
            });
        let lost = hosts.iter().map(|host| self.machines.hosts[*host].disk.survives_until());
        let since = lost.min().filter(|_| self.durability().every().is_some() && !is_elsewhere);
        if let Some(since) = since {
            self.siblings.doubt(since);
        }
    }
}
