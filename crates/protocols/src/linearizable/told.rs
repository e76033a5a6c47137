//! What one source of a transfer has told ([`super::transfer`]), and how far.

use super::record::Head;
use alloc::collections::VecDeque;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::operation::Cursor;

/// What one source has told.
#[derive(Debug)]
pub(super) struct Source {
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
pub(super) enum Reach<'a> {
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
