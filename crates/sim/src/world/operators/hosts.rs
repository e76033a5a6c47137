//! What operators do to hosts.

use crate::host::Running;
use crate::queue::HostIndex;
use crate::world::World;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::operation::Control;
use quorate_kernel::process::Inspect;
use quorate_kernel::time::Span;
use std::fmt::Display;

/// How long a host has for an order.
pub(super) const PATIENCE: Span = Span::secs(5);

impl World<'_> {
    /// A spare host joins the cluster, unless it has.
    pub(crate) fn join(&mut self, host: HostIndex) {
        let target = &mut self.machines.hosts[host];
        if target.has_joined {
            return;
        }
        target.has_joined = true;
        let may_start = target.downs == 0 && target.running == Running::Down;
        self.machines.line(format_args!("** n{} joins", host + 1));
        if may_start {
            self.start_host(host);
        }
    }

    /// Asks a host's own overlay to hand over what it holds, or to take part again.
    pub(crate) fn drain(&mut self, host: HostIndex, undo: bool) {
        let target = &self.machines.hosts[host];
        if target.running != Running::Down {
            let node = target.node_id;
            let replicas = self.prepared.scenario.replicas_max();
            let order = Control::Drain { node, undo, replicas };
            self.operate(host, LaneId::OVERLAY, order, PATIENCE);
        }
    }

    /// Asks a host to remove every node whose directory was wiped. It refuses what it does not
    /// suspect yet.
    pub(crate) fn remove_wiped(&mut self, host: HostIndex) {
        let lost: Vec<NodeId> = self.lost().collect();
        for node in lost {
            self.operate(host, LaneId::OVERLAY, Control::Remove { node, force: false }, PATIENCE);
        }
    }

    /// The nodes whose disks were lost.
    pub(crate) fn lost(&self) -> impl Iterator<Item = NodeId> {
        self.machines.hosts.iter().flat_map(|host| host.lost.iter().copied())
    }

    /// Whether some host has not heard yet that a node whose disk was lost is removed.
    pub(super) fn is_any_lost_there(&self) -> bool {
        struct There<'a>(&'a [String], bool);
        impl Inspect for There<'_> {
            fn field(&mut self, _name: &'static str, _value: &dyn Display) {}
            fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
                let cell = |name| cells.iter().find(|(its, _)| *its == name);
                let text = |name| cell(name).map(|(_, value)| value.to_string());
                let is_lost = text("node").is_some_and(|node| self.0.contains(&node));
                self.1 |= table == "hosts" && is_lost && text("standing") != Some("left".into());
            }
        }
        let lost: Vec<String> = self.lost().map(|node| node.to_string()).collect();
        let mut there = There(&lost, false);
        self.up().for_each(|host| {
            self.machines.hosts[host].inspect(LaneId::OVERLAY, &mut there);
        });
        there.1
    }

    /// The hosts that run.
    pub(crate) fn up(&self) -> impl Iterator<Item = HostIndex> {
        let hosts = self.machines.hosts.iter().enumerate();
        hosts.filter(|(_, host)| host.running == Running::Up).map(|(index, _)| index)
    }
}
