//! What is a host here: the overlay and the catalog.

use super::World;
use crate::machines::Machines;
use crate::queue::HostIndex;
use crate::turns::Turns;
use crate::workload::Submission;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Span;
use quorate_protocols::catalog::{Founding, Settings};
use quorate_protocols::engines::{ENGINES, always};

impl Turns for World<'_> {
    fn machines(&mut self) -> &mut Machines {
        &mut self.machines
    }

    /// Nothing: orders are no operations of a keyspace.
    fn submissions(&mut self) -> &mut Vec<Submission> {
        &mut self.submissions
    }

    fn deadline(&self) -> Span {
        let scenario = &self.prepared.scenario;
        Span::millis(match self.clients.is_strict {
            false => scenario.workload.deadline_ms,
            true => scenario.liveness.bound_ms / 2,
        })
    }

    fn tell(&mut self, ticket: Ticket, outcome: Outcome) {
        self.clients.on_answer(ticket, &outcome, &mut self.machines);
    }

    fn launch(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let hosts = &self.machines.hosts;
        let node = hosts[host].node_id;
        let overlay = self.founders.overlay(&self.prepared.scenario, hosts, host);
        let founding = |ring: &_| Founding { ring: Clone::clone(ring), keyspaces: Vec::new() };
        let catalog = Settings {
            engines: ENGINES,
            founding: self.founders.ring(node).map(founding),
            lanes: Vec::new(),
        };
        // What a crash took from the disk may be decided otherwise now.
        self.seen[host] = 0;
        let (target, mut around) = self.machines.lend(host);
        target.launch(always(overlay, catalog), None, &mut around)
    }

    fn on_host_started(&mut self, host: HostIndex) {
        self.clients.open(host, true);
    }

    fn on_host_stopped(&mut self, host: HostIndex) {
        self.clients.open(host, false);
        self.clients.on_host_stopped(host, self.machines.now, &mut self.machines.queue);
    }
}
