//! Phase 1 at the coordinator: from replies to a decision.
//!
//! A get is done in one round trip when a majority of the view holds the highest timestamp seen.
//! Otherwise it waits a moment for the remaining replies, then imposes what it read (CATS §4.2). A
//! put or delete takes the highest timestamp of a consistent quorum and writes above it.

use super::coordinator::{Asker, Intent, Phase};
use super::rtt::PATIENCE;
use crate::linearizable::group::Standing;
use crate::linearizable::message::{Basis, Known, Stamp, Want};
use crate::linearizable::record::{Head, Record, Ts};
use crate::linearizable::{Context, Linearizable};
use crate::quorum::{CrashVector, Replies};
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::Outcome;
use quorate_kernel::probe;
use quorate_kernel::view::View;

/// One member's answer.
#[derive(Debug)]
struct MemberReply {
    is_ready: bool,
    known: Known,
    head: Head,
    record: Option<Record>,
}

/// How long a get whose quorum disagrees has waited for the remaining replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Unasked,
    Waiting,
    Lost,
}

/// The replies of a read phase.
#[derive(Debug)]
pub(crate) struct Reading {
    want: Want,
    answers: Replies<MemberReply>,
    patience: Patience,
    /// The members asked so far, if that is not all of them.
    asked: Option<Arc<[NodeId]>>,
}

/// What the replies amount to.
enum Decision {
    /// No consistent quorum yet.
    Wait,
    /// A majority holds `head`; the record, unless digests left it out.
    Agreed(Head, Option<Record>),
    /// A quorum answered, but fewer than a majority hold the highest timestamp.
    Disagreed(Head, Option<Record>, bool),
}

impl Reading {
    /// Asks everybody.
    pub fn new(want: Want) -> Reading {
        Reading { want, answers: Replies::default(), patience: Patience::Unasked, asked: None }
    }

    /// Asks these first.
    pub fn of_some(want: Want, asked: Arc<[NodeId]>) -> Reading {
        Reading { asked: Some(asked), ..Reading::new(want) }
    }

    /// Turns to everybody; returns those asked so far if that was not all.
    pub fn widen(&mut self) -> Option<Arc<[NodeId]>> {
        self.asked.take()
    }

    pub fn want(&self) -> Want {
        self.want
    }

    /// The members asked first, if not all were asked yet.
    pub fn asked(&self) -> Option<&Arc<[NodeId]>> {
        self.asked.as_ref()
    }

    /// How many members have answered with data that counts.
    pub fn answered(&self, view: &View, crashes: &CrashVector) -> usize {
        self.answers.counted(view, crashes).filter(|(_, answer)| answer.is_ready).count()
    }

    /// Whether this member has said all it was asked for.
    pub fn has_answer_of(&self, view: &View, crashes: &CrashVector, node: NodeId) -> bool {
        self.answers.of(view, crashes, node).is_some_and(|answer| {
            answer.is_ready && (self.want != Want::Value || answer.is_complete())
        })
    }

    /// Ends the wait for the remaining replies; returns whether there was one.
    pub fn lose_patience(&mut self) -> bool {
        let was_waiting = self.patience == Patience::Waiting;
        if was_waiting {
            self.patience = Patience::Lost;
        }
        was_waiting
    }

    fn decide(&self, view: &View, crashes: &CrashVector) -> Decision {
        let ready = || self.answers.counted(view, crashes).filter(|(_, answer)| answer.is_ready);
        let (mut count, mut highest) = (0, Head::default());
        for (_, answer) in ready() {
            count += 1;
            if answer.head.ts >= highest.ts {
                highest = answer.head;
            }
        }
        if count < view.majority() {
            return Decision::Wait;
        }
        let (mut holders, mut record) = (0, None);
        for (_, answer) in ready().filter(|(_, answer)| answer.head.ts == highest.ts) {
            holders += 1;
            record = record.or(answer.record.as_ref());
        }
        let record = record.cloned();
        if holders >= view.majority() {
            Decision::Agreed(highest, record)
        } else {
            Decision::Disagreed(highest, record, count == view.members().len())
        }
    }

    /// Whether this member answered that it has something older.
    fn is_behind(&self, view: &View, crashes: &CrashVector, node: NodeId, ts: Ts) -> bool {
        let is_older = |answer: &MemberReply| answer.is_ready && answer.head.ts < ts;
        self.answers.of(view, crashes, node).is_some_and(is_older)
    }

    /// What a write that follows rests on, and the highest floor of the quorum.
    fn basis(&self, view: &View, crashes: &CrashVector, is_imposed: bool) -> (Basis, u64) {
        let ready = self.answers.counted(view, crashes).filter(|(_, answer)| answer.is_ready);
        let (mut generation, mut floor, mut epoch) = (u64::MAX, 0, u64::MAX);
        for (_, answer) in ready {
            epoch = epoch.min(answer.known.epoch);
            generation = match mutant!("basis_of_the_newest") && generation < u64::MAX {
                true => generation.max(answer.known.generation.number),
                false => generation.min(answer.known.generation.number),
            };
            floor = floor.max(answer.known.generation.floor);
        }
        (Basis { generation, is_imposed, epoch }, floor)
    }

    /// The members that hold `ts` already count as having stored it: what a get's reply shows is
    /// durable, and it carries the same view's stamp as an acknowledgement would.
    fn holders_of(&self, ts: Ts, view: &View, crashes: &CrashVector) -> Replies<()> {
        let mut holders = Replies::default();
        let counted = self.answers.counted(view, crashes);
        for (from, _) in counted.filter(|(_, answer)| answer.is_ready && answer.head.ts == ts) {
            holders.keep(view, from, ());
        }
        holders
    }
}

