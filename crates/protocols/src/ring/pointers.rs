//! Predecessor and successors of one token.

use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::SUCCESSORS_MAX;
use serde::{Deserialize, Serialize};

/// A token and its host's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Where it stands in the hash space.
    pub token: u64,
    /// The host's node.
    pub node: NodeId,
}

/// The pointers of one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointers {
    own: u64,
    predecessor: Option<Place>,
    /// The nearest first.
    successors: Vec<Place>,
}

impl Pointers {
    /// A token that knows no other.
    #[must_use]
    pub fn new(own: u64) -> Pointers {
        let successors = Vec::with_capacity(SUCCESSORS_MAX + 1);
        Pointers { own, predecessor: None, successors }
    }

    /// How far a token lies behind this one, clockwise.
    fn distance(&self, token: u64) -> u64 {
        token.wrapping_sub(self.own)
    }

    /// The token.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.own
    }

    /// The nearest token before this one.
    #[must_use]
    pub fn predecessor(&self) -> Option<Place> {
        self.predecessor
    }

    /// The next tokens, the nearest first.
    #[must_use]
    pub fn successors(&self) -> &[Place] {
        &self.successors
    }

    /// Takes in a token that lives, if that improves something; returns whether it did. Of two
    /// nodes with one token the lower node id has it, everywhere alike.
    pub fn consider(&mut self, place: Place) -> bool {
        let distance = self.distance(place.token);
        if distance == 0 {
            return false;
        }
        let before = (self.predecessor, self.successors.len());
        let is_nearer = |known: Place| {
            let known_distance = self.distance(known.token);
            distance > known_distance || (distance == known_distance && place.node < known.node)
        };
        if self.predecessor.is_none_or(is_nearer) {
            self.predecessor = Some(place);
        }
        let at = self.successors.partition_point(|known| self.distance(known.token) < distance);
        let mut is_new = at < SUCCESSORS_MAX;
        match self.successors.get_mut(at) {
            Some(known) if known.token == place.token => {
                is_new = place.node < known.node;
                known.node = known.node.min(place.node);
            }
            _ if is_new => {
                self.successors.insert(at, place);
                self.successors.truncate(SUCCESSORS_MAX);
            }
            _ => {}
        }
        is_new || before != (self.predecessor, self.successors.len())
    }

    /// Drops what does not live any more; returns whether something was dropped.
    pub fn drop_dead(&mut self, is_alive: impl Fn(&Place) -> bool) -> bool {
        let before = self.successors.len();
        self.successors.retain(&is_alive);
        let was_predecessor = self.predecessor.is_some();
        self.predecessor = self.predecessor.filter(&is_alive);
        before != self.successors.len() || was_predecessor != self.predecessor.is_some()
    }

    /// Replaces the successors as a whole by a successor and the list it gave. An empty outcome
    /// changes nothing.
    pub fn adopt(&mut self, list: impl Iterator<Item = Place>) {
        let mut successors: Vec<Place> = Vec::with_capacity(SUCCESSORS_MAX + 1);
        for place in list.filter(|place| place.token != self.own).take(SUCCESSORS_MAX) {
            let last = successors.last().map_or(0, |last| self.distance(last.token));
            // A list that goes round has nothing new behind this token itself.
            if self.distance(place.token) <= last {
                break;
            }
            successors.push(place);
        }
        if !successors.is_empty() {
            self.successors = successors;
        }
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.successors.len() <= SUCCESSORS_MAX, "the list is bounded");
        let mut pairs = self.successors.windows(2);
        let is_ordered =
            pairs.all(|pair| self.distance(pair[0].token) < self.distance(pair[1].token));
        assert!(is_ordered, "the successors stand in the order of the ring");
        assert!(
            self.successors.iter().all(|place| place.token != self.own),
            "nobody follows itself"
        );
    }
}
