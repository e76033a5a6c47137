//! How a member whose data is incomplete gets it from the others before its answers count.
//!
//! Two reasons, one transfer:
//! - **It forgot** what it had acknowledged (a `memory` lane after a restart, a `periodic` one after a
//!   power loss). It refills from so many others that they meet every majority it was part of. Each
//!   source first notes, durably, that the asker forgot in this start; from then on acknowledgements of
//!   the asker's earlier starts do not count ([`crate::quorum`]).
//! - **It is new in a view.** It hears from a majority of the members of the view before, each of them
//!   after it has left that view (CATS §4.1), so that nothing can still complete there unseen.
//!
//! A node to which both happened needs both. A source counts only while its own data is complete. If *every* other member forgot too, nothing is
//! left to refill from: everything was lost, as `memory` promises for a restart of all hosts at once.
//! One round of answers cannot show that, because members forget and refill one after the other; so a
//! second round asks each again. A member that had forgot in both answers, in one start, had forgot at
//! the moment between the rounds, and so had all. Who finds this out tells the others which
//! incarnations it concerns; they hold everything since, and are complete as well.

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
    /// The start in which it said that it forgot too, and in which rounds.
    forgot: Option<(Start, u64)>,
    /// Whether it said so again, in the same start, in the confirming round.
    confirmed: bool,
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
    fn new(quorums: Vec<(Vec<NodeId>, usize)>, forgot: bool) -> Refill {
        let nodes: BTreeSet<NodeId> =
            quorums.iter().flat_map(|(nodes, _)| nodes).copied().collect();
        let source = |node| Source { node, from: Some(0), forgot: None, confirmed: false };
        let sources = nodes.into_iter().map(source).collect();
        Refill { round: 1, confirming: None, sources, quorums, forgot }
    }

    pub fn done(&self) -> usize {
        self.sources.iter().filter(|source| source.from.is_none()).count()
    }

    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    fn is_met(&self) -> bool {
        let is_done = |node: &NodeId| {
            self.sources.iter().any(|source| source.node == *node && source.from.is_none())
        };
        let done = |nodes: &[NodeId]| nodes.iter().filter(|node| is_done(node)).count();
        self.quorums.iter().all(|(nodes, needed)| done(nodes) >= *needed)
    }

    /// Takes in that a source forgot too; returns whether a confirming round must begin.
    fn note_forgot(&mut self, from: Incarnation, round: u64) -> bool {
        let confirming = self.confirming;
        let Some(source) = self.sources.iter_mut().find(|source| source.node == from.node) else {
            return false;
        };
        match (source.forgot, confirming) {
            (Some((start, _)), Some(first)) if start == from.start => {
                source.confirmed |= round >= first;
            }
            (Some((start, _)), _) if start == from.start => {}
            _ => {
                // A first word, or a later start: what was concluded before must be asked again.
                source.forgot = Some((from.start, round));
                self.confirming = None;
                self.sources.iter_mut().for_each(|source| source.confirmed = false);
            }
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
            let (start, _) = source.forgot.filter(|_| source.confirmed)?;
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
        let of_the_view = || (others(view.members()), refill_quorum(view));
        let of_the_view_before = |members: &[NodeId]| (others(members), members.len() / 2 + 1);
        self.volatile.refill = match &self.durable.status {
            Status::Ready => None,
            Status::Busy { sources, forgot: false } => {
                Some(Refill::new(vec![of_the_view_before(sources)], false))
            }
            Status::Busy { sources, forgot: true } => {
                Some(Refill::new(vec![of_the_view_before(sources), of_the_view()], true))
            }
            Status::Forgot => Some(Refill::new(vec![of_the_view()], true)),
        };
        self.advance_refill(cx);
        self.ask_sources(cx);
    }

    /// Asks every source that has more to give.
    fn ask_sources(&mut self, cx: &mut Context<'_>) {
        let Some(refill) = &self.volatile.refill else { return };
        let view = self.durable.view.id;
        for source in &refill.sources {
            let Some(from) = source.from else { continue };
            let (round, forgot) = (refill.round, refill.forgot);
            cx.fx.send(source.node, Message::RefillA { round, view, forgot, from });
        }
        cx.fx.arm(Timer::Refill, cx.now + REPEAT);
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
        let (page, next) = if has_left && self.durable.status == Status::Ready {
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
        if refill.forgot && lost.contains(&cx.me) {
            probe!("linearizable/told_of_loss");
            return self.complete_refill(Some(lost), cx);
        }
        let mut begins_round = false;
        if stamp.status == Status::Forgot && refill.forgot {
            begins_round = refill.note_forgot(from, round);
        }
        let Some(source) = refill.sources.iter_mut().find(|source| source.node == from.node) else {
            return;
        };
        let is_page = stamp.status == Status::Ready && stamp.view >= asked_in;
        if is_page && source.from == Some(begin) {
            source.from = next;
            for (key, record) in page::entries(entries) {
                // Unless a newer one was accepted meanwhile.
                self.store(&key, record, cx);
            }
            begins_round = true;
        }
        self.advance_refill(cx);
        if begins_round {
            self.ask_sources(cx);
        }
    }

    /// Ends the refill when enough sources have given everything, or everything was lost.
    fn advance_refill(&mut self, cx: &mut Context<'_>) {
        let Some(refill) = &self.volatile.refill else { return };
        if refill.is_met() {
            probe!("linearizable/refilled");
            self.complete_refill(None, cx);
        } else if let Some(mut lost) = refill.everything_lost() {
            probe!("linearizable/everything_lost");
            lost.push(cx.me);
            self.complete_refill(Some(lost), cx);
        }
    }

    /// The data is complete; `lost` if that is because nothing was left.
    fn complete_refill(&mut self, lost: Option<Vec<Incarnation>>, cx: &mut Context<'_>) {
        self.volatile.refill = None;
        cx.fx.disarm(Timer::Refill);
        if let Some(lost) = lost {
            self.durable.lost = lost;
            let lost = Lost(self.durable.lost.clone());
            cx.fx.put_state(Lost::key(), lost.to_bytes());
        }
        self.set_status(Status::Ready, cx);
    }

    /// Records a status, durably before anything stamped with it leaves.
    pub(super) fn set_status(&mut self, status: Status, cx: &mut Context<'_>) {
        cx.fx.put_state(<Status as Stored>::key(), status.to_bytes());
        self.durable.status = status;
    }
}
