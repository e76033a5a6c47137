//! The node clock: every dot that one replica has seen (DottedDB §IV-B).
//!
//! For each actor the clock has a **base**, up to which every counter was seen, and the counters
//! seen above it. The paper keeps the latter as a bitmap; here they are ranges, because a peer
//! that is away for hours leaves few long runs and many bits.

use super::dot::{ALL, Actor, COUNTER_MAX, Counter, Dot, Partition};
use super::sorted::SortedMap;
use alloc::vec::Vec;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// The counters of one actor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    base: Counter,
    /// Inclusive ranges above `base + 1`, ascending, none of which touches another.
    above: Vec<(Counter, Counter)>,
    /// Whether every update of this actor that still exists anywhere is known here, and of every
    /// earlier actor of its partition. Only of an actor that is gone for good, and only for the
    /// keys of this replica.
    pub closed: bool,
    /// Whether the actor's host has handed over all it had and let go of the partition.
    pub left: bool,
}

impl Entry {
    /// Everything up to a counter.
    #[must_use]
    pub fn upto(base: Counter) -> Entry {
        Entry { base, ..Entry::default() }
    }

    /// Up to which counter everything was seen.
    #[must_use]
    pub fn base(&self) -> Counter {
        self.base
    }

    /// The highest counter seen.
    #[must_use]
    pub fn highest(&self) -> Counter {
        self.above.last().map_or(self.base, |(_, last)| *last)
    }

    /// The base as far as filling goes: of a closed actor nothing is missing below the highest.
    #[must_use]
    pub fn filled(&self) -> Counter {
        if self.closed { self.highest() } else { self.base }
    }

    /// Whether a context's counter is known without the context saying so.
    #[must_use]
    pub fn implies(&self, counter: Counter) -> bool {
        if mutant!("strip_before_base") {
            return counter <= self.highest();
        }
        // Not more than filling puts back, of a closed actor either: what a context alone says of
        // it must be raised into the entry first.
        counter <= self.filled()
    }

    /// Closes the entry: it says everything, so filling covers all that was stripped, also what a
    /// context alone said.
    fn close(&mut self) {
        self.closed = true;
        if !mutant!("close_without_raising") {
            self.base = ALL;
            self.above.clear();
        }
    }

    /// The ranges above the base.
    #[must_use]
    pub fn above(&self) -> &[(Counter, Counter)] {
        &self.above
    }

    /// Whether a counter was seen.
    #[must_use]
    pub fn contains(&self, counter: Counter) -> bool {
        if counter <= self.base {
            return true;
        }
        let place = self.above.partition_point(|(_, last)| *last < counter);
        self.above.get(place).is_some_and(|(first, _)| *first <= counter)
    }

    /// Adds a counter; returns whether it is new.
    pub fn insert(&mut self, counter: Counter) -> bool {
        let is_new = !self.contains(counter);
        if is_new {
            self.insert_range(counter, counter);
        }
        is_new
    }

    /// Adds every counter of a range.
    pub fn insert_range(&mut self, first: Counter, last: Counter) {
        if last <= self.base {
            return;
        }
        // Ranges that touch the new one become part of it.
        let begin = self.above.partition_point(|(_, end)| end.saturating_add(1) < first);
        let end = self.above.partition_point(|(start, _)| *start <= last.saturating_add(1));
        let merged = self.above.drain(begin..end.max(begin));
        let range = merged.fold((first, last), |(a, b), (c, d)| (a.min(c), b.max(d)));
        self.above.insert(begin, range);
        self.normalize();
    }

    /// Adds everything that another entry of the same actor has seen.
    pub fn merge(&mut self, other: &Entry) {
        self.left |= other.left;
        if other.base > self.base {
            self.base = other.base;
            self.normalize();
        }
        for (first, last) in &other.above {
            self.insert_range(*first, *last);
        }
    }

    /// Moves the base up as far as nothing is missing.
    fn normalize(&mut self) {
        let mut gone = 0;
        for (first, last) in &self.above {
            if *first > self.base.saturating_add(1) {
                break;
            }
            self.base = self.base.max(*last);
            gone += 1;
        }
        self.above.drain(..gone);
    }

    /// Forgets the highest ranges beyond `most`: what is left understates, and is right all the
    /// same.
    pub fn shorten(&mut self, most: usize) {
        self.above.truncate(most);
    }

    /// Forgets what is above a counter.
    pub fn lower(&mut self, most: Counter) {
        self.base = self.base.min(most);
        self.above.retain(|(first, _)| *first <= most);
        if let Some((_, last)) = self.above.last_mut() {
            *last = most.min(*last);
        }
    }

