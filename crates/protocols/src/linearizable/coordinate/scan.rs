//! A page of a scan at the coordinator: pages of a consistent quorum, merged by timestamp.
//!
//! Each key of a page is read as by a get: shown or left out as it was at some moment while the
//! page was read, and once that was told no later get or scan denies it. Where a majority holds the
//! newest record that the quorum shows, the page says so at once. The other keys are **in doubt**:
//! the page waits a moment for the remaining replies, then reads each of them with a get of its
//! own, which imposes what it returns (CATS §4.2). So a page costs one round trip but for the keys
//! that are being written, or that a member has missed.
//!
//! A page with very many keys in doubt ends before the rest of them, so that none takes too long.
//!
//! A page ends where its group's range ends; the next page goes to the next group. So a scan of the
//! whole ring is no snapshot: different keys are shown as they were at different moments.

use super::coordinator::{Asker, Intent, Phase};
use super::rtt::PATIENCE;
use crate::linearizable::group::Standing;
use crate::linearizable::keys::{client_key, cursor_of, first_of, segments, token_of};
use crate::linearizable::message::Stamp;
use crate::linearizable::record::{Head, Ts};
use crate::linearizable::wire::page;
use crate::linearizable::wire::page::PAGE_BYTES;
use crate::linearizable::{Context, Linearizable, Mode};
use crate::quorum::{CrashVector, Replies};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::limits::{PAGE_DOUBTS_MAX, PAGE_READS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Cursor, Outcome};
use quorate_kernel::probe;
use quorate_kernel::values::Values;
use quorate_kernel::view::View;

/// A value of more bytes is long: several of them are not moved at once.
const LONG_BYTES: usize = PAGE_BYTES / PAGE_READS_MAX;

/// The pages collected.
#[derive(Debug, Default)]
pub(crate) struct Paging {
    pub replies: Replies<Page>,
    /// How long a page with keys in doubt has waited for the remaining replies.
    patience: Patience,
}

/// Whether a page with keys in doubt waits for the remaining replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Patience {
    #[default]
    Unasked,
    Waiting,
    Lost,
}

/// One member's page.
#[derive(Debug)]
pub(crate) struct Page {
    next: Option<Cursor>,
    entries: Bytes,
}

/// A merged page whose keys in doubt are read.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// The keys that the page shows as far as is known.
    shown: BTreeSet<Bytes>,
    /// The keys in doubt whose reads have not begun.
    waiting: VecDeque<Bytes>,
    /// How many reads are under way.
    reading: usize,
    /// How many may be: few while values are long.
    reads_max: usize,
    next: Option<Cursor>,
}

impl Paging {
    /// Ends the wait for the remaining replies; returns whether there was one.
    pub fn lose_patience(&mut self) -> bool {
        let was_waiting = self.patience == Patience::Waiting;
        if was_waiting {
            self.patience = Patience::Lost;
        }
        was_waiting
    }

    /// The merged page, once a quorum has answered: it ends where the shortest page ends.
    fn merge(&self, view: &View, crashes: &CrashVector, begin: &Cursor) -> Option<Settling> {
        let counted = || self.replies.counted(view, crashes);
        if counted().count() < view.majority() {
            return None;
        }
        let next = counted().filter_map(|(_, page)| page.next.as_ref()).min().cloned();
        let (first, end) = (first_of(begin), next.as_ref().map(first_of));
        let is_covered = |key: &Bytes| *key >= first && end.as_ref().is_none_or(|end| key < end);
        // The newest head that a key is shown with, and how many show it.
        let mut newest: BTreeMap<Bytes, (Head, usize)> = BTreeMap::new();
        for (_, page) in counted() {
            for (key, record) in page::entries(page.entries.clone()) {
                if !is_covered(&key) {
                    continue;
                }
                let (head, holders) = newest.entry(key).or_default();
                if record.head().ts > head.ts {
                    (*head, *holders) = (record.head(), 0);
                }
                *holders += usize::from(record.head().ts == head.ts);
            }
        }
        let mut settling = Settling { next, reads_max: 1, ..Settling::default() };
        for (key, (head, holders)) in newest {
            assert!(head.ts > Ts::ZERO, "a record has a timestamp above that of no record");
            if settling.waiting.len() == PAGE_DOUBTS_MAX {
                probe!("linearizable/scan_cut_by_doubts");
                settling.next = Some(cursor_of(&key));
                break;
            }
            if head.live {
                settling.shown.insert(key.clone());
            }
            if holders < view.majority() {
                settling.waiting.push_back(key);
            }
        }
        Some(settling)
    }
}

