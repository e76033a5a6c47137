//! The engine as a process: the one match on inputs.

use super::coordinate::seen::Seen;
use super::map::Map;
use super::message::{Message, TellContext};
use super::state::{Durable, Volatile};
use super::timer::Timer;
use super::{Causal, Context, ENGINE, Settings};
use crate::dots::context::CausalContext;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::WriteName;

impl Causal {
    /// The engine before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Causal {
        if let Some(problem) = settings.problem() {
            panic!("{problem}");
        }
        let (durable, volatile) = (Durable::default(), Volatile::default());
        Causal { settings, me: None, durable, volatile }
    }
}

impl Process for Causal {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::Keyspace, Topic::TurnEnd];

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.me = Some(cx.me);
        self.recover(recovery, cx);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        self.note_answer(from, &message, cx.now);
        match message {
            Message::ReadA { op, key } => self.on_read(from, op, &key, cx),
            Message::ReadB { op, partition, is_serving, object } => {
                self.on_read_reply(from, (op, partition), is_serving, &object, cx);
            }
            Message::WriteA { op, id, context, is_delete, within_ms, key, value } => {
                let value = (!is_delete).then_some(value);
                let name = WriteName { id, age: Span(0) };
                self.on_forwarded(from, (op, name), seen(context), (&key, value), within_ms, cx);
            }
            Message::WriteAgainA { age_ms, op, id, context, within_ms, key, value } => {
                // One that was sent before is never taken for one that was not.
                let name = WriteName { id, age: Span::millis(u64::from(age_ms).max(1)) };
                let (seen, value) = (seen(context), Some(value));
                self.on_forwarded(from, (op, name), seen, (&key, value), within_ms, cx);
            }
            Message::WriteSeenA {
                names,
                age_ms,
                op,
                id,
                context,
                is_delete,
                within_ms,
                key,
                value,
            } => {
                let value = (!is_delete).then_some(value);
                let name = WriteName { id, age: Span::millis(u64::from(age_ms)) };
                let seen = Seen::new(context.into_iter().collect(), names);
                self.on_forwarded(from, (op, name), seen, (&key, value), within_ms, cx);
            }
            Message::WriteB { op, ending } => self.on_forward_reply(from, op, ending, cx),
            Message::Replicate { op, from: actor, dots, key, object } => {
                self.on_replicate(from, (op, actor), &dots, (&key, &object), cx);
            }
            Message::HandOver { op, from: actor, dots, key, object } => {
                self.on_hand_over(from, (op, actor), &dots, (&key, &object), cx);
            }
            Message::Replicated { op, partition } => self.on_replicated(op, partition, cx),
            Message::SyncA { pair, clock, window, all } => {
                self.on_sync(from, pair, (&clock.clock(), window, all), cx);
            }
            Message::SyncB { pair, to, clock, is_joined, covers, wants, page } => {
                let said = (is_joined, covers, wants);
                self.on_sync_reply(from, (pair, to), (&clock.clock(), page), said, cx);
            }
            Message::ScanA { pair, step, key } => self.on_scan(from, pair, step, &key, cx),
            Message::ScanB { pair, to, step, clock, page, next } => {
                let told = (&clock.clock(), page, next.into());
                self.on_scan_reply(from, (pair, to), step, told, cx);
            }
            Message::MapA { version } => self.on_map_asked(from, version, cx),
            Message::MapB { map } => self.take_map(map, cx),
            Message::LeftA { actor } => self.on_left(from, actor, cx),
            Message::LeftB { actor, map } => {
                self.on_left_noted(from.node, (actor, map), cx);
            }
            Message::ListA { op, from: hash, limit } => self.on_list(from, op, (hash, limit), cx),
            Message::ListB { op, next, keys } => self.on_listed(op, next, &keys, cx),
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.begin(ticket, request, cx);
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        _deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            // What the catalog decided is all there is to know of it.
            Control::Examine { .. } => cx.fx.answer(ticket, Outcome::parts(self.parts())),
            Control::Explain { .. }
            | Control::Drain { .. }
            | Control::Remove { .. }
            | Control::Shutdown
            | Control::Idle
            | Control::Keyspace(_) => {
                // Nothing was done.
                cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Operations => self.on_alarms(cx),
            Timer::Sync => self.on_sync_time(cx),
            Timer::Strip => self.on_strip_time(cx),
            Timer::StripMore => self.on_strip_more(cx),
            Timer::Sweep => self.sweep(cx),
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        match news {
            News::Keyspace(keyspace) => {
                self.volatile.record = Some(Arc::clone(keyspace));
                self.alter(keyspace);
                self.note_former_of(keyspace);
                self.take_map(Map::of(keyspace), cx);
                self.owe(keyspace, cx);
            }
            News::TurnEnd => self.write_dots(cx),
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn parts(&self) -> Vec<Part> {
        let record = self.volatile.record.as_ref();
        let mut parts = record.map_or(Vec::new(), |record| record.parts(ENGINE.quorum));
        let is_ready =
            self.durable.map.is_some() && self.volatile.is_settled && self.has_refilled();
        if !is_ready && parts.is_empty() {
            parts.push(Part::unknown());
        }
        parts.iter_mut().for_each(|part| part.owes = !is_ready);
        parts
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.show(into);
    }

    fn check(&self) {
        self.check_state();
    }
}

impl Causal {
    /// Whether what a restart lost is here again.
    fn has_refilled(&self) -> bool {
        self.volatile.has_refilled || mutant!("ready_before_refilled")
    }
}

/// What a client has seen whose context has no names.
fn seen(context: TellContext) -> Seen {
    Seen::from(context.into_iter().collect::<CausalContext>())
}
