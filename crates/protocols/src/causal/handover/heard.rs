//! Of whom a replica has heard: who holds a partition now, and who did.

use crate::causal::map::{Map, Shape};
use crate::causal::replicate::replica::Replica;
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Partition};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::probe;

impl Replica {
    /// The actor that holds a partition now, if it was heard of.
    pub fn head(&self, map: &Map, partition: Partition) -> Option<Actor> {
        let place = map.place(partition)?;
        let is_current = |actor: &Actor| actor.since == place.since && actor.node == place.host;
        self.clock.at(partition).map(|(actor, _)| actor).rfind(is_current)
    }

    /// Takes note of an actor that speaks; returns whether it is the one that holds its partition.
    pub fn meet(&mut self, map: &Map, shape: Shape, peer: Actor) -> bool {
        let is_placed = map
            .place(peer.partition)
            .is_some_and(|place| (place.since, place.host) == (peer.since, peer.node));
        if !is_placed
            || map.is_gone(peer.node)
            || !shape.are_peers(self.partition(), peer.partition)
        {
            return false;
        }
        let head = self.head(map, peer.partition);
        if head.is_none_or(|head| head < peer) {
            probe!("causal/new_peer");
            self.touch(peer);
            self.begin_anew(map);
        }
        head.is_none_or(|head| head <= peer)
    }

    /// Somebody holds a partition anew: whatever was told of actors that are gone must be told
    /// again, and rows of former peers count no more.
    pub fn begin_anew(&mut self, map: &Map) {
        self.pulled.clear();
        self.rounds.chains.clear();
        self.rounds.backoff.end();
        let heads: BTreeSet<Actor> =
            self.clock.iter().filter_map(|(actor, _)| self.head(map, actor.partition)).collect();
        self.watermark.retain(|peer| heads.contains(&peer));
    }

    /// The actors of another clock that matter here become known, so that they can be closed.
    pub fn know(&mut self, shape: Shape, clock: &Clock) {
        for (actor, entry) in clock.iter() {
            let is_near = actor.partition == self.partition()
                || shape.are_peers(self.partition(), actor.partition);
            let known = self.clock.get(actor);
            let is_news = |known: &Entry| entry.left && !known.left && !known.closed;
            if is_near && known.is_none_or(is_news) {
                self.touch(actor).left |= entry.left;
            }
        }
        // What is closed elsewhere is finished, though not closed here: nobody may be left who
        // says why.
        let is_finished = |(actor, known): (Actor, &Entry)| {
            let is_closed = clock.get(actor).is_some_and(|told| told.closed);
            (is_closed && !known.closed && !known.left && actor != self.actor()).then_some(actor)
        };
        let finished: Vec<Actor> = self.clock.iter().filter_map(is_finished).collect();
        finished.into_iter().for_each(|actor| self.touch(actor).left = true);
    }
}
