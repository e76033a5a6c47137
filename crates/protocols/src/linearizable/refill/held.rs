//! What a node that lacks data holds in several slots: its own, and those that it kept of former
//! memberships ([`crate::linearizable::views::former`]).
//!
//! What is kept is served as it is to the newcomers that need it. After a loss it may be all that
//! is left, and then the members need it too. So a node that lacks data tells them what it holds in
//! all its slots, each key as the newest of them has it, and takes it into its own slot before it
//! goes on itself. Without that a newcomer could bring it back later, beside what was acknowledged
//! meanwhile ([`super::epoch`]).
//!
//! No tombstone is passed by: what may be older than one that was removed is given up
//! ([`crate::linearizable::group::Generation::enforces_less`]). Who lists and does not know of the
//! removal yet is told, and not heard before it knows.

use crate::linearizable::keys::{Slot, first_of};
use crate::linearizable::record::{Head, Record};
use crate::linearizable::replicate::replica::{heads_in, newest};
use crate::linearizable::wire::page;
use crate::linearizable::{Context, Linearizable};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::mutant;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Range, ViewId};

/// The keys in these slots from a cursor on, each with its newest head, as many as make one page
/// and no more than `limit` of a slot, and where it ends.
pub(super) fn heads_of(
    slots: &[Slot],
    range: &Range,
    (from, limit): (&Cursor, usize),
    cx: &Context<'_>,
) -> (Bytes, Option<Cursor>) {
    let mut pages: Vec<_> =
        slots.iter().map(|slot| heads_in(*slot, range, from, limit, |_| true, cx)).collect();
    if pages.len() == 1
        && let Some(page) = pages.pop()
    {
        return page;
    }
    probe!("linearizable/tells_what_it_kept");
    // Beyond the end of the shortest page something is missing.
    let end = pages.iter().filter_map(|(_, next)| next.as_ref()).min().cloned();
    let before = end.as_ref().map(first_of);
    let mut newest: BTreeMap<Bytes, Head> = BTreeMap::new();
    for (key, record) in pages.into_iter().flat_map(|(page, _)| page::entries(page)) {
        if before.as_ref().is_none_or(|before| key < before) {
            let head = newest.entry(key).or_default();
            *head = core::cmp::max_by_key(*head, record.head(), |head| head.ts);
        }
    }
    let mut page = BytesMut::new();
    for (key, head) in newest {
        page::push(&mut page, &key, Record::of_head(head).bytes());
    }
    (page.freeze(), end)
}

/// The newest record of a key in these slots.
pub(super) fn newest_of(slots: &[Slot], key: &Bytes, cx: &Context<'_>) -> Option<Record> {
    let stored = slots.iter().filter_map(|slot| cx.table.get(Class::Data, &slot.stored(key)));
    stored.map(Record::stored).max_by_key(|record| record.head().ts)
}

impl Linearizable {
    /// After a loss: takes what was kept into the own slot, up to where sources have listed, but no
    /// more than one page at a time. Returns how far that is, and whether there is more.
    pub(super) fn take_kept(
        &mut self,
        view: ViewId,
        reach: Option<Cursor>,
        cx: &mut Context<'_>,
    ) -> (Option<Cursor>, bool) {
        let kept: Vec<Slot> = self.kept_slots(view.group).collect();
        let Some(group) = self.group(view).filter(|_| !kept.is_empty()) else {
            return (reach, false);
        };
        let (own, range) = (group.record.slot, group.view.range);
        let transfer = group.transfer.as_ref().filter(|it| !it.lost.is_empty());
        let gathered = transfer.and_then(|transfer| transfer.gathered.as_ref());
        let Some(from) = gathered.filter(|_| !mutant!("leaves_what_it_kept")) else {
            return (reach, false);
        };
        let (page, next) = heads_of(&kept, &range, (from, self.settings.pace.list_keys), cx);
        for (key, listed) in page::entries(page) {
            let stored = own.stored(&key);
            if listed.head().ts > newest(&stored, cx).ts
                && let Some(record) = newest_of(&kept, &key, cx)
            {
                probe!("linearizable/took_what_it_kept");
                self.store(&stored, record, cx);
            }
        }
        let Some(end) = next.filter(|end| reach.as_ref().is_none_or(|reach| end < reach)) else {
            return (reach, false);
        };
        // Clients wait meanwhile.
        self.look_after_transfers(cx.now, cx);
        if let Some(transfer) = self.group_mut(view).and_then(|group| group.transfer.as_mut()) {
            transfer.waits();
        }
        (Some(end), true)
    }
}
