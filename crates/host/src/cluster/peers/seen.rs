//! What this host has seen of each node, and whether one that says hello can be that node.

use super::Peers;
use crate::cluster::handshake::{Hello, HelloError, Word};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::sighting::Sighting;
use std::collections::btree_map::Entry;

impl Peers {
    /// What this host knows of a node.
    pub fn word(&self, node: NodeId) -> Word {
        let seen = self.seen.get(&node).copied();
        let peer = self.find(node).and_then(|index| self.get(index));
        let heard = peer.map_or(Start(0), |peer| peer.heard);
        let highest = seen.map_or(heard, |seen| seen.start.max(heard));
        Word { has_left: self.left.contains(&node), is_there: false, highest, seen }
    }

    /// Whether a host that said hello is one that may connect, by what is known of its node.
    pub fn check(&self, hello: &Hello) -> Result<(), HelloError> {
        let Incarnation { node, start } = hello.from;
        if self.left.contains(&node) {
            return Err(HelloError::Left { node });
        }
        let Word { highest, seen, .. } = self.word(node);
        if start < highest {
            return Err(HelloError::Start { node, found: start.0, seen: highest.0 });
        }
        if seen.is_some_and(|seen| seen.start == start && seen.run != hello.run) {
            return Err(HelloError::Twin { node, start: start.0 });
        }
        Ok(())
    }

    /// A host that is connected says how far it has synced.
    pub fn see(&mut self, sighting: Sighting) {
        let is_more = match self.seen.entry(sighting.node) {
            Entry::Occupied(mut known) => known.get_mut().raise(&sighting),
            Entry::Vacant(place) => {
                place.insert(sighting);
                true
            }
        };
        self.is_seen_taken &= !is_more;
        // Of strangers that never join no more is kept than there is room for.
        while self.seen.len() > HOSTS_MAX {
            self.seen.pop_first();
        }
    }

    /// What was seen of all nodes, if that has changed since it was last taken.
    pub fn take_seen(&mut self) -> Option<Vec<Sighting>> {
        let is_taken = std::mem::replace(&mut self.is_seen_taken, true);
        (!is_taken).then(|| self.seen.values().copied().collect())
    }
}
