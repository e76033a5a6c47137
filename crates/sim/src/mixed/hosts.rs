//! What runs on a host: the overlay, the catalog, and the lanes that the catalog opens. And whose a
//! request or an answer is.

use super::World;
use super::section::{REGISTERS, SIBLINGS};
use super::world::Wraps;
use crate::host::Host;
use crate::machines::Machines;
use crate::queue::HostIndex;
use crate::turns::Turns;
use crate::workload::Submission;
use quorate_kernel::engine::{Opening, Pace};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{ClusterId, LaneId, Start, Ticket};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::Recovery;
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_node::node::Opener;
use quorate_protocols::catalog::{Founding, Settings};
use quorate_protocols::engines::{ENGINES, always, open};

/// Tells the tickets of the keyspace of siblings from those of registers.
const OF_SIBLINGS: u64 = 1 << 62;

impl Turns for World<'_> {
    fn machines(&mut self) -> &mut Machines {
        &mut self.machines
    }

    /// Those of both kinds of clients; both count their tickets from 0.
    fn submissions(&mut self) -> &mut Vec<Submission> {
        let World { registers, siblings, submissions, .. } = self;
        submissions.append(&mut registers.submissions);
        submissions.extend(siblings.submissions.drain(..).map(|submission| Submission {
            ticket: Ticket(submission.ticket.0 | OF_SIBLINGS),
            ..submission
        }));
        submissions
    }

    fn deadline(&self) -> Span {
        Span::millis(self.registers.deadline_ms())
    }

    fn submit(&mut self, submission: Submission) {
        let (lane, ledger, within) = match submission.ticket.0 & OF_SIBLINGS != 0 {
            true => {
                let workload = &self.prepared.scenario.workload;
                let deadline_ms = self.section.workload.as_ref().unwrap_or(workload).deadline_ms;
                (SIBLINGS, &mut self.of_siblings, Span::millis(deadline_ms))
            }
            false => {
                (REGISTERS, &mut self.of_registers, Span::millis(self.registers.deadline_ms()))
            }
        };
        ledger.ask(&submission, self.machines.now);
        self.machines.submit(lane, submission, within);
    }

    fn tell(&mut self, ticket: Ticket, outcome: Outcome) {
        let Machines { now, queue, trace, .. } = &mut self.machines;
        if ticket.0 & OF_SIBLINGS == 0 {
            self.of_registers.end(ticket, &outcome, *now);
            self.registers.on_answer(ticket, outcome, *now, queue, trace);
        } else {
            self.of_siblings.end(ticket, &outcome, *now);
            let ticket = Ticket(ticket.0 & !OF_SIBLINGS);
            self.siblings.on_answer(ticket, outcome, *now, queue, trace);
        }
    }

    fn launch(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let (scenario, hosts) = (&self.prepared.scenario, &self.machines.hosts);
        let overlay = self.founders.overlay(scenario, hosts, host);
        let ring = self.founders.ring(hosts[host].node_id).cloned();
        let keyspaces = self.section.founded(scenario.replicas());
        let born = (LaneId::KEYSPACES.0..).map(LaneId).take(keyspaces.len());
        let catalog = Settings {
            engines: ENGINES,
            lanes: if ring.is_some() { born.collect() } else { Vec::new() },
            founding: ring.clone().map(|ring| Founding { ring, keyspaces }),
        };
        let (purge, compare) = (scenario.purge_ms, scenario.compare_ms);
        let pace = crate::host::pace(purge, compare, None);
        let opener = opener(ring, pace, self.wraps, &hosts[host]);
        let (target, mut around) = self.machines.lend(host);
        target.launch(always(overlay, catalog), Some(opener), &mut around)
    }

    fn on_host_started(&mut self, host: HostIndex) {
        self.registers.on_host_started(host);
        self.siblings.open(host, true);
    }

    fn on_host_stopped(&mut self, host: HostIndex) {
        let Machines { now, queue, trace, .. } = &mut self.machines;
        self.registers.on_host_stopped(host, *now, queue, trace);
        self.siblings.open(host, false);
        self.siblings.on_host_stopped(host, *now, queue);
    }
}

/// Makes the lanes of keyspaces.
fn opener(founding: Option<Ring>, pace: Pace, wraps: Wraps, host: &Host) -> Opener {
    let (recovery, start) = (host.recovery(), host.me().start.next());
    let (cluster, signing_key) = (ClusterId(1), [7; 32]);
    Box::new(move |keyspace: &Keyspace, since: Start| {
        // What it has heard of in this start it cannot have forgotten.
        let is_intact = keyspace.durability() == Durability::Sync || since == start;
        let recovery = if is_intact { Recovery::Intact } else { recovery };
        let (founding, pace) = (founding.as_ref(), &pace);
        let opening = Opening { keyspace, founding, cluster, signing_key, pace };
        let spec = open(ENGINES, &opening, recovery).ok()?;
        let wrap = match spec.lane {
            REGISTERS => wraps.registers,
            _ => wraps.siblings,
        };
        Some(match wrap {
            Some(wrap) => LaneSpec { process: wrap(spec.process), ..spec },
            None => spec,
        })
    })
}
