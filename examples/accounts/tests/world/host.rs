//! A host: a replica and its disk. What it has not synced is lost when it crashes.

use super::ring::Ring;
use bytes::Bytes;
use quorate_accounts::Accounts;
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use quorate_protocols::multicast::{Decision, Lacking, RingId};
use quorate_protocols::smr::partitioned::{
    Effect, Layout, Message, PartitionId, Place, Replica, Signal, Snapshot,
};
use quorate_protocols::vsr::Op;
use std::collections::BTreeMap;

/// How often a replica hears that time has passed.
const PERIOD_MS: u64 = 25;

pub struct Host {
    pub partition: PartitionId,
    pub node: NodeId,
    layout: Layout,
    replica: Option<Replica<Accounts>>,
    /// How far it has learned each ring.
    learned: BTreeMap<RingId, u64>,
    /// What the disk has: a snapshot as bytes, and signals. None if the disk is lost.
    disk: Option<(Vec<u8>, Vec<Signal<Accounts>>)>,
    /// What is written and not synced.
    unsynced: Vec<Signal<Accounts>>,
    /// What may leave when that is synced.
    held: Vec<Effect<Accounts>>,
    out: Vec<Effect<Accounts>>,
    lacking: Vec<Lacking>,
    released: Option<Place>,
}

fn bytes(snapshot: &Snapshot<Accounts>) -> Vec<u8> {
    postcard::to_allocvec(snapshot).expect("a snapshot is plain data")
}

impl Host {
    pub fn new(partition: PartitionId, node: NodeId, layout: Layout) -> Host {
        let first = bytes(&Snapshot::begin(partition, layout.count()));
        let mut host = Host {
            partition,
            node,
            layout,
            replica: None,
            learned: BTreeMap::new(),
            disk: Some((first, Vec::new())),
            unsynced: Vec::new(),
            held: Vec::new(),
            out: Vec::new(),
            lacking: Vec::new(),
            released: None,
        };
        host.start();
        host
    }

    pub fn is_up(&self) -> bool {
        self.replica.is_some()
    }

    pub fn is_wiped(&self) -> bool {
        self.disk.is_none()
    }

    pub fn released(&self) -> Option<Place> {
        self.released
    }

    pub fn objects(&self) -> Option<&BTreeMap<Bytes, u64>> {
        self.replica.as_ref().map(Replica::objects)
    }

    pub fn snapshot(&self) -> Option<Snapshot<Accounts>> {
        self.replica.as_ref().map(Replica::snapshot)
    }

    /// Goes on from what the disk has, if it is down.
    pub fn start(&mut self) {
        let Some((snapshot, kept)) = self.disk.as_ref().filter(|_| self.replica.is_none()) else {
            return;
        };
        let snapshot: Snapshot<Accounts> =
            postcard::from_bytes(snapshot).expect("the disk has what was written");
        self.learned = snapshot.cursor().iter().map(|it| (it.ring, it.op.0)).collect();
        let id = (self.partition, self.node);
        let replica = Replica::resume(id, self.layout.clone(), snapshot, kept.clone());
        self.replica = Some(replica);
    }

    pub fn crash(&mut self) {
        self.replica = None;
        self.unsynced.clear();
        self.held.clear();
        self.out.clear();
        self.lacking.clear();
    }

    pub fn wipe(&mut self) {
        self.crash();
        self.disk = None;
    }

    /// Begins with the state of another replica of its partition.
    pub fn copy(&mut self, snapshot: &Snapshot<Accounts>) {
        self.disk = Some((bytes(snapshot), Vec::new()));
        self.start();
    }

    pub fn designate(&mut self, is_designated: bool) {
        if let Some(replica) = &mut self.replica {
            replica.designate(is_designated);
        }
    }

    pub fn hears(&mut self, message: Message<Accounts>) {
        if let Some(replica) = &mut self.replica {
            replica.on_message(message);
        }
    }

    /// Whether it has all commands of its rings.
    pub fn has_learned_commands(&self, rings: &BTreeMap<RingId, Ring>) -> bool {
        self.learned.iter().all(|(ring, op)| {
            let mut left = rings[ring].log.iter().skip(*op as usize);
            left.all(|decision| matches!(decision, Decision::Skip(_)))
        })
    }

    pub fn goes_on(&mut self, now_ms: u64, rings: &BTreeMap<RingId, Ring>, rng: &mut Rng) {
        let Some(replica) = &mut self.replica else { return };
        for (ring, op) in &mut self.learned {
            let log = &rings[ring].log;
            for _ in 0..rng.below(4) {
                let Some(decision) = log.get(*op as usize) else { break };
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
    pub fn take_effects(&mut self) -> (Vec<Effect<Accounts>>, Vec<Lacking>) {
        let effects = self.replica.as_mut().map(Replica::take_effects).unwrap_or_default();
        for effect in effects {
            match effect {
                Effect::Keep(signals) => self.unsynced.extend(signals),
                Effect::Send(_, Message::Released { .. }) => self.held.push(effect),
                _ => self.out.push(effect),
            }
        }
        (core::mem::take(&mut self.out), core::mem::take(&mut self.lacking))
    }

    fn sync(&mut self) {
        let Some((_, kept)) = &mut self.disk else { return };
        kept.append(&mut self.unsynced);
        for effect in self.held.drain(..) {
            if let Effect::Send(_, Message::Released { place, .. }) = &effect {
                self.released = self.released.max(Some(*place));
            }
            self.out.push(effect);
        }
    }

    /// A snapshot takes the place of the signals that are in it.
    fn store(&mut self) {
        let Some(snapshot) = self.snapshot() else { return };
        let passed = snapshot.passed();
        self.sync();
        if let Some((stored, kept)) = &mut self.disk {
            *stored = bytes(&snapshot);
            kept.retain(|signal| Some(signal.place) > passed);
        }
    }
}
