//! Operations in hand: their phases, alarms and deadlines. Any node coordinates for its clients.
//!
//! Coordinator state is kept per operation, never per key: two operations on one key at one
//! coordinator know nothing of each other (CATS, Algorithm 4 keys it by key and so mixes them).

use super::examine::Examining;
use super::explain::{Tells, Trail};
use super::question::question;
use super::read::Reading;
use super::scan::{Paging, Settling};
use crate::linearizable::group::Standing;
use crate::linearizable::message::{Basis, Stamp, Want};
use crate::linearizable::record::Record;
use crate::linearizable::state::Volatile;
use crate::linearizable::{Context, ENGINE, Linearizable};
use crate::quorum::Replies;
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::limits::{KEY_BYTES_MAX, OPERATIONS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Cursor, Operation as Call, Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::View;

/// What a client asked.
#[derive(Debug)]
pub(crate) enum Intent {
    Get,
    Put(Bytes),
    Delete,
    Scan {
        from: Cursor,
        limit: u32,
    },
    /// Who holds the group of a token, and what keeps a host that leaves?
    Examine {
        token: u64,
        leaver: Option<NodeId>,
    },
}

/// Who is told how an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A client, or an operator.
    Client(Ticket),
    /// A scan of this node, by its number: it wants to know whether the key has a value.
    Scan(u64),
}

/// Where an operation stands.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Every operation begins in the largest one.
pub(crate) enum Phase {
    /// Phase 1: collecting timestamps, or the newest record.
    Read(Reading),
    /// Phase 2: storing this record; a reply is an acknowledgement.
    Write { record: Record, basis: Basis, acks: Replies<()> },
    /// Collecting pages of a scan.
    Page(Paging),
    /// Reading those keys of a page on which its members disagree.
    Settle(Settling),
    /// Collecting what members say of a host that leaves, and that host itself.
    Examine(Examining),
}

/// One operation.
#[derive(Debug)]
pub(crate) struct Operation {
    pub asker: Asker,
    pub ask: Intent,
    /// The stored form of the key; empty for a scan.
    pub key: Bytes,
    pub phase: Phase,
    /// The view that the present phase aims at; only replies stamped with it count.
    pub view: Arc<View>,
    pub deadline: Time,
    /// When the present phase began, or moved to the view it aims at.
    pub since: Time,
    /// How long to wait before the next repetition.
    pub retry: Span,
    /// The one alarm that is not stale.
    pub alarm: Time,
    /// Whether the read phase of a delete saw a value.
    pub existed: bool,
    /// Whether a question was repeated: its answers say nothing of the round trip.
    pub is_repeated: bool,
    /// What happened, if somebody wants to know.
    pub trail: Option<Box<Trail>>,
}

impl Operation {
    /// The token that the operation is about.
    pub fn token(&self) -> u64 {
        match self.ask {
            Intent::Scan { ref from, .. } => from.token,
            Intent::Examine { token, .. } => token,
            _ => crate::linearizable::keys::token_of(&self.key),
        }
    }
}

impl Linearizable {
    /// A client asks.
    pub(crate) fn begin(
        &mut self,
        ticket: Ticket,
        request: Request,
        trail: Option<Box<Trail>>,
        cx: &mut Context<'_>,
    ) {
        if let Some(refusal) = self.refuse(&request.operation) {
            // A refusal promises nothing: nothing was begun.
            return cx.fx.answer_early(ticket, Outcome::Refused(refusal));
        }
        let token = match &request.operation {
            Call::Get { key, .. } | Call::Put { key, .. } | Call::Delete { key, .. } => {
                self.settings.order.token(key)
            }
            Call::Scan { from, .. } => from.token,
            Call::Transact { .. } | Call::Tree(_) | Call::HowEnded { .. } => {
                unreachable!("what the engine cannot do was refused")
            }
        };
        let Some(view) = self.volatile.routes.find(token).cloned() else {
            return self.locate(ticket, request, trail, token, cx);
        };
        let arena = &mut self.volatile.arena;
        let mut data_key = |key: Bytes| arena.join(&[&token.to_be_bytes(), &key]);
        let leaver = match trail.as_ref().map(|trail| trail.tells) {
            Some(Tells::Who { leaver }) => Some(leaver),
            Some(Tells::How) | None => None,
        };
        let (ask, key) = match (request.operation, leaver) {
            (Call::Scan { .. }, Some(leaver)) => (Intent::Examine { token, leaver }, Bytes::new()),
            (Call::Scan { from, limit }, None) => (Intent::Scan { from, limit }, Bytes::new()),
            (Call::Get { key, .. }, _) => (Intent::Get, data_key(key)),
            (Call::Put { key, value, .. }, _) => (Intent::Put(value), data_key(key)),
            (Call::Delete { key, .. }, _) => (Intent::Delete, data_key(key)),
            (Call::Transact { .. } | Call::Tree(_) | Call::HowEnded { .. }, _) => {
                unreachable!("what the engine cannot do was refused")
            }
        };
        self.launch(Asker::Client(ticket), (ask, key), view, request.deadline, trail, cx);
    }

