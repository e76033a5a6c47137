//! Taking in news of hosts: the one place where beliefs change.

use super::message::Message;
use super::timer::Timer;
use super::{Context, Overlay, keys};
use crate::gossip::cyclon::Peer;
use crate::gossip::doubts;
use crate::gossip::record::{HostRecord, News, Version};
use crate::gossip::rumours;
use crate::ring::pointers::Place;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;

/// How long after its start a node takes what it pulls for old news that others know.
const CATCH_UP: Span = Span::secs(5);

/// Where news comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A peer pushed it: it is young.
    Pushed,
    /// It was found by comparing digests: it may be old.
    Pulled,
    /// This node itself found it out.
    Own,
    /// A suspicion that was held back, and passed on then, has waited long enough.
    Waited,
}

impl Overlay {
    /// A peer tells what is hot there.
    pub(super) fn on_news(&mut self, from: Incarnation, news: &[News], cx: &mut Context<'_>) {
        let before = self.state.own_marks();
        news.iter().for_each(|news| self.hear(from, news, Origin::Pushed, cx));
        let (stamp, rank) = self.state.own_marks();
        invariant!(stamp >= before.0, "what a node says of itself never goes back");
        invariant!(rank >= before.1, "an order is never taken back, nor a departure");
    }

    /// A peer tells what this node has missed.
    pub(super) fn on_missing(&mut self, from: Incarnation, news: &[News], cx: &mut Context<'_>) {
        let known = self.state.hosts.len();
        news.iter().for_each(|news| self.hear(from, news, Origin::Pulled, cx));
        invariant!(self.state.hosts.len() >= known, "no host is forgotten");
        invariant!(self.state.own().suspected_by.is_none(), "a node does not suspect itself");
        invariant!(self.state.has_rounds(), "what is hot is told in rounds");
    }

    fn hear(&mut self, from: Incarnation, news: &News, origin: Origin, cx: &mut Context<'_>) {
        self.learn(news, origin, cx);
        if let Some(by) = news.suspected_by
            && news.node() == cx.me.node
            && news.record.stamp() < self.state.own().record.stamp()
            && !self.state.is_passive()
        {
            // Who tells this, and who found it, may not be told by rumours: this host may suspect
            // them too, and then only their own word ends that.
            let own = Vec::from([self.state.own().clone()]);
            if by != from.node && by != cx.me.node {
                self.send(by, Message::News { news: own.clone() }, cx);
            }
            self.send(from, Message::News { news: own }, cx);
        }
    }

    /// Takes in news of one host.
    pub(super) fn learn(&mut self, news: &News, origin: Origin, cx: &mut Context<'_>) {
        let node = news.node();
        let is_heard = matches!(origin, Origin::Pushed | Origin::Pulled);
        if node == cx.me.node && is_heard {
            return self.on_own_news(news, cx);
        }
        let mut news = news.clone();
        if is_heard && news.suspected_by.is_some() {
            self.hold_back(&mut news, origin, cx);
        }
        let state = &mut self.state;
        let known = state.hosts.get(node);
        if known.is_some_and(|known| !known.is_changed_by(&news)) {
            return;
        }
        let before = known.cloned();
        let changed = state.hosts.learn(&news);
        if !changed.is_any {
            return;
        }
        let known = state.hosts.get(node).expect("it was learnt").clone();
        let stamp = known.record.stamp();
        let is_newer = before.as_ref().is_none_or(|before| before.record.stamp() < stamp);
        if is_newer {
            state.doubts.refute(node, stamp);
            if known.suspected_by.is_none() {
                state.detector.on_refuted(known.record.who, cx.now);
            }
        }
        if changed.is_ring {
            state.dirty.insert(node);
            if known.suspected_by.is_some() {
                state.detector.on_believed(node, cx.now);
            }
            // Views may name it from now on, so whoever remembers such a view remembers it: of a
            // host that nobody remembered, nobody would find that it is gone.
            if before.as_ref().is_none_or(|before| before.record.version == Version(0)) {
                self.store(node, cx);
            }
            self.on_ring_change(before.as_ref(), &known);
            self.give_way(node, cx);
            self.announce(cx);
        }
        if changed.is_standing && known.record.standing == Standing::Left {
            self.on_left(&known, cx);
        }
        let is_catching_up = (cx.now - self.state.started_at) < CATCH_UP;
        let is_told = match origin {
            Origin::Pushed | Origin::Own => true,
            Origin::Pulled => !is_catching_up,
            Origin::Waited => false,
        };
        if is_told {
            self.heat(node, cx);
        }
        if is_newer && known.is_alive() {
            self.go_on_merging(&known, cx);
        }
    }

