//! Shutting a whole cluster down, at one time.
//!
//! The host that an operator asks tells every other one (`Close`), again and again until each has
//! answered (`Closing`). A host that was told begins nothing more for its clients, suspects nobody
//! and proposes no change of a group, but stays a replica, so that what is under way anywhere can
//! end. When everybody is idle, all are told to end; the host that was asked ends last.
//!
//! Nothing of it is stored and nobody can take it back: a host that was told ends, at the latest
//! after [`LIMIT`]. `Close` goes to one start of a host, so that one on its way for long never ends
//! a host that was started again since.
//!
//! A host that cannot be reached is named in the answer. It runs on, and can change its groups if
//! it and others like it are a majority of them: the operator must see to it.

use crate::overlay::message::Message;
use crate::overlay::timer::Timer;
use crate::overlay::{Context, Overlay};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::ring::{Closing, Standing};
use quorate_kernel::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// How often hosts are told again.
const AGAIN: Span = Span::millis(250);
/// How long a host may take to say that it was told, and again to say that it ends.
const PATIENCE: Span = Span::secs(3);
/// How long hosts may take to finish what is under way.
const FINISH: Span = Span::secs(10);
/// After this, a host that was told ends by itself.
const LIMIT: Span = Span::secs(30);

/// How far a host is that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// It begins nothing more.
    Told,
    /// Nothing is under way for its clients.
    Idle,
    /// It syncs and ends.
    Over,
}

/// A shutdown, as one node sees it.
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    stage: Closing,
    told_at: Option<Time>,
    /// Whether its own host has nothing under way for clients.
    is_idle: bool,
    order: Option<Order>,
}

/// What an operator told this node to do.
#[derive(Debug)]
struct Order {
    ticket: Ticket,
    /// When the present half began.
    since: Time,
    /// Whether hosts are told to end.
    is_ending: bool,
    /// What each other host has said.
    hosts: BTreeMap<NodeId, Option<Stage>>,
}

impl Shutdown {
    pub fn stage(&self) -> Closing {
        self.stage
    }

    /// Whether a node that was told ends by itself, one that tells others too.
    fn ends(&self) -> bool {
        let is_told = self.stage != Closing::No || self.order.is_some();
        self.told_at.is_some() || !is_told
    }
}

impl Order {
    /// Whether the present half has come as far as it will.
    fn is_done(&self, is_idle: bool, now: Time) -> bool {
        let waits = |limit: Span| now < self.since + limit;
        let lacks = |stage: Stage| self.hosts.values().any(|said| said.is_some_and(|s| s < stage));
        if self.is_ending {
            return !(lacks(Stage::Over) && waits(PATIENCE));
        }
        let is_silent = self.hosts.values().any(Option::is_none);
        let is_busy = !is_idle || lacks(Stage::Idle);
        !(is_silent && waits(PATIENCE) || is_busy && waits(FINISH))
    }
}

impl Overlay {
    /// An operator has the cluster shut down.
    pub(crate) fn order_shutdown(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        if self.state.shutdown.stage != Closing::No {
            return Self::refuse_shutdown(ticket, cx);
        }
        let me = cx.me.node;
        let others = self
            .state
            .hosts
            .iter()
            .filter(|news| news.node() != me && news.record.standing != Standing::Left);
        let hosts = others.map(|news| (news.node(), None)).collect();
        let order = Order { ticket, since: cx.now, is_ending: false, hosts };
        self.state.shutdown.order = Some(order);
        self.close(Closing::Finishing, cx);
        self.tell_all(cx);
        self.go_on_closing(cx);
    }

    fn refuse_shutdown(ticket: Ticket, cx: &mut Context<'_>) {
        let why = String::from("the cluster is being shut down already, by another order");
        // Nothing was done, so nothing need be durable.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Membership { why }));
    }

    /// From now on this node is at least this far.
    fn close(&mut self, stage: Closing, cx: &mut Context<'_>) {
        let shutdown = &mut self.state.shutdown;
        if shutdown.stage >= stage {
            return;
        }
        shutdown.stage = stage;
        if shutdown.told_at.is_none() {
            shutdown.told_at = Some(cx.now);
            cx.fx.arm(Timer::Shutdown, cx.now + AGAIN);
        }
        self.announce_now(cx);
    }

