//! How far each source's events were delivered: what is missing between two of them is a hole.

use super::key::Sequence;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::{EPTO_HORIZON_SOURCES_MAX, EPTO_SOURCES_MAX};
use quorate_kernel::mutant;

#[derive(Clone, Copy, Debug)]
struct Reached {
    sequence: Sequence,
    /// Counts deliveries: the source that was silent longest is forgotten first.
    at: u64,
}

/// What is known of sources.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    reached: BTreeMap<Incarnation, Reached>,
    deliveries: u64,
    /// Whether a source that is not known here has not been heard of, ever.
    is_complete: bool,
}

impl Sources {
    /// Before the first event.
    pub fn of_founder() -> Sources {
        Sources { is_complete: true, ..Sources::default() }
    }

    /// What a state has that this node takes over.
    pub fn resume(told: &[(Incarnation, Sequence)], is_complete: bool) -> Sources {
        let told = told.iter().take(EPTO_SOURCES_MAX);
        let reached =
            told.map(|(source, sequence)| (*source, Reached { sequence: *sequence, at: 0 }));
        Sources { reached: reached.collect(), deliveries: 0, is_complete }
    }

    /// An event of a source is delivered, or given up: the numbers that are missing before it.
    pub fn advance(&mut self, source: Incarnation, to: Sequence) -> Option<(Sequence, Sequence)> {
        self.deliveries += 1;
        let at = self.deliveries;
        let known = self.reached.get(&source).map(|reached| reached.sequence);
        let sequence = known.map_or(to, |known| known.max(to));
        self.reached.insert(source, Reached { sequence, at });
        let before = match known {
            Some(known) => known,
            None if self.is_complete => Sequence(0),
            None => Sequence(to.0 - 1),
        };
        if self.reached.len() > EPTO_SOURCES_MAX {
            self.forget_oldest();
        }
        if mutant!("epto_gap_unseen") {
            return None;
        }
        let first = Sequence(before.0 + 1);
        (to > first).then(|| (first, Sequence(to.0 - 1)))
    }

    /// The sources heard last, as many as are told to others, and whether these are all.
    pub fn told(&self) -> (Vec<(Incarnation, Sequence)>, bool) {
        let mut all: Vec<_> = self.reached.iter().collect();
        let is_complete = self.is_complete && all.len() <= EPTO_HORIZON_SOURCES_MAX;
        all.sort_by_key(|(source, reached)| (core::cmp::Reverse(reached.at), **source));
        all.truncate(EPTO_HORIZON_SOURCES_MAX);
        (
            all.into_iter().map(|(source, reached)| (*source, reached.sequence)).collect(),
            is_complete,
        )
    }

    fn forget_oldest(&mut self) {
        let oldest = self.reached.iter().min_by_key(|(source, reached)| (reached.at, **source));
        if let Some(source) = oldest.map(|(source, _)| *source) {
            self.reached.remove(&source);
            self.is_complete = false;
        }
    }

    pub fn check(&self) {
        assert!(self.reached.len() <= EPTO_SOURCES_MAX, "sources are bounded");
    }
}
