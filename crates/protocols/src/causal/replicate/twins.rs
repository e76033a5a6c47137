//! Writes that were done under more than one dot.
//!
//! A client that hears nothing of a write sends it again under the same name, at another replica if
//! need be. If the first had done it, there are two dots, **twins**, which meet later. They are one
//! write: both stay while both are there, shown as one value, and when one was replaced the other
//! goes too. To replace is to have seen, and who has seen one has seen what both stand for.
//!
//! So the name must outlive the version. It stands in the dot-key map's entry of the dot, and is
//! told with the dot ([`Object::replaced`]), until every replica of the key has seen it. Each that
//! has a twin by then, or is brought one later, removes it, as a delete with a dot of its own: the
//! removal reaches whoever has the twin, whatever they remember. A replica that leaves may still
//! bring one, so nothing is dropped that has a name while one leaves.
//!
//! A client may have seen a dot that no replica of the key has: that of a host which was lost, or
//! is cut off. So its context has names, too ([`crate::causal::coordinate::seen`]).

use super::replica::Replica;
use crate::causal::Context;
use crate::causal::coordinate::seen::Seen;
use crate::causal::handover::leave::DOTS_MAX;
use crate::causal::map::{Map, Shape};
use crate::causal::page;
use crate::dots::clock::Entry;
use crate::dots::dot::Dot;
use crate::dots::object::{Object, Version};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::write::{WriteId, WriteName};

/// Of how many updates of each actor a message tells the names beside those that it is about.
const NAMES_TOLD: usize = 64;

/// How long a repeated write may be on its way from its client: by so much it may be older than
/// it says.
pub(crate) const ON_ITS_WAY: Span = Span::secs(1);

/// What is known of a write that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was not done, as far as this replica knows, and it may be done here.
    New,
    /// It was done.
    Done,
    /// It may have been done, and replaced since: it must not be done again.
    Forgotten,
}

impl Replica {
    /// The names of the newest updates of a key that some replica may not have seen, and of which
    /// no version is left. Older ones are told with their dots: until then the other dot of such a
    /// write may be shown.
    pub fn replaced(&self, key: &Bytes, object: &Object) -> BTreeMap<Dot, WriteId> {
        let named = self.dot_keys.newest_names(key, NAMES_TOLD).into_iter();
        named.filter(|(dot, _)| !object.versions.contains_key(dot)).collect()
    }

    /// The names of these updates of a key, of which no version is left.
    pub(crate) fn replaced_of(&self, dots: &[Dot], object: &Object) -> BTreeMap<Dot, WriteId> {
        let gone = dots.iter().filter(|dot| !object.versions.contains_key(dot));
        gone.filter_map(|dot| Some((*dot, self.dot_keys.name(*dot)?))).collect()
    }

    /// The object of a key with its whole past, and with the names of what was replaced.
    pub fn fetch_named(&self, shape: Shape, key: &Bytes, cx: &Context<'_>) -> Object {
        let mut object = self.fetch(shape, key, cx);
        object.replaced = self.replaced(key, &object);
        object
    }

    /// Adds to what is told of a key the names of what was replaced, each with its dot: who took
    /// the object and not that would have it in the past without its name, and could tell nobody.
    /// So would who writes over the context that the writer of this object is told.
    pub(crate) fn name_replaced(&self, key: &Bytes, object: &mut Object, dots: &mut Vec<Dot>) {
        for (dot, name) in self.replaced(key, object) {
            let is_new = object.replaced.insert(dot, name).is_none();
            // What has no room follows by anti-entropy.
            if is_new && dots.len() < DOTS_MAX && !mutant!("causal_names_no_dots") {
                dots.push(dot);
            }
        }
    }

    /// What is told of a key when a write that was done is sent again, and by which updates: all
    /// that was done to the key since is in its past.
    pub(crate) fn told_again(
        &self,
        shape: Shape,
        key: &Bytes,
        cx: &Context<'_>,
    ) -> (Object, Vec<Dot>) {
        let mut object = self.fetch_seen(shape, key, cx);
        if mutant!("causal_repeats_no_dots") {
            return (object, Vec::new());
        }
        let (dots, _) = page::told(self.dot_keys.of(key), DOTS_MAX);
        object.replaced = self.replaced_of(&dots, &object);
        (object, dots)
    }

    /// Whether what is told of a key brings anything that was not seen. What was replaced does not,
    /// however new it is.
    pub(super) fn brings_news(&self, object: &Object, dots: &[Dot]) -> bool {
        let is_there =
            |dot: &&Dot| !object.replaced.contains_key(*dot) || mutant!("causal_names_bring_news");
        let mut all = object.versions.keys().chain(dots.iter().filter(is_there));
        all.any(|dot| !self.clock.contains(*dot))
    }

