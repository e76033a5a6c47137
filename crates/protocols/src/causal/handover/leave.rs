//! Leaving: a replica whose partition was given to another host.
//!
//! It may have served for long without hearing of that, and may be the only one that has what it
//! acknowledged then. What others may lack is exactly what its dot-key map names, as long as they
//! lose nothing. It sends each such key to one replica that holds it now, until that is
//! acknowledged; then it tells the hosts of its peers that it says nothing more. Only after that
//! may they close it ([`super::retire`]). It tells the new holder of its partition too, which
//! copies everything first ([`super::former`]), the dot-key map as well: whoever was handed a key
//! may be lost before it has told the others. So nothing is dropped before all of it is let go of.
//! If the map says that its host is gone for good there is nothing to hand over: nobody takes it.

use crate::causal::anti_entropy::watch::PATIENCE;
use crate::causal::keys::{garbage_key, replica_key};
use crate::causal::map::{Map, Shape};
use crate::causal::message::Message;
use crate::causal::page;
use crate::causal::replicate::replica::Replica;
use crate::causal::{Causal, Context};
use crate::dots::dot::{Actor, Dot, Partition};
use crate::dots::dot_keys::DotKeys;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

/// How many keys one leaving replica has in flight.
const HANDED_OVER_MAX: usize = 64;

/// How many dots of one key are handed over at a time: they stand in the head of a message.
pub(crate) const DOTS_MAX: usize = 1024;

/// What is not acknowledged. It is sent again under the same number: an acknowledgement that takes
/// longer than it is waited for counts all the same.
#[derive(Debug)]
struct Handed {
    key: Bytes,
    dots: Vec<Dot>,
    sent_at: Option<Time>,
}

/// A replica that leaves.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub replica: Replica,
    /// What of its dot-key map nobody is known to have taken.
    pub remaining: DotKeys,
    handed: BTreeMap<u64, Handed>,
    /// The hosts that know that it says nothing more, and the newest map by which each said so.
    noted: BTreeMap<NodeId, u64>,
    told_at: Option<Time>,
    /// Whether it lost what it had to keep until the new holder has copied it, or has not all of
    /// that yet.
    pub has_forgotten: bool,
}

impl Leaving {
    pub fn new(replica: Replica) -> Leaving {
        let (handed, noted) = (BTreeMap::new(), BTreeMap::new());
        let remaining = replica.dot_keys.clone();
        Leaving { replica, remaining, handed, noted, told_at: None, has_forgotten: false }
    }

    /// What was handed over in an earlier start is not handed over again.
    fn forget_what_was_handed_over(&mut self) {
        if !self.remaining.is_empty() {
            probe!("causal/handed_over_before");
        }
        self.remaining = DotKeys::default();
        self.handed.clear();
    }

    /// The hosts that must know when it says nothing more, and do not. Who holds its partition now
    /// must have known that when it said so. A peer that is gone for good never will, and whoever
    /// takes its place hears it of others; but who has the partition and is gone may have copied
    /// nothing.
    fn unaware(&self, map: &Map, shape: Shape) -> Vec<NodeId> {
        let at = self.replica.partition();
        let peers = shape.peers(at).filter_map(|peer| Some((map.place(peer)?.host, 0)));
        let peers =
            peers.filter(|(host, _)| !map.is_gone(*host) || mutant!("gone_peers_must_note"));
        let holder = map.place(at).map(|place| (place.host, place.since));
        let is_unaware = |(host, since): &(NodeId, u64)| {
            self.noted.get(host).is_none_or(|version| version < since)
        };
        peers.chain(holder).filter(is_unaware).map(|(host, _)| host).collect()
    }
}

impl Causal {
    /// A replica's partition has another host.
    pub(crate) fn leave(&mut self, mut replica: Replica, cx: &mut Context<'_>) {
        let (map, shape) = (self.durable.map.as_ref(), self.settings.shape);
        let is_refilled = map.is_none_or(|map| replica.is_refilled(map, shape));
        replica.record.is_leaving = true;
        replica.persist(cx);
        let mut leaving = Leaving::new(replica);
        leaving.has_forgotten = !is_refilled && !mutant!("leaves_unfilled_and_ready");
        self.durable.leaving.push(leaving);
    }

    /// Goes on with all that leave.
    pub(crate) fn hand_over(&mut self, cx: &mut Context<'_>) {
        let Some(map) = self.durable.map.clone() else { return };
        let mut leaving = core::mem::take(&mut self.durable.leaving);
        for one in &mut leaving {
            if !one.remaining.is_empty() {
                self.hand_over_some(one, cx);
            } else if one.told_at.is_none_or(|at| cx.now >= at + PATIENCE) {
                one.told_at = Some(cx.now);
                let actor = one.replica.actor();
                for host in one.unaware(&map, self.settings.shape) {
                    cx.fx.send(host, Message::LeftA { actor });
                }
            }
        }
        self.durable.leaving = leaving;
        self.let_go(cx);
    }

