//! Anti-entropy by node clocks (DottedDB §IV-G, Alg. 3).
//!
//! The asker shows its clock. The answer holds the objects of all keys that both hold and that have
//! an update which the asker has not seen, and the clock of the same moment (T9): a newer clock
//! would say of older objects that they know more than they do. When nothing was left out, the
//! asker has seen every update that the answerer issued: those of keys that it holds are in the
//! answer or were seen before, the others are no news for it. So it takes over the answerer's own
//! entry, and *only* that: of any other actor the answerer may have seen an update because it took
//! over an entry, of a key that it does not hold and the asker does.
//!
//! Each answer stands alone: one that had to leave something out is followed by a new question, and
//! takes over nothing (T10). Updates of former actors are exchanged like all others (T5).

use super::keys::hash_of;
use super::map::{Map, Shape};
use super::message::{Message, PAGE_BYTES, Pair, TellClock};
use super::page;
use super::replica::Replica;
use super::timer::Timer;
use super::{Causal, Context};
use crate::dots::clock::Clock;
use crate::dots::dot::{Actor, Dot, Position};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;

impl Causal {
    /// It is time for each replica's next exchange.
    pub(super) fn on_sync_time(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(Timer::Sync, cx.now + self.settings.sync_interval);
        let Some(map) = self.durable.map.clone() else { return };
        let positions: Vec<Position> = self.durable.replicas.keys().copied().collect();
        for at in positions {
            self.scan_on(at, &map, cx);
            self.begin_sync(at, &map, cx);
        }
        self.hand_over(cx);
        self.tell_catalog(cx);
    }

    fn begin_sync(&mut self, at: Position, map: &Map, cx: &mut Context<'_>) {
        let shape = self.settings.shape;
        let Some(replica) = self.durable.replicas.get_mut(&at) else { return };
        let Some(peer) = replica.rounds.next(shape.peers(at), cx.now, cx.rng) else { return };
        if !replica.has_copied(map, peer) {
            // What it has collected can only be scanned (T8).
            return;
        }
        let pair = Pair { from: replica.actor(), to: peer, map: map.version };
        let clock = TellClock::of(&replica.clock);
        let host = map.place(peer).expect("peers are positions").host;
        cx.fx.send(host, Message::SyncA { pair, clock });
    }

    /// Looks at who speaks; returns the position spoken to if the speaker is what it says.
    pub(super) fn greet(
        &mut self,
        from: Incarnation,
        pair: Pair,
        cx: &mut Context<'_>,
    ) -> Option<Position> {
        let map = self.durable.map.as_ref()?;
        if pair.map < map.version {
            cx.fx.send(from, Message::MapB { map: map.clone() });
        } else if pair.map > map.version {
            // A question promises nothing.
            cx.fx.send_early(from, Message::MapA { version: map.version });
        }
        let replica = self.durable.replicas.get_mut(&pair.to)?;
        if pair.from.node != from.node || !replica.meet(map, self.settings.shape, pair.from) {
            probe!("causal/stale_peer");
            self.volatile.counters.late += 1;
            return None;
        }
        Some(pair.to)
    }

    /// A peer asks what it has not seen.
    pub(super) fn on_sync(
        &mut self,
        from: Incarnation,
        pair: Pair,
        clock: Clock,
        cx: &mut Context<'_>,
    ) {
        let Some(at) = self.greet(from, pair, cx) else { return };
        let Some(map) = self.durable.map.as_ref() else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        replica.watermark.raise(pair.from, &clock);
        replica.know(self.settings.shape, &clock);
        replica.flush(cx);
        let wants = replica.has_copied(map, pair.from.position);
        let answer = answer(replica, map, self.settings.shape, pair.from, &clock, wants, cx);
        cx.fx.send(from, answer);
    }

