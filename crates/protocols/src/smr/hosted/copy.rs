//! Copies of a partition's state, for a replica that lacks what is gone: a ring's log was trimmed
//! while it was away, or others have forgotten what a command sent.
//!
//! A copy is a snapshot as bytes, taken when it is asked for, and sent page by page as each is
//! asked for. It is in memory at both ends until the last page has come.

use super::action::Context;
use super::keys;
use super::message::{Message, Wants};
use super::partition::Partition;
use crate::multicast::RingId;
use crate::smr::partitioned::{Machine, Place, Snapshot};
use crate::vsr::Op;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::time::{Span, Time};

/// How many bytes a page has.
const PAGE_BYTES: usize = if cfg!(test) { 512 } else { 256 * 1024 };
/// How long a page is waited for before it is asked for again.
const AGAIN: Span = Span::millis(200);
/// How often in a row a source is asked in vain before another one is.
const ATTEMPTS: u32 = 4;
/// For how long a copy is kept for whoever asks for no page of it.
const KEPT: Span = Span::secs(10);
/// How many copies are given at a time.
const SOURCES_MAX: usize = 2;

/// A copy that another replica takes from here.
#[derive(Debug)]
pub(super) struct Source {
    nonce: u64,
    bytes: Bytes,
    asked: Time,
}

/// What a replica lacks, and how far it is with a copy.
#[derive(Debug, Default)]
pub(super) struct Behind {
    wants: Wants,
    /// How many sources were given up.
    source: usize,
    attempts: u32,
    asked: Option<Time>,
    nonce: u64,
    pages: Vec<Bytes>,
}

impl Behind {
    /// More is gone than was known.
    pub fn needs(&mut self, lost: Option<Place>, base: Option<(RingId, Op)>) {
        self.wants.passed = self.wants.passed.max(lost);
        if let Some((ring, op)) = base {
            match self.wants.reached.iter_mut().find(|(of, _)| *of == ring) {
                Some((_, known)) => *known = op.max(*known),
                None => self.wants.reached.push((ring, op)),
            }
        }
    }

    /// Whether a replica that has come so far lacks nothing of it.
    pub fn is_over(&self, passed: Option<Place>, has: impl Fn(RingId, Op) -> bool) -> bool {
        passed >= self.wants.passed && self.wants.reached.iter().all(|(ring, op)| has(*ring, *op))
    }
}

impl Wants {
    /// Whether a copy is good for it.
    fn are_met<M: Machine>(&self, copy: &Snapshot<M>) -> bool {
        let has = |ring, op| copy.cursor().iter().any(|it| it.ring == ring && it.op >= op);
        copy.passed() >= self.passed && self.reached.iter().all(|(ring, op)| has(*ring, *op))
    }
}

impl<M: Machine> Partition<M> {
    /// A replica that is behind asks for the next page of a copy, if nothing has come for a while.
    pub fn tick_copy(&mut self, cx: &mut Context<'_, M>) {
        self.sources.retain(|_, it| cx.now - it.asked < KEPT);
        self.catches_up();
        let Some(behind) = &mut self.behind else { return };
        if behind.asked.is_some_and(|at| cx.now - at < AGAIN) {
            return;
        }
        behind.attempts += 1;
        if behind.attempts.is_multiple_of(ATTEMPTS) {
            behind.source += 1;
            behind.pages.clear();
            behind.nonce = 0;
        }
        self.ask_page(cx);
    }

    fn ask_page(&mut self, cx: &mut Context<'_, M>) {
        let (id, passed) = (self.id, self.replica.passed());
        let others = self.layout.members(id).filter(|node| *node != cx.me.node);
        let others: Vec<NodeId> = others.collect();
        let Some(behind) = self.behind.as_mut().filter(|_| !others.is_empty()) else { return };
        let source = others[behind.source % others.len()];
        if behind.nonce == 0 {
            // No start is repeated, nor is a moment of one.
            behind.nonce = (u64::from(cx.me.start.0) << 40) + cx.now.0 / 1_000_000 + 1;
        }
        behind.asked = Some(cx.now);
        // What it has released itself it may not need again.
        let wants = Wants { passed: behind.wants.passed.max(passed), ..behind.wants.clone() };
        let (nonce, page) = (behind.nonce, behind.pages.len() as u64);
        // A question promises nothing.
        cx.send_early(source, Message::GetCopy { partition: id, nonce, page, wants });
    }

    /// Another replica asks for a page of a copy.
    pub fn on_get_copy(
        &mut self,
        from: Incarnation,
        (nonce, page): (u64, u64),
        wants: &Wants,
        cx: &mut Context<'_, M>,
    ) {
        let known = self.sources.get(&from.node).is_some_and(|it| it.nonce == nonce);
        if !known && page == 0 {
            let has_room =
                self.sources.len() < SOURCES_MAX || self.sources.contains_key(&from.node);
            let copy = self.replica.copy().filter(|_| has_room);
            // One that is of no use is not begun: whoever asks turns to another replica.
            let Some(copy) = copy.filter(|copy| wants.are_met(copy)) else { return };
            let source = Source { nonce, bytes: keys::encode(&copy), asked: cx.now };
            self.sources.insert(from.node, source);
        }
        let Some(source) = self.sources.get_mut(&from.node).filter(|it| it.nonce == nonce) else {
            return;
        };
        source.asked = cx.now;
        let at = usize::try_from(page).unwrap_or(usize::MAX).saturating_mul(PAGE_BYTES);
        if at >= source.bytes.len() {
            return;
        }
        invariant!(source.nonce == nonce, "a page is of the copy that was asked for");
        let end = source.bytes.len().min(at + PAGE_BYTES);
        invariant!(at < end, "no page is empty");
        let (body, is_last) = (source.bytes.slice(at..end), end == source.bytes.len());
        let partition = self.id;
        // Only what is committed was executed: it rests on majorities, not on this node's disk.
        cx.send_early(from, Message::Copy { partition, nonce, page, is_last, body });
    }

    /// A page has come. Whether a copy is installed.
    ///
    /// # Errors
    /// No correct peer sends it; nothing was changed.
    pub fn on_copy(
        &mut self,
        (nonce, page, is_last): (u64, u64, bool),
        body: Bytes,
        cx: &mut Context<'_, M>,
    ) -> Result<bool, &'static str> {
        let passed = self.replica.passed();
        let Some(behind) = self.behind.as_mut() else { return Ok(false) };
        if behind.nonce != nonce || page != behind.pages.len() as u64 {
            return Ok(false);
        }
        behind.pages.push(body);
        behind.attempts = 0;
        if !is_last {
            self.ask_page(cx);
            return Ok(false);
        }
        let bytes = core::mem::take(&mut behind.pages).concat();
        behind.nonce = 0;
        let copy: Option<Snapshot<M>> = keys::read(&bytes);
        let Some(copy) = copy else { return Err("a copy cannot be read") };
        let wants = Wants { passed: behind.wants.passed.max(passed), ..behind.wants.clone() };
        // It may have passed more meanwhile.
        if !wants.are_met(&copy) {
            return Ok(false);
        }
        invariant!(copy.cursor().len() == self.rings().len(), "it is of the same rings");
        self.install(copy, cx);
        Ok(true)
    }
}