    /// Forgets what stands above the base, up to a counter: this, too, understates.
    pub fn forget_upto(&mut self, counter: Counter) {
        let gone = self.above.partition_point(|(_, last)| *last <= counter);
        self.above.drain(..gone);
    }

    /// Whether what was decoded has the form of an entry.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let mut last = Some(self.base);
        let is_above = self.above.iter().all(|(first, end)| {
            let is_behind = |last: Counter| last < COUNTER_MAX && *first > last + 1;
            let is_so = last.is_some_and(is_behind) && first <= end;
            last = (*end <= COUNTER_MAX).then_some(*end);
            is_so
        });
        self.base <= COUNTER_MAX && is_above && last.is_some()
    }
}

/// Which dots of each actor a node has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    entries: SortedMap<Actor, Entry>,
}

impl Clock {
    /// What was seen of an actor, if it is known at all. Of one that has no entry any more the
    /// entry says it that has closed it.
    #[must_use]
    pub fn get(&self, actor: Actor) -> Option<&Entry> {
        self.own(actor)
            .or_else(|| self.after(actor).map(|(_, entry)| entry).find(|entry| entry.base == ALL))
    }

    /// The later actors known at the partition of an actor, earlier ones first.
    pub fn after(&self, actor: Actor) -> impl Iterator<Item = (Actor, &Entry)> {
        let later = self.entries.after(actor).iter();
        let later = later.take_while(move |(at, _)| at.partition == actor.partition);
        later.map(|(at, entry)| (*at, entry))
    }

    /// The entry that an actor itself has.
    #[must_use]
    pub fn own(&self, actor: Actor) -> Option<&Entry> {
        self.entries.get(actor)
    }

    /// Closes an actor, and with it every earlier one of its partition; returns those, which have
    /// no entry any more.
    pub fn close(&mut self, actor: Actor) -> Vec<Actor> {
        self.entry(actor).close();
        let first = Actor { partition: actor.partition, ..Actor::default() };
        self.entries.drain(first, actor).map(|(at, _)| at).collect()
    }

    /// Whether no earlier actor of a partition is open.
    #[must_use]
    pub fn is_next_to_close(&self, actor: Actor) -> bool {
        let mut earlier = self.at(actor.partition).take_while(|(at, _)| *at < actor);
        earlier.all(|(_, entry)| entry.closed)
    }

    /// The entry of an actor, made known if it is not.
    pub fn entry(&mut self, actor: Actor) -> &mut Entry {
        self.entries.entry(actor)
    }

    /// Whether a dot was seen.
    #[must_use]
    pub fn contains(&self, dot: Dot) -> bool {
        self.get(dot.actor).is_some_and(|entry| entry.contains(dot.counter))
    }

    /// Adds a dot; returns whether it is new.
    pub fn insert(&mut self, dot: Dot) -> bool {
        !self.contains(dot) && self.entry(dot.actor).insert(dot.counter)
    }

    /// Up to which counter of an actor everything was seen.
    #[must_use]
    pub fn base(&self, actor: Actor) -> Counter {
        self.get(actor).map_or(0, Entry::base)
    }

    /// Adds all that another clock has seen.
    pub fn merge(&mut self, other: &Clock) {
        other.iter().for_each(|(actor, entry)| self.entry(actor).merge(entry));
    }

    /// Every actor known, in order, with what was seen of it.
    pub fn iter(&self) -> impl Iterator<Item = (Actor, &Entry)> + '_ {
        self.entries.iter().map(|(actor, entry)| (*actor, entry))
    }

    /// The actors known at a partition, earlier ones first.
    pub fn at(&self, partition: Partition) -> impl DoubleEndedIterator<Item = (Actor, &Entry)> {
        let first = Actor { partition, ..Actor::default() };
        let known = self.entries.range_from(first);
        let count = known.iter().take_while(|(actor, _)| actor.partition == partition).count();
        known[..count].iter().map(|(actor, entry)| (*actor, entry))
    }

    /// Whether no actor has an entry that a later one speaks for.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        let mut pairs = self.entries.as_slice().windows(2);
        pairs.all(|pair| pair[0].0.partition != pair[1].0.partition || !pair[1].1.closed)
    }

    /// How many actors are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no actor is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl FromIterator<(Actor, Entry)> for Clock {
    fn from_iter<I: IntoIterator<Item = (Actor, Entry)>>(entries: I) -> Clock {
        Clock { entries: entries.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_counter_is_too_high_to_be_refused() {
        for (base, above) in
            [(Counter::MAX, (1, 1)), (1, (Counter::MAX, Counter::MAX)), (ALL + 1, (ALL, ALL))]
        {
            let entry = Entry { base, above: Vec::from([above]), ..Entry::default() };
            assert!(!entry.is_well_formed(), "{entry:?}");
        }
    }
}