    fn hand_over_some(&mut self, one: &mut Leaving, cx: &mut Context<'_>) {
        let is_due =
            |handed: &Handed| handed.sent_at.is_none_or(|sent_at| cx.now >= sent_at + PATIENCE);
        if mutant!("late_hand_over_in_vain") {
            one.handed.retain(|_, handed| !is_due(handed));
        }
        let in_flight: BTreeSet<Bytes> =
            one.handed.values().map(|handed| handed.key.clone()).collect();
        let room = HANDED_OVER_MAX.saturating_sub(in_flight.len());
        let keys = one.remaining.keys_from(&[]);
        let next: Vec<Bytes> =
            keys.filter(|key| !in_flight.contains(*key)).take(room).cloned().collect();
        for key in next {
            // The rest follows when these are acknowledged. Should it not, whoever has taken them
            // in can tell all that the object says.
            let (dots, _) = page::told(one.remaining.of(&key), DOTS_MAX);
            let op = self.volatile.operations.number();
            one.handed.insert(op, Handed { key, dots, sent_at: None });
        }
        for (op, handed) in one.handed.iter_mut().filter(|(_, handed)| is_due(handed)) {
            let replicas = self.replicas_of(&handed.key);
            let Some((_, host)) = replicas.get(cx.rng.below(replicas.len() as u64) as usize) else {
                continue;
            };
            let (key, dots) = (handed.key.clone(), handed.dots.clone());
            let mut object = one.replica.fetch_seen(self.settings.shape, &key, cx);
            object.replaced = one.replica.replaced_of(&dots, &object);
            let (object, from) = (object.to_bytes(), one.replica.actor());
            handed.sent_at = Some(cx.now);
            cx.fx.send(*host, Message::HandOver { op: *op, from, dots, key, object });
        }
    }

    /// A replica holds what was handed over.
    pub(crate) fn on_handed_over(&mut self, op: u64, cx: &mut Context<'_>) {
        for one in &mut self.durable.leaving {
            if let Some(handed) = one.handed.remove(&op) {
                probe!("causal/handed_over");
                for dot in handed.dots {
                    one.remaining.remove(dot);
                    if mutant!("handed_over_is_dropped") {
                        one.replica.drop_dot(dot, cx);
                    }
                }
                one.replica.flush(cx);
            }
        }
    }

    /// A host tells that one of its former actors says nothing more.
    pub(crate) fn on_left(&mut self, from: Incarnation, actor: Actor, cx: &mut Context<'_>) {
        if actor.node != from.node {
            return;
        }
        if self.has_to_copy(actor) {
            // It says so again until this is answered.
            return;
        }
        let shape = self.settings.shape;
        let is_near = |at: Partition| at == actor.partition || shape.are_peers(at, actor.partition);
        for (at, replica) in &mut self.durable.replicas {
            invariant!(!replica.record.is_leaving, "a replica is in one place");
            let is_closed = replica.clock.get(actor).is_some_and(|entry| entry.closed);
            if is_near(*at) && !is_closed {
                replica.touch(actor).left = true;
                replica.flush(cx);
                // It is said once: state is synced, and data before it.
                replica.persist(cx);
            }
        }
        let mut near = self.durable.replicas.iter().filter(|(at, _)| is_near(**at));
        let is_noted = near.all(|(_, replica)| replica.has_left(actor) && replica.is_flushed());
        invariant!(is_noted, "what is confirmed is written");
        let map = self.durable.map.as_ref().map_or(0, |map| map.version);
        cx.fx.send(from, Message::LeftB { actor, map });
    }

    /// A host has noted it. So everything was handed over, also if it is not known any more in this
    /// start: nothing is added to what leaves.
    pub(crate) fn on_left_noted(
        &mut self,
        host: NodeId,
        (actor, map): (Actor, u64),
        cx: &mut Context<'_>,
    ) {
        for one in &mut self.durable.leaving {
            if one.replica.actor() == actor {
                let noted = one.noted.entry(host).or_default();
                *noted = map.max(*noted);
                invariant!(*noted >= map, "of two words the one by the newer map stays");
                one.forget_what_was_handed_over();
                invariant!(one.handed.is_empty(), "nothing is handed over twice");
            }
        }
        self.let_go(cx);
    }

    /// Gives up what has nothing left to hand over and was noted by everybody. Who that is may
    /// change with the map, so it is looked at now and then, too.
    fn let_go(&mut self, cx: &mut Context<'_>) {
        let Some(map) = self.durable.map.clone() else { return };
        let shape = self.settings.shape;
        let is_over = |one: &Leaving| {
            let has_handed_over = one.remaining.is_empty() && one.told_at.is_some();
            has_handed_over && one.unaware(&map, shape).is_empty()
        };
        let leaving = core::mem::take(&mut self.durable.leaving);
        let (over, left): (Vec<_>, Vec<_>) = leaving.into_iter().partition(is_over);
        self.durable.leaving = left;
        for one in over {
            probe!("causal/left");
            self.discard(one.replica.part, cx);
        }
        self.note_refilled();
    }

    /// A replica is given up; its data is swept away bit by bit.
    pub(crate) fn discard(&mut self, birth: u32, cx: &mut Context<'_>) {
        self.durable.garbage.insert(birth);
        cx.fx.put_state(garbage_key(birth), Bytes::new());
        cx.fx.delete_state(replica_key(birth));
    }

    /// Gives up what leaves if its host is gone for good by the map.
    pub(super) fn leave_nothing(&mut self, map: &Map, cx: &mut Context<'_>) {
        if map.is_gone(cx.me.node) {
            for one in core::mem::take(&mut self.durable.leaving) {
                probe!("causal/gone_and_back");
                self.discard(one.replica.part, cx);
            }
            self.note_refilled();
        }
    }
}
