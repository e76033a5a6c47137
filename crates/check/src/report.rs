//! What the judges found.

use crate::explain::Explanation;
use crate::histories::register::Partition;
use crate::history::{Completion, History};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What one judge found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The promise was kept.
    Holds,
    /// The promise was broken.
    Violated(Box<Explanation>),
    /// The judge could not tell. Never to be taken for a pass.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl Verdict {
    /// Whether the promise was shown to be kept.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        matches!(self, Verdict::Holds)
    }

    /// Whether the promise was shown to be broken.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        matches!(self, Verdict::Violated(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => f.write_str("holds"),
            Verdict::Violated(explanation) => write!(f, "violated\n{explanation}"),
            Verdict::Unknown { why } => write!(f, "unknown: {why}"),
        }
    }
}

/// How much there was to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations of any kind.
    pub operations: usize,
    /// Operations that were answered or acknowledged.
    pub answered: usize,
    /// Operations that were refused with nothing changed.
    pub refused: usize,
    /// Operations whose outcome is unknown.
    pub unknown: usize,
    /// Keys that gets, puts and deletes named.
    pub keys: usize,
    /// The most operations on one key that were in flight at once, those of unknown outcome apart.
    pub overlap_max: usize,
}

impl Counts {
    pub(crate) fn of(history: &History, partition: &Partition, events: &mut Events) -> Counts {
        let entries = history.entries();
        let mut counts = Counts {
            operations: entries.len(),
            keys: partition.keys(),
            overlap_max: events.overlap_max(history, partition),
            ..Counts::default()
        };
        for entry in entries {
            match entry.completion() {
                Completion::Unknown => counts.unknown += 1,
                Completion::Refused => counts.refused += 1,
                _ => counts.answered += 1,
            }
        }
        counts
    }
}

/// Room to walk over the events of a history in their order.
#[derive(Default)]
pub(crate) struct Events {
    /// Per event: the key's number doubled, plus one for an end; or a mark for nothing.
    keys: Vec<u32>,
    open: Vec<u32>,
}

impl Events {
    fn overlap_max(&mut self, history: &History, partition: &Partition) -> usize {
        const NOTHING: u32 = u32::MAX;
        self.keys.clear();
        self.keys.resize(history.events() as usize, NOTHING);
        self.open.clear();
        self.open.resize(partition.keys(), 0);
        for (index, entry) in history.entries().iter().enumerate() {
            if let Some(key) = partition.key_of(index)
                && *entry.completion() != Completion::Unknown
            {
                let doubled = u32::try_from(key * 2).expect("a key has two events or more");
                self.keys[entry.began as usize] = doubled;
                self.keys[entry.ended as usize] = doubled + 1;
            }
        }
        let mut most = 0;
        for &event in self.keys.iter().filter(|&&event| event != NOTHING) {
            let open = &mut self.open[event as usize / 2];
            if event % 2 == 0 {
                *open += 1;
                most = most.max(*open);
            } else {
                *open -= 1;
            }
        }
        most as usize
    }
}

/// What all judges found in one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How much there was to judge.
    pub counts: Counts,
    /// Whether operations are about several keys at once: then the judge of order is the one of the
    /// whole map, [`crate::transactions`].
    pub is_of_map: bool,
    /// Whether every key was an atomic register, or all of them together an atomic map.
    pub order: Verdict,
    /// Whether everything acknowledged was there in the end; judged if the history says from when
    /// on all faults had ended, and is of keys one by one.
    pub durable: Option<Verdict>,
    /// Whether scans showed what they had to; judged if there are any.
    pub scans: Option<Verdict>,
}

impl Report {
    /// The verdicts with the names of their judges.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'static str, &Verdict)> {
        let name = if self.is_of_map { "transactions" } else { "linearizability" };
        let order = Some((name, &self.order));
        let durable = self.durable.as_ref().map(|verdict| ("durable", verdict));
        let scans = self.scans.as_ref().map(|verdict| ("scans", verdict));
        [order, durable, scans].into_iter().flatten()
    }

    /// The worst of the verdicts: violated before unknown before holds.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        let badness = |verdict: &Verdict| match verdict {
            Verdict::Holds => 0,
            Verdict::Unknown { .. } => 1,
            Verdict::Violated(_) => 2,
        };
        let all = self.verdicts().map(|(_, verdict)| verdict);
        all.max_by_key(|verdict| badness(verdict)).unwrap_or(&self.order)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { operations, answered, refused, unknown, keys, overlap_max } = self.counts;
        write!(
            f,
            "{operations} operations on {keys} keys: {answered} answered, {refused} refused, \
             {unknown} of unknown outcome; at most {overlap_max} at once on a key"
        )?;
        for (name, verdict) in self.verdicts() {
            write!(f, "\n{name}: {verdict}")?;
        }
        Ok(())
    }
}
