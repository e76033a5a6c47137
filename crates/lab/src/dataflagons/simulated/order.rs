//! What each node delivers, in which order, and what it misses.
//!
//! A hole is an event that a node has not delivered although it delivered earlier and later ones,
//! and some other node has delivered it. What a node takes over with a snapshot it has not missed.

use super::shown::shown;
use quorate_protocols::epidemic::Epidemic;
use quorate_protocols::epto::EventKey;
use std::collections::HashMap;

/// What one node delivered from when it took a place in the order until it lost it.
#[derive(Clone, Debug)]
struct Piece {
    /// The last event that it did not deliver itself, or does not show whether it did.
    after: EventKey,
    last: EventKey,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Followed {
    places_lost: u64,
    pieces: Vec<Piece>,
}

/// What was delivered.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Each event that was delivered anywhere, and at how many nodes.
    events: HashMap<EventKey, u32>,
    nodes: Vec<Followed>,
    inversions: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Events that some node delivered, but for the first: nodes do not show whether they took it
    /// over.
    pub events: u64,
    /// Events and nodes that should have delivered them.
    pub pairs: u64,
    /// Those of them where the node did not.
    pub holes: u64,
    /// Events that a node delivered after a later one, or twice.
    pub inversions: u64,
}

impl Order {
    /// A node has delivered an event, or taken over a state that ends with it.
    pub fn note(&mut self, index: usize, node: &Epidemic, event: EventKey) {
        let [places_lost] = shown(node, &["places_lost"]);
        self.took(index, places_lost, event);
    }

    pub(super) fn took(&mut self, index: usize, places_lost: u64, event: EventKey) {
        if self.nodes.len() <= index {
            self.nodes.resize_with(index + 1, Followed::default);
        }
        let node = &mut self.nodes[index];
        let is_same = places_lost == node.places_lost;
        match node.pieces.last_mut().filter(|_| is_same) {
            Some(piece) => {
                self.inversions += u64::from(event <= piece.last);
                piece.last = event;
                piece.count += 1;
                *self.events.entry(event).or_default() += 1;
            }
            None => {
                node.places_lost = places_lost;
                node.pieces.push(Piece { after: event, last: event, count: 0 });
            }
        }
    }

    /// Whether some node has delivered it.
    #[must_use]
    pub fn has(&self, event: &EventKey) -> bool {
        self.events.contains_key(event)
    }

    /// What came of it, at the nodes that were there in the end and at those that were not.
    #[must_use]
    pub fn delivered(&self) -> Delivered {
        let mut events: Vec<EventKey> = self.events.keys().copied().collect();
        events.sort_unstable();
        let until = |key: EventKey| events.partition_point(|event| *event <= key) as u64;
        let (mut pairs, mut holes) = (0, 0);
        for piece in self.nodes.iter().flat_map(|node| &node.pieces) {
            let due = until(piece.last) - until(piece.after);
            pairs += due;
            holes += due.saturating_sub(piece.count);
        }
        let events = events.len() as u64;
        Delivered { events, pairs, holes, inversions: self.inversions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::Incarnation;
    use quorate_protocols::epto::LogicalTime;

    fn event(time: u64) -> EventKey {
        EventKey { time: LogicalTime(time), source: Incarnation::default() }
    }

    #[test]
    fn what_lies_between_two_deliveries_was_missed_and_what_was_taken_over_was_not() {
        let mut order = Order::default();
        (0..=6).for_each(|time| order.took(0, 0, event(time)));
        [0, 1, 2, 4, 6].iter().for_each(|time| order.took(1, 0, event(*time)));
        [3, 4, 5, 6].iter().for_each(|time| order.took(2, 0, event(*time)));
        [0, 1].iter().for_each(|time| order.took(3, 0, event(*time)));
        [5, 6].iter().for_each(|time| order.took(3, 1, event(*time)));
        let found = order.delivered();
        // The second misses 3 and 5. The third begins behind 3, the last one twice.
        assert_eq!(found, Delivered { events: 6, pairs: 17, holes: 2, inversions: 0 });
        order.took(2, 0, event(6));
        assert_eq!(order.delivered().inversions, 1, "twice");
    }
}
