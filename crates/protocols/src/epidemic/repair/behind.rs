//! What a node has heard of ranges for which it does not answer. Of the range for which it does it
//! has heard all that was deleted up to its last event, and has the tombstones.
//!
//! Of a range that it gave up it has heard up to then. Of one that it never had it has no
//! tombstones, however far it has come itself: what it takes of it is as old as who it takes it of.
//! A start must know both: counted from the last event on the disk, what was given up or taken long
//! before would be young, and stay after the tombstones of its keys are purged where they are.
//!
//! It says also what a node is a copy of. It had all of what is not noted, and of what was its own.
//! Of what was taken something may be missing, however young it is, until all is taken over.

use crate::epidemic::keys::BEHIND;
use crate::epidemic::replica::range::{PARTS_MAX, Range};
use crate::epidemic::replica::seen::Write;
use crate::epto::LogicalTime;
use alloc::vec::Vec;
use quorate_kernel::mutant;
use quorate_kernel::plain::PlainData;
use serde::{Deserialize, Serialize};

/// What was heard of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Heard {
    /// The node had the part: it has heard of all that was deleted up to this time, and has the
    /// tombstones. What it takes of others since, who lag by no more than tombstones are kept,
    /// meets these, and makes what it had no older.
    Own(LogicalTime),
    /// All that is here was taken of others, or some of it was dropped. The one that was least far
    /// had heard up to this time.
    Taken(LogicalTime),
    /// Nothing of it is here.
    Nothing,
}

/// The ranges, no two of which meet, with what was heard of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Behind(Vec<(Range, Heard)>);

impl PlainData for Behind {}

impl Heard {
    /// Up to when; none if there is nothing that could be old.
    #[must_use]
    pub fn until(self) -> Option<LogicalTime> {
        match self {
            Heard::Own(time) | Heard::Taken(time) => Some(time),
            Heard::Nothing => None,
        }
    }

    /// Something is taken of who has heard up to this time.
    fn with(self, time: LogicalTime) -> Heard {
        match self {
            Heard::Own(own) if !mutant!("epidemic_drops_its_own_with_what_is_older") => {
                Heard::Own(own)
            }
            Heard::Own(before) | Heard::Taken(before) => Heard::Taken(before.min(time)),
            Heard::Nothing => Heard::Taken(time),
        }
    }
}

impl Behind {
    /// Of a node that has nothing.
    #[must_use]
    pub fn with_nothing() -> Behind {
        Behind(Vec::from([(Range::ALL, Heard::Nothing)]))
    }

    /// This was heard of a range. What is noted of a part of it stays.
    pub fn note(&mut self, range: &Range, heard: Heard, writes: &mut Vec<Write>) {
        let mut fresh = Vec::from([*range]);
        for (known, _) in &self.0 {
            fresh = fresh.iter().flat_map(|part| part.without(known)).collect();
        }
        if !fresh.is_empty() {
            self.0.extend(fresh.into_iter().map(|part| (part, heard)));
            self.write(writes);
        }
    }

    /// What is noted of a range becomes something else.
    fn change(&mut self, range: &Range, to: impl Fn(Heard) -> Heard, writes: &mut Vec<Write>) {
        let noted: Vec<(Range, Heard)> = self.within(range).collect();
        for (part, heard) in noted.into_iter().filter(|(_, heard)| to(*heard) != *heard) {
            self.end(&part, writes);
            self.note(&part, to(heard), writes);
        }
    }

    /// A range is given up of which something is here, heard up to this time, or up to what is
    /// noted of a part.
    pub fn give_up(&mut self, range: &Range, since: LogicalTime, writes: &mut Vec<Write>) {
        let some = Heard::Taken(since);
        self.change(range, |heard| if heard == Heard::Nothing { some } else { heard }, writes);
        self.note(range, Heard::Own(since), writes);
    }

    /// An event of this time comes, or others may be skipped: of what was given up up to then or
    /// later not all events of that time were heard.
    pub fn reopen(&mut self, time: LogicalTime, writes: &mut Vec<Write>) {
        let before = LogicalTime(time.0.saturating_sub(1));
        let heard = |heard: Heard| match heard {
            Heard::Own(own) if own >= time => Heard::Own(before),
            other => other,
        };
        if !mutant!("epidemic_time_has_one_event") {
            self.change(&Range::ALL, heard, writes);
        }
    }

