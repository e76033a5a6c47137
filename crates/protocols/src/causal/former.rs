//! Former holders: where a position has no peers its new holder copies from the one before.
//!
//! With one replica of each key nobody else has what a position holds. So whoever gets it scans the
//! replica that leaves, as it would scan a peer, and joins when that was read to the end; the one
//! that leaves keeps everything until then. It takes in nothing more, and both hold the same keys:
//! of whatever the one has seen, the other has the objects, so its whole clock is taken over.
//!
//! Who held a position and has not handed it over is in the catalog's record. Who does not
//! know the record of its own decree waits for it. If there were several, the first comes first.

use super::join::ask;
use super::map::{Map, Shape};
use super::message::{Message, Pair, TellClock};
use super::replica::Replica;
use super::scan::list;
use super::{Causal, Context};
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Position};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::keyspace::{Keyspace, Tenure};
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// Whom a new holder copies from next, beside its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Former {
    /// The record that says it is not known yet.
    Unknown,
    /// Nobody, or nobody any more.
    Nobody,
    /// The node that has had the position since that version of the map.
    Holder(u64, NodeId),
}

/// What the catalog's record says of former holders: which of them have not handed over yet.
#[derive(Debug)]
pub struct Owing {
    /// Whether the record is as new as the map.
    is_known: bool,
    tenures: Vec<Tenure>,
}

impl Owing {
    /// Whether a holder near a position may still hand over of which its clock has never heard. It
    /// may have been cut off for as long as it held its own.
    pub fn is_unheard_of(&self, clock: &Clock, shape: Shape, at: Position) -> bool {
        let is_unheard_of = |one: &Tenure| {
            let Ok(held) = u16::try_from(one.position).map(Position) else { return false };
            let is_near = held == at || shape.are_peers(held, at);
            let is_it = |actor: Actor| (actor.since, actor.node) == (one.since, one.node);
            // What is closed was closed with it, if it is later.
            let speaks_for_it =
                |(actor, entry): (Actor, &Entry)| entry.closed && actor.since > one.since;
            is_near && !clock.at(held).any(|known| is_it(known.0) || speaks_for_it(known))
        };
        !self.is_known || self.tenures.iter().any(is_unheard_of)
    }
}

impl Causal {
    /// Who still hands over, as far as that is known.
    pub(super) fn owing(&self) -> Owing {
        let Some(map) = &self.durable.map else {
            return Owing { is_known: false, tenures: Vec::new() };
        };
        let record = self.volatile.former.as_ref().filter(|(version, _)| *version >= map.version);
        let tenures = record.map_or(&[][..], |(_, tenures)| tenures);
        Owing {
            // Nothing has moved in a keyspace as it was born.
            is_known: record.is_some() || map.version == self.settings.born,
            tenures: tenures.iter().filter(|one| !map.is_gone(one.node)).copied().collect(),
        }
    }

    /// Takes note of who held what by a version of the record, and has not handed it over.
    pub(super) fn note_former(&mut self, version: u64, tenures: &[Tenure]) {
        let known = self.volatile.former.as_ref();
        if known.is_none_or(|(known, _)| *known < version) {
            self.volatile.former = Some((version, tenures.to_vec()));
        }
    }

    /// The same, of the catalog's record.
    pub(super) fn note_former_of(&mut self, keyspace: &Keyspace) {
        self.note_former(keyspace.changed, &keyspace.former);
    }

    /// Whom a replica that has a position since a version copies from next, if it has copied from
    /// all that had it until another.
    pub(super) fn next_former(&self, at: Position, since: u64, copied: u64) -> Former {
        let has_peers = self.settings.shape.peers(at).next().is_some();
        if has_peers || since == self.settings.born {
            return Former::Nobody;
        }
        let Some((_, tenures)) =
            self.volatile.former.as_ref().filter(|(version, _)| *version >= since)
        else {
            return Former::Unknown;
        };
        let is_due = |one: &&Tenure| {
            one.position == u32::from(at.0) && copied < one.since && one.since < since
        };
        let next = tenures.iter().filter(is_due).min_by_key(|one| one.since);
        next.map_or(Former::Nobody, |one| Former::Holder(one.since, one.node))
    }

