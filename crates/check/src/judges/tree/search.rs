//! The search for the zxids of open changes.
//!
//! At first only those have one of which it is certain. Whatever is not explained then names what
//! it has to do with; an open change that touches that is given a zxid at which it could explain
//! it, and everything is held against the changes again. If that leads nowhere, the next zxid is tried, and the next change;
//! but not where what is left unexplained has nothing to do with the change.

use super::evidence::AllEvidence;
use super::facts::Facts;
use super::forced::{candidates, forced};
use super::marks::Mark;
use super::quiet::quiet;
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
    /// The zxids that have changed no node.
    quiet: BTreeSet<u64>,
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
        let (placed, is_cut, worst) = (forced(facts, evidence), false, None);
        let quiet = quiet(facts.record, streams);
        Search { facts, evidence, streams, left, placed, quiet, is_cut, worst }
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
            self.placed.insert(zxid, open);
            let found = self.solve(conflict.at, setbacks);
            let Err(others) = found else { return Ok(()) };
            self.placed.remove(&zxid);
            let touches = &self.facts.open[open].marks;
            let is_to_blame = touches.iter().any(|mark| others.contains(mark));
            if !is_to_blame {
                // Whatever is placed here, that stays unexplained.
                return Err(others);
            }
            marks.extend(others);
            if self.left == 0 {
                break;
            }
        }
        Err(marks)
    }

    /// Which open changes may explain a conflict, and at which zxids: first where something seems
    /// to have changed, then the latest ones.
    fn options(&self, conflict: &Conflict, marks: &mut BTreeSet<Mark>) -> Vec<(usize, u64)> {
        let facts = self.facts;
        let taken: BTreeSet<usize> = self.placed.values().copied().collect();
        let mut options = Vec::new();
        let seen = self.evidence.of.get(&conflict.at).map_or(&[][..], |seen| seen);
        let may: BTreeSet<usize> = match conflict.is_here {
            true => candidates(facts, conflict.at, seen).collect(),
            false => BTreeSet::new(),
        };
        for (number, open) in facts.open.iter().enumerate() {
            let is_of_it = match conflict.only {
                Some(only) => number == only,
                None if conflict.is_here => may.contains(&number),
                None => open.marks.iter().any(|mark| conflict.marks.contains(mark)),
            };
            if !is_of_it || taken.contains(&number) {
                continue;
            }
            let most = open.most.min(conflict.at).min(facts.end());
            let least = if conflict.is_here { conflict.at } else { open.above + 1 };
            for zxid in (least.max(open.above + 1)..=most).rev() {
                let is_quiet = open.changes_a_node && self.quiet.contains(&zxid);
                if is_quiet || facts.known.contains_key(&zxid) {
                    continue;
                }
                match self.placed.get(&zxid) {
                    Some(other) => marks.extend(facts.open[*other].marks.iter().cloned()),
                    None => options.push((number, zxid)),
                }
            }
        }
        let is_seen = |zxid: u64| self.evidence.of.get(&zxid).is_some_and(|all| !all.is_empty());
        // Where something is seen to have changed without a known change, that is one of these.
        options.sort_by_key(|(_, zxid)| (!is_seen(*zxid), u64::MAX - zxid));
        options
    }
}
