//! What clients are told of what they follow, gathered while one message of the primary is heard.
//!
//! All of a message that is for one client goes to it at once, however many changes there are: a
//! client that takes what it is told has room for it. It goes before the next answer to that
//! client, which may show it, and before its connection ends.

use crate::coordination::{Context, Coordination};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Outcome;
use quorate_kernel::tree::{Changed, SessionEvent};
use quorate_kernel::watch::Event;

/// Changes that clients are to be told of, in their order.
#[derive(Debug, Default)]
pub struct Events(BTreeMap<Ticket, Vec<Event>>);

impl Events {
    /// One more.
    pub(super) fn add(&mut self, (client, changed): (Ticket, Changed)) {
        let event = Event::Session(SessionEvent::Changed(changed));
        self.0.entry(client).or_default().push(event);
    }

    /// Whether all were told.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Coordination {
    /// Tells a client what was gathered for it. It rests on what a majority has: nothing waits for
    /// this node's disk.
    pub(super) fn tell_events(&mut self, client: Ticket, cx: &mut Context<'_>) {
        if let Some(events) = self.gateway.events.0.remove(&client) {
            cx.fx.answer_early(client, Outcome::More(events));
        }
    }

    /// Tells all clients.
    pub(super) fn tell_all_events(&mut self, cx: &mut Context<'_>) {
        for (client, events) in core::mem::take(&mut self.gateway.events).0 {
            cx.fx.answer_early(client, Outcome::More(events));
        }
    }
}
