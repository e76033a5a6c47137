//! The event loop.

use super::MixedSection;
use super::ledger::Ledger;
use crate::causal::clients::Clients;
use crate::fault::Fault;
use crate::forger::Forger;
use crate::host::Wrap;
use crate::machines::{CLIENTS, Machines};
use crate::membership::{Founders, WATCH_NS};
use crate::operators::{Operators, end_all};
use crate::plan::{Faults, Plan};
use crate::prepared::Prepared;
use crate::queue::Event;
use crate::seed::Report;
use crate::trace::Trace;
use crate::turns::Turns;
use crate::workload::{Counts, Submission, Workload};
use quorate_check::history::Recorder;
use quorate_check::siblings;
use quorate_kernel::rng::Rng;

/// This world's own streams of randomness.
const HOSTS: u64 = 6;
const SIBLINGS: u64 = 7;

/// Lanes around those of the keyspaces: how a test plants a bug.
#[derive(Clone, Copy, Default)]
pub struct Wraps {
    /// Around that of the keyspace of registers.
    pub registers: Option<Wrap>,
    /// Around that of the keyspace of siblings.
    pub siblings: Option<Wrap>,
}

/// The world.
pub struct World<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) section: &'a MixedSection,
    pub(super) machines: Machines,
    /// The clients of the keyspace of registers, and what they saw.
    pub(crate) registers: Workload,
    /// The clients of the keyspace of siblings, and what they saw.
    pub(super) siblings: Clients,
    pub(super) submissions: Vec<Submission>,
    pub(super) founders: Founders,
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) is_over: bool,
    /// The highest version of any group seen.
    pub(super) views: u64,
    /// What keeps the hosts from rest.
    pub(super) unsettled: Option<String>,
    pub(super) wraps: Wraps,
    /// What was asked of the keyspace of registers.
    pub of_registers: Ledger,
    /// What was asked of the keyspace of siblings.
    pub of_siblings: Ledger,
}

