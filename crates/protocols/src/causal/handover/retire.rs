//! Actors that are gone, and how their gaps are closed.
//!
//! Of an actor that lives, gaps in its entry are filled by exchanging with it. Of one that is gone
//! for good nobody can do that, so objects could never be stripped of it (T5). But once it is
//! certain that it says nothing more, and every peer has told all it knows of it, this replica has
//! seen every update of it that still exists, of the keys that it holds: the actor is **closed**
//! here. From then on all of it counts as seen, also what was replaced before it arrived, which a
//! context alone may name. That holds for every earlier actor of its partition, too: they are
//! closed in order, and nobody unheard of can be among them. So the newest closed entry speaks for
//! all of them, and they have none.
//!
//! An actor is **finished** when its host is gone for good by the map, when its host has handed
//! everything over and said so, here or to the catalog, or when its host has begun a later replica
//! in its place (the data was lost). A peer counts only if it told all, by an unbroken
//! [chain](crate::causal::anti_entropy::window) that began when it, too, held the actor for
//! finished, by a map that is not older than the one here, and when it had joined: one that has not
//! may be about to learn more from another. When anybody takes a partition anew, all must tell
//! again: the former holder may have told a third one what it no longer can tell this one. And
//! nothing is closed while a former holder still hands over, be it one that only the catalog's
//! record names: it may be the only one that has an update of an actor which is gone. A replica
//! that has not joined closes nothing (T20), and nobody takes over that something is closed
//! elsewhere; only that it is finished.

