//! Every key an atomic register: each operation seems to happen at one moment between its
//! invocation and its completion.
//!
//! Keys are judged one by one, which is enough: linearizability is local. A key holds nothing at
//! first; a delete is judged as a write of nothing, and the count it answers is not judged. A write
//! whose outcome is unknown may happen at any time after its invocation, or never. A get without an
//! answer says nothing. A refused write promised that nothing was changed, so its value must not be
//! seen. A page of a scan reads the keys that it shows, and a whole scan the absence of the others.

use crate::explain;
use crate::histories::presence::Presence;
use crate::histories::register::{Action, Partition};
use crate::history::History;
use crate::report::Verdict;
use crate::scan::has_scans;
use crate::search::orders::{Finding, Search};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The judge; it keeps its room from one history to the next.
#[derive(Default)]
pub struct Judge {
    pub(crate) partition: Partition,
    actions: Vec<Action>,
    search: Search,
    presence: Presence,
}

impl Judge {
    /// A judge with nothing to judge.
    #[must_use]
    pub fn new() -> Judge {
        Judge::default()
    }

    /// Judges a history; the searches for all keys end after `steps_max` steps together, and what
    /// is not known then stays unknown.
    pub fn judge(&mut self, history: &History, steps_max: u64) -> Verdict {
        self.partition.fill(history);
        self.judge_keys(history, steps_max)
    }

    /// Judges a history that the partition was filled with.
    pub(crate) fn judge_keys(&mut self, history: &History, steps_max: u64) -> Verdict {
        if let Some(unjudged) = self.partition.unjudged() {
            return unjudged;
        }
        let mut verdict = Verdict::Holds;
        let mut steps_left = steps_max;
        for key in 0..self.partition.keys() {
            match self.judge_part(history, key, &mut steps_left, |_| true) {
                Verdict::Holds => {}
                Verdict::Unknown { why } => verdict = Verdict::Unknown { why },
                violated @ Verdict::Violated(_) => return violated,
            }
        }
        if has_scans(history) {
            self.judge_scans(history, verdict, &mut steps_left)
        } else {
            verdict
        }
    }

    /// Judges what scans tell of keys beside what else is known of them, which was judged so.
    fn judge_scans(
        &mut self,
        history: &History,
        mut verdict: Verdict,
        steps_left: &mut u64,
    ) -> Verdict {
        self.presence.fill(&self.partition, history);
        for key in 0..self.partition.keys() {
            let known = (&mut self.partition, history);
            match self.presence.judge(known, key, &mut self.search, steps_left) {
                Verdict::Holds => {}
                Verdict::Unknown { why } => verdict = Verdict::Unknown { why },
                violated @ Verdict::Violated(_) => return violated,
            }
        }
        verdict
    }

    /// Judges those actions of a key that `keep` lets pass.
    pub(crate) fn judge_part(
        &mut self,
        history: &History,
        key: usize,
        steps_left: &mut u64,
        keep: impl FnMut(&Action) -> bool,
    ) -> Verdict {
        let values = self.partition.actions(key, history, &mut self.actions);
        self.actions.retain(keep);
        let answer = self.search.run(&self.actions, values, *steps_left);
        *steps_left = steps_left.saturating_sub(self.search.steps());
        match answer {
            Finding::Explained => Verdict::Holds,
            Finding::CutOff => {
                let name = self.partition.name(key, history);
                explain::cut_off(name, self.actions.len(), self.search.steps())
            }
            Finding::Contradiction => Verdict::Violated(Box::new(explain::contradiction(
                history,
                self.partition.name(key, history),
                self.partition.entries(key),
                &mut self.search,
                (&self.actions, values),
            ))),
        }
    }
}

/// Judges one history; see [`Judge::judge`].
#[must_use]
pub fn judge(history: &History, steps_max: u64) -> Verdict {
    Judge::new().judge(history, steps_max)
}
