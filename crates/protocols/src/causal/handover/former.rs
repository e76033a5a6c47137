//! Former holders: the new holder of a partition copies from the one before.
//!
//! With one replica of each key nobody else has what a partition holds. With more, a peer may have
//! lost its data since it last told that it has it, and be copying too; and what it had seen is in
//! no dot-key map any more. So whoever gets a partition scans the replica that leaves it, as it
//! would scan a peer, and joins when that was read to the end; the one that leaves keeps everything
//! until then. It takes in nothing more, and both hold the same keys: of whatever the one has seen,
//! the other has the objects, so its whole clock is taken over. (DottedDB has no leaving nodes; a
//! host that is gone for good is not waited for.)
//!
//! Who held a partition and has not handed it over is in the catalog's record. Who does not
//! know the record of its own decree waits for it. If there were several, the first comes first.

use super::join::ask;
use super::scan::answer;
use crate::causal::map::{Map, Shape};
use crate::causal::message::Pair;
use crate::causal::replicate::replica::Replica;
use crate::causal::{Causal, Context};
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Partition};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
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
    /// The node that has had the partition since that version of the map.
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
    /// Whether a holder near a partition may still hand over of which its clock has never heard. It
    /// may have been cut off for as long as it held its own.
    pub fn is_unheard_of(&self, clock: &Clock, shape: Shape, at: Partition) -> bool {
        let is_unheard_of = |one: &Tenure| {
            let Ok(held) = u16::try_from(one.partition).map(Partition) else { return false };
            let is_near = held == at || shape.are_peers(held, at);
            let is_it = |actor: Actor| (actor.since, actor.node) == (one.since, one.node);
            // What is closed was closed with it, if it is later.
            let speaks_for_it =
                |(actor, entry): (Actor, &Entry)| entry.closed && actor.since > one.since;
            is_near && !clock.at(held).any(|known| is_it(known.0) || speaks_for_it(known))
        };
        !self.is_known || self.tenures.iter().any(is_unheard_of)
    }

    /// Whether a holder of a partition by an earlier version of the map has handed over, by the
    /// record alone: who knew it otherwise may have lost that with all else.
    pub fn has_ended(&self, map: &Map, actor: Actor) -> bool {
        let is_it = |one: &Tenure| {
            let at = u32::from(actor.partition.0);
            (one.partition, one.since, one.node) == (at, actor.since, actor.node)
        };
        let is_past = map.place(actor.partition).is_some_and(|now| actor.since < now.since);
        // Who is gone for good has no tenure either, and has handed over nothing.
        let is_there = !map.is_gone(actor.node) && !mutant!("record_ends_nothing");
        self.is_known && is_past && is_there && !self.tenures.iter().any(is_it)
    }
}

