//! What is run, and what was found.

use super::cluster::Cluster;
use super::subject::Subject;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, Partition};
use quorate_protocols::causal::map::Shape;

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// How many nodes; each has one partition.
    pub nodes: u16,
    /// How many machines they share: a machine does one thing at a time.
    pub machines: usize,
    /// How many replicas of each key.
    pub replicas: u16,
    /// How many keys there are; all are written before anything counts.
    pub keys: u32,
    /// The size of values.
    pub value_bytes: usize,
    /// Updates per second, each of which is a get and then a put or a delete.
    pub rate: u64,
    /// How many of 100 updates are deletes.
    pub delete_percent: u64,
    /// How many of a million messages of replication on write are lost.
    pub loss_ppm: u32,
    /// Between two exchanges that a node begins, in microseconds.
    pub sync_us: u64,
    /// Between two passes over contexts.
    pub strip_us: u64,
    /// How many children a node of a hash tree has.
    pub width: u32,
    /// A node is replaced so often; 0 for never.
    pub churn_us: u64,
    /// How long it is measured.
    pub seconds: u64,
    /// The length of one piece of time lines.
    pub bucket_s: u64,
    /// Whether the ways of updates are followed: stripping and replication.
    pub is_watched: bool,
    /// Decides everything.
    pub seed: u64,
}

impl Run {
    /// The paper's 64 nodes on five machines, at rest, with a load that says nothing yet.
    #[must_use]
    pub fn usual(keys: u32, rate: u64, seconds: u64) -> Run {
        Run {
            nodes: 64,
            machines: 5,
            replicas: 3,
            keys,
            value_bytes: 100,
            rate,
            delete_percent: 0,
            loss_ppm: 0,
            sync_us: 100_000,
            strip_us: 1_000_000,
            width: 100,
            churn_us: 0,
            seconds,
            bucket_s: 1,
            is_watched: false,
            seed: 1,
        }
    }

    /// The partitions.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape::new(self.nodes, self.replicas)
    }

    /// Whether writes are sent to the other replicas at once.
    #[must_use]
    pub fn replicates_on_write(&self) -> bool {
        self.loss_ppm < 1_000_000
    }

    /// The catalog's first record: each node has the partition of its number.
    #[must_use]
    pub fn record(&self, nodes: &[NodeId]) -> Keyspace {
        let place = |node: &NodeId| Partition { node: *node, since: 1, is_settled: true };
        let replication = if self.replicates_on_write() { "on" } else { "off" };
        let settings = [
            ("partitions", self.nodes.to_string()),
            ("replicas", self.replicas.to_string()),
            ("replication", replication.to_owned()),
        ];
        let settings = settings.map(|(name, word)| (name.to_owned(), word)).into();
        Keyspace {
            partitions: nodes.iter().map(place).collect(),
            ..Keyspace::new("measured", LaneId(1), "causal", settings, 1)
        }
    }
}

/// What a machine is busy with, in nanoseconds; the same for every engine.
pub mod costs {
    /// Any input: a message, a request, a timer.
    pub const STEP: u64 = 10_000;
    /// Writing anything: the records of a step are one batch.
    pub const BATCH: u64 = 5_000;
    /// Each record of it.
    pub const WRITE: u64 = 1_000;
    /// Each record read.
    pub const READ: u64 = 1_000;
    /// Each byte sent.
    pub const BYTE: u64 = 1;
    /// The mean way of a message, exponentially distributed, in microseconds.
    pub const NETWORK_US: u64 = 250;
}

/// Bytes of anti-entropy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Keys and values.
    pub data: u64,
    /// Clocks of objects.
    pub clocks: u64,
    /// All the rest, frames included.
    pub protocol: u64,
    /// How many messages.
    pub messages: u64,
}

impl Traffic {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.data + self.clocks + self.protocol
    }
}

/// One piece of a time line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Piece {
    /// When it ends, in seconds since measuring began.
    pub at_s: u64,
    /// Objects written in it.
    pub writes: u64,
    /// Entries of their clocks.
    pub entries: u64,
    /// Objects stored, at all replicas, at the end of each second together.
    pub stored: u64,
    /// Keys that have a value if the last update of each counts everywhere at once, likewise.
    pub live: u64,
    /// How many seconds.
    pub seconds: u64,
}

impl Piece {
    /// Objects stored, on average over its seconds.
    #[must_use]
    pub fn mean_stored(&self) -> f64 {
        self.stored as f64 / self.seconds.max(1) as f64
    }

    /// Keys that have a value, likewise.
    #[must_use]
    pub fn mean_live(&self) -> f64 {
        self.live as f64 / self.seconds.max(1) as f64
    }

    /// Entries for each object written.
    #[must_use]
    pub fn mean_entries(&self) -> f64 {
        self.entries as f64 / self.writes.max(1) as f64
    }
}

/// Times in microseconds, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    sorted: Vec<u64>,
    /// How many had not ended when the run did.
    pub open: u64,
}

impl Times {
    /// These times, and how many more have not ended.
    #[must_use]
    pub fn new(mut times: Vec<u64>, open: u64) -> Times {
        times.sort_unstable();
        Times { sorted: times, open }
    }

    /// How many have ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The time within which this share of all ended, those that are open counted as later ones.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let all = self.sorted.len() as f64 + self.open as f64;
        let rank = (share * all).ceil().max(1.0) as usize;
        self.sorted.get(rank - 1).copied()
    }

    /// The mean of those that have ended.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sorted.iter().sum::<u64>() as f64 / self.sorted.len().max(1) as f64
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The time line.
    pub pieces: Vec<Piece>,
    /// Until an update's object was stored without a context, at each replica.
    pub strip: Times,
    /// Until an update was stored at each replica but its coordinator.
    pub replication: Times,
    /// Updates as clients saw them: get and write together.
    pub latency: Times,
    /// Updates that were refused.
    pub refused: u64,
    /// Bytes of anti-entropy while it was measured.
    pub traffic: Traffic,
    /// Bytes that a node keeps beside objects: on average over nodes and time, and at most.
    pub metadata: (f64, u64),
    /// Entries of objects' clocks at the end, for each object.
    pub entries_at_end: f64,
    /// The same when there was no load any more and nothing was left to be told.
    pub entries_at_quiescence: f64,
    /// Versions of each object then: writes of one key at one time make several.
    pub versions_at_quiescence: f64,
    /// Bytes that a node keeps beside objects then, on average.
    pub metadata_at_quiescence: f64,
    /// How much of the machines' time was used, in percent.
    pub busy_percent: f64,
    /// Events of the whole run.
    pub events: u64,
}

/// Runs it with one engine.
#[must_use]
pub fn measure<S: Subject>(run: &Run) -> Findings {
    Cluster::<S>::new(run).measure()
}
