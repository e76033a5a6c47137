//! How a member whose data is incomplete gets it from the others before its answers count.
//!
//! Two reasons, one transfer:
//! - **It forgot** what it had acknowledged (a `memory` lane after a restart, a `periodic` one
//!   after a power loss). It refills from so many others that they meet every majority it was part
//!   of. Each source first notes, durably, that the asker forgot in this start; from then on
//!   acknowledgements of the asker's earlier starts do not count ([`crate::quorum`]).
//! - **It is new in a view.** It hears from a majority of the members of the view before, each of
//!   them after it has left that view (CATS §4.1), so that nothing can still complete there unseen.
//!
//! A node to which both happened needs both. A source counts only while its own data is complete.
//! If *every* other member forgot too, nothing is left to refill from: everything was lost, as
//! `memory` promises for a restart of all hosts at once. One round of answers cannot show that,
//! because members forget and refill one after the other; so a second round asks each again. A
//! member that had forgot in both answers, in one start, had forgot at the moment between the
//! rounds, and so had all. What these incarnations hold is then everything that is left, so they
//! count as sources for each other although they forgot; who finds this out tells the others which
//! incarnations it concerns. They must still hear from as many others as in any refill: each of
//! those then knows that the asker forgot, and its earlier acknowledgements no longer count.

use super::keys::{Lost, Stored};
use super::message::{Message, Stamp};
use super::page;
use super::replica::Show;
use super::state::Status;
use super::timer::Timer;
use super::{Context, Linearizable};
use crate::quorum::{CrashVector, refill_quorum};
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::SCAN_KEYS_MAX;
use quorate_kernel::probe;
use quorate_kernel::time::Span;
use quorate_kernel::view::ViewId;

/// After this without progress the questions are repeated.
const REPEAT: Span = Span::millis(200);

/// How far one source has come.
#[derive(Debug)]
struct Source {
    node: NodeId,
    /// The position to ask for next; `None` when everything is here.
    from: Option<u64>,
    /// The start in which it said that it forgot too.
    forgot: Option<Start>,
    /// Whether it said so again, in the same start, in the confirming round.
    confirmed: bool,
    /// Whether it has installed the asker's view or a later one.
    has_left: bool,
}

/// A refill under way.
#[derive(Debug)]
pub(super) struct Refill {
    round: u64,
    /// The first round that began after every source had said that it forgot.
    confirming: Option<u64>,
    sources: Vec<Source>,
    /// Each of these must be met: so many of those nodes have given everything.
    quorums: Vec<(Vec<NodeId>, usize)>,
    forgot: bool,
}

impl Refill {
    fn new(round: u64, quorums: Vec<(Vec<NodeId>, usize)>, forgot: bool) -> Refill {
        let nodes: BTreeSet<NodeId> =
            quorums.iter().flat_map(|(nodes, _)| nodes).copied().collect();
        let source =
            |node| Source { node, from: Some(0), forgot: None, confirmed: false, has_left: false };
        let sources = nodes.into_iter().map(source).collect();
        Refill { round, confirming: None, sources, quorums, forgot }
    }

    pub fn done(&self) -> usize {
        self.sources.iter().filter(|source| source.from.is_none()).count()
    }

    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    fn is_met(&self) -> bool {
        self.all_quorums(|source| source.from.is_none())
    }

    /// Whether a majority of the view before is known to have left it. Until then its members may
    /// still complete operations there, so a newcomer must not complete any in the view after.
    pub fn is_view_before_left(&self) -> bool {
        self.all_quorums(|source| source.has_left)
    }

    fn all_quorums(&self, is_counted: impl Fn(&Source) -> bool) -> bool {
        let counts = |node: &NodeId| {
            self.sources.iter().any(|source| source.node == *node && is_counted(source))
        };
        let count = |nodes: &[NodeId]| nodes.iter().filter(|node| counts(node)).count();
        self.quorums.iter().all(|(nodes, needed)| count(nodes) >= *needed)
    }

