//! The engine as a process: the one match on inputs.

use super::coordinator::Phase;
use super::message::Message;
use super::record::Head;
use super::state::{Durable, Status, Volatile};
use super::timer::Timer;
use super::{Context, Linearizable, Settings};
use crate::quorum::CrashVector;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::view::View;

impl Linearizable {
    /// The engine before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Linearizable {
        let view = Arc::new(settings.first_view.clone());
        let durable = Durable {
            view: Arc::clone(&view),
            status: Status::Ready,
            crashes: CrashVector::default(),
            lost: Vec::new(),
        };
        Linearizable { settings, durable, volatile: Volatile::new(view) }
    }
}

impl Process for Linearizable {
    type Message = Message;
    type Timer = Timer;

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.recover(recovery, cx);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::ReadA { op, view, want, key } => self.on_read(from, (op, view, want), key, cx),
            Message::ReadB { op, stamp, ts, live, record } => {
                self.on_read_reply(from, op, &stamp, Head { ts, live }, record, cx);
            }
            Message::WriteA { op, view, key, record } => {
                self.on_write(from, op, view, (key, record), cx);
            }
            Message::WriteB { op, view, ok, stamp } => {
                self.on_write_reply(from, op, view, ok, &stamp, cx);
            }
            Message::PageA { op, view, from: begin, limit } => {
                self.on_page(from, (op, view), begin, limit, cx);
            }
            Message::PageB { op, stamp, next, page } => {
                self.on_page_reply(from, op, &stamp, next, page, cx);
            }
            Message::RefillA { round, view, forgot, from: begin } => {
                self.on_refill(from, (round, view, forgot), begin, cx);
            }
            Message::RefillB { round, stamp, from: begin, next, lost, page } => {
                self.on_refill_reply(from, (round, &stamp), (begin, next), lost, page, cx);
            }
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.begin(ticket, request, cx);
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Operations => self.on_alarm(cx),
            Timer::Refill => self.on_refill_timer(cx),
        }
    }

    fn on_view(&mut self, view: &Arc<View>, cx: &mut Context<'_>) {
        self.on_decided(view, cx);
    }

    fn is_ready(&self) -> bool {
        self.durable.status == Status::Ready
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        let counters = &self.volatile.counters;
        into.field("view", &self.durable.view.id.version);
        into.field("members", &self.durable.view.members().len());
        into.field("ready", &self.is_ready());
        into.field("operations", &self.volatile.operations.len());
        into.field("reads_in_one_round", &counters.reads_in_one_round);
        into.field("write_backs", &counters.write_backs);
        into.field("fetches", &counters.fetches);
        into.field("queries", &counters.queries);
        into.field("writes", &counters.writes);
        into.field("pages", &counters.pages);
        into.field("retries", &counters.retries);
        into.field("expired", &counters.expired);
        into.field("retargets", &counters.retargets);
        if let Some(refill) = &self.volatile.refill {
            into.field("refill_sources_done", &refill.done());
            into.field("refill_sources", &refill.sources());
        }
    }

    fn check(&self) {
        self.check_state();
    }
}

const _: () = assert!(size_of::<Message>() <= 192, "messages move through the effects list");
const _: () = assert!(size_of::<Phase>() <= 1400, "operations stay small enough to keep many");
