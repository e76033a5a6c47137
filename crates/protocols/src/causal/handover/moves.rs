//! Newer maps: partitions that this host holds from now on, and those that it held.
//!
//! The engine decides nothing here. A catalog gives out the versions, and nodes pass the newest on;
//! one that is cut off serves from the map it has.

use super::former::Former;
use crate::causal::keys::{BIRTH, MAP, state_bytes};
use crate::causal::map::Map;
use crate::causal::message::Message;
use crate::causal::replicate::replica::{Record, Replica};
use crate::causal::state::Durable;
use crate::causal::{Causal, Context};
use crate::dots::dot::{Actor, Partition};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::keyspace::{Keyspace, Settlement};
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// How long the catalog has to decide what it was told before it is told again.
const TOLD_AGAIN: Span = Span::secs(11);
/// How many words of one keyspace wait for the catalog at a time: what is too much there is
/// forgotten, and would be told again late.
const TOLD_MAX: usize = 8;

impl Causal {
    /// A node with an older map asks for this one's.
    pub(crate) fn on_map_asked(&mut self, from: Incarnation, version: u64, cx: &mut Context<'_>) {
        if from == cx.me {
            // Asked at the start, after all that the start wrote.
            self.volatile.is_settled = true;
            return;
        }
        let Durable { map, replicas, .. } = &self.durable;
        invariant!(map.is_some() || replicas.is_empty(), "who has a replica has a map");
        if let Some(map) = map.as_ref().filter(|map| map.version > version) {
            let is_given = |replica: &Replica| {
                let place = map.place(replica.partition());
                place.is_some_and(|it| (it.host, it.since) == (cx.me.node, replica.actor().since))
            };
            invariant!(replicas.values().all(is_given), "a host holds what the map gives it");
            cx.fx.send(from, Message::MapB { map: map.clone() });
        }
    }

    /// Tells the map to a node that took this one for a replica of a key: one of the two has an
    /// older map.
    pub(crate) fn tell_map(&mut self, to: Incarnation, cx: &mut Context<'_>) {
        let Some(map) = self.durable.map.clone() else { return };
        probe!("causal/asked_for_nothing");
        // A question promises nothing; of an older map nobody takes notice.
        cx.fx.send_early(to, Message::MapA { version: map.version });
        cx.fx.send(to, Message::MapB { map });
    }

    /// Somebody has shown the version of its map: tells a newer one, or asks for it.
    pub(crate) fn compare_maps(&self, from: Incarnation, version: u64, cx: &mut Context<'_>) {
        let Some(map) = self.durable.map.as_ref() else { return };
        if version < map.version {
            cx.fx.send(from, Message::MapB { map: map.clone() });
        } else if version > map.version {
            // A question promises nothing.
            cx.fx.send_early(from, Message::MapA { version: map.version });
        }
    }

    /// Takes a map, if it is newer.
    pub(crate) fn take_map(&mut self, map: Map, cx: &mut Context<'_>) {
        let is_newer = self.durable.map.as_ref().is_none_or(|known| known.version < map.version);
        if !is_newer || !map.fits(self.settings.shape) {
            return;
        }
        cx.fx.put_state(MAP, state_bytes(&map));
        if self.durable.map.as_ref().is_some_and(|known| known.says_the_same(&map)) {
            self.durable.map = Some(map);
            return;
        }
        let (held, lost): (BTreeMap<_, _>, BTreeMap<_, _>) =
            core::mem::take(&mut self.durable.replicas).into_iter().partition(|(at, replica)| {
                let place = map.place(*at);
                place.is_some_and(|place| {
                    place.host == cx.me.node && place.since == replica.actor().since
                })
            });
        self.durable.replicas = held;
        for (_, replica) in lost {
            probe!("causal/partition_lost");
            self.leave(replica, cx);
        }
        self.leave_nothing(&map, cx);
        for replica in self.durable.replicas.values_mut() {
            replica.begin_anew(&map);
        }
        self.durable.map = Some(map);
        self.take_partitions(false, cx);
        self.note_refilled();
    }

