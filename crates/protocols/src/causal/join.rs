//! Joining: a replica that began with an empty clock copies what its peers have.
//!
//! Anti-entropy cannot fill it: its peers have long dropped the dot-key entries of old updates
//! (T8). So it scans each peer for the keys that both hold. When a scan ends, it has seen all that
//! the peer had issued when the scan *began*; what came later is in the peer's dot-key map, because
//! the peer waits for the newcomer from its first question on.
//!
//! That is not yet enough for deletes. A key that was deleted is nowhere in a scan; the newcomer
//! takes over that the delete was seen, but not what it replaced, and a third peer that lags could
//! give it the old value for good. Hence two things that the paper and its code do not have. A page
//! says of every key in its interval what the peer knows, also of those it does not list: they are
//! absent there, with all that its clock has seen in their past. And the clock of each scanned peer
//! is kept as a **witness**: for keys that both hold, the newcomer knows all that the peer had
//! seen, so its objects are filled with that too, until its own clock says the same.

use super::former::{self, Former};
use super::keys::{Kind, each_of, hash_of};
use super::map::{Map, Shape};
use super::message::{Message, Pair};
use super::page;
use super::replica::Replica;
use super::watch::{PATIENCE, SILENT_MAX, Scan};
use super::{Causal, Context};
use crate::dots::clock::Clock;
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Position};
use crate::dots::object::Object;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

impl Replica {
    /// Whether this replica has all that a position's actor had before it knew of this one.
    pub fn has_copied(&self, map: &Map, peer: Position) -> bool {
        if self.record.is_joined {
            return true;
        }
        let finished = self.record.finished.get(&peer).copied();
        finished.is_some() && finished == self.head(map, peer)
    }

    /// Whether there is nothing more to copy from a position: all is copied, or its host is gone
    /// for good. Who waited for a host that never answers would never join, and a catalog that
    /// waits for the newcomer could not give the host's positions to anybody.
    fn is_done_with(&self, map: &Map, peer: Position) -> bool {
        let is_gone = map.place(peer).is_some_and(|place| map.is_gone(place.host));
        is_gone || self.has_copied(map, peer)
    }

    /// Whether its silence about a key says something: it has copied from every peer that answers.
    pub fn is_serving(&self) -> bool {
        let is_silent = |scan: &Scan| scan.silent >= SILENT_MAX;
        let scans = &self.rounds.scans;
        self.record.is_joined || (!scans.is_empty() && scans.values().all(is_silent))
    }

    /// The keys with an object in an interval, `to` exclusive and open if empty.
    fn keys_between(&self, from: &[u8], to: &[u8], last: u64, cx: &Context<'_>) -> Vec<Bytes> {
        let mut keys = Vec::new();
        each_of(cx.table, self.part, Kind::Object, from, &mut |key, _| {
            let is_inside = (to.is_empty() || key < to) && hash_of(key) <= last;
            if is_inside {
                keys.push(Bytes::copy_from_slice(key));
            }
            is_inside
        });
        keys
    }

    /// What every peer's clock has witnessed is dropped once the own clock says it too.
    pub fn drop_witnesses(&mut self, cx: &mut Context<'_>) {
        let mut record = self.record.clone();
        for witness in record.witnesses.values_mut() {
            let implies =
                |actor, counter| self.clock.get(actor).is_some_and(|entry| entry.implies(counter));
            witness.retain(|(actor, counter)| !implies(*actor, *counter));
        }
        record.witnesses.retain(|_, witness| !witness.is_empty());
        if record != self.record {
            self.record = record;
            self.persist(cx);
        }
    }
}

impl Causal {
    /// Begins scans, or asks again what was not answered.
    pub(super) fn scan_on(&mut self, at: Position, map: &Map, cx: &mut Context<'_>) {
        let shape = self.settings.shape;
        let Some(replica) = self.durable.replicas.get_mut(&at) else { return };
        if replica.record.is_joined {
            return;
        }
        for peer in shape.peers(at) {
            if replica.is_done_with(map, peer) {
                replica.rounds.scans.remove(&peer);
                continue;
            }
            let host = map.place(peer).expect("peers are positions").host;
            ask(replica, (peer, host), shape, map, cx);
        }
        if shape.peers(at).next().is_none() {
            self.scan_former(at, map, cx);
        }
        self.conclude_join(at, map, cx);
    }

    /// Notes that a replica has joined, if everybody was copied from.
    fn conclude_join(&mut self, at: Position, map: &Map, cx: &mut Context<'_>) {
        let (replica, mut peers) = (&self.durable.replicas[&at], self.settings.shape.peers(at));
        let is_done = peers.all(|peer| replica.is_done_with(map, peer))
            && self.former_of(replica) == Former::Nobody;
        let replica = self.durable.replicas.get_mut(&at).expect("it was just there");
        if is_done && !replica.record.is_joined {
            probe!("causal/joined");
            replica.record.is_joined = true;
            // What was replaced before its peers knew of it may have been dropped with its name.
            replica.names.begin(cx.now);
            replica.record.finished.clear();
            replica.persist(cx);
            self.note_refilled();
        }
    }

    /// Notes that this host has all that it has to hold, once that is so. A replica whose peer does
    /// not answer has not: what that peer has may be nowhere else.
    pub(super) fn note_refilled(&mut self) {
        let mut replicas = self.durable.replicas.values();
        let has_all =
            self.durable.map.is_some() && replicas.all(|replica| replica.record.is_joined);
        self.volatile.has_refilled |= has_all;
    }