    /// The names that the writer of an update tells of writes which this replica may not have
    /// heard of; beside them those of updates of actors that are finished.
    ///
    /// Of a closed actor it has heard no more than what arrived. What is there, or has a name in
    /// the dot-key map, did; of all else it cannot say.
    pub(crate) fn unheard(
        &self,
        (map, key): (&Map, &Bytes),
        (object, seen): (&Object, &Seen),
        own: Option<WriteId>,
        cx: &Context<'_>,
    ) -> (BTreeMap<Dot, WriteId>, BTreeSet<WriteId>) {
        let is_there = |dot: &Dot| {
            object.versions.contains_key(dot)
                || self.single(key, cx) == Some(Some(*dot))
                || self.dot_keys.name(*dot).is_some()
        };
        let has_heard = |dot: &Dot| {
            let entry = self.clock.get(dot.actor);
            let is_seen =
                |entry: &Entry| entry.contains(dot.counter) && (!entry.closed || is_there(dot));
            dot.actor == self.actor() || entry.is_some_and(is_seen)
        };
        let names = seen.names.iter().filter(|(dot, _)| !has_heard(dot));
        // Who writes again under a name does not replace what has it.
        let others = names.filter(|(_, name)| Some(**name) != own);
        let unheard: BTreeMap<Dot, WriteId> = others.map(|(dot, name)| (*dot, *name)).collect();
        if !unheard.is_empty() {
            probe!("causal/unheard_name");
        }
        let is_over = |(dot, _): &(Dot, WriteId)| self.is_finished(map, dot.actor);
        let (over, unheard): (Vec<_>, Vec<_>) = unheard.into_iter().partition(is_over);
        // What has an entry of the dot-key map under any dot is told anyway.
        let over = over.into_iter().map(|(_, name)| name);
        let over = over.filter(|name| !self.dot_keys.has_name(*name)).collect();
        (unheard.into_iter().collect(), over)
    }

    /// Tells such names under dots of this replica, as those of deletes: peers may have counted on
    /// hearing nothing more of a finished actor, and take in nothing of one that they have closed.
    pub(crate) fn name_anew(
        &mut self,
        shape: Shape,
        key: &Bytes,
        (object, names): (&mut Object, &BTreeSet<WriteId>),
        dots: &mut Vec<Dot>,
        cx: &mut Context<'_>,
    ) {
        for name in names {
            probe!("causal/named_anew");
            let dot = self.issue(cx);
            object.context.raise(dot.actor, dot.counter);
            object.replaced.insert(dot, *name);
            dots.push(dot);
            self.store(shape, key, object.clone(), &[dot], cx);
        }
    }

    /// Whether a write of this name was seen.
    fn has_name(&self, id: WriteId) -> bool {
        self.dot_keys.has_name(id) || self.names.has(id)
    }

    /// What is known of a write that is asked for.
    pub(crate) fn known(&self, object: &Object, name: WriteName, now: Time) -> Known {
        let WriteName { id, age } = name;
        let is_there = object.versions.values().any(|version| version.id == Some(id));
        if mutant!("retry_twice") {
            return if is_there { Known::Done } else { Known::New };
        }
        if is_there || self.has_name(id) {
            return Known::Done;
        }
        let first_sent = now.0.checked_sub(age.0.saturating_add(ON_ITS_WAY.0)).map(Time);
        let is_first = age == Span(0);
        let would_know = self.record.is_joined && self.names.is_complete_since(first_sent);
        if is_first || would_know { Known::New } else { Known::Forgotten }
    }

    /// Merges what is told of a key with what is known. A twin of what was replaced goes too, by a
    /// dot of this replica, which is added to these.
    pub(crate) fn unite(
        &mut self,
        mut known: Object,
        mut told: Object,
        dots: &mut Vec<Dot>,
        cx: &mut Context<'_>,
    ) -> Object {
        if mutant!("retry_twice") {
            known.merge(told);
            return known;
        }
        let is_live = |id: WriteId| known.versions.values().any(|version| version.id == Some(id));
        // A name that was seen, of which no version is there.
        let is_gone =
            |version: &Version| version.id.filter(|id| self.has_name(*id) && !is_live(*id));
        let gone = told.versions.iter().filter_map(|(dot, one)| Some((*dot, is_gone(one)?)));
        let gone: Vec<(Dot, WriteId)> = gone.collect();
        told.replaced.extend(gone);
        if known.unite(told) {
            probe!("causal/twin_of_replaced");
            let dot = self.issue(cx);
            known.context.raise(dot.actor, dot.counter);
            dots.push(dot);
        }
        known
    }
}
