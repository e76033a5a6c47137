//! What replicas of different partitions say to each other about one command.

use super::caches::{Version, Versions};
use super::command::Place;
use super::digest::StateHash;
use super::execution::Variables;
use super::machine::Machine;
use super::partitions::{PartitionId, ReplicaId};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// How many bytes of signals a replica keeps of commands that it has not come to. What is above
/// that it drops, and asks for when it needs it.
pub const EARLY_BYTES_MAX: usize = 64 << 20;

/// Of how many commands a replica asks another partition at a time.
pub const NEEDS_MAX: usize = 64;

/// How many bytes of signals answer one question at most, if it is not a single signal that has
/// more.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// A partition has come to a command, and what of its objects the others read (Algorithm 1 of the
/// paper, lines 11 and 15). Objects of the command that are sent later come in signals as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Signal<M: Machine> {
    /// The command.
    pub place: Place,
    /// Whose signal it is.
    pub from: PartitionId,
    /// Whether this partition executes it. If one does not, none does.
    pub takes_part: bool,
    /// Objects of this partition as the command finds them.
    pub variables: Variables<M>,
    /// The versions of objects that the command reads, if there are caches. One that is not sent
    /// with them is what the receiver's copy of that version is (the paper's ⊥).
    pub versions: BTreeMap<Bytes, Version>,
}

impl<M: Machine> Signal<M> {
    /// The same in pieces, each with about so many bytes of objects, or one object that has more.
    /// Not for one that tells what a switch moves: whoever waits for it takes the first piece for
    /// all of it.
    pub fn pieces(mut self, bytes_max: usize) -> impl Iterator<Item = Signal<M>> {
        let mut pieces = Vec::new();
        let (mut first, mut bytes) = (Variables::<M>::new(), 0);
        while let Some((key, object)) = self.variables.pop_first() {
            let more = key.len() + object.as_ref().map_or(0, M::bytes);
            if !first.is_empty() && bytes + more > bytes_max {
                pieces.push(core::mem::take(&mut first));
                bytes = 0;
            }
            bytes += more;
            first.insert(key, object);
        }
        pieces.push(first);
        let (place, from, takes_part) = (self.place, self.from, self.takes_part);
        let count = pieces.len();
        pieces.into_iter().enumerate().map(move |(at, variables)| {
            let mut rest = core::mem::take(&mut self.versions);
            let of = |key: &Bytes| Some((key.clone(), rest.remove(key)?));
            let mut versions: BTreeMap<Bytes, Version> = variables.keys().filter_map(of).collect();
            // Those of objects that are not sent go with the last one.
            if at + 1 == count {
                versions.append(&mut rest);
            }
            self.versions = rest;
            Signal { place, from, takes_part, variables, versions }
        })
    }
}

/// A message between replicas. All of them may be lost, doubled and late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Message<M: Machine> {
    /// The designated replica of a partition sends it when it comes to a command, and with each
    /// object that the others need; any replica that is asked. The receiver may conclude that some
    /// replica of that partition has executed all that comes before the command.
    Signal(Signal<M>),
    /// Somebody waits for signals of commands, the first at its head or behind it, and asks all
    /// replicas of their partition. Nothing may be concluded, but that this start of it is there.
    Needs {
        /// Who is to be answered.
        replica: ReplicaId,
        /// The commands, ascending, [`NEEDS_MAX`] at most.
        places: Vec<Place>,
    },
    /// The answer to who needs what all replicas of its partition had released: nobody keeps it any
    /// more. The receiver has forgotten that it had it, or is new, and some other replica of its
    /// partition is further on.
    Gone {
        /// Whose signal it was.
        from: PartitionId,
        /// The command.
        place: Place,
    },
    /// A replica tells the others of its own partition the hash of its state, from time to time.
    /// One that has another hash of the same state halts.
    Hash {
        /// Which one.
        replica: ReplicaId,
        /// The last state that it has a hash of.
        hash: StateHash,
    },
    /// A replica has durably all that it needs of commands up to a place, and this start of it will
    /// ask for none of it again. Sent from time to time.
    Released {
        /// Which one.
        replica: ReplicaId,
        /// The last of these commands.
        place: Place,
    },
}

