//! Loading, measuring, resting.

use super::carried::clock_entries;
use super::cluster::Cluster;
use super::machines::{Plan, whole};
use super::run::{Findings, Piece, Traffic};
use super::subject::Subject;
use super::watch::key_of;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_protocols::causal::keys::hash_of_key;

const SECOND: u64 = 1_000_000_000;
/// Between two keys that are loaded.
const LOAD_GAP: u64 = 20_000;
/// How many intervals of anti-entropy, or of stripping, nodes get to come to rest.
const REST_INTERVALS: u64 = 60;

impl<S: Subject> Cluster<S> {
    pub(super) fn measure(mut self) -> Findings {
        self.load();
        self.rest();
        self.light.around.is_loaded = true;
        self.is_measuring = true;
        if self.run.is_watched {
            self.light.around.watch.follow();
        }
        self.light.around.traffic = Traffic::default();
        self.light.around.take_busy();
        let begin = self.now();
        self.plan(begin, Plan::Update);
        if self.run.churn_us > 0 {
            self.plan(begin + self.run.churn_us * 1000, Plan::Churn);
        }
        let (mut sum, mut most, mut samples) = (0, 0, 0);
        for second in 1..=self.run.seconds {
            self.run_until(begin + second * SECOND);
            for metadata in self.metadata() {
                sum += metadata;
                most = most.max(metadata);
                samples += 1;
            }
            self.end_second(second);
        }
        self.findings.metadata = (sum as f64 / samples.max(1) as f64, most);
        self.findings.traffic = self.traffic();
        let nanos = (self.run.seconds * SECOND * self.run.machines as u64) as f64;
        self.findings.busy_percent = self.light.around.take_busy() as f64 * 100.0 / nanos;
        (self.findings.entries_at_end, _) = self.entries();
        self.is_measuring = false;
        // What is under way ends, so that the slowest count too.
        self.rest();
        (self.findings.strip, self.findings.replication) = self.light.around.watch.times();
        self.findings.latency = super::run::Times::new(std::mem::take(&mut self.latency), 0);
        (self.findings.entries_at_quiescence, self.findings.versions_at_quiescence) =
            self.entries();
        let metadata = self.metadata();
        self.findings.metadata_at_quiescence =
            metadata.iter().sum::<u64>() as f64 / metadata.len() as f64;
        self.findings
    }

    /// Writes every key once, at its first replica.
    pub(super) fn load(&mut self) {
        let shape = self.run.shape();
        for number in 0..self.run.keys {
            self.run_until(self.now() + LOAD_GAP);
            let key = key_of(number);
            let first = *shape.replicas_of(shape.home(hash_of_key(key.as_bytes()))).start();
            let (value, context) = (self.value(u64::from(number)), bytes::Bytes::new());
            let operation = Operation::put_over(key.into(), value, context, None);
            let request = Request { operation, deadline: Time(self.now()) + Span::secs(10) };
            let node = self.at[usize::from(first)];
            self.step(node, |engine, cx| engine.on_request(Ticket(0), request, cx));
        }
    }

    /// Time passes without load until every node has told every other all, or too long.
    pub(super) fn rest(&mut self) {
        let interval = self.run.sync_us.max(self.run.strip_us) * 1000;
        for _ in 0..REST_INTERVALS {
            self.run_until(self.now() + interval);
            if self.up().all(|node| self.light.process(node).is_quiet()) {
                return;
            }
        }
    }

    pub(super) fn metadata(&self) -> Vec<u64> {
        let nodes = &self.light.around.nodes;
        self.up().map(|at| self.light.process(at).metadata(&nodes[at].stored)).collect()
    }

    fn end_second(&mut self, at_s: u64) {
        let nodes = &self.light.around.nodes;
        let stored: u64 = self.up().map(|at| nodes[at].stored.objects() as u64).sum();
        let piece = &mut self.light.around.watch.piece;
        piece.stored += stored;
        piece.live += self.live_count;
        piece.seconds += 1;
        if at_s.is_multiple_of(self.run.bucket_s) {
            let piece = std::mem::take(piece);
            self.findings.pieces.push(Piece { at_s, ..piece });
        }
    }

