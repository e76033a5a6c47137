//! Phase 2 at the coordinator: one record, stored at a consistent quorum of one view.

use super::coordinator::{Intent, Phase};
use super::read::Reading;
use crate::linearizable::message::{Basis, Message, Stamp, Want};
use crate::linearizable::record::{COUNTER_MAX, Head, Record, Ts};
use crate::linearizable::state::Volatile;
use crate::linearizable::{Context, Linearizable};
use crate::quorum::Replies;
use alloc::format;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::view::ViewId;

impl Linearizable {
    /// Writes a put's value, or a delete's tombstone, above what the read phase saw.
    ///
    /// It stays above the group's floor too: a tombstone that was removed may have been higher than
    /// what is seen.
    pub(crate) fn write_above(
        &mut self,
        op: u64,
        seen: Head,
        (basis, floor): (Basis, u64),
        cx: &mut Context<'_>,
    ) {
        let Volatile { operations, counters, arena, .. } = &mut self.volatile;
        let Some(operation) = operations.get_mut(op) else { return };
        counters.queries += 1;
        operation.existed = seen.live;
        let is_floor_ignored = mutant!("purge_without_floor");
        let floor = if is_floor_ignored { 0 } else { floor };
        let ts = Ts { n: seen.ts.n.max(floor), ..seen.ts }.next(cx.me, op);
        let record = match &operation.ask {
            Intent::Put(value) => Record::new_in(ts, Some(value), arena),
            Intent::Delete => Record::new_in(ts, None, arena),
            Intent::Get | Intent::Scan { .. } | Intent::Examine { .. } => {
                unreachable!("a get imposes, a scan never writes")
            }
        };
        self.write(op, record, basis, Replies::default(), cx);
    }

    /// Stores a record at a quorum; `acks` names members that hold it already.
    pub(crate) fn write(
        &mut self,
        op: u64,
        record: Record,
        basis: Basis,
        acks: Replies<()>,
        cx: &mut Context<'_>,
    ) {
        let is_fresh = acks.is_empty();
        if let Some(operation) = self.volatile.operations.get_mut(op)
            && let Some(trail) = &mut operation.trail
        {
            let missing = operation.view.majority().saturating_sub(acks.len());
            let held = operation.view.majority() - missing;
            trail.note(cx.now, None, format!("imposes the newest record: {held} hold it"));
        }
        self.enter(op, Phase::Write { record, basis, acks }, cx);
        if is_fresh {
            self.ask_all(op, cx);
        } else {
            self.ask_missing(op, cx);
            self.advance_write(op, cx);
        }
    }

    /// A member answered a write. An acknowledgement says so and echoes the view it is for; a
    /// refusal stamped with a newer view is not one, even if that is the view now aimed at.
    pub(crate) fn on_write_reply(
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
        if let Some(trail) = &mut operation.trail {
            let what = if ok { "acknowledges" } else { "refuses" };
            trail.note(cx.now, Some(from.node), format!("{what} in view {}", stamp.view.version));
        }
        if !ok && self.begin_again(op, stamp, cx) {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Write { basis, acks, .. } = &mut operation.phase else { return };
        let is_get = matches!(operation.ask, Intent::Get);
        invariant!(basis.is_imposed == is_get, "a get imposes, and nobody else does");
        let is_ack = ok && view == operation.view.id;
        let counts_refusals = mutant!("refusal_is_ack");
        let counts_views = mutant!("count_other_view") && ok;
        if is_ack || counts_refusals || counts_views {
            let is_kept = acks.keep(&operation.view, from, ());
            invariant!(is_kept, "an acknowledgement counts only if it is a member's");
            self.advance_write(op, cx);
        }
    }

    /// A get whose write-back was refused because tombstones were removed since it read, or because
    /// everything was lost, must read again: what it would impose may have been deleted, and the
    /// tombstone be gone, or be lost. It has changed nothing, so it may. A put or a delete may not,
    /// as somebody may have seen it: nobody will know what became of it. Returns whether it goes on
    /// so, or has ended.
    fn begin_again(&mut self, op: u64, stamp: &Stamp, cx: &mut Context<'_>) -> bool {
        let Some(operation) = self.volatile.operations.by_id.get(&op) else { return false };
        let Phase::Write { basis, .. } = &operation.phase else { return false };
        let is_outdated = basis.is_imposed && basis.generation < stamp.known.generation.number;
        let is_lost = basis.epoch < stamp.known.epoch;
        if !(is_outdated || is_lost) || stamp.view != operation.view.id {
            return false;
        }
        if !basis.is_imposed {
            probe!("linearizable/ended_after_loss");
            self.finish(op, Outcome::Refused(Refusal::OutcomeUnknown), cx);
            return true;
        }
        if is_outdated {
            probe!("linearizable/read_again_after_purge");
            let (view, generation) = (operation.view.id, stamp.known.generation);
            // Members that are not in the refusing one's generation are led there, in the stead of
            // a leader that may have failed: else the next read would fare alike. That it was
            // decided to remove tombstones is durable at the one that refused.
            cx.fx.send_early(operation.view.group(), Message::FloorA { view, generation });
        } else {
            probe!("linearizable/read_again_after_loss");
        }
        // It may impose another record then, and a late acknowledgement of this one names nothing
        // but the operation and the view: so it goes on under a new number.
        let operations = &mut self.volatile.operations;
        let op = if mutant!("imposes_under_one_number") { op } else { operations.renumber(op, cx) };
        self.wake_after(op, self.volatile.rtt.retry(), cx);
        self.enter(op, Phase::Read(Reading::new(Want::Value)), cx);
        if !is_lost {
            // After a loss a member may be in the lower epoch yet, until the next beats.
            self.ask_all(op, cx);
        }
        true
    }

    /// In the eventual mode a write has one phase, and the wall clock for a counter (CATS §6.4): it
    /// exists to measure what atomicity costs.
    pub(crate) fn eventual_write(&mut self, ask: &Intent, cx: &Context<'_>) -> Option<Phase> {
        if self.settings.mode != crate::linearizable::Mode::Eventual {
            return None;
        }
        let n = u64::try_from(cx.wall.0).unwrap_or(0).clamp(1, COUNTER_MAX);
        let ts = Ts { n, writer: cx.me, sequence: self.volatile.operations.next_id() };
        let record = match ask {
            Intent::Put(value) => Record::new(ts, Some(value)),
            _ => Record::new(ts, None),
        };
        let basis = Basis { generation: u64::MAX, is_imposed: false, epoch: u64::MAX };
        Some(Phase::Write { record, basis, acks: Replies::default() })
    }

    pub(crate) fn advance_write(&mut self, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Write { record, acks, .. } = &operation.phase else { return };
        let count = acks.counted(&operation.view, &self.volatile.crashes).count();
        let is_eventual = self.settings.mode == crate::linearizable::Mode::Eventual;
        let needed = match is_eventual && mutant!("eventual_told_by_one") {
            true => 1,
            false => operation.view.majority(),
        };
        if count < needed {
            return;
        }
        let outcome = match operation.ask {
            Intent::Get => Outcome::value(record.value()),
            Intent::Put(_) => Outcome::written(),
            Intent::Delete => Outcome::deleted(operation.existed),
            Intent::Scan { .. } | Intent::Examine { .. } => unreachable!("it never writes"),
        };
        self.volatile.counters.writes += 1;
        self.finish(op, outcome, cx);
    }
}
