//! The event loop, and how it is told that all know the same.

use super::CatalogSection;
use super::clients::{Asked, Clients};
use super::watch::WATCH_NS;
use crate::fault::Fault;
use crate::host::Running;
use crate::machines::{CLIENTS, Machines};
use crate::membership::Founders;
use crate::operators::{Operators, end_all};
use crate::plan::{Faults, Plan};
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex};
use crate::seed::Report;
use crate::trace::Trace;
use crate::turns::Turns;
use crate::workload::Submission;
use quorate_check::catalog;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::keyspace::KeyspaceOrder;
use quorate_kernel::operation::Control;
use quorate_kernel::rng::Rng;
use quorate_node::pump::Input;

/// This world's own stream of randomness.
const HOSTS: u64 = 6;
/// How often hosts are looked at while they come to rest.
const LOOK_NS: u64 = 250_000_000;

/// The world.
pub struct World<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) machines: Machines,
    pub(super) clients: Clients,
    pub(super) founders: Founders,
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) submissions: Vec<Submission>,
    /// The newest decree that each host's store was seen with, in its present life.
    pub(super) seen: Vec<u64>,
    /// The newest decree that was seen anywhere.
    pub(super) decrees: u64,
    is_over: bool,
}

impl<'a> World<'a> {
    /// The world of a seed, before its first event.
    ///
    /// # Panics
    /// The scenario is of another world.
    #[must_use]
    pub fn new(prepared: &'a Prepared, seed: u64, plan: Vec<Fault>, trace: Trace) -> World<'a> {
        let scenario = &prepared.scenario;
        let section: &CatalogSection = scenario.catalog.as_ref().expect("it is of this world");
        let stream = |label: u64| Rng::new(seed).fork(label);
        let mut machines = Machines::of(prepared, seed, trace);
        for (index, host) in machines.hosts.iter_mut().enumerate() {
            host.has_joined = index < scenario.members();
        }
        World {
            founders: Founders::new(scenario, &machines.directory),
            clients: Clients::new(prepared, section, stream(CLIENTS)),
            prepared,
            machines,
            plan: Plan::new(plan),
            rng: stream(HOSTS),
            submissions: Vec::new(),
            seen: vec![0; scenario.hosts],
            decrees: 0,
            is_over: false,
        }
    }

    /// Runs until all know the same, or something is wrong; then the judge has its say.
    pub fn run(&mut self) {
        let scenario = &self.prepared.scenario;
        let within = scenario.liveness.heal_ms * 500_000;
        (0..scenario.members()).for_each(|host| self.start_host(host));
        for host in scenario.members()..scenario.hosts {
            let at = self.rng.below(within);
            self.machines.queue.push(at, Event::Join(host));
        }
        self.clients.start(&mut self.machines.queue);
        self.machines.queue.push(WATCH_NS, Event::Watch);
        self.plan.enqueue(&mut self.machines.queue);
        self.machines.enqueue_phases(&scenario.liveness);
        while self.machines.violation.is_none() && !self.is_over {
            let Some(event) = self.machines.advance() else { break };
            self.dispatch(event);
            if let Some(message) = self.clients.failure.take() {
                self.machines.condemn("liveness", message);
            }
        }
        self.seen.fill(0);
        self.watch();
        if self.machines.violation.is_some() {
            self.machines.show();
        }
        if let Err(message) = catalog::judge(&self.clients.history) {
            // What is wrong with the chain explains why its end was not reached.
            self.machines.violation = None;
            self.machines.condemn("catalog", message);
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
                match self.clients.on_client(client, connection, &mut self.machines) {
                    Some(Asked::Order(host, ticket, order)) => self.order(host, ticket, order),
                    Some(Asked::List(host)) => self.list(host),
                    None => {}
                }
            }
            Event::Patience { client } => {
                self.machines.event(49, client as u64);
                self.clients.on_patience(client, now, &mut self.machines.queue);
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
                self.machines.after(WATCH_NS, Event::Watch);
            }
            Event::Heal => end_all(self),
            Event::Demand => {
                let orders = self.prepared.scenario.liveness.operations;
                self.clients.demand(orders, now, &mut self.machines.queue);
                self.machines.after(0, Event::Look);
            }
            Event::Look => self.look(),
            Event::TooLate => {
                let what = match self.clients.is_finished() {
                    true => self.unsettled().unwrap_or_default(),
                    false => self.clients.waiting(),
                };
                self.machines.condemn("liveness", what);
            }
        }
    }

    fn order(&mut self, host: HostIndex, ticket: Ticket, order: KeyspaceOrder) {
        let deadline = self.machines.hosts[host].clock.local(self.machines.now) + self.deadline();
        let (lane, control) = (LaneId::CATALOG, Control::Keyspace(order));
        self.arrive(host, Input::Control { lane, ticket, control, deadline });
    }

    fn list(&mut self, host: HostIndex) {
        if self.machines.hosts[host].running == Running::Up {
            self.clients.on_list(&self.machines.hosts[host]);
        }
    }

    /// Looks whether the clients have finished and all hosts know the same; then each is asked.
    fn look(&mut self) {
        self.machines.event(95, 0);
        if self.clients.is_finished() && self.unsettled().is_none() {
            (0..self.machines.hosts.len()).for_each(|host| self.list(host));
            self.is_over = true;
        } else {
            self.machines.after(LOOK_NS, Event::Look);
        }
    }

    /// What the run has done.
    #[must_use]
    pub fn report(&mut self, seed: u64, panicked: Option<String>) -> Report {
        if let Some(message) = panicked {
            self.machines.on_panic(message);
        }
        Report {
            seed,
            hash: self.machines.trace.hash(),
            events: self.machines.trace.events(),
            counts: self.clients.counts,
            faults: self.plan.applied(),
            views: self.decrees,
            token_moves: 0,
            time: self.machines.now,
            idle: None,
            violation: self.machines.violation.clone(),
            undecided: None,
        }
    }
}
