//! Anti-entropy by node clocks (DottedDB §IV-G, Alg. 3).
//!
//! The asker shows its clock. The answer holds the objects of all keys that both hold and that have
//! an update which the asker has not seen, and the clock of the same moment (T9): a newer clock
//! would say of older objects that they know more than they do. Of a window in which nothing was
//! left out, the asker has seen every update that the answerer issued: those of keys that it holds
//! are in the answer or were seen before, the others are no news for it. So it takes over that part
//! of the answerer's own entry, and *only* that: of any other actor the answerer may have seen an
//! update because it took over an entry, of a key that it does not hold and the asker does.
//!
//! What replication on write is most likely still bringing is left out ([`super::in_flight`]). So
//! that the asker does not take that over, the clock says no more of the answerer itself than what
//! was not left out. Objects are filled with that clock; each says for itself that the answerer's
//! own updates are in its past.
//!
//! An answer holds the oldest dots first. One that could not hold all says where it ended, and is
//! followed by a question that goes on there ([`super::window`]). Each stands alone: its objects go
//! with its own clock, what is taken over is what its window covers, and a window that does not
//! join what was seen takes over nothing (T10). Updates of former actors are exchanged like all
//! others (T5); an actor is closed only after a whole chain of windows.

use crate::causal::keys::hash_of;
use crate::causal::map::{Map, Shape};
use crate::causal::message::{Message, Pair, TellClock, Window};
use crate::causal::page;
use crate::causal::replicate::replica::Replica;
use crate::causal::timer::Timer;
use crate::causal::{Causal, Context, Settings};
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Counter, Dot, Partition};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::Bound;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;

/// In how many steps the exchanges of one interval are begun, at most.
const STEPS_MAX: usize = 16;

impl Causal {
    /// It is time for some replicas' next exchanges. Each has one in a sync interval; they are
    /// spread over it, so that clients in between wait for a few only.
    pub(crate) fn on_sync_time(&mut self, cx: &mut Context<'_>) {
        let count = self.durable.replicas.len();
        let page = count.div_ceil(STEPS_MAX).max(1);
        let steps = count.div_ceil(page).max(1) as u64;
        cx.fx.arm(Timer::Sync, cx.now + Span(self.settings.sync_interval.0 / steps));
        let Some(map) = self.durable.map.clone() else { return };
        let begin = self.volatile.sync_from.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.durable.replicas.range((begin, Bound::Unbounded)).map(|(at, _)| *at);
        let due: Vec<Partition> = next.take(page).collect();
        for at in &due {
            self.scan_on(*at, &map, cx);
            self.begin_sync(*at, &map, cx);
        }
        let last = self.durable.replicas.last_key_value().map(|(at, _)| *at);
        self.volatile.sync_from = due.last().copied().filter(|at| Some(*at) != last);
        if self.volatile.sync_from.is_none() {
            self.hand_over(cx);
            self.tell_catalog(cx);
        }
    }

    fn begin_sync(&mut self, at: Partition, map: &Map, cx: &mut Context<'_>) {
        let (shape, limits) = (self.settings.shape, self.settings.limits);
        let Some(replica) = self.durable.replicas.get_mut(&at) else { return };
        let is_quiet = replica.is_quiet(map, shape);
        if replica.rounds.backoff.goes_on(is_quiet, map.version, cx.now) {
            return;
        }
        let Some(peer) = replica.rounds.next(shape.peers(at), cx.now, cx.rng) else { return };
        if !replica.has_copied(map, peer) {
            // What it has collected can only be scanned (T8).
            return;
        }
        let pair = Pair { from: replica.actor(), to: peer, map: map.version };
        let (clock, window) = TellClock::behind(None, &replica.clock, limits.clock_ranges);
        let host = map.place(peer).expect("peers are partitions").host;
        let all = !replica.is_refilled(map, shape);
        cx.fx.send(host, Message::SyncA { pair, clock, window, all });
    }

    /// Looks at who speaks; returns the partition spoken to if the speaker is what it says.
    pub(crate) fn greet(
        &mut self,
        from: Incarnation,
        pair: Pair,
        cx: &mut Context<'_>,
    ) -> Option<Partition> {
        self.compare_maps(from, pair.map, cx);
        let map = self.durable.map.as_ref()?;
        let replica = self.durable.replicas.get_mut(&pair.to)?;
        if pair.from.node != from.node || !replica.meet(map, self.settings.shape, pair.from) {
            probe!("causal/stale_peer");
            self.volatile.counters.late += 1;
            return None;
        }
        Some(pair.to)
    }

