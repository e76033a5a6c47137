//! What is a host here: one lane, which knows the positions of the newest map when it starts.

use super::World;
use crate::host::LANE;
use crate::machines::Machines;
use crate::queue::HostIndex;
use crate::turns::Turns;
use crate::workload::Submission;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Ticket;
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Span;

impl Turns for World<'_> {
    fn machines(&mut self) -> &mut Machines {
        &mut self.machines
    }

    fn submissions(&mut self) -> &mut Vec<Submission> {
        &mut self.clients.submissions
    }

    fn deadline(&self) -> Span {
        Span::millis(self.prepared.scenario.workload.deadline_ms)
    }

    fn tell(&mut self, ticket: Ticket, outcome: Outcome) {
        let Machines { now, queue, trace, .. } = &mut self.machines;
        self.clients.on_answer(ticket, outcome, *now, queue, trace);
    }

    fn launch(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let spec = LaneSpec {
            lane: LANE,
            durability: self.prepared.scenario.durability(),
            recovery: self.machines.hosts[host].recovery(),
            process: self.lane(),
        };
        let (target, mut around) = self.machines.lend(host);
        target.launch(vec![spec], None, &mut around)
    }

    fn on_host_started(&mut self, host: HostIndex) {
        self.clients.open(host, true);
    }

    fn on_host_stopped(&mut self, host: HostIndex) {
        self.clients.open(host, false);
        self.clients.on_host_stopped(host, self.machines.now, &mut self.machines.queue);
    }
}
