//! Records on their way: asked of their holders no faster than is allowed, and stored.

use super::transfer::Transfer;
use crate::linearizable::message::Message;
use crate::linearizable::record::Record;
use crate::linearizable::wire::page;
use crate::linearizable::{Context, Linearizable};
use alloc::collections::BTreeSet;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::ViewId;

/// How fast transfers may fetch.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    bytes: i64,
    since: Time,
}

impl Budget {
    /// Whether more may be asked for; a rate of 0 is no limit. A burst is a tenth of a second's.
    pub fn may_ask(&mut self, rate: u64, now: Time) -> bool {
        let Ok(rate) = i64::try_from(rate) else { return true };
        if rate == 0 {
            return true;
        }
        let elapsed = i64::try_from((now - self.since).0 / 1000).unwrap_or(i64::MAX);
        self.since = now;
        let earned = elapsed.saturating_mul(rate) / 1_000_000;
        self.bytes = self.bytes.saturating_add(earned).min(rate / 10);
        self.bytes >= 0
    }

    /// So many bytes came.
    pub fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

impl Linearizable {
    /// Asks holders for the records of the window.
    pub(crate) fn ask_records(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let transfer = self.group(view).and_then(|group| group.transfer.as_ref());
        if transfer.is_none_or(Transfer::has_all_listed) {
            return;
        }
        let rate = self.settings.transfer_bytes_per_second;
        if !self.volatile.budget.may_ask(rate, cx.now) {
            probe!("linearizable/transfer_limited");
            if let Some(transfer) = self.group_mut(view).and_then(|group| group.transfer.as_mut()) {
                transfer.waits();
            }
            return self.look_after_transfers(cx.now + Span::millis(20), cx);
        }
        let busy = self.fetching();
        let Some(group) = self.group_mut(view) else { return };
        let Some(transfer) = &mut group.transfer else { return };
        let (round, since) = (transfer.round, transfer.since);
        for (node, keys) in transfer.assign(&busy) {
            let mut page = BytesMut::new();
            for (key, head) in keys {
                let asked = Record::of_head(head);
                page::push(&mut page, &key, asked.bytes());
            }
            let question = Message::FetchA { round, since, page: page.freeze() };
            // It promises nothing. But now and then it waits until what came before is durable: no
            // more is asked for than the disk takes.
            match transfer.must_wait(node) {
                true => cx.fx.send(node, question),
                false => cx.fx.send_early(node, question),
            }
        }
    }

    /// The sources that are about to send records, for whichever group.
    fn fetching(&self) -> BTreeSet<NodeId> {
        let transfers = self.durable.groups.values().filter_map(|group| group.transfer.as_ref());
        let sources = transfers.flat_map(|transfer| &transfer.sources);
        sources.filter(|source| source.fetching).map(|source| source.node).collect()
    }

    /// A source sent records.
    pub(crate) fn on_fetch_reply(
        &mut self,
        from: NodeId,
        (round, since): (u64, ViewId),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some((view, slot)) = self.transfer_of(since) else { return };
        let (bytes, mut keys, mut useful) = (entries.len() as u64, 0, 0);
        for (key, record) in page::entries(entries) {
            let Some(group) = self.group_mut(view) else { return };
            let Some(transfer) = group.transfer.as_mut().filter(|t| t.round == round) else {
                return;
            };
            if transfer.take(&key, record.head()) {
                useful += 1;
                keys += u64::from(self.store(&slot.stored(&key), record, cx));
            }
        }
        invariant!(keys <= useful as u64, "only what was asked for is stored");
        invariant!(useful == 0 || bytes > 0, "what was asked for has come in bytes");
        self.volatile.budget.spend(bytes as usize);
        self.volatile.counters.moved_keys += keys;
        self.volatile.counters.moved_bytes += bytes;
        let Some(group) = self.group_mut(view) else { return };
        group.moved.keys += keys;
        group.moved.bytes += bytes;
        if let Some(transfer) = &mut group.transfer
            && useful > 0
        {
            transfer.fetched(from, useful, bytes as usize);
        }
        self.go_on(view, cx);
        if useful > 0 && !self.fetching().contains(&from) {
            // The source has nothing more to do for this group, but perhaps for another one.
            let others = self.moving().into_iter().filter(|other| *other != view);
            others.for_each(|other| self.go_on(other, cx));
        }
    }
}
