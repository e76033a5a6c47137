//! The overlay as a process: the one match on inputs.

use super::message::Message;
use super::state::State;
use super::timer::Timer;
use super::{Context, Overlay, Settings};
use crate::gossip::record::Load;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use quorate_kernel::ids::{Incarnation, LaneId, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::ring::{Standing, Weighed};
use quorate_kernel::time::Time;

impl Overlay {
    /// The overlay before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Overlay {
        let state = State::new(Incarnation::default(), Time(0));
        Overlay { settings, state, load: Load::default(), lanes: BTreeMap::new() }
    }

    /// Says how much this host has to do. It is told to others in steps, not at every change.
    pub fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    /// Takes in what one lane has to do; the host has what all of them have.
    fn sum_load(&mut self, lane: LaneId, load: &Arc<Weighed>) {
        self.lanes.insert(lane, Arc::clone(load));
        let sum = |total: Load, lane: &Arc<Weighed>| Load {
            keys: total.keys.saturating_add(lane.load.keys),
            bytes: total.bytes.saturating_add(lane.load.bytes),
            operations: total.operations.saturating_add(lane.load.operations),
        };
        self.set_load(self.lanes.values().fold(Load::default(), sum));
    }
}

impl Process for Overlay {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::Heard, Topic::Load, Topic::Observe, Topic::Unlinked];

    fn start(&mut self, _recovery: Recovery, cx: &mut Context<'_>) {
        // All that it stores is protocol state, which no durability level forgets.
        self.recover(cx);
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        match news {
            News::Heard(heard) => {
                for (from, at) in heard {
                    self.state.detector.on_heard(*from, *at);
                    self.state.observer.on_heard(*from, *at);
                }
            }
            News::Observe { lane, observation } => self.on_observe(lane, observation, cx),
            News::Unlinked(peer) => self.on_unlinked(peer, cx),
            News::Load { lane, load } => {
                self.sum_load(lane, load);
                if self.settings.balance.is_some() {
                    self.weigh(cx);
                }
            }
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        if !self.admit(from, &message, cx) {
            return;
        }
        match message {
            Message::Shuffle { entries } => self.on_shuffle(from, entries, cx),
            Message::ShuffleReply { entries } => self.state.cyclon.on_reply(from.node, entries),
            Message::News { news } => self.on_news(from, &news, cx),
            Message::Digest { sum } => self.on_digest(from, sum, cx),
            Message::Buckets { sums } => self.on_buckets(from, &sums, cx),
            Message::Versions { buckets, seen } => self.on_versions(from, buckets, &seen, cx),
            Message::Want { nodes } => self.on_want(from, &nodes, cx),
            Message::Missing { news } => self.on_missing(from, &news, cx),
            Message::Ping { sent } => self.send(from, Message::Pong { sent }, cx),
            Message::Pong { sent } => self.on_pong(from, Time(sent), cx),
            Message::Stabilize { asks } => self.on_stabilize(from, &asks, cx),
            Message::Neighbours { answers } => self.on_neighbours(from, &answers),
            Message::Lookup { news, hops } => self.on_lookup(*news, hops, cx),
            Message::Close { is_over } => self.on_close(from, is_over, cx),
            Message::Closing { stage } => self.on_closing(from, stage, cx),
            Message::Weights { words } => self.on_weights(words, cx),
            Message::Observe { sent } => {
                // It says that this host runs and hears, and promises nothing: an answer that
                // waited for its disk would make it silent.
                self.send_early(from, Message::Observed { sent }, cx);
            }
            Message::Observed { sent } => self.on_observed(from, Time(sent), cx),
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
        _deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            Control::Shutdown => self.order_shutdown(ticket, cx),
            Control::Idle => self.on_idle(cx),
            _ => self.order(ticket, &control, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Period => self.on_period(cx),
            Timer::Rumours => self.on_round(cx),
            Timer::Announce => self.on_announce(cx),
            Timer::Shutdown => self.on_shutdown_timer(cx),
            Timer::Observe => self.on_observe_timer(cx),
        }
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        let (state, counters) = (&self.state, &self.state.counters);
        let count = |standing: Standing| {
            state.hosts.iter().filter(|news| news.record.standing == standing).count()
        };
        into.field("hosts", &state.hosts.len());
        into.field("up", &count(Standing::Up));
        into.field("leaving", &count(Standing::Leaving));
        into.field("left", &count(Standing::Left));
        let suspected = state.hosts.iter().filter(|news| news.suspected_by.is_some());
        into.field("suspected", &suspected.count());
        into.field("watched", &state.detector.watched().len());
        let (observed, silent) = state.observer.counts();
        into.field("observed", &observed);
        into.field("observed_silent", &silent);
        into.field("cyclon_view", &state.cyclon.view().len());
        into.field("rumours_hot", &state.rumours.len());
        into.field("messages_sent", &counters.messages_sent);
        into.field("pings_sent", &counters.pings_sent);
        into.field("suspicions", &counters.suspicions);
        into.field("refutations", &counters.refutations);
        into.field("unifications", &state.unification.begun());
        into.field("pauses", &counters.pauses);
        into.field("clones", &counters.clones);
        into.field("hosts_refused", &state.hosts.refused());
        into.field("tokens_moved", &state.known.moves);
        let is_pending = self.settings.balance.is_some() && !state.known.is_content;
        into.field("hosts_weighed", &state.known.heard);
        into.field("balance_pending", &u8::from(is_pending));
        for news in state.hosts.iter() {
            let record = &news.record;
            let standing = match record.standing {
                Standing::Up => "up",
                Standing::Leaving => "leaving",
                Standing::Left => "left",
            };
            into.row(
                "hosts",
                &[
                    ("node", &record.who.node),
                    ("start", &record.who.start.0),
                    ("address", &record.address),
                    ("zone", &record.zone),
                    ("standing", &standing),
                    ("suspected", &news.suspected_by.is_some()),
                    ("tokens", &record.tokens.len()),
                    ("keys", &record.load.keys),
                    ("bytes", &record.load.bytes),
                    ("operations", &record.load.operations),
                ],
            );
        }
    }

    fn check(&self) {
        self.check_state();
    }
}

const _: () = assert!(size_of::<Message>() <= 64, "messages move through the effects list");