    /// A peer has told what this replica had not seen.
    pub(super) fn on_sync_reply(
        &mut self,
        from: Incarnation,
        (pair, to): (Pair, Actor),
        (clock, page): (&Clock, Bytes),
        (is_joined, is_complete, wants): (bool, bool, bool),
        cx: &mut Context<'_>,
    ) {
        let Some(at) = self.greet(from, pair, cx) else { return };
        let shape = self.settings.shape;
        let Some(map) = self.durable.map.clone() else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        let peer = pair.from;
        if replica.actor() != to || !replica.has_copied(&map, peer.position) {
            return replica.flush(cx);
        }
        replica.rounds.answered(peer.position);
        if wants {
            // From the state before the page is taken in, so that clock and objects fit together.
            replica.flush(cx);
            let answer = answer(replica, &map, shape, peer, clock, false, cx);
            cx.fx.send(from, answer);
        }
        let Ok(entries) = page::read(page) else { return };
        self.volatile.counters.repaired += entries.len() as u64;
        for page::Entry { key, mut object, dots } in entries {
            let replicas = shape.replicas_of(shape.home(hash_of(&key)));
            if !replicas.contains(&at.0) {
                continue;
            }
            object.fill(clock, |actor| replicas.contains(&actor.position.0));
            replica.update(shape, &key, object, &dots, cx);
        }
        replica.know(shape, clock);
        if is_complete {
            take_over(replica, peer, clock);
        } else {
            probe!("causal/incomplete_sync");
        }
        replica.watermark.raise(peer, clock);
        if is_complete && is_joined {
            replica.note_pulled(&map, shape, peer.position, pair.map, clock);
        }
        replica.flush(cx);
        if !is_complete {
            self.sync_again(at, peer, from, &map, cx);
        }
    }

    fn sync_again(
        &mut self,
        at: Position,
        peer: Actor,
        from: Incarnation,
        map: &Map,
        cx: &mut Context<'_>,
    ) {
        let replica = &self.durable.replicas[&at];
        let pair = Pair { from: replica.actor(), to: peer.position, map: map.version };
        cx.fx.send(from, Message::SyncA { pair, clock: TellClock::of(&replica.clock) });
    }
}

/// Takes over what a peer has issued itself.
fn take_over(replica: &mut Replica, peer: Actor, clock: &Clock) {
    if mutant!("merge_whole_clock") {
        let own = replica.actor();
        for (actor, entry) in clock.iter().filter(|(actor, _)| *actor != own) {
            replica.touch(actor).merge(entry);
        }
        return;
    }
    let issued = clock.get(peer);
    let is_news = |entry: &&crate::dots::clock::Entry| replica.clock.base(peer) < entry.base();
    if let Some(entry) = issued.filter(is_news).cloned() {
        replica.touch(peer).merge(&entry);
    }
}

/// What a peer with this clock has not seen of the keys that both hold.
fn answer(
    replica: &Replica,
    map: &Map,
    shape: Shape,
    peer: Actor,
    clock: &Clock,
    wants: bool,
    cx: &Context<'_>,
) -> Message {
    let shared = shape.shared(replica.position(), peer.position);
    let mut missing: BTreeMap<&Bytes, Vec<Dot>> = BTreeMap::new();
    for actor in replica.dot_keys.actors() {
        let seen = clock.get(actor);
        if seen.is_some_and(|seen| seen.closed) {
            continue;
        }
        let base = seen.map_or(0, |seen| seen.base());
        for (counter, key) in replica.dot_keys.above(actor, base) {
            let is_seen = seen.is_some_and(|seen| seen.contains(counter));
            if !is_seen && shared.contains(&shape.home(hash_of(key))) {
                let dots = missing.entry(key).or_default();
                if dots.len() < page::DOTS_MAX {
                    dots.push(Dot { actor, counter });
                }
            }
        }
    }
    let (mut page, mut is_complete) = (BytesMut::new(), true);
    for (key, dots) in missing {
        if page.len() >= PAGE_BYTES {
            is_complete = false;
            break;
        }
        let object = cx.table.get(Class::Data, &replica.stored_key(key)).unwrap_or_default();
        page::push(&mut page, key, &object, &dots);
    }
    Message::SyncB {
        pair: Pair { from: replica.actor(), to: peer.position, map: map.version },
        to: peer,
        clock: TellClock::of(&replica.clock),
        is_joined: replica.record.is_joined,
        is_complete,
        wants,
        page: page.freeze(),
    }
}
