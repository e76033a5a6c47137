//! What one source of a transfer has told ([`super::transfer`]), and how far.

use super::transfer::{Quorum, Transfer};
use crate::linearizable::keys::cursor_of;
use crate::linearizable::record::Head;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::limits::TRANSFER_PULLS_MAX;
use quorate_kernel::operation::Cursor;

/// What one source has told.
#[derive(Debug)]
pub(crate) struct Source {
    pub node: NodeId,
    /// What it listed from the window on, not used yet.
    pub listed: VecDeque<(Bytes, Head)>,
    /// Where to list next; `None` when the interval is listed.
    pub next: Option<Cursor>,
    /// Where it was last asked to list from.
    pub asked: Option<Cursor>,
    /// Whether a fetch is under way at it.
    pub fetching: bool,
    /// How many bytes it has sent since a question last waited until all of them were durable.
    pub sent_bytes: usize,
    /// Whether its data is complete, as it said last.
    pub is_whole: bool,
    /// The start in which it said that it lacks data too.
    pub lacks: Option<Start>,
    /// Whether it said so again, in the same start, in the confirming round.
    pub confirmed: bool,
    /// Whether its host has left the cluster for good: nothing will be heard from it.
    pub is_gone: bool,
    /// The cursor from which on it has listed as one that holds all that was complete before the
    /// view; `None` if its last list was not of such a one.
    pub whole_from: Option<Cursor>,
    /// Whether it has said of itself that it stands for all.
    pub has_gathered: bool,
}

impl Source {
    pub fn new(node: NodeId, next: Option<Cursor>) -> Source {
        Source {
            node,
            listed: VecDeque::new(),
            next,
            asked: None,
            fetching: false,
            sent_bytes: 0,
            is_whole: false,
            lacks: None,
            confirmed: false,
            is_gone: false,
            whole_from: None,
            has_gathered: false,
        }
    }
}

/// How far sources have listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach<'a> {
    Nothing,
    /// Everything before this cursor.
    Upto(&'a Cursor),
    /// To the end of the interval.
    Everything,
}

impl<'a> Reach<'a> {
    pub fn of(next: Option<&'a Cursor>) -> Reach<'a> {
        next.map_or(Reach::Everything, Reach::Upto)
    }
}

impl Transfer {
    /// How far a quorum has listed: `Some(None)` is to the end of the interval, `None` not beyond
    /// what was gathered, or enough is being fetched. No further than `list_keys` of a source.
    pub fn reach(&self, list_keys: usize) -> Option<Option<Cursor>> {
        let gathered = self.gathered.as_ref().filter(|_| self.pulls.len() < TRANSFER_PULLS_MAX)?;
        let reach = match self.heard_of_lost(gathered) {
            // Those that are complete are enough, as if nothing had been lost.
            Some(lost) => {
                let complete = self.reach_of(gathered, |source| source.is_whole);
                complete.max(self.reach_of(gathered, |source| self.counts(source)).min(lost))
            }
            None => self.reach_of(gathered, |source| self.counts(source)),
        };
        let reach = self.heard_of_all().map_or(reach, |all| reach.max(all));
        // No more at a time than what one list may hold: clients wait meanwhile.
        let end = |source: &Source| source.listed.get(list_keys).map(|(key, _)| cursor_of(key));
        let ends: Vec<Cursor> = self.sources.iter().filter_map(end).collect();
        let ends = ends.iter().filter(|end| *end > gathered);
        match ends.map(Reach::Upto).min().map_or(reach, |end| reach.min(end)) {
            Reach::Nothing => None,
            Reach::Upto(reach) => (reach > gathered).then(|| Some(reach.clone())),
            Reach::Everything => Some(None),
        }
    }

    /// How far so many have listed as are needed of those that count.
    fn reach_of<'a>(&'a self, gathered: &'a Cursor, counts: impl Fn(&Source) -> bool) -> Reach<'a> {
        let upto = |node: &NodeId| {
            let source = self.sources.iter().find(|source| source.node == *node);
            let source = source.filter(|source| counts(source));
            source.map_or(Reach::Upto(gathered), |source| Reach::of(source.next.as_ref()))
        };
        let reach = |(nodes, needed): &Quorum| {
            let mut reached: Vec<Reach<'_>> = nodes.iter().map(upto).collect();
            reached.sort_unstable_by(|a, b| b.cmp(a));
            let nth = |nth: usize| reached.get(nth).copied().unwrap_or(Reach::Nothing);
            needed.checked_sub(1).map_or(Reach::Everything, nth)
        };
        let or_whole = self.or_whole.iter().map(|quorum| match self.whole(gathered) {
            Reach::Nothing => reach(quorum),
            whole => whole,
        });
        let reach = self.quorums.iter().map(reach).chain(or_whole).min();
        reach.unwrap_or(Reach::Everything)
    }
}
