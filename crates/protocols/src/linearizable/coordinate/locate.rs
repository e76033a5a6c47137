//! Finding the replicas of a position of which no view is known, or only one that nobody answers
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
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, UNROUTED_MAX};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::View;

/// How often a position is asked for again.
const ASK_EVERY: Span = Span::millis(50);

/// One operation that waits for a view.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    request: Request,
    trail: Option<Box<Trail>>,
    position: u64,
}

/// Operations whose replicas are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Unrouted {
    waiting: VecDeque<Waiting>,
    /// When somebody was last asked about a position whose view seems out of date.
    asked: Option<Time>,
}

impl Linearizable {
    /// Keeps a request until a view of its position is known.
    pub(crate) fn locate(
        &mut self,
        ticket: Ticket,
        request: Request,
        trail: Option<Box<Trail>>,
        position: u64,
        cx: &mut Context<'_>,
    ) {
        if self.volatile.unrouted.waiting.len() >= UNROUTED_MAX {
            // Nothing was begun.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Overloaded));
        }
        probe!("linearizable/locate");
        let waiting = Waiting { ticket, request, trail, position };
        self.volatile.unrouted.waiting.push_back(waiting);
        self.ask_where(position, cx);
        cx.fx.arm(Timer::Locate, cx.now + ASK_EVERY);
    }

    /// Time has passed: those who wait too long are refused, for the others it is asked again.
    pub(crate) fn on_locate_timer(&mut self, cx: &mut Context<'_>) {
        let waiting = core::mem::take(&mut self.volatile.unrouted.waiting);
        let mut positions = BTreeSet::new();
        for one in waiting {
            if cx.now >= one.request.deadline {
                // Nothing was begun.
                cx.fx.answer_early(one.ticket, Outcome::Refused(Refusal::NoRoute));
            } else {
                positions.insert(one.position);
                self.volatile.unrouted.waiting.push_back(one);
            }
        }
        for position in positions.into_iter().take(GROUP_MEMBERS_MAX) {
            self.ask_where(position, cx);
        }
        if !self.volatile.unrouted.waiting.is_empty() {
            cx.fx.arm(Timer::Locate, cx.now + ASK_EVERY);
        }
    }

    /// Asks about a position whose view seems out of date, not too often.
    pub(crate) fn seek_news(&mut self, position: u64, cx: &mut Context<'_>) {
        let last = self.volatile.unrouted.asked;
        if last.is_none_or(|last| cx.now >= last + ASK_EVERY) {
            self.volatile.unrouted.asked = Some(cx.now);
            self.ask_where(position, cx);
        }
    }

    /// Asks the hosts that should hold a position, and one more at random.
    fn ask_where(&mut self, position: u64, cx: &mut Context<'_>) {
        let Some(ring) = &self.volatile.ring else { return };
        let mut asked: BTreeSet<NodeId> =
            placement::desired(ring, position, GROUP_MEMBERS_MAX).into_iter().collect();
        let hosts = ring.hosts();
        if !hosts.is_empty() {
            asked.insert(hosts[cx.rng.below(hosts.len() as u64) as usize].who.node);
        }
        for node in asked.into_iter().filter(|node| *node != cx.me.node) {
            // A question promises nothing.
            cx.fx.send_early(node, Message::LocateA { position });
        }
    }

    /// A node asks who holds a position.
    pub(crate) fn on_locate(&mut self, from: Incarnation, position: u64, cx: &mut Context<'_>) {
        if let Some(view) = self.volatile.routes.find(position) {
            // A hint; whoever follows it meets the members' own stamps.
            cx.fx.send_early(from, Message::LocateB { view: View::clone(view) });
        }
    }

    /// Somebody answers where a position is.
    pub(crate) fn on_located(&mut self, from: Incarnation, view: View, cx: &mut Context<'_>) {
        self.outpaced(from, &view, cx);
        self.learn(&Arc::new(view), cx);
    }

    /// Takes in a view that somebody told of.
    pub(crate) fn learn(&mut self, view: &Arc<View>, cx: &mut Context<'_>) {
        if !self.volatile.routes.learn(view) || self.volatile.unrouted.waiting.is_empty() {
            return;
        }
        let waiting = core::mem::take(&mut self.volatile.unrouted.waiting);
        for one in waiting {
            if view.range.contains(one.position) {
                self.begin(one.ticket, one.request, one.trail, cx);
            } else {
                self.volatile.unrouted.waiting.push_back(one);
            }
        }
    }
}
