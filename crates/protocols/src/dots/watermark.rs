//! The watermark: what each peer is known to have seen (DottedDB §IV-D).
//!
//! A row is the bases of a peer's clock as it last told them, and grows only. The paper exchanges
//! whole matrices; that is not needed: an entry of the dot-key map concerns the replicas of one
//! key, all of which are peers, and each tells its own clock with every exchange (T7).

use super::clock::Clock;
use super::context::CausalContext;
use super::dot::{Actor, Counter};
use alloc::collections::BTreeMap;

/// The rows of a replica's peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    rows: BTreeMap<Actor, CausalContext>,
}

impl Watermark {
    /// Takes in a clock that a peer told. Of a closed actor it misses nothing.
    pub fn raise(&mut self, peer: Actor, clock: &Clock) {
        let row = self.rows.entry(peer).or_default();
        clock.iter().for_each(|(actor, entry)| row.raise(actor, entry.base()));
    }

    /// Up to which counter of an actor a peer is known to have seen everything.
    #[must_use]
    pub fn base(&self, peer: Actor, of: Actor) -> Counter {
        self.rows.get(&peer).map_or(0, |row| row.upto(of))
    }

    /// Forgets the rows of all peers but these.
    pub fn retain(&mut self, keep: impl Fn(Actor) -> bool) {
        self.rows.retain(|peer, _| keep(*peer));
    }

    /// How many numbers it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.values().map(CausalContext::len).sum()
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
    use super::super::dot::ALL;
    use super::*;

    #[test]
    fn rows_rise_only_and_closed_actors_miss_nothing() {
        let actor = |birth| Actor { birth, ..Actor::default() };
        let clock = |base, closed: bool| -> Clock {
            let mut clock: Clock = [(actor(1), Entry::upto(base))].into_iter().collect();
            closed.then(|| clock.close(actor(1)));
            clock
        };
        let mut mark = Watermark::default();
        assert!(mark.is_empty());
        mark.raise(actor(9), &clock(7, false));
        mark.raise(actor(9), &clock(5, false));
        assert_eq!((mark.base(actor(9), actor(1)), mark.len()), (7, 1));
        assert_eq!((mark.base(actor(9), actor(2)), mark.base(actor(8), actor(1))), (0, 0));
        mark.raise(actor(9), &clock(5, true));
        mark.raise(actor(9), &clock(9, false));
        assert_eq!(mark.base(actor(9), actor(1)), ALL);
        assert_eq!((mark.base(actor(9), actor(0)), mark.len()), (ALL, 1), "of earlier ones, too");
        mark.retain(|peer| peer != actor(9));
        assert!(mark.is_empty());
    }
}
