//! Copies of objects of other partitions (the paper's §IV-C).
//!
//! An object that is read of another partition is kept as a copy. When a command reads it again its
//! holder says of which *version* it is, and sends the object only to partitions that have another
//! one, as far as the holder knows. A copy counts if it is of the version that the holder names;
//! who has none of that version asks. So neither what a replica has kept, nor what a holder thinks
//! that others have, changes what a command does: both may be lost at any time.
//!
//! The paper has the holder decide what is stale, by what was multicast to whom. Here that only
//! saves messages, and versions decide.

use super::command::Place;
use super::machine::Machine;
use super::partitions::Partitions;
use alloc::collections::{BTreeMap, BTreeSet};
use bytes::Bytes;
use quorate_kernel::invariant;
use serde::{Deserialize, Serialize};

/// How many bytes of copies a replica keeps.
pub const CACHE_BYTES_MAX: usize = 64 << 20;

/// How many bytes it keeps of what copies other partitions have of its objects.
const SHARED_BYTES_MAX: usize = 16 << 20;

/// How a replica uses copies of objects of other partitions. All replicas of a machine are set the
/// same: others work too, and ask for much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// It keeps none.
    #[default]
    Off,
    /// A command waits until its copies are validated, and is sent no object that it has.
    Conservative,
    /// A command goes on with its copies at once, and is executed anew if one of them turns out to
    /// be stale. Until all of them are validated it has no effect and is not answered. It may see
    /// copies of different moments meanwhile, so [`Machine::execute`] must not rest on what holds
    /// between objects of which one is of another partition.
    Speculative,
}

/// What a replica has had of its copies since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// How many copies a holder found up to date, so that the object was not sent.
    pub validated: u64,
    /// How often a command went on with copies that had not been validated.
    pub speculated: u64,
    /// How often one of these was stale, and the command was executed anew.
    pub rolled_back: u64,
}

/// Which value of an object: the one that a command of several partitions found, or the one that it
/// left. An object has one value of a version, whoever says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// The command.
    place: Place,
    /// Whether it has written the object.
    is_after: bool,
}

impl Version {
    pub(super) fn found(place: Place) -> Version {
        Version { place, is_after: false }
    }

    pub(super) fn left(place: Place) -> Version {
        Version { place, is_after: true }
    }
}

/// Something of objects, of one version each. The oldest are dropped when it is too much.
#[derive(Clone, Debug)]
pub(super) struct Versions<T> {
    values: BTreeMap<Bytes, (Version, T, usize)>,
    ages: BTreeSet<(Version, Bytes)>,
    bytes: usize,
    bytes_max: usize,
}

impl<T> Versions<T> {
    pub fn new(bytes_max: usize) -> Versions<T> {
        Versions { values: BTreeMap::new(), ages: BTreeSet::new(), bytes: 0, bytes_max }
    }

    pub fn get(&self, key: &[u8]) -> Option<(Version, &T)> {
        self.values.get(key).map(|(version, value, _)| (*version, value))
    }

    /// Takes the place of what was there, if there can be room; `bytes` are those of the value.
    pub fn insert(&mut self, key: Bytes, version: Version, value: T, bytes: usize) {
        self.remove(&key);
        let bytes = bytes + 2 * (key.len() + size_of::<(Bytes, Version, T, usize)>());
        if bytes > self.bytes_max {
            return;
        }
        self.bytes += bytes;
        self.ages.insert((version, key.clone()));
        self.values.insert(key, (version, value, bytes));
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.ages.first().cloned() else { break };
            self.remove(&oldest);
        }
        invariant!(self.ages.len() == self.values.len(), "each has its age");
        invariant!(self.bytes <= self.bytes_max, "the oldest are dropped");
    }

    pub fn remove(&mut self, key: &Bytes) {
        if let Some((version, _, bytes)) = self.values.remove(key) {
            self.ages.remove(&(version, key.clone()));
            self.bytes -= bytes;
        }
    }
}

/// What a replica keeps of copies: its own, and what it thinks that others have of its objects.
#[derive(Clone, Debug)]
pub(super) struct Caches<M: Machine> {
    pub caching: Caching,
    pub cached: Cached,
    /// Copies of objects of other partitions.
    pub copies: Versions<Option<M::Object>>,
    /// Which partitions have a copy of that version, which is what the object is now.
    shared: Versions<Partitions>,
}

impl<M: Machine> Caches<M> {
    pub fn new(caching: Caching) -> Caches<M> {
        let (copies, shared) = (Versions::new(CACHE_BYTES_MAX), Versions::new(SHARED_BYTES_MAX));
        Caches { caching, cached: Cached::default(), copies, shared }
    }

    /// Objects are held by others now.
    pub fn forget(&mut self) {
        *self = Caches { cached: self.cached, ..Caches::new(self.caching) };
    }

    pub fn is_off(&self) -> bool {
        self.caching == Caching::Off
    }

    /// The version of an own object that a command finds.
    pub fn version(&self, key: &Bytes, place: Place) -> Version {
        self.shared.get(key).map_or(Version::found(place), |(version, _)| version)
    }

    /// Which partitions are known to have that version of an own object.
    pub fn who_has(&self, key: &Bytes, version: Version) -> Partitions {
        let known = self.shared.get(key).filter(|(has, _)| *has == version);
        known.map_or_else(Partitions::default, |(_, who)| *who)
    }

    /// These partitions get an own object, or have written it all together.
    pub fn share(&mut self, key: &Bytes, version: Version, with: Partitions) {
        let who = self.who_has(key, version).iter().chain(with.iter()).collect();
        self.shared.insert(key.clone(), version, who, 0);
    }

    /// An own object is written, and nobody else has what it is now.
    pub fn unshare(&mut self, key: &Bytes) {
        self.shared.remove(key);
    }

    /// An object of another partition is this now.
    pub fn keep(&mut self, key: Bytes, version: Version, object: Option<M::Object>) {
        let bytes = object.as_ref().map_or(0, M::bytes);
        self.copies.insert(key, version, object, bytes);
    }
}
