//! What must hold of all nodes: order, integrity, and that no hole is silent.

use crate::epto::{Event, EventKey, Sequence};
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

/// What one node was told.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What it delivered, in its order.
    pub delivered: Vec<EventKey>,
    /// What it has of states that it took over.
    pub taken_over: BTreeSet<EventKey>,
    /// Holes by name.
    pub named: BTreeSet<EventKey>,
    /// Holes by number.
    pub gaps: Vec<(Incarnation, Sequence, Sequence)>,
    /// How often it lost its place.
    pub places_lost: usize,
    /// Whether it is judged at the end: it is there, and has a place.
    pub is_there: bool,
}

/// What was broadcast, and who was told what.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    pub broadcast: BTreeMap<EventKey, Bytes>,
    pub sequences: BTreeMap<EventKey, Sequence>,
    pub nodes: Vec<Told>,
}

/// Pairs of a node and an event that somebody delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub pairs: usize,
    /// Those of which the node does not have the event.
    pub holes: usize,
}

impl Judge {
    /// E1 and E3, at each delivery.
    pub fn on_delivered(&mut self, node: usize, event: &Event, payload: &Bytes) {
        let known = self.broadcast.get(&event.key);
        assert_eq!(known, Some(payload), "E3: {} is not what was broadcast", event.key);
        let told = &mut self.nodes[node];
        if let Some(last) = told.delivered.last() {
            assert!(*last < event.key, "E1: {} after {last} at node {node}", event.key);
        }
        told.delivered.push(event.key);
    }

    /// E2, and that each hole is known to its node; then how many there are.
    pub fn at_the_end(&self) -> Agreement {
        self.orders_agree();
        let all: BTreeSet<EventKey> =
            self.nodes.iter().flat_map(|told| &told.delivered).copied().collect();
        let mut agreement = Agreement::default();
        for (node, told) in self.nodes.iter().enumerate().filter(|(_, told)| told.is_there) {
            let has: BTreeSet<EventKey> =
                told.delivered.iter().chain(&told.taken_over).copied().collect();
            agreement.pairs += all.len();
            for key in all.difference(&has) {
                agreement.holes += 1;
                let sequence = self.sequences[key];
                let is_numbered = told.gaps.iter().any(|(source, first, last)| {
                    *source == key.source && (*first..=*last).contains(&sequence)
                });
                let is_known = is_numbered || told.named.contains(key);
                assert!(is_known, "node {node} does not know that it lacks {key}");
            }
        }
        agreement
    }

    /// E2: any two nodes deliver what both deliver in the same order.
    fn orders_agree(&self) {
        let mut after: BTreeMap<EventKey, usize> = BTreeMap::new();
        for (place, key) in self.broadcast.keys().enumerate() {
            after.insert(*key, place);
        }
        for (one, first) in self.nodes.iter().enumerate() {
            let set: BTreeSet<&EventKey> = first.delivered.iter().collect();
            for second in self.nodes.iter().skip(one + 1).take(8) {
                let common: Vec<_> =
                    second.delivered.iter().filter(|it| set.contains(it)).collect();
                let other: BTreeSet<&EventKey> = second.delivered.iter().collect();
                let mine: Vec<_> = first.delivered.iter().filter(|it| other.contains(it)).collect();
                assert_eq!(mine, common, "E2: two nodes differ in the order");
            }
        }
    }
}
