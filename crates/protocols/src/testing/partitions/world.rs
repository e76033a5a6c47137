//! A world of hosts with disks, rings, clients and a network, that goes on by itself.

use super::client::Client;
use super::host::Host;
use super::met::Met;
use super::ring::Ring;
use super::witness::Witness;
use super::{Load, Seen};
use crate::multicast::{Pace, RingId, Slot};
use crate::smr::partitioned::{
    Addressed, Answered, Caching, CommandId, Effect, Layout, Machine, Message, PartitionId,
    Placement,
};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

/// What travels between hosts and clients.
#[derive(Clone, Debug)]
pub enum Packet<M: Machine> {
    Peer { from: NodeId, to: NodeId, message: Message<M> },
    Lacking(RingId, Slot),
    Asked(RingId, Addressed<M>),
    Answered(CommandId, Answered<M>),
}

/// All there is.
pub struct World<M: Machine, L> {
    pub(super) hosts: BTreeMap<NodeId, Host<M>>,
    pub(super) rings: BTreeMap<RingId, Ring<M>>,
    pub(super) clients: Vec<Client<M>>,
    /// When they arrive, and what.
    network: Vec<(u64, Packet<M>)>,
    pub(super) layout: Layout,
    pub(super) caching: Caching,
    /// Which partition had what at first.
    pub(super) first: Placement,
    /// The number of the next node that comes.
    pub(super) next_node: u64,
    now_ms: u64,
    /// Grows with each thing that a client sees.
    clock: u64,
    pub(super) has_faults: bool,
    pub(super) rng: Rng,
    /// Hosts that do not hear the others.
    pub(super) cut: BTreeSet<NodeId>,
    /// What its clients ask.
    pub load: L,
    /// What was executed.
    pub witness: Witness<M>,
    /// What has happened.
    pub met: Met,
}

pub fn chance(rng: &mut Rng, one_in: u64) -> bool {
    rng.below(one_in) == 0
}

impl<M: Machine, L: Load<M>> World<M, L> {
    /// One of a seed: of 2 to 4 partitions of 2 or 3 replicas each, and 2 or 3 clients.
    #[must_use]
    pub fn new(seed: u64, pace: Pace, caching: Caching, load: L) -> World<M, L> {
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
        let witness = Witness::new(first.clone());
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
            cut: BTreeSet::new(),
            load,
            witness,
            met,
        }
    }

    /// Runs with faults for a while, and then without, until all is answered, all commands that are
    /// on their way are executed and all replicas of a partition are alike. What all clients saw,
    /// in the end with a read of all accounts, which finds what the replicas have.
    pub fn run(&mut self) -> Vec<Seen<M>> {
        for _ in 0..self.rng.between(400, 1200) {
            self.step(true);
        }
        self.has_faults = false;
        self.cut.clear();
        self.until("all is answered", |world| world.clients.iter().all(Client::is_idle));
        self.until("all is executed", |world| world.is_quiet() && world.is_alike());
        let before = self.objects();
        let read = self.load.last(self.now_ms);
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
    #[must_use]
    pub fn objects(&self) -> BTreeMap<Bytes, M::Object> {
        let of = self.hosts.values().filter_map(Host::objects);
        of.flat_map(|objects| objects.clone()).collect()
    }

    /// The objects of each partition.
    #[must_use]
    pub fn partitions(&self) -> BTreeMap<PartitionId, &BTreeMap<Bytes, M::Object>> {
        let of = |host: &'_ Host<M>| host.partition;
        self.hosts.values().filter_map(|host| Some((of(host), host.objects()?))).collect()
    }

    /// Whether no command is on its way.
    fn is_quiet(&self) -> bool {
        let is_asked = |(_, packet): &(u64, Packet<M>)| matches!(packet, Packet::Asked(..));
        !self.network.iter().any(is_asked) && self.rings.values().all(Ring::is_quiet)
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&World<M, L>) -> bool) {
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
        let has_all = |host: &Host<M>| host.has_executed_all(&self.rings);
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
            self.witness.decides(ring.take_decided());
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
                let command = self.load.asks(at, self.now_ms, &mut self.rng);
                assert!(M::is_sound(&command), "clients ask what may be ordered");
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

    fn ask(&mut self, client: usize, command: M::Command) {
        self.clock += 1;
        let addressed = self.clients[client].asks(command, self.now_ms, self.clock);
        self.met.of_several += u64::from(addressed.destinations.count() > 1);
        self.send_to_ring(addressed);
    }

    fn send_to_ring(&mut self, addressed: Addressed<M>) {
        let ring = addressed.destinations.ring().expect("a command has accounts");
        self.send(Packet::Asked(ring, addressed));
    }

    /// What is sent arrives, or not, or twice, some time.
    fn send(&mut self, packet: Packet<M>) {
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
        let due: Vec<(u64, Packet<M>)> = due;
        for (_, packet) in due {
            match packet {
                Packet::Peer { from, to, message } => {
                    let is_cut = self.cut.contains(&from) != self.cut.contains(&to);
                    if let Some(host) = self.hosts.get_mut(&to).filter(|_| !is_cut) {
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
                    for (at, client) in self.clients.iter_mut().enumerate() {
                        if let Some((command, output)) = client.hears(id, &answer, clock) {
                            self.load.hears(at, &command, &output);
                        }
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, node: NodeId) {
        let host = self.hosts.get_mut(&node).expect("it is there");
        let (effects, lacking) = host.take_effects();
        let partition = host.partition;
        for effect in effects {
            match effect {
                Effect::Send(partition, message) => {
                    let members: Vec<NodeId> = self.layout.members(partition).collect();
                    for to in members {
                        self.send(Packet::Peer { from: node, to, message: message.clone() });
                    }
                }
                Effect::Tell(to, message) => {
                    let to = to.incarnation.node;
                    self.send(Packet::Peer { from: node, to, message });
                }
                Effect::Answer(id, answer) => {
                    self.witness.answers(partition, id, &answer);
                    self.send(Packet::Answered(id, answer));
                }
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
