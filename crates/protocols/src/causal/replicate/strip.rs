//! What is done in the background: contexts are stripped, and dots that everybody has seen are
//! dropped. And what the console is shown.

use super::replica::Replica;
use crate::causal::handover::former::Owing;
use crate::causal::keys::hash_of;
use crate::causal::map::{Map, Shape};
use crate::causal::timer::Timer;
use crate::causal::{Causal, Context};
use crate::dots::dot::{Actor, Counter, Dot, Partition};
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorate_kernel::limits::STRIP_KEYS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::process::Inspect;
use quorate_kernel::time::Span;

/// How long after a page of a pass the next one comes: long enough for clients in between.
const MORE: Span = Span::millis(2);

/// How many contexts and dots all replicas together drop at a time.
pub(super) const PAGE_KEYS: usize = 256;

/// How many entries of dot-key maps all replicas together look at in that time, if most are kept.
pub(crate) const LOOKS_MAX: usize = 2 * PAGE_KEYS;

impl Causal {
    /// It is time to strip (DottedDB Alg. 3, `strip_causality`), to collect and to sweep. What can
    /// be stripped is, in one pass of pages; a pass that has come to objects that cannot goes on at
    /// the next such time, as it may look at many in vain.
    pub(crate) fn on_strip_time(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(Timer::Strip, cx.now + self.settings.strip_interval);
        self.sweep(cx);
        self.trim_dots(cx);
        let owing = self.owing();
        let Some(map) = self.durable.map.as_ref() else { return };
        for replica in self.durable.replicas.values_mut() {
            replica.note_ended(map, &owing);
            replica.close(map, self.settings.shape, &owing);
            replica.flush(cx);
            replica.drop_witnesses(cx);
            replica.rounds.is_stripping = true;
            replica.rounds.is_collecting = true;
        }
        self.on_strip_more(cx);
    }

    /// The next pages; those of all replicas together are as long as one may be.
    pub(crate) fn on_strip_more(&mut self, cx: &mut Context<'_>) {
        let owing = self.owing();
        let Some(map) = self.durable.map.as_ref() else { return };
        let shape = self.settings.shape;
        let replicas = self.durable.replicas.values_mut();
        let mut unfinished: Vec<&mut Replica> =
            replicas.filter(|replica| replica.rounds.has_more_to_strip()).collect();
        let share = |of_all: usize| (of_all / unfinished.len().max(1)).max(1);
        let (page, looks) = (share(PAGE_KEYS), share(LOOKS_MAX));
        for replica in &mut unfinished {
            if replica.rounds.is_stripping {
                strip(replica, shape, page, cx);
            }
            if replica.rounds.is_collecting {
                let looked = collect(replica, (map, &owing), shape, (page, looks), cx);
                self.volatile.counters.collect_looks += looked as u64;
            }
        }
        self.move_dots(cx);
        self.strip_more_later(cx);
    }

    fn strip_more_later(&mut self, cx: &mut Context<'_>) {
        let mut replicas = self.durable.replicas.values();
        if replicas.any(|replica| replica.rounds.has_more_to_strip()) || self.is_moving_dots() {
            cx.fx.arm(Timer::StripMore, cx.now + MORE);
        }
    }

    /// Shows the state.
    pub(crate) fn show(&self, into: &mut dyn Inspect) {
        let replicas = || self.durable.replicas.values();
        let sum = |count: fn(&Replica) -> usize| -> usize { replicas().map(count).sum() };
        into.field("map", &self.durable.map.as_ref().map_or(0, |map| map.version));
        into.field("replicas", &self.durable.replicas.len());
        into.field("joining", &replicas().filter(|one| !one.record.is_joined).count());
        into.field("leaving", &self.durable.leaving.len());
        let handed = self.durable.leaving.iter().map(|one| one.remaining.len());
        into.field("to_hand_over", &handed.sum::<usize>());
        into.field("clock_entries", &sum(|one| one.clock.len()));
        into.field("open_entries", &sum(|one| one.clock.iter().filter(|(_, e)| !e.closed).count()));
        let finished = |one: &Replica| one.clock.iter().filter(|(_, e)| e.closed || e.left).count();
        into.field("finished_entries", &sum(finished));
        into.field("spare_entries", &sum(Replica::spare_entries));
        into.field("dot_keys", &sum(|one| one.dot_keys.len()));
        into.field("logged_dots", &sum(|one| one.logged.len()));
        into.field("unstripped", &sum(|one| one.unstripped.len()));
        into.field("witnesses", &sum(|one| one.record.witnesses.len()));
        into.field("watermark", &sum(|one| one.watermark.len()));
        into.field("operations", &self.volatile.operations.len());
        let counters = &self.volatile.counters;
        into.field("siblings_over", &counters.siblings_over);
        into.field("siblings_most", &counters.siblings_most);
        into.field("contexts_refused", &counters.contexts_refused);
        into.field("told", &counters.told);
        into.field("repaired", &counters.repaired);
        into.field("late", &counters.late);
        into.field("collect_looks", &counters.collect_looks);
        for (at, replica) in &self.durable.replicas {
            into.row(
                "replicas",
                &[
                    ("partition", &at.0),
                    ("actor", &replica.actor().to_string()),
                    ("counter", &replica.clock.base(replica.actor())),
                    ("joined", &replica.record.is_joined),
                    ("dot_keys", &replica.dot_keys.len()),
                    ("unstripped", &replica.unstripped.len()),
                ],
            );
        }
    }
}