    /// Entries of the clocks of all stored objects, and versions, for each object.
    fn entries(&self) -> (f64, f64) {
        let (mut entries, mut versions, mut objects) = (0, 0, 0);
        let stored = self.up().flat_map(|at| {
            let (engine, node) = (self.light.process(at), &self.light.around.nodes[at]);
            let objects = node.stored.each_object();
            objects.map(move |stored| whole(engine, node.partition, stored))
        });
        for object in stored {
            entries += clock_entries(&object);
            versions += object.versions.len();
            objects += 1;
        }
        let each = |count: usize| count as f64 / f64::from(objects.max(1));
        (each(entries), each(versions))
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::{Run, measure};
    use super::*;
    use quorate_merkle::Merkle;
    use quorate_protocols::causal::Causal;

    fn small() -> Run {
        Run { nodes: 8, width: 4, is_watched: true, ..Run::usual(400, 100, 6) }
    }

    #[test]
    fn both_engines_bring_every_update_everywhere() {
        for loss_ppm in [0, 100_000, 1_000_000] {
            let run = Run { loss_ppm, ..small() };
            let (dotted, merkle) = (measure::<Causal>(&run), measure::<Merkle>(&run));
            for (name, found) in [("dotted", &dotted), ("merkle", &merkle)] {
                assert_eq!((found.replication.open, found.refused), (0, 0), "{name} {loss_ppm}");
                let updates = found.latency.len();
                assert!((400..800).contains(&updates), "{name}: {updates} updates");
                assert_eq!(found.replication.len(), 2 * updates, "{name} {loss_ppm}");
            }
            assert_eq!(dotted.strip.open, 0);
            assert!(
                dotted.entries_at_quiescence <= dotted.versions_at_quiescence,
                "a dot for each value"
            );
            assert!(dotted.entries_at_quiescence < 1.1, "{}", dotted.entries_at_quiescence);
            assert!(merkle.entries_at_quiescence > 1.2, "{}", merkle.entries_at_quiescence);
            assert!(dotted.metadata_at_quiescence < 2000.0, "{}", dotted.metadata_at_quiescence);
            assert!(merkle.metadata_at_quiescence > dotted.metadata_at_quiescence);
        }
    }

    #[test]
    fn a_seed_decides_everything() {
        let run = Run { loss_ppm: 300_000, churn_us: 2_000_000, ..small() };
        assert_eq!(measure::<Causal>(&run), measure::<Causal>(&run));
        let other = Run { seed: 2, ..run.clone() };
        assert!(measure::<Merkle>(&run) != measure::<Merkle>(&other));
    }

    #[test]
    fn deletes_leave_tombstones_with_one_engine_and_nothing_with_the_other() {
        let run = Run { delete_percent: 50, is_watched: false, ..small() };
        let (dotted, merkle) = (measure::<Causal>(&run), measure::<Merkle>(&run));
        let last = |found: &Findings| *found.pieces.last().expect("it has pieces");
        let (dotted, merkle) = (last(&dotted), last(&merkle));
        assert_eq!((merkle.stored, merkle.seconds), (3 * 400, 1));
        assert!(dotted.live < 350, "{dotted:?}");
        assert!(dotted.stored < 3 * dotted.live + 300, "{dotted:?}");
        assert!(dotted.stored >= 3 * dotted.live - 30, "{dotted:?}");
    }

    #[test]
    fn churn_grows_one_engines_clocks_and_not_the_others() {
        let run = Run { churn_us: 2_000_000, is_watched: false, ..small() };
        let run = Run { nodes: 24, seconds: 48, bucket_s: 12, ..run };
        let (dotted, merkle) = (measure::<Causal>(&run), measure::<Merkle>(&run));
        let means = |found: &Findings| -> Vec<f64> {
            found.pieces.iter().map(super::Piece::mean_entries).collect()
        };
        let (dotted, merkle) = (means(&dotted), means(&merkle));
        assert!(dotted[3] < 3.0, "{dotted:?}");
        assert!(merkle[3] > merkle[0] + 0.5, "{merkle:?}");
    }
}