    /// A peer asks what it has not seen.
    pub(crate) fn on_sync(
        &mut self,
        from: Incarnation,
        pair: Pair,
        (clock, window, all): (&Clock, Window, bool),
        cx: &mut Context<'_>,
    ) {
        let Some(at) = self.greet(from, pair, cx) else { return };
        let Some(map) = self.durable.map.as_ref() else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        invariant!(!replica.record.is_leaving, "who leaves exchanges nothing");
        invariant!(replica.clock.own(pair.from).is_some(), "who was greeted is known");
        replica.watermark.raise(pair.from, clock);
        replica.know(self.settings.shape, clock);
        replica.flush(cx);
        // One chain a direction: none is begun by a question that goes on with another.
        let goes_on = replica.rounds.goes_on(pair.from.partition, cx.now);
        let is_free = window.after.is_none() && !goes_on;
        // While it refills it asks itself, as it wants all.
        let is_refilled = replica.is_refilled(map, self.settings.shape);
        let wants = is_free && is_refilled && replica.has_copied(map, pair.from.partition);
        let asked = (pair.from, clock, window);
        let answer = answer(replica, map, &self.settings, asked, (wants, all), cx);
        cx.fx.send(from, answer);
    }

    /// A peer has told what this replica had not seen.
    pub(crate) fn on_sync_reply(
        &mut self,
        from: Incarnation,
        (pair, to): (Pair, Actor),
        (clock, page): (&Clock, Bytes),
        (is_joined, covers, wants): (bool, Window, Option<Window>),
        cx: &mut Context<'_>,
    ) {
        let Some(at) = self.greet(from, pair, cx) else { return };
        let shape = self.settings.shape;
        let Some(map) = self.durable.map.clone() else { return };
        let owing = self.owing();
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        let peer = pair.from;
        invariant!(!replica.record.is_leaving, "who leaves exchanges nothing");
        invariant!(replica.clock.own(peer).is_some(), "who was greeted is known");
        if replica.actor() != to || !replica.has_copied(&map, peer.partition) {
            return replica.flush(cx);
        }
        replica.rounds.answered(peer.partition);
        if let Some(window) = wants {
            // From the state before the page is taken in, so that clock and objects fit together.
            replica.flush(cx);
            let asked = (peer, clock, window);
            let answer = answer(replica, &map, &self.settings, asked, (false, false), cx);
            cx.fx.send(from, answer);
        }
        let Ok(entries) = page::read(page) else { return replica.flush(cx) };
        self.volatile.counters.told += entries.len() as u64;
        let is_even = entries.is_empty() && covers.until.is_none();
        let peers = shape.peers(at).count();
        let bounds = (self.settings.sync_interval, self.settings.limits.backoff_intervals);
        replica.rounds.backoff.note(is_even, peers, bounds, cx.now);
        let (is_taken, repaired) = take_in(replica, shape, (entries, clock), cx);
        self.volatile.counters.repaired += repaired;
        if !is_taken {
            // It tells of more than was taken in.
            replica.rounds.chains.forget(peer.partition);
            return replica.flush(cx);
        }
        replica.know(shape, clock);
        take_over(replica, peer, clock, covers);
        replica.watermark.raise(peer, clock);
        let state = (is_joined, pair.map, clock);
        if let Some((peer_map, clock)) = replica.rounds.chains.take(peer, covers, state) {
            replica.note_pulled((&map, shape), peer.partition, (peer_map, &clock), &owing);
            if replica.record.is_joined
                && let Some(told) = &mut replica.refilled_by
            {
                told.insert(peer.partition);
            }
        }
        replica.flush(cx);
        if covers.until.is_some() && covers.is_sound() {
            probe!("causal/incomplete_sync");
            let ranges = self.settings.limits.clock_ranges;
            let all = !replica.is_refilled(&map, shape);
            let question = ask_on(replica, peer.partition, (&map, covers.until), (ranges, all), cx);
            cx.fx.send(from, question);
        }
        self.note_refilled();
    }
}

/// Asks a peer for what lies behind a dot with which its answer has ended.
fn ask_on(
    replica: &mut Replica,
    to: Partition,
    (map, after): (&Map, Option<Dot>),
    (ranges, all): (usize, bool),
    cx: &Context<'_>,
) -> Message {
    replica.rounds.ask(to, cx.now);
    let pair = Pair { from: replica.actor(), to, map: map.version };
    let (clock, window) = TellClock::behind(after, &replica.clock, ranges);
    Message::SyncA { pair, clock, window, all }
}

/// Takes in what a peer has told that this replica had not seen; whether all of it was taken, and
/// how many objects that were.
fn take_in(
    replica: &mut Replica,
    shape: Shape,
    (entries, clock): (Vec<page::Entry>, &Clock),
    cx: &mut Context<'_>,
) -> (bool, u64) {
    let (mut is_taken, mut repaired) = (true, 0);
    for page::Entry { key, mut object, dots } in entries {
        let replicas = shape.replicas_of_key(&key);
        if !replicas.contains(&replica.partition().0) {
            continue;
        }
        if replica.has_seen(&object, &dots) {
            probe!("causal/told_in_vain");
            continue;
        }
        repaired += 1;
        object.fill(clock, |actor| replicas.contains(&actor.partition.0));
        is_taken &= replica.update(shape, &key, object, (&dots, false), cx);
    }
    (is_taken, repaired)
}

