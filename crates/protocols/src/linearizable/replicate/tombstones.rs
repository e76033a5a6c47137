//! The members' part in the removal of tombstones ([`super::purge`]): each is led from generation
//! to generation, lists what it holds, and deletes what all held.

use super::replica::{heads, newest};
use crate::linearizable::group::Generation;
use crate::linearizable::message::Message;
use crate::linearizable::record::Head;
use crate::linearizable::wire::page;
use crate::linearizable::{Context, Linearizable};
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::view::ViewId;

impl Linearizable {
    /// A member is led to a generation.
    pub(crate) fn on_floor(
        &mut self,
        from: Incarnation,
        view: ViewId,
        goal: Generation,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        if group.view.id != view || !group.is_whole() {
            return;
        }
        invariant!(group.transfer.is_none(), "who has everything waits for nothing");
        let before = group.record.generation;
        // One number stands for one floor, at least: what another leader announced by the same
        // number is no answer.
        let is_next = goal.number > before.number;
        let floor = if is_next { before.floor.max(goal.floor) } else { before.floor };
        let after = Generation { number: before.number.max(goal.number), floor };
        assert!(after >= before, "a generation never goes back, nor does its floor");
        if after != before {
            group.record.generation = after;
            Self::persist(group, cx);
            let view = Arc::clone(&group.view);
            if before.enforces_less(after) {
                // It may hold what the tombstones deleted, and nobody needs it any more.
                self.give_up_kept(&view, cx);
            }
        }
        // It rests on the group's record, and on every tombstone that was stored before.
        cx.fx.send(from, Message::FloorB { view, generation: after });
    }

    /// A member is asked for its tombstones, in the generation in which a floor was announced.
    ///
    /// In a later one it lists nothing: what came to it since is no tombstone that it held when it
    /// came there, and what a get read there may be older.
    ///
    /// Who is asked knows that all members have gathered ([`crate::linearizable::refill::gather`]).
    pub(crate) fn on_tombstones(
        &mut self,
        asker: Incarnation,
        (view, generation): (ViewId, u64),
        from: &Cursor,
        cx: &mut Context<'_>,
    ) {
        let list_keys = self.settings.pace.list_keys;
        let Some(group) = self.group_mut(view) else { return };
        let is_open = group.view.id == view && group.is_whole();
        if !is_open || !group.view.range.contains(from.token) {
            return;
        }
        let announced = group.record.generation;
        if announced.number != generation {
            probe!("linearizable/listing_too_late");
            return;
        }
        if !mutant!("listing_notes_nothing") {
            // The leader has heard so from each of them, in this view.
            group.note_all_gathered(cx);
        }
        let is_meant = |head: Head| !head.live && head.ts.n <= announced.floor;
        invariant!(group.transfer.is_none(), "who has everything waits for nothing");
        let (page, next) = heads(group, from, list_keys, is_meant, cx);
        let is_further = next.as_ref().is_none_or(|next| next > from);
        invariant!(is_further, "a page comes further than it began");
        let from = from.clone();
        cx.fx.send(asker, Message::TombstonesB { view, generation, from, next, page });
    }

    /// Every member held these tombstones before it came to this generation.
    pub(crate) fn on_drop(
        &mut self,
        from: Incarnation,
        (view, generation): (ViewId, Generation),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group(view) else { return };
        if group.view.id != view || group.record.generation.number < generation.number {
            return;
        }
        invariant!(group.is_one(), "the shared view is the installed one");
        invariant!(self.has_slot(group), "what is deleted lies in a slot that was handed out");
        let Some(first) = page::first_key(&entries) else { return };
        for (key, record) in page::entries(entries) {
            let head = record.head();
            let Some(stored) = self.stored_key(view, &key) else { continue };
            if !head.live && newest(&stored, cx) == head {
                probe!("linearizable/purged");
                self.volatile.counters.purged += 1;
                cx.fx.delete(stored);
            }
        }
        // It leaves when the deletions are durable: a restart would bring them back, and nobody
        // would say it again.
        cx.fx.send(from, Message::DropB { view, generation, first });
    }
}
