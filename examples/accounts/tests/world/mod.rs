//! A small world: rings, replicas on hosts with disks, clients, and a network that loses, doubles
//! and delays what it carries. Faults are drawn from a seed, and end before the world does.

mod client;
mod faults;
mod host;
mod ring;

use crate::judge::Seen;
use bytes::Bytes;
use client::Client;
use host::Host;
use quorate_accounts::{AccountId, Accounts, Command};
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use quorate_protocols::multicast::{Pace, RingId, Slot};
use quorate_protocols::smr::partitioned::{
    Addressed, Answered, Caching, CommandId, Effect, Layout, Message, PartitionId, Placement,
};
use ring::Ring;
use std::collections::{BTreeMap, BTreeSet};

/// Accounts of the bank.
pub const ACCOUNTS: u32 = 5;

/// What travels between hosts and clients.
#[derive(Clone, Debug)]
pub enum Packet {
    Peer(NodeId, Message<Accounts>),
    Lacking(RingId, Slot),
    Asked(RingId, Addressed<Accounts>),
    Answered(CommandId, Answered<Accounts>),
}

/// What has happened; a test asserts that all of it has, over its seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    pub crashes: u64,
    pub lost_disks: u64,
    pub lost_coordinators: u64,
    pub sent_again: u64,
    pub client_restarts: u64,
    pub lost_packets: u64,
    pub of_several: u64,
    pub trims: u64,
    pub layouts: u64,
    pub copies: u64,
    /// How often objects moved, and commands that were addressed before that.
    pub switches: u64,
    pub retries: u64,
    /// Objects of others that were not sent, as they were known.
    pub validated: u64,
    /// Commands that went on with a copy that was stale.
    pub rolled_back: u64,
}

impl Met {
    /// What has happened in all worlds together.
    pub fn add(&mut self, more: Met) {
        self.crashes += more.crashes;
        self.lost_disks += more.lost_disks;
        self.lost_coordinators += more.lost_coordinators;
        self.sent_again += more.sent_again;
        self.client_restarts += more.client_restarts;
        self.lost_packets += more.lost_packets;
        self.of_several += more.of_several;
        self.trims += more.trims;
        self.layouts += more.layouts;
        self.copies += more.copies;
        self.switches += more.switches;
        self.retries += more.retries;
        self.validated += more.validated;
        self.rolled_back += more.rolled_back;
    }

    /// All of it has happened.
    pub fn assert_all(&self) {
        let faults = [self.crashes, self.lost_disks, self.lost_coordinators, self.lost_packets];
        let rare = [self.trims, self.layouts, self.copies, self.client_restarts];
        let usual = [self.sent_again, self.of_several, self.switches, self.retries];
        assert!(faults.iter().chain(&rare).chain(&usual).all(|count| *count > 0), "{self:?}");
    }
}

/// All there is.
pub struct World {
    pub hosts: BTreeMap<NodeId, Host>,
    rings: BTreeMap<RingId, Ring>,
    clients: Vec<Client>,
    /// When they arrive, and what.
    network: Vec<(u64, Packet)>,
    layout: Layout,
    caching: Caching,
    /// Which partition had what at first.
    first: Placement,
    /// The number of the next node that comes.
    next_node: u64,
    now_ms: u64,
    /// Grows with each thing that a client sees.
    clock: u64,
    has_faults: bool,
    rng: Rng,
    pub met: Met,
}

fn chance(rng: &mut Rng, one_in: u64) -> bool {
    rng.below(one_in) == 0
}