    /// Tells every host what it has not confirmed.
    fn tell_all(&mut self, cx: &mut Context<'_>) {
        let Some(order) = &self.state.shutdown.order else { return };
        let goal = if order.is_ending { Stage::Over } else { Stage::Idle };
        let behind = order.hosts.iter().filter(|(_, said)| **said < Some(goal));
        let tell = |(node, said): (&NodeId, &Option<Stage>)| {
            let who = self.state.record(*node)?.who;
            let is_over = order.is_ending && said.is_some();
            // One that was never heard of has no start that could be told.
            (who.start != Start(0)).then_some((who, Message::Close { is_over }))
        };
        for (who, message) in behind.filter_map(tell).collect::<Vec<_>>() {
            self.send(who, message, cx);
        }
    }

    /// A host that an operator asked tells this one.
    pub(crate) fn on_close(&mut self, from: Incarnation, is_over: bool, cx: &mut Context<'_>) {
        let before = self.state.shutdown.stage;
        if is_over && let Some(order) = self.state.shutdown.order.take() {
            // Two were asked at one time, and the other one was faster.
            Self::refuse_shutdown(order.ticket, cx);
        }
        self.close(if is_over { Closing::Over } else { Closing::Finishing }, cx);
        let shutdown = &self.state.shutdown;
        invariant!(shutdown.stage >= before, "nobody takes a shutdown back");
        invariant!(shutdown.ends(), "who was told ends by itself");
        let stage = match (shutdown.stage, shutdown.is_idle) {
            (Closing::Over, _) => Stage::Over,
            (_, true) => Stage::Idle,
            (_, false) => Stage::Told,
        };
        self.send(from, Message::Closing { stage }, cx);
    }

    /// A host that was told says how far it is.
    pub(crate) fn on_closing(&mut self, from: Incarnation, stage: Stage, cx: &mut Context<'_>) {
        invariant!(self.state.shutdown.ends(), "who tells others ends by itself");
        let before = self.state.shutdown.stage;
        let Some(order) = &mut self.state.shutdown.order else { return };
        if let Some(said) = order.hosts.get_mut(&from.node) {
            *said = (*said).max(Some(stage));
        }
        self.go_on_closing(cx);
        invariant!(self.state.shutdown.stage >= before, "nobody takes a shutdown back");
    }

    /// The own host has nothing under way for clients.
    pub(crate) fn on_idle(&mut self, cx: &mut Context<'_>) {
        self.state.shutdown.is_idle = true;
        self.go_on_closing(cx);
    }

    pub(crate) fn on_shutdown_timer(&mut self, cx: &mut Context<'_>) {
        let shutdown = &self.state.shutdown;
        if shutdown.stage == Closing::Over {
            return;
        }
        if shutdown.told_at.is_some_and(|told| cx.now >= told + LIMIT) {
            return self.close(Closing::Over, cx);
        }
        cx.fx.arm(Timer::Shutdown, cx.now + AGAIN);
        self.tell_all(cx);
        self.go_on_closing(cx);
    }

    fn go_on_closing(&mut self, cx: &mut Context<'_>) {
        let shutdown = &mut self.state.shutdown;
        let is_idle = shutdown.is_idle;
        let Some(order) = &mut shutdown.order else { return };
        if !order.is_done(is_idle, cx.now) {
            return;
        }
        if !order.is_ending {
            (order.is_ending, order.since) = (true, cx.now);
            self.tell_all(cx);
            return self.go_on_closing(cx);
        }
        let Some(order) = shutdown.order.take() else { return };
        // One that was told ends, whether it has confirmed that too or not.
        let silent = order.hosts.iter().filter(|(_, said)| said.is_none());
        let silent = silent.map(|(node, _)| *node).collect();
        // What the others said is all it rests on.
        cx.fx.answer_early(order.ticket, Outcome::Closed { silent });
        self.close(Closing::Over, cx);
    }
}

const _: () = assert!(LIMIT.0 > FINISH.0 + 2 * PATIENCE.0, "who is told ends when all do");
