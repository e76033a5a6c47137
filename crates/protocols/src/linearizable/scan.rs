//! A page of a scan at the coordinator: pages of a consistent quorum, merged by timestamp.
//!
//! A write that was completed before the scan began is held by a majority, so each quorum shows it:
//! a key that is present throughout appears, a key whose delete was completed does not. A write
//! that is still under way, or whose outcome is unknown, may be shown or not, and unlike a get the
//! scan does not impose what it shows.
//!
//! A page ends where its group's range ends; the next page goes to the next group. So a scan of the
//! whole ring is no snapshot: each key is shown as it was at some moment while its page was read.

use super::coordinator::{Ask, Phase};
use super::group::Standing;
use super::keys::{client_key, position_of, segments};
use super::message::Stamp;
use super::page;
use super::record::Head;
use super::{Context, Linearizable};
use crate::quorum::{CrashVector, Replies};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::operation::Outcome;
use quorate_kernel::view::View;

/// The pages collected.
#[derive(Debug, Default)]
pub(super) struct Paging {
    pub replies: Replies<Page>,
}

/// One member's page.
#[derive(Debug)]
pub(super) struct Page {
    next: Option<u64>,
    entries: Bytes,
}

impl Linearizable {
    /// A member answered with a page.
    pub(super) fn on_page_reply(
        &mut self,
        from: Incarnation,
        op: u64,
        stamp: &Stamp,
        next: Option<u64>,
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        if !self.accept(op, from, stamp, cx) || stamp.standing != Standing::Ready {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let (Phase::Page(paging), Ask::Scan { from: begin, .. }) =
            (&mut operation.phase, &operation.ask)
        else {
            return;
        };
        paging.replies.keep(&operation.view, from, Page { next, entries });
        let Some((keys, next)) =
            merge(&paging.replies, &operation.view, &self.volatile.crashes, *begin)
        else {
            return;
        };
        let next = next.or_else(|| interval_after(&operation.view, *begin));
        self.volatile.counters.pages += 1;
        self.finish(op, Outcome::Page { keys, next }, cx);
    }
}

/// Where the next group's interval begins, after the one of this view that holds the position.
fn interval_after(view: &View, position: u64) -> Option<u64> {
    let mut intervals = segments(&view.range);
    let (_, last) = intervals.find(|(first, last)| (*first..=*last).contains(&position))?;
    last.checked_add(1)
}

/// The merged page, once a quorum has answered: it ends where the shortest page ends.
fn merge(
    replies: &Replies<Page>,
    view: &View,
    crashes: &CrashVector,
    begin: u64,
) -> Option<(Vec<Bytes>, Option<u64>)> {
    let counted = || replies.counted(view, crashes);
    if counted().count() < view.majority() {
        return None;
    }
    let next = counted().filter_map(|(_, page)| page.next).min();
    let is_covered = |position: u64| position >= begin && next.is_none_or(|next| position < next);
    let mut newest: BTreeMap<Bytes, Head> = BTreeMap::new();
    for (_, page) in counted() {
        for (key, record) in page::entries(page.entries.clone()) {
            if is_covered(position_of(&key)) {
                let newest = newest.entry(key).or_default();
                if record.head().ts > newest.ts {
                    *newest = record.head();
                }
            }
        }
    }
    let keys = newest.iter().filter(|(_, head)| head.live).map(|(key, _)| client_key(key));
    Some((keys.collect(), next))
}
