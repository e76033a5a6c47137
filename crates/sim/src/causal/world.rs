//! The event loop.

use super::CausalSection;
use super::clients::Clients;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::fault::Fault;
use crate::host::Host;
use crate::net::{Net, power_of_two};
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex, Queue};
use crate::seed::Report;
use crate::trace::Trace;
use crate::world::{EVENTS_MAX, Fate, Violation};
use quorate_check::siblings;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::rng::Rng;
use quorate_node::pump::Input;
use quorate_protocols::causal::map::{Map, Shape};

/// Which streams of randomness a seed is split into.
const NODES: u64 = 1;
const NET: u64 = 2;
const DISKS: u64 = 3;
const CLOCKS: u64 = 4;
const CLIENTS: u64 = 5;
const CATALOG: u64 = 6;

/// The world.
pub struct World<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) section: &'a CausalSection,
    pub(super) now: u64,
    pub(super) queue: Queue,
    pub(super) hosts: Vec<Host>,
    pub(super) net: Net,
    pub(super) clients: Clients,
    pub(super) trace: Trace,
    pub(super) plan: Vec<Fault>,
    pub(super) fates: Vec<Fate>,
    pub(super) rng: Rng,
    pub(super) is_healed: bool,
    pub(super) is_over: bool,
    pub(super) violation: Option<Violation>,
    pub(super) directory: Vec<(NodeId, HostIndex)>,
    pub(super) answers: Vec<(Ticket, Outcome)>,
    pub(super) turn_delay: u64,
    pub(super) shape: Shape,
    /// What the catalog has decided.
    pub(super) map: Map,
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
        let mut nodes = stream(NODES);
        let directory: Vec<(NodeId, HostIndex)> =
            (0..scenario.hosts).map(|host| (NodeId(nodes.next()), host)).collect();
        let shape = Shape::new(section.positions, u16::from(scenario.replicas()));
        let founders: Vec<NodeId> =
            directory.iter().take(scenario.members()).map(|(node, _)| *node).collect();
        let mut net = stream(NET);
        let net = Net::new(
            &scenario.net,
            scenario.hosts,
            prepared.net.clone(),
            &prepared.distance,
            net.fork(0),
        );
        let clients = Clients::new(prepared, stream(CLIENTS));
        let fates = vec![Fate::Waiting; plan.len()];
        let mut world = World {
            prepared,
            section,
            now: 0,
            queue: Queue::default(),
            hosts: Vec::new(),
            net,
            clients,
            trace,
            plan,
            fates,
            rng: stream(CATALOG),
            is_healed: false,
            is_over: false,
            violation: None,
            directory,
            answers: Vec::new(),
            turn_delay: 0,
            shape,
            map: Map::first(shape, &founders),
            unsettled: String::new(),
            replaced: 0,
        };
        world.build_hosts(seed);
        world
    }

    fn build_hosts(&mut self, seed: u64) {
        let scenario = &self.prepared.scenario;
        let (mut disks, mut clocks) = (Rng::new(seed).fork(DISKS), Rng::new(seed).fork(CLOCKS));
        let interval = scenario.durability().every().map(|every| every.0);
        if scenario.turn_us_max > 0 && clocks.chance_ppm(500_000) {
            self.turn_delay = clocks.between(1, scenario.turn_us_max) * 1000;
        }
        let usual = power_of_two(scenario.disk.slower_max, &mut disks);
        let within = |rng: &mut Rng, most: u64| rng.between(0, 2 * most) as i64 - most as i64;
        for (node_id, index) in self.directory.clone() {
            let (write, sync) = (self.prepared.write.clone(), self.prepared.sync.clone());
            let disk = Disk::new(index, write, sync, usual, interval, disks.fork(index as u64));
            let drift = within(&mut clocks, scenario.clock.drift_ppm);
            let offset = within(&mut clocks, scenario.clock.skew_ms);
            let clock = Clock::new(0, drift, offset);
            let rng = disks.fork(1 << 32 | index as u64);
            self.hosts.push(Host::new(index, node_id, disk, clock, rng));
        }
    }

    /// Runs until all is quiet and was looked at, or something is wrong.
    pub fn run(&mut self) {
        for host in 0..self.hosts.len() {
            self.start_host(host);
        }
        self.clients.start(&mut self.queue);
        for (index, fault) in self.plan.iter().enumerate() {
            self.queue.push(fault.at_us * 1000, Event::FaultBegins(index));
        }
        if self.section.churn_ms > 0 {
            self.queue.push(self.section.churn_ms * 1_000_000, Event::Watch);
        }
        let liveness = &self.prepared.scenario.liveness;
        let (heal, grace) = (liveness.heal_ms, liveness.heal_ms + liveness.grace_ms);
        for (at_ms, event) in [
            (heal, Event::Heal),
            (grace, Event::Demand),
            (grace + liveness.bound_ms, Event::TooLate),
        ] {
            self.queue.push(at_ms * 1_000_000, event);
        }
        while self.violation.is_none() && !self.is_over {
            let Some((time, event)) = self.queue.pop() else { break };
            assert!(time >= self.now, "time does not go back");
            self.now = time;
            self.dispatch(event);
            if let Some(message) = self.clients.failure.take() {
                self.condemn("liveness", message);
            }
            if self.trace.events() > EVENTS_MAX {
                self.condemn("livelock", format!("{EVENTS_MAX} events and no end"));
            }
        }
        if self.violation.is_none()
            && let Err(message) = siblings::judge(&self.clients.history)
        {
            self.condemn("siblings", message);
        }
    }

    /// Notes that something is wrong; the first finding counts.
    pub(super) fn condemn(&mut self, judge: &'static str, message: String) {
        self.violation.get_or_insert(Violation { judge, message });
    }

    fn dispatch(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Frame { host, bytes } => {
                let sum = bytes.get(33..37).map_or(0, |sum| {
                    u64::from(u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]))
                });
                self.trace.event(now, 1 + host as u64, sum);
                let length = bytes.len();
                self.trace.line(now, format_args!("n{} < {length}B {sum:08x}", host + 1));
                self.arrive(host, Input::Frame(bytes));
            }
            Event::Turn { host, life } => self.at_host(host, life, 16, Self::turn),
            Event::Wake { host, life } => self.at_host(host, life, 32, Self::wake),
            Event::Written { host, life }
            | Event::Synced { host, life }
            | Event::Interval { host, life } => self.disk_event(host, life, event),
            Event::Client { client, connection } => {
                self.trace.event(now, 48, client as u64 | u64::from(connection) << 16);
                self.clients.on_client(client, connection, now, &mut self.queue, &mut self.trace);
                self.settle();
            }
            Event::Patience { client } => {
                self.trace.event(now, 49, client as u64);
                self.clients.on_patience(client, now, &mut self.queue);
            }
            Event::FaultBegins(index) => self.begin_fault(index),
            Event::FaultEnds(index) => self.end_fault(index),
            // The catalog's news reaches a host.
            Event::Join(host) => self.place(host),
            Event::Look => self.look(),
            Event::Watch => self.churn(),
            Event::Heal => self.heal(),
            Event::Demand => {
                self.clients.demand(now, &mut self.queue);
                self.queue.push(now, Event::Look);
            }
            Event::TooLate => self.too_late(),
        }
    }

    /// Does something at a host unless the event was meant for another life.
    fn at_host(&mut self, host: HostIndex, life: u32, kind: u64, what: fn(&mut Self, HostIndex)) {
        self.trace.event(self.now, kind + host as u64, u64::from(life));
        if self.hosts[host].life == life {
            what(self, host);
        }
    }

    /// What the run has done.
    #[must_use]
    pub fn report(&mut self, seed: u64, panicked: Option<String>) -> Report {
        if let Some(message) = panicked {
            self.trace.line(self.now, format_args!("!! {message}"));
            self.violation = Some(Violation { judge: "panic", message });
        }
        let is_applied = |fate: &&Fate| matches!(fate, Fate::Active | Fate::Ended);
        let faults = self.fates.iter().filter(is_applied).count() as u64;
        Report {
            seed,
            hash: self.trace.hash(),
            events: self.trace.events(),
            counts: self.clients.counts,
            faults: faults + self.replaced,
            views: self.map.version,
            token_moves: 0,
            time: self.now,
            idle: None,
            violation: self.violation.clone(),
            undecided: None,
        }
    }
}
