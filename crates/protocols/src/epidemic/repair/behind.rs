//! Ranges of which a node has heard what was deleted up to some time only. Of all else that it has
//! stored it has heard up to its last event.
//!
//! That is so of ranges that were given up, and of those that it is about to take over. A start
//! must know it: counted from the last event on the disk, what was given up long before would be
//! young, and handed over after the tombstones of its keys are purged where they are now.

use crate::epidemic::keys::BEHIND;
use crate::epidemic::replica::range::Range;
use crate::epidemic::replica::seen::Write;
use crate::epto::LogicalTime;
use alloc::vec::Vec;
use quorate_kernel::plain::PlainData;
use serde::{Deserialize, Serialize};

/// The ranges, no two of which meet, with these times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Behind(Vec<(Range, LogicalTime)>);

impl PlainData for Behind {}

impl Behind {
    /// Of a range no more is heard than up to this time. What is noted of a part of it stays.
    pub fn note(&mut self, range: &Range, since: LogicalTime, writes: &mut Vec<Write>) {
        let mut fresh = Vec::from([*range]);
        for (known, _) in &self.0 {
            fresh = fresh.iter().flat_map(|part| part.without(known)).collect();
        }
        if !fresh.is_empty() {
            self.0.extend(fresh.into_iter().map(|part| (part, since)));
            self.write(writes);
        }
    }

    /// The same, where what is noted of a part may say less.
    pub fn lower(&mut self, range: &Range, since: LogicalTime, writes: &mut Vec<Write>) {
        let later: Vec<Range> =
            self.within(range).filter(|(_, known)| *known > since).map(|(part, _)| part).collect();
        for part in later {
            self.end(&part, writes);
        }
        self.note(range, since, writes);
    }

    /// A range is gone from here, or all of it is taken over.
    pub fn end(&mut self, range: &Range, writes: &mut Vec<Write>) {
        if self.0.iter().any(|(known, _)| known.meets(range)) {
            let left = |(known, since): &(Range, LogicalTime)| {
                let since = *since;
                known.without(range).into_iter().map(move |part| (part, since))
            };
            self.0 = self.0.iter().flat_map(left).collect();
            self.write(writes);
        }
    }

    fn write(&self, writes: &mut Vec<Write>) {
        writes.push((BEHIND, (!self.0.is_empty()).then(|| self.to_bytes())));
    }

    /// The parts of a range that are noted, with their times.
    pub fn within(&self, range: &Range) -> impl Iterator<Item = (Range, LogicalTime)> + '_ {
        let range = *range;
        self.0.iter().filter(move |(known, _)| known.meets(&range)).map(move |(known, since)| {
            let (first, last) = (known.first.max(range.first), known.last.min(range.last));
            (Range { first, last }, *since)
        })
    }

    /// All parts of a range: those that are noted, and the others with this time.
    pub fn parts(&self, range: &Range, usual: LogicalTime) -> Vec<(Range, LogicalTime)> {
        let noted: Vec<_> = self.within(range).collect();
        let mut others = Vec::from([*range]);
        for (known, _) in &noted {
            others = others.iter().flat_map(|part| part.without(known)).collect();
        }
        others.into_iter().map(|part| (part, usual)).chain(noted).collect()
    }

    /// Reads what is stored; returns whether it was that.
    pub fn load(&mut self, key: &[u8], value: &[u8]) -> bool {
        let is_it = key == &BEHIND[..];
        if is_it {
            *self = Behind::from_bytes(value).expect("this lane wrote it");
        }
        is_it
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        for (place, (one, _)) in self.0.iter().enumerate() {
            let is_apart = self.0[..place].iter().all(|(other, _)| !other.meets(one));
            assert!(is_apart && one.is_sound(), "each part has one time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::position::Position;

    fn range(first: u64, last: u64) -> Range {
        Range { first: Position(first), last: Position(last) }
    }

    #[test]
    fn the_earliest_time_of_a_part_stays_until_it_ends() {
        let (mut behind, mut writes) = (Behind::default(), Vec::new());
        let time = LogicalTime;
        behind.note(&range(10, 19), time(3), &mut writes);
        behind.note(&range(0, 29), time(8), &mut writes);
        behind.check();
        let sorted = |mut parts: Vec<_>| {
            parts.sort();
            parts
        };
        let all = [(range(0, 9), time(8)), (range(10, 19), time(3)), (range(20, 29), time(8))];
        assert_eq!(sorted(behind.within(&range(0, 99)).collect()), all);
        behind.end(&range(0, 14), &mut writes);
        let mut again = Behind::default();
        let (key, value) = writes.pop().expect("it is stored");
        assert!(again.load(&key, &value.expect("some are left")));
        let parts = sorted(again.parts(&range(12, 22), time(99)));
        let (young, old) = ((range(12, 14), time(99)), (range(15, 19), time(3)));
        assert_eq!(parts, [young, old, (range(20, 22), time(8))]);
        again.end(&range(0, 99), &mut writes);
        assert_eq!(writes.pop(), Some((BEHIND, None)));
    }

    #[test]
    fn a_time_may_become_an_earlier_one() {
        let (mut behind, mut writes) = (Behind::default(), Vec::new());
        let time = LogicalTime;
        behind.note(&range(10, 19), time(3), &mut writes);
        behind.note(&range(20, 29), time(8), &mut writes);
        behind.lower(&range(15, 34), time(5), &mut writes);
        behind.check();
        let mut parts: Vec<_> = behind.within(&range(0, 99)).collect();
        parts.sort();
        assert_eq!(parts, [(range(10, 19), time(3)), (range(20, 34), time(5))]);
        let written = writes.len();
        behind.lower(&range(15, 34), time(6), &mut writes);
        assert_eq!(writes.len(), written, "nothing is earlier");
    }
}