impl Settling {
    /// Takes in what the read of a key returned: the value, as far as it had to be moved.
    fn settle(&mut self, key: Bytes, values: &Values) {
        let is_long = values.bytes() > LONG_BYTES;
        self.reads_max = if is_long { 1 } else { (2 * self.reads_max).min(PAGE_READS_MAX) };
        match values.is_empty() {
            false => self.shown.insert(key),
            true => self.shown.remove(&key),
        };
    }
}

impl Linearizable {
    /// A member answered with a page.
    pub(crate) fn on_page_reply(
        &mut self,
        from: Incarnation,
        op: u64,
        stamp: &Stamp,
        next: Option<Cursor>,
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        if !self.accept(op, from, stamp, cx) || stamp.standing != Standing::Ready {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Page(paging) = &mut operation.phase else { return };
        invariant!(matches!(operation.ask, Intent::Scan { .. }), "only a scan collects pages");
        let is_kept = paging.replies.keep(&operation.view, from, Page { next, entries });
        invariant!(is_kept, "a reply counts only if it is a member's");
        self.advance_page(op, cx);
    }

    /// Goes on with a page if its replies allow it.
    pub(crate) fn advance_page(&mut self, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let (Phase::Page(paging), Intent::Scan { from: begin, .. }) =
            (&mut operation.phase, &operation.ask)
        else {
            return;
        };
        let (view, crashes) = (&operation.view, &self.volatile.crashes);
        let Some(mut settling) = paging.merge(view, crashes, begin) else { return };
        settling.next = settling.next.or_else(|| interval_after(view, begin.token));
        if self.settings.mode == Mode::Eventual || mutant!("scan_without_imposing") {
            // One phase: whoever answered first decides, and nothing is imposed (CATS §6.4).
            settling.waiting.clear();
        }
        let is_final = paging.replies.counted(view, crashes).count() == view.members().len();
        if !settling.waiting.is_empty() && !is_final && paging.patience != Patience::Lost {
            if paging.patience == Patience::Unasked {
                paging.patience = Patience::Waiting;
                self.wake_after(op, PATIENCE, cx);
            }
            return;
        }
        if !settling.waiting.is_empty() {
            probe!("linearizable/scan_settles");
        }
        let patience = operation.deadline - cx.now;
        self.enter(op, Phase::Settle(settling), cx);
        // Each read looks after itself.
        self.wake_after(op, patience, cx);
        self.advance_settling(op, cx);
    }

    /// Reads further keys in doubt, and ends the page after the last one.
    fn advance_settling(&mut self, op: u64, cx: &mut Context<'_>) {
        while let Some(operation) = self.volatile.operations.get_mut(op)
            && let Phase::Settle(settling) = &mut operation.phase
        {
            if settling.reading < settling.reads_max
                && let Some(key) = settling.waiting.pop_front()
            {
                settling.reading += 1;
                let (deadline, view) = (operation.deadline, operation.view.clone());
                let view = self.volatile.routes.find(token_of(&key)).cloned().unwrap_or(view);
                self.launch(Asker::Scan(op), (Intent::Get, key), view, deadline, None, cx);
                continue;
            }
            if settling.reading > 0 {
                return;
            }
            assert!(settling.waiting.is_empty(), "a page ends when none of its keys is in doubt");
            let keys = settling.shown.iter().map(client_key).collect();
            let next = settling.next.take();
            self.volatile.counters.pages += 1;
            return self.finish(op, Outcome::Page { keys, next }, cx);
        }
    }

    /// A key of a page was read.
    pub(crate) fn on_settled(
        &mut self,
        op: u64,
        key: Bytes,
        outcome: Outcome,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Settle(settling) = &mut operation.phase else { return };
        assert!(settling.reading > 0, "a read that ends was under way");
        settling.reading -= 1;
        match outcome {
            Outcome::Values { values, .. } => settling.settle(key, &values),
            // A get changes nothing, so it was refused for what the page may be refused for.
            refused => return self.finish(op, refused, cx),
        }
        self.advance_settling(op, cx);
    }
}

/// Where the next group's interval begins, after the one of this view that holds the token.
fn interval_after(view: &View, token: u64) -> Option<Cursor> {
    let mut intervals = segments(&view.range);
    let (_, last) = intervals.find(|(first, last)| (*first..=*last).contains(&token))?;
    last.checked_add(1).map(Cursor::at)
}