impl Causal {
    /// Who still hands over, as far as that is known.
    pub(crate) fn owing(&self) -> Owing {
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
    pub(crate) fn note_former_of(&mut self, keyspace: &Keyspace) {
        self.note_former(keyspace.changed, &keyspace.former);
    }

    /// Whom a replica that has a partition since a version copies from next, if it has copied from
    /// all that had it until another.
    pub(super) fn next_former(&self, at: Partition, since: u64, copied: u64) -> Former {
        let has_peers = self.settings.shape.peers(at).next().is_some();
        let is_left_out = has_peers && mutant!("former_copied_alone_only");
        if is_left_out || since == self.settings.born {
            return Former::Nobody;
        }
        let Some((_, tenures)) =
            self.volatile.former.as_ref().filter(|(version, _)| *version >= since)
        else {
            return Former::Unknown;
        };
        let is_due = |one: &&Tenure| {
            one.partition == u32::from(at.0) && copied < one.since && one.since < since
        };
        let next = tenures.iter().filter(is_due).min_by_key(|one| one.since);
        next.map_or(Former::Nobody, |one| Former::Holder(one.since, one.node))
    }

    /// The same of a replica that is here.
    pub(super) fn former_of(&self, replica: &Replica) -> Former {
        let at = replica.partition();
        let copied = replica.record.finished.get(&at).map_or(0, |actor| actor.since);
        self.next_former(at, replica.actor().since, copied)
    }

    /// Whether nobody is left to copy from behind whom a replica copies from next. The others are
    /// not asked before: while that one is down nobody knows what they have.
    pub(super) fn is_last_former(&self, replica: &Replica) -> bool {
        let (at, since) = (replica.partition(), replica.actor().since);
        match self.former_of(replica) {
            Former::Unknown => false,
            Former::Nobody => true,
            Former::Holder(next, _) => self.next_former(at, since, next) == Former::Nobody,
        }
    }

    /// Goes on with the scan of the former holder of a partition.
    pub(super) fn scan_former(&mut self, at: Partition, map: &Map, cx: &mut Context<'_>) {
        let shape = self.settings.shape;
        let former = self.former_of(&self.durable.replicas[&at]);
        let replica = self.durable.replicas.get_mut(&at).expect("the caller found it");
        match former {
            Former::Holder(_, node) => ask(replica, (at, node), shape, map, cx),
            Former::Unknown | Former::Nobody => drop(replica.rounds.scans.remove(&at)),
        }
    }

    /// Whether this is the former holder that a replica here waits for.
    pub(super) fn hear_former(&self, from: Incarnation, pair: Pair) -> Option<Partition> {
        let replica = self.durable.replicas.get(&pair.to)?;
        let awaited = Former::Holder(pair.from.since, pair.from.node);
        let is_it = pair.from.node == from.node && self.former_of(replica) == awaited;
        (is_it && !replica.record.is_joined).then_some(pair.to)
    }

    /// The new holder of a partition asks the replica here that leaves it for the keys from one on.
    ///
    /// If this host has left it more than once, each answers that is still here: the asker knows
    /// which it has copied, and takes the answer of the one that comes next.
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
            replica.partition() == at && replica.actor().since < pair.from.since
        };
        let leaving = self.durable.leaving.iter().map(|one| &one.replica).filter(its);
        let most = if mutant!("answers_as_one_tenure") { 1 } else { usize::MAX };
        let mut leaving: Vec<&Replica> = leaving.filter(|_| pair.from.node == from.node).collect();
        leaving.sort_by_key(|replica| replica.actor().since);
        let held = self.durable.replicas.get(&at).map(|held| held.actor().birth);
        for replica in leaving.into_iter().take(most) {
            probe!("causal/former_scanned");
            invariant!(replica.record.is_leaving, "only who leaves is a former holder");
            let is_later = held.is_none_or(|birth| birth > replica.actor().birth);
            invariant!(is_later, "a replica is in one place");
            let hashes = shape.hashes(&shape.homes(at));
            let asked = Pair { map: map.version, ..pair };
            let answer = answer(replica, (asked, step), (&hashes, limits, key), cx);
            cx.fx.send(from, answer);
        }
    }

    /// Whether a former holder must keep what it has, because its successor is here and has not
    /// copied it, or may not know yet that it is the successor. Who holds no partition near it says
    /// nothing: it is one that will, or does no more.
    pub(crate) fn has_to_copy(&self, former: Actor) -> bool {
        let (shape, replicas) = (self.settings.shape, &self.durable.replicas);
        if mutant!("former_lets_go") {
            return false;
        }
        let has_copied = |replica: &Replica| {
            let copied = replica.record.finished.get(&former.partition);
            replica.actor().since > former.since
                && (replica.record.is_joined
                    || copied.is_some_and(|copied| copied.since >= former.since))
        };
        match replicas.get(&former.partition) {
            Some(successor) => !has_copied(successor),
            None => !replicas.keys().any(|at| shape.are_peers(*at, former.partition)),
        }
    }
}

