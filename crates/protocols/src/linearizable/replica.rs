//! A member of the group: what it answers to coordinators (CATS, Algorithm 5).

use super::keys::{first_at, position_of};
use super::message::{Message, PAGE_BYTES, Stamp, Want};
use super::page;
use super::record::{HEAD_BYTES, Head, Record, Ts};
use super::refill::Refill;
use super::state::Status;
use super::{Context, Linearizable};
use alloc::boxed::Box;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::SCAN_KEYS_MAX;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{View, ViewId};

impl Linearizable {
    /// The stamp of a reply to somebody who aims at `asked`.
    pub(super) fn stamp(&mut self, asked: ViewId) -> Stamp {
        let view = self.durable.view.id;
        assert!(self.volatile.stamped <= view, "replies are stamped with rising views (I1)");
        self.volatile.stamped = view;
        let hint = (asked < view).then(|| Box::new(View::clone(&self.durable.view)));
        let status = self.durable.status.clone();
        Stamp { view, status, crashes: self.volatile.crashes.clone(), hint }
    }

    /// Whether this node's data may be shown: a member whose data is complete.
    fn is_serving(&self, cx: &Context<'_>) -> bool {
        self.durable.status == Status::Ready && self.is_member(cx)
    }

    /// A coordinator asks for the newest timestamp, or the record, of a key.
    ///
    /// The stamp and what is read are one atomic step: nothing happens between them. A member that
    /// cannot answer says so, so that the coordinator does not wait for it in vain.
    pub(super) fn on_read(
        &mut self,
        from: Incarnation,
        (op, view, want): (u64, ViewId, Want),
        key: Bytes,
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view);
        let reply = |stamp, head: Head, record| Message::ReadB {
            op,
            stamp,
            ts: head.ts,
            live: head.live,
            record,
        };
        if !self.is_serving(cx) {
            probe!("linearizable/read_while_not_serving");
            // It shows no stored value; only its stamp must be durable.
            return cx.fx.send_after_state(from, reply(stamp, Head::default(), Bytes::new()));
        }
        // The coordinator's own replica gives the value that the others' digests stand for.
        let wants_record = want == Want::Value || (want == Want::Digest && from == cx.me);
        let (head, record) = if wants_record {
            let record = cx.table.get(Class::Data, &key).map(Record::stored);
            let head = record.as_ref().map_or(Head::default(), Record::head);
            (head, record.map_or(Bytes::new(), |record| record.bytes().clone()))
        } else {
            (self.newest(&key, cx), Bytes::new())
        };
        if want == Want::Counter {
            // A timestamp that a crash takes back only makes the asker's own higher than needed.
            cx.fx.send_after_state(from, reply(stamp, head, record));
        } else if cfg!(quorate_mutant = "early_get") {
            cx.fx.send_early(from, reply(stamp, head, record));
        } else {
            cx.fx.send_after_key(from, reply(stamp, head, record), key);
        }
    }

    /// A coordinator asks to store a record in the view it names. Members that lack data take part,
    /// a newcomer as soon as it knows that a majority has left the view before (CATS §4.1 sends P4A
    /// only then).
    pub(super) fn on_write(
        &mut self,
        from: Incarnation,
        op: u64,
        view: ViewId,
        (key, record): (Bytes, Bytes),
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view);
        let ok = view == self.durable.view.id
            && self.is_member(cx)
            && self.durable.view.range.contains(position_of(&key))
            && self.may_acknowledge();
        let reply = Message::WriteB { op, view, ok, stamp };
        if !ok {
            probe!("linearizable/write_refused");
            // A refusal shows no stored value; only its stamp must be durable.
            return cx.fx.send_after_state(from, reply);
        }
        self.store(&key, Record::stored(record), cx);
        if cfg!(quorate_mutant = "ack_before_sync") {
            cx.fx.send_early(from, reply);
        } else {
            cx.fx.send_after_key(from, reply, key);
        }
    }

    fn may_acknowledge(&self) -> bool {
        let refill = self.volatile.refill.as_ref();
        !matches!(self.durable.status, Status::Busy { .. })
            || refill.is_some_and(Refill::is_view_before_left)
    }

    /// Keeps a record unless a newer one is there; the newest of a key never goes back (I6).
    pub(super) fn store(&mut self, key: &Bytes, record: Record, cx: &mut Context<'_>) {
        let head = record.head();
        assert!(head.ts > Ts::ZERO, "a record has a timestamp above that of no record");
        if head.ts > self.newest(key, cx).ts {
            cx.fx.put(key.clone(), record.bytes().clone());
            self.volatile.index.set(key, head);
        }
    }

    /// The head of the newest record of a key: from the index, or from the store.
    fn newest(&mut self, key: &Bytes, cx: &mut Context<'_>) -> Head {
        if let Some(head) = self.volatile.index.get(key) {
            return head;
        }
        let record = cx.table.get(Class::Data, key).map(Record::stored);
        let head = record.map_or(Head::default(), |record| record.head());
        self.volatile.index.set(key, head);
        head
    }

    /// A coordinator asks for a page of a scan.
    pub(super) fn on_page(
        &mut self,
        asker: Incarnation,
        (op, view): (u64, ViewId),
        from: u64,
        limit: u32,
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view);
        if !self.is_serving(cx) {
            let page = Bytes::new();
            // As for a read: nothing is shown but the stamp.
            return cx.fx.send_after_state(asker, Message::PageB { op, stamp, next: None, page });
        }
        let limit = (limit as usize).clamp(1, SCAN_KEYS_MAX);
        let (page, next) = self.page(from, limit, Show::Heads, cx);
        cx.fx.send(asker, Message::PageB { op, stamp, next, page });
    }

    /// Entries from a position on, and the position at which they end; a page ends only between two
    /// positions, so that keys of one position stand on one page.
    pub(super) fn page(
        &self,
        from: u64,
        limit: usize,
        show: Show,
        cx: &Context<'_>,
    ) -> (Bytes, Option<u64>) {
        let (mut page, mut count, mut last, mut next) = (BytesMut::new(), 0, from, None);
        cx.table.scan(Class::Data, &first_at(from), &mut |key, record| {
            let position = position_of(key);
            let is_full = count >= limit || page.len() >= PAGE_BYTES;
            if is_full && position != last {
                next = Some(position);
                return false;
            }
            let shown = match show {
                Show::Heads => Record::stored(record.clone()).without_value(),
                Show::Records => record.clone(),
            };
            page::push(&mut page, key, &shown);
            count += 1;
            last = position;
            true
        });
        (page.freeze(), next)
    }
}

/// What a page shows of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    Heads,
    Records,
}

const _: () = assert!(PAGE_BYTES > HEAD_BYTES);
