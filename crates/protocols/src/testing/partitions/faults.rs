//! What goes wrong, and who mends it.

use super::Load;
use super::host::Host;
use super::world::{World, chance};
use crate::multicast::RingId;
use crate::smr::partitioned::{
    BUCKETS, Bucket, Layout, Machine, Ordered, PartitionId, Placement, Switch,
};
use quorate_kernel::ids::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

impl<M: Machine, L: Load<M>> World<M, L> {
    /// Something goes wrong, or goes on, or nothing.
    pub(super) fn goes_wrong(&mut self) {
        let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
        let node = *self.rng.pick(&nodes).expect("there are hosts");
        let what = self.rng.below(120);
        let may_lose = matches!(what, 1 | 20) && self.may_lose(node);
        let host = self.hosts.get_mut(&node).expect("it is there");
        match what {
            0 if host.is_up() => {
                self.met.crashes += 1;
                host.crash();
            }
            // Somebody else has what it has lost.
            1 if host.is_up() && may_lose => {
                self.met.lost_disks += 1;
                host.wipe();
            }
            2..8 if !host.is_wiped() => host.start(),
            16 => {
                self.met.lost_coordinators += 1;
                let rings: Vec<RingId> = self.rings.keys().copied().collect();
                let ring = self.rng.pick(&rings).expect("there are rings");
                self.rings.get_mut(ring).expect("it is there").loses_coordinator(&mut self.rng);
            }
            17 => {
                let at = self.rng.below(self.clients.len() as u64) as usize;
                self.met.client_restarts += u64::from(self.clients[at].restarts());
            }
            18 | 19 => self.trims(),
            21 | 22 => self.moves(),
            20 if may_lose => self.replaces(node),
            23 => self.cuts(),
            24..28 => self.cut.clear(),
            _ => {}
        }
    }

    /// Some hosts and the others do not hear each other for a while.
    fn cuts(&mut self) {
        self.met.cuts += 1;
        let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
        self.cut = nodes.into_iter().filter(|_| chance(&mut self.rng, 2)).collect();
    }

    /// Objects move to another partition, or all that one has does, or an idle one gets something.
    fn moves(&mut self) {
        let placement = self.placement();
        let all: Vec<PartitionId> = (0..self.layout.count()).map(PartitionId).collect();
        let (from, to) = (*self.rng.pick(&all).expect("some"), *self.rng.pick(&all).expect("some"));
        let (moves_all, used) = (chance(&mut self.rng, 3), self.load.buckets());
        let buckets = (0..BUCKETS).map(Bucket).filter(|bucket| {
            let is_used = used.contains(bucket) && chance(&mut self.rng, 2);
            if moves_all { placement.of(*bucket) == from } else { is_used }
        });
        let buckets: BTreeMap<Bucket, PartitionId> = buckets.map(|it| (it, to)).collect();
        let version = placement.version() + 1;
        let switch = Switch { version, buckets };
        if switch.is_sound(self.layout.count()) {
            let all = self.rings.get_mut(&RingId::ALL).expect("it is there");
            all.asks(Ordered::Switch(switch));
        }
    }

    /// The latest placement that a host knows of.
    #[must_use]
    pub fn placement(&self) -> Placement {
        let known = self.hosts.values().filter_map(Host::placement);
        known.max_by_key(|it| it.version()).unwrap_or(&self.first).clone()
    }

    /// Whether the partition of a host goes on without it: another replica is up, and what it has
    /// stored is not behind what is trimmed.
    fn may_lose(&self, node: NodeId) -> bool {
        let partition = self.hosts[&node].partition;
        let mut others = self.hosts.values().filter(|it| {
            it.partition == partition && it.node != node && it.is_up() && !it.needs_copy()
        });
        others.any(|it| {
            let stored = it.stored().unwrap_or_default();
            stored.iter().all(|(ring, op)| *op >= self.rings[ring].trimmed())
        })
    }

    /// Logs are trimmed up to what some replica of each partition has stored: the others may need
    /// what is gone.
    fn trims(&mut self) {
        let mut reached: BTreeMap<PartitionId, BTreeMap<RingId, u64>> = BTreeMap::new();
        for host in self.hosts.values() {
            let Some(stored) = host.stored() else { continue };
            let furthest = reached.entry(host.partition).or_default();
            if furthest.iter().all(|(ring, op)| stored[ring] >= *op) {
                *furthest = stored;
            }
        }
        let all_have = reached.len() == usize::from(self.layout.count());
        for (ring, log) in self.rings.iter_mut().filter(|_| all_have) {
            let all = reached.values().filter_map(|stored| stored.get(ring));
            let op = *all.min().expect("each ring is learned");
            self.met.trims += u64::from(op > log.trimmed());
            log.trims(op);
        }
    }

    /// A node is a replica no more, and another one is instead, which has nothing. All hear of that
    /// some time.
    fn replaces(&mut self, node: NodeId) {
        let partition = self.hosts[&node].partition;
        let (new, count) = (NodeId(self.next_node), self.layout.count());
        self.next_node += 1;
        let members = (0..count).map(PartitionId).map(|of| {
            let stay = self.layout.members(of).filter(|member| *member != node);
            stay.chain((of == partition).then_some(new)).collect::<BTreeSet<NodeId>>()
        });
        self.layout = Layout::new(members.collect());
        self.hosts.remove(&node);
        self.hosts.insert(
            new,
            Host::newcomer(partition, new, self.layout.clone(), &self.first, self.caching),
        );
        self.met.layouts += 1;
    }

    /// Hosts that have too little go on from a copy of another one that is far enough.
    pub(super) fn copies(&mut self) {
        let behind: Vec<NodeId> =
            self.hosts.values().filter(|it| it.needs_copy()).map(|it| it.node).collect();
        for node in behind {
            if self.has_faults && !chance(&mut self.rng, 8) {
                continue;
            }
            let (partition, lost) = (self.hosts[&node].partition, self.hosts[&node].lost());
            let others = self.hosts.values().filter(|it| it.partition == partition);
            let copies = others.filter(|it| it.node != node).filter_map(Host::gives_copy);
            let mut may = copies.filter(|copy| {
                let is_there = |ring, op| op >= self.rings[&ring].trimmed();
                let is_whole = copy.cursor().iter().all(|it| is_there(it.ring, it.op.0));
                is_whole && (lost.is_none() || copy.passed() >= lost)
            });
            if let Some(copy) = may.next() {
                self.met.copies += 1;
                self.hosts.get_mut(&node).expect("it is there").copies(&copy);
            }
        }
    }
}
