//! One partition's replica: its clock, its part of the store, and how both change together.
//!
//! This is what the paper calls a node (DottedDB §IV-D). All five structures change in one batch
//! per turn (T4): an object is written with the dots that speak of it ([`super::dot_log`]), and
//! with what of the clock and of contexts those do not say. [`Replica::flush`] is called before
//! anything is sent.

use crate::causal::{Context, Settings};

use super::dot_log::LoggedDots;
use super::names::Names;
use super::unstripped::Unstripped;
use super::version_cache::VersionCache;
use crate::causal::anti_entropy::in_flight::InFlight;
use crate::causal::anti_entropy::watch::Rounds;
use crate::causal::keys::{Kind, actor_key, replica_key, state_bytes, stored};
use crate::causal::map::Shape;
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Counter, Dot, Partition};
use crate::dots::dot_keys::DotKeys;
use crate::dots::object::Object;
use crate::dots::watermark::Watermark;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::limits::INDEX_KEYS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::storage::Class;
use quorate_kernel::write::WriteId;
use serde::{Deserialize, Serialize};

/// How many counters are reserved at a time. After a restart a replica goes on above all that it
/// may have used, so a dot that was shown and then lost with an unsynced batch is never issued
/// again.
const RESERVED_COUNTERS: Counter = 1 << 16;

/// What is refused: one dot with another value than the one that is known here (D4).
pub(crate) const CONTRADICTS: &str = "one dot carries two values";

/// What is stored of a replica beside its data; always synced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Who it is.
    pub actor: Actor,
    /// It issues no counter above this one before it has reserved more.
    pub reserved: Counter,
    /// Whether it has everything its peers had when it began.
    pub is_joined: bool,
    /// The peers that it has copied from while it joins.
    pub finished: BTreeMap<Partition, Actor>,
    /// What those had seen then, of the keys that both hold ([`crate::causal::handover::join`]).
    pub witnesses: BTreeMap<Partition, Vec<(Actor, Counter)>>,
    /// Whether the map has given its partition to another host.
    pub is_leaving: bool,
}

/// A replica.
#[derive(Debug)]
pub struct Replica {
    /// Which part of the store is its own: that of its birth, or of an earlier one whose data it
    /// goes on with.
    pub part: u32,
    /// What is stored of it beside its data.
    pub record: Record,
    /// Every dot it has seen.
    pub clock: Clock,
    /// The keys of dots that some replica may not have seen.
    pub dot_keys: DotKeys,
    /// What it has in the log of dots.
    pub(crate) logged: LoggedDots,
    /// The contexts of stored objects that have one, by key.
    pub unstripped: BTreeMap<Bytes, Unstripped>,
    /// The dots that replication on write is most likely still bringing to the peers.
    pub in_flight: InFlight,
    /// What its peers have seen, as they told since it started.
    pub watermark: Watermark,
    /// Whom it exchanges with, and when.
    pub rounds: Rounds,
    /// For each actor that is gone for good: the partitions that have told all they knew of it
    /// ([`crate::causal::handover::retire`]).
    pub pulled: BTreeMap<Actor, BTreeSet<Partition>>,
    /// Of one that began with less than it has to hold: the partitions that have told all they had
    /// since it did, and had joined themselves.
    pub refilled_by: Option<BTreeSet<Partition>>,
    /// The names of the writes that it has seen recently.
    pub names: Names,
    /// The objects written by this input, which the table does not show yet; in the order of keys.
    /// Mostly one: it takes no memory anew.
    fresh: Vec<(Bytes, Option<Bytes>)>,
    /// What an update of recently used keys replaces.
    pub(super) version_cache: VersionCache,
    /// The actors whose entries were changed by this input.
    dirty: BTreeSet<Actor>,
    /// The actors of whose entries more is known than is stored: the rest is in the log of dots.
    unsaved: BTreeSet<Actor>,
}

impl Replica {
    /// A replica with an empty clock.
    pub fn new(part: u32, record: Record, settings: &Settings) -> Replica {
        assert!(part <= record.actor.birth, "it goes on with data of an earlier one");
        let Settings { shape, limits, .. } = settings;
        let of_share =
            |most: usize| most * usize::from(shape.replicas) / usize::from(shape.partitions);
        let mut replica = Replica {
            part,
            clock: Clock::default(),
            dot_keys: DotKeys::default(),
            logged: LoggedDots::default(),
            unstripped: BTreeMap::new(),
            in_flight: InFlight::default(),
            watermark: Watermark::default(),
            rounds: Rounds::default(),
            pulled: BTreeMap::new(),
            refilled_by: (!record.is_joined).then(BTreeSet::new),
            names: Names::new(of_share(limits.names)),
            fresh: Vec::new(),
            version_cache: VersionCache::new(of_share(INDEX_KEYS_MAX)),
            dirty: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            record,
        };
        replica.clock.entry(replica.record.actor);
        replica
    }