/// How many entries a leaf of a map has, and how many at least.
const LEAF_ENTRIES: (usize, usize) = (11, 5);

/// About how many bytes these objects take in a signal: with the leaves of the map that they are
/// in, the least filled that there may be. A leaf is there for a single entry.
pub(super) fn bytes_of<M: Machine>(variables: &Variables<M>) -> usize {
    let bytes = |(key, object): (&Bytes, &Option<M::Object>)| {
        key.len() + object.as_ref().map_or(0, M::bytes)
    };
    let leaf = LEAF_ENTRIES.0 * size_of::<(Bytes, Option<M::Object>)>();
    let leaves = variables.len().div_ceil(LEAF_ENTRIES.1) * leaf;
    variables.iter().map(bytes).sum::<usize>() + leaves + size_of::<Signal<M>>()
}

/// About how many bytes a signal takes.
pub(super) fn bytes_of_signal<M: Machine>(signal: &Signal<M>) -> usize {
    let versions = signal.versions.keys().map(Bytes::len).sum::<usize>();
    let leaf = LEAF_ENTRIES.0 * size_of::<(Bytes, Version)>();
    let leaves = signal.versions.len().div_ceil(LEAF_ENTRIES.1) * leaf;
    bytes_of::<M>(&signal.variables) + versions + leaves
}

/// What other partitions have signalled of commands that are not executed yet.
#[derive(Clone, Debug)]
pub(super) struct Inbox<M: Machine> {
    signals: BTreeMap<Place, BTreeMap<PartitionId, Signal<M>>>,
    bytes: usize,
}

impl<M: Machine> Inbox<M> {
    pub fn new() -> Inbox<M> {
        Inbox { signals: BTreeMap::new(), bytes: 0 }
    }

    /// A signal has come. One of a later command than the next is dropped if there is no room.
    pub fn insert(&mut self, signal: Signal<M>, is_next: bool) {
        let bytes = bytes_of_signal(&signal);
        if !is_next && self.bytes.saturating_add(bytes) > EARLY_BYTES_MAX {
            return;
        }
        let of = self.signals.entry(signal.place).or_default();
        match of.get_mut(&signal.from) {
            Some(known) => {
                self.bytes -= bytes_of_signal(known);
                known.variables.extend(signal.variables);
                known.versions.extend(signal.versions);
                self.bytes += bytes_of_signal(known);
            }
            None => {
                self.bytes += bytes;
                of.insert(signal.from, signal);
            }
        }
    }

    /// What was not sent of a command, as this replica has it, is taken from its copies: those of
    /// the version that the holder names. How many.
    pub fn resolve(&mut self, place: Place, copies: &Versions<Option<M::Object>>) -> u64 {
        let mut count = 0;
        for signal in self.signals.get_mut(&place).into_iter().flat_map(BTreeMap::values_mut) {
            self.bytes -= bytes_of_signal(signal);
            let unsent =
                signal.versions.iter().filter(|(key, _)| !signal.variables.contains_key(*key));
            let found = unsent.filter_map(|(key, version)| {
                let (_, object) = copies.get(key).filter(|(has, _)| has == version)?;
                Some((key.clone(), object.clone()))
            });
            let found: Variables<M> = found.collect();
            count += found.len() as u64;
            signal.variables.extend(found);
            self.bytes += bytes_of_signal(signal);
        }
        count
    }

    /// Those of a command.
    pub fn of(&self, place: Place) -> impl Iterator<Item = &Signal<M>> {
        self.signals.get(&place).into_iter().flat_map(BTreeMap::values)
    }

    pub fn has(&self, place: Place, from: PartitionId) -> bool {
        self.signals.get(&place).is_some_and(|of| of.contains_key(&from))
    }

    /// Commands up to this one are executed: what was signalled of it, for the last time.
    pub fn take(&mut self, place: Place) -> Vec<Signal<M>> {
        let later = self.signals.split_off(&place);
        let passed = core::mem::replace(&mut self.signals, later);
        let of = self.signals.remove(&place).unwrap_or_default();
        let gone = passed.values().flat_map(BTreeMap::values).chain(of.values());
        self.bytes -= gone.map(bytes_of_signal).sum::<usize>();
        of.into_values().collect()
    }
}
