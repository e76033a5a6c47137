//! How a world lets its hosts work: inputs, turns, answers, disks, starts and ends.

use crate::host::LANE;
use crate::machines::{FATAL, Machines};
use crate::membership::NOBODY;
use crate::queue::{Event, HostIndex};
use crate::workload::Submission;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::time::Span;
use quorate_node::pump::Input;
use quorate_store::memory::Crash;

/// A world of machines and clients. It says what its own are; how they meet is the same in all.
pub(crate) trait Turns {
    /// The machines.
    fn machines(&mut self) -> &mut Machines;

    /// What clients want hosts to be asked.
    fn submissions(&mut self) -> &mut Vec<Submission>;

    /// How long hosts have for what they are asked now.
    fn deadline(&self) -> Span;

    /// Gives an answer to the client that waits for it.
    fn tell(&mut self, ticket: Ticket, outcome: Outcome);

    /// Starts the node of a host that is down.
    fn launch(&mut self, host: HostIndex) -> Result<(), Fatal>;

    /// Clients may connect to a host from now on.
    fn on_host_started(&mut self, host: HostIndex);

    /// A host is gone, and all connections to it.
    fn on_host_stopped(&mut self, host: HostIndex);

    /// The disk of a host has failed.
    fn on_disk_failure(&mut self, host: HostIndex, fatal: &Fatal) {
        self.machines().condemn(FATAL, format!("n{}: {fatal}", host + 1));
    }

    /// Something happens at a host.
    fn at_host(&mut self, event: Event) {
        match event {
            Event::Frame { host, bytes, said } => {
                self.machines().trace_frame(host, &bytes);
                self.machines().hosts[host].see(&bytes, said);
                if let Some(forged) = self.machines().forged(&bytes) {
                    self.arrive(host, Input::Frame(forged));
                }
                self.arrive(host, Input::Frame(bytes));
            }
            Event::Turn { host, life } => {
                if self.machines().is_present(host, life, 16) {
                    self.turn(host);
                }
            }
            Event::Wake { host, life } => {
                if self.machines().is_present(host, life, 32) && self.machines().is_awake(host) {
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
        let machines = self.machines();
        machines.hosts[host].receive(input);
        machines.kick(host);
        self.settle();
    }

    /// Runs a turn of a host and gives its answers to the clients.
    fn turn(&mut self, host: HostIndex) {
        self.machines().turn(host);
        self.settle();
    }

    /// Passes answers to clients and their next requests to hosts, until nothing is left.
    fn settle(&mut self) {
        while !self.machines().answers.is_empty() || !self.submissions().is_empty() {
            let mut answers = std::mem::take(&mut self.machines().answers);
            for (ticket, outcome) in answers.drain(..) {
                if ticket != NOBODY {
                    self.tell(ticket, outcome);
                }
            }
            reuse(answers, &mut self.machines().answers);
            let mut submissions = std::mem::take(self.submissions());
            for submission in submissions.drain(..) {
                self.submit(submission);
            }
            reuse(submissions, self.submissions());
        }
    }

    /// A host receives what a client asks.
    fn submit(&mut self, submission: Submission) {
        let within = self.deadline();
        self.machines().submit(LANE, submission, within);
    }

    /// Asks a host for something as an operator does. Nobody waits for the answer.
    fn operate(&mut self, host: HostIndex, lane: LaneId, control: Control, within: Span) {
        let machines = self.machines();
        let deadline = machines.hosts[host].clock.local(machines.now) + within;
        self.arrive(host, Input::Control { lane, ticket: NOBODY, control, deadline });
    }

    /// The disk thread of a host has done something.
    fn on_disk(&mut self, host: HostIndex, life: u32, event: Event) {
        match self.machines().on_disk(host, life, event) {
            Ok(Some(durable)) => self.arrive(host, Input::Durable(durable)),
            Ok(None) => {}
            Err(fatal) => self.on_disk_failure(host, &fatal),
        }
    }

    /// Starts a host's process.
    fn start_host(&mut self, host: HostIndex) {
        let result = self.launch(host);
        let machines = self.machines();
        machines.check_fatal(host, result);
        machines.line(format_args!("n{} starts", host + 1));
        self.on_host_started(host);
        self.machines().hosts[host].settle();
        self.settle();
    }

    /// Ends a host's process, see [`crate::host::Host::stop`].
    fn stop_host(&mut self, host: HostIndex, crash: Crash, is_lossy: bool) {
        let machines = self.machines();
        let now = machines.now;
        machines.hosts[host].stop(crash, is_lossy, now);
        machines.line(format_args!("n{} is gone", host + 1));
        self.on_host_stopped(host);
    }
}

/// Gives an emptied list back, so that its room is used again.
fn reuse<T>(emptied: Vec<T>, list: &mut Vec<T>) {
    if list.is_empty() {
        *list = emptied;
    }
}