    /// Takes in that a source forgot too; returns whether a confirming round must begin.
    fn note_forgot(&mut self, from: Incarnation, round: u64) -> bool {
        let Some(source) = self.sources.iter_mut().find(|source| source.node == from.node) else {
            return false;
        };
        if source.forgot == Some(from.start) {
            source.confirmed |= self.confirming.is_some_and(|first| round >= first);
        } else {
            // A first word, or a later start: what was concluded before must be asked again.
            source.forgot = Some(from.start);
            self.confirming = None;
            self.sources.iter_mut().for_each(|source| source.confirmed = false);
        }
        let all_forgot = self.sources.iter().all(|source| source.forgot.is_some());
        if all_forgot && self.confirming.is_none() {
            self.round += 1;
            self.confirming = Some(self.round);
            return true;
        }
        false
    }

    /// If every other member had forgot at one moment: in which incarnations.
    fn everything_lost(&self) -> Option<Vec<Incarnation>> {
        let confirmed = |source: &Source| {
            let start = source.forgot.filter(|_| source.confirmed)?;
            Some(Incarnation { node: source.node, start })
        };
        if self.forgot { self.sources.iter().map(confirmed).collect() } else { None }
    }
}

impl Linearizable {
    /// Begins the refill that the status asks for, if it asks for one.
    pub(super) fn begin_refill(&mut self, cx: &mut Context<'_>) {
        let others = |members: &[NodeId]| -> Vec<NodeId> {
            members.iter().copied().filter(|node| *node != cx.me.node).collect()
        };
        let view = &self.durable.view;
        // In a group of one nobody else holds anything.
        let of_the_view = || {
            let others = others(view.members());
            let needed = refill_quorum(view).min(others.len());
            (others, needed)
        };
        let of_the_view_before = |members: &[NodeId]| (others(members), members.len() / 2 + 1);
        // Rounds go on rising: an answer to an earlier refill confirms nothing of this one.
        let round = self.volatile.refill.as_ref().map_or(1, |refill| refill.round + 1);
        self.volatile.refill = match &self.durable.status {
            Status::Ready => None,
            Status::Busy { sources, forgot: false } => {
                Some(Refill::new(round, vec![of_the_view_before(sources)], false))
            }
            Status::Busy { sources, forgot: true } => {
                Some(Refill::new(round, vec![of_the_view_before(sources), of_the_view()], true))
            }
            Status::Forgot => Some(Refill::new(round, vec![of_the_view()], true)),
        };
        self.advance_refill(cx);
        self.ask_sources(cx);
    }

    /// Asks every source that has more to give.
    fn ask_sources(&mut self, cx: &mut Context<'_>) {
        let Some(refill) = &self.volatile.refill else { return };
        for source in &refill.sources {
            self.ask_source(refill, source, cx);
        }
        cx.fx.arm(Timer::Refill, cx.now + REPEAT);
    }

    fn ask_source(&self, refill: &Refill, source: &Source, cx: &mut Context<'_>) {
        let Some(from) = source.from else { return };
        let (round, view, forgot) = (refill.round, self.durable.view.id, refill.forgot);
        cx.fx.send(source.node, Message::RefillA { round, view, forgot, from });
    }

    /// The refill made no progress for a while.
    pub(super) fn on_refill_timer(&mut self, cx: &mut Context<'_>) {
        self.ask_sources(cx);
    }

    /// A member that lacks data asks this node.
    pub(super) fn on_refill(
        &mut self,
        asker: Incarnation,
        (round, view, forgot): (u64, ViewId, bool),
        from: u64,
        cx: &mut Context<'_>,
    ) {
        if forgot && self.durable.crashes.raise(asker.node, asker.start) {
            probe!("linearizable/peer_forgot");
            self.volatile.crashes.raise(asker.node, asker.start);
            cx.fx.put_state(CrashVector::key(), self.durable.crashes.to_bytes());
        }
        let stamp = self.stamp(view);
        // Before this node has left the older view, something may still complete there.
        let has_left = self.durable.view.id >= view;
        // The stamp's status says whether what it holds is complete; the asker may know that it is
        // all there is.
        let (page, next) = if has_left {
            self.page(from, SCAN_KEYS_MAX, Show::Records, cx)
        } else {
            (Bytes::new(), Some(from))
        };
        let lost = self.durable.lost.clone();
        cx.fx.send(asker, Message::RefillB { round, stamp, from, next, lost, page });
    }

