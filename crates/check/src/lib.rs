//! Histories of clients, and the judges that say whether the promises made to them were kept.
//!
//! | module | what it holds |
//! |---|---|
//! | [`history`] | invocations and completions, unknown outcomes included, and their recorder |
//! | [`atomic`] | the judge of atomic registers |
//! | [`transactions`] | the judge of operations over several keys: strict serializability |
//! | [`durability`] | the judge of what was acknowledged before the last restart |
//! | [`scan`] | the judge of what a scan must and must not show |
//! | [`newest`] | the judge of registers whose writes are ordered by clocks |
//! | [`places`] | the judge of writes that have one order, with high probability |
//! | [`siblings`] | the judge of keyspaces that keep concurrent values |
//! | [`catalog`] | the judge of the chain of decrees |
//! | [`tree`] | the judge of trees with sessions and watches |
//! | [`explain`] | why a history breaks a promise, in few lines |
//! | [`report`] | what the judges found |
//! | [`recorded`] | histories as files |
//!
//! A judge that cannot tell says so; that is never a pass. The crate is `no_std`.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod explain;
mod histories;
mod judges;
pub mod report;
mod search;

pub use histories::{history, recorded};
pub use judges::{
    atomic, catalog, counters, durability, newest, places, scan, siblings, transactions, tree,
};

use atomic::Judge;
use history::History;
use report::{Counts, Events, Report};

/// How many steps the searches of each judge may take together unless told otherwise: some seconds
/// at the most. A step looks at one operation. Keys whose writes have values of their own need
/// none.
pub const STEPS_MAX_DEFAULT: u64 = 100_000_000;

/// All judges together; they keep their room from one history to the next.
#[derive(Default)]
pub struct Judges {
    judge: Judge,
    events: Events,
}

impl Judges {
    /// Judges with nothing to judge.
    #[must_use]
    pub fn new() -> Judges {
        Judges::default()
    }

    /// Judges a history; the searches of each judge end after `steps_max` steps together, and what
    /// is not known then stays unknown ([`STEPS_MAX_DEFAULT`]).
    pub fn judge(&mut self, history: &History, steps_max: u64) -> Report {
        let judge = &mut self.judge;
        judge.partition.fill(history);
        let counts = Counts::of(history, &judge.partition, &mut self.events);
        let is_of_map = transactions::has_some(history);
        let order = match is_of_map {
            true if counters::has_some(history) => counters::judge(history),
            true => transactions::judge(history, steps_max),
            false => judge.judge_keys(history, steps_max),
        };
        // Of a map, final reads are judged with all others.
        let healed = history.healed().filter(|_| !is_of_map);
        let durable = healed.map(|_| durability::judge_keys(judge, history, steps_max));
        let scans = scan::has_scans(history).then(|| scan::judge_keys(&judge.partition, history));
        Report { counts, is_of_map, order, durable, scans }
    }
}

/// Judges one history with all judges; see [`Judges::judge`].
#[must_use]
pub fn judge_all(history: &History, steps_max: u64) -> Report {
    Judges::new().judge(history, steps_max)
}
