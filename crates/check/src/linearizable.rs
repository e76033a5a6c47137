//! Every key an atomic register: each operation seems to happen at one moment between its
//! invocation and its completion.
//!
//! Keys are judged one by one, which is enough: linearizability is local. A key holds nothing at
//! first; a delete is judged as a write of nothing, and the count it answers is not judged. A write
//! whose outcome is unknown may happen at any time after its invocation, or never. A get without an
//! answer says nothing. A refused write promised that nothing was changed, so its value must not be
//! seen.

use crate::explain::{self, shown};
use crate::history::History;
use crate::register::{Action, Partition};
use crate::report::Verdict;
use crate::search::{Answer, Search};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How many steps the search for one key may take unless told otherwise: some seconds at the most.
/// A step looks at one operation.
pub const STEPS_MAX_DEFAULT: u64 = 200_000_000;

/// The judge; it keeps its room from one history to the next.
#[derive(Default)]
pub struct Judge {
    pub(crate) partition: Partition,
    actions: Vec<Action>,
    search: Search,
}

impl Judge {
    /// A judge with nothing to judge.
    #[must_use]
    pub fn new() -> Judge {
        Judge::default()
    }

    /// Judges a history; each key's search ends after `steps_max` steps, and is then unknown.
    pub fn judge(&mut self, history: &History, steps_max: u64) -> Verdict {
        self.partition.fill(history);
        self.judge_keys(history, steps_max)
    }

    /// Judges a history that the partition was filled with.
    pub(crate) fn judge_keys(&mut self, history: &History, steps_max: u64) -> Verdict {
        let mut verdict = Verdict::Holds;
        for key in 0..self.partition.keys() {
            let values = self.partition.actions(key, history, &mut self.actions);
            match self.judge_key(history, key, values, steps_max) {
                Verdict::Holds => {}
                Verdict::Unknown { why } => verdict = Verdict::Unknown { why },
                violated @ Verdict::Violated(_) => return violated,
            }
        }
        verdict
    }

    /// Fills the actions of a key that `keep` lets pass, and judges them.
    pub(crate) fn judge_part(
        &mut self,
        history: &History,
        key: usize,
        steps_max: u64,
        keep: impl FnMut(&Action) -> bool,
    ) -> Verdict {
        let values = self.partition.actions(key, history, &mut self.actions);
        self.actions.retain(keep);
        self.judge_key(history, key, values, steps_max)
    }

    fn judge_key(&mut self, history: &History, key: usize, values: u32, steps_max: u64) -> Verdict {
        match self.search.run(&self.actions, values, steps_max) {
            Answer::Explained => Verdict::Holds,
            Answer::CutOff => Verdict::Unknown {
                why: cut_off(self.partition.name(key, history), self.actions.len(), steps_max),
            },
            Answer::Contradiction => Verdict::Violated(Box::new(explain::contradiction(
                history,
                self.partition.name(key, history),
                self.partition.entries(key),
                &mut self.search,
                (&self.actions, values, steps_max),
            ))),
        }
    }
}

fn cut_off(key: &[u8], count: usize, steps_max: u64) -> String {
    let key = shown(key);
    format!(
        "the search for an order of the {count} operations on key {key} was cut off after {steps_max} steps"
    )
}

/// Judges one history; see [`Judge::judge`].
#[must_use]
pub fn judge(history: &History, steps_max: u64) -> Verdict {
    Judge::new().judge(history, steps_max)
}
