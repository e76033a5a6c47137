//! A cluster that an operator shuts down: what the process around a node does about it, and when
//! the hosts are started again.

use crate::host::{Running, count};
use crate::queue::HostIndex;
use crate::world::World;
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::Control;
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Span;
use quorate_store::memory::Crash;

/// How long a shutdown may take to be answered.
const PATIENCE: Span = Span::secs(30);

impl World<'_> {
    /// Asks a host to end the whole cluster.
    pub(crate) fn shut_down(&mut self, host: HostIndex) {
        self.operate(host, LaneId::OVERLAY, Control::Shutdown, PATIENCE);
    }

    /// A host that was told to end says when nothing is in hand for clients, and ends when all do.
    pub(crate) fn maintain_closing(&mut self, host: HostIndex) {
        let target = &mut self.machines.hosts[host];
        if target.closing == Closing::No || target.running != Running::Up {
            return;
        }
        if target.closing == Closing::Over {
            target.has_ended = true;
            // Harsher than the real one, which syncs first.
            return self.take_down(host, Crash::ProcessKill, self.is_any_in_memory());
        }
        let mut lanes = self.tenants.iter().map(|tenant| tenant.lane());
        let is_idle = lanes.all(|lane| count(target, lane, "operations") == 0);
        if !target.has_told_idle && is_idle {
            target.has_told_idle = true;
            self.operate(host, LaneId::OVERLAY, Control::Idle, PATIENCE);
        }
    }

    /// Every host is started again, whether it has ended or not. Those that have not may have been
    /// told, or be told yet: of an earlier start nobody is told anything.
    pub(crate) fn start_again(&mut self) {
        for host in 0..self.machines.hosts.len() {
            let target = &mut self.machines.hosts[host];
            if std::mem::take(&mut target.has_ended) {
                self.release(host);
            } else if target.running != Running::Down {
                self.stop_host(host, Crash::ProcessKill, self.is_any_in_memory());
                self.start_host(host);
            }
        }
    }
}
