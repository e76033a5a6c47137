//! A page of a scan at the coordinator: pages of a consistent quorum, merged by timestamp.
//!
//! A key that is present throughout a whole scan is held by a majority, so each quorum shows it. It
//! is left out only if every counted member holds a newer tombstone: with a tombstone at some of them
//! a delete is still under way, whose outcome the scan must not decide. What the scan shows may hence
//! be a key that is just being deleted, or whose put is not finished; each key by itself can be read
//! linearizably.

use super::coordinator::{Ask, Phase};
use super::keys::{client_key, position_of};
use super::message::Stamp;
use super::page;
use super::record::Head;
use super::state::Status;
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

/// What the quorum's members hold of one key.
#[derive(Default)]
struct Seen {
    highest: Head,
    holders: usize,
    is_live_somewhere: bool,
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
        if !self.accept(op, from, stamp, cx) || stamp.status != Status::Ready {
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
        self.volatile.counters.pages += 1;
        self.finish(op, Outcome::Page { keys, next }, cx);
    }
}

/// The merged page, once a quorum has answered: it ends where the shortest page ends.
fn merge(
    replies: &Replies<Page>,
    view: &View,
    crashes: &CrashVector,
    begin: u64,
) -> Option<(Vec<Bytes>, Option<u64>)> {
    let counted = || replies.counted(view, crashes);
    let quorum = counted().count();
    if quorum < view.majority() {
        return None;
    }
    let next = counted().filter_map(|(_, page)| page.next).min();
    let is_covered = |position: u64| position >= begin && next.is_none_or(|next| position < next);
    let mut seen: BTreeMap<Bytes, Seen> = BTreeMap::new();
    for (_, page) in counted() {
        for (key, record) in page::entries(page.entries.clone()) {
            if is_covered(position_of(&key)) {
                seen.entry(key).or_default().add(record.head());
            }
        }
    }
    let is_shown = |seen: &Seen| seen.is_live_somewhere && !seen.is_deleted_by_all(quorum);
    let keys = seen.iter().filter(|(_, seen)| is_shown(seen)).map(|(key, _)| client_key(key));
    Some((keys.collect(), next))
}

impl Seen {
    fn add(&mut self, head: Head) {
        self.is_live_somewhere |= head.live;
        if head.ts > self.highest.ts {
            self.highest = head;
            self.holders = 0;
        }
        self.holders += usize::from(head.ts == self.highest.ts);
    }

    fn is_deleted_by_all(&self, quorum: usize) -> bool {
        !self.highest.live && self.holders == quorum
    }
}
