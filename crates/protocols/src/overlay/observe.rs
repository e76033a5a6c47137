//! Peers that lanes of this node observe, each as often as the lanes say.

use super::message::Message;
use super::timer::Timer;
use super::{Context, Overlay};
use crate::detector::observe::Silence;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId};
use quorate_kernel::observe::{Every, Observation};
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Time;

impl Overlay {
    /// A lane says whom it observes from now on.
    pub(super) fn on_observe(
        &mut self,
        lane: LaneId,
        observation: &Observation,
        cx: &mut Context<'_>,
    ) {
        let state = &mut self.state;
        let (before, hosts, me) = (state.observer.every(), &state.hosts, cx.me.node);
        let is_known = |peer| peer != me && hosts.get(peer).is_some();
        let silences = state.observer.ask(lane, observation, is_known, cx.now);
        tell(silences, cx);
        self.observe_from(before, cx);
    }

    /// Hosts have come to be known: of those that lanes observe they are asked from now on.
    pub(super) fn observe_known(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        let (before, hosts, me) = (state.observer.every(), &state.hosts, cx.me.node);
        state.observer.set_known(|peer| peer != me && hosts.get(peer).is_some(), cx.now);
        self.observe_from(before, cx);
    }

    /// Sets the timer, if the shortest period is not what it was.
    fn observe_from(&mut self, before: Option<Every>, cx: &mut Context<'_>) {
        match (before, self.state.observer.every()) {
            (Some(_), None) => cx.fx.disarm(Timer::Observe),
            (None, Some(_)) => cx.fx.arm(Timer::Observe, cx.now),
            (Some(before), Some(every)) if every < before => cx.fx.arm(Timer::Observe, cx.now),
            _ => {}
        }
    }

    /// The shortest period has passed.
    pub(super) fn on_observe_timer(&mut self, cx: &mut Context<'_>) {
        let is_closing = self.state.shutdown.stage() != Closing::No;
        let Some(every) = self.state.observer.every() else { return };
        if is_closing || self.state.is_passive() {
            // Others fall silent now because they were told to; to who has left nobody answers.
            return;
        }
        cx.fx.arm(Timer::Observe, cx.now + every.span());
        let due = self.state.observer.tick(cx.now);
        tell(due.silences, cx);
        if !due.asks.is_empty() {
            let peers: Arc<[NodeId]> = due.asks.into();
            // A question promises nothing.
            self.send_early(&peers, Message::Observe { sent: cx.now.0 }, cx);
        }
    }

    /// A host that was asked answers.
    pub(super) fn on_observed(&mut self, from: Incarnation, sent: Time, cx: &mut Context<'_>) {
        assert!(!self.state.is_passive(), "who has left takes no answer in");
        let silences = self.state.observer.on_answer(from, sent, cx.now);
        assert!(silences.iter().all(|silence| silence.is_over), "an answer ends a silence");
        tell(silences, cx);
    }

    /// A connection has ended: its host may be gone, or be back already.
    pub(super) fn on_unlinked(&mut self, peer: NodeId, cx: &mut Context<'_>) {
        if !self.state.is_passive() && self.state.observer.on_unlinked(peer, cx.now) {
            // A question promises nothing.
            self.send_early(peer, Message::Observe { sent: cx.now.0 }, cx);
        }
    }
}

fn tell(silences: Vec<Silence>, cx: &mut Context<'_>) {
    for Silence { lane, peer, is_over } in silences {
        cx.fx.announce_silence(lane, peer, is_over);
    }
}