impl World {
    pub fn new(seed: u64, pace: Pace, caching: Caching) -> World {
        let mut rng = Rng::new(seed);
        let (partitions, replicas) = (rng.between(2, 4) as u8, rng.between(2, 3));
        let node = |of: u8, at: u64| NodeId(u64::from(of) * 10 + at);
        let members: Vec<BTreeSet<NodeId>> =
            (0..partitions).map(|of| (0..replicas).map(|at| node(of, at)).collect()).collect();
        let layout = Layout::new(members);
        // Sometimes a partition is idle at first.
        let first = Placement::even(partitions - u8::from(chance(&mut rng, 3)));
        let mut hosts = BTreeMap::new();
        for partition in (0..partitions).map(PartitionId) {
            for node in layout.members(partition) {
                hosts.insert(node, Host::new(partition, node, layout.clone(), &first, caching));
            }
        }
        let all = (0..partitions).map(|of| PartitionId(of).ring()).chain([RingId::ALL]);
        let rings = all.map(|ring| (ring, Ring::new(ring, pace, partitions))).collect();
        let clients = (0..rng.between(2, 3)).map(|at| Client::new(at, first.clone())).collect();
        let (network, met) = (Vec::new(), Met::default());
        let (now_ms, clock, has_faults, next_node) = (0, 0, true, 100);
        World {
            hosts,
            rings,
            clients,
            network,
            layout,
            caching,
            first,
            next_node,
            now_ms,
            clock,
            has_faults,
            rng,
            met,
        }
    }

    /// Runs with faults for a while, and then without, until all is answered, all commands that are
    /// on their way are executed and all replicas of a partition are alike. What all clients saw,
    /// in the end with a read of all accounts, which finds what the replicas have.
    pub fn run(&mut self) -> Vec<Seen> {
        for _ in 0..self.rng.between(400, 1200) {
            self.step(true);
        }
        self.has_faults = false;
        self.until("all is answered", |world| world.clients.iter().all(Client::is_idle));
        self.until("all is executed", |world| world.is_quiet() && world.is_alike());
        let before = self.objects();
        let read = Command::Read((0..ACCOUNTS).map(AccountId).collect());
        self.ask(0, read);
        self.until("the last read is answered", |world| world.clients[0].is_idle());
        self.until("replicas are alike", World::is_alike);
        self.met.switches = self.placement().version();
        self.met.retries = self.clients.iter().map(|it| it.retries).sum();
        for cached in self.hosts.values().map(Host::cached) {
            self.met.validated += cached.validated;
            self.met.rolled_back += cached.rolled_back;
        }
        assert_eq!(self.objects(), before, "a read changes nothing, and nothing comes late");
        self.clients.iter_mut().flat_map(Client::take_history).collect()
    }

    /// All objects that there are.
    pub fn objects(&self) -> BTreeMap<Bytes, u64> {
        let of = self.hosts.values().filter_map(Host::objects);
        of.flat_map(|objects| objects.clone()).collect()
    }

