//! Finding the replicas of a token of which no view is known, or only one that nobody answers
//! for: the ring says who should hold it, and whoever is asked tells the newest view it knows.

use super::explain::Trail;
use crate::linearizable::message::Message;
use crate::linearizable::timer::Timer;
use crate::linearizable::{Context, Linearizable};
use crate::placement;
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, UNROUTED_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::View;

/// How often a token is asked for again.
const ASK_EVERY: Span = Span::millis(50);

/// One operation that waits for a view.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    request: Request,
    trail: Option<Box<Trail>>,
    token: u64,
}

/// Operations whose replicas are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Unrouted {
    waiting: VecDeque<Waiting>,
    /// Of the tokens whose views seem out of date: since when questions are counted, and how many
    /// were asked about.
    asked: Option<(Time, usize)>,
}

impl Linearizable {
    /// Keeps a request until a view of its token is known.
    pub(crate) fn locate(
        &mut self,
        ticket: Ticket,
        request: Request,
        trail: Option<Box<Trail>>,
        token: u64,
        cx: &mut Context<'_>,
    ) {
        if self.volatile.unrouted.waiting.len() >= UNROUTED_MAX {
            // Nothing was begun.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Overloaded));
        }
        probe!("linearizable/locate");
        let is_first = self.volatile.unrouted.waiting.is_empty();
        let waiting = Waiting { ticket, request, trail, token };
        self.volatile.unrouted.waiting.push_back(waiting);
        self.ask_where(token, cx);
        // Those that wait already count on the timer as it is.
        if is_first || mutant!("locate_put_off") {
            cx.fx.arm(Timer::Locate, cx.now + ASK_EVERY);
        }
    }

    /// Time has passed: those who wait too long are refused, for the others it is asked again.
    pub(crate) fn on_locate_timer(&mut self, cx: &mut Context<'_>) {
        let waiting = core::mem::take(&mut self.volatile.unrouted.waiting);
        let mut tokens = BTreeSet::new();
        for one in waiting {
            if cx.now >= one.request.deadline {
                // Nothing was begun.
                cx.fx.answer_early(one.ticket, Outcome::Refused(Refusal::NoRoute));
            } else {
                tokens.insert(one.token);
                self.volatile.unrouted.waiting.push_back(one);
            }
        }
        for token in tokens.into_iter().take(GROUP_MEMBERS_MAX) {
            self.ask_where(token, cx);
        }
        if !self.volatile.unrouted.waiting.is_empty() {
            cx.fx.arm(Timer::Locate, cx.now + ASK_EVERY);
        }
    }

    /// Asks about a token whose view seems out of date, not too often.
    pub(crate) fn seek_news(&mut self, token: u64, cx: &mut Context<'_>) {
        let asked = self.volatile.unrouted.asked.filter(|(since, _)| cx.now < *since + ASK_EVERY);
        let (since, count) = asked.unwrap_or((cx.now, 0));
        if count < GROUP_MEMBERS_MAX {
            self.volatile.unrouted.asked = Some((since, count + 1));
            self.ask_where(token, cx);
        }
    }

    /// Asks the hosts that should hold a token, and one more at random.
    fn ask_where(&mut self, token: u64, cx: &mut Context<'_>) {
        let Some(ring) = &self.volatile.ring else { return };
        let mut asked: BTreeSet<NodeId> =
            placement::desired(ring, token, GROUP_MEMBERS_MAX).into_iter().collect();
        let hosts = ring.hosts();
        if !hosts.is_empty() {
            asked.insert(hosts[cx.rng.below(hosts.len() as u64) as usize].who.node);
        }
        for node in asked.into_iter().filter(|node| *node != cx.me.node) {
            // A question promises nothing.
            cx.fx.send_early(node, Message::LocateA { token });
        }
    }

    /// A node asks who holds a token.
    pub(crate) fn on_locate(&mut self, from: Incarnation, token: u64, cx: &mut Context<'_>) {
        if let Some(view) = self.volatile.routes.find(token) {
            invariant!(view.range.contains(token), "a route leads to who has the token");
            invariant!(!view.members().is_empty(), "a route leads to somebody");
            // A hint; whoever follows it meets the members' own stamps.
            cx.fx.send_early(from, Message::LocateB { view: View::clone(view) });
        }
    }

    /// Somebody answers where a token is.
    pub(crate) fn on_located(&mut self, from: Incarnation, view: View, cx: &mut Context<'_>) {
        let (id, before) = (view.id, self.progress(view.id));
        self.outpaced(from, &view, cx);
        invariant!(before.is_behind(self.progress(id)), "no group goes back");
        self.learn(&Arc::new(view), cx);
        let waiting = self.volatile.unrouted.waiting.len();
        invariant!(waiting <= UNROUTED_MAX, "who waits for a view is bounded");
    }

    /// Takes in a view that somebody told of.
    pub(crate) fn learn(&mut self, view: &Arc<View>, cx: &mut Context<'_>) {
        if !self.volatile.routes.learn(view) || self.volatile.unrouted.waiting.is_empty() {
            return;
        }
        let waiting = core::mem::take(&mut self.volatile.unrouted.waiting);
        for one in waiting {
            if view.range.contains(one.token) {
                self.begin(one.ticket, one.request, one.trail, cx);
            } else {
                self.volatile.unrouted.waiting.push_back(one);
            }
        }
    }
}
