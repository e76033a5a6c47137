//! The event loop.

use super::CausalSection;
use super::clients::Clients;
use crate::fault::Fault;
use crate::machines::{CLIENTS, Machines};
use crate::plan::{Faults, Plan};
use crate::prepared::Prepared;
use crate::queue::Event;
use crate::seed::Report;
use crate::trace::Trace;
use crate::turns::Turns;
use quorate_check::siblings;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Tenure;
use quorate_kernel::rng::Rng;
use quorate_protocols::causal::map::{Map, Shape};

/// This world's own stream of randomness.
const CATALOG: u64 = 6;

/// The world.
pub struct World<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) section: &'a CausalSection,
    pub(super) machines: Machines,
    pub(super) clients: Clients,
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) is_over: bool,
    pub(super) shape: Shape,
    /// What the catalog has decided.
    pub(super) map: Map,
    /// The newest version in which anything was given to another host.
    pub(super) placed: u64,
    /// Who held what before, and is not gone for good.
    pub(super) former: Vec<Tenure>,
    /// Whether some have not copied yet what they were given.
    pub(super) is_moving: bool,
    /// What keeps the hosts from rest.
    pub(super) unsettled: String,
    /// How many hosts were replaced.
    pub(super) replaced: u64,
}

impl<'a> World<'a> {
    /// The world of a seed, before its first event.
    ///
    /// # Panics
    /// The scenario is of another engine.
    #[must_use]
    pub fn new(prepared: &'a Prepared, seed: u64, plan: Vec<Fault>, trace: Trace) -> World<'a> {
        let scenario = &prepared.scenario;
        let section = scenario.causal.as_ref().expect("the scenario is of this engine");
        let stream = |label: u64| Rng::new(seed).fork(label);
        let machines = Machines::of(prepared, seed, trace);
        let shape = Shape::new(section.positions, u16::from(scenario.replicas()));
        let founders: Vec<NodeId> =
            machines.directory.iter().take(scenario.members()).map(|(node, _)| *node).collect();
        let clients = Clients::new(prepared, &scenario.workload, 0, stream(CLIENTS));
        World {
            prepared,
            section,
            machines,
            clients,
            plan: Plan::new(plan),
            rng: stream(CATALOG),
            is_over: false,
            shape,
            map: Map::first(shape, &founders),
            placed: 1,
            former: Vec::new(),
            is_moving: false,
            unsettled: String::new(),
            replaced: 0,
        }
    }

    /// Runs until all is quiet and was looked at, or something is wrong.
    pub fn run(&mut self) {
        for host in 0..self.machines.hosts.len() {
            self.start_host(host);
        }
        self.clients.start(&mut self.machines.queue);
        self.plan.enqueue(&mut self.machines.queue);
        if self.section.churn_ms > 0 {
            self.machines.queue.push(self.section.churn_ms * 1_000_000, Event::Watch);
        }
        self.machines.enqueue_phases(&self.prepared.scenario.liveness);
        while self.machines.violation.is_none() && !self.is_over {
            let Some(event) = self.machines.advance() else { break };
            self.dispatch(event);
            if let Some(message) = self.clients.failure.take() {
                self.machines.condemn("liveness", message);
            }
        }
        if self.machines.violation.is_none()
            && let Err(message) = siblings::judge(&self.clients.history)
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
                let Machines { queue, trace, .. } = &mut self.machines;
                self.clients.on_client(client, connection, now, queue, trace);
                self.settle();
            }
            Event::Patience { client } => {
                self.machines.event(49, client as u64);
                self.clients.on_patience(client, now, &mut self.machines.queue);
            }
            Event::FaultBegins(index) => {
                self.note_moved();
                self.begin_fault(index);
            }
            Event::FaultEnds(index) => self.end_fault(index),
            // The catalog's news reaches a host.
            Event::Join(host) => self.place(host),
            Event::Look => self.look(),
            Event::Watch => self.churn(),
            Event::Heal => self.heal(),
            Event::Demand => {
                self.clients.demand(now, &mut self.machines.queue);
                self.machines.after(0, Event::Look);
            }
            Event::TooLate => self.too_late(),
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
            faults: self.plan.applied() + self.replaced,
            views: self.map.version,
            token_moves: 0,
            time: self.machines.now,
            idle: None,
            violation: self.machines.violation.clone(),
            undecided: None,
        }
    }
}
