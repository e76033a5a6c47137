//! What operators do to hosts, the same in every world that has an overlay.

use crate::host::Running;
use crate::plan::Faults;
use crate::queue::HostIndex;
use crate::turns::Turns;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::operation::Control;
use quorate_kernel::time::Span;

/// How long a host has for an order.
pub(crate) const PATIENCE: Span = Span::secs(5);

/// Orders to hosts. Nobody waits for the answers.
pub(crate) trait Operators: Turns {
    /// A spare host joins the cluster, unless it has.
    fn join(&mut self, host: HostIndex) {
        let machines = self.machines();
        let target = &mut machines.hosts[host];
        if target.has_joined {
            return;
        }
        target.has_joined = true;
        let may_start = target.downs == 0 && target.running == Running::Down;
        machines.line(format_args!("** n{} joins", host + 1));
        if may_start {
            self.start_host(host);
        }
    }

    /// Asks a host's own overlay to hand over what it holds, or to take part again.
    fn drain(&mut self, host: HostIndex, undo: bool) {
        let target = &self.machines().hosts[host];
        if target.running != Running::Down {
            let node = target.node_id;
            self.operate(host, LaneId::OVERLAY, Control::Drain { node, undo }, PATIENCE);
        }
    }

    /// Asks a host to remove every node whose directory was wiped. It refuses what it does not
    /// suspect yet.
    fn remove_wiped(&mut self, host: HostIndex) {
        let hosts = self.machines().hosts.iter();
        let lost: Vec<NodeId> = hosts.flat_map(|host| host.lost.clone()).collect();
        for node in lost {
            self.operate(host, LaneId::OVERLAY, Control::Remove { node, force: false }, PATIENCE);
        }
    }
}

impl<W: Turns> Operators for W {}

/// All faults end, for every host. Who is drained is taken back.
pub(crate) fn end_all(world: &mut impl Faults) {
    world.plan().is_healed = true;
    let machines = world.machines();
    machines.event(90, 0);
    machines.line(format_args!("** heal"));
    let count = machines.hosts.len();
    machines.net.heal(&vec![true; count]);
    for host in world.plan().drained() {
        world.drain(host, true);
    }
    (0..count).for_each(|host| world.revive(host));
}