    /// Separates a suspicion from the news that brings it, unless there is nothing to wait for.
    fn hold_back(&mut self, news: &mut News, origin: Origin, cx: &mut Context<'_>) {
        let state = &mut self.state;
        let stamp = news.record.stamp();
        let known = state.hosts.get(news.node());
        let is_void = known.is_some_and(|known| {
            known.record.stamp() > stamp
                || (known.record.stamp() == stamp && known.suspected_by.is_some())
        });
        // What is newer than all that was heard of its host, and was found by comparing, is of a
        // host that this node had lost sight of.
        let is_unheard = known.is_none_or(|known| known.record.stamp() < stamp);
        if is_void || (is_unheard && origin == Origin::Pulled) {
            return;
        }
        let wait = if origin == Origin::Pushed { doubts::PUSHED } else { doubts::PULLED };
        let is_new = state.doubts.note(news, cx.now + wait);
        let suspicion = news.clone();
        news.suspected_by = None;
        if is_new && origin == Origin::Pushed {
            // It is passed on at once, held back or not: the suspect must hear of it.
            self.heat(news.node(), cx);
        } else if is_new {
            let message = Message::News { news: Vec::from([suspicion]) };
            self.send(news.node(), message, cx);
        }
    }

    /// Others tell of this node itself: it takes orders, and refutes suspicions.
    fn on_own_news(&mut self, news: &News, cx: &mut Context<'_>) {
        let own = Arc::clone(&self.state.own().record);
        if news.record.stamp() > own.stamp() {
            // Another process runs with a copy of this node's directory. Its records stand above
            // this one's everywhere else. To outbid it would begin a race without end, so it is
            // counted.
            self.state.counters.clones += 1;
        }
        if news.record.rank() > own.rank() {
            let mut record = HostRecord::clone(&own);
            (record.order, record.standing) = (news.record.order, news.record.standing);
            self.learn(&News::of(record), Origin::Own, cx);
            self.store(cx.me.node, cx);
        }
        let is_suspected = news.suspected_by.is_some() && news.record.stamp() == own.stamp();
        if is_suspected && !self.state.is_passive() {
            self.state.counters.refutations += 1;
            self.revise(|_| {}, cx);
        }
    }

    /// Says something new of this node itself.
    pub(super) fn revise(&mut self, change: impl FnOnce(&mut HostRecord), cx: &mut Context<'_>) {
        assert!(!self.state.is_passive(), "who has left says nothing of itself");
        let mut record = HostRecord::clone(&self.state.own().record);
        record.version = Version(record.version.0 + 1);
        change(&mut record);
        self.learn(&News::of(record), Origin::Own, cx);
    }

    /// From now on a host is suspected here; `by` found it silent.
    pub(super) fn suspect(&mut self, who: Incarnation, by: NodeId, cx: &mut Context<'_>) {
        let Some(news) = self.state.hosts.suspicion(who.node, by) else { return };
        let is_current = news.record.who == who;
        if !is_current || who.node == cx.me.node || news.record.standing == Standing::Left {
            return;
        }
        if by != cx.me.node {
            return self.learn(&news, Origin::Waited, cx);
        }
        self.state.counters.suspicions += 1;
        self.learn(&news, Origin::Own, cx);
        // The suspect should be the first to hear of it.
        self.send(who.node, Message::News { news: Vec::from([news]) }, cx);
    }

    fn on_ring_change(&mut self, before: Option<&News>, known: &News) {
        let state = &mut self.state;
        state.is_watch_old = true;
        if known.node() == state.me.node {
            state.ring.set_tokens(&known.record.tokens);
        }
        let had_tokens = before.is_some_and(|before| before.record.tokens != known.record.tokens);
        let hosts = &state.hosts;
        if (!known.is_alive() || had_tokens)
            && state.ring.drop_dead(|place| Self::is_alive(hosts, place))
        {
            self.fill_pointers();
        }
        let state = &mut self.state;
        if known.is_alive() {
            for token in known.record.tokens.iter() {
                state.ring.consider(Place { token: *token, node: known.node() });
            }
            if before.is_none() && known.node() != state.me.node {
                let address = Arc::clone(&known.record.address);
                state.cyclon.seed(Peer { who: known.record.who, age: 0, address });
            }
        }
    }

    /// Fills short successor lists from all hosts known: a list never shrinks to nothing.
    pub(super) fn fill_pointers(&mut self) {
        if self.state.ring.is_thin() {
            let places: Vec<Place> = self.places().collect();
            for place in places {
                self.state.ring.consider(place);
            }
        }
    }

    /// A host is gone for good: the mark must outlive this node's restarts.
    fn on_left(&mut self, known: &News, cx: &mut Context<'_>) {
        self.state.cyclon.forget(known.node());
        self.store(known.node(), cx);
    }

    /// Stores what is known of a host; nothing that follows leaves before it is durable.
    pub(super) fn store(&mut self, node: NodeId, cx: &mut Context<'_>) {
        self.state.dirty.remove(&node);
        if let Some(record) = self.state.record(node) {
            cx.fx.put_state(keys::key(node), keys::value(record));
        }
    }

    /// Tells news of a host for some rounds.
    pub(super) fn heat(&mut self, node: NodeId, cx: &mut Context<'_>) {
        let state = &mut self.state;
        state.rumours.heat(node, state.hosts.len());
        if !state.is_round_armed {
            state.is_round_armed = true;
            // The first round comes soon; news that arrives together is told together.
            let soon = Span(rumours::ROUND.0 / 8 + cx.rng.below(rumours::ROUND.0 / 8));
            cx.fx.arm(Timer::Rumours, cx.now + soon);
        }
    }
}