impl MemberReply {
    /// Whether the record is there, or there is none.
    fn is_complete(&self) -> bool {
        self.record.is_some() || self.head.ts == Ts::ZERO
    }
}

impl Linearizable {
    /// A member answered.
    pub(crate) fn on_read_reply(
        &mut self,
        from: Incarnation,
        op: u64,
        stamp: &Stamp,
        head: Head,
        record: Bytes,
        cx: &mut Context<'_>,
    ) {
        if !self.accept(op, from, stamp, cx) {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Read(reading) = &mut operation.phase else { return };
        let writes = matches!(operation.ask, Intent::Put(_) | Intent::Delete);
        invariant!(writes == (reading.want == Want::Counter), "who writes asks for counters");
        let record = (!record.is_empty()).then(|| Record::stored(record));
        let head = record.as_ref().map_or(head, Record::head);
        let is_ready = stamp.standing == Standing::Ready;
        if let Some(trail) = &mut operation.trail {
            trail.reply(cx.now, from.node, stamp, head);
        }
        let answer = MemberReply { is_ready, known: stamp.known, head, record };
        let is_kept = reading.answers.keep(&operation.view, from, answer);
        invariant!(is_kept, "a reply counts only if it is a member's");
        if !is_ready && reading.widen().is_some() {
            self.volatile.preference.note_late(from.node, cx.now);
            self.ask_missing(op, cx);
        }
        self.advance_read(op, cx);
    }

    /// Goes on with a read phase if its replies allow it.
    pub(crate) fn advance_read(&mut self, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Read(reading) = &operation.phase else { return };
        let decision = reading.decide(&operation.view, &self.volatile.crashes);
        match (&operation.ask, decision) {
            (_, Decision::Wait) => {}
            (Intent::Get, Decision::Agreed(head, record)) => {
                let is_presence = matches!(operation.asker, Asker::Scan(_));
                let (view, crashes) = (&operation.view, &self.volatile.crashes);
                let is_behind = |_: &&Record| reading.is_behind(view, crashes, cx.me.node, head.ts);
                if let Some(missed) = record.as_ref().filter(is_behind) {
                    let (basis, _) = reading.basis(view, crashes, true);
                    let (view, key, missed) = (view.id, operation.key.clone(), missed.clone());
                    self.catch_up(view, &key, (missed, &basis), cx);
                }
                let value = match is_presence {
                    true => Some(head.live.then(Bytes::new)),
                    false => value_of(head, record),
                };
                if let Some(value) = value {
                    self.volatile.counters.reads_in_one_round += 1;
                    self.finish(op, Outcome::value(value), cx);
                } else {
                    self.fetch(op, cx);
                }
            }
            (Intent::Get, Decision::Disagreed(head, record, is_final)) => {
                self.settle_read(op, head, record, is_final, cx);
            }
            (Intent::Delete, Decision::Agreed(Head { ts: Ts::ZERO, .. }, _)) => {
                // A majority never saw a write of the key: there is nothing to delete, and nothing
                // whose durability an answer could depend on.
                self.finish(op, Outcome::deleted(false), cx);
            }
            (_, Decision::Agreed(head, _) | Decision::Disagreed(head, ..)) => {
                let crashes = &self.volatile.crashes;
                let (basis, floor) = reading.basis(&operation.view, crashes, false);
                self.write_above(op, head, (basis, floor), cx);
            }
        }
    }

    /// A get whose quorum disagrees: wait a moment for the rest, then impose the newest record.
    fn settle_read(
        &mut self,
        op: u64,
        head: Head,
        record: Option<Record>,
        is_final: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        if self.settings.mode == crate::linearizable::Mode::Eventual {
            // One phase: whoever answered first decides, and nothing is imposed (CATS §6.4).
            return match value_of(head, record) {
                Some(value) => self.finish(op, Outcome::value(value), cx),
                None => self.fetch(op, cx),
            };
        }
        let Phase::Read(reading) = &mut operation.phase else { return };
        if !is_final && reading.patience != Patience::Lost {
            if reading.patience == Patience::Unasked {
                reading.patience = Patience::Waiting;
                if reading.widen().is_some() {
                    probe!("linearizable/widen_on_disagreement");
                    self.ask_missing(op, cx);
                }
                self.wake_after(op, PATIENCE, cx);
            }
            return;
        }
        let Some(record) = record else { return self.fetch(op, cx) };
        if mutant!("skip_write_back") {
            return self.finish(op, Outcome::value(record.value()), cx);
        }
        let acks = reading.holders_of(head.ts, &operation.view, &self.volatile.crashes);
        let (basis, _) = reading.basis(&operation.view, &self.volatile.crashes, true);
        self.volatile.counters.write_backs += 1;
        probe!("linearizable/write_back");
        self.write(op, record, basis, acks, cx);
    }

    /// The timestamps are known, the value is not: ask for it.
    fn fetch(&mut self, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Read(reading) = &mut operation.phase else { return };
        if reading.want == Want::Value {
            // It was asked for; the holders' answers are on their way, or the alarm repeats.
            return;
        }
        reading.want = Want::Value;
        reading.asked = None;
        self.volatile.counters.fetches += 1;
        probe!("linearizable/fetch");
        self.ask_all(op, cx);
    }
}

/// The value that a majority agreed on, if it is known: an absent key and a tombstone have none.
fn value_of(head: Head, record: Option<Record>) -> Option<Option<Bytes>> {
    match record {
        Some(record) => Some(record.value()),
        None if !head.live => Some(None),
        None => None,
    }
}
