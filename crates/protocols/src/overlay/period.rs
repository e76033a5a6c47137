//! What recurs: one timer, and everything counted in its periods.

use super::message::Message;
use super::timer::Timer;
use super::{Context, Overlay};
use crate::detector::{self, Heard, SUSPECT_KEPT};
use crate::gossip::doubts;
use crate::ring::stabilize::{NeighboursReply, NeighboursRequest, SUCCESSORS_WATCHED};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::probe;
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Time;

/// Compare with one random host: each 5 s.
const COMPARE: u64 = 10;
/// Look for another ring: each 10 s.
const UNIFY: u64 = 20;
/// Store what has changed, and tell of a changed load: each 5 s and 10 s.
const STORE: u64 = 10;
const LOAD: u64 = 20;
/// The most records stored in one period.
const STORED_MAX: usize = 256;

impl Overlay {
    pub(super) fn on_period(&mut self, cx: &mut Context<'_>) {
        if self.state.is_passive() {
            return;
        }
        cx.fx.arm(Timer::Period, cx.now + detector::PERIOD);
        if self.state.shutdown.stage() != Closing::No {
            // Others fall silent now because they were told to.
            return;
        }
        self.state.periods += 1;
        let periods = self.state.periods;
        let is_turn = |every: u64, phase: u64| periods % every == phase;
        self.judge_neighbours(cx);
        if !self.state.is_joined {
            self.knock(cx);
        }
        if is_turn(2, 0) {
            self.stabilize(cx);
        } else {
            self.shuffle(cx);
        }
        if is_turn(COMPARE, 1) {
            self.compare(cx);
        }
        if is_turn(STORE, 2) {
            self.store_dirty(cx);
        }
        if is_turn(UNIFY, 3) {
            self.unify(cx);
        }
        if is_turn(LOAD, 4) {
            self.tell_load(cx);
        }
        if let Some(every) = self.look_periods() {
            self.spread_weights(cx);
            if is_turn(every, 5 % every) {
                self.look_at_balance(cx);
            }
        }
    }

    /// Pings the neighbours on the ring, and judges those that are silent.
    fn judge_neighbours(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        if core::mem::take(&mut state.is_watch_old) {
            let hosts = &state.hosts;
            let nodes = state.ring.neighbours(SUCCESSORS_WATCHED);
            let who = |node: NodeId| {
                hosts.get(node).filter(|news| news.is_alive()).map(|news| news.record.who)
            };
            state.detector.watch(nodes.into_iter().filter_map(who), cx.now);
            self.observe_known(cx);
        }
        let state = &mut self.state;
        let due = state.detector.tick(cx.now);
        if due.is_late {
            state.counters.pauses += 1;
            state.doubts.restart(cx.now);
        }
        for who in due.suspects {
            self.suspect(who, cx.me.node, cx);
        }
        for (node, stamp, by) in self.state.doubts.due(cx.now) {
            let Some(record) = self.state.record(node) else { continue };
            if record.stamp() == stamp {
                let who = record.who;
                if self.state.detector.hears(node, cx.now) {
                    self.keep_doubting(who, by, cx);
                } else {
                    self.suspect(who, by, cx);
                }
            }
        }
        if !due.pings.is_empty() {
            let nodes: Arc<[NodeId]> = due.pings.into();
            self.ping(&nodes, cx);
        }
    }

    pub(super) fn on_pong(&mut self, from: Incarnation, sent: Time, cx: &mut Context<'_>) {
        invariant!(!self.state.is_passive(), "who has left takes no answer in");
        let (now, believed) = (cx.now, self.state.hosts.sum());
        if self.state.unification.on_answer(from) {
            self.begin_merging(from, cx);
        }
        match self.state.detector.on_pong(from, sent, now) {
            Heard::Nothing | Heard::Alive => {}
            Heard::Restored => {
                let known = self.state.hosts.get(from.node);
                if known.is_some_and(|news| news.record.who == from && !news.is_alive()) {
                    // Only the suspect itself can say that it lives: it is told, and refutes.
                    self.tell_suspect(from, cx);
                } else {
                    self.state.detector.on_refuted(from, now);
                }
            }
            Heard::Restarted => {}
        }
        if self.state.record(from.node).is_some_and(|record| record.who.start < from.start) {
            // The restarted host tells of itself; what is missed of that is asked for.
            self.send(from, Message::Digest { sum: self.state.hosts.sum() }, cx);
        }
        invariant!(self.state.hosts.sum() == believed, "only a host's own word ends a suspicion");
    }

    /// Others suspect a host that answers this one's own pings. It is told until it refutes, and
    /// not suspected here while it answers.
    fn keep_doubting(&mut self, who: Incarnation, by: NodeId, cx: &mut Context<'_>) {
        if let Some(news) = self.state.hosts.suspicion(who.node, by) {
            probe!("overlay/kept_doubting");
            self.state.doubts.note(&news, cx.now + doubts::PUSHED);
            self.send(who.node, Message::News { news: Vec::from([news]) }, cx);
        }
    }

    /// Tells a suspect that it is one.
    pub(super) fn tell_suspect(&mut self, to: Incarnation, cx: &mut Context<'_>) {
        let known = self.state.hosts.get(to.node).cloned();
        if let Some(news) = known.filter(|news| news.suspected_by.is_some()) {
            self.send(to.node, Message::News { news: Vec::from([news]) }, cx);
        }
    }

    fn stabilize(&mut self, cx: &mut Context<'_>) {
        for (node, asks) in self.state.ring.asks() {
            self.send(node, Message::Stabilize { asks }, cx);
        }
    }

    pub(super) fn on_stabilize(
        &mut self,
        from: Incarnation,
        asks: &[NeighboursRequest],
        cx: &mut Context<'_>,
    ) {
        invariant!(!self.state.is_passive(), "who has left answers nobody");
        let tokens = self.state.own().record.tokens.len();
        let (ring, hosts) = (&mut self.state.ring, &self.state.hosts);
        invariant!(ring.pointers().len() == tokens, "each own token has its pointers");
        let answers = ring.on_asks(from.node, asks, |place| Self::is_alive(hosts, place));
        self.send(from, Message::Neighbours { answers }, cx);
    }

    pub(super) fn on_neighbours(&mut self, from: Incarnation, answers: &[NeighboursReply]) {
        let tokens = self.state.own().record.tokens.len();
        let (ring, hosts) = (&mut self.state.ring, &self.state.hosts);
        let before = ring.linked();
        ring.on_answers(from.node, answers, |place| Self::is_alive(hosts, place));
        invariant!(ring.linked() >= before, "no list of successors shrinks to nothing");
        invariant!(ring.pointers().len() == tokens, "each own token has its pointers");
    }

    /// Stores what has changed since the last time.
    fn store_dirty(&mut self, cx: &mut Context<'_>) {
        let dirty: Vec<NodeId> = self.state.dirty.iter().copied().take(STORED_MAX).collect();
        dirty.into_iter().for_each(|node| self.store(node, cx));
    }

    /// Tells how much this host has to do, if that has changed by more than an eighth.
    fn tell_load(&mut self, cx: &mut Context<'_>) {
        let (told, load) = (self.state.own().record.load, self.load);
        let is_far = |told: u64, now: u64, least: u64| told.abs_diff(now) > least.max(told / 8);
        if is_far(told.keys, load.keys, 1000)
            || is_far(told.bytes, load.bytes, 1 << 20)
            || is_far(told.operations.into(), load.operations.into(), 50)
        {
            self.revise(|record| record.load = load, cx);
        }
    }
}

const _: () = assert!(SUSPECT_KEPT.0 > detector::PERIOD.0);