    /// Who it is.
    pub fn actor(&self) -> Actor {
        self.record.actor
    }

    /// Where it is.
    pub fn partition(&self) -> Partition {
        self.record.actor.partition
    }

    /// Where a key's object is stored.
    pub fn stored_key(&self, key: &[u8]) -> Bytes {
        stored(self.part, Kind::Object, key)
    }

    /// Writes the record, durably before anything that rests on it leaves.
    pub fn persist(&self, cx: &mut Context<'_>) {
        cx.fx.put_state(replica_key(self.part), state_bytes(&self.record));
    }

    /// The entry of an actor, to be changed and written.
    pub fn touch(&mut self, actor: Actor) -> &mut Entry {
        self.has_changed(actor);
        self.clock.entry(actor)
    }

    /// The entry of an actor is stored as it is now, or that there is none, when the step ends.
    pub(crate) fn has_changed(&mut self, actor: Actor) {
        self.dirty.insert(actor);
        self.unsaved.remove(&actor);
    }

    /// A dot is seen that the log has, or will have when the turn ends: after a restart, that says
    /// so.
    pub fn see(&mut self, dot: Dot, key: &Bytes, name: Option<WriteId>) {
        self.dot_keys.insert(dot, key, name);
        let is_new = self.clock.insert(dot);
        if is_new && !self.dirty.contains(&dot.actor) {
            self.unsaved.insert(dot.actor);
        }
    }

    /// The clock will have to say what the log of dots has said so far.
    pub(super) fn save(&mut self) {
        self.dirty.append(&mut self.unsaved);
    }

    /// Writes what has changed of the clock. The last thing a step does before it sends.
    pub fn flush(&mut self, cx: &mut Context<'_>) {
        for actor in core::mem::take(&mut self.dirty) {
            let key = stored(self.part, Kind::Clock, &actor_key(actor));
            match self.clock.own(actor) {
                Some(entry) => cx.fx.put(key, state_bytes(entry)),
                // The entry that closed it says so.
                None => cx.fx.delete(key),
            }
        }
        self.fresh.clear();
    }

    /// The next dot of this replica.
    pub fn issue(&mut self, cx: &mut Context<'_>) -> Dot {
        let actor = self.actor();
        let counter = self.clock.base(actor) + 1;
        if counter > self.record.reserved {
            self.record.reserved = counter + RESERVED_COUNTERS;
            self.persist(cx);
        }
        Dot { actor, counter }
    }

    /// The stored object of a key.
    pub fn read(&self, key: &Bytes, cx: &Context<'_>) -> Object {
        let bytes = match self.place_of_fresh(key) {
            Ok(place) => self.fresh[place].1.clone(),
            Err(_) => cx.table.get(Class::Data, &self.stored_key(key)),
        };
        bytes.map_or_else(Object::default, |bytes| self.whole(key, &bytes))
    }

    fn place_of_fresh(&self, key: &Bytes) -> Result<usize, usize> {
        self.fresh.binary_search_by(|(fresh, _)| fresh.cmp(key))
    }

    /// Stores an object whose past includes these dots (DottedDB Alg. 2, `store`).
    ///
    /// A dot enters the dot-key map only when it is new to the clock: strictly after it, entries
    /// that were collected would come back at every strip (T19).
    pub fn store(
        &mut self,
        shape: Shape,
        key: &Bytes,
        mut object: Object,
        dots: &[Dot],
        cx: &mut Context<'_>,
    ) {
        let mut new: Vec<Dot> = Vec::new();
        let replaced = core::mem::take(&mut object.replaced);
        // Also of dots that were not told: what is stored covers them.
        replaced.values().for_each(|name| self.names.note(*name, cx.now));
        for dot in object.versions.keys().chain(dots).copied() {
            let version = object.versions.get(&dot);
            let name = version.map_or(replaced.get(&dot).copied(), |version| version.id);
            if let Some(name) = name {
                self.names.note(name, cx.now);
            }
            let seen = self.clock.get(dot.actor);
            if seen.is_some_and(|seen| seen.contains(dot.counter)) {
                continue;
            }
            if shape.replicas > 1 {
                self.in_flight.note(dot.actor, seen.map_or(0, Entry::highest), cx.now);
                self.see(dot, key, name);
                new.push(dot);
            } else if dot.actor == self.actor() {
                // Nobody needs to be told, and what is reserved says that it was seen.
                self.clock.insert(dot);
            } else {
                self.touch(dot.actor).insert(dot.counter);
            }
        }
        // Whoever a context names must be known, or could never be closed.
        for (actor, _) in object.context.iter() {
            if self.clock.get(actor).is_none() {
                self.touch(actor);
            }
        }
        object.context.strip(&self.clock);
        self.version_cache.set(key, &object);
        let is_plain = !object.versions.is_empty();
        let context = core::mem::take(&mut object.context);
        let is_kept = !object.is_empty() || !context.is_empty();
        self.put_beside(key, (context, is_plain), &new, cx);
        let bytes = is_kept.then(|| object.to_bytes());
        let at = self.stored_key(key);
        match &bytes {
            Some(bytes) => cx.fx.put(at, bytes.clone()),
            None => cx.fx.delete(at),
        }
        match self.place_of_fresh(key) {
            Ok(place) => self.fresh[place].1 = bytes,
            Err(place) => self.fresh.insert(place, (key.clone(), bytes)),
        }
    }

