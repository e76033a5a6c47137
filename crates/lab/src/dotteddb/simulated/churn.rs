//! Nodes that are replaced: the old one is gone for good, a new one begins with nothing.

use super::subject::Subject;
use super::world::{Event, World};
use quorate_kernel::keyspace::Partition;
use std::sync::Arc;

impl<S: Subject> World<S> {
    /// Replaces the node that has been there longest.
    pub(super) fn replace_one(&mut self) {
        if !self.is_measuring {
            return;
        }
        let next = self.now + self.run.churn_us * 1000;
        self.push(next, Event::Churn);
        let old = (0..self.nodes.len()).find(|node| self.nodes[*node].is_up).expect("some are up");
        let partition = self.nodes[old].partition;
        self.nodes[old].is_up = false;
        let (out, into) = (self.nodes[old].me.node, self.next_id());
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
            let at = self.now + self.way();
            self.push(at, Event::Place { node, record: Arc::clone(&record) });
        }
    }
}