    /// Whether no command is on its way.
    fn is_quiet(&self) -> bool {
        let is_asked = |(_, packet): &(u64, Packet)| matches!(packet, Packet::Asked(..));
        !self.network.iter().any(is_asked) && self.rings.values().all(Ring::is_quiet)
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&World) -> bool) {
        let comes = (0..30_000).any(|_| {
            self.step(false);
            is_so(self)
        });
        assert!(comes, "it never comes to that: {what}");
    }

    /// Whether replicas have executed all commands, and those of a partition have the same state.
    fn is_alike(&self) -> bool {
        let of = |partition| self.hosts.values().filter(move |it| it.partition == partition);
        let partitions = (0..self.layout.count()).map(PartitionId);
        let has_all = |host: &Host| host.has_executed_all(&self.rings);
        let is_done = self.hosts.values().all(|host| host.is_up() && has_all(host));
        is_done
            && partitions.into_iter().all(|partition| {
                let first = of(partition).next().and_then(Host::objects);
                of(partition).all(|host| host.objects() == first)
            })
    }

    fn step(&mut self, asks: bool) {
        self.now_ms += 1;
        self.deliver();
        for ring in self.rings.values_mut() {
            ring.goes_on(self.now_ms, &mut self.rng);
        }
        let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
        for node in nodes {
            let host = self.hosts.get_mut(&node).expect("it is there");
            if chance(&mut self.rng, 8) {
                host.set_layout(&self.layout);
            }
            host.goes_on(self.now_ms, &self.rings, &mut self.rng);
            self.carry_out(node);
        }
        if self.has_faults {
            self.goes_wrong();
        } else {
            self.hosts.values_mut().filter(|it| !it.is_wiped()).for_each(Host::start);
        }
        self.copies();
        if self.now_ms.is_multiple_of(40) {
            self.designates();
        }
        self.clients_go_on(asks);
    }

    fn clients_go_on(&mut self, asks: bool) {
        for at in 0..self.clients.len() {
            if asks && self.clients[at].may_ask() && chance(&mut self.rng, 12) {
                let command = client::command(&mut self.rng);
                self.ask(at, command);
            }
            let placement = self.placement();
            for addressed in self.clients[at].asks_again(&placement, self.now_ms) {
                self.send_to_ring(addressed);
            }
            let again = self.clients[at].due(self.now_ms);
            self.met.sent_again += again.len() as u64;
            for addressed in again {
                self.send_to_ring(addressed);
            }
        }
    }

    fn ask(&mut self, client: usize, command: Command) {
        self.clock += 1;
        let addressed = self.clients[client].asks(command, self.now_ms, self.clock);
        self.met.of_several += u64::from(addressed.destinations.count() > 1);
        self.send_to_ring(addressed);
    }

    fn send_to_ring(&mut self, addressed: Addressed<Accounts>) {
        let ring = addressed.destinations.ring().expect("a command has accounts");
        self.send(Packet::Asked(ring, addressed));
    }

    /// What is sent arrives, or not, or twice, some time.
    fn send(&mut self, packet: Packet) {
        let copies = match self.rng.below(20) {
            0 | 1 if self.has_faults => 0,
            2 => 2,
            _ => 1,
        };
        self.met.lost_packets += u64::from(copies == 0);
        for _ in 0..copies {
            let late = if chance(&mut self.rng, 20) { self.rng.below(150) } else { 0 };
            let at = self.now_ms + self.rng.between(1, 6) + late;
            self.network.push((at, packet.clone()));
        }
    }

    fn deliver(&mut self) {
        let now_ms = self.now_ms;
        let (due, later) = self.network.drain(..).partition(|(at, _)| *at <= now_ms);
        self.network = later;
        let due: Vec<(u64, Packet)> = due;
        for (_, packet) in due {
            match packet {
                Packet::Peer(to, message) => {
                    if let Some(host) = self.hosts.get_mut(&to) {
                        host.hears(message);
                        self.carry_out(to);
                    }
                }
                Packet::Lacking(ring, until) => {
                    self.rings.get_mut(&ring).expect("it is there").is_asked_for(until, now_ms);
                }
                Packet::Asked(ring, addressed) => {
                    self.rings.get_mut(&ring).expect("it is there").asks(addressed.into());
                }
                Packet::Answered(id, answer) => {
                    self.clock += 1;
                    let clock = self.clock;
                    self.clients.iter_mut().for_each(|it| it.hears(id, &answer, clock));
                }
            }
        }
    }

    fn carry_out(&mut self, node: NodeId) {
        let host = self.hosts.get_mut(&node).expect("it is there");
        let (effects, lacking) = host.take_effects();
        for effect in effects {
            match effect {
                Effect::Send(partition, message) => {
                    let members: Vec<NodeId> = self.layout.members(partition).collect();
                    for to in members {
                        self.send(Packet::Peer(to, message.clone()));
                    }
                }
                Effect::Tell(to, message) => self.send(Packet::Peer(to, message)),
                Effect::Answer(id, answer) => self.send(Packet::Answered(id, answer)),
                Effect::Keep(_) | Effect::Lost(_) | Effect::Halt(_) => {
                    unreachable!("they are the host's own")
                }
            }
        }
        lacking.into_iter().for_each(|it| self.send(Packet::Lacking(it.ring, it.until)));
    }

    /// One replica of each partition is designated that is up; others may think that they are.
    fn designates(&mut self) {
        for partition in (0..self.layout.count()).map(PartitionId) {
            let up: Vec<NodeId> = self
                .hosts
                .values()
                .filter(|it| it.partition == partition && it.is_up())
                .map(|it| it.node)
                .collect();
            let Some(chosen) = self.rng.pick(&up).copied() else { continue };
            for node in up {
                let stays = chance(&mut self.rng, 3);
                let host = self.hosts.get_mut(&node).expect("it is there");
                if node == chosen || !stays {
                    host.designate(node == chosen);
                }
                self.carry_out(node);
            }
        }
    }
}