    /// Something of a range is taken of who has heard of it up to this time. What the node answers
    /// for is not noted, and is as young as it was.
    pub fn take(&mut self, range: &Range, time: LogicalTime, writes: &mut Vec<Write>) {
        self.change(range, |heard| heard.with(time), writes);
    }

    /// Some of what was here of a range is dropped, tombstones too.
    pub fn begin_to_drop(&mut self, range: &Range, writes: &mut Vec<Write>) {
        self.change(range, |heard| heard.until().map_or(heard, Heard::Taken), writes);
    }

    /// What was here of a range is dropped.
    pub fn drop(&mut self, range: &Range, writes: &mut Vec<Write>) {
        self.end(range, writes);
        if !mutant!("epidemic_dropped_is_as_young_as_the_rest") {
            self.note(range, Heard::Nothing, writes);
        }
    }

    /// All of a range is taken over.
    pub fn end(&mut self, range: &Range, writes: &mut Vec<Write>) {
        if self.0.iter().any(|(known, _)| known.meets(range)) {
            let left = |(known, heard): &(Range, Heard)| {
                let heard = *heard;
                known.without(range).into_iter().map(move |part| (part, heard))
            };
            self.0 = self.0.iter().flat_map(left).collect();
            self.write(writes);
        }
    }

    fn write(&self, writes: &mut Vec<Write>) {
        writes.push((BEHIND, (!self.0.is_empty()).then(|| self.to_bytes())));
    }