/// Takes over what a peer has issued itself, as far as its answer covers that.
fn take_over(replica: &mut Replica, peer: Actor, clock: &Clock, covers: Window) {
    if mutant!("merge_whole_clock") && covers.until.is_none() {
        let own = replica.actor();
        for (actor, entry) in clock.iter().filter(|(actor, _)| *actor != own) {
            replica.touch(actor).merge(entry);
        }
        return;
    }
    if let Some(told) = covers.told(peer, clock, replica.clock.base(peer)) {
        replica.touch(peer).merge(&Entry::upto(told));
    }
}

/// What a peer with this clock has not seen of the keys that both hold, in the window asked for.
fn answer(
    replica: &Replica,
    map: &Map,
    settings: &Settings,
    asked: (Actor, &Clock, Window),
    (wants, all): (bool, bool),
    cx: &Context<'_>,
) -> Message {
    let (peer, _, window) = asked;
    let leaves_out = settings.replicate_on_write && !all;
    let in_flight = |actor: Actor| match leaves_out && !replica.is_finished(map, actor) {
        true => replica.in_flight.ceiling(actor, cx.now).unwrap_or(Counter::MAX),
        false => Counter::MAX,
    };
    let (page, until) = fill_page(replica, settings, asked, &in_flight, cx);
    let (mut told, own) = TellClock::behind(None, &replica.clock, settings.limits.clock_ranges);
    if !mutant!("in_flight_taken_over") {
        told.lower(replica.actor(), in_flight(replica.actor()));
    }
    Message::SyncB {
        pair: Pair { from: replica.actor(), to: peer.partition, map: map.version },
        to: peer,
        clock: told,
        is_joined: replica.record.is_joined,
        covers: Window { after: window.after, until },
        wants: wants.then_some(own),
        page,
    }
}

/// The page, and with which dot it ends; none if it holds all. The first dot that is missing
/// always finds room, so a page that ends comes further than where it began.
fn fill_page(
    replica: &Replica,
    settings: &Settings,
    (peer, clock, window): (Actor, &Clock, Window),
    in_flight: &impl Fn(Actor) -> Counter,
    cx: &Context<'_>,
) -> (Bytes, Option<Dot>) {
    let (shape, page_bytes) = (settings.shape, settings.limits.page_bytes);
    let shared = shape.shared(replica.partition(), peer.partition);
    // A peer has seen what it issued, also where the clock that it tells says less of that.
    let is_unseen = |dot: &Dot| {
        let seen = clock.get(dot.actor);
        dot.actor != peer && !seen.is_some_and(|seen| seen.closed || seen.contains(dot.counter))
    };
    let is_missing = |dot: &Dot| window.after.is_none_or(|after| after < *dot) && is_unseen(dot);
    let own = replica.clock.base(replica.actor());
    let is_lowered = in_flight(replica.actor()) < own && !mutant!("in_flight_not_filled");
    let own = if is_lowered { own } else { 0 };
    let (mut page, mut pushed, mut last) = (BytesMut::new(), BTreeSet::new(), window.after);
    // What a key's entry had to leave out is told by the next page.
    let mut ends_before: Option<Dot> = None;
    for actor in replica.dot_keys.actors().filter(|actor| *actor != peer) {
        let Some(floor) = window.floor(actor) else { continue };
        if clock.get(actor).is_some_and(|seen| seen.closed) {
            continue;
        }
        let ceiling = in_flight(actor);
        for (counter, key) in replica.dot_keys.above(actor, floor.max(clock.base(actor))) {
            let dot = Dot { actor, counter };
            let is_last = window.until == Some(dot);
            if window.until.is_some_and(|until| until < dot)
                || (is_last && mutant!("window_without_last"))
            {
                return (page.freeze(), window.until);
            }
            if is_last {
                probe!("causal/last_of_window");
            }
            if ends_before.is_some_and(|end| end <= dot) {
                return (page.freeze(), last);
            }
            if counter > ceiling {
                probe!("causal/in_flight");
                break;
            }
            let is_due = is_missing(&dot) && shared.contains(&shape.home(hash_of(key)));
            if is_due && !pushed.contains(key) {
                if page.len() >= page_bytes {
                    return (page.freeze(), last);
                }
                let (missing, earlier): (Vec<Dot>, Vec<Dot>) =
                    replica.dot_keys.of(key).into_iter().partition(is_missing);
                let (mut dots, left_out) = page::told(missing, page::DOTS_MAX);
                // The object has those in its past, too, whichever page they were due for.
                let is_named = |dot: &Dot| replica.dot_keys.name(*dot).is_some();
                let earlier = earlier.into_iter().rev().filter(is_unseen).filter(is_named);
                if !mutant!("causal_pages_name_later") {
                    dots.extend(earlier.take(page::DOTS_MAX));
                }
                ends_before = left_out.into_iter().chain(ends_before).min();
                let object = cx.table.get(Class::Data, &replica.stored_key(key));
                let object = replica.told(key, object.as_ref(), own, &dots);
                page::push(&mut page, key, &object, &dots);
                pushed.insert(key);
            }
            last = Some(dot);
        }
    }
    (page.freeze(), None)
}
