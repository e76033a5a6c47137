//! Clusters of hosts with one core each: how throughput grows with hosts (CATS §5, Fig. 4).
//!
//! The world of the scenarios gives hosts infinitely fast processors. Here every request and every
//! frame waits for its host's one core, first come, first served, and keeps it for a time measured
//! on real hosts; what a turn sends leaves when that time is over. The hosts run the same nodes.
//! Timers, the reports of the disk and the clients themselves cost nothing.

use crate::clock::Clock;
use crate::delay::{Delay, Distribution};
use crate::disk::Disk;
use crate::host::Host;
use crate::keyspace::Word;
use crate::machines::Machines;
use crate::net::Net;
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex};
use crate::world::{Founders, Lanes, NOBODY};
use bytes::Bytes;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Request;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use quorate_node::pump::Input;
use std::collections::VecDeque;

/// How many hosts hold each key.
const REPLICAS: u8 = 3;
/// How many clients of the paper's load each three hosts are asked by, at most.
pub const CLIENTS_MAX: usize = 1 << 16;
/// The most simulated time hosts may take until they can serve.
const READY_NS: u64 = 10_000_000_000;
/// How often hosts look for tombstones, and compare what they hold; there is nothing to find.
const PURGE_MS: u64 = 60_000;
const MILLION: u64 = 1_000_000;

/// What the processor of a host costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Taking a client's request and, later, writing its reply, in nanoseconds.
    pub request_ns: u64,
    /// Taking a frame, and sending what it leads to.
    pub frame_ns: u64,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// How many hosts: at least as many as there are replicas.
    pub hosts: usize,
    /// How many clients there are for each three hosts; each has one operation on its way.
    pub clients_per_three: usize,
    /// How many of 100 operations are gets.
    pub read_percent: u64,
    /// How many keys there are for each host, chosen uniformly.
    pub keys_per_host: u64,
    /// The way from one machine to another, in microseconds.
    pub network_us: u64,
    /// Simulated time before anything counts, in milliseconds.
    pub warm_up_ms: u64,
    /// Simulated time that counts.
    pub measured_ms: u64,
    /// Decides everything.
    pub seed: u64,
}

/// What a simulated cluster has done in the time that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Operations that succeeded.
    pub operations: u64,
    /// Operations that did not.
    pub refused: u64,
    /// The mean latency in nanoseconds.
    pub mean_ns: f64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// Operations per simulated second.
    pub throughput: f64,
    /// Requests that hosts took.
    pub requests: u64,
    /// Frames that hosts took, those of membership included.
    pub frames: u64,
    /// The share of the hosts' time in which their cores were busy.
    pub busy: f64,
}

/// Simulates a cluster.
///
/// # Errors
/// A host's store failed, or the hosts never came to serve.
pub fn serve(load: &Load, costs: Costs) -> Result<Served, Fatal> {
    assert!(load.hosts >= usize::from(REPLICAS), "every replica has a host");
    assert!(load.clients_per_three <= CLIENTS_MAX, "clients are bounded");
    let mut cluster = Cluster::new(load, costs);
    cluster.start()?;
    cluster.run()?;
    Ok(cluster.sums())
}

/// One host's core: what waits for it.
#[derive(Debug, Default)]
struct Core {
    waiting: VecDeque<Input>,
    is_busy: bool,
}

/// A client: when it sent the operation that is on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Asker {
    sent: u64,
}

struct Cluster<'a> {
    load: &'a Load,
    costs: Costs,
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

/// The scenario that stands for a cluster in memory; only what concerns hosts is used of it.
fn prepared(load: &Load) -> Prepared {
    let mut scenario = crate::shipped::find("calm").expect("the scenario ships");
    scenario.hosts = load.hosts;
    scenario.net.delay = Distribution::Constant { us: load.network_us };
    scenario.net.slower_max = 1;
    let keyspace = &mut scenario.keyspaces[0];
    let words = [("replicas", REPLICAS.to_string()), ("durability", "memory".to_owned())];
    let words = words.map(|(name, word)| (name.to_owned(), Word::Text(word)));
    keyspace.settings.extend(words);
    let periods = ["purge", "compare"].map(|name| (name.to_owned(), PURGE_MS));
    keyspace.pace.extend(periods);
    Prepared::new(scenario).expect("what is changed fits the scenario")
}

