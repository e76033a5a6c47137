//! Answers that bring records: how old they are.
//!
//! Nothing tells how long an answer was on its way, nor whether who gives it stood still and does
//! not know that yet: a host that goes on handles what has come before its timers. What it brings
//! may be deleted since, and the tombstone purged. So each answer says up to when its sender has
//! heard of all that it brings, s. A node that has come to a itself refuses it if a − s is more
//! than tombstones are kept. What is taken does not stay if it was deleted, at d:
//! - d ≤ s: its sender has heard of that, and does not have it;
//! - s < d ≤ a: this node has heard of that, and has the tombstone still, as d > a − grace;
//! - d > a: this node hears of it when the order comes there. If it has missed that, because it
//!   stood still itself, all that it has counts as heard up to a when it takes over pages: it is
//!   dropped, or they have the tombstone.
//!
//! Of a part that it had and has no more (`Own(t)`) it has heard up to t. What was deleted by then
//! is as above: tombstones go by a everywhere. With what was deleted later it is as behind a: that
//! part counts as heard up to t. A part that was taken becomes no younger than s.
//!
//! The age of the question would not do. It may have come just before its receiver goes on after a
//! pause; and the rounds of a node that stands still itself stand still with it.

use super::snapshot::time;
use crate::epidemic::Epidemic;
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::seen::Done;
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::RequestId;
use crate::epto::LogicalTime;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::{mutant, probe};

impl Epidemic {
    /// Up to when this node has heard of all that was deleted of these keys.
    pub(in crate::epidemic) fn heard_of<'a>(
        &self,
        keys: impl Iterator<Item = &'a Bytes>,
    ) -> LogicalTime {
        let last = LogicalTime(time(self.state.last));
        let until = |key: &Bytes| {
            let at = position(key);
            self.state.behind.until(&Range { first: at, last: at })
        };
        match mutant!("epidemic_answers_are_as_young_as_their_sender") {
            true => last,
            false => keys.filter_map(until).fold(last, LogicalTime::min),
        }
    }

    /// Whether an answer whose sender has heard of all that was deleted up to this time is too old.
    pub(in crate::epidemic) fn is_late(&self, heard: LogicalTime) -> bool {
        let lags = time(self.state.last).saturating_sub(heard.0) > self.settings.grace;
        if lags {
            probe!("epidemic/late_answer");
        }
        lags && !mutant!("epidemic_late_answers_taken")
    }

    /// Up to when all was heard of what an answer brings: not later than what this node could know.
    fn believed(&self, heard: LogicalTime) -> LogicalTime {
        match self.state.last {
            _ if mutant!("epidemic_heard_is_what_is_said") => heard,
            Some(last) => heard.min(last.time),
            None if self.state.epto.believes(heard) => heard,
            None => LogicalTime(0),
        }
    }

    /// Takes in what an answer brings. It says no more of what is still taken over than what its
    /// sender has heard: the tombstones may be purged by the end.
    pub(in crate::epidemic) fn merge_answer(
        &mut self,
        heard: LogicalTime,
        records: Vec<Record>,
        ids: Vec<(RequestId, Done)>,
    ) {
        let heard = self.believed(heard);
        let state = &mut self.state;
        let mine = records.iter().map(|one| position(&one.key)).filter(|at| state.is_mine(*at));
        let mine: Vec<_> = mine.collect();
        let is_here = |part: &Range| mine.iter().any(|at| part.has(*at));
        let parts = state.behind.within(&Range::ALL).map(|(part, _)| part);
        let parts: Vec<Range> = parts.filter(is_here).collect();
        for part in parts {
            if !mutant!("epidemic_answers_are_young") {
                state.behind.take(&part, heard, &mut state.writes);
            }
        }
        records.iter().for_each(|record| state.holes.found(record));
        self.merge(records, ids);
    }
}
