//! What replicas of different partitions say to each other about one command.

use super::command::Place;
use super::execution::Variables;
use super::machine::Machine;
use super::partitions::PartitionId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use serde::{Deserialize, Serialize};

/// How many bytes of signals a replica keeps of commands that it has not come to. What is above
/// that it drops, and asks for when it needs it.
pub const EARLY_BYTES_MAX: usize = 64 << 20;

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
}

/// A message between replicas of different partitions. All of them may be lost, doubled and late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Message<M: Machine> {
    /// The designated replica of a partition sends it when it comes to a command, and with each
    /// object that the others need; any replica that is asked. The receiver may conclude that some
    /// replica of that partition has executed all that comes before the command.
    Signal(Signal<M>),
    /// Somebody waits for signals of a command, and asks all replicas of their partition. Nothing
    /// may be concluded.
    Needs {
        /// The command.
        place: Place,
        /// Who is to be answered.
        node: NodeId,
    },
    /// A replica has durably all that it needs of commands up to a place, and will ask for none of
    /// it again. Sent from time to time.
    Released {
        /// Of which partition the replica is.
        partition: PartitionId,
        /// Which one.
        node: NodeId,
        /// The last of these commands.
        place: Place,
    },
}

/// About how many bytes these objects take.
pub(super) fn bytes_of<M: Machine>(variables: &Variables<M>) -> usize {
    let bytes = |(key, object): (&Bytes, &Option<M::Object>)| {
        key.len() + object.as_ref().map_or(0, M::bytes)
    };
    variables.iter().map(bytes).sum::<usize>() + size_of::<Signal<M>>()
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
        let bytes = bytes_of::<M>(&signal.variables);
        if !is_next && self.bytes.saturating_add(bytes) > EARLY_BYTES_MAX {
            return;
        }
        let of = self.signals.entry(signal.place).or_default();
        match of.get_mut(&signal.from) {
            Some(known) => {
                self.bytes -= bytes_of::<M>(&known.variables);
                known.variables.extend(signal.variables);
                self.bytes += bytes_of::<M>(&known.variables);
            }
            None => {
                self.bytes += bytes;
                of.insert(signal.from, signal);
            }
        }
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
        self.bytes -= gone.map(|it| bytes_of::<M>(&it.variables)).sum::<usize>();
        of.into_values().collect()
    }
}
