//! The machines of a cluster: hosts with their disks and clocks, the network between them, and the
//! queue of what will happen. Every world is built on them; what else there is, is the world's own.

use crate::clock::Clock;
use crate::disk::Disk;
use crate::forger::Forger;
use crate::host::{Host, Running, Surroundings};
use crate::net::{Net, power_of_two};
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex, Queue};
use crate::scenario::LivenessSection;
use crate::seed::Violation;
use crate::trace::Trace;
use crate::workload::{Demand, Submission};
use bytes::Bytes;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::process::{Inspect, Request};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durable;
use quorate_kernel::time::Span;
use quorate_node::pump::Input;
use std::collections::BTreeMap;
use std::fmt;

/// More events than any scenario needs: a run that reaches it does not come to rest.
const EVENTS_MAX: u64 = 3_000_000;
/// The judge of hosts that had to stop.
pub(crate) const FATAL: &str = "fatal";
/// Which streams of randomness a seed is split into, so that a draw in one place shifts no other.
/// Those of a world's own come after.
const NODES: u64 = 1;
const NET: u64 = 2;
const DISKS: u64 = 3;
const CLOCKS: u64 = 4;
pub(crate) const CLIENTS: u64 = 5;

/// The machines.
pub struct Machines {
    /// The time of the world, in nanoseconds.
    pub now: u64,
    /// What will happen.
    pub queue: Queue,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The network between them.
    pub net: Net,
    /// Where each node is believed to be; a wiped host is still asked for its old node.
    pub directory: BTreeMap<NodeId, HostIndex>,
    /// What hosts answered and nobody was told yet.
    pub answers: Vec<(Ticket, Outcome)>,
    /// How long after its first input the turn of a host comes; at once if it is zero.
    turn_delay: u64,
    /// What has happened.
    pub trace: Trace,
    /// What was found wrong first.
    pub violation: Option<Violation>,
    /// Who adds frames that no correct peer sends, and at how many events the run ends. Nothing but
    /// hosts that end is wrong then.
    pub forger: Option<(Forger, u64)>,
}

impl Machines {
    /// Machines that take their turns at once and leave no trace.
    #[must_use]
    pub fn new(hosts: Vec<Host>, net: Net, directory: BTreeMap<NodeId, HostIndex>) -> Machines {
        Machines {
            now: 0,
            queue: Queue::default(),
            hosts,
            net,
            directory,
            answers: Vec::new(),
            turn_delay: 0,
            trace: Trace::default(),
            violation: None,
            forger: None,
        }
    }

    /// The machines of a seed of a scenario.
    #[must_use]
    pub fn of(prepared: &Prepared, seed: u64, trace: Trace) -> Machines {
        let scenario = &prepared.scenario;
        let stream = |label: u64| Rng::new(seed).fork(label);
        let mut nodes = stream(NODES);
        let nodes: Vec<NodeId> = (0..scenario.hosts).map(|_| NodeId(nodes.next())).collect();
        let (delay, rng) = (prepared.net.clone(), stream(NET).fork(0));
        let net = Net::new(&scenario.net, scenario.hosts, delay, &prepared.distance, rng);
        let (mut disks, mut clocks) = (stream(DISKS), stream(CLOCKS));
        let every = prepared.keyspaces.iter().filter_map(|keyspace| keyspace.durability.every());
        let interval = every.min().map(|every| every.0);
        let mut turn_delay = 0;
        if scenario.turn_us_max > 0 && clocks.chance_ppm(500_000) {
            turn_delay = clocks.between(1, scenario.turn_us_max) * 1000;
        }
        let usual = power_of_two(scenario.disk.slower_max, &mut disks);
        let within = |rng: &mut Rng, most: u64| rng.between(0, 2 * most) as i64 - most as i64;
        let host = |(index, node): (HostIndex, &NodeId)| {
            let (write, sync) = (prepared.write.clone(), prepared.sync.clone());
            let rng = disks.fork(index as u64);
            let disk = Disk::new(index, write, sync, usual, interval, rng);
            let drift = within(&mut clocks, scenario.clock.drift_ppm);
            let offset = within(&mut clocks, scenario.clock.skew_ms);
            let clock = Clock::new(0, drift, offset);
            Host::new(index, *node, disk, clock, disks.fork(1 << 32 | index as u64))
        };
        let hosts = nodes.iter().enumerate().map(host).collect();
        let directory = nodes.into_iter().zip(0..).collect();
        Machines { turn_delay, trace, ..Machines::new(hosts, net, directory) }
    }

