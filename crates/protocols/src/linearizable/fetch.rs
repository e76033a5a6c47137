//! Records on their way: asked of their holders no faster than is allowed, and stored.

use super::message::Message;
use super::record::Record;
use super::timer::Timer;
use super::{Context, Linearizable, page};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::NodeId;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::ViewId;

/// How fast transfers may fetch.
#[derive(Debug, Default)]
pub(super) struct Budget {
    bytes: i64,
    since: Time,
}

impl Budget {
    /// Whether more may be asked for; a rate of 0 is no limit. A burst is a tenth of a second's.
    fn may_ask(&mut self, rate: u64, now: Time) -> bool {
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
}

impl Linearizable {
    /// Asks holders for the records of the window.
    pub(super) fn ask_records(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let rate = self.settings.transfer_bytes_per_second;
        if !self.volatile.budget.may_ask(rate, cx.now) {
            probe!("linearizable/transfer_limited");
            return cx.fx.arm(Timer::Transfer, cx.now + Span::millis(20));
        }
        let Some(group) = self.group_mut(view) else { return };
        let Some(transfer) = &mut group.transfer else { return };
        let (round, since) = (transfer.round, transfer.since);
        for (node, keys) in transfer.assign() {
            let mut page = BytesMut::new();
            for (key, head) in keys {
                let asked = Record::of_head(head);
                page::push(&mut page, &key, asked.bytes());
            }
            // A question promises nothing.
            cx.fx.send_early(node, Message::FetchA { round, since, page: page.freeze() });
        }
    }

    /// A source sent records.
    pub(super) fn on_fetch_reply(
        &mut self,
        from: NodeId,
        (round, since): (u64, ViewId),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some((view, slot)) = self.transfer_of(since) else { return };
        let (bytes, mut keys, mut is_useful) = (entries.len() as u64, 0, false);
        for (key, record) in page::entries(entries) {
            let Some(group) = self.group_mut(view) else { return };
            let Some(transfer) = group.transfer.as_mut().filter(|t| t.round == round) else {
                return;
            };
            if transfer.take(&key, record.head()) {
                is_useful = true;
                keys += u64::from(self.store(&slot.stored(&key), record, cx));
            }
        }
        self.volatile.budget.bytes -= i64::try_from(bytes).unwrap_or(i64::MAX);
        self.volatile.counters.moved_keys += keys;
        self.volatile.counters.moved_bytes += bytes;
        let Some(group) = self.group_mut(view) else { return };
        group.moved.keys += keys;
        group.moved.bytes += bytes;
        if let Some(transfer) = &mut group.transfer
            && is_useful
        {
            transfer.fetched(from);
        }
        self.go_on(view, cx);
    }
}