    /// The parts of a range that are noted, with what was heard of them.
    pub fn within(&self, range: &Range) -> impl Iterator<Item = (Range, Heard)> + '_ {
        let range = *range;
        self.0.iter().filter(move |(known, _)| known.meets(&range)).map(move |(known, heard)| {
            let (first, last) = (known.first.max(range.first), known.last.min(range.last));
            (Range { first, last }, *heard)
        })
    }

    /// Up to when all of a range was heard that is here and noted; none if nothing is.
    #[must_use]
    pub fn until(&self, range: &Range) -> Option<LogicalTime> {
        self.within(range).filter_map(|(_, heard)| heard.until()).min()
    }

    /// The same for others, who count the copies of each part. Of too many parts it says less.
    #[must_use]
    pub fn told(&self, range: &Range) -> Vec<(Range, Heard)> {
        let noted: Vec<(Range, Heard)> = self.within(range).collect();
        match (noted.len() > PARTS_MAX, self.until(range)) {
            (false, _) => noted,
            (true, until) => Vec::from([(*range, until.map_or(Heard::Nothing, Heard::Taken))]),
        }
    }

    /// All parts of a range with the time up to which they were heard: those that are noted, and
    /// the others, with this one.
    pub fn parts(&self, range: &Range, usual: LogicalTime) -> Vec<(Range, LogicalTime)> {
        let noted: Vec<_> = self.within(range).collect();
        let mut others = Vec::from([*range]);
        for (known, _) in &noted {
            others = others.iter().flat_map(|part| part.without(known)).collect();
        }
        let noted = noted.into_iter().map(|(part, heard)| (part, heard.until().unwrap_or(usual)));
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

    /// Asserts what must hold between two calls, where the node answers for this range.
    pub fn check(&self, ready: Option<Range>) {
        for (place, (one, _)) in self.0.iter().enumerate() {
            let is_apart = self.0[..place].iter().all(|(other, _)| !other.meets(one));
            assert!(is_apart && one.is_sound(), "of each part one thing is noted");
        }
        if let Some(ready) = ready {
            let all = |rest: &Range| self.parts(rest, LogicalTime(0)).len();
            let is_noted = |rest: &Range| all(rest) == self.within(rest).count();
            assert!(Range::ALL.without(&ready).iter().all(is_noted), "all other is noted");
            assert!(
                self.within(&ready).next().is_none(),
                "it has heard all of what it answers for"
            );
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

    fn own(time: u64) -> Heard {
        Heard::Own(LogicalTime(time))
    }

    fn sorted<T: Ord>(parts: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut parts: Vec<T> = parts.into_iter().collect();
        parts.sort();
        parts
    }

    #[test]
    fn what_is_noted_of_a_part_stays_until_it_ends() {
        let (mut behind, mut writes) = (Behind::default(), Vec::new());
        behind.note(&range(10, 19), own(3), &mut writes);
        behind.note(&range(0, 29), own(8), &mut writes);
        behind.check(None);
        let all = [(range(0, 9), own(8)), (range(10, 19), own(3)), (range(20, 29), own(8))];
        assert_eq!(sorted(behind.within(&range(0, 99))), all);
        behind.end(&range(0, 14), &mut writes);
        let mut again = Behind::default();
        let (key, value) = writes.pop().expect("it is stored");
        assert!(again.load(&key, &value.expect("some are left")));
        let time = LogicalTime;
        let parts = sorted(again.parts(&range(12, 22), time(99)));
        let (young, old) = ((range(12, 14), time(99)), (range(15, 19), time(3)));
        assert_eq!(parts, [young, old, (range(20, 22), time(8))]);
        again.end(&range(0, 99), &mut writes);
        assert_eq!(writes.pop(), Some((BEHIND, None)));
    }

    #[test]
    fn what_is_taken_is_as_old_as_who_it_is_taken_of() {
        let (mut behind, mut writes) = (Behind::with_nothing(), Vec::new());
        let taken = |time| Heard::Taken(LogicalTime(time));
        behind.end(&range(20, u64::MAX), &mut writes);
        behind.end(&range(0, 9), &mut writes);
        behind.note(&range(20, 29), own(8), &mut writes);
        behind.take(&range(15, 34), LogicalTime(5), &mut writes);
        behind.check(None);
        // What was its own stays as it is, and what it answers for is not noted.
        let noted = [(range(10, 14), Heard::Nothing), (range(15, 19), taken(5))];
        let noted = [noted[0], noted[1], (range(20, 29), own(8))];
        assert_eq!(sorted(behind.within(&Range::ALL)), noted);
        assert_eq!(behind.until(&range(10, 14)), None);
        assert_eq!(behind.until(&Range::ALL), Some(LogicalTime(5)));
        let written = writes.len();
        behind.take(&range(15, 34), LogicalTime(6), &mut writes);
        assert_eq!(writes.len(), written, "nothing is earlier");
        behind.take(&range(10, 34), LogicalTime(4), &mut writes);
        let noted = [(range(10, 14), taken(4)), (range(15, 19), taken(4)), (range(20, 29), own(8))];
        assert_eq!(sorted(behind.within(&Range::ALL)), noted);
        // With the first of them tombstones are gone.
        behind.begin_to_drop(&range(25, 29), &mut writes);
        behind.take(&range(25, 29), LogicalTime(2), &mut writes);
        assert_eq!(behind.until(&range(20, 24)), Some(LogicalTime(8)));
        assert_eq!(behind.until(&range(25, 29)), Some(LogicalTime(2)));
        behind.drop(&range(10, 29), &mut writes);
        assert_eq!(sorted(behind.within(&Range::ALL)), [(range(10, 29), Heard::Nothing)]);
    }

    /// It was given up at one of the events of a time.
    #[test]
    fn what_was_given_up_has_not_heard_of_what_comes_at_the_same_time() {
        let (mut behind, mut writes) = (Behind::default(), Vec::new());
        behind.note(&range(0, 9), own(7), &mut writes);
        behind.note(&range(10, 19), own(8), &mut writes);
        behind.note(&range(20, 29), Heard::Taken(LogicalTime(8)), &mut writes);
        behind.reopen(LogicalTime(9), &mut writes);
        assert_eq!(writes.len(), 3, "that is later");
        behind.reopen(LogicalTime(8), &mut writes);
        let noted = sorted(behind.within(&Range::ALL));
        let taken = (range(20, 29), Heard::Taken(LogicalTime(8)));
        assert_eq!(noted, [(range(0, 9), own(7)), (range(10, 19), own(7)), taken]);
        assert!(writes.len() > 3, "it is stored");
    }

    #[test]
    fn all_is_noted_that_a_node_does_not_answer_for() {
        let (mut behind, mut writes) = (Behind::with_nothing(), Vec::new());
        behind.end(&range(10, 19), &mut writes);
        behind.check(Some(range(10, 19)));
        let wrong = [range(10, 18), range(10, 20)];
        for ready in wrong {
            let checks = || behind.check(Some(ready));
            assert!(std::panic::catch_unwind(checks).is_err(), "{ready:?}");
        }
    }
}
