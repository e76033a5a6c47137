//! The world of one seed: hosts, network, clients and faults around one event queue.

use crate::clock::Clock;
use crate::disk::Disk;
use crate::fault::Fault;
use crate::host::{Host, Wrap};
use crate::membership::{Founders, WATCH_NS};
use crate::net::{Net, power_of_two};
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex, Queue};
use crate::trace::Trace;
use crate::workload::{Stage, Workload};
use quorate_check::history::Recorder;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::rng::Rng;
use quorate_node::pump::Input;

/// More events than any scenario needs: a run that reaches it does not come to rest.
pub const EVENTS_MAX: u64 = 3_000_000;
/// Which streams of randomness a seed is split into, so that a draw in one place shifts no other.
const NODES: u64 = 1;
const NET: u64 = 2;
const DISKS: u64 = 3;
const CLOCKS: u64 = 4;
const CLIENTS: u64 = 5;
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

/// What happened to each fault of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has not begun.
    Waiting,
    /// It may not begin: more would be forgotten than the group can bear, or the host is not there.
    Skipped,
    /// It has begun.
    Active,
    /// It has ended.
    Ended,
}

/// The world.
pub struct World<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) now: u64,
    pub(crate) queue: Queue,
    pub(crate) hosts: Vec<Host>,
    pub(crate) net: Net,
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
    pub(crate) trace: Trace,
    pub(crate) plan: Vec<Fault>,
    pub(crate) fates: Vec<Fate>,
    pub(crate) rng: Rng,
    pub(crate) is_healed: bool,
    pub(crate) violation: Option<Violation>,
    /// Where each node is believed to be; a wiped host is still asked for its old node.
    pub(crate) directory: Vec<(NodeId, HostIndex)>,
    pub(crate) wrap: Option<Wrap>,
    pub(crate) answers: Vec<(Ticket, Outcome)>,
    pub(crate) turn_delay: u64,
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
        let mut nodes = stream(NODES);
        let directory: Vec<(NodeId, HostIndex)> =
            (0..scenario.hosts).map(|host| (NodeId(nodes.next()), host)).collect();
        let founders = Founders::new(scenario, &directory);
        let mut net = stream(NET);
        let net = Net::new(
            &scenario.net,
            scenario.hosts,
            prepared.net.clone(),
            &prepared.distance,
            net.fork(0),
        );
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
        let fates = vec![Fate::Waiting; plan.len()];
        let mut world = World {
            prepared,
            now: 0,
            queue: Queue::default(),
            hosts: Vec::new(),
            net,
            workload,
            founders,
            views: 0,
            token_moves: 0,
            content_since: None,
            unsettled: None,
            is_whole: true,
            is_at_rest: false,
            is_awaiting_rest: false,
            trace,
            plan,
            fates,
            rng: stream(HEALING),
            is_healed: false,
            violation: None,
            directory,
            wrap,
            answers: Vec::new(),
            turn_delay: 0,
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
            let mut host = Host::new(index, node_id, disk, clock, rng);
            host.has_joined = index < scenario.members() || scenario.keeps_view;
            self.hosts.push(host);
        }
    }

    /// Runs until every client has finished, or something is wrong.
    pub fn run(&mut self) {
        let joined = |host: &HostIndex| self.hosts[*host].has_joined;
        let (founders, spares): (Vec<_>, Vec<_>) = (0..self.hosts.len()).partition(joined);
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
            self.queue.push(at.unwrap_or(0), Event::Join(host));
        }
        self.workload.start(&mut self.queue);
        self.queue.push(WATCH_NS, Event::Watch);
        for (index, fault) in self.plan.iter().enumerate() {
            self.queue.push(fault.at_us * 1000, Event::FaultBegins(index));
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
        while self.violation.is_none() && !self.is_at_rest {
            if self.workload.stage == Stage::Over && !self.is_awaiting_rest {
                self.is_awaiting_rest = true;
                self.await_rest();
                continue;
            }
            let Some((time, event)) = self.queue.pop() else { break };
            assert!(time >= self.now, "time does not go back");
            self.now = time;
            self.dispatch(event);
            if let Some(message) = self.workload.failure.take() {
                self.condemn("liveness", message);
            }
            if self.trace.events() > EVENTS_MAX {
                self.condemn("livelock", format!("{EVENTS_MAX} events and no end"));
            }
        }
    }

    /// Notes that something is wrong; the first finding counts.
    pub(crate) fn condemn(&mut self, judge: &'static str, message: String) {
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
                if self.trace.is_on() {
                    self.trace_frame(host, &bytes, sum);
                }
                self.arrive(host, Input::Frame(bytes));
            }
            Event::Turn { host, life } => self.at_host(host, life, 16, Self::turn),
            Event::Wake { host, life } => self.at_host(host, life, 32, Self::wake),
            Event::Written { host, life }
            | Event::Synced { host, life }
            | Event::Interval { host, life } => self.disk_event(host, life, event),
            Event::Client { client, connection } => {
                self.trace.event(now, 48, client as u64 | u64::from(connection) << 16);
                let (queue, trace) = (&mut self.queue, &mut self.trace);
                self.workload.on_client(client, connection, now, queue, trace);
                self.settle();
            }
            Event::Patience { client } => {
                self.trace.event(now, 49, client as u64);
                self.workload.on_patience(client, now, &mut self.queue, &mut self.trace);
            }
            Event::FaultBegins(index) => self.begin_fault(index),
            Event::FaultEnds(index) => self.end_fault(index),
            Event::Join(host) => {
                self.trace.event(now, 80, host as u64);
                self.join(host);
            }
            Event::Look => {
                self.trace.event(now, 95, 0);
                self.await_rest();
            }
            Event::Watch => {
                self.trace.event(now, 96, 0);
                self.watch();
            }
            Event::Heal => self.heal(),
            Event::Demand => {
                self.phase("demand");
                self.workload.demand(now, &mut self.queue);
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
                self.condemn("liveness", format!("not finished after {bound} ms: {waiting}"));
            }
        }
    }

    pub(crate) fn phase(&mut self, name: &str) {
        self.trace.event(self.now, 90, name.len() as u64);
        self.trace.line(self.now, format_args!("** {name}"));
    }

    fn trace_frame(&mut self, host: HostIndex, bytes: &[u8], sum: u64) {
        let word = |at: usize| bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
        let source = NodeId(word(9).map_or(0, u64::from_le_bytes));
        let start = bytes.get(17..21).and_then(|four| four.try_into().ok());
        let start = start.map_or(0, u32::from_le_bytes);
        let from = self.directory.iter().find(|(node, _)| *node == source);
        let from = from.map_or(0, |(_, index)| index + 1);
        let (to, length) = (host + 1, bytes.len());
        self.trace.line(self.now, format_args!("n{to} < n{from} #{start} {length}B {sum:08x}"));
    }

    /// Does something at a host unless the event was meant for another life.
    fn at_host(&mut self, host: HostIndex, life: u32, kind: u64, what: fn(&mut Self, HostIndex)) {
        self.trace.event(self.now, kind + host as u64, u64::from(life));
        if self.hosts[host].life == life {
            what(self, host);
        }
    }
}