    /// The same of a replica that is here.
    pub(super) fn former_of(&self, replica: &Replica) -> Former {
        let at = replica.position();
        let copied = replica.record.finished.get(&at).map_or(0, |actor| actor.since);
        self.next_former(at, replica.actor().since, copied)
    }

    /// Goes on with the scan of the former holder of a position without peers.
    pub(super) fn scan_former(&mut self, at: Position, map: &Map, cx: &mut Context<'_>) {
        let shape = self.settings.shape;
        let former = self.former_of(&self.durable.replicas[&at]);
        let replica = self.durable.replicas.get_mut(&at).expect("the caller found it");
        match former {
            Former::Holder(_, node) => ask(replica, (at, node), shape, map, cx),
            Former::Unknown | Former::Nobody => drop(replica.rounds.scans.remove(&at)),
        }
    }

    /// Whether this is the former holder that a replica here waits for.
    pub(super) fn hear_former(&self, from: Incarnation, pair: Pair) -> Option<Position> {
        let replica = self.durable.replicas.get(&pair.to)?;
        let awaited = Former::Holder(pair.from.since, pair.from.node);
        let is_it = pair.from.node == from.node && self.former_of(replica) == awaited;
        (is_it && !replica.record.is_joined).then_some(pair.to)
    }

    /// The new holder of a position asks the replica here that leaves it for the keys from one on.
    pub(super) fn on_scan_of_former(
        &mut self,
        from: Incarnation,
        (pair, step): (Pair, u64),
        key: &Bytes,
        cx: &mut Context<'_>,
    ) {
        self.compare_maps(from, pair.map, cx);
        let (shape, limits, at) = (self.settings.shape, self.settings.limits, pair.to);
        let Some(map) = &self.durable.map else { return };
        let its = |replica: &&Replica| {
            replica.position() == at && replica.actor().since < pair.from.since
        };
        let leaving = self.durable.leaving.iter().map(|one| &one.replica).filter(its);
        let first = leaving.min_by_key(|replica| replica.actor().since);
        let Some(replica) = first.filter(|_| pair.from.node == from.node) else { return };
        probe!("causal/former_scanned");
        let (page, end) = list(replica, &shape.hashes(&shape.homes(at)), limits, key, cx);
        let message = Message::ScanB {
            pair: Pair { from: replica.actor(), to: at, map: map.version },
            to: pair.from,
            step,
            clock: TellClock::of(&replica.clock),
            page,
            next: end.to_vec(),
        };
        cx.fx.send(from, message);
    }

    /// Whether a former holder must keep what it has, because its successor is here and has not
    /// copied it, or does not know yet that it is the successor.
    pub(super) fn has_to_copy(&self, former: Actor) -> bool {
        let shape = self.settings.shape;
        if shape.peers(former.position).next().is_some() || mutant!("former_lets_go") {
            return false;
        }
        let has_copied = |replica: &Replica| {
            let copied = replica.record.finished.get(&former.position);
            replica.actor().since > former.since
                && (replica.record.is_joined
                    || copied.is_some_and(|copied| copied.since >= former.since))
        };
        !self.durable.replicas.get(&former.position).is_some_and(has_copied)
    }
}

/// Takes over the clock of a former holder that was scanned to the end. It held the same keys.
pub(super) fn take_over(replica: &mut Replica, clock: &Clock) {
    for (actor, entry) in clock.iter() {
        if entry.closed {
            replica.close_actor(actor);
        } else if !replica.clock.get(actor).is_some_and(|known| known.closed) {
            replica.touch(actor).merge(entry);
        }
    }
}

/// The tenures behind a map, as who hands a map to an engine may add them.
pub(super) fn tenures_of(bytes: &[u8]) -> Option<Vec<Tenure>> {
    if bytes.is_empty() { Some(Vec::new()) } else { postcard::from_bytes(bytes).ok() }
}
