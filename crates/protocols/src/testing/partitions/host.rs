//! A host: a replica and its disk. What it has not synced is lost when it crashes.

use super::ring::Ring;
use bytes::Bytes;

use crate::multicast::{Lacking, RingId};
use crate::smr::partitioned::{
    Cached, Caching, Effect, Kept, Layout, Machine, Message, PartitionId, Place, Placement,
    Replica, ReplicaId, Snapshot,
};
use crate::vsr::Op;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

/// How often a replica hears that time has passed.
const PERIOD_MS: u64 = 25;

pub struct Host<M: Machine> {
    pub partition: PartitionId,
    pub node: NodeId,
    layout: Layout,
    caching: Caching,
    replica: Option<Replica<M>>,
    /// How far it has learned each ring.
    learned: BTreeMap<RingId, u64>,
    /// What the disk has: a snapshot as bytes, and what was kept since. None if the disk is lost.
    disk: Option<(Vec<u8>, Vec<Kept<M>>)>,
    /// What is written and not synced.
    unsynced: Vec<Kept<M>>,
    /// What may leave when that is synced.
    held: Vec<Effect<M>>,
    out: Vec<Effect<M>>,
    lacking: Vec<Lacking>,
    /// How often it was started.
    starts: u32,
    /// Its log is trimmed behind what it has, or what it needs is gone: it goes on from a copy that
    /// has passed this.
    is_behind: bool,
    lost: Option<Place>,
    /// What earlier starts had of their copies.
    used: Cached,
}

fn bytes<M: Machine>(snapshot: &Snapshot<M>) -> Vec<u8> {
    postcard::to_allocvec(snapshot).expect("a snapshot is plain data")
}

impl<M: Machine> Host<M> {
    pub fn new(
        partition: PartitionId,
        node: NodeId,
        layout: Layout,
        placement: &Placement,
        caching: Caching,
    ) -> Host<M> {
        let first = bytes(&Snapshot::<M>::begin_at(partition, placement));
        let mut host = Host {
            partition,
            node,
            layout,
            caching,
            replica: None,
            learned: BTreeMap::new(),
            disk: Some((first, Vec::new())),
            unsynced: Vec::new(),
            held: Vec::new(),
            out: Vec::new(),
            lacking: Vec::new(),
            starts: 0,
            is_behind: false,
            lost: None,
            used: Cached::default(),
        };
        host.start();
        host
    }

    /// A new replica of a partition: it has nothing yet.
    pub fn newcomer(
        partition: PartitionId,
        node: NodeId,
        layout: Layout,
        placement: &Placement,
        caching: Caching,
    ) -> Host<M> {
        let mut host = Host::new(partition, node, layout, placement, caching);
        host.wipe();
        host
    }

    /// What it has had of its copies of others' objects.
    pub fn cached(&self) -> Cached {
        let now = self.replica.as_ref().map(Replica::cached).unwrap_or_default();
        let (validated, speculated) =
            (self.used.validated + now.validated, self.used.speculated + now.speculated);
        Cached { validated, speculated, rolled_back: self.used.rolled_back + now.rolled_back }
    }

    pub fn is_up(&self) -> bool {
        self.replica.is_some()
    }

    pub fn is_wiped(&self) -> bool {
        self.disk.is_none()
    }

    /// Whether it has to go on from a copy of another replica.
    pub fn needs_copy(&self) -> bool {
        self.is_wiped() || self.is_behind || self.lost.is_some()
    }

    /// The last command that a copy has to have passed for it.
    pub fn lost(&self) -> Option<Place> {
        self.lost
    }

    /// How far in each ring its disk has all; none if there is nothing on it.
    pub fn stored(&self) -> Option<BTreeMap<RingId, u64>> {
        let (snapshot, _) = self.disk.as_ref()?;
        let snapshot: Snapshot<M> =
            postcard::from_bytes(snapshot).expect("the disk has what was written");
        Some(snapshot.cursor().iter().map(|it| (it.ring, it.op.0)).collect())
    }

    /// It hears who the replicas of partitions are.
    pub fn set_layout(&mut self, layout: &Layout) {
        if self.layout != *layout {
            self.layout = layout.clone();
            if let Some(replica) = &mut self.replica {
                replica.set_layout(layout.clone());
            }
        }
    }

    /// Which partition has what, as far as it knows.
    pub fn placement(&self) -> Option<&Placement> {
        self.replica.as_ref().map(Replica::placement)
    }

    pub fn objects(&self) -> Option<&BTreeMap<Bytes, M::Object>> {
        self.replica.as_ref().map(Replica::objects)
    }

