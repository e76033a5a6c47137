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
//! seen, so its objects are filled with that too, until its own clock says the same. So are those
//! behind which a scan has come that is still under way: what another peer brings of them between
//! two pages may have been replaced where they were absent. Whoever takes a version away on that
//! word alone tells the others, by a dot of its own: what replaced it may be in no dot-key map any
//! more, and they may have no such witness. A witness itself is not told on: what it says holds of
//! the keys that the newcomer and that peer both hold, and of no others.

use super::former::{self, Former};
use super::leave::Leaving;
use crate::causal::anti_entropy::watch::{PATIENCE, Rounds, SILENT_MAX, Scan};
use crate::causal::keys::{Kind, each_of, hash_of};
use crate::causal::map::{Map, Shape};
use crate::causal::message::{Message, Pair};
use crate::causal::page;
use crate::causal::replicate::replica::{CONTRADICTS, Replica};
use crate::causal::{Causal, Context};
use crate::dots::clock::Clock;
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Partition};
use crate::dots::object::Object;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

impl Replica {
    /// Whether this replica has all that a partition's actor had before it knew of this one.
    pub fn has_copied(&self, map: &Map, peer: Partition) -> bool {
        if self.record.is_joined {
            return true;
        }
        let finished = self.record.finished.get(&peer).copied();
        finished.is_some() && finished == self.head(map, peer)
    }

    /// Whether there is nothing more to copy from a partition: all is copied, or its host is gone
    /// for good. Who waited for a host that never answers would never join, and a catalog that
    /// waits for the newcomer could not give the host's partitions to anybody.
    fn is_done_with(&self, map: &Map, peer: Partition) -> bool {
        let is_gone = map.place(peer).is_some_and(|place| map.is_gone(place.host));
        is_gone || self.has_copied(map, peer)
    }

    /// Whether it has again all that it has to hold. To have joined is not enough: a peer that was
    /// copied from may have had nothing itself, and be copying from one that leaves. So each peer
    /// must have told all it has when it had joined, too.
    pub fn is_refilled(&self, map: &Map, shape: Shape) -> bool {
        let Some(told) = &self.refilled_by else { return true };
        let is_gone =
            |peer: Partition| map.place(peer).is_some_and(|place| map.is_gone(place.host));
        let is_blind = mutant!("joined_is_refilled");
        let mut peers = shape.peers(self.partition());
        let have_told = peers.all(|peer| told.contains(&peer) || is_gone(peer) || is_blind);
        self.record.is_joined && have_told
    }

    /// Whether its silence about a key says something: it has copied from everybody who answers.
    pub fn is_serving(&self) -> bool {
        let is_silent = |scan: &Scan| scan.silent >= SILENT_MAX;
        let Rounds { scans, asks_all, .. } = &self.rounds;
        let asks_all = *asks_all || mutant!("serves_before_all_are_asked");
        let is_left = asks_all && !scans.is_empty() && scans.values().all(is_silent);
        self.record.is_joined || is_left || mutant!("serves_before_joined")
    }

    /// The first keys with an object in an interval, at most so many; `to` is exclusive, and open
    /// if empty. If there are more, the first of the others.
    fn keys_between(
        &self,
        (from, to, last): (&[u8], &[u8], u64),
        most: usize,
        cx: &Context<'_>,
    ) -> (Vec<Bytes>, Option<Bytes>) {
        let (mut keys, mut more) = (Vec::new(), None);
        each_of(cx.table, self.part, Kind::Object, from, &mut |key, _| {
            if !(to.is_empty() || key < to) || hash_of(key) > last {
                return false;
            }
            if keys.len() >= most.max(1) && !mutant!("answers_cost_a_partition") {
                more = Some(Bytes::copy_from_slice(key));
                return false;
            }
            keys.push(Bytes::copy_from_slice(key));
            true
        });
        (keys, more)
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
    pub(crate) fn scan_on(&mut self, at: Partition, map: &Map, cx: &mut Context<'_>) {
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
            let host = map.place(peer).expect("peers are partitions").host;
            ask(replica, (peer, host), shape, map, cx);
        }
        self.scan_former(at, map, cx);
        let is_last = self.is_last_former(&self.durable.replicas[&at]);
        let replica = self.durable.replicas.get_mut(&at).expect("it was just there");
        replica.rounds.asks_all = is_last;
        self.conclude_join(at, map, cx);
    }

