//! How hosts work: inputs, turns, answers, disks, starts and ends.

use super::followers::followed;
use super::operators::retire;
use super::tenants::owner;
use super::{NOBODY, World};
use crate::hosts::machines::Machines;
use crate::queue::{Event, HostIndex};
use crate::workload::{Demand, Submission};
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Span;
use quorate_node::pump::Input;
use quorate_store::memory::Crash;

impl World<'_> {
    /// Something happens at a host.
    pub(super) fn at_host(&mut self, event: Event) {
        match event {
            Event::Frame { host, bytes, said } => {
                self.machines.trace_frame(host, &bytes);
                self.machines.hosts[host].see(&bytes, said);
                if let Some(forged) = self.machines.forged(&bytes) {
                    self.arrive(host, Input::Frame(forged));
                }
                self.arrive(host, Input::Frame(bytes));
            }
            Event::Turn { host, life } => {
                if self.machines.is_present(host, life, 16) {
                    self.turn(host);
                }
            }
            Event::Wake { host, life } => {
                if self.machines.is_present(host, life, 32) && self.machines.is_awake(host) {
                    self.turn(host);
                }
            }
            Event::Written { host, life }
            | Event::Synced { host, life }
            | Event::Interval { host, life } => self.on_disk(host, life, event),
            other => unreachable!("{other:?} does not happen at a host"),
        }
    }

    /// Hands an input to a host: handled at once, or by the turn that is due.
    fn arrive(&mut self, host: HostIndex, input: Input) {
        self.machines.hosts[host].receive(input);
        self.machines.kick(host);
        self.settle();
    }

    /// Runs a turn of a host and gives its answers to the clients.
    pub(super) fn turn(&mut self, host: HostIndex) {
        self.machines.turn(host);
        self.settle();
    }

    /// Passes answers to clients and their next requests to hosts, until nothing is left.
    pub(super) fn settle(&mut self) {
        let mut submissions: Vec<Submission> = Vec::new();
        loop {
            let mut answers = std::mem::take(&mut self.machines.answers);
            for (ticket, outcome) in answers.drain(..).filter(|(ticket, _)| *ticket != NOBODY) {
                if let Some(question) = retire::question(ticket) {
                    self.on_examined(question, outcome);
                } else if let Some(of) = followed(ticket) {
                    self.on_followed(of, outcome);
                } else {
                    self.tell(ticket, outcome);
                }
            }
            if self.machines.answers.is_empty() {
                self.machines.answers = answers;
            }
            self.tenants.iter_mut().for_each(|tenant| tenant.take_submissions(&mut submissions));
            if submissions.is_empty() && self.machines.answers.is_empty() {
                return;
            }
            submissions.drain(..).for_each(|submission| self.submit(submission));
        }
    }

    /// Gives an answer to the client that waits for it.
    fn tell(&mut self, ticket: Ticket, outcome: Outcome) {
        let (tenant, ticket) = owner(ticket);
        let tenant = &mut self.tenants[tenant];
        tenant.ledger.end(ticket, &outcome, self.machines.now);
        tenant.clients.on_answer(ticket, outcome, &mut self.machines.scene());
    }

    /// A host receives what a client asks. One that was told to end begins nothing more.
    fn submit(&mut self, submission: Submission) {
        let (tenant, ticket) = owner(submission.ticket);
        let tenant = &mut self.tenants[tenant];
        tenant.ledger.ask(ticket, &submission, self.machines.now);
        let is_open = self.machines.hosts[submission.host].closing == Closing::No;
        if is_open || matches!(submission.ask, Demand::Unwatch) {
            let (lane, within) = (tenant.lane(), tenant.clients.fleet.deadline());
            return self.machines.submit(lane, submission, within);
        }
        let refused = Outcome::Refused(Refusal::Stopping);
        self.machines.answers.push((submission.ticket, refused));
    }

    /// Asks a host for something as an operator does. Nobody waits for the answer.
    pub(super) fn operate(
        &mut self,
        host: HostIndex,
        lane: LaneId,
        control: Control,
        within: Span,
    ) {
        let deadline = self.machines.hosts[host].clock.local(self.machines.now) + within;
        self.arrive(host, Input::Control { lane, ticket: NOBODY, control, deadline });
    }

    /// The disk thread of a host has done something.
    pub(super) fn on_disk(&mut self, host: HostIndex, life: u32, event: Event) {
        match self.machines.on_disk(host, life, event) {
            Ok(Some(durable)) => self.arrive(host, Input::Durable(durable)),
            Ok(None) => {}
            Err(fatal) => self.on_failed_sync(host, &fatal),
        }
    }

    /// Starts a host's process.
    pub(super) fn start_host(&mut self, host: HostIndex) {
        let result = self.launch(host);
        self.machines.check_fatal(host, result);
        self.machines.line(format_args!("n{} starts", host + 1));
        for tenant in &mut self.tenants {
            tenant.clients.on_host_started(host);
        }
        self.follow(host);
        self.machines.hosts[host].settle();
        self.settle();
    }

    /// Ends a host's process, see [`crate::host::Host::stop`].
    pub(super) fn stop_host(&mut self, host: HostIndex, crash: Crash, is_lossy: bool) {
        self.note_said(host);
        let Machines { now, hosts, .. } = &mut self.machines;
        hosts[host].stop(crash, is_lossy, *now);
        self.machines.line(format_args!("n{} is gone", host + 1));
        for tenant in &mut self.tenants {
            tenant.clients.on_host_stopped(host, &mut self.machines.scene());
        }
    }
}
