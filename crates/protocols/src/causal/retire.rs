//! Actors that are gone, and how their gaps are closed.
//!
//! Of an actor that lives, gaps in its entry are filled by exchanging with it. Of one that is gone
//! for good nobody can do that, so objects could never be stripped of it (T5). But once it is
//! certain that it says nothing more, and every peer has told all it knows of it, this replica has
//! seen every update of it that still exists, of the keys that it holds: the actor is **closed**
//! here. Contexts need not name it any more: its entry is raised to the highest counter that any
//! of them names, and objects are filled with that. A replica may know of an update by a context
//! alone, since that was replaced before it arrived.
//!
//! An actor is **finished** when its host is gone for good by the map, when its host has handed
//! everything over and said so, or when its host has begun a later replica in its place (the data
//! was lost). A peer counts only if it told all, by an unbroken [chain](super::window) that began
//! when it, too, held the actor for finished, and when it had joined: one that has not may be about
//! to learn more from another. When anybody takes a position anew, all must tell again: the former
//! holder may have told a third one what it no longer can tell this one. And nothing is closed
//! while a former holder still hands over: it may be the only one that has an update of an actor
//! which is gone. A replica that has not joined closes nothing (T20), and nobody takes over that
//! something is closed elsewhere.

use super::map::{Map, Shape};
use super::replica::Replica;
use crate::dots::clock::Clock;
use crate::dots::dot::{Actor, Counter, Dot, Position};
use alloc::vec::Vec;
use quorate_kernel::probe;

impl Replica {
    /// Whether an actor says nothing more, and nothing of it is expected.
    pub fn is_finished(&self, map: &Map, actor: Actor) -> bool {
        map.is_gone(actor.node) || is_over(&self.clock, actor)
    }

    /// Whether an actor's host has said that everything is handed over.
    pub fn has_left(&self, actor: Actor) -> bool {
        self.clock.get(actor).is_some_and(|entry| entry.left)
    }

    /// The positions that must tell all they know of an actor before it can be closed: those that
    /// may hold a key which this replica and the actor both held.
    fn tellers(&self, shape: Shape, actor: Actor) -> Vec<Position> {
        let is_near = |at: &Position| *at == actor.position || shape.are_peers(*at, actor.position);
        shape.peers(self.position()).filter(is_near).collect()
    }

    /// A peer has told everything it knows, with this clock and knowing this version of the map.
    pub fn note_pulled(
        &mut self,
        map: &Map,
        shape: Shape,
        peer: Position,
        peer_map: u64,
        clock: &Clock,
    ) {
        if !self.record.is_joined {
            return;
        }
        for actor in self.closable(map) {
            let knows_gone = map.is_gone(actor.node) && peer_map >= map.version;
            if knows_gone || is_over(clock, actor) {
                self.pulled.entry(actor).or_default().insert(peer);
            }
        }
        self.close(map, shape);
    }

    /// Whether an actor holds its position no more, or has said its last.
    fn is_former(&self, map: &Map, actor: Actor) -> bool {
        let place = map.place(actor.position);
        let is_placed =
            place.is_some_and(|place| (place.since, place.host) == (actor.since, actor.node));
        actor != self.actor() && (!is_placed || is_over(&self.clock, actor))
    }

    /// Whether a former actor may still hand something over.
    pub fn awaits_former(&self, map: &Map) -> bool {
        let former = self.clock.iter().filter(|(actor, _)| self.is_former(map, *actor));
        let mut actors = former.map(|(actor, _)| actor);
        actors.any(|actor| !self.is_finished(map, actor))
    }

    /// Former actors that are finished and not yet closed; none as long as any former actor is not
    /// finished: it may hand over updates of others, too, that nobody else has.
    fn closable(&self, map: &Map) -> Vec<Actor> {
        if self.awaits_former(map) {
            return Vec::new();
        }
        let open = self.clock.iter().filter(|(_, entry)| !entry.closed);
        open.map(|(actor, _)| actor).filter(|actor| self.is_former(map, *actor)).collect()
    }

    /// The highest counter of an actor that contexts and witnesses name.
    fn named(&self, actor: Actor) -> Counter {
        let contexts = self.unstripped.values().flat_map(|beside| beside.context.iter());
        let witnesses = self.record.witnesses.values().flatten().copied();
        let of_it = contexts.chain(witnesses).filter(|(named, _)| *named == actor);
        of_it.map(|(_, counter)| counter).max().unwrap_or(0)
    }

    /// Whether one of these dots is of an actor that is closed here, and was never seen: it may be
    /// older than all that its peers told since.
    pub fn is_late<'a>(&self, mut dots: impl Iterator<Item = &'a Dot>) -> bool {
        dots.any(|dot| self.clock.get(dot.actor).is_some_and(|entry| entry.is_late(dot.counter)))
    }

    /// Whether one of these dots is of an actor that says nothing more, and was never seen.
    pub fn is_of_finished<'a>(&self, map: &Map, mut dots: impl Iterator<Item = &'a Dot>) -> bool {
        dots.any(|dot| !self.clock.contains(*dot) && self.is_finished(map, dot.actor))
    }

    /// Closes every actor of which all has been told.
    pub fn close(&mut self, map: &Map, shape: Shape) {
        if !self.record.is_joined {
            return;
        }
        for actor in self.closable(map) {
            let pulled = self.pulled.get(&actor);
            let has_told = |at: &Position| pulled.is_some_and(|pulled| pulled.contains(at));
            if self.tellers(shape, actor).iter().all(has_told) {
                probe!("causal/closed");
                let upto = self.named(actor);
                self.touch(actor).close(upto);
                self.pulled.remove(&actor);
            }
        }
    }
}

/// Whether a clock knows that an actor says nothing more: its host said so, or began a later
/// replica at the same position.
fn is_over(clock: &Clock, actor: Actor) -> bool {
    let is_later = |later: Actor| {
        (later.since, later.node) == (actor.since, actor.node) && later.birth > actor.birth
    };
    clock.get(actor).is_some_and(|entry| entry.left)
        || clock.at(actor.position).any(|(later, _)| is_later(later))
}
