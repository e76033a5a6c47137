//! Which faults the system group bears, and what is special about some.

use super::World;
use crate::fault::What;
use crate::host::Running;
use crate::plan::{Faults, Plan};
use crate::queue::HostIndex;
use crate::turns::Turns;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::operation::Control;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;

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
            What::FailSync { .. } => false,
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
            What::Remove { host } => {
                let lost = self.machines.hosts.iter().flat_map(|host| host.lost.clone());
                for node in lost.collect::<Vec<_>>() {
                    self.ask_overlay(*host, Control::Remove { node });
                }
            }
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

    /// Asks a host's own overlay to hand over what it holds, or to take part again.
    fn drain(&mut self, host: HostIndex, undo: bool) {
        let node = self.machines.hosts[host].node_id;
        self.ask_overlay(host, Control::Drain { node, undo });
    }

    fn ask_overlay(&mut self, host: HostIndex, control: Control) {
        if self.machines.hosts[host].running != Running::Down {
            self.operate(host, LaneId::OVERLAY, control, Span::secs(5));
        }
    }

    /// All faults end.
    pub(super) fn heal(&mut self) {
        self.plan.is_healed = true;
        self.machines.event(90, 0);
        self.machines.line(format_args!("** heal"));
        self.machines.net.heal(&vec![true; self.machines.hosts.len()]);
        let drained = self.plan.active().filter_map(|what| match what {
            What::Drain { host } => Some(*host),
            _ => None,
        });
        for host in drained.collect::<Vec<_>>() {
            self.drain(host, true);
        }
        for host in 0..self.machines.hosts.len() {
            self.revive(host);
        }
    }
}