    /// A source answered.
    pub(super) fn on_refill_reply(
        &mut self,
        from: Incarnation,
        (round, stamp): (u64, &Stamp),
        (begin, next): (u64, Option<u64>),
        lost: Vec<Incarnation>,
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        self.volatile.crashes.merge(&stamp.crashes);
        if let Some(hint) = &stamp.hint {
            self.learn(hint);
        }
        let asked_in = self.durable.view.id;
        let Some(refill) = &mut self.volatile.refill else { return };
        if refill.forgot && lost.contains(&cx.me) && !self.durable.lost.contains(&cx.me) {
            probe!("linearizable/told_of_loss");
            self.note_loss(lost, cx);
            self.ask_sources(cx);
        }
        let Some(refill) = &mut self.volatile.refill else { return };
        if stamp.view >= asked_in
            && let Some(source) = refill.sources.iter_mut().find(|s| s.node == from.node)
        {
            source.has_left = true;
        }
        if stamp.status == Status::Forgot && refill.forgot && refill.note_forgot(from, round) {
            self.ask_sources(cx);
        }
        let is_last_left = self.durable.lost.contains(&from);
        let is_complete = stamp.status == Status::Ready || is_last_left;
        if is_complete && stamp.view >= asked_in {
            self.take_page(from, begin, next, entries, cx);
        }
        self.advance_refill(cx);
    }

    /// Takes in a page, and asks its source for the next one.
    fn take_page(
        &mut self,
        from: Incarnation,
        begin: u64,
        next: Option<u64>,
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(refill) = &mut self.volatile.refill else { return };
        let Some(index) = refill.sources.iter().position(|source| source.node == from.node) else {
            return;
        };
        if refill.sources[index].from != Some(begin) {
            return;
        }
        refill.sources[index].from = next;
        for (key, record) in page::entries(entries) {
            // Unless a newer one was accepted meanwhile.
            self.store(&key, record, cx);
        }
        let Some(refill) = &self.volatile.refill else { return };
        self.ask_source(refill, &refill.sources[index], cx);
        cx.fx.arm(Timer::Refill, cx.now + REPEAT);
    }

    /// Ends the refill when enough sources have given everything, or everything was lost.
    fn advance_refill(&mut self, cx: &mut Context<'_>) {
        let Some(refill) = &self.volatile.refill else { return };
        if refill.is_met() {
            probe!("linearizable/refilled");
            self.volatile.refill = None;
            cx.fx.disarm(Timer::Refill);
            return self.set_status(Status::Ready, cx);
        }
        let is_known = self.durable.lost.contains(&cx.me);
        if let Some(mut lost) = refill.everything_lost().filter(|_| !is_known) {
            probe!("linearizable/everything_lost");
            lost.push(cx.me);
            self.note_loss(lost, cx);
            self.ask_sources(cx);
        }
    }

    /// Every member had forgot at one moment, in these incarnations.
    fn note_loss(&mut self, lost: Vec<Incarnation>, cx: &mut Context<'_>) {
        let stored = Lost(lost);
        cx.fx.put_state(Lost::key(), stored.to_bytes());
        self.durable.lost = stored.0;
    }

    /// Records a status, durably before anything stamped with it leaves.
    pub(super) fn set_status(&mut self, status: Status, cx: &mut Context<'_>) {
        cx.fx.put_state(<Status as Stored>::key(), status.to_bytes());
        self.durable.status = status;
    }
}
