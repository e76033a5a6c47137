//! How writes ended that other nodes forwarded, to know a repeated one.
//!
//! A write gets its number when it is sent to a replica first, and a node sends them in the order
//! of their numbers; frames between two nodes do not overtake each other. So one that is not known
//! and has a number up to which the endings of its sender are remembered no more may have been
//! here, and nobody can say how it ended. One that was lost, and comes behind so many others the
//! second time, is told the same.

use crate::causal::message::Ending;
use alloc::collections::{BTreeMap, VecDeque};
use quorate_kernel::ids::{Incarnation, Start};
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// A forwarded write: who forwarded it, and its number there.
type Number = (Incarnation, u64);

/// Forwarded writes. Of those that have ended the first is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    told: BTreeMap<Number, Option<Ending>>,
    ended: VecDeque<Number>,
    /// Of each node the highest number that was forgotten, in its newest start.
    forgotten: BTreeMap<Incarnation, u64>,
}

impl Remembered {
    /// A write arrives. If it did before, or may have: what was told of it, unless it is still
    /// under way.
    pub fn begin(&mut self, write: Number) -> Option<Option<Ending>> {
        if let Some(told) = self.told.get(&write) {
            return Some(told.clone());
        }
        let (from, number) = write;
        let is_old = |highest: &u64| number <= *highest;
        if self.forgotten.get(&from).is_some_and(is_old) && !mutant!("causal_forgets_forwarded") {
            probe!("causal/forwarded_long_ago");
            return Some(Some(Ending::Unknown));
        }
        self.told.insert(write, None);
        None
    }

    /// No frame of an earlier start of a node comes in behind one of a later.
    fn forget(&mut self, (from, number): Number) {
        let first = Incarnation { node: from.node, start: Start(0) };
        let earlier = self.forgotten.range(first..from).map(|(who, _)| *who).next();
        earlier.map(|earlier| self.forgotten.remove(&earlier));
        let highest = self.forgotten.entry(from).or_default();
        *highest = number.max(*highest);
    }

    /// A write has ended; so many are remembered.
    pub fn conclude(&mut self, write: Number, ending: Ending, most: usize) {
        let Some(known) = self.told.get_mut(&write) else { return };
        if known.replace(ending).is_none() {
            self.ended.push_back(write);
        }
        while self.ended.len() > most {
            let Some(oldest) = self.ended.pop_front() else { break };
            self.told.remove(&oldest);
            self.forget(oldest);
        }
    }

    /// How many have not ended.
    pub fn under_way(&self) -> usize {
        self.told.len() - self.ended.len()
    }

    /// Whether it is known how a write ended, or that nobody knows.
    pub fn has_ended(&self, write: Number) -> bool {
        let is_forgotten =
            || self.forgotten.get(&write.0).is_some_and(|highest| write.1 <= *highest);
        self.told.get(&write).map_or_else(is_forgotten, Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use quorate_kernel::ids::NodeId;

    fn sender(start: u32) -> Incarnation {
        Incarnation { node: NodeId(4), start: Start(start) }
    }

    /// How a write ended that came in once more behind so many others.
    fn known_behind(others: u64) -> Option<Option<Ending>> {
        let mut remembered = Remembered::default();
        for number in 1..=1 + others {
            let write = (sender(1), number);
            assert_eq!(remembered.begin(write), None);
            remembered.conclude(write, Ending::Overloaded, 4);
        }
        assert!(remembered.has_ended((sender(1), 1)));
        remembered.begin((sender(1), 1))
    }

    #[test]
    fn a_write_that_is_forgotten_may_have_been_done() {
        assert_eq!(known_behind(3), Some(Some(Ending::Overloaded)));
        assert_eq!(known_behind(4), Some(Some(Ending::Unknown)));
    }

    #[test]
    fn a_write_that_is_under_way_is_not_forgotten() {
        let mut remembered = Remembered::default();
        assert_eq!(remembered.begin((sender(1), 1)), None);
        for number in 2..20 {
            assert_eq!(remembered.begin((sender(1), number)), None);
            remembered.conclude((sender(1), number), Ending::NotHere, 4);
        }
        assert_eq!((remembered.begin((sender(1), 1)), remembered.under_way()), (Some(None), 1));
        remembered.conclude((sender(1), 1), Ending::TooLarge(9), 4);
        let known = remembered.begin((sender(1), 1));
        assert_eq!((known, remembered.under_way()), (Some(Some(Ending::TooLarge(9))), 0));
    }

    #[test]
    fn of_each_node_one_start_is_kept() {
        let mut remembered = Remembered::default();
        for start in 1..9 {
            for number in 1..9 {
                assert_eq!(remembered.begin((sender(start), number)), None, "{start}");
                remembered.conclude((sender(start), number), Ending::Unknown, 4);
            }
        }
        let kept: Vec<_> = remembered.forgotten.into_iter().collect();
        assert_eq!(kept, [(sender(8), 4)]);
    }
}
