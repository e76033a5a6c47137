//! The lane that tells clients what happens to keyspaces and hosts.
//!
//! **Promise.** Whoever watches is first told what there is, then each change that this node learns
//! of, in the order in which it does. Of keyspaces that is the order of the catalog's decrees, and
//! nothing is told that is not durable here; of changes that this node learnt together it tells the
//! difference, so a keyspace that came and went meanwhile may be left out. What is told of hosts is
//! what the overlay believes: a hint. Two nodes may tell changes of hosts in different orders.
//!
//! **Roles.** One watcher per ticket. The lane stores nothing and sends nothing to other nodes; a
//! restart ends all watches with their connections.
//!
//! ```text
//!  client ── watch ──▶ lane ──▶ More(present ..., current)     once both are known
//!  catalog ── News::Keyspaces ──▶ lane ──▶ More(created, altered, dropped)
//!  overlay ── News::Ring ───────▶ lane ──▶ More(joined, left, suspected, ...)
//!  client ── unwatch ─▶ lane
//! ```
//!
//! **Invariants.** A ticket is there once. At most [`WATCHERS_MAX`] watch. Before both the
//! keyspaces and the ring are known nobody is told anything.

mod seen;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::limits::WATCHERS_MAX;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::{Context, Inspect, Process, Recovery, Request, Timer};
use quorate_kernel::watch::{Event, Watch};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use seen::Seen;

/// The lane.
#[must_use]
pub fn lane() -> Box<dyn Lane> {
    Box::new(Hosted::new(Events::default()))
}

/// What nobody sends: the lane has no peers and no timers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Never {}

impl Wire for Never {
    fn encode(&self, _: &mut Encoder<'_>) {
        match *self {}
    }

    fn decode(_: &Decoder) -> Result<Never, WireError> {
        Err(WireError::Truncated { what: "a message to a lane that takes none" })
    }
}

impl Timer for Never {
    fn code(self) -> u32 {
        match self {}
    }

    fn from_code(_: u32) -> Option<Never> {
        None
    }
}

/// The state: what was seen last, and who watches.
#[derive(Debug, Default)]
pub struct Events {
    seen: Seen,
    watchers: BTreeSet<Ticket>,
}

impl Events {
    fn tell(&self, events: Vec<Event>, cx: &mut Context<'_, Events>) {
        if events.is_empty() {
            return;
        }
        for watcher in &self.watchers {
            // What is told rests on nothing that this lane stores. The catalog announces only what
            // is durable; all else is a hint.
            cx.fx.answer_early(*watcher, Outcome::More(events.clone()));
        }
    }
}

impl Process for Events {
    type Message = Never;
    type Timer = Never;
    const HEARS: &'static [Topic] = &[Topic::Ring, Topic::Keyspaces];

    fn start(&mut self, _: Recovery, _: &mut Context<'_, Events>) {}

    fn on_message(&mut self, _: Incarnation, message: Never, _: &mut Context<'_, Events>) {
        match message {}
    }

    fn on_request(&mut self, ticket: Ticket, _: Request, cx: &mut Context<'_, Events>) {
        // Nothing was done.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
    }

    fn on_watch(&mut self, ticket: Ticket, watch: Watch, cx: &mut Context<'_, Events>) {
        if watch != Watch::Cluster {
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
        }
        if self.watchers.len() >= WATCHERS_MAX {
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Overloaded));
        }
        let is_new = self.watchers.insert(ticket);
        assert!(is_new, "a ticket names one watch");
        if let Some(present) = self.seen.present() {
            // As in `tell`.
            cx.fx.answer_early(ticket, Outcome::More(present));
        }
    }

    fn on_unwatch(&mut self, ticket: Ticket, _: &mut Context<'_, Events>) {
        self.watchers.remove(&ticket);
    }

    fn on_timer(&mut self, timer: Never, _: &mut Context<'_, Events>) {
        match timer {}
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_, Events>) {
        let events = match news {
            News::Keyspaces(keyspaces) => self.seen.on_keyspaces(keyspaces),
            News::Ring(ring) => self.seen.on_ring(ring),
            _ => Vec::new(),
        };
        self.tell(events, cx);
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        into.field("watchers", &self.watchers.len());
    }

    fn check(&self) {
        assert!(self.watchers.len() <= WATCHERS_MAX, "watchers are bounded");
    }
}
