//! Clients, and hosts whose cores do one thing at a time.

use super::scenario::prepared;
use super::{Clients, Costs, Hearing, Load, Served};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::process::Request;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use quorate_node::pump::Input;
use quorate_sim::host::Host;
use quorate_sim::machines::Machines;
use quorate_sim::prepared::Prepared;
use quorate_sim::queue::{Event, HostIndex};
use quorate_sim::trace::Trace;
use quorate_sim::world::{Founders, Lanes, NOBODY};
use std::collections::VecDeque;

/// The most simulated time hosts may take until they can serve, and clients until they are ready.
const READY_NS: u64 = 10_000_000_000;
const MILLION: u64 = 1_000_000;
/// The stream of randomness that is the clients', beside those of the machines.
const CLIENTS: u64 = 100;

/// One host's core: what waits for it.
#[derive(Debug, Default)]
struct Core {
    /// Each with when it is here as a whole; the link brings one after the other.
    waiting: VecDeque<(u64, Input)>,
    is_busy: bool,
    /// When the link has brought all that is on its way.
    link_free: u64,
}

/// A client: when it sent the operation that is on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Asker {
    sent: u64,
}

/// The cluster, and the clients that ask it.
pub(super) struct Cluster<'a> {
    load: &'a Load,
    costs: Costs,
    clients: &'a mut dyn Clients,
    prepared: Prepared,
    founders: Founders,
    lanes: Lanes,
    machines: Machines,
    cores: Vec<Core>,
    askers: Vec<Asker>,
    rng: Rng,
    opens: u64,
    closes: u64,
    latencies: Vec<u64>,
    served: Served,
    busy_ns: u64,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(load: &'a Load, costs: Costs, clients: &'a mut dyn Clients) -> Cluster<'a> {
        let prepared = prepared(load);
        let machines = Machines::of(&prepared, load.seed, Trace::default());
        let nodes = machines.hosts.iter().map(|host| host.node_id);
        let askers = vec![Asker::default(); clients.count()];
        Cluster {
            load,
            costs,
            founders: Founders::new(&prepared.scenario, nodes),
            lanes: Lanes::new(&prepared, &[]),
            machines,
            cores: (0..load.hosts).map(|_| Core::default()).collect(),
            askers,
            clients,
            rng: Rng::new(load.seed).fork(CLIENTS),
            opens: u64::MAX,
            closes: u64::MAX,
            latencies: Vec::new(),
            served: Served::default(),
            busy_ns: 0,
            prepared,
        }
    }

    /// Starts the hosts, waits until all can serve, and lets the clients begin.
    pub(super) fn start(&mut self) -> Result<(), Fatal> {
        for index in 0..self.machines.hosts.len() {
            let node = self.machines.hosts[index].node_id;
            let scenario = &self.prepared.scenario;
            let overlay = self.founders.overlay(scenario, &self.machines.hosts, index);
            let ring = self.founders.ring(node);
            let (host, mut around) = self.machines.lend(index);
            self.lanes.launch(host, overlay, (ring, None), &mut around)?;
        }
        while !self.machines.hosts.iter().all(Host::is_ready) {
            self.step()?;
            assert!(self.machines.now < READY_NS, "hosts that nothing disturbs come to serve");
        }
        for client in 0..self.askers.len() {
            // Not all at the same moment.
            let at = self.machines.now + self.rng.below(MILLION);
            self.ask(client, at);
        }
        Ok(())
    }

    pub(super) fn run(&mut self) -> Result<(), Fatal> {
        let latest = self.machines.now + READY_NS;
        while !self.clients.are_ready() {
            self.step()?;
            assert!(self.machines.now < latest, "clients come to be ready");
        }
        self.opens = self.machines.now + self.load.warm_up_ms * MILLION;
        self.closes = self.opens + self.load.measured_ms * MILLION;
        while self.machines.now < self.closes {
            self.step()?;
        }
        Ok(())
    }

    /// A client sends its next operation, which arrives a network delay later.
    fn ask(&mut self, client: usize, at: u64) {
        self.askers[client].sent = at;
        let arrives = at + self.load.network_us * 1000;
        self.machines.queue.push(arrives, Event::Client { client, connection: 0 });
    }

    fn step(&mut self) -> Result<(), Fatal> {
        let (time, event) = self.machines.queue.pop().expect("hosts always have a timer");
        assert!(time >= self.machines.now, "time does not go back");
        self.machines.now = time;
        match event {
            Event::Frame { host, bytes, .. } => self.arrive(host, Input::Frame(bytes)),
            Event::Client { client, .. } => {
                let request = self.draw(client);
                let ticket = Ticket(client as u64);
                let input = Input::Request { lane: LaneId::KEYSPACES, ticket, request };
                self.arrive(client % self.machines.hosts.len(), input);
            }
            Event::Turn { host, .. } => self.serve_first(host)?,
            Event::Wake { host, .. } => {
                let (target, mut around) = self.machines.lend(host);
                if target.is_awake(&mut around) {
                    target.turn(&mut around)?;
                }
            }
            Event::Written { host, life }
            | Event::Synced { host, life }
            | Event::Interval { host, life } => {
                if let Some(durable) = self.machines.on_disk(host, life, event)? {
                    self.handle(host, Input::Durable(durable))?;
                }
            }
            event => unreachable!("nothing else is ever queued here: {event:?}"),
        }
        self.deliver();
        Ok(())
    }

    /// A host handles an input.
    fn handle(&mut self, host: HostIndex, input: Input) -> Result<(), Fatal> {
        let (target, mut around) = self.machines.lend(host);
        target.receive(input);
        target.turn(&mut around)
    }

    fn draw(&mut self, client: usize) -> Request {
        let operation = self.clients.next(client, &mut self.rng);
        // Clocks here are the world's, and nothing may time out.
        Request { operation, deadline: Time(self.machines.now) + Span::secs(60) }
    }

    /// Something waits for a host's core.
    fn arrive(&mut self, host: HostIndex, input: Input) {
        let (now, core) = (self.machines.now, &mut self.cores[host]);
        let bytes = if let Input::Frame(bytes) = &input { bytes.len() as u64 } else { 0 };
        core.link_free = core.link_free.max(now) + bytes * self.costs.byte_ns;
        core.waiting.push_back((core.link_free, input));
        if !self.cores[host].is_busy {
            self.take_first(host);
        }
    }

    /// The core takes what has waited longest, if there is anything.
    fn take_first(&mut self, host: HostIndex) {
        let Some((here, first)) = self.cores[host].waiting.front() else { return };
        let begins = self.machines.now.max(*here);
        let is_counted = (self.opens..self.closes).contains(&self.machines.now);
        let cost = match first {
            Input::Request { .. } => {
                self.served.requests += u64::from(is_counted);
                self.costs.request_ns
            }
            _ => {
                self.served.frames += u64::from(is_counted);
                self.costs.frame_ns
            }
        };
        self.busy_ns += if is_counted { cost } else { 0 };
        self.cores[host].is_busy = true;
        self.machines.queue.push(begins + cost, Event::Turn { host, life: 0 });
    }

    /// The core has done its work for the first that waits.
    fn serve_first(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let (_, input) = self.cores[host].waiting.pop_front().expect("the core was busy with it");
        self.handle(host, input)?;
        self.cores[host].is_busy = false;
        self.take_first(host);
        Ok(())
    }

    /// Answers reach their clients, which go on.
    fn deliver(&mut self) {
        let mut answers = std::mem::take(&mut self.machines.answers);
        for (ticket, outcome) in answers.drain(..) {
            if ticket == NOBODY {
                continue;
            }
            let client = ticket.0 as usize;
            let back = self.machines.now + self.load.network_us * 1000;
            let is_counted = (self.opens..self.closes).contains(&back);
            self.clients.told(client, &Hearing { outcome: &outcome, at: back, is_counted });
            if is_counted {
                match outcome {
                    Outcome::Refused(_) => self.served.refused += 1,
                    _ => self.latencies.push(back - self.askers[client].sent),
                }
            }
            self.ask(client, back);
        }
        self.machines.answers = answers;
    }

    pub(super) fn sums(mut self) -> Served {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let total: u64 = self.latencies.iter().sum();
        let nanos = (self.load.measured_ms * MILLION) as f64;
        Served {
            operations: count as u64,
            mean_ns: total as f64 / count.max(1) as f64,
            p99_ns: self.latencies.get(count * 99 / 100).copied().unwrap_or(0),
            throughput: count as f64 * 1e9 / nanos,
            busy: self.busy_ns as f64 / (nanos * self.machines.hosts.len() as f64),
            ..self.served
        }
    }
}
