//! The watermark: what each peer is known to have seen (DottedDB §IV-D).
//!
//! A row is the bases of a peer's clock as it last told them, and grows only. The paper exchanges
//! whole matrices; that is not needed: an entry of the dot-key map concerns the replicas of one
//! key, all of which are peers, and each tells its own clock with every exchange (T7).

use super::clock::Clock;
use super::dot::{Actor, Counter};
use alloc::collections::BTreeMap;

/// The rows of a replica's peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    rows: BTreeMap<Actor, BTreeMap<Actor, Counter>>,
}

impl Watermark {
    /// Takes in a clock that a peer told. Of a closed actor it misses nothing.
    pub fn raise(&mut self, peer: Actor, clock: &Clock) {
        let row = self.rows.entry(peer).or_default();
        for (actor, entry) in clock.iter() {
            let base = if entry.closed { Counter::MAX } else { entry.base() };
            let known = row.entry(actor).or_default();
            *known = base.max(*known);
        }
    }

    /// Up to which counter of an actor a peer is known to have seen everything.
    #[must_use]
    pub fn base(&self, peer: Actor, of: Actor) -> Counter {
        self.rows.get(&peer).and_then(|row| row.get(&of)).copied().unwrap_or(0)
    }

    /// Forgets the rows of all peers but these.
    pub fn retain(&mut self, keep: impl Fn(Actor) -> bool) {
        self.rows.retain(|peer, _| keep(*peer));
    }

    /// How many numbers it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Entry;
    use super::*;

    #[test]
    fn rows_rise_only_and_closed_actors_miss_nothing() {
        let actor = |birth| Actor { birth, ..Actor::default() };
        let clock = |base, closed| -> Clock {
            let mut entry = Entry::upto(base);
            entry.closed = closed;
            [(actor(1), entry)].into_iter().collect()
        };
        let mut mark = Watermark::default();
        assert!(mark.is_empty());
        mark.raise(actor(9), &clock(7, false));
        mark.raise(actor(9), &clock(5, false));
        assert_eq!((mark.base(actor(9), actor(1)), mark.len()), (7, 1));
        assert_eq!((mark.base(actor(9), actor(2)), mark.base(actor(8), actor(1))), (0, 0));
        mark.raise(actor(9), &clock(5, true));
        mark.raise(actor(9), &clock(9, false));
        assert_eq!(mark.base(actor(9), actor(1)), Counter::MAX);
        mark.retain(|peer| peer != actor(9));
        assert!(mark.is_empty());
    }
}
