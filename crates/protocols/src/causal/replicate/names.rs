//! Which named writes a replica has seen, so that one that is sent again is not done again.
//!
//! While a version is there it carries its write's name, and while some replica may not have seen
//! an update the dot-key map does ([`super::twins`]). A client may send a write again later than
//! that, when its value was replaced and everybody knows it. So the newest names are remembered
//! beside, in memory: of all that was seen since a moment none is missing. A write that was first
//! sent before that moment, and whose name is not known, may have been done and replaced: it is
//! not done again, and its outcome is said to be unknown.

use alloc::collections::{BTreeSet, VecDeque};
use quorate_kernel::time::Time;
use quorate_kernel::write::WriteId;

/// The newest names that one replica has seen.
#[derive(Debug, Default)]
pub struct Names {
    seen: BTreeSet<WriteId>,
    order: VecDeque<(Time, WriteId)>,
    /// Of what was seen later none is missing; none if nothing was seen earlier.
    complete_since: Option<Time>,
    names_max: usize,
}

impl Names {
    /// Of at most so many writes.
    pub fn new(names_max: usize) -> Names {
        Names { names_max, ..Names::default() }
    }

    /// What was seen up to now is not in it.
    pub fn begin(&mut self, now: Time) {
        self.complete_since = self.complete_since.max(Some(now));
    }

    /// A write of this name was seen.
    pub fn note(&mut self, id: WriteId, now: Time) {
        if !self.seen.insert(id) {
            return;
        }
        self.order.push_back((now, id));
        if self.order.len() > self.names_max
            && let Some((seen_at, oldest)) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
            self.begin(seen_at);
        }
        assert!(self.order.len() <= self.names_max, "what is remembered is bounded");
    }

    /// Whether a write of this name was seen.
    pub fn has(&self, id: WriteId) -> bool {
        self.seen.contains(&id)
    }

    /// Whether every write would be known that was first sent after a moment.
    pub fn is_complete_since(&self, moment: Option<Time>) -> bool {
        self.complete_since.is_none_or(|since| moment.is_some_and(|moment| moment > since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_and_how_far_back_they_reach() {
        let mut names = Names::new(3);
        assert!(names.is_complete_since(None), "nothing was seen before");
        for number in 1..=5 {
            names.note(WriteId(number), Time(number as u64 * 10));
            names.note(WriteId(number), Time(999));
        }
        let known: [bool; 5] = core::array::from_fn(|at| names.has(WriteId(at as u128 + 1)));
        assert_eq!(known, [false, false, true, true, true]);
        assert!(
            !names.is_complete_since(Some(Time(20))) && names.is_complete_since(Some(Time(21)))
        );
        names.begin(Time(60));
        assert!(!names.is_complete_since(Some(Time(21))) && !names.is_complete_since(None));
        assert!(names.has(WriteId(5)), "what is known stays so");
    }
}