/// Takes over the clock of a former holder that was scanned to the end. It held the same keys.
pub(crate) fn take_over(replica: &mut Replica, clock: &Clock) {
    for (actor, entry) in clock.iter() {
        if entry.closed {
            replica.close_actor(actor);
        } else if !replica.is_closed(actor) {
            replica.touch(actor).merge(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::join::see_issued;
    use super::*;
    use crate::causal::Settings;
    use crate::causal::replicate::replica::Record;
    use crate::causal::token::Tokens;
    use crate::dots::dot::Dot;
    use alloc::collections::BTreeMap;
    use quorate_kernel::ids::ClusterId;

    fn actor(partition: u16, birth: u32) -> Actor {
        Actor { partition: Partition(partition), since: 2, birth, node: NodeId(u64::from(birth)) }
    }

    fn replica() -> Replica {
        let record = Record {
            actor: actor(1, 9),
            reserved: 0,
            is_joined: false,
            finished: BTreeMap::new(),
            witnesses: BTreeMap::new(),
            is_leaving: false,
        };
        let tokens = Tokens::new(b"secret", ClusterId(1));
        Replica::new(9, record, &Settings::usual(Shape::new(4, 3), None, tokens))
    }

    fn known(replica: &Replica, partition: u16) -> Vec<(u32, bool)> {
        let at = replica.clock.at(Partition(partition));
        at.map(|(actor, entry)| (actor.birth, entry.closed)).collect()
    }

    /// A replica whose data is of an earlier moment copies from a former holder that knows less.
    #[test]
    fn who_is_spoken_for_gets_no_entry_again() {
        let mut replica = replica();
        replica.close_actor(actor(2, 4));
        let mut clock = Clock::default();
        clock.entry(actor(2, 1)).merge(&Entry::upto(7));
        clock.close(actor(2, 2));
        clock.entry(actor(2, 3)).merge(&Entry::upto(7));
        clock.close(actor(3, 2));
        clock.entry(actor(3, 5)).merge(&Entry::upto(7));
        take_over(&mut replica, &clock);
        assert_eq!(known(&replica, 2), [(4, true)], "it speaks for all before");
        assert_eq!(known(&replica, 3), [(2, true), (5, false)]);
    }

    /// The copy from a former holder was complete, and what rested on it was lost with power after
    /// a later replica had closed it.
    #[test]
    fn a_former_holder_that_is_scanned_again_is_not_opened_again() {
        let mut replica = replica();
        let former = actor(1, 4);
        let begun: Clock = [(former, Entry::upto(7))].into_iter().collect();
        see_issued(&mut replica, former, &begun);
        assert_eq!(known(&replica, 1), [(4, false), (9, false)], "its data was copied");
        replica.close_actor(actor(1, 5));
        see_issued(&mut replica, former, &begun);
        take_over(&mut replica, &begun);
        assert_eq!(known(&replica, 1), [(5, true), (9, false)]);
        assert!(replica.clock.contains(Dot { actor: former, counter: 7 }));
    }

    /// Nobody else says of who holds a partition that it is over.
    #[test]
    fn a_replica_is_not_closed_by_what_others_tell_it() {
        let mut replica = replica();
        for birth in [9, 10] {
            let mut clock = Clock::default();
            clock.close(actor(1, birth));
            take_over(&mut replica, &clock);
            assert_eq!(known(&replica, 1), [(9, false)]);
        }
    }

    #[test]
    fn entries_that_were_stored_beside_who_speaks_for_them_go() {
        let mut replica = replica();
        let closed = |birth| {
            let mut clock = Clock::default();
            clock.close(actor(2, birth));
            let entry = clock.get(actor(2, birth)).cloned();
            (actor(2, birth), entry.expect("it was closed"))
        };
        let open = (actor(2, 3), Entry::upto(7));
        replica.clock =
            [closed(2), open, closed(4), (actor(1, 9), Entry::default())].into_iter().collect();
        replica.drop_spoken_for();
        assert_eq!(known(&replica, 2), [(4, true)]);
        assert_eq!(known(&replica, 1), [(9, false)]);
    }
}