    /// Takes note of what the catalog waits for: partitions that this host is to join at, and
    /// former ones that it is to hand over.
    pub(crate) fn owe(&mut self, keyspace: &Keyspace, cx: &mut Context<'_>) {
        let (me, places) = (cx.me.node, (0u16..).zip(&keyspace.partitions));
        let unsettled = places.filter(|(_, place)| place.node == me && !place.is_settled);
        let unsettled =
            unsettled.map(|(at, place)| (Partition(at), place.since, Settlement::Joined));
        let former = keyspace.former.iter().filter(|one| one.node == me);
        let former = former.filter_map(|one| {
            let at = u16::try_from(one.partition).ok()?;
            Some((Partition(at), one.since, Settlement::HandedOver))
        });
        // That it has joined may have been told just now, of a partition that is a former one
        // since: that it has handed over need not wait for that.
        let told = core::mem::take(&mut self.volatile.owed);
        let told_at = |one| (one, told.get(&one).copied().flatten());
        self.volatile.owed = unsettled.chain(former).map(told_at).collect();
        self.tell_catalog(cx);
    }

    /// Tells the catalog what it waits for and what is so by now; again after a while, as it may
    /// not have been able to decide it. What was not told yet comes first: what waits there is
    /// bounded, and each decision brings the next words.
    pub(crate) fn tell_catalog(&mut self, cx: &mut Context<'_>) {
        if self.volatile.owed.is_empty() {
            return;
        }
        let Causal { durable, volatile, .. } = self;
        let waits =
            |told_at: &Option<Time>| told_at.is_some_and(|told_at| cx.now < told_at + TOLD_AGAIN);
        let waiting = volatile.owed.values().filter(|told_at| waits(told_at)).count();
        let most = if mutant!("tells_all_at_once") { usize::MAX } else { TOLD_MAX };
        let room = most.saturating_sub(waiting);
        let owed = volatile.owed.iter_mut();
        let mut due: Vec<_> =
            owed.filter(|(owed, told_at)| !waits(told_at) && is_done(durable, **owed)).collect();
        due.sort_by_key(|(_, told_at)| **told_at);
        for ((at, since, settlement), told_at) in due.into_iter().take(room) {
            *told_at = Some(cx.now);
            cx.fx.announce_settled(u32::from(at.0), *since, *settlement);
        }
    }

    /// Begins a replica at every partition that this host holds and has none at. Who never had any
    /// and holds it since the keyspace was born has nothing to copy, however late it hears of it:
    /// until it speaks its peers keep the dot-key entries of all that it lacks.
    pub(crate) fn take_partitions(&mut self, is_newborn: bool, cx: &mut Context<'_>) {
        let Some(map) = self.durable.map.clone() else { return };
        let shape = self.settings.shape;
        let mine: Vec<Partition> = map.partitions_of(cx.me.node).collect();
        for at in mine {
            if self.durable.replicas.contains_key(&at) {
                continue;
            }
            let since = map.place(at).expect("the map said so").since;
            self.durable.birth = self.durable.birth.checked_add(1).expect("fewer than 2^32 births");
            let actor = Actor { partition: at, since, birth: self.durable.birth, node: cx.me.node };
            // Without peers there is only a former holder to copy from, if anybody.
            let is_alone = shape.peers(at).next().is_none();
            let has_nobody = is_alone && self.next_former(at, since, 0) == Former::Nobody;
            let is_first = is_newborn && since == self.settings.born;
            let record = Record {
                actor,
                reserved: 0,
                is_joined: is_first || has_nobody,
                finished: BTreeMap::new(),
                witnesses: BTreeMap::new(),
                is_leaving: false,
            };
            let mut replica = Replica::new(actor.birth, record, &self.settings);
            if !is_first {
                replica.names.begin(cx.now);
            }
            replica.persist(cx);
            replica.touch(actor);
            replica.flush(cx);
            self.durable.replicas.insert(at, replica);
        }
        cx.fx.put_state(BIRTH, state_bytes(&self.durable.birth));
    }
}

/// Whether it is so what the catalog waits for.
fn is_done(durable: &Durable, (at, since, settlement): (Partition, u64, Settlement)) -> bool {
    let is_it = |replica: &Replica| (replica.partition(), replica.actor().since) == (at, since);
    let held = durable.replicas.get(&at).filter(|replica| is_it(replica));
    match settlement {
        // A replica that is gone, or leaves, may have gone by a newer map than the record.
        Settlement::Joined => held.is_some_and(|replica| replica.record.is_joined),
        Settlement::HandedOver => {
            held.is_none() && !durable.leaving.iter().any(|one| is_it(&one.replica))
        }
    }
}