use super::former::Owing;
use crate::causal::Context;
use crate::causal::map::{Map, Shape};
use crate::causal::replicate::replica::Replica;
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Dot, Partition};
use crate::dots::object::Object;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl Replica {
    /// Whether an actor says nothing more, and nothing of it is expected.
    pub fn is_finished(&self, map: &Map, actor: Actor) -> bool {
        map.is_gone(actor.node) || is_over(&self.clock, actor)
    }

    /// Whether an actor's host has said that everything is handed over.
    pub fn has_left(&self, actor: Actor) -> bool {
        self.clock.get(actor).is_some_and(|entry| entry.left || entry.closed)
    }

    /// The partitions that must tell all they know of an actor before it can be closed: those that
    /// may hold a key which this replica and the actor both held.
    fn tellers(&self, shape: Shape, actor: Actor) -> Vec<Partition> {
        let is_near =
            |at: &Partition| *at == actor.partition || shape.are_peers(*at, actor.partition);
        shape.peers(self.partition()).filter(is_near).collect()
    }

    /// A peer has told everything it knows, with this clock and knowing this version of the map. It
    /// counts if that is not older than the one here: by then it took nothing more from any actor
    /// that is finished by the map, or by what this clock says.
    pub fn note_pulled(
        &mut self,
        (map, shape): (&Map, Shape),
        peer: Partition,
        (peer_map, clock): (u64, &Clock),
        owing: &Owing,
    ) {
        if !self.record.is_joined || peer_map < map.version {
            return;
        }
        let closable = self.closable(map, shape, owing);
        for actor in &closable {
            if map.is_gone(actor.node) || is_over(clock, *actor) {
                self.pulled.entry(*actor).or_default().insert(peer);
            }
        }
        self.close_told(closable, shape);
    }

    /// Takes note of former actors that have handed over by the catalog's record: a client's
    /// context may name one of which nobody here has heard.
    pub fn note_ended(&mut self, map: &Map, owing: &Owing) {
        let open = self.clock.iter().filter(|(_, entry)| !entry.left && !entry.closed);
        let ended = open.map(|(actor, _)| actor).filter(|actor| owing.has_ended(map, *actor));
        for actor in ended.collect::<Vec<_>>() {
            self.touch(actor).left = true;
        }
    }

    /// How many entries the clock has beyond two of a partition: one of who holds it, and one that
    /// speaks for all who held it before.
    pub fn spare_entries(&self) -> usize {
        let actors = self.clock.iter().map(|(actor, _)| actor);
        let (mut count, mut before, mut last) = (0, 0, None);
        for actor in actors {
            before = if last == Some(actor.partition) { before + 1 } else { 0 };
            last = Some(actor.partition);
            count += usize::from(before >= 2);
        }
        count
    }

    /// Whether an actor holds its partition no more, or has said its last.
    fn is_former(&self, map: &Map, actor: Actor) -> bool {
        let place = map.place(actor.partition);
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

    /// Whether a former actor is not closed yet.
    pub fn has_open_former(&self, map: &Map) -> bool {
        let mut open = self.clock.iter().filter(|(_, entry)| !entry.closed);
        open.any(|(actor, _)| self.is_former(map, actor))
    }

    /// Former actors that are finished and not yet closed; none as long as any former actor is not
    /// finished, or one may be that nobody here has heard of: it may hand over updates of others,
    /// too, that nobody else has.
    fn closable(&self, map: &Map, shape: Shape, owing: &Owing) -> Vec<Actor> {
        let open = self.clock.iter().filter(|(_, entry)| !entry.closed);
        let former = open.map(|(actor, _)| actor).filter(|actor| self.is_former(map, *actor));
        // Who holds a partition by a newer map than this one is not a former holder.
        let is_past = |at: &Actor| map.place(at.partition).is_some_and(|now| at.since <= now.since);
        let former: Vec<Actor> = former.filter(is_past).collect();
        let may_close = former.is_empty()
            || !self.awaits_former(map)
                && !owing.is_unheard_of(&self.clock, shape, self.partition());
        if may_close { former } else { Vec::new() }
    }

    /// Whether what a get has seen may be taken in: not if it tells an update of a finished actor
    /// that this replica has never had. Its peers may have counted on hearing nothing more of such
    /// an actor: they would drop what this one took in now. And where the actor is closed here, it
    /// would count as replaced, and a write that was repeated because this was lost would go too.
    pub fn may_repair(&self, map: &Map, key: &Bytes, object: &Object, cx: &Context<'_>) -> bool {
        let dots = object.versions.keys().copied();
        let of_finished: Vec<Dot> = dots.filter(|dot| self.is_finished(map, dot.actor)).collect();
        if of_finished.is_empty() {
            return true;
        }
        let known = self.read(key, cx);
        let had = |dot: &Dot| {
            let is_seen = |entry: &Entry| !entry.closed && entry.contains(dot.counter);
            known.versions.contains_key(dot) || self.clock.get(dot.actor).is_some_and(is_seen)
        };
        of_finished.iter().all(had)
    }

    /// Closes every actor of which all has been told. Of one partition the earlier ones go first:
    /// what is closed speaks for all of them.
    pub fn close(&mut self, map: &Map, shape: Shape, owing: &Owing) {
        if self.record.is_joined {
            self.close_told(self.closable(map, shape, owing), shape);
        }
    }

    /// Closes those of these actors of which all has been told.
    fn close_told(&mut self, closable: Vec<Actor>, shape: Shape) {
        for actor in closable {
            let pulled = self.pulled.get(&actor);
            let has_told = |at: &Partition| pulled.is_some_and(|pulled| pulled.contains(at));
            let tellers = self.tellers(shape, actor);
            let have_told = match mutant!("closed_early") {
                true => tellers.iter().any(has_told),
                false => tellers.iter().all(has_told),
            };
            if have_told && self.clock.is_next_to_close(actor) {
                self.close_actor(actor);
            }
        }
    }

    /// Whether an actor is closed, by itself or by a later one that speaks for it.
    pub(crate) fn is_closed(&self, actor: Actor) -> bool {
        let is_own = self.clock.own(actor).is_some_and(|entry| entry.closed);
        is_own || self.clock.after(actor).any(|(_, entry)| entry.closed)
    }

    /// Closes an actor. It and all earlier ones of its partition are of no use any more but for
    /// that, so what is kept of them goes. Who is closed already, or by a later one, gets no entry
    /// again: a former holder that is copied from anew may know less than what is here.
    pub(super) fn close_actor(&mut self, actor: Actor) {
        // Nor does anybody else say of who holds the partition that it is no more.
        let is_own = actor.partition == self.partition() && actor >= self.actor();
        if is_own || self.is_closed(actor) && !mutant!("closed_again") {
            return;
        }
        probe!("causal/closed");
        self.touch(actor);
        for dropped in self.clock.close(actor) {
            probe!("causal/dropped");
            self.has_changed(dropped);
            self.pulled.remove(&dropped);
            self.in_flight.forget(dropped);
        }
        self.pulled.remove(&actor);
        self.in_flight.forget(actor);
    }

    /// Drops entries of whom a later one speaks: builds of before left such on disk.
    pub(crate) fn drop_spoken_for(&mut self) {
        let closed = self.clock.iter().filter(|(_, entry)| entry.closed);
        for actor in closed.map(|(actor, _)| actor).collect::<Vec<_>>() {
            self.clock.close(actor).into_iter().for_each(|spare| self.has_changed(spare));
        }
    }
}

/// Whether a clock knows that an actor says nothing more: its host said so, or began a later
/// replica at the same partition, or it is closed there.
fn is_over(clock: &Clock, actor: Actor) -> bool {
    let is_later = |later: Actor| {
        (later.since, later.node) == (actor.since, actor.node) && later.birth > actor.birth
    };
    clock.get(actor).is_some_and(|entry| entry.left || entry.closed)
        || clock.after(actor).any(|(later, _)| is_later(later))
}