    /// Begins an operation in a view.
    pub(crate) fn launch(
        &mut self,
        asker: Asker,
        (ask, key): (Intent, Bytes),
        view: Arc<View>,
        deadline: Time,
        trail: Option<Box<Trail>>,
        cx: &mut Context<'_>,
    ) {
        let phase = self.first_phase(asker, &ask, &view, cx);
        let retry = self.volatile.rtt.retry();
        let first_alarm =
            if self.settings.ask_majority_first { self.volatile.rtt.widen() } else { retry };
        let id = self.volatile.operations.number();
        let operation = Operation {
            asker,
            ask,
            key,
            phase,
            view,
            deadline,
            since: cx.now,
            retry,
            alarm: cx.now,
            existed: false,
            is_repeated: false,
            trail,
        };
        let first_alarm = self.first_wait(&operation, first_alarm, cx);
        let operations = &mut self.volatile.operations;
        operations.by_id.insert(id, operation);
        operations.set_alarm(id, (cx.now + first_alarm).min(deadline), cx);
        self.ask_all(id, cx);
    }

    fn first_phase(
        &mut self,
        asker: Asker,
        ask: &Intent,
        view: &Arc<View>,
        cx: &Context<'_>,
    ) -> Phase {
        match ask {
            Intent::Scan { .. } => Phase::Page(Paging::default()),
            Intent::Examine { .. } => Phase::Examine(Examining::default()),
            // Values are moved only if they must be imposed.
            Intent::Get if matches!(asker, Asker::Scan(_)) => {
                Phase::Read(Reading::new(Want::Digest))
            }
            Intent::Get => Phase::Read(self.first_reading(self.first_want(view), view, cx)),
            Intent::Put(_) | Intent::Delete => {
                if let Some(phase) = self.eventual_write(ask, cx) {
                    return phase;
                }
                Phase::Read(self.first_reading(Want::Counter, view, cx))
            }
        }
    }

    /// A read phase that asks a majority first, if that is set.
    fn first_reading(&mut self, want: Want, view: &Arc<View>, cx: &Context<'_>) -> Reading {
        if !self.settings.ask_majority_first {
            return Reading::new(want);
        }
        let Volatile { preference, ring, .. } = &mut self.volatile;
        let first = preference.first(view, ring.as_deref(), cx.me.node, cx.now);
        if first.len() < view.members().len() {
            Reading::of_some(want, Arc::clone(first))
        } else {
            Reading::new(want)
        }
    }

    fn refuse(&self, operation: &Call) -> Option<Refusal> {
        if self.volatile.is_closing() {
            return Some(Refusal::Stopping);
        }
        if ENGINE.lacks(operation).is_some() {
            return Some(Refusal::Unsupported);
        }
        if self.volatile.operations.len() >= OPERATIONS_MAX {
            return Some(Refusal::Overloaded);
        }
        let too_large = |what, length, limit| {
            (length > limit).then_some(Refusal::TooLarge { what, length, limit })
        };
        let key = operation.key().and_then(|key| too_large("key", key.len(), KEY_BYTES_MAX));
        key.or_else(|| match operation {
            Call::Put { value, .. } => {
                too_large("value", value.len(), self.settings.value_bytes_max)
            }
            _ => None,
        })
    }

    /// With digests the coordinator's own replica gives the value; it must be one.
    fn first_want(&self, view: &View) -> Want {
        let is_serving = self.group(view.id).is_some_and(|group| group.is_serving());
        if self.settings.digest_reads && is_serving { Want::Digest } else { Want::Value }
    }

    /// Sends the question of the operation's present phase to every member of the view it aims at,
    /// or to those that its read phase asks first.
    ///
    /// Questions leave early: they promise nothing, the members decide what to do with them.
    pub(crate) fn ask_all(&mut self, id: u64, cx: &mut Context<'_>) {
        if let Some(operation) = self.volatile.operations.get_mut(id) {
            let first = match &operation.phase {
                Phase::Read(reading) => reading.asked(),
                Phase::Write { .. } | Phase::Page(_) | Phase::Settle(_) | Phase::Examine(_) => None,
            };
            let to = first.unwrap_or(operation.view.group());
            cx.fx.send_early(to, question(id, operation));
            if let Some(leaver) = operation.silent_leaver() {
                cx.fx.send_early(leaver, question(id, operation));
            }
        }
    }

    /// Sends the question to those members that have not answered it.
    pub(crate) fn ask_missing(&mut self, id: u64, cx: &mut Context<'_>) {
        let crashes = &self.volatile.crashes;
        let Some(operation) = self.volatile.operations.by_id.get(&id) else { return };
        let view = &operation.view;
        for node in view.members().iter().copied().chain(operation.silent_leaver()) {
            let is_answered = match &operation.phase {
                Phase::Read(reading) => reading.has_answer_of(view, crashes, node),
                Phase::Write { acks, .. } => acks.of(view, crashes, node).is_some(),
                Phase::Page(paging) => paging.replies.of(view, crashes, node).is_some(),
                Phase::Examine(examining) => examining.replies.of(view, crashes, node).is_some(),
                Phase::Settle(_) => true,
            };
            if !is_answered {
                cx.fx.send_early(node, question(id, operation));
            }
        }
    }

