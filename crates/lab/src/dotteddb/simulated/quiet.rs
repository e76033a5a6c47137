//! Two replicas that have converged, or differ in a few keys: what their exchanges take.

use super::cluster::Cluster;
use super::run::Run;
use super::subject::Subject;
use super::table::Stored;
use super::watch::key_of;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use std::time::Instant;

/// Between two exchanges that a node begins.
const INTERVAL_US: u64 = 100_000;
/// How many intervals are looked at.
const INTERVALS: u64 = 50;
/// The longest that differing replicas get.
const INTERVALS_MAX: u64 = 200;

/// What exchanges of equal replicas take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quiet {
    /// Bytes in one direction of one exchange.
    pub bytes_each_way: f64,
    /// The time both nodes together spent on one exchange, in microseconds, measured here.
    pub cpu_us: f64,
    /// Bytes that a node keeps beside objects.
    pub metadata: f64,
}

/// What it takes until replicas that differ are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differing {
    /// In how many keys they differed.
    pub keys: u32,
    /// Bytes of all messages, less those that equal replicas exchange in the same time.
    pub bytes: f64,
}

/// What is left of keys that were all deleted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Emptied {
    /// Records of data that a node still stores, and their bytes.
    pub left: (f64, f64),
    /// Seconds from the last delete until nothing is left to be told.
    pub seconds: f64,
}

/// Two replicas of so many keys, of which so many were then written anew at one of them; and in the
/// end all were deleted there.
///
/// # Panics
/// The replicas do not become equal in time, or there are fewer keys than shall differ.
#[must_use]
pub fn measure<S: Subject>(keys: u32, differing: &[u32]) -> (Quiet, Vec<Differing>, Emptied) {
    let run = Run {
        nodes: 2,
        machines: 2,
        replicas: 2,
        value_bytes: 16,
        loss_ppm: 1_000_000,
        sync_us: INTERVAL_US,
        strip_us: INTERVAL_US,
        ..Run::usual(keys, 1, 1)
    };
    let mut cluster = Cluster::<S>::new(&run);
    cluster.load();
    cluster.rest();
    let interval = INTERVAL_US * 1000;
    let bytes = |cluster: &Cluster<S>| cluster.traffic().total() as f64;
    let (before, begun) = (bytes(&cluster), Instant::now());
    cluster.run_until(cluster.now() + INTERVALS * interval);
    let cpu_us = begun.elapsed().as_secs_f64() * 1e6;
    // Both nodes begin one in each interval.
    let exchanges = 2.0 * INTERVALS as f64;
    let per_interval = (bytes(&cluster) - before) / INTERVALS as f64;
    let metadata = cluster.metadata();
    let quiet = Quiet {
        bytes_each_way: per_interval / 4.0,
        cpu_us: cpu_us / exchanges,
        metadata: metadata.iter().sum::<u64>() as f64 / metadata.len() as f64,
    };
    let of = |count: &u32| {
        assert!(*count <= keys, "only keys that are there can differ");
        let before = bytes(&cluster);
        for number in 0..*count {
            cluster.write_again(number);
        }
        let intervals = until_quiet(&mut cluster);
        let bytes = bytes(&cluster) - before - per_interval * intervals as f64;
        Differing { keys: *count, bytes }
    };
    let differing = differing.iter().map(of).collect();
    for number in 0..keys {
        cluster.delete(number);
    }
    let seconds = until_quiet(&mut cluster) as f64 * INTERVAL_US as f64 / 1e6;
    let nodes = &cluster.light.around.nodes;
    let stored = || nodes.iter().map(|node| &node.stored);
    let records = stored().map(Stored::records).sum::<usize>() as f64 / nodes.len() as f64;
    let bytes = stored().map(Stored::bytes).sum::<u64>() as f64 / nodes.len() as f64;
    (quiet, differing, Emptied { left: (records, bytes), seconds })
}

/// After how many intervals nothing is left to be told.
fn until_quiet<S: Subject>(cluster: &mut Cluster<S>) -> u64 {
    let mut intervals = 0;
    while intervals == 0 || !cluster.up().all(|node| cluster.light.process(node).is_quiet()) {
        cluster.run_until(cluster.now() + INTERVAL_US * 1000);
        intervals += 1;
        assert!(intervals < INTERVALS_MAX, "replicas that can reach each other become equal");
    }
    intervals
}

impl<S: Subject> Cluster<S> {
    /// Writes a key once more at the first node, with the context of what is there.
    fn write_again(&mut self, number: u32) {
        let value = self.value(u64::from(number) + 1);
        let ask = Operation::put_over(key_of(number).into(), value, self.context_of(number), None);
        self.ask(Ticket(0), ask);
    }

    /// Deletes a key at the first node.
    fn delete(&mut self, number: u32) {
        let context = self.context_of(number);
        let ask = Operation::delete_over(key_of(number).into(), context);
        self.ask(Ticket(0), ask);
    }

    fn ask(&mut self, ticket: Ticket, ask: Operation) {
        let deadline = Time(self.now()) + Span::secs(10);
        let request = Request { operation: ask, deadline };
        self.step(0, |engine, cx| engine.on_request(ticket, request, cx));
    }

    /// The context that a get of a key at the first node answers.
    fn context_of(&mut self, number: u32) -> bytes::Bytes {
        let ask = Operation::get_all(key_of(number).into(), Some(1));
        self.seen = None;
        self.ask(Ticket(u64::MAX), ask);
        self.seen.take().expect("a node that holds the key answers at once")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_merkle::Merkle;
    use quorate_protocols::causal::Causal;

    #[test]
    fn equal_replicas_say_little_and_differing_ones_say_what_differs() {
        let (quiet, differing, emptied) = measure::<Causal>(3000, &[10, 100, 1000]);
        assert!(quiet.bytes_each_way < 1024.0, "{quiet:?}");
        assert!(quiet.metadata < 1024.0, "{quiet:?}");
        let each: Vec<f64> = differing.iter().map(|it| it.bytes / f64::from(it.keys)).collect();
        assert!(each.iter().all(|each| (50.0..400.0).contains(each)), "{each:?}");
        assert_eq!(emptied.left.0, 2.0, "one clock entry for each replica: {emptied:?}");
        let (merkle, differing, emptied) = measure::<Merkle>(3000, &[10]);
        assert!(emptied.left.0 >= 3000.0, "tombstones stay: {emptied:?}");
        assert!(merkle.bytes_each_way < 1024.0, "{merkle:?}");
        assert!(merkle.metadata > 100_000.0, "two trees of 10,000 leaves: {merkle:?}");
        // One key in a leaf, but a hundred hashes for each level.
        assert!(differing[0].bytes > 10.0 * 1600.0, "{differing:?}");
    }
}
