//! One ring again after a partition (Shafaat et al., 2009).

use super::message::Message;
use super::{Context, Overlay};
use crate::gossip::record::News;
use crate::ring::pointers::Place;
use crate::ring::unification::closest_before;
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{LOOKUP_HOPS_MAX, SUCCESSORS_MAX};
use quorate_kernel::ring::Standing;

impl Overlay {
    /// Pings one random host that is taken for dead, or a configured seed.
    pub(super) fn unify(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        let is_passive =
            |news: &&News| news.suspected_by.is_some() && news.record.standing != Standing::Left;
        let passive: Vec<Incarnation> =
            state.hosts.iter().filter(is_passive).map(|news| news.record.who).collect();
        let seeds = &self.settings.hosts;
        let drawn = |length: usize, cx: &mut Context<'_>| cx.rng.below(length as u64) as usize;
        let who = if !passive.is_empty() {
            passive[drawn(passive.len(), cx)]
        } else if !seeds.is_empty() && seeds.len() <= SUCCESSORS_MAX {
            // With more of them than neighbours they are ordinary members, which gossip compares
            // with.
            let node = seeds[drawn(seeds.len(), cx)].who.node;
            let Some(record) = state.record(node) else { return };
            record.who
        } else {
            return;
        };
        if who.node != cx.me.node {
            state.unification.ask(who, cx.now);
            // To whichever start it is in: one that restarted answers too, and is told apart.
            self.ping(who.node, cx);
        }
    }

    /// A host that was asked answers. If it is taken for dead, or is far away on the ring, the two
    /// compare all they know; each suspect of the one that is a friend of the other refutes.
    pub(super) fn begin_merging(&mut self, with: Incarnation, cx: &mut Context<'_>) {
        let is_neighbour = self.state.ring.neighbours(SUCCESSORS_MAX).contains(&with.node);
        let is_suspect = self.state.hosts.get(with.node).is_some_and(|one| !one.is_alive());
        if is_neighbour && !is_suspect {
            return;
        }
        self.tell_suspect(with, cx);
        self.send(with, Message::Digest { sum: self.state.hosts.sum() }, cx);
        if is_suspect {
            self.state.merging = Some(with);
        }
    }

    /// The host that was found has refuted: it is looked up here, and this one there.
    pub(super) fn go_on_merging(&mut self, news: &News, cx: &mut Context<'_>) {
        let who = news.record.who;
        if self.state.merging.take_if(|merging| *merging == who).is_some() {
            let own = Box::new(self.state.own().clone());
            self.send(who, Message::Lookup { news: own, hops: 0 }, cx);
            self.pass_on(news.clone(), 0, cx);
        }
    }

    /// A host of another ring is looked up.
    pub(super) fn on_lookup(&mut self, news: News, hops: u8, cx: &mut Context<'_>) {
        if news.node() == cx.me.node {
            return;
        }
        self.learn(&news, super::learn::Origin::Pushed, cx);
        self.pass_on(news, hops, cx);
    }

    /// Passes a lookup on to the host that is closest before it on the ring; if that is this one,
    /// its neighbourhood is told to the host.
    fn pass_on(&mut self, news: News, hops: u8, cx: &mut Context<'_>) {
        let (Some(token), node) = (news.record.tokens.first().copied(), news.node()) else {
            return;
        };
        let own = self.state.own().record.tokens.clone();
        let Some(nearest) = own.iter().min_by_key(|own| token.wrapping_sub(**own)) else { return };
        let me = cx.me.node;
        let others = |place: &Place| place.node != node && place.node != me;
        let next = closest_before(token, *nearest, self.places().filter(others));
        match next {
            Some(place) if hops < LOOKUP_HOPS_MAX => {
                let message = Message::Lookup { news: Box::new(news), hops: hops + 1 };
                self.send(place.node, message, cx);
            }
            _ => {
                let nodes: Vec<NodeId> = self.state.ring.neighbours(2);
                let known = nodes.iter().filter_map(|node| self.state.hosts.get(*node).cloned());
                let mut news: Vec<News> = known.collect();
                news.push(self.state.own().clone());
                self.send(node, Message::News { news }, cx);
            }
        }
    }
}
