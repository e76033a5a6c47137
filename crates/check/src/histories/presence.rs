//! Whether keys were there, as pages of scans tell it, beside what gets and writes say.
//!
//! A page that shows a key is a read of it: the key had a value at some moment while the page was
//! read. A whole scan that shows a key on none of its pages has read its absence at some moment of
//! the scan. Which value a key had a page does not tell, so keys are judged here by presence alone:
//! every put writes "present", every delete "absent". If some order explains all operations with
//! their values, then it explains their presence, too; so a contradiction here is one.

use crate::explain;
use crate::histories::register::{ABSENT, Action, Kind, Partition};
use crate::history::History;
use crate::report::Verdict;
use crate::scan::{Chain, chains};
use crate::search::orders::{Finding, Search};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The number of "present"; there is no other value.
const PRESENT: u32 = 1;
const VALUES: u32 = 2;

/// What the scans of a history tell of keys.
#[derive(Default)]
pub(crate) struct Presence {
    /// Per key the pages that show it.
    shown: Vec<Vec<u32>>,
    /// The scans that were finished.
    whole: Vec<Chain>,
    actions: Vec<Action>,
}

impl Presence {
    /// Takes in the scans of a history that the partition was filled with.
    pub fn fill(&mut self, partition: &Partition, history: &History) {
        self.shown.clear();
        self.shown.resize(partition.keys(), Vec::new());
        self.whole.clear();
        for chain in chains(history) {
            for &page in &chain.pages {
                for key in chain.keys(page, history) {
                    if let Some(key) = partition.find(key, history)
                        && self.shown[key].last() != Some(&page)
                    {
                        self.shown[key].push(page);
                    }
                }
            }
            self.whole.extend(chain.is_whole.then_some(chain));
        }
        self.shown.iter_mut().for_each(|pages| pages.sort_unstable());
    }

    /// Judges one key; nothing is said of a key of which no scan tells.
    pub fn judge(
        &mut self,
        (partition, history): (&mut Partition, &History),
        key: usize,
        search: &mut Search,
        steps_left: &mut u64,
    ) -> Verdict {
        partition.actions(key, history, &mut self.actions);
        for action in &mut self.actions {
            action.value = action.value.min(PRESENT);
        }
        let before = self.actions.len();
        let all = history.entries();
        let shown = &self.shown[key];
        let read =
            |value, began, ended, entry| Action { kind: Kind::Read, value, began, ended, entry };
        self.actions.extend(shown.iter().map(|&page| {
            let entry = &all[page as usize];
            read(PRESENT, entry.began, entry.ended, page)
        }));
        let has_shown =
            |chain: &&Chain| chain.pages.iter().any(|page| shown.binary_search(page).is_ok());
        let without = self.whole.iter().filter(|chain| !has_shown(chain));
        self.actions.extend(without.filter_map(|chain| {
            let &last = chain.pages.last()?;
            Some(read(ABSENT, chain.began, chain.ended(history), last))
        }));
        if self.actions.len() == before {
            return Verdict::Holds;
        }
        self.actions.sort_unstable_by_key(|action| action.began);
        let answer = search.run(&self.actions, VALUES, *steps_left);
        *steps_left = steps_left.saturating_sub(search.steps());
        let name = partition.name(key, history);
        match answer {
            Finding::Explained => Verdict::Holds,
            Finding::CutOff => explain::cut_off(name, self.actions.len(), search.steps()),
            Finding::Contradiction => {
                let explained = explain::presence(history, name, search, &self.actions, VALUES);
                Verdict::Violated(Box::new(explained))
            }
        }
    }
}
