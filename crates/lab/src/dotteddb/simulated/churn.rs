//! Nodes that are replaced: the old one is gone for good, a new one begins with nothing.

use super::subject::Subject;
use super::world::{Event, World};
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Control;
use quorate_kernel::time::{Span, Time};

/// How long a node may take to answer a map.
const WITHIN: Span = Span::secs(10);

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
        self.map = self.map.replaced(self.nodes[old].me.node, self.next_id(), true);
        let new = self.add(partition);
        self.at[usize::from(partition)] = new;
        let map = postcard::to_allocvec(&self.map).expect("plain data always serializes");
        let map = Bytes::from(map);
        for node in self.at.clone() {
            let at = self.now + self.way();
            self.push(at, Event::Place { node, map: map.clone() });
        }
    }

    /// A node hears who holds what.
    pub(super) fn place(&mut self, node: usize, map: Bytes) {
        let deadline = Time(self.now) + WITHIN;
        let control = Control::Place { map };
        self.step(node, |engine, cx| engine.on_control(Ticket(0), control, deadline, cx));
    }
}
