//! Objects: the versions of a key that nobody has replaced, and the context (DottedDB §IV-C, F).

use super::clock::Clock;
use super::context::CausalContext;
use super::dot::{Actor, COUNTER_MAX, Counter, Dot};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::mutant;
use quorate_kernel::write::WriteId;
use serde::{Deserialize, Serialize};

/// A value with the name its client gave the write, if it gave one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Equal ids are one write.
    pub id: Option<WriteId>,
    /// What the client wrote; may be empty.
    pub value: Bytes,
}

/// What is stored, sent and read of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The versions, by their dots. A delete leaves none: its dot is in the context.
    pub versions: BTreeMap<Dot, Version>,
    /// What is in the past.
    pub context: CausalContext,
    /// The names of updates of which no version is left, as they are told with their dots: other
    /// dots of the same writes must go, too. Not stored with the object.
    pub replaced: BTreeMap<Dot, WriteId>,
}

/// Everything of an object but its values, and but for [`Object::replaced`], which follows if there
/// is any.
#[derive(Serialize, Deserialize)]
struct Head {
    context: Vec<(Actor, Counter)>,
    versions: Vec<(Dot, Option<WriteId>, u32)>,
}

impl Object {
    /// Whether nothing is left that would have to be stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.context.is_empty() && self.replaced.is_empty()
    }

    /// Takes in another state of the same key: what either has replaced is gone, all else stays.
    pub fn merge(&mut self, other: Object) {
        let Object { versions, context, .. } = other;
        self.versions.retain(|dot, _| match versions.get(dot) {
            // Whether it is the same version, [`Object::agrees`] tells.
            Some(_) => true,
            None => !context.covers(*dot),
        });
        for (dot, version) in versions {
            if !self.context.covers(dot) {
                self.versions.entry(dot).or_insert(version);
            }
        }
        self.context.merge(&context);
    }

    /// Merges as [`Object::merge`] does, and takes away whatever is the same write as a version
    /// that either has replaced; returns whether there was any. What the context does not cover
    /// stays: nobody could say that it is in the past.
    pub fn unite(&mut self, other: Object) -> bool {
        let mut names: BTreeSet<WriteId> = self.replaced.values().copied().collect();
        names.extend(other.replaced.values());
        names.extend(self.covered_by(&other));
        names.extend(other.covered_by(self));
        self.replaced.extend(other.replaced.clone());
        self.merge(other);
        let before = self.versions.len();
        let Object { versions, context, .. } = self;
        let is_replaced = |version: &Version| version.id.is_some_and(|id| names.contains(&id));
        versions.retain(|dot, version| !(is_replaced(version) && context.covers(*dot)));
        versions.len() < before
    }

    /// Unites as [`Object::unite`] does one of several, and keeps the names of what goes: those
    /// that follow may have more of the same writes.
    pub fn gather(&mut self, other: Object) {
        let named = |(dot, version): (&Dot, &Version)| version.id.map(|id| (*dot, id));
        let all = self.versions.iter().chain(&other.versions);
        let had: Vec<(Dot, WriteId)> = all.filter_map(named).collect();
        self.unite(other);
        let gone = had.into_iter().filter(|(dot, _)| !self.versions.contains_key(dot));
        if !mutant!("gathers_nameless") {
            self.replaced.extend(gone);
        }
    }

    /// The names of versions that another state of the object has replaced.
    fn covered_by(&self, other: &Object) -> BTreeSet<WriteId> {
        let goes = |dot: &Dot| other.context.covers(*dot) && !other.versions.contains_key(dot);
        let covered = self.versions.iter().filter(|(dot, _)| goes(dot));
        covered.filter_map(|(_, version)| version.id).collect()
    }

    /// Whether no dot carries one value here and another one there (D4). Where correct replicas
    /// alone speak none does.
    #[must_use]
    pub fn agrees(&self, other: &Object) -> bool {
        let mut versions = self.versions.iter();
        versions.all(|(dot, version)| other.versions.get(dot).is_none_or(|same| same == version))
    }

    /// Adds to the context what a clock knows of these actors: an object at rest leaves that to
    /// the clock. `is_meant` must hold for every actor that is, or ever was, a replica of the key:
    /// with the present ones alone what was stripped for a former one would come back (T2).
    pub fn fill(&mut self, clock: &Clock, is_meant: impl Fn(Actor) -> bool) {
        for (actor, entry) in clock.iter().filter(|(actor, _)| is_meant(*actor)) {
            self.context.raise(actor, entry.filled());
        }
    }

    /// The values to show, in the order of dots; several versions of one write are one value.
    pub fn values(&self) -> Vec<Bytes> {
        let mut seen = BTreeSet::new();
        let is_first = |version: &&Version| version.id.is_none_or(|id| seen.insert(id));
        self.versions.values().filter(is_first).map(|version| version.value.clone()).collect()
    }

    /// How many bytes its values have.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.versions.values().map(|version| version.value.len()).sum()
    }

    /// The stored form, which is the wire form too: `head length u32 | head | values`.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let versions = self.versions.iter();
        let head = Head {
            context: self.context.iter().collect(),
            versions: versions
                .map(|(dot, version)| (*dot, version.id, version.value.len() as u32))
                .collect(),
        };
        let mut head = postcard::to_allocvec(&head).expect("plain data always serializes");
        if !self.replaced.is_empty() {
            let replaced: Vec<(Dot, WriteId)> = self.replaced.clone().into_iter().collect();
            head.extend(postcard::to_allocvec(&replaced).expect("plain data always serializes"));
        }
        let mut bytes = BytesMut::with_capacity(4 + head.len() + self.value_bytes());
        bytes.put_u32(head.len() as u32);
        bytes.put_slice(&head);
        self.versions.values().for_each(|version| bytes.put_slice(&version.value));
        bytes.freeze()
    }

    /// Reads an object back; its values share the bytes.
    ///
    /// # Errors
    /// They are no object.
    pub fn from_bytes(bytes: &Bytes) -> Result<Object, WireError> {
        let malformed = WireError::Malformed { what: "object" };
        let Some(length) = bytes.first_chunk::<4>() else { return Err(malformed) };
        let length = u32::from_be_bytes(*length) as usize;
        let Some(head) = bytes.get(4..4 + length) else { return Err(malformed) };
        let Ok((Head { context, versions }, rest)) = postcard::take_from_bytes(head) else {
            return Err(malformed);
        };
        let mut object = Object { replaced: read_replaced(rest)?, ..Object::default() };
        let mut at = 4 + length;
        for (dot, id, length) in versions {
            let end = at + length as usize;
            if end > bytes.len() || !is_counter(dot.counter) {
                return Err(malformed);
            }
            let version = Version { id, value: bytes.slice(at..end) };
            if object.versions.insert(dot, version).is_some() {
                return Err(malformed);
            }
            at = end;
        }
        if at != bytes.len() || !context.iter().all(|(_, counter)| is_counter(*counter)) {
            return Err(malformed);
        }
        if object.replaced.keys().any(|dot| object.versions.contains_key(dot)) {
            return Err(malformed);
        }
        object.context = context.into_iter().collect();
        Ok(object)
    }
}

/// What follows the head.
fn read_replaced(bytes: &[u8]) -> Result<BTreeMap<Dot, WriteId>, WireError> {
    if bytes.is_empty() {
        return Ok(BTreeMap::new());
    }
    match postcard::take_from_bytes::<Vec<(Dot, WriteId)>>(bytes) {
        Ok((replaced, [])) if replaced.iter().all(|(dot, _)| is_counter(dot.counter)) => {
            Ok(replaced.into_iter().collect())
        }
        _ => Err(WireError::Malformed { what: "names of replaced versions" }),
    }
}

/// Whether an honest node can have issued this counter.
#[must_use]
pub fn is_counter(counter: Counter) -> bool {
    (1..=COUNTER_MAX).contains(&counter)
}