    /// Whether all updates that somebody tells of a key were seen. Then its object tells nothing
    /// new: what those replaced went when they were taken in, and whatever else its past holds and
    /// was not seen here has dots of its own, which its sender tells too.
    pub fn has_seen(&self, object: &Object, dots: &[Dot]) -> bool {
        let mut told = object.versions.keys().chain(dots);
        !dots.is_empty() && told.all(|dot| self.clock.contains(*dot))
    }

    /// Takes in what another replica tells of a key (DottedDB Alg. 2, `update`); returns whether it
    /// did. What contradicts what is here changes nothing.
    ///
    /// A version that only a witness covers goes by a dot of this replica, as in
    /// [`super::super::coordinate::repair`]: no dot-key entry may tell others of it. Two more do
    /// before this one has joined: one that is told and does not stay, as its teller may have lost
    /// what removed it; and one that was here, as somebody may have copied it from here, if nothing
    /// new is told, or a page of a scan tells it.
    pub fn update(
        &mut self,
        shape: Shape,
        key: &Bytes,
        object: Object,
        (dots, is_page): (&[Dot], bool),
        cx: &mut Context<'_>,
    ) -> bool {
        // It hides two other bugs, each of which would hide this one.
        let hides = mutant!("pages_forget") || mutant!("handed_over_is_dropped");
        let copies = !self.record.is_joined && !hides && !mutant!("copies_remove_silently");
        let known = match copies {
            true => self.fetch(shape, key, cx),
            false => self.fetch_beside(shape, key, &object, cx),
        };
        if !known.agrees(&object) {
            cx.fx.refuse(CONTRADICTS);
            return false;
        }
        let mut removes = self.removes_by_witness(key, &object, &known);
        let both = known.versions.keys().chain(object.versions.keys()).copied();
        let both: BTreeSet<Dot> = if copies { both.collect() } else { BTreeSet::new() };
        let looks = copies && !mutant!("copies_remove_beside_news");
        let shown: Vec<Dot> = object.versions.keys().filter(|_| looks).copied().collect();
        let is_new = self.brings_news(&object, dots);
        let (told, mut dots, replaced) = (dots.len(), dots.to_vec(), object.replaced.clone());
        let mut united = self.unite(known, object, &mut dots, cx);
        let goes = |dot: &Dot| !united.versions.contains_key(dot);
        let is_all = is_page && looks && !mutant!("pages_remove_beside_news");
        removes |= shown.iter().any(goes) || ((is_all || !is_new) && both.iter().any(goes));
        if removes && dots.len() == told && !mutant!("witness_removes_silently") {
            self.remove_anew(&mut united, &mut dots, cx);
        }
        self.store(shape, key, Object { replaced, ..united }, &dots, cx);
        true
    }

    /// Whether nothing of what this input has changed is still to be written.
    pub fn is_flushed(&self) -> bool {
        self.dirty.is_empty() && self.fresh.is_empty()
    }

    /// What must hold between two inputs.
    pub fn check(&self) {
        let own = self.clock.get(self.actor()).expect("a replica knows itself");
        assert!(own.above().is_empty(), "the own entry has no gaps (D1)");
        assert!(own.base() <= self.record.reserved, "issued counters were reserved");
        assert!(!own.closed, "who speaks is not closed");
        assert!(self.clock.is_pruned(), "what is closed speaks for all before");
        assert!(self.is_flushed(), "a step ends with a flush");
    }
}