    pub fn snapshot(&self) -> Option<Snapshot<M>> {
        self.replica.as_ref().map(Replica::snapshot)
    }

    /// What it gives to a replica that needs a copy.
    pub fn gives_copy(&self) -> Option<Snapshot<M>> {
        self.replica.as_ref().and_then(Replica::copy)
    }

    /// Goes on from what the disk has, if it is down.
    pub fn start(&mut self) {
        let Some((snapshot, kept)) = self.disk.as_ref().filter(|_| self.replica.is_none()) else {
            return;
        };
        let snapshot: Snapshot<M> =
            postcard::from_bytes(snapshot).expect("the disk has what was written");
        self.learned = snapshot.cursor().iter().map(|it| (it.ring, it.op.0)).collect();
        self.starts += 1;
        let incarnation = Incarnation { node: self.node, start: Start(self.starts) };
        let id = ReplicaId { partition: self.partition, incarnation };
        let mut replica = Replica::resume(id, self.layout.clone(), snapshot, kept.clone());
        replica.set_caching(self.caching);
        self.replica = Some(replica);
    }

    pub fn crash(&mut self) {
        self.used = self.cached();
        self.replica = None;
        self.unsynced.clear();
        self.held.clear();
        self.out.clear();
        self.lacking.clear();
        (self.is_behind, self.lost) = (false, None);
    }

    pub fn wipe(&mut self) {
        self.crash();
        self.disk = None;
    }

    /// Begins with the state of another replica of its partition.
    pub fn copies(&mut self, snapshot: &Snapshot<M>) {
        self.crash();
        self.disk = Some((bytes(snapshot), Vec::new()));
        self.start();
    }

    pub fn designate(&mut self, is_designated: bool) {
        if let Some(replica) = &mut self.replica {
            replica.designate(is_designated);
        }
    }

    pub fn hears(&mut self, message: Message<M>) {
        if let Some(replica) = &mut self.replica {
            replica.on_message(message);
        }
    }

    /// Whether it has executed all commands of its rings.
    pub fn has_executed_all(&self, rings: &BTreeMap<RingId, Ring<M>>) -> bool {
        let is_idle = self.replica.as_ref().is_some_and(Replica::is_idle);
        is_idle && self.learned.iter().all(|(ring, op)| !rings[ring].has_commands_behind(*op))
    }

    pub fn goes_on(&mut self, now_ms: u64, rings: &BTreeMap<RingId, Ring<M>>, rng: &mut Rng) {
        let Some(replica) = &mut self.replica else { return };
        for (ring, op) in &mut self.learned {
            if *op < rings[ring].trimmed() {
                self.is_behind = true;
                return;
            }
            for _ in 0..rng.below(4) {
                let Some(decision) = rings[ring].behind(*op) else { break };
                *op += 1;
                assert!(replica.learn(*ring, Op(*op), decision.clone()));
            }
        }
        if (now_ms + self.node.0 * 3).is_multiple_of(PERIOD_MS) {
            replica.on_period();
            self.lacking.extend(replica.questions());
        }
        match rng.below(60) {
            0..15 => self.sync(),
            15 => self.store(),
            _ => {}
        }
    }

    /// What the replica asks of others. What it asks of the disk is done here, and what rests on
    /// that waits.
    pub fn take_effects(&mut self) -> (Vec<Effect<M>>, Vec<Lacking>) {
        let effects = self.replica.as_mut().map(Replica::take_effects).unwrap_or_default();
        for effect in effects {
            match effect {
                Effect::Keep(kept) => self.unsynced.extend(kept),
                Effect::Halt(differs) => panic!("{} halts: {differs:?}", self.node.0),
                Effect::Lost(place) => self.lost = Some(place),
                Effect::Send(_, Message::Released { .. }) => self.held.push(effect),
                _ => self.out.push(effect),
            }
        }
        (core::mem::take(&mut self.out), core::mem::take(&mut self.lacking))
    }

    fn sync(&mut self) {
        let Some((_, kept)) = &mut self.disk else { return };
        kept.append(&mut self.unsynced);
        self.out.append(&mut self.held);
    }

    /// A snapshot takes the place of the signals that are in it.
    fn store(&mut self) {
        let Some(snapshot) = self.snapshot() else { return };
        let passed = snapshot.passed();
        self.sync();
        if let Some((stored, kept)) = &mut self.disk {
            *stored = bytes(&snapshot);
            kept.retain(|it| it.is_needed(passed));
        }
    }
}