    /// Begins the operation's next phase: its replies are collected anew.
    pub(crate) fn enter(&mut self, id: u64, phase: Phase, cx: &mut Context<'_>) {
        if let Some(operation) = self.volatile.operations.get_mut(id) {
            operation.phase = phase;
            operation.since = cx.now;
        }
    }

    /// Wakes the operation after `span`, or at its deadline if that comes first.
    pub(crate) fn wake_after(&mut self, id: u64, span: Span, cx: &mut Context<'_>) {
        let operations = &mut self.volatile.operations;
        if let Some(operation) = operations.get_mut(id) {
            let at = (cx.now + span).min(operation.deadline);
            operations.set_alarm(id, at, cx);
        }
    }

    /// Ends the operation.
    ///
    /// The answer leaves early: every reply it rests on, this node's own included, left its replica
    /// only when what it shows was durable there.
    pub(crate) fn finish(&mut self, id: u64, outcome: Outcome, cx: &mut Context<'_>) {
        if let Some(operation) = self.volatile.operations.by_id.remove(&id) {
            // What these wait for is no round trip.
            let is_slow = matches!(operation.phase, Phase::Settle(_) | Phase::Examine(_));
            if !operation.is_repeated && !is_slow {
                self.volatile.rtt.observe(cx.now - operation.since);
                self.volatile.serving.observe(cx.now - operation.since, cx.now);
            }
            let token = operation.token();
            let outcome = match operation.trail {
                Some(trail) => trail.explain(&operation.view, token, outcome, cx),
                None => outcome,
            };
            match operation.asker {
                Asker::Client(ticket) => cx.fx.answer_early(ticket, outcome),
                Asker::Scan(scan) => self.on_settled(scan, operation.key, outcome, cx),
            }
        }
    }

    /// Moves an operation to the newest view known, if that is newer than the one it aims at. A
    /// read phase begins anew; a write phase repeats the **same** record: a put that read again
    /// could appear, be overwritten and appear again. Returns the number under which it goes on.
    pub(crate) fn retarget(&mut self, id: u64, cx: &mut Context<'_>) -> Option<u64> {
        let Volatile { operations, routes, .. } = &mut self.volatile;
        let operation = operations.get_mut(id)?;
        if matches!(operation.phase, Phase::Settle(_)) {
            // Its pages are complete; the reads that remain move by themselves.
            return None;
        }
        let route = routes.find(operation.token())?;
        if operation.view.id.version >= route.id.version {
            return None;
        }
        operation.view = Arc::clone(route);
        // Members of the older view may be gone; patience with these has yet to begin.
        operation.since = cx.now;
        if let Some(trail) = &mut operation.trail {
            trail.note(cx.now, None, alloc::format!("moves to view {}", route.id.version));
        }
        match &mut operation.phase {
            Phase::Read(reading) => *reading = Reading::new(reading.want()),
            Phase::Write { .. }
                if mutant!("retry_reads_again") && !matches!(operation.ask, Intent::Get) =>
            {
                operation.phase = Phase::Read(Reading::new(Want::Counter));
            }
            Phase::Write { acks, .. } => *acks = Replies::default(),
            Phase::Page(paging) => *paging = Paging::default(),
            Phase::Examine(examining) => *examining = Examining::default(),
            Phase::Settle(_) => unreachable!("it aims at no view"),
        }
        // No view is named in what the host that leaves says.
        let is_bound = !matches!(operation.phase, Phase::Examine(_));
        let is_bound = is_bound || mutant!("examines_under_one_number");
        let id = if is_bound { id } else { operations.renumber(id, cx) };
        self.volatile.counters.retargets += 1;
        probe!("linearizable/retarget");
        self.ask_all(id, cx);
        Some(id)
    }

    /// Takes in what a reply's stamp says of views and of members that forgot. Returns whether the
    /// reply may count for the operation: it is stamped with the very view the operation aims at.
    /// An operation that aims at an older view than is now known moves on.
    pub(crate) fn accept(
        &mut self,
        id: u64,
        from: Incarnation,
        stamp: &Stamp,
        cx: &mut Context<'_>,
    ) -> bool {
        self.volatile.crashes.merge(&stamp.crashes);
        if let Some(hint) = &stamp.hint {
            self.learn(&Arc::new(View::clone(hint)), cx);
        }
        let Some(operation) = self.volatile.operations.get_mut(id) else { return false };
        let is_member = operation.view.index_of(from.node).is_some();
        if mutant!("count_other_view") && is_member {
            return true;
        }
        // Of a group that was split the stamp still names the view that it was split in.
        if stamp.view != operation.view.id || stamp.standing == Standing::Split {
            probe!("linearizable/reply_of_another_view");
            self.retarget(id, cx);
            return false;
        }
        is_member
    }
}
