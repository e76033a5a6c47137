//! The cells of one keyspace.

use super::cell::{Counter, Gauge, Histogram};
use super::labels::{Ending, Kind};
use quorate_kernel::engine::Served;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::process::ROUNDS;
use quorate_kernel::storage::Durability;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The cells of one keyspace. Written by the core thread.
#[derive(Debug)]
pub struct KeyspaceCells {
    /// What of it never changes: name, engine, durability.
    born: Arc<Keyspace>,
    quorum: fn(usize) -> usize,
    replicas: AtomicUsize,
    pub(super) ready: AtomicBool,
    /// The version of the view in force here.
    pub view_version: Gauge,
    /// How many members that view has.
    pub view_members: Gauge,
    /// The groups that are known here.
    pub groups: Gauge,
    /// The groups that change their view or move data.
    pub groups_busy: Gauge,
    /// The keys that those that move have moved so far.
    pub moved_keys: Gauge,
    /// The bytes that those that move have moved so far.
    pub moved_bytes: Gauge,
    /// Bytes of the frames it had for other hosts so far.
    pub sent_bytes: Counter,
    /// Operations accepted and not yet answered.
    pub inflight: Gauge,
    requests: Vec<Histogram>,
    fields: Mutex<Vec<(&'static str, String)>>,
}

impl KeyspaceCells {
    /// The cells of a keyspace that is not ready and has served nothing.
    #[must_use]
    pub fn new(served: &Served) -> KeyspaceCells {
        let Served { keyspace, engine, .. } = served;
        let combinations = Kind::ALL.len() * Ending::ALL.len();
        KeyspaceCells {
            born: Arc::clone(keyspace),
            quorum: engine.quorum,
            ready: AtomicBool::new(false),
            view_version: Gauge::default(),
            view_members: Gauge::default(),
            groups: Gauge::default(),
            groups_busy: Gauge::default(),
            moved_keys: Gauge::default(),
            moved_bytes: Gauge::default(),
            sent_bytes: Counter::default(),
            inflight: Gauge::default(),
            requests: (0..combinations).map(|_| Histogram::default()).collect(),
            fields: Mutex::new(Vec::new()),
            replicas: AtomicUsize::new(keyspace.replicas()),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.born.name
    }

    /// The lane that serves it.
    #[must_use]
    pub fn lane(&self) -> LaneId {
        self.born.lane
    }

    /// Its engine's name.
    #[must_use]
    pub fn engine(&self) -> &str {
        &self.born.engine
    }

    /// Its durability.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.born.durability()
    }

    /// How many hosts hold each key; fewer while there are fewer hosts.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.replicas.load(Ordering::Relaxed)
    }

    /// How many of so many replicas its engine needs: its `quorum`.
    #[must_use]
    pub fn quorum(&self, replicas: usize) -> usize {
        (self.quorum)(replicas)
    }

    /// The catalog has changed how many hosts hold each key.
    pub fn set_replicas(&self, replicas: usize) {
        self.replicas.store(replicas, Ordering::Relaxed);
    }

    /// Counts an answered operation and how long it took.
    pub fn answered(&self, kind: Kind, ending: Ending, took: Duration) {
        self.durations(kind, ending).observe(took);
    }

    /// How long the operations of this kind that ended so took.
    #[must_use]
    pub fn durations(&self, kind: Kind, ending: Ending) -> &Histogram {
        &self.requests[kind as usize * Ending::ALL.len() + ending as usize]
    }

    /// How many operations were answered, of every kind and however they ended.
    #[must_use]
    pub fn answered_total(&self) -> u64 {
        self.requests.iter().map(Histogram::count).sum()
    }

    /// Whether its lane can serve clients.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Replaces what the engine shows of its state; for `/status`. Takes a lock: once a second at
    /// most, never per operation.
    pub fn show(&self, fields: Vec<(&'static str, String)>) {
        *self.fields.lock().unwrap_or_else(PoisonError::into_inner) = fields;
    }

    /// What the engine last showed of its state.
    #[must_use]
    pub fn shown(&self) -> Vec<(&'static str, String)> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Kinds of rounds, and how many of each the engine last showed, see [`ROUNDS`].
    #[must_use]
    pub fn rounds(&self) -> Vec<(&'static str, u64)> {
        let shown = self.shown().into_iter();
        let rounds = shown.filter_map(|(name, value)| Some((name.strip_prefix(ROUNDS)?, value)));
        rounds.filter_map(|(kind, value)| Some((kind, value.parse().ok()?))).collect()
    }
}
