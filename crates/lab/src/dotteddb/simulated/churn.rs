//! Nodes that are replaced: the old one is gone for good, a new one begins with nothing.

use super::cluster::Cluster;
use super::machines::Plan;
use super::subject::Subject;
use quorate_kernel::keyspace::Partition;
use quorate_sim::light::node_id;
use std::sync::Arc;

impl<S: Subject> Cluster<S> {
    /// Replaces the node that has been there longest.
    pub(super) fn replace_one(&mut self) {
        if !self.is_measuring {
            return;
        }
        let next = self.now() + self.run.churn_us * 1000;
        self.plan(next, Plan::Churn);
        let old = self.up().next().expect("some are up");
        let partition = self.light.around.nodes[old].partition;
        self.light.crash(old);
        let (out, into) = (node_id(old), node_id(self.light.around.nodes.len()));
        self.record.changed += 1;
        self.record.gone.insert(out);
        let since = self.record.changed;
        for place in self.record.partitions.iter_mut().filter(|place| place.node == out) {
            *place = Partition { node: into, since, is_settled: false };
        }
        let new = self.add(partition);
        self.at[usize::from(partition)] = new;
        let record = Arc::new(self.record.clone());
        for node in self.at.clone() {
            let at = self.now() + self.way();
            self.plan(at, Plan::News { node, record: Arc::clone(&record) });
        }
    }
}
