//! Clusters of hosts with one core each: how throughput grows with hosts (CATS §5, Fig. 4).
//!
//! The world of the scenarios gives hosts infinitely fast processors. Here every request and every
//! frame waits for its host's one core, first come, first served, and keeps it for a time measured
//! on real hosts; what a turn sends leaves when that time is over. The hosts run the same nodes, on
//! disks that take the time that is given. Timers, the reports of the disk and the clients
//! themselves cost no core.

mod clients;
mod cluster;
mod scenario;
#[cfg(test)]
mod tests;

pub use clients::{Clients, Registers};
use cluster::Cluster;
use quorate_kernel::engine::Engine;
use quorate_kernel::error::Fatal;
use quorate_kernel::operation::Outcome;
use quorate_kernel::storage::Durability;
use quorate_protocols::linearizable;
use quorate_sim::delay::Distribution;

/// How many clients ask at most.
pub const CLIENTS_MAX: usize = 1 << 16;

/// What the processor of a host costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Taking a client's request and, later, writing its reply, in nanoseconds.
    pub request_ns: u64,
    /// Taking a frame, and sending what it leads to.
    pub frame_ns: u64,
    /// Each byte of a frame on the one link on which a host receives, before its core has it; 0 if
    /// links have no limit. What clients send has no bytes, and sending keeps no link.
    pub byte_ns: u64,
}

/// How the keyspace is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its engine, which takes plain values.
    pub engine: &'static Engine,
    /// How many hosts hold each key.
    pub replicas: usize,
    /// How durable it is.
    pub durability: Durability,
    /// Its other settings that do not have their default.
    pub settings: &'static [(&'static str, &'static str)],
    /// How long it takes to hand batches to the operating system.
    pub write: Distribution,
    /// How long a sync takes.
    pub sync: Distribution,
}

impl Default for Kept {
    /// As the paper has it: three replicas in memory. Of views alone is there anything to sync.
    fn default() -> Kept {
        let (engine, free) = (&linearizable::ENGINE, Distribution::Constant { us: 1 });
        let (write, sync) = (free.clone(), free);
        let durability = Durability::Memory;
        Kept { engine, replicas: 3, durability, settings: &[], write, sync }
    }
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Load {
    /// How the keyspace is kept.
    pub kept: Kept,
    /// How many hosts: at least as many as there are replicas.
    pub hosts: usize,
    /// The way from one machine to another, in microseconds.
    pub network_us: u64,
    /// Simulated time before anything counts, once clients are ready, in milliseconds.
    pub warm_up_ms: u64,
    /// Simulated time that counts.
    pub measured_ms: u64,
    /// Decides everything.
    pub seed: u64,
}

/// What a client is told.
#[derive(Debug)]
pub struct Hearing<'a> {
    /// What became of its operation.
    pub outcome: &'a Outcome,
    /// When it hears of it, in nanoseconds.
    pub at: u64,
    /// Whether that is in the time that counts.
    pub is_counted: bool,
}

/// What a simulated cluster has done in the time that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Operations that succeeded.
    pub operations: u64,
    /// Operations that did not.
    pub refused: u64,
    /// The mean latency in nanoseconds.
    pub mean_ns: f64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// Operations per simulated second.
    pub throughput: f64,
    /// Requests that hosts took.
    pub requests: u64,
    /// Frames that hosts took, those of membership included.
    pub frames: u64,
    /// The share of the hosts' time in which their cores were busy.
    pub busy: f64,
}

/// Simulates a cluster, and tells what its hosts did.
///
/// # Errors
/// A host's store failed.
///
/// # Panics
/// The keyspace cannot be kept so, or the hosts never came to serve.
pub fn serve(load: &Load, costs: Costs, clients: &mut dyn Clients) -> Result<Served, Fatal> {
    assert!(load.hosts >= load.kept.replicas, "every replica has a host");
    assert!((1..=CLIENTS_MAX).contains(&clients.count()), "clients are bounded");
    let mut cluster = Cluster::new(load, costs, clients);
    cluster.start()?;
    cluster.run()?;
    Ok(cluster.sums())
}