    /// The next event; time goes on to it. There is none if the run does not come to rest.
    pub fn advance(&mut self) -> Option<Event> {
        if let Some((_, events_max)) = &self.forger
            && self.trace.events() > *events_max
        {
            return None;
        }
        if self.trace.events() > EVENTS_MAX {
            self.condemn("livelock", format!("{EVENTS_MAX} events and no end"));
            return None;
        }
        let (time, event) = self.queue.pop()?;
        assert!(time >= self.now, "time does not go back");
        self.now = time;
        Some(event)
    }

    /// Queues what will happen after this many nanoseconds.
    pub fn after(&mut self, delay: u64, event: Event) {
        self.queue.push(self.now + delay, event);
    }

    /// Queues the end of the faults and what must follow.
    pub fn enqueue_phases(&mut self, liveness: &LivenessSection) {
        let (heal, grace) = (liveness.heal_ms, liveness.heal_ms + liveness.grace_ms);
        for (at_ms, event) in [
            (heal, Event::Heal),
            (grace, Event::Demand),
            (grace + liveness.bound_ms, Event::TooLate),
        ] {
            self.queue.push(at_ms * 1_000_000, event);
        }
    }

    /// Takes an event of now into the trace, see [`Trace::event`].
    pub fn event(&mut self, kind: u64, detail: u64) {
        self.trace.event(self.now, kind, detail);
    }

    /// Writes a line of now into the trace, if lines are asked for.
    pub fn line(&mut self, text: fmt::Arguments<'_>) {
        self.trace.line(self.now, text);
    }

    /// Writes what every host says of its lanes into the trace, if lines are asked for.
    pub fn show(&mut self) {
        for (index, host) in self.hosts.iter().enumerate() {
            let told = host.told.iter().flat_map(|told| &told.list);
            let lanes = told.map(|(keyspace, _)| keyspace.lane);
            for lane in [LaneId::OVERLAY, LaneId::CATALOG].into_iter().chain(lanes) {
                let mut lines = Lines { trace: &mut self.trace, now: self.now, host: index, lane };
                host.inspect(lane, &mut lines);
            }
        }
    }

    /// Notes that something is wrong; the first finding counts.
    pub fn condemn(&mut self, judge: &'static str, message: String) {
        if self.forger.is_some() && judge != FATAL {
            return;
        }
        self.violation.get_or_insert(Violation { judge, message });
    }

    /// Notes that a node panicked, whatever else was found.
    pub fn on_panic(&mut self, message: String) {
        self.line(format_args!("!! {message}"));
        self.violation = Some(Violation { judge: "panic", message });
    }