    /// Notes that a replica has joined, if everybody was copied from.
    fn conclude_join(&mut self, at: Partition, map: &Map, cx: &mut Context<'_>) {
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
    ///
    /// One that leaves and has forgotten is not done before the others need it no more: the copy
    /// that it had to keep for the new holder may be elsewhere only once.
    pub(crate) fn note_refilled(&mut self) {
        let Some(map) = self.durable.map.as_ref().filter(|_| !self.volatile.has_refilled) else {
            return;
        };
        let is_refilled = |replica: &Replica| replica.is_refilled(map, self.settings.shape);
        let has_forgotten = |one: &Leaving| one.has_forgotten && !mutant!("leaves_empty_and_ready");
        self.volatile.has_refilled = self.durable.replicas.values().all(is_refilled)
            && !self.durable.leaving.iter().any(has_forgotten);
    }

    /// A page of a scan has come.
    pub(crate) fn on_scan_reply(
        &mut self,
        from: Incarnation,
        (pair, to): (Pair, Actor),
        step: u64,
        (clock, page, next): (&Clock, Bytes, Bytes),
        cx: &mut Context<'_>,
    ) {
        let at = match pair.to == pair.from.partition {
            true => self.hear_former(from, pair),
            false => self.greet(from, pair, cx),
        };
        let Some(at) = at else { return };
        let shape = self.settings.shape;
        let Some(map) = self.durable.map.clone() else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        invariant!(!replica.record.is_leaving, "who leaves copies nothing");
        let peer = pair.from;
        let scan = replica.rounds.scans.get_mut(&peer.partition);
        let Some(scan) = scan.filter(|scan| scan.awaits(step) && replica.record.actor == to) else {
            return replica.flush(cx);
        };
        invariant!(scan.step > 0, "a scan that is under way has asked");
        // A peer that forgot has another name. One that leaves has not, and has nothing any more:
        // with the rest of its pages and the clock of the first, what it had would be replaced.
        let is_former = pair.to == pair.from.partition && !mutant!("former_forgets_unseen");
        let has_restarted = is_former && scan.start.is_some_and(|start| start != from.start);
        if has_restarted || scan.actor.is_some_and(|scanned| scanned != peer) {
            // Another actor holds the partition now: all anew.
            probe!("causal/scan_anew");
            replica.rounds.end_scan(peer.partition);
            return replica.flush(cx);
        }
        let Ok(entries) = page::read(page) else { return replica.flush(cx) };
        (scan.actor, scan.start) = (Some(peer), Some(from.start));
        scan.silent = 0;
        if scan.clock.as_ref().is_some_and(|begun| begun.base(peer) < clock.base(peer)) {
            probe!("causal/issued_during_scan");
        }
        if mutant!("scan_ends_its_clock") {
            scan.clock = None;
        }
        let begun = scan.clock.get_or_insert_with(|| clock.clone()).clone();
        let begin = scan.from.clone();
        replica.know(shape, clock);
        let last = *shape.hashes(&shape.shared(at, peer.partition)).end();
        let most = self.settings.limits.scan_keys;
        let entries = (entries, clock);
        let taken = take_page(replica, shape, (&begin, next, last), most, entries, cx);
        // What was not taken is not passed: it is asked for again.
        let Some(next) = taken else { return replica.flush(cx) };
        if next.is_empty() {
            finish(replica, shape, peer, &begun, cx);
            self.conclude_join(at, &map, cx);
        } else {
            let Rounds { scans, last_step, .. } = &mut replica.rounds;
            let scan = scans.get_mut(&peer.partition).expect("its page was awaited");
            // Not before the page was taken in: of what it has passed the peer's clock is known.
            scan.from = next.clone();
            let step = scan.ask(last_step, cx.now);
            scan.first = step;
            let pair = Pair { from: replica.record.actor, to: peer.partition, map: map.version };
            cx.fx.send(from, Message::ScanA { pair, step, key: next });
        }
        self.durable.replicas.get_mut(&at).expect("it was greeted").flush(cx);
    }
}

/// Asks a host for the keys that a replica and a partition of the host both hold, from where its
/// answers have come to; again if it has not answered.
pub(crate) fn ask(
    replica: &mut Replica,
    (peer, host): (Partition, NodeId),
    shape: Shape,
    map: &Map,
    cx: &mut Context<'_>,
) {
    let first = first_key(shape, replica.partition(), peer);
    let Rounds { scans, last_step, .. } = &mut replica.rounds;
    let scan = scans.entry(peer).or_insert(Scan {
        host,
        actor: None,
        start: None,
        first: 0,
        step: 0,
        from: first,
        clock: None,
        asked_at: Time(0),
        silent: 0,
    });
    let is_other = scan.host != host && !mutant!("silence_is_inherited");
    if is_other {
        // This holder was not asked yet, and owes no answer. What the other one had seen it had;
        // the first page of this one begins the scan anew.
        (scan.host, scan.silent) = (host, 0);
    }
    let is_first = scan.step == 0 || is_other;
    if is_first || cx.now >= scan.asked_at + PATIENCE {
        if !is_first {
            scan.silent += 1;
        }
        let pair = Pair { from: replica.record.actor, to: peer, map: map.version };
        let step = scan.ask(last_step, cx.now);
        cx.fx.send(host, Message::ScanA { pair, step, key: scan.from.clone() });
    }
}

/// The first key that two partitions both hold.
pub(super) fn first_key(shape: Shape, one: Partition, other: Partition) -> Bytes {
    let hashes = shape.hashes(&shape.shared(one, other));
    Bytes::copy_from_slice(&hashes.start().to_be_bytes())
}

/// Takes in what a scanned peer knows of an interval: of the keys that it lists, and of those here
/// that it does not. Returns where the next one begins; nothing of it was taken if none.
fn take_page(
    replica: &mut Replica,
    shape: Shape,
    (from, next, last): (&[u8], Bytes, u64),
    most: usize,
    (mut entries, clock): (Vec<page::Entry>, &Clock),
    cx: &mut Context<'_>,
) -> Option<Bytes> {
    let (unlisted, more) = replica.keys_between((from, &next, last), most, cx);
    if let Some(more) = &more {
        // The peer has little of an interval in which there is much here: one turn takes in a part
        // of it, and the rest is asked for again.
        entries.retain(|entry| entry.key < more);
    }
    if entries.iter().any(|entry| contradicts(replica, shape, entry, cx)) {
        // Asked for again each second, each part of it that is taken could cost a dot each time.
        cx.fx.refuse(CONTRADICTS);
        if !mutant!("refused_page_is_passed") {
            return None;
        }
    }
    let mut unlisted: BTreeSet<Bytes> = unlisted.into_iter().collect();
    for page::Entry { key, object, dots } in entries {
        unlisted.remove(&key);
        copy(replica, shape, &key, (object, clock), &dots, cx);
    }
    for key in unlisted {
        probe!("causal/absent_at_peer");
        copy(replica, shape, &key, (Object::default(), clock), &[], cx);
    }
    Some(more.unwrap_or(next))
}

/// Whether an entry of a page has another value of an update than the one that is here.
fn contradicts(replica: &Replica, shape: Shape, entry: &page::Entry, cx: &Context<'_>) -> bool {
    let replicas = shape.replicas_of_key(&entry.key);
    let is_here = replicas.contains(&replica.partition().0);
    is_here && !replica.read(&entry.key, cx).agrees(&entry.object)
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
    let replicas = shape.replicas_of_key(key);
    if replicas.contains(&replica.partition().0) {
        object.fill(clock, |actor| replicas.contains(&actor.partition.0));
        replica.update(shape, key, object, (dots, true), cx);
    }
}

/// A peer was scanned to the end: all that it had issued when the scan began is seen, and what it
/// had seen then is kept.
fn finish(replica: &mut Replica, shape: Shape, peer: Actor, begun: &Clock, cx: &mut Context<'_>) {
    replica.rounds.scans.remove(&peer.partition);
    see_issued(replica, peer, begun);
    replica.record.finished.insert(peer.partition, peer);
    if peer.partition == replica.partition() {
        // There may be another former holder, which was not asked yet.
        replica.rounds.asks_all = false;
        former::take_over(replica, begun);
        return replica.persist(cx);
    }
    // What others have issued is of no keys of this replica.
    let at = replica.partition();
    let is_near = |actor: &Actor| actor.partition == at || shape.are_peers(at, actor.partition);
    let seen = begun.iter().map(|(actor, entry)| (actor, entry.filled()));
    let seen = seen.filter(|(actor, _)| is_near(actor));
    // What an earlier actor of the partition had seen was copied, too, and may be nowhere else now.
    let known = replica.record.witnesses.remove(&peer.partition).unwrap_or_default();
    let witness: CausalContext = known.into_iter().chain(seen).collect();
    replica.record.witnesses.insert(peer.partition, witness.iter().collect());
    replica.persist(cx);
}

/// What a peer had issued when its scan began is seen. A former holder that is copied from anew may
/// be closed by now, or spoken for.
pub(super) fn see_issued(replica: &mut Replica, peer: Actor, begun: &Clock) {
    let is_closed = replica.is_closed(peer) && !mutant!("scanned_opens_again");
    if let Some(entry) = begun.get(peer).filter(|_| !is_closed) {
        replica.touch(peer).merge(entry);
    }
}