impl<'a> World<'a> {
    /// The world of a seed, before its first event.
    ///
    /// # Panics
    /// The scenario is of another world.
    #[must_use]
    pub fn new(
        prepared: &'a Prepared,
        seed: u64,
        plan: Vec<Fault>,
        wraps: Wraps,
        trace: Trace,
        recorder: Recorder,
    ) -> World<'a> {
        let scenario = &prepared.scenario;
        let section: &MixedSection = scenario.mixed.as_ref().expect("it is of this world");
        let stream = |label: u64| Rng::new(seed).fork(label);
        let mut machines = Machines::of(prepared, seed, trace);
        for (index, host) in machines.hosts.iter_mut().enumerate() {
            host.has_joined = index < scenario.members();
        }
        let (think, demanded) = (prepared.think.clone(), scenario.liveness.operations);
        let (workload, mut clients) = (&scenario.workload, stream(CLIENTS));
        let of_siblings = section.workload.as_ref().unwrap_or(workload);
        World {
            founders: Founders::new(scenario, &machines.directory),
            registers: Workload::new(
                workload,
                think,
                demanded,
                scenario.hosts,
                recorder,
                &mut clients,
            ),
            siblings: Clients::new(prepared, of_siblings, workload.clients, stream(SIBLINGS)),
            prepared,
            section,
            machines,
            submissions: Vec::new(),
            plan: Plan::new(plan),
            rng: stream(HOSTS),
            is_over: false,
            views: 0,
            unsettled: None,
            wraps,
            of_registers: Ledger::default(),
            of_siblings: Ledger::default(),
        }
    }

    /// Has frames added that no correct peer sends, see [`Machines::forge`].
    pub fn forge(&mut self, forger: Forger, events_max: u64) {
        self.machines.forge(forger, events_max);
    }

    /// How many frames were added so.
    #[must_use]
    pub fn forged(&self) -> u64 {
        self.machines.forger.as_ref().map_or(0, |(forger, _)| forger.forged)
    }

    /// Runs until all is quiet and was looked at, or something is wrong; then the judge of siblings
    /// has its say.
    pub fn run(&mut self) {
        let scenario = &self.prepared.scenario;
        let within = scenario.liveness.heal_ms * 500_000;
        (0..scenario.members()).for_each(|host| self.start_host(host));
        for host in scenario.members()..scenario.hosts {
            let at = self.rng.below(within);
            self.machines.queue.push(at, Event::Join(host));
        }
        self.registers.start(&mut self.machines.queue);
        self.siblings.start(&mut self.machines.queue);
        self.machines.queue.push(WATCH_NS, Event::Watch);
        self.plan.enqueue(&mut self.machines.queue);
        self.machines.enqueue_phases(&scenario.liveness);
        while self.machines.violation.is_none() && !self.is_over {
            let Some(event) = self.machines.advance() else { break };
            self.dispatch(event);
            let failure = self.registers.failure.take().or_else(|| self.siblings.failure.take());
            if let Some(message) = failure {
                self.machines.condemn("liveness", message);
            }
        }
        if self.machines.violation.is_none()
            && let Err(message) = siblings::judge(&self.siblings.history)
        {
            self.machines.condemn("siblings", message);
        }
        if self.machines.violation.is_some() {
            self.machines.show();
        }
    }

    fn dispatch(&mut self, event: Event) {
        let now = self.machines.now;
        match event {
            Event::Frame { .. }
            | Event::Turn { .. }
            | Event::Wake { .. }
            | Event::Written { .. }
            | Event::Synced { .. }
            | Event::Interval { .. } => self.at_host(event),
            Event::Client { client, connection } => {
                self.machines.event(48, client as u64 | u64::from(connection) << 16);
                let is_of_registers = self.is_of_registers(client);
                let Machines { queue, trace, .. } = &mut self.machines;
                if is_of_registers {
                    self.registers.on_client(client, connection, now, queue, trace);
                } else {
                    self.siblings.on_client(client, connection, now, queue, trace);
                }
                self.settle();
            }
            Event::Patience { client } => {
                self.machines.event(49, client as u64);
                let is_of_registers = self.is_of_registers(client);
                let Machines { queue, trace, .. } = &mut self.machines;
                if is_of_registers {
                    self.registers.on_patience(client, now, queue, trace);
                } else {
                    self.siblings.on_patience(client, now, queue);
                }
            }
            Event::FaultBegins(index) => self.begin_fault(index),
            Event::FaultEnds(index) => self.end_fault(index),
            Event::Join(host) => {
                self.machines.event(80, host as u64);
                self.join(host);
            }
            Event::Watch => {
                self.machines.event(96, 0);
                self.watch();
                self.create();
                self.machines.after(WATCH_NS, Event::Watch);
            }
            Event::Heal => end_all(self),
            Event::Demand => {
                self.registers.demand(now, &mut self.machines.queue);
                self.siblings.demand(now, &mut self.machines.queue);
                self.machines.after(0, Event::Look);
            }
            Event::Look => self.look(),
            Event::TooLate => self.too_late(),
        }
    }

    /// The clients of the keyspace of registers are counted first.
    fn is_of_registers(&self, client: usize) -> bool {
        client < self.prepared.scenario.workload.clients
    }

    /// How the operations of each keyspace ended: of registers, of siblings.
    #[must_use]
    pub fn counts(&self) -> [Counts; 2] {
        [self.registers.counts, self.siblings.counts]
    }

    /// What the run has done.
    #[must_use]
    pub fn report(&mut self, seed: u64, panicked: Option<String>) -> Report {
        if let Some(message) = panicked {
            self.machines.on_panic(message);
        }
        let decrees =
            self.machines.hosts.iter().filter_map(|host| Some(host.told.as_ref()?.version));
        let [one, other] = self.counts();
        Report {
            seed,
            hash: self.machines.trace.hash(),
            events: self.machines.trace.events(),
            counts: one.and(&other),
            faults: self.plan.applied(),
            views: self.views + decrees.max().unwrap_or(0),
            token_moves: 0,
            time: self.machines.now,
            idle: None,
            violation: self.machines.violation.clone(),
            undecided: None,
        }
    }
}
