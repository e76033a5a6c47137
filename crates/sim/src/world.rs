//! The world of one seed: hosts, network, clients and faults around one event queue.

use crate::fault::Fault;
use crate::host::{LANE, Wrap};
use crate::machines::{CLIENTS, Machines};
use crate::membership::{Founders, WATCH_NS};
use crate::operators::Operators;
use crate::plan::{Faults, Plan};
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex};
use crate::trace::Trace;
use crate::turns::Turns;
use crate::workload::{Stage, Submission, Workload};
use quorate_check::history::Recorder;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::ring::Closing;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;

/// This world's own streams of randomness.
const JOINS: u64 = 6;
const HEALING: u64 = 7;

/// What a judge or the world itself found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Who found it.
    pub judge: &'static str,
    /// What it is.
    pub message: String,
}

/// The world.
pub struct World<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) machines: Machines,
    pub(crate) workload: Workload,
    pub(crate) founders: Founders,
    /// The highest version of any group seen.
    pub(crate) views: u64,
    /// How many tokens were moved, added or given up to even out the load.
    pub(crate) token_moves: u64,
    /// Since when nobody wishes for a move.
    pub(crate) content_since: Option<u64>,
    /// What keeps the groups from rest.
    pub(crate) unsettled: Option<String>,
    /// Whether the faults ended for every host.
    pub(crate) is_whole: bool,
    /// Whether the clients have finished and the groups have come to rest.
    pub(crate) is_at_rest: bool,
    is_awaiting_rest: bool,
    pub(crate) plan: Plan,
    pub(crate) rng: Rng,
    pub(crate) wrap: Option<Wrap>,
}

impl<'a> World<'a> {
    /// The world of a seed, before its first event.
    #[must_use]
    pub fn new(
        prepared: &'a Prepared,
        seed: u64,
        plan: Vec<Fault>,
        wrap: Option<Wrap>,
        trace: Trace,
        recorder: Recorder,
    ) -> World<'a> {
        let scenario = &prepared.scenario;
        let stream = |label: u64| Rng::new(seed).fork(label);
        let mut machines = Machines::of(prepared, seed, trace);
        for (index, host) in machines.hosts.iter_mut().enumerate() {
            host.has_joined = index < scenario.members() || scenario.keeps_view;
        }
        let founders = Founders::new(scenario, &machines.directory);
        let think = prepared.think.clone();
        let demanded = scenario.liveness.operations;
        let mut clients = stream(CLIENTS);
        let workload = Workload::new(
            &scenario.workload,
            think,
            demanded,
            scenario.hosts,
            recorder,
            &mut clients,
        );
        World {
            prepared,
            machines,
            workload,
            founders,
            views: 0,
            token_moves: 0,
            content_since: None,
            unsettled: None,
            is_whole: true,
            is_at_rest: false,
            is_awaiting_rest: false,
            plan: Plan::new(plan),
            rng: stream(HEALING),
            wrap,
        }
    }

    /// Runs until every client has finished, or something is wrong.
    pub fn run(&mut self) {
        let joined = |host: &HostIndex| self.machines.hosts[*host].has_joined;
        let (founders, spares): (Vec<_>, Vec<_>) = (0..self.machines.hosts.len()).partition(joined);
        founders.into_iter().for_each(|host| self.start_host(host));
        let mut joins = self.rng.fork(JOINS);
        let within = self.prepared.scenario.liveness.heal_ms * 500_000;
        let mut at = None;
        for host in spares {
            // Some join at once.
            at = match at {
                Some(at) if joins.chance_ppm(300_000) => Some(at + joins.below(2_000_000)),
                _ => Some(joins.below(within)),
            };
            self.machines.queue.push(at.unwrap_or(0), Event::Join(host));
        }
        self.workload.start(&mut self.machines.queue);
        self.machines.queue.push(WATCH_NS, Event::Watch);
        self.plan.enqueue(&mut self.machines.queue);
        self.machines.enqueue_phases(&self.prepared.scenario.liveness);
        while self.machines.violation.is_none() && !self.is_at_rest {
            if self.workload.stage == Stage::Over && !self.is_awaiting_rest {
                self.is_awaiting_rest = true;
                self.await_rest();
                continue;
            }
            let Some(event) = self.machines.advance() else { break };
            self.dispatch(event);
            if let Some(message) = self.workload.failure.take() {
                self.machines.condemn("liveness", message);
            }
        }
        if self.machines.violation.is_some() {
            self.machines.show();
        }
    }

    fn dispatch(&mut self, event: Event) {
        let now = self.machines.now;
        match event {
            Event::Frame { host, .. }
            | Event::Turn { host, .. }
            | Event::Wake { host, .. }
            | Event::Written { host, .. }
            | Event::Synced { host, .. }
            | Event::Interval { host, .. } => {
                self.at_host(event);
                self.tend_closing(host);
            }
            Event::Client { client, connection } => {
                self.machines.event(48, client as u64 | u64::from(connection) << 16);
                let Machines { queue, trace, .. } = &mut self.machines;
                self.workload.on_client(client, connection, now, queue, trace);
                self.settle();
            }
            Event::Patience { client } => {
                self.machines.event(49, client as u64);
                let Machines { queue, trace, .. } = &mut self.machines;
                self.workload.on_patience(client, now, queue, trace);
            }
            Event::FaultBegins(index) => self.begin_fault(index),
            Event::FaultEnds(index) => self.end_fault(index),
            Event::Join(host) => {
                self.machines.event(80, host as u64);
                self.join(host);
            }
            Event::Look => {
                self.machines.event(95, 0);
                self.await_rest();
            }
            Event::Watch => {
                self.machines.event(96, 0);
                self.watch();
            }
            Event::Heal => self.heal(),
            Event::Demand => {
                self.phase("demand");
                self.workload.demand(now, &mut self.machines.queue);
            }
            Event::TooLate => {
                let waiting = match self.workload.stage {
                    Stage::Over => {
                        let what = self.unsettled.take().unwrap_or_default();
                        format!("groups have not come to rest: {what}")
                    }
                    _ => self.workload.waiting(),
                };
                let bound = self.prepared.scenario.liveness.bound_ms;
                self.machines
                    .condemn("liveness", format!("not finished after {bound} ms: {waiting}"));
            }
        }
    }

    pub(crate) fn phase(&mut self, name: &str) {
        self.machines.event(90, name.len() as u64);
        self.machines.line(format_args!("** {name}"));
    }
}

