//! Which faults both keyspaces and the system group bear, and what is special about some.

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

    /// Both keyspaces are `sync`, as the catalog is.
    fn durability(&self) -> Durability {
        Durability::Sync
    }

    /// A disk may be lost while all is whole and what a former one held was made up for.
    fn may_begin(&self, what: &What) -> bool {
        let hosts = &self.machines.hosts;
        let is_down = |host: HostIndex| hosts[host].running == Running::Down;
        let has_joined = |host: HostIndex| hosts[host].has_joined;
        match what {
            What::Kill { host } | What::Pause { host } | What::Drain { host } => !is_down(*host),
            What::Power { hosts } => hosts.iter().all(|host| has_joined(*host)),
            What::Wipe { host } => {
                self.section.w > 1
                    && has_joined(*host)
                    && !self.plan.has_lost_lately(self.machines.now)
                    && self.unsettled().is_none()
            }
            What::Remove { host } => !is_down(*host) && self.lost().next().is_some(),
            What::FailSync { .. } | What::Restore { .. } | What::Shutdown { .. } => false,
            _ => true,
        }
    }

    fn on_begin(&mut self, what: &What) {
        match what {
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
