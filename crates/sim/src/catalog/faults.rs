//! Which faults the system group bears, and what is special about some.

use super::World;
use crate::fault::What;
use crate::host::Running;
use crate::operators::Operators;
use crate::plan::{Faults, Plan};
use crate::queue::HostIndex;
use quorate_kernel::ids::NodeId;
use quorate_kernel::storage::Durability;

impl Faults for World<'_> {
    fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// The catalog is protocol state.
    fn durability(&self) -> Durability {
        Durability::Sync
    }

    /// A disk may be lost while the system group is whole: the others are a majority then.
    fn may_begin(&self, what: &What) -> bool {
        let hosts = &self.machines.hosts;
        let is_down = |host: HostIndex| hosts[host].running == Running::Down;
        let has_joined = |host: HostIndex| hosts[host].has_joined;
        match what {
            What::Kill { host } | What::Pause { host } => !is_down(*host),
            What::Power { hosts } => hosts.iter().all(|host| has_joined(*host)),
            What::Wipe { host } => has_joined(*host) && self.is_whole(),
            What::Drain { host } => !is_down(*host),
            What::Remove { host } => {
                !is_down(*host) && hosts.iter().any(|host| !host.lost.is_empty())
            }
            What::FailSync { .. } | What::Restore { .. } => false,
            _ => true,
        }
    }

    fn on_begin(&mut self, what: &What) {
        match what {
            What::Wipe { host } => {
                self.watch_host(*host);
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
    /// Whether all who take part run and know the same, and no disk of the system group is lost, or
    /// of who may be about to join it.
    fn is_whole(&self) -> bool {
        if self.plan.has_lost_lately(self.machines.now) {
            return false;
        }
        let mut joined = self.machines.hosts.iter().filter(|host| host.has_joined);
        joined.all(|host| host.running == Running::Up) && self.unsettled().is_none()
    }
}
