//! The catalog as a process: the one match on inputs.

use super::message::Message;
use super::state::State;
use super::timer::Timer;
use super::{CatalogLane, Context, Settings};
use crate::reconfigure::Ground;
use alloc::vec;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::part::{Holds, Part};
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::time::Time;

impl CatalogLane {
    /// The catalog before its start.
    #[must_use]
    pub fn new(settings: Settings) -> CatalogLane {
        CatalogLane { settings, state: State::new(Incarnation::default(), Default::default()) }
    }
}

impl Process for CatalogLane {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::Ring, Topic::Settled];

    fn start(&mut self, _recovery: Recovery, cx: &mut Context<'_>) {
        // All that it stores is protocol state, which no durability level forgets.
        self.recover(cx);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        self.note_there(from.node, cx);
        match message {
            Message::Decide(message) => self.on_decide(from, *message, cx),
            Message::Length { version, purpose } => self.on_length(from, version, purpose, cx),
            Message::Entries { follows, entries } => self.on_entries(from, follows, &entries, cx),
            Message::Snapshot { catalog } => self.on_snapshot(&catalog, cx),
        }
    }

    fn on_request(&mut self, ticket: Ticket, _request: Request, cx: &mut Context<'_>) {
        // Nothing was done, so nothing need be durable.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            Control::Keyspace(order) => self.on_order(ticket, order, deadline, cx),
            Control::Examine { .. } => cx.fx.answer(ticket, Outcome::parts(self.parts())),
            // Nothing was done, so nothing need be durable.
            _ => cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported)),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Period => self.on_period(cx),
            Timer::Retry => self.on_retry(cx),
            Timer::Deadline => self.on_deadline(cx),
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        match news {
            News::Ring(ring) => self.on_ring(ring),
            News::Settled { lane, partition, since, settlement } => {
                self.on_settled(lane, (partition, since), settlement, cx);
            }
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    /// The system group.
    fn parts(&self) -> Vec<Part> {
        vec![match &self.state.stored.catalog {
            Some(catalog) => {
                let view = catalog.view();
                Part::of_group(view, view.majority(), |_| Holds::Recorded)
            }
            None => Part::unknown(),
        }]
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        let state = &self.state;
        into.field("decrees", &state.version());
        into.field("decrees_kept", &state.stored.entries.len());
        into.field("orders_waiting", &(state.waiting.len() + usize::from(state.running.is_some())));
        into.field("snapshots", &state.snapshots);
        let Some(catalog) = &state.stored.catalog else { return };
        into.field("members", &catalog.view().members().len());
        into.field("keyspaces", &catalog.keyspaces().len());
        for member in catalog.view().members() {
            into.row("members", &[("node", member)]);
        }
    }

    fn check(&self) {
        self.state.check();
    }
}

const _: () = assert!(size_of::<Message>() <= 64, "messages move through the effects list");