    /// A page of a scan has come.
    pub(super) fn on_scan_reply(
        &mut self,
        from: Incarnation,
        (pair, to): (Pair, Actor),
        step: u64,
        (clock, page, next): (&Clock, Bytes, Bytes),
        cx: &mut Context<'_>,
    ) {
        let at = match pair.to == pair.from.position {
            true => self.hear_former(from, pair),
            false => self.greet(from, pair, cx),
        };
        let Some(at) = at else { return };
        let shape = self.settings.shape;
        let Some(map) = self.durable.map.clone() else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        let peer = pair.from;
        let scan = replica.rounds.scans.get_mut(&peer.position);
        let Some(scan) = scan.filter(|scan| scan.step == step && replica.record.actor == to) else {
            return replica.flush(cx);
        };
        if scan.actor.is_some_and(|scanned| scanned != peer) {
            // Another actor holds the position now: all anew.
            probe!("causal/scan_anew");
            replica.rounds.scans.remove(&peer.position);
            return replica.flush(cx);
        }
        let Ok(entries) = page::read(page) else { return replica.flush(cx) };
        scan.actor = Some(peer);
        scan.silent = 0;
        if scan.clock.as_ref().is_some_and(|begun| begun.base(peer) < clock.base(peer)) {
            probe!("causal/issued_during_scan");
        }
        if mutant!("scan_ends_its_clock") {
            scan.clock = None;
        }
        let begun = scan.clock.get_or_insert_with(|| clock.clone()).clone();
        let begin = core::mem::replace(&mut scan.from, next.clone());
        replica.know(shape, clock);
        let mut unlisted: BTreeSet<Bytes> = BTreeSet::new();
        let last = *shape.hashes(&shape.shared(at, peer.position)).end();
        unlisted.extend(replica.keys_between(&begin, &next, last, cx));
        for page::Entry { key, object, dots } in entries {
            unlisted.remove(&key);
            copy(replica, shape, &key, (object, clock), &dots, cx);
        }
        for key in unlisted {
            probe!("causal/absent_at_peer");
            copy(replica, shape, &key, (Object::default(), clock), &[], cx);
        }
        if next.is_empty() {
            finish(replica, shape, peer, &begun, cx);
            self.conclude_join(at, &map, cx);
        } else if let Some(scan) = replica.rounds.scans.get_mut(&peer.position) {
            scan.step += 1;
            scan.asked_at = cx.now;
            let pair = Pair { from: replica.record.actor, to: peer.position, map: map.version };
            cx.fx.send(from, Message::ScanA { pair, step: scan.step, key: next });
        }
        self.durable.replicas.get_mut(&at).expect("it was greeted").flush(cx);
    }
}

/// Asks a host for the keys that a replica and a position of the host both hold, from where its
/// answers have come to; again if it has not answered.
pub(super) fn ask(
    replica: &mut Replica,
    (peer, host): (Position, NodeId),
    shape: Shape,
    map: &Map,
    cx: &mut Context<'_>,
) {
    let first = first_key(shape, replica.position(), peer);
    let scan = replica.rounds.scans.entry(peer).or_insert(Scan {
        actor: None,
        step: 0,
        from: first,
        clock: None,
        asked_at: Time(0),
        silent: 0,
    });
    let is_first = scan.step == 0;
    if is_first || cx.now >= scan.asked_at + PATIENCE {
        if !is_first {
            scan.silent += 1;
        }
        scan.step += 1;
        scan.asked_at = cx.now;
        let pair = Pair { from: replica.record.actor, to: peer, map: map.version };
        let message = Message::ScanA { pair, step: scan.step, key: scan.from.clone() };
        cx.fx.send(host, message);
    }
}

/// The first key that two positions both hold.
pub(super) fn first_key(shape: Shape, one: Position, other: Position) -> Bytes {
    let hashes = shape.hashes(&shape.shared(one, other));
    Bytes::copy_from_slice(&hashes.start().to_be_bytes())
}

/// Takes in what a scanned peer knows of a key.
fn copy(
    replica: &mut Replica,
    shape: Shape,
    key: &Bytes,
    (mut object, clock): (Object, &Clock),
    dots: &[crate::dots::dot::Dot],
    cx: &mut Context<'_>,
) {
    let replicas = shape.replicas_of(shape.home(hash_of(key)));
    if replicas.contains(&replica.position().0) {
        object.fill(clock, |actor| replicas.contains(&actor.position.0));
        replica.update(shape, key, object, dots, cx);
    }
}

/// A peer was scanned to the end: all that it had issued when the scan began is seen, and what it
/// had seen then is kept.
fn finish(replica: &mut Replica, shape: Shape, peer: Actor, begun: &Clock, cx: &mut Context<'_>) {
    replica.rounds.scans.remove(&peer.position);
    if let Some(entry) = begun.get(peer).cloned() {
        replica.touch(peer).merge(&entry);
    }
    replica.record.finished.insert(peer.position, peer);
    if peer.position == replica.position() {
        former::take_over(replica, begun);
        return replica.persist(cx);
    }
    // What others have issued is of no keys of this replica.
    let at = replica.position();
    let is_near = |actor: &Actor| actor.position == at || shape.are_peers(at, actor.position);
    let seen = begun.iter().map(|(actor, entry)| (actor, entry.filled()));
    let seen = seen.filter(|(actor, _)| is_near(actor));
    // What an earlier actor of the position had seen was copied, too, and may be nowhere else now.
    let known = replica.record.witnesses.remove(&peer.position).unwrap_or_default();
    let witness: CausalContext = known.into_iter().chain(seen).collect();
    replica.record.witnesses.insert(peer.position, witness.iter().collect());
    replica.persist(cx);
}
