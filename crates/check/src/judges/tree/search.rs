//! The search for the zxids of open changes.
//!
//! At first only those have one of which it is certain. Whatever is not explained then names what
//! it has to do with; an open change that touches that is given a zxid at which it could explain
//! it, and everything is held against the changes again. If that leads nowhere, the next zxid is
//! tried, and the next change; but not where what is left unexplained has nothing to do with the
//! change.

use super::evidence::AllEvidence;
use super::facts::Facts;
use super::marks::Mark;
use super::places::Places;
use super::replay::{Conflict, Placed, replay};
use super::stream::Stream;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// How often a change may leave something unexplained that was explained before.
const SETBACKS_MAX: usize = 3;

/// What came of a search.
pub(super) enum Finding {
    /// Everything is explained.
    Explained,
    /// Nothing explains this, which came last.
    Unexplained(Conflict),
    /// Not everything was tried.
    CutOff,
}

/// A search.
pub(super) struct Search<'a> {
    pub facts: &'a Facts<'a>,
    pub evidence: &'a AllEvidence,
    pub streams: &'a [Stream<'a>],
    /// How many replays are left.
    pub left: u64,
    placed: Placed,
    /// Those of which it is certain.
    certain: BTreeSet<usize>,
    places: Places,
    is_cut: bool,
    /// The conflict that came latest.
    worst: Option<Conflict>,
}

impl<'a> Search<'a> {
    /// Nothing is tried yet; what is certain is placed.
    pub fn new(
        facts: &'a Facts<'a>,
        evidence: &'a AllEvidence,
        streams: &'a [Stream<'a>],
        left: u64,
    ) -> Search<'a> {
        let (places, placed) = Places::of(facts, evidence, streams);
        let certain = placed.values().copied().collect();
        let (is_cut, worst) = (false, None);
        Search { facts, evidence, streams, left, placed, certain, places, is_cut, worst }
    }

    /// Searches.
    pub fn run(&mut self) -> Finding {
        match (self.solve(0, 0), self.is_cut, self.worst.take()) {
            (Ok(()), ..) => Finding::Explained,
            (Err(_), false, Some(conflict)) => Finding::Unexplained(conflict),
            (Err(_), ..) => Finding::CutOff,
        }
    }

    /// Places what is missing. If that cannot be done: what all that has failed has to do with.
    fn solve(&mut self, before: u64, setbacks: usize) -> Result<(), BTreeSet<Mark>> {
        if self.left == 0 {
            self.is_cut = true;
            return Err(BTreeSet::new());
        }
        self.left -= 1;
        let Err(conflict) = replay(self.facts, self.evidence, self.streams, &self.placed) else {
            return Ok(());
        };
        let setbacks = setbacks + usize::from(conflict.at < before);
        if self.worst.as_ref().is_none_or(|worst| worst.at <= conflict.at) {
            self.worst = Some(conflict.clone());
        }
        let mut marks: BTreeSet<Mark> = conflict.marks.iter().cloned().collect();
        if setbacks > SETBACKS_MAX {
            self.is_cut = true;
            return Err(marks);
        }
        for (open, zxid) in self.options(&conflict, &mut marks) {
            let before = self.placed.iter().find(|(_, placed)| **placed == open);
            let before = before.map(|(zxid, _)| *zxid);
            let setbacks = setbacks + usize::from(before.is_some());
            before.iter().for_each(|before| _ = self.placed.remove(before));
            self.placed.insert(zxid, open);
            let found = self.solve(conflict.at, setbacks);
            let Err(others) = found else { return Ok(()) };
            self.placed.remove(&zxid);
            self.placed.extend(before.map(|before| (before, open)));
            let touches = &self.facts.open[open].marks;
            let is_to_blame = touches.iter().any(|mark| others.contains(mark));
            if !is_to_blame {
                // Whatever is placed here, that stays unexplained.
                return Err(others);
            }
            marks.extend(others);
            if self.left == 0 {
                // Not everything was tried.
                self.is_cut = true;
                break;
            }
        }
        Err(marks)
    }

    /// Which open changes may explain a conflict, and at which zxids: first where something seems
    /// to have changed, then the latest ones. Where something was seen to have changed, one that is
    /// placed elsewhere may be moved.
    fn options(&self, conflict: &Conflict, marks: &mut BTreeSet<Mark>) -> Vec<(usize, u64)> {
        let facts = self.facts;
        let taken: BTreeSet<usize> = self.placed.values().copied().collect();
        let mut options = Vec::new();
        let none = BTreeSet::new();
        let may = self.places.seen.get(&conflict.at).unwrap_or(&none);
        for (number, open) in facts.open.iter().enumerate() {
            let is_of_it = match conflict.only {
                Some(only) => number == only,
                None if conflict.is_here => may.contains(&number),
                None => open.marks.iter().any(|mark| conflict.marks.contains(mark)),
            };
            let is_placed = taken.contains(&number);
            let can_move = conflict.is_here && !self.certain.contains(&number);
            if !is_of_it || (is_placed && !can_move) {
                continue;
            }
            let (above, most) = self.places.bounds[number];
            let most = most.min(conflict.at);
            let least = if conflict.is_here { conflict.at } else { above + 1 };
            for zxid in facts.lives.zxids(least.max(above + 1), most).rev() {
                if !self.places.allows(facts, number, zxid) {
                    continue;
                }
                match self.placed.get(&zxid) {
                    Some(other) => marks.extend(facts.open[*other].marks.iter().cloned()),
                    None => options.push((number, zxid)),
                }
            }
        }
        // Where something is seen to have changed without a known change, that is one of these.
        let is_seen = |zxid: u64| self.places.seen.contains_key(&zxid);
        options.sort_by_key(|(number, zxid)| {
            (taken.contains(number), !is_seen(*zxid), u64::MAX - zxid)
        });
        options
    }
}
