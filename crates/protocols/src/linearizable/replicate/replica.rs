//! A member of a group: what it answers to coordinators (CATS, Algorithm 5).

use crate::linearizable::group::{Group, Standing, Status};
use crate::linearizable::keys::{Slot, cut_before, first_of, segments, token_of};
use crate::linearizable::message::{Basis, Message, Want};
use crate::linearizable::record::{HEAD_BYTES, Head, Record, Ts};
use crate::linearizable::wire::page::{self, PAGE_BYTES};
use crate::linearizable::{Context, Linearizable};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::limits::SCAN_KEYS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Range, ViewId};

impl Linearizable {
    /// A coordinator asks for the newest timestamp, or the record, of a key.
    ///
    /// The stamp and what is read are one atomic step: nothing happens between them. A member that
    /// cannot answer says so, so that the coordinator does not wait for it in vain.
    pub(crate) fn on_read(
        &mut self,
        from: Incarnation,
        (op, view, want): (u64, ViewId, Want),
        key: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view, token_of(key));
        let reply = |stamp, head: Head, record| Message::ReadB {
            op,
            stamp,
            ts: head.ts,
            live: head.live,
            record,
        };
        let is_serving = self.group(view).is_some_and(Group::is_serving);
        let says_so = stamp.standing == Standing::Ready;
        invariant!(says_so == is_serving, "who shows data says that it has all");
        let stored = self.stored_key(view, key).filter(|_| is_serving);
        let Some(stored) = stored else {
            probe!("linearizable/read_while_not_serving");
            // It shows no stored value; only its stamp must be durable.
            return cx.fx.send_after_state(from, reply(stamp, Head::default(), Bytes::new()));
        };
        self.note_served(token_of(key));
        let (head, record) = self.look(from, want, &stored, cx);
        invariant!(head.ts > Ts::ZERO || !head.live, "what was never written has no value");
        if want == Want::Counter {
            // A timestamp that a crash takes back only makes the asker's own higher than needed.
            cx.fx.send_after_state(from, reply(stamp, head, record));
        } else if mutant!("early_get") {
            cx.fx.send_early(from, reply(stamp, head, record));
        } else {
            cx.fx.send_after_key(from, reply(stamp, head, record), stored);
        }
    }

    /// What a coordinator wants of a stored key.
    fn look(
        &mut self,
        from: Incarnation,
        want: Want,
        stored: &Bytes,
        cx: &mut Context<'_>,
    ) -> (Head, Bytes) {
        self.volatile.meter.served += 1;
        // The coordinator's own replica gives the value that the others' digests stand for.
        let wants_record = want == Want::Value || (want == Want::Digest && from == cx.me);
        if !wants_record {
            return (newest(stored, cx), Bytes::new());
        }
        let record = cx.table.get(Class::Data, stored).map(Record::stored);
        let head = record.as_ref().map_or(Head::default(), Record::head);
        (head, record.map_or(Bytes::new(), |record| record.bytes().clone()))
    }

    /// A coordinator asks to store a record in the view it names. Members that lack data take part
    /// too: a newcomer installs its view only when no majority is left in the one before (CATS
    /// §4.1).
    pub(crate) fn on_write(
        &mut self,
        from: Incarnation,
        (op, view, basis): (u64, ViewId, &Basis),
        (key, record): (&Bytes, Bytes),
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view, token_of(key));
        let is_open =
            |group: &Group| view == group.view.id && group.is_member() && may_rest_on(group, basis);
        let is_open = self.group(view).is_some_and(is_open);
        let stored = self.stored_key(view, key).filter(|_| is_open);
        if stored.is_some() {
            let is_member =
                matches!(stamp.standing, Standing::Ready | Standing::Busy | Standing::Forgot);
            invariant!(is_member, "only a member acknowledges");
            invariant!(stamp.view == view, "who acknowledges is in the view that is named");
        }
        let reply = Message::WriteB { op, view, ok: stored.is_some(), stamp };
        let Some(stored) = stored else {
            probe!("linearizable/write_refused");
            // A refusal shows no stored value; only its stamp must be durable.
            return cx.fx.send_after_state(from, reply);
        };
        self.note_served(token_of(key));
        let record = Record::stored(record);
        if !record.head().live
            && let Some(group) = self.group_mut(view)
        {
            group.purge.note_tombstone();
        }
        self.store(&stored, record, cx);
        if mutant!("ack_before_sync") {
            cx.fx.send_early(from, reply);
        } else {
            cx.fx.send_after_key(from, reply, stored);
        }
    }

    /// Keeps a record unless a newer one is there; the newest of a key never goes back (I6).
    /// Returns whether it was kept.
    pub(crate) fn store(&mut self, stored: &Bytes, record: Record, cx: &mut Context<'_>) -> bool {
        let head = record.head();
        assert!(head.ts > Ts::ZERO, "a record has a timestamp above that of no record");
        debug_assert!(!cx.fx.is_written(stored), "an input stores one record of a key at most");
        let is_newer = head.ts > newest(stored, cx).ts;
        if is_newer {
            cx.fx.put(stored.clone(), record.bytes().clone());
        }
        is_newer
    }

    /// A coordinator asks for a page of a scan.
    pub(crate) fn on_page(
        &mut self,
        asker: Incarnation,
        (op, view): (u64, ViewId),
        from: &Cursor,
        limit: u32,
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view, from.token);
        let says_so = stamp.standing == Standing::Ready;
        let serving = self.group(view).filter(|group| group.is_serving());
        invariant!(says_so == serving.is_some(), "who shows data says that it has all");
        let Some(group) = serving.filter(|group| group.view.range.contains(from.token)) else {
            let page = Bytes::new();
            // As for a read: nothing is shown but the stamp.
            return cx.fx.send_after_state(asker, Message::PageB { op, stamp, next: None, page });
        };
        let limit = (limit as usize).clamp(1, SCAN_KEYS_MAX);
        let (page, next) = heads(group, from, limit, |_| true, cx);
        let is_further = next.as_ref().is_none_or(|next| next > from);
        invariant!(is_further, "a page comes further than it began");
        cx.fx.send(asker, Message::PageB { op, stamp, next, page });
    }
}