impl<'a> Cluster<'a> {
    fn new(load: &'a Load, costs: Costs) -> Cluster<'a> {
        let prepared = prepared(load);
        let scenario = &prepared.scenario;
        let mut rng = Rng::new(load.seed);
        let directory: Vec<(NodeId, HostIndex)> =
            (0..load.hosts).map(|host| (NodeId(rng.next()), host)).collect();
        let free = Delay::new(&Distribution::Constant { us: 1 });
        let host = |(node, index): &(NodeId, HostIndex)| {
            let mut rng = Rng::new(node.0);
            let disk = Disk::new(*index, free.clone(), free.clone(), 1, None, rng.fork(1));
            Host::new(*index, *node, disk, Clock::new(0, 0, 0), rng)
        };
        let hosts = directory.iter().map(host).collect();
        let delay = Delay::new(&scenario.net.delay);
        let net = Net::new(&scenario.net, load.hosts, delay, &[], rng.fork(2));
        let clients = load.hosts * load.clients_per_three / 3;
        Cluster {
            load,
            costs,
            founders: Founders::new(scenario, &directory),
            lanes: Lanes::new(&prepared, &[]),
            machines: Machines::new(hosts, net, directory),
            cores: (0..load.hosts).map(|_| Core::default()).collect(),
            askers: vec![Asker::default(); clients.max(1)],
            rng: rng.fork(3),
            opens: u64::MAX,
            closes: u64::MAX,
            latencies: Vec::new(),
            served: Served::default(),
            busy_ns: 0,
            prepared,
        }
    }

    /// Starts the hosts, waits until all can serve, and lets the clients begin.
    fn start(&mut self) -> Result<(), Fatal> {
        for index in 0..self.machines.hosts.len() {
            let node = self.machines.hosts[index].node_id;
            let scenario = &self.prepared.scenario;
            let overlay = self.founders.overlay(scenario, &self.machines.hosts, index);
            let ring = self.founders.ring(node);
            let (host, mut around) = self.machines.lend(index);
            self.lanes.launch(host, overlay, ring, &mut around)?;
        }
        while !self.machines.hosts.iter().all(Host::is_ready) {
            self.step()?;
            assert!(self.machines.now < READY_NS, "hosts that nothing disturbs come to serve");
        }
        self.opens = self.machines.now + self.load.warm_up_ms * MILLION;
        self.closes = self.opens + self.load.measured_ms * MILLION;
        for client in 0..self.askers.len() {
            // Not all at the same moment.
            let at = self.machines.now + self.rng.below(MILLION);
            self.ask(client, at);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), Fatal> {
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
        let event = self.machines.advance().expect("hosts always have a timer");
        match event {
            Event::Frame { host, bytes, .. } => self.arrive(host, Input::Frame(bytes)),
            Event::Client { client, .. } => {
                let request = self.draw();
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
            Event::Written { host, .. } | Event::Synced { host, .. } => {
                let is_written = matches!(event, Event::Written { .. });
                let disk = &mut self.machines.hosts[host].disk;
                let durable = match is_written {
                    true => disk.on_written(self.machines.now, &mut self.machines.queue)?,
                    false => disk.on_synced(self.machines.now, &mut self.machines.queue)?,
                };
                let (target, mut around) = self.machines.lend(host);
                target.receive(Input::Durable(durable));
                target.turn(&mut around)?;
            }
            _ => unreachable!("nothing else is ever queued here"),
        }
        self.deliver();
        Ok(())
    }

    fn draw(&mut self) -> Request {
        let keys = self.load.keys_per_host * self.load.hosts as u64;
        let key = Bytes::from(format!("user{:016x}", self.rng.below(keys)));
        let operation = match self.rng.below(100) < self.load.read_percent {
            true => Operation::get(key),
            false => Operation::put(key, Bytes::from_static(b"value")),
        };
        // Clocks here are the world's, and nothing may time out.
        Request { operation, deadline: Time(self.machines.now) + Span::secs(60) }
    }

    /// Something waits for a host's core.
    fn arrive(&mut self, host: HostIndex, input: Input) {
        self.cores[host].waiting.push_back(input);
        if !self.cores[host].is_busy {
            self.take_first(host);
        }
    }

    /// The core takes what has waited longest, if there is anything.
    fn take_first(&mut self, host: HostIndex) {
        let Some(first) = self.cores[host].waiting.front() else { return };
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
        self.machines.after(cost, Event::Turn { host, life: 0 });
    }

    /// The core has done its work for the first that waits.
    fn serve_first(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let input = self.cores[host].waiting.pop_front().expect("the core was busy with it");
        let (target, mut around) = self.machines.lend(host);
        target.receive(input);
        target.turn(&mut around)?;
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
            if (self.opens..self.closes).contains(&back) {
                match outcome {
                    Outcome::Refused(_) => self.served.refused += 1,
                    _ => self.latencies.push(back - self.askers[client].sent),
                }
            }
            self.ask(client, back);
        }
        self.machines.answers = answers;
    }

    fn sums(mut self) -> Served {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn load(hosts: usize, read_percent: u64) -> Load {
        Load {
            hosts,
            clients_per_three: 24,
            read_percent,
            keys_per_host: 100,
            network_us: 20,
            warm_up_ms: 5,
            measured_ms: 20,
            seed: 1,
        }
    }

    const COSTS: Costs = Costs { request_ns: 20_000, frame_ns: 10_000 };

    #[test]
    fn a_busy_cluster_does_what_its_cores_can() {
        let served = serve(&load(3, 100), COSTS).expect("nothing fails");
        assert_eq!(served.refused, 0);
        assert!(served.busy > 0.9, "{served:?}");
        let work = served.requests * COSTS.request_ns + served.frames * COSTS.frame_ns;
        let most = work as f64 / served.requests as f64;
        let bound = 3e9 / most;
        assert!((served.throughput / bound - 1.0).abs() < 0.1, "{served:?}, bound {bound}");
        assert_eq!(serve(&load(3, 100), COSTS), Ok(served), "a seed decides everything");
    }

    #[test]
    fn an_update_takes_more_frames_than_a_get() {
        let frames = |read_percent| {
            let served = serve(&load(3, read_percent), COSTS).expect("nothing fails");
            served.frames as f64 / served.requests as f64
        };
        let (gets, puts) = (frames(100), frames(0));
        assert!(gets >= 1.5 && puts > gets + 1.0, "{gets} and {puts} frames");
    }

    #[test]
    fn more_hosts_do_more() {
        let of = |hosts| serve(&load(hosts, 95), COSTS).expect("nothing fails").throughput;
        let (six, twelve) = (of(6), of(12));
        assert!(twelve > six * 1.7, "{six} and {twelve} operations per second");
    }
}
