//! One run: a cluster settles, rests, is loaded, and rests again.

use super::super::dotteddb::simulated::run::Times;
use super::simulated::order::Delivered;
use super::simulated::reads::Judged;
use super::simulated::traffic::Traffic;
use super::simulated::{Cluster, Shape};
use quorate_kernel::time::Span;
use quorate_sim::light::Counts;
use quorate_sim::run::busy;
use std::time::Instant;

/// For how many rounds a cluster may take to settle.
pub const SETTLE_ROUNDS: u64 = 4000;
/// For how many rounds it is watched without load.
const IDLE_ROUNDS: u64 = 40;

/// What some time of a cluster cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Nodes and rounds: each node once in each round.
    pub node_rounds: f64,
    /// How much time passed in the world, in seconds.
    pub seconds: f64,
    /// For how long a core was busy with it, in seconds.
    pub busy_seconds: f64,
    /// Messages and timers that nodes handled, and what clients did.
    pub events: u64,
    /// What was sent.
    pub traffic: Traffic,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was run.
    pub shape: Shape,
    /// Until all nodes were ready and agreed on slices; none if they never did.
    pub settled: Option<Span>,
    /// How many slices they agreed on; 0 if they did not.
    pub slices: u64,
    /// K and TTL.
    pub parameters: (u64, u16),
    /// Without load.
    pub idle: Cost,
    /// Under load.
    pub loaded: Cost,
    /// Under load and until all had arrived.
    pub traffic: Traffic,
    /// What was delivered, and missed.
    pub delivered: Delivered,
    /// What came of reads.
    pub judged: Judged,
    /// How long reads took, and writes. Those that failed are open.
    pub latency: [Times; 2],
    /// Requests that were done, and all.
    pub requests: (u64, u64),
    /// Holes that nodes have noticed, and those that were filled.
    pub noticed: (u64, u64),
    /// How many nodes were replaced.
    pub replaced: u64,
    /// What of replicas is missing in the end; none if nodes do not agree on slices.
    pub missing: Option<u64>,
    /// How many rounds it takes until replicas are equal; none if they never are.
    pub repaired: Option<u64>,
}

/// Watches what some time of a cluster costs.
pub fn cost(cluster: &mut Cluster, what: impl FnOnce(&mut Cluster)) -> Cost {
    let (begun, at, size) = (Instant::now(), cluster.now(), cluster.size());
    let (before, traffic, Counts { events, .. }) =
        (busy(begun), cluster.traffic(), cluster.counts());
    what(cluster);
    let span = cluster.now() - at;
    let rounds = span.0 as f64 / cluster.round().0 as f64;
    Cost {
        node_rounds: rounds * size as f64,
        seconds: span.0 as f64 / 1e9,
        busy_seconds: (busy(begun) - before).as_secs_f64(),
        events: cluster.counts().events - events,
        traffic: cluster.traffic() - traffic,
    }
}

/// Runs it, loaded for so many seconds.
#[must_use]
pub fn measure(shape: &Shape, seconds: u64) -> Found {
    let mut cluster = Cluster::new(shape);
    let settled = cluster.settle(SETTLE_ROUNDS);
    let idle = cost(&mut cluster, |cluster| cluster.run_rounds(IDLE_ROUNDS));
    let before = cluster.traffic();
    let loaded = cost(&mut cluster, |cluster| {
        cluster.load();
        cluster.run(Span::secs(seconds));
    });
    let parameters = (cluster.fanout(), cluster.ttl());
    cluster.rest();
    let traffic = cluster.traffic() - before;
    let [holes, filled] = cluster.sums(&["holes", "holes_filled"]);
    let missing = cluster.agreed().map(|slices| cluster.missing(slices));
    let is_equal =
        |cluster: &Cluster| cluster.agreed().is_some_and(|slices| cluster.missing(slices) == 0);
    let repaired = cluster.until(SETTLE_ROUNDS, is_equal);
    cluster.check();
    Found {
        shape: shape.clone(),
        settled,
        slices: cluster.agreed().unwrap_or(0),
        parameters,
        idle,
        loaded,
        traffic,
        delivered: cluster.delivered(),
        judged: cluster.judged(),
        latency: [false, true].map(|is_put| latency(&cluster, is_put)),
        requests: requests(&cluster),
        noticed: (holes, filled),
        replaced: cluster.replaced,
        missing,
        repaired: repaired.map(|span| span.0 / shape.round.0),
    }
}

/// How long reads took, or writes.
fn latency(cluster: &Cluster, is_put: bool) -> Times {
    let (mut times, mut open) = (Vec::new(), 0);
    for request in cluster.requests().filter(|request| request.is_put == is_put) {
        match request.latency() {
            Some(span) => times.push(span.0 / 1000),
            None => open += 1,
        }
    }
    Times::new(times, open)
}

fn requests(cluster: &Cluster) -> (u64, u64) {
    let done = cluster.requests().filter(|request| request.latency().is_some()).count();
    (done as u64, cluster.requests().count() as u64)
}

impl Found {
    /// How long a request should take, in milliseconds: TTL + 2 rounds (`epto`, known limits).
    #[must_use]
    pub fn expected_ms(&self) -> f64 {
        (f64::from(self.parameters.1) + 2.0) * self.shape.round.0 as f64 / 1e6
    }

    /// How many requests were done in a second of load.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.requests.0 as f64 / self.loaded.seconds
    }
}