/// The head of the newest record of a stored key that an earlier input has stored.
pub(crate) fn newest(stored: &Bytes, cx: &Context<'_>) -> Head {
    cx.table.head(stored).map_or(Head::default(), |head| Head::stored(head.as_bytes()))
}

/// Whether what a write rests on is recent enough: nothing was lost since (`refill::epoch`), and
/// no tombstone was removed that it ought to have seen. A client's write is above every tombstone
/// that was removed if it saw the floor that was announced before; what a get read must have been
/// read after the removal began.
pub(crate) fn may_rest_on(group: &Group, basis: &Basis) -> bool {
    if basis.epoch < group.record.epoch && !mutant!("loss_without_fence") {
        return false;
    }
    if mutant!("purge_without_fence") {
        return true;
    }
    let enforced = group.record.generation.number & !1;
    let needed = if basis.is_imposed { enforced } else { enforced.saturating_sub(1) };
    basis.generation >= needed
}

/// Entries of a group's data from a cursor on, up to the end of the interval of its range that
/// holds the cursor's token, and where the page ends if it ends before. Records are shown
/// without their values.
pub(crate) fn heads(
    group: &Group,
    from: &Cursor,
    limit: usize,
    is_shown: impl Fn(Head) -> bool,
    cx: &Context<'_>,
) -> (Bytes, Option<Cursor>) {
    heads_in(group.record.slot, &group.view.range, from, limit, is_shown, cx)
}

/// The same of a slot's data.
pub(crate) fn heads_in(
    slot: Slot,
    range: &Range,
    from: &Cursor,
    limit: usize,
    is_shown: impl Fn(Head) -> bool,
    cx: &Context<'_>,
) -> (Bytes, Option<Cursor>) {
    let last_of_all = end_of_interval(range, from.token);
    let (mut page, mut count, mut last, mut next) = (BytesMut::new(), 0, from.token, None);
    cx.table.scan(Class::Data, &slot.stored(&first_of(from)), &mut |stored, record| {
        let Some(key) = slot.data_key(stored) else { return false };
        let token = token_of(key);
        if token > last_of_all {
            return false;
        }
        if count >= limit || page.len() >= PAGE_BYTES {
            next = Some(cut_before(key, last));
            return false;
        }
        let record = Record::stored(record.clone());
        if is_shown(record.head()) {
            page::push(&mut page, key, &record.without_value());
        }
        count += 1;
        last = token;
        true
    });
    (page.freeze(), next)
}

/// The last token of the interval of a range that holds a token; the token itself if none
/// does.
pub(crate) fn end_of_interval(range: &Range, token: u64) -> u64 {
    let mut intervals = segments(range);
    let holds = |(first, last): &(u64, u64)| (*first..=*last).contains(&token);
    intervals.find(holds).map_or(token, |(_, last)| last)
}

/// Whether a member that is in this state holds everything it ever acknowledged.
pub(crate) fn remembers(status: &Status) -> bool {
    !matches!(
        status,
        Status::Forgot | Status::Busy { forgot: true, .. } | Status::Retired { forgot: true, .. }
    )
}

const _: () = assert!(PAGE_BYTES > HEAD_BYTES);
