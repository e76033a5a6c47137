//! One host of the world.

use super::Simulated;
use crate::testing::disk::Disk;
use crate::vsr::Op;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start, Ticket};
use quorate_kernel::operation::Outcome;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

/// What a host may not let out before a sync.
pub(super) enum Held<M> {
    Send(Recipients, M),
    Answer(Ticket, Outcome),
}

/// One host.
pub struct Host<P: Simulated> {
    /// Its name, and its newest start.
    pub me: Incarnation,
    /// The lane, while the host is up.
    pub process: Option<P>,
    /// What it has stored.
    pub disk: Disk,
    pub(super) held: Vec<(u64, Held<P::Message>)>,
    pub(super) locals: VecDeque<P::Message>,
    pub(super) timers: BTreeMap<u32, Time>,
    pub(super) peers: BTreeMap<NodeId, Start>,
    pub(super) rng: Rng,
    /// How far its wall clock is ahead.
    pub skew_ms: u64,
    pub(super) syncs: bool,
    /// Up to where each group's log was noted.
    pub(super) noted: BTreeMap<GroupId, Op>,
}

impl<P: Simulated> Host<P> {
    /// A host that was never started.
    pub(super) fn new(node: NodeId, durability: Durability, rng: Rng) -> Host<P> {
        let is_memory = durability == Durability::Memory;
        let is_periodic = matches!(durability, Durability::Periodic { .. });
        Host {
            me: Incarnation { node, start: Start(0) },
            process: None,
            disk: Disk::new(is_memory, is_periodic),
            held: Vec::new(),
            locals: VecDeque::new(),
            timers: BTreeMap::new(),
            peers: BTreeMap::new(),
            rng,
            skew_ms: 0,
            syncs: false,
            noted: BTreeMap::new(),
        }
    }
}
