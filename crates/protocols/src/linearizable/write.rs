//! Phase 2 at the coordinator: one record, stored at a consistent quorum of one view.

use super::coordinator::{Ask, Phase};
use super::message::Stamp;
use super::record::{Head, Record};
use super::{Context, Linearizable};
use crate::quorum::Replies;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::operation::Outcome;
use quorate_kernel::view::ViewId;

impl Linearizable {
    /// Writes a put's value, or a delete's tombstone, above what the read phase saw.
    pub(super) fn write_above(&mut self, op: u64, seen: Head, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        self.volatile.counters.queries += 1;
        operation.existed = seen.live;
        let ts = seen.ts.next(cx.me, op);
        let record = match &operation.ask {
            Ask::Put(value) => Record::new(ts, Some(value)),
            Ask::Delete => Record::new(ts, None),
            Ask::Get | Ask::Scan { .. } => unreachable!("a get imposes, a scan never writes"),
        };
        self.write(op, record, Replies::default(), cx);
    }

    /// Stores a record at a quorum; `acks` names members that hold it already.
    pub(super) fn write(
        &mut self,
        op: u64,
        record: Record,
        acks: Replies<()>,
        cx: &mut Context<'_>,
    ) {
        let is_fresh = acks.is_empty();
        self.enter(op, Phase::Write { record, acks }, cx);
        if is_fresh {
            self.ask_all(op, cx);
        } else {
            self.ask_missing(op, cx);
            self.advance_write(op, cx);
        }
    }

    /// A member answered a write. An acknowledgement says so and echoes the view it is for; a
    /// refusal stamped with a newer view is not one, even if that is the view now aimed at.
    pub(super) fn on_write_reply(
        &mut self,
        from: Incarnation,
        op: u64,
        view: ViewId,
        ok: bool,
        stamp: &Stamp,
        cx: &mut Context<'_>,
    ) {
        if !self.accept(op, from, stamp, cx) {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Write { acks, .. } = &mut operation.phase else { return };
        let is_ack = ok && view == operation.view.id;
        let counts_refusals = cfg!(quorate_mutant = "refusal_is_ack");
        let counts_views = cfg!(quorate_mutant = "count_other_view") && ok;
        if is_ack || counts_refusals || counts_views {
            acks.keep(&operation.view, from, ());
            self.advance_write(op, cx);
        }
    }

    fn advance_write(&mut self, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Write { record, acks } = &operation.phase else { return };
        let count = acks.counted(&operation.view, &self.volatile.crashes).count();
        if count < operation.view.majority() {
            return;
        }
        let outcome = match operation.ask {
            Ask::Get => Outcome::Value(record.value()),
            Ask::Put(_) => Outcome::Written,
            Ask::Delete => Outcome::Deleted { existed: operation.existed },
            Ask::Scan { .. } => unreachable!("a scan never writes"),
        };
        self.volatile.counters.writes += 1;
        self.finish(op, outcome, cx);
    }
}