/// Strips some of the objects that have a context, with the clock as it is now.
fn strip(replica: &mut Replica, shape: Shape, page: usize, cx: &mut Context<'_>) {
    let from = core::mem::take(&mut replica.rounds.strip_from);
    let behind = (Bound::Excluded(&from[..]), Bound::Unbounded);
    let keys = replica.unstripped.range::<[u8], _>(behind).map(|(key, _)| key);
    let keys: Vec<Bytes> = keys.take(STRIP_KEYS_MAX).cloned().collect();
    let (mut seen, mut stripped) = (0, 0);
    for key in &keys {
        if stripped == page {
            break;
        }
        seen += 1;
        stripped += usize::from(replica.strip(shape, key, cx));
    }
    let has_more = seen < keys.len() || keys.len() == STRIP_KEYS_MAX;
    if let Some(last) = keys[..seen].last().filter(|_| has_more) {
        replica.rounds.strip_from = last.clone();
    }
    replica.rounds.is_stripping = has_more && stripped > 0;
    replica.flush(cx);
}

/// Drops some of the entries of the dot-key map that every replica of their key has seen: one page
/// of a pass over all of them. While a replica is away most may be kept, and looked at in vain.
/// Returns at how many it has looked.
fn collect(
    replica: &mut Replica,
    (map, owing): (&Map, &Owing),
    shape: Shape,
    (page, looks): (usize, usize),
    cx: &mut Context<'_>,
) -> usize {
    let own = replica.partition();
    let heads: Vec<(Partition, Option<Actor>)> =
        shape.peers(own).map(|at| (at, replica.head(map, at))).collect();
    let awaits_former =
        replica.awaits_former(map) || owing.is_unheard_of(&replica.clock, shape, own);
    let first_home = *shape.homes(own).start();
    let (mut gone, mut looked, mut last) = (Vec::<Dot>::new(), 0, replica.rounds.collect_from);
    let is_full = |gone: &[Dot], looked: usize| {
        gone.len() >= page || looked >= looks && !mutant!("collect_looks_at_all")
    };
    let mut next = replica.dot_keys.first_actor(Bound::Included(last.actor));
    while let Some(actor) = next.filter(|_| !is_full(&gone, looked)) {
        let seen_by_all = seen_by_all(replica, &heads, shape, actor);
        let most = seen_by_all.iter().copied().max().unwrap_or(0);
        let after = if actor == last.actor { last.counter } else { 0 };
        last = Dot { actor, counter: after };
        let entries = replica.dot_keys.above(actor, after);
        let mut entries = entries.take_while(|(counter, _)| *counter <= most);
        // To come to an actor is as much as to look at an entry.
        looked += 1;
        let is_at_end = loop {
            let Some((counter, key)) = entries.next() else { break true };
            looked += 1;
            last.counter = counter;
            // Who still leaves may bring another dot of the same write.
            let is_kept = awaits_former && replica.dot_keys.name(last).is_some();
            let home = shape.home(hash_of(key)) - first_home;
            if !is_kept && counter <= seen_by_all[usize::from(home)] {
                gone.push(last);
            }
            if is_full(&gone, looked) {
                break false;
            }
        };
        if is_at_end {
            last.counter = Counter::MAX;
            next = replica.dot_keys.first_actor(Bound::Excluded(actor));
        }
    }
    replica.rounds.is_collecting = next.is_some();
    let goes_on = next.is_some() && !mutant!("collect_begins_anew");
    replica.rounds.collect_from = if goes_on { last } else { Dot::default() };
    for dot in gone {
        replica.drop_dot(dot, cx);
    }
    replica.flush(cx);
    looked
}

/// The counter up to which all that hold a home's keys have seen an actor, for each home of a
/// replica's partition.
fn seen_by_all(
    replica: &Replica,
    heads: &[(Partition, Option<Actor>)],
    shape: Shape,
    actor: Actor,
) -> Vec<Counter> {
    let seen_at = |head| replica.watermark.base(head, actor);
    let seen: Vec<(Partition, Counter)> =
        heads.iter().map(|(at, head)| (*at, head.map_or(0, seen_at))).collect();
    let of_home = |home: u16| -> Counter {
        let others = seen.iter().filter(|(at, _)| shape.holds(*at, home));
        let seen = others.map(|(_, seen)| *seen);
        let least = match mutant!("collect_early") {
            true => seen.max(),
            false => seen.min(),
        };
        least.unwrap_or(Counter::MAX)
    };
    shape.homes(replica.partition()).map(of_home).collect()
}