    /// What workloads see of the machines.
    pub fn scene(&mut self) -> Scene<'_> {
        let Machines { now, queue, trace, hosts, .. } = self;
        Scene { now: *now, queue, trace, hosts }
    }

    /// A host, and the rest of the machines as it may use them.
    pub fn lend(&mut self, host: HostIndex) -> (&mut Host, Surroundings<'_>) {
        let around = Surroundings {
            now: self.now,
            net: &mut self.net,
            queue: &mut self.queue,
            directory: &self.directory,
            answers: &mut self.answers,
        };
        (&mut self.hosts[host], around)
    }

    /// Adds frames that no correct peer sends, until so many events have passed. Hosts are not
    /// checked any more: what such a frame does to their state may well be wrong.
    pub fn forge(&mut self, forger: Forger, events_max: u64) {
        self.forger = Some((forger, events_max));
        self.hosts.iter_mut().for_each(|host| host.is_checked = false);
    }

    /// A forged frame that arrives with a real one, if one does.
    pub fn forged(&mut self, bytes: &Bytes) -> Option<Bytes> {
        self.forger.as_mut().and_then(|(forger, _)| forger.follow(bytes))
    }

    /// A host receives what a client asks, to be answered within this time.
    pub fn submit(&mut self, lane: LaneId, submission: Submission, within: Span) {
        let Submission { host, ticket, ask } = submission;
        let deadline = self.hosts[host].clock.local(self.now) + within;
        self.hosts[host].receive(match ask {
            Demand::Operation(operation) => {
                Input::Request { lane, ticket, request: Request { operation, deadline } }
            }
            Demand::Order(order) => {
                Input::Control { lane, ticket, control: Control::Keyspace(order), deadline }
            }
            Demand::Watch(watch) => Input::Watch { lane, ticket, watch },
            Demand::Unwatch => Input::Unwatch { lane, ticket },
        });
        self.kick(host);
    }

    /// Lets a host handle what it has received: at once, or by the turn that is due.
    pub fn kick(&mut self, host: HostIndex) {
        if self.hosts[host].running != Running::Up || self.hosts[host].is_turn_due {
            return;
        }
        if self.turn_delay == 0 {
            return self.turn(host);
        }
        self.hosts[host].is_turn_due = true;
        let life = self.hosts[host].life;
        self.after(self.turn_delay, Event::Turn { host, life });
    }

    /// Runs a turn of a host.
    pub fn turn(&mut self, host: HostIndex) {
        if self.hosts[host].running != Running::Up {
            return;
        }
        let (target, mut around) = self.lend(host);
        let result = target.turn(&mut around);
        self.check_fatal(host, result);
        self.hosts[host].settle();
    }

    /// Condemns a host's failure that no fault has asked for.
    pub fn check_fatal(&mut self, host: HostIndex, result: Result<(), Fatal>) {
        if let Err(fatal) = result {
            self.condemn(FATAL, format!("n{} had to stop: {fatal}", host + 1));
        }
    }

    /// Notes an event of this kind at a host, and tells whether it was meant for the present life.
    pub fn is_present(&mut self, host: HostIndex, life: u32, kind: u64) -> bool {
        self.event(kind + host as u64, u64::from(life));
        self.hosts[host].life == life
    }

    /// Whether a wake means anything; it may be for a timer that was moved since.
    pub fn is_awake(&mut self, host: HostIndex) -> bool {
        let (target, mut around) = self.lend(host);
        let is_awake = target.running == Running::Up && target.is_awake(&mut around);
        if is_awake {
            self.line(format_args!("n{} wake", host + 1));
        }
        is_awake
    }

    /// The disk thread of a host has done something. Returns what it reports, if it does.
    ///
    /// # Errors
    /// The disk failed: the host must stop.
    pub fn on_disk(
        &mut self,
        host: HostIndex,
        life: u32,
        event: Event,
    ) -> Result<Option<Durable>, Fatal> {
        if !self.is_present(host, life, 64) {
            return Ok(None);
        }
        let target = &mut self.hosts[host];
        if target.running == Running::Paused {
            target.stalled.push(event);
            return Ok(None);
        }
        let durable = match event {
            Event::Written { .. } => target.disk.on_written(self.now, &mut self.queue)?,
            Event::Synced { .. } => target.disk.on_synced(self.now, &mut self.queue)?,
            _ => {
                target.disk.on_interval(self.now, &mut self.queue);
                return Ok(None);
            }
        };
        let (written, synced, number) = (durable.written.0, durable.synced.0, host + 1);
        self.trace.note(written << 32 | synced);
        self.line(format_args!("n{number} written {written}, synced {synced}"));
        Ok(Some(durable))
    }

    /// Notes a frame that arrives at a host.
    pub fn trace_frame(&mut self, host: HostIndex, bytes: &[u8]) {
        let four = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        let sum = four(33).map_or(0, u32::from_le_bytes);
        self.event(1 + host as u64, u64::from(sum));
        if self.trace.is_on() {
            let source = bytes.get(9..17).and_then(|eight| eight.try_into().ok());
            let source = NodeId(source.map_or(0, u64::from_le_bytes));
            let start = four(17).map_or(0, u32::from_le_bytes);
            let from = self.directory.get(&source).map_or(0, |index| index + 1);
            let (to, length) = (host + 1, bytes.len());
            self.line(format_args!("n{to} < n{from} #{start} {length}B {sum:08x}"));
        }
    }
}

/// What workloads see of the machines.
pub struct Scene<'a> {
    /// The time of the world, in nanoseconds.
    pub now: u64,
    /// What will happen.
    pub queue: &'a mut Queue,
    /// What has happened.
    pub trace: &'a mut Trace,
    /// The hosts.
    pub hosts: &'a [Host],
}

impl Scene<'_> {
    /// Writes a line of now into the trace, if lines are asked for.
    pub fn line(&mut self, text: fmt::Arguments<'_>) {
        self.trace.line(self.now, text);
    }
}

/// Writes what a lane shows as lines of a trace.
struct Lines<'a> {
    trace: &'a mut Trace,
    now: u64,
    host: HostIndex,
    lane: LaneId,
}

impl Inspect for Lines<'_> {
    fn field(&mut self, name: &'static str, value: &dyn fmt::Display) {
        let (host, lane) = (self.host + 1, self.lane.0);
        self.trace.line(self.now, format_args!("n{host} lane {lane}: {name} {value}"));
    }

    fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn fmt::Display)]) {
        let cells: Vec<String> =
            cells.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let (host, lane, cells) = (self.host + 1, self.lane.0, cells.join(", "));
        self.trace.line(self.now, format_args!("n{host} lane {lane}: {table}: {cells}"));
    }
}