impl Turns for World<'_> {
    fn machines(&mut self) -> &mut Machines {
        &mut self.machines
    }

    fn submissions(&mut self) -> &mut Vec<Submission> {
        &mut self.workload.submissions
    }

    fn deadline(&self) -> Span {
        Span::millis(self.workload.deadline_ms())
    }

    /// A host that was told to end begins nothing more.
    fn submit(&mut self, submission: Submission) {
        if self.machines.hosts[submission.host].closing == Closing::No {
            return self.machines.submit(LANE, submission, self.deadline());
        }
        let refused = Outcome::Refused(Refusal::Stopping);
        self.machines.answers.push((submission.ticket, refused));
    }

    fn tell(&mut self, ticket: Ticket, outcome: Outcome) {
        let Machines { now, queue, trace, .. } = &mut self.machines;
        self.workload.on_answer(ticket, outcome, *now, queue, trace);
    }

    fn launch(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let (scenario, wrap) = (&self.prepared.scenario, self.wrap);
        let hosts = &self.machines.hosts;
        let node = hosts[host].node_id;
        let keyspace = self.founders.keyspace(scenario, node);
        let overlay = self.founders.overlay(scenario, hosts, host);
        let (purge, compare) = (scenario.purge_ms, scenario.compare_ms);
        let pace = crate::host::pace(purge, compare, scenario.balance.as_ref());
        let (target, mut around) = self.machines.lend(host);
        target.start(overlay, &keyspace, &pace, wrap, &mut around)
    }

    fn on_host_started(&mut self, host: HostIndex) {
        self.workload.on_host_started(host);
    }

    fn on_host_stopped(&mut self, host: HostIndex) {
        let Machines { now, queue, trace, .. } = &mut self.machines;
        self.workload.on_host_stopped(host, *now, queue, trace);
    }

    /// If a fault asked for it the host stops, as it must.
    fn on_disk_failure(&mut self, host: HostIndex, fatal: &Fatal) {
        self.on_failed_sync(host, fatal);
    }
}
