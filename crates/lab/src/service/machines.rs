//! The hosts, their disks, and the network between them.

use super::{Kept, Load};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durable;
use quorate_node::pump::Input;
use quorate_sim::clock::Clock;
use quorate_sim::delay::Distribution;
use quorate_sim::disk::Disk;
use quorate_sim::host::{Host, Surroundings};
use quorate_sim::keyspace::Word;
use quorate_sim::net::Net;
use quorate_sim::prepared::Prepared;
use quorate_sim::queue::{Event, HostIndex, Queue};
use quorate_sim::shipped;
use std::collections::BTreeMap;

/// How often hosts look for tombstones, and compare what they hold; there is nothing to find.
const PURGE_MS: u64 = 60_000;

/// The scenario that stands for the cluster; only what concerns hosts is used of it.
pub(super) fn prepared(load: &Load) -> Prepared {
    let Kept { engine, replicas, durability, settings, write, sync } = load.kept.clone();
    let mut scenario = shipped::find("calm").expect("the scenario ships");
    scenario.hosts = load.hosts;
    scenario.net.delay = Distribution::Constant { us: load.network_us };
    scenario.net.slower_max = 1;
    (scenario.disk.write, scenario.disk.sync) = (write, sync);
    let keyspace = &mut scenario.keyspaces[0];
    keyspace.engine = Some(engine.name.to_owned());
    let first = [("replicas", replicas.to_string()), ("durability", durability.to_string())];
    let others = settings.iter().map(|(name, word)| (*name, (*word).to_owned()));
    let words = first.into_iter().chain(others);
    keyspace.settings = words.map(|(name, word)| (name.to_owned(), Word::Text(word))).collect();
    let periods = ["purge", "compare"].map(|name| (name.to_owned(), PURGE_MS));
    keyspace.pace.extend(periods);
    Prepared::new(scenario).expect("the engine takes plain values, and can be kept so")
}

/// The hosts, and what is between them.
pub(super) struct Machines {
    /// The time of the world, in nanoseconds.
    pub now: u64,
    pub queue: Queue,
    pub hosts: Vec<Host>,
    net: Net,
    pub directory: BTreeMap<NodeId, HostIndex>,
    pub answers: Vec<(Ticket, Outcome)>,
}

impl Machines {
    pub fn new(load: &Load, prepared: &Prepared, rng: &mut Rng) -> Machines {
        let nodes: Vec<NodeId> = (0..load.hosts).map(|_| NodeId(rng.next())).collect();
        let interval = load.kept.durability.every().map(|every| every.0);
        let host = |(index, node): (HostIndex, &NodeId)| {
            let mut rng = Rng::new(node.0);
            let (write, sync) = (prepared.write.clone(), prepared.sync.clone());
            let disk = Disk::new(index, write, sync, 1, interval, rng.fork(1));
            Host::new(index, *node, disk, Clock::new(0, 0, 0), rng)
        };
        let hosts = nodes.iter().enumerate().map(host).collect();
        let (section, delay) = (&prepared.scenario.net, prepared.net.clone());
        let net = Net::new(section, load.hosts, delay, &[], rng.fork(2));
        let (queue, answers) = (Queue::default(), Vec::new());
        let directory = nodes.into_iter().zip(0..).collect();
        Machines { now: 0, queue, hosts, net, directory, answers }
    }

    /// A host, and what all hosts share.
    pub fn lend(&mut self, host: HostIndex) -> (&mut Host, Surroundings<'_>) {
        let Machines { now, queue, hosts, net, directory, answers } = self;
        let around = Surroundings { now: *now, net, queue, directory, answers };
        (&mut hosts[host], around)
    }

    /// A host handles an input.
    pub fn handle(&mut self, host: HostIndex, input: Input) -> Result<(), Fatal> {
        let (target, mut around) = self.lend(host);
        target.receive(input);
        target.turn(&mut around)
    }

    /// The disk of a host has done something. What it reports, if it does.
    pub fn on_disk(&mut self, event: &Event) -> Result<Option<(HostIndex, Durable)>, Fatal> {
        let (now, queue) = (self.now, &mut self.queue);
        Ok(match *event {
            Event::Written { host, .. } => {
                Some((host, self.hosts[host].disk.on_written(now, queue)?))
            }
            Event::Synced { host, .. } => {
                Some((host, self.hosts[host].disk.on_synced(now, queue)?))
            }
            Event::Interval { host, .. } => {
                self.hosts[host].disk.on_interval(now, queue);
                None
            }
            _ => unreachable!("nothing else is ever queued here"),
        })
    }
}
