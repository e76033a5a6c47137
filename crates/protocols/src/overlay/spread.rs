//! Spreading: random neighbours, rounds of rumours, and anti-entropy.

use super::message::Message;
use super::timer::Timer;
use super::{Context, Overlay};
use crate::gossip::cyclon::Peer;
use crate::gossip::digest::{self, Seen};
use crate::gossip::record::News;
use crate::gossip::rumours::{self, FANOUT};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::{HOSTS_LISTED_MAX, NEWS_MESSAGES_MAX};
use quorate_kernel::ring::Standing;

impl Overlay {
    /// Whether a message may be taken in. One that has left is told so and not listened to, and of
    /// one who has left itself nothing is asked but what it must hear.
    pub(super) fn admit(
        &mut self,
        from: Incarnation,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> bool {
        self.state.is_joined |= from.node != cx.me.node;
        let is_gossip = matches!(message, Message::News { .. } | Message::Missing { .. });
        if self.state.is_passive() {
            return is_gossip;
        }
        let Some(known) = self.state.hosts.get(from.node) else { return true };
        let is_opening =
            matches!(message, Message::Ping { .. } | Message::Digest { .. } | Message::News { .. });
        let is_left = known.record.standing == Standing::Left;
        // What refutes needs no answer, and who is told does not tell in return: two that suspect
        // each other, and cannot refute, would tell each other for ever.
        let is_last_word = matches!(message, Message::News { news } if news.iter().any(|news| {
            let is_newer = news.record.stamp() > known.record.stamp();
            let is_refuting = news.node() == from.node && is_newer;
            is_refuting || (news.node() == cx.me.node && news.suspected_by.is_some())
        }));
        let is_suspect = known.suspected_by.is_some() && known.record.who == from && !is_last_word;
        if is_opening && (is_left || is_suspect) {
            // It speaks, so it can hear that it is suspected, and refute; or that it has left.
            let news = Vec::from([known.clone()]);
            self.send(from, Message::News { news }, cx);
        }
        !is_left || is_gossip
    }

    /// One exchange of random neighbours in a period.
    pub(super) fn shuffle(&mut self, cx: &mut Context<'_>) {
        if self.state.cyclon.view().is_empty() {
            self.seed_view(cx);
        }
        let own = self.state.own_peer();
        if let Some((partner, entries)) = self.state.cyclon.begin(own, cx.rng) {
            self.send(partner, Message::Shuffle { entries }, cx);
        }
    }

    pub(super) fn on_shuffle(
        &mut self,
        from: Incarnation,
        entries: Vec<Peer>,
        cx: &mut Context<'_>,
    ) {
        let before = self.state.cyclon.view().len();
        let entries = self.state.cyclon.on_shuffle(from.node, entries, cx.rng);
        let neighbours = self.state.cyclon.view();
        let is_kept = (before..=self.state.cyclon.shape().view).contains(&neighbours.len());
        invariant!(is_kept, "who is asked loses no neighbour, nor gets too many");
        let is_me = |peer: &Peer| peer.who.node == cx.me.node;
        invariant!(!neighbours.iter().any(is_me), "nobody is his own neighbour");
        self.send(from, Message::ShuffleReply { entries }, cx);
    }

    /// One round of rumours.
    pub(super) fn on_round(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        state.is_round_armed = false;
        let (hosts, doubts) = (&state.hosts, &state.doubts);
        let look = |node| {
            let mut news = hosts.get(node)?.clone();
            let doubted = || doubts.suspected_by(node, news.record.stamp());
            news.suspected_by = news.suspected_by.or_else(doubted);
            Some(news)
        };
        let news = state.rumours.round(look);
        let me = cx.me.node;
        let mut peers = state.cyclon.sample(FANOUT, cx.rng, |node| hosts.is_alive(node));
        for _ in peers.len()..FANOUT {
            let fit =
                |news: &News| news.is_alive() && news.node() != me && !peers.contains(&news.node());
            peers.extend(hosts.pick(cx.rng, fit).map(News::node));
        }
        if state.rumours.is_hot() {
            state.is_round_armed = true;
            cx.fx.arm(Timer::Rumours, cx.now + rumours::ROUND);
        }
        if !news.is_empty() && !peers.is_empty() {
            let peers: Arc<[NodeId]> = peers.into();
            self.send(&peers, Message::News { news }, cx);
        }
    }

    /// Tells a few known hosts that this one is there, and asks what it has missed. Repeated until
    /// somebody answers.
    pub(super) fn knock(&mut self, cx: &mut Context<'_>) {
        for _ in 0..FANOUT {
            let me = cx.me.node;
            let fit = |news: &News| news.node() != me && news.record.standing != Standing::Left;
            let Some(node) = self.state.hosts.pick(cx.rng, fit).map(News::node) else { continue };
            let news = Vec::from([self.state.own().clone()]);
            self.send(node, Message::News { news }, cx);
            self.send(node, Message::Digest { sum: self.state.hosts.sum() }, cx);
        }
    }

    /// Compares with one random host.
    pub(super) fn compare(&mut self, cx: &mut Context<'_>) {
        let me = cx.me.node;
        let fit = |news: &News| news.node() != me && news.is_alive();
        if let Some(node) = self.state.hosts.pick(cx.rng, fit).map(News::node) {
            self.send(node, Message::Digest { sum: self.state.hosts.sum() }, cx);
        }
    }

    pub(super) fn on_digest(&mut self, from: Incarnation, sum: u64, cx: &mut Context<'_>) {
        invariant!(!self.state.is_passive(), "who has left compares nothing");
        invariant!(self.state.own().record.who == cx.me, "what is compared has the own start");
        if sum != self.state.hosts.sum() {
            let sums = self.state.hosts.sums().to_vec();
            self.send(from, Message::Buckets { sums }, cx);
        }
    }

    pub(super) fn on_buckets(&mut self, from: Incarnation, sums: &[u64], cx: &mut Context<'_>) {
        let differing = digest::differing(&self.state.hosts, sums);
        let (buckets, seen) = digest::versions(&self.state.hosts, differing, cx.rng);
        invariant!(buckets & !differing == 0, "what is equal is not listed");
        invariant!(seen.len() <= HOSTS_LISTED_MAX, "what is listed fits one message");
        self.send(from, Message::Versions { buckets, seen }, cx);
    }

    pub(super) fn on_versions(
        &mut self,
        from: Incarnation,
        buckets: u64,
        seen: &[Seen],
        cx: &mut Context<'_>,
    ) {
        invariant!(!self.state.is_passive(), "who has left compares nothing");
        let (lacks, wants) = digest::compare(&self.state.hosts, buckets, seen);
        invariant!(wants.len() <= HOSTS_LISTED_MAX, "what is wanted fits one message");
        self.on_want(from, &lacks, cx);
        if !wants.is_empty() {
            self.send(from, Message::Want { nodes: wants }, cx);
        }
    }

    /// Sends what is known of some hosts, as much as a few messages hold.
    pub(super) fn on_want(&mut self, from: Incarnation, nodes: &[NodeId], cx: &mut Context<'_>) {
        invariant!(!self.state.is_passive(), "who has left tells nobody");
        let hosts = &self.state.hosts;
        let news = nodes.iter().filter_map(|node| hosts.get(*node).cloned());
        let messages = rumours::pack(news);
        invariant!(messages.len() <= NEWS_MESSAGES_MAX, "an answer is a few messages");
        for news in messages {
            self.send(from, Message::Missing { news }, cx);
        }
    }
}
