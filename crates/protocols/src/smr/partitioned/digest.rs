//! What replicas of a partition compare: a machine that is not deterministic, or a memory that is
//! not sound, makes them differ, and nothing else would ever tell.
//!
//! Each 1,000 commands of a partition its replicas have a hash of the objects and of all that was
//! answered. It is kept up to date with each command; after a restart that of the objects is made
//! anew from what was stored. A replica that hears of another hash than its own halts: nobody knows
//! which of the two is right.

use super::command::{Answered, CommandId};
use super::machine::Machine;
use crate::smr::sized::sized;
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// After how many commands of a partition its replicas compare their states.
pub const COMPARED_EVERY: u64 = 1000;

/// How many hashes a replica keeps to compare those with that are behind.
const KEPT_MAX: usize = 16;

/// What a partition has executed, as far as it is no object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Executed {
    /// How many commands.
    pub count: u64,
    /// A hash of all that was answered, in order.
    answers: u64,
}

/// The hash of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHash {
    /// After how many commands of its partition: a multiple of [`COMPARED_EVERY`].
    pub executed: u64,
    /// The hash.
    pub hash: u64,
}

/// Two replicas of a partition have different states after the same commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differs {
    /// The other one.
    pub node: NodeId,
    /// The state of this one.
    pub own: StateHash,
    /// The state of the other one, after as many commands.
    pub other: StateHash,
}

/// The hash of an object under its key.
fn hash_of<M: Machine>(key: &Bytes, object: &M::Object) -> u64 {
    xxh3_64(&sized(&[], &(key, object)))
}

/// What a replica compares.
#[derive(Clone, Debug)]
pub(super) struct Digest {
    /// The sum of the hashes of all objects: whatever their order, and one alone may be taken out.
    objects: u64,
    /// Its own last ones, ascending.
    own: VecDeque<StateHash>,
    /// The last one of each other replica that this one has not come to.
    others: BTreeMap<NodeId, StateHash>,
}

impl Digest {
    /// Begins with what was stored.
    pub fn of<M: Machine>(objects: &BTreeMap<Bytes, M::Object>) -> Digest {
        let hashes = objects.iter().map(|(key, object)| hash_of::<M>(key, object));
        let objects = hashes.fold(0, u64::wrapping_add);
        Digest { objects, own: VecDeque::new(), others: BTreeMap::new() }
    }

    /// An object takes the place of another one; none is none.
    pub fn replace<M: Machine>(
        &mut self,
        key: &Bytes,
        old: Option<&M::Object>,
        new: Option<&M::Object>,
    ) {
        let hash = |object: Option<&M::Object>| object.map_or(0, |it| hash_of::<M>(key, it));
        self.objects = self.objects.wrapping_sub(hash(old)).wrapping_add(hash(new));
    }

    /// A command was executed and answered. Another replica that differs, if it is known already.
    pub fn execute<M: Machine>(
        &mut self,
        executed: &mut Executed,
        id: CommandId,
        answer: &Answered<M>,
    ) -> Option<Differs> {
        let front = executed.answers.to_be_bytes();
        executed.answers = xxh3_64(&sized(&front, &(id, answer)));
        executed.count += 1;
        if !executed.count.is_multiple_of(COMPARED_EVERY) {
            return None;
        }
        let hash = xxh3_64(&sized(&[], &(executed.count, executed.answers, self.objects)));
        let own = StateHash { executed: executed.count, hash };
        let last = self.own.back().map(|it| it.executed);
        invariant!(last < Some(own.executed), "hashes are of later and later states");
        self.own.push_back(own);
        if self.own.len() > KEPT_MAX {
            self.own.pop_front();
        }
        let others = core::mem::take(&mut self.others).into_iter();
        let due: BTreeMap<NodeId, StateHash>;
        (self.others, due) = others.partition(|(_, it)| it.executed > own.executed);
        due.into_iter().find_map(|(node, other)| self.compare(node, other))
    }

    /// Another replica says what it has. Whether it differs, if that is known.
    pub fn compare(&mut self, node: NodeId, other: StateHash) -> Option<Differs> {
        let last = self.own.back().map(|it| it.executed);
        if last < Some(other.executed) {
            self.others.insert(node, other);
            return None;
        }
        let own = *self.own.iter().find(|it| it.executed == other.executed)?;
        let differs = own.hash != other.hash && !mutant!("smr_difference_ignored");
        differs.then_some(Differs { node, own, other })
    }

    /// The last state that it has a hash of.
    pub fn last(&self) -> Option<StateHash> {
        self.own.back().copied()
    }
}
